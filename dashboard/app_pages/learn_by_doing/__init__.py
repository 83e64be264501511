"""Pages about code that is wrong: the mistakes of a first transformer, and the check of a reader's own code."""
