"""Mistakes in what stands around attention."""
