"""Inside a block: heads side by side, norm, feed-forward layer, dropout, parameters, and from logits to words."""
