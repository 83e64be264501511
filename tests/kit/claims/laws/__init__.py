"""The laws: a file for a page or a menu, for shipped measurements, and for what several pages say."""
