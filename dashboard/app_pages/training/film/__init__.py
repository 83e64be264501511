"""Training film: how the patterns of all heads form, step by step."""
