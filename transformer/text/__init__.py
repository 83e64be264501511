"""Text: how a file becomes tokens, works and windows, and the task of saying what comes next in it.

A text is known by its *key*, a name and the first digits of its SHA-256: `shakespeare-1a2b3c4d`. The file itself lies
in a cache (`shelf`); what a model needs of it to be looked at, its vocabulary and an excerpt that it never learned
from, goes with every run (`excerpt`).
"""
