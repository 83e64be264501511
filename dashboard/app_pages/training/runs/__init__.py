"""Runs and races: all runs in a table, compared, raced, kept and removed."""
