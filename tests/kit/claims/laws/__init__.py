"""The laws, a file for each menu of pages, and one for the words that several pages use."""
