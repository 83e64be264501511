"""What is inside a block, as pictures: heads side by side, a norm, hidden units."""
