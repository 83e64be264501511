"""Positional encoding: the encoding of the chosen model, and the others beside it."""
