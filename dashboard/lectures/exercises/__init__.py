"""Exercises: a Markdown file each, with a goal that is measured from the reader's own view."""
