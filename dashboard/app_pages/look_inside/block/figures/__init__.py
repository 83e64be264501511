"""Pictures of the parts of a block."""
