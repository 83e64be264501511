"""Attention by hand: a context vector calculated step by step."""
