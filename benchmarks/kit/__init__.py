"""What several benchmarks share: the page a table is printed on, browser tabs, other people's models and viewers."""
