"""Positions at work: scores split into content and position, and positions moved."""
