"""Mistakes in the multi-head module around the formula."""
