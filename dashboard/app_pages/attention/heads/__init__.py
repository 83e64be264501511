"""Attention heads: all patterns side by side, one large, and a table of their metrics."""
