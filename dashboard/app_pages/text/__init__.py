"""The menu "Text": a model of Shakespeare writes and reads."""
