"""The menu "Whole model": its parts, its blocks and layers, and which token moves which output."""
