"""Through the layers: the logit lens, attention rollout and direct contributions."""
