"""Pictures of context vectors in the plane, and of their scores."""
