"""The model menu, a model at a step, and what several pages ask of it: cached, bounded, in the background."""
