"""One page a file: settings, observation, analysis, figure, and the prose beside it."""
