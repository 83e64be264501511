"""Pictures of score terms and of moved positions."""
