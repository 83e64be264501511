"""A student's file in a process of its own: what it may use, what ends it, and how one talks to it."""
