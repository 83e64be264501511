"""Check mine: a reader's own code is run in a process of its own, and compared with the reference stage by stage."""
