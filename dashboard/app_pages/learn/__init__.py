"""The menu "Learn": exercises, mistakes, one's own code, and the way from recurrent networks to attention."""
