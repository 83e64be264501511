"""The menu "Train it": the film of a training, accuracy, runs and lengths."""
