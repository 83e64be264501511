"""Mistakes in what a model is taught."""
