"""The menu "Attention": where heads look, how one computes it, and what masks and edits change."""
