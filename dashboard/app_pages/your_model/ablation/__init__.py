"""Change its attention: remove heads of an imported model, or give it another mask, and compare its output."""
