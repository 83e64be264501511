"""The residual stream: the logit lens, direct contributions, depth, sub-layers, norms, feed-forward layers."""
