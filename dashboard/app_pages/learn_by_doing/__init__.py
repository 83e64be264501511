"""The menu "Learn by doing": mistakes to recognise, and one's own code to check."""
