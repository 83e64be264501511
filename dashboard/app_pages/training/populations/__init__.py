"""Populations: one setting trained from many seeds, and counted together."""
