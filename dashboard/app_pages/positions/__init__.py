"""The menu "Positions": how a model is told the order of its tokens, and what that is worth."""
