"""Pictures of the five questions."""
