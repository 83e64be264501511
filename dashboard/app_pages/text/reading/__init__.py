"""It reads: how likely each word of a passage was, and what the heads looked at."""
