"""What there is to train on: what a process has found, and how long a step takes there."""
