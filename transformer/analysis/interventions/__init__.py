"""What changes when heads are removed, activations patched or tokens replaced."""
