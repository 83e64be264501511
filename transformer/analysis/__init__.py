"""What can be said of a model: tensors in, numpy arrays and floats out."""
