"""The machine: a model as boxes and arrows, made from its config, and the vectors that leave each box."""
