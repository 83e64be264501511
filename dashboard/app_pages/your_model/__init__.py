"""The menu "Your model": bring in a model that is not ours, and look into its attention."""
