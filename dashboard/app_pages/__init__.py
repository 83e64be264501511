"""A folder a menu, in it a folder a page, with everything that page alone needs."""
