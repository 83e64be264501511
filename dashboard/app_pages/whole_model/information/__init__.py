"""Follow the information: what each token does to each output."""
