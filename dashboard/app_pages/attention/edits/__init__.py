"""Edits: heads removed, patterns forced, activations patched from a second input."""
