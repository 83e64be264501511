"""Mistakes in the formula of attention."""
