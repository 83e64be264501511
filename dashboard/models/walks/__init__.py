"""Walks around a square: the small GRUs that are trained on the spot to go on with them."""
