"""Training: a generator of steps, the run folder it writes, and the process it runs in."""
