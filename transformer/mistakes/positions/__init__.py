"""Mistakes in what tells a model the order of its tokens."""
