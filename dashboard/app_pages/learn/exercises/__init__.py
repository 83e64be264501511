"""Exercises: the list of all that are here, and which of them were solved in this browser."""
