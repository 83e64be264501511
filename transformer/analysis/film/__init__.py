"""The film of a training: patterns and accuracy at every snapshot."""
