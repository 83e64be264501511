"""Lectures: a Markdown file each, whose steps are views of the dashboard with words."""
