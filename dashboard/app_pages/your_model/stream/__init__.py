"""Its layers: attention rolled out through all layers of an imported model, and what it would say after each."""
