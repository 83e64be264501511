"""The lectures that are here, and where each begins."""
