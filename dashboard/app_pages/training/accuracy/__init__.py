"""Accuracy by position against its ceiling, and where the errors are."""
