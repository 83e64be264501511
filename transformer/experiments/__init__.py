"""Several models trained and compared: bottleneck, lengths, teacher forcing. The files of values need no PyTorch."""
