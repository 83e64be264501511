"""Mask effects: a mask is chosen or painted, and what it lets through is computed and measured."""
