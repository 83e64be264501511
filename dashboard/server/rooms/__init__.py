"""Rooms: a lecturer's page comes to followers' browsers, and their votes come back. Nothing is kept after a room."""

from dashboard.server.rooms.places import place, running
from dashboard.server.rooms.routes import routes

__all__ = ["place", "routes", "running"]
