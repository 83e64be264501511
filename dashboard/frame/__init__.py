"""What stands around every page, or in its place: the sidebar, trainings, health, what does not suit a model."""
