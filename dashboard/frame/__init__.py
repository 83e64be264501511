"""What stands around every page: the sidebar, the training panel, live training, the health strip."""
