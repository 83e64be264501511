"""The residual stream: the logit lens, direct contributions, depth, feed-forward layers."""
