"""All heads of one pass without a server: as a widget of a notebook, or as a page in a file."""
