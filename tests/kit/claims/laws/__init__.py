"""The laws: a file for the overview and each menu, for shipped measurements, and for the words that several pages use."""
