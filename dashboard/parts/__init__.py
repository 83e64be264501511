"""Pieces of pages that Streamlit draws: widgets, prose, tables, tokens, heads, the film, texts."""
