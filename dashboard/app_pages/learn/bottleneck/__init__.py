"""The bottleneck: one vector must hold a whole sequence, until attention comes."""
