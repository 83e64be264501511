"""Pictures of a mask: accuracy under it, the flow of tokens, probabilities."""
