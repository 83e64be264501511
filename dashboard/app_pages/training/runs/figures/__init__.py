"""Pictures of several runs at once: curves and standings."""
