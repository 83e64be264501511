"""What leads a reader through the lab: the strips of lectures and exercises, and what is to be predicted first."""
