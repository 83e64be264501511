"""The laws: a file for the overview and each menu, for shipped measurements, and for what several pages say."""
