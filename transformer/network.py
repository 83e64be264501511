"""What every sequence model here is, whatever it is made of: tokens in, logits over a vocabulary out."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from copy import copy
from typing import TypeVar

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from transformer.config import ModelConfig
from transformer.trace import UNTRACED, Trace


class Network(nn.Module):
    """A transformer, or a recurrent network: what is trained, measured, observed and kept.

    The last token of the vocabulary is padding. `n_ctx` bounds the tokens, and the source.
    """

    unembedding: nn.Linear
    """What makes logits of the last features: the last thing that is done, place by place."""

    def __init__(self, config: ModelConfig, *, d_vocab: int, n_ctx: int) -> None:
        super().__init__()
        self.config, self.d_vocab, self.n_ctx = config, d_vocab, n_ctx

    @abstractmethod
    def forward(
        self,
        tokens: Int[Tensor, "batch position"],
        source: Int[Tensor, "batch source"] | None = None,
        trace: Trace = UNTRACED,
    ) -> Float[Tensor, "batch position d_vocab"]:
        """Logits for what each position says. Raises ValueError when the input does not fit."""

    @torch.no_grad()
    def greedy(
        self, source: Int[Tensor, "batch source"], start: int, n_more: int | None = None
    ) -> Int[Tensor, "batch more"]:
        """Let one that has a source speak by itself: from `start`, always the likeliest token.

        `n_more` times; as often as the source is long, if it is not said.
        """
        tokens = torch.full_like(source[:, :1], start)
        for _ in range(source.shape[1] if n_more is None else n_more):
            said = self(tokens, source)[:, -1:].argmax(dim=-1)
            tokens = torch.cat([tokens, said], dim=1)
        return tokens[:, 1:]

    @torch.no_grad()
    def continue_greedily(self, tokens: Int[Tensor, "batch position"], n_more: int) -> Int[Tensor, "batch more"]:
        """Let one that continues speak by itself: always the likeliest next token, `n_more` times."""
        prompt = tokens.shape[1]
        for _ in range(n_more):
            tokens = torch.cat([tokens, self(tokens)[:, -1:].argmax(dim=-1)], dim=1)
        return tokens[:, prompt:]


Some = TypeVar("Some", bound=Network)


def of_few_words(network: Some, tokens: Sequence[int] = (0,)) -> Some:
    """The same weights, and logits for these tokens alone: of a text's thousands few are compared, or none.

    Those of a whole vocabulary cost more than all that a small model does before it.
    """
    unembedding, few = copy(network.unembedding), copy(network)  # a new layer would draw from the global generator
    rows = torch.tensor(tokens, device=unembedding.weight.device)
    own = {name: nn.Parameter(weight.detach()[rows]) for name, weight in unembedding.named_parameters()}
    unembedding._parameters = {**unembedding._parameters, **own}
    unembedding.out_features = len(tokens)
    few._modules = {**network._modules, "unembedding": unembedding}
    return few
