"""Pictures of a population: steps until solved, accuracy, kinds of heads, and two settings against each other."""
