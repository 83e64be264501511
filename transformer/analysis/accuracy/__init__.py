"""How often a model is right, position by position, and how often it could be."""
