"""The encoding is built over the batch: one vector a sequence, the same at all its positions."""

import math

import torch

from transformer.foundation.drawing import drawing
from transformer.mistakes import PositionsMistake
from transformer.model import Transformer
from transformer.positions.sinusoidal import sinusoids


class AlongTheBatch(PositionsMistake):
    title = "Positions are added along the batch"
    hidden = "The shapes fit, the pattern is causal, its rows sum to 1 and the probe is 0."
    exposes = "The second half is not right, and what a sequence gets changes with its place in the batch."
    mend = "Build the encoding for x.shape[1], the positions."
    met = "a lecture notebook and bug reports in public repositories"

    @staticmethod
    def right(x):
        return sinusoids(torch.arange(x.shape[1]), x.shape[2]).to(x)

    @staticmethod
    def wrong(x):
        return sinusoids(torch.arange(x.shape[0]), x.shape[2])[:, None].to(x)

    @classmethod
    def mistaken(cls, model):
        with drawing():
            other = _AlongTheBatch(model.config, d_vocab=model.d_vocab, n_ctx=model.n_ctx)
        other.load_state_dict(model.state_dict())
        return other


class _AlongTheBatch(Transformer):
    """A decoder whose encoding depends on the batch: no encoding of ours can do that."""

    def _embed(self, tokens, positions, trace):
        embedded = trace("token_embedding", self.embedding(tokens) * math.sqrt(self.config.d_model))
        return embedded + trace("position_embedding", AlongTheBatch.wrong(embedded))
