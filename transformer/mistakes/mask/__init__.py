"""Mistakes in what a query may see."""
