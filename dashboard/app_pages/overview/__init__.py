"""Overview: the model answers one question, and how well it answers many."""
