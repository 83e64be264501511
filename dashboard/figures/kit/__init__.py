"""What figures are made of: token axes, colour bars, lines, labels, numbers."""
