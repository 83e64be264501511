"""Tokens and windows: a text is cut and numbered, and cut again into what a model reads at a time."""
