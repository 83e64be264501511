"""Commands of `python -m transformer` that are more than a call."""
