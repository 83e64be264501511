"""Inside a head: one query from its vectors to its output, step by step."""
