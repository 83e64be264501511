"""Bring in a model: what it is, all its heads on an input, and what sets each apart."""
