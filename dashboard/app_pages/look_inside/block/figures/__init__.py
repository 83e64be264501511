"""What is inside a block, as pictures: heads side by side, a LayerNorm, hidden units."""
