"""The menu "Training": the film of a training, accuracy, runs and populations."""
