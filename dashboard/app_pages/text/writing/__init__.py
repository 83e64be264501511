"""It writes: a text is continued word by word, with every alternative."""
