"""Sequence to sequence with gated recurrent units: one reads, the other writes; with attention it may look back.

Sutskever et al. (2014) and Cho et al. (2014) hand over the last state alone; Bahdanau et al. (2015) let the writer
look at all of them.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from transformer.config import ModelConfig
from transformer.network import Network
from transformer.recurrent.scoring import Alignment
from transformer.trace import UNTRACED, Trace


@dataclass(frozen=True)
class Memory:
    """What the encoder leaves behind."""

    states: Float[Tensor, "batch source d_model"]
    """Of the uppermost layer, after each source token: the keys and values of attention."""
    last: Float[Tensor, "layer batch d_model"]
    """After the last token that is not padding: all that the decoder gets where it has no attention."""
    mask: Bool[Tensor, "batch 1 1 source"]
    """True where there is no padding."""


class Gates(nn.Module):
    """GRU layers on top of each other (Cho et al., 2014)."""

    def __init__(self, d_in: int, d_model: int, n_layers: int) -> None:
        super().__init__()
        self.layers = nn.ModuleList(
            nn.GRU(d_in if index == 0 else d_model, d_model, batch_first=True) for index in range(n_layers)
        )

    def forward(
        self, x: Float[Tensor, "batch step d_in"], first: Float[Tensor, "layer batch d_model"] | None = None
    ) -> list[Float[Tensor, "batch step d_model"]]:
        """The state after each step, a tensor a layer; they begin at `first`, or at zero."""
        states = []
        for index, layer in enumerate(self.layers):
            x, _ = layer(x, None if first is None else first[index : index + 1].contiguous())
            states.append(x)
        return states


class EncoderDecoder(nn.Module):
    """Vectors in, features for each target out; what the vectors stand for is its owner's business.

    `scoring` names the attention, "none" hands over the last state alone. Features are the decoder's state, and with
    attention the context vector before it: d_model or 2 · d_model of them.
    """

    def __init__(self, d_in: int, d_model: int, n_layers: int = 1, scoring: str = "none", *, affine: bool = True):
        super().__init__()
        self.encoder = Gates(d_in, d_model, n_layers)
        self.decoder = Gates(d_in, d_model, n_layers)
        self.attention = None if scoring == "none" else Alignment(d_model, scoring, affine=affine)
        self.d_features = d_model if self.attention is None else 2 * d_model

    def encode(
        self, source: Float[Tensor, "batch source d_in"], real: Bool[Tensor, "batch source"], trace: Trace = UNTRACED
    ) -> Memory:
        """Read the source; `real` is False on padding, which stands at the end and leaves no mark."""
        states = self.encoder(source)
        end = (real.sum(dim=1) - 1).clamp(min=0)[:, None, None].expand(-1, 1, states[0].shape[-1])
        last = torch.stack([layer.gather(1, end)[:, 0] for layer in states])
        return Memory(trace("encoder.states", states[-1]), trace("encoder.last", last), real[:, None, None, :])

    def decode(
        self,
        read: Float[Tensor, "batch target d_in"],
        memory: Memory,
        first: Float[Tensor, "layer batch d_model"] | None = None,
        trace: Trace = UNTRACED,
    ) -> tuple[Float[Tensor, "batch target d_features"], Float[Tensor, "layer batch d_model"]]:
        """Features for each target, and the state to go on from; the first begins at what the encoder handed over."""
        inside = trace.within("decoder.0")
        states = self.decoder(read, memory.last if first is None else first)
        query = inside("states", states[-1])
        left = torch.stack([layer[:, -1] for layer in states])
        if self.attention is None:
            return query, left
        context = self.attention(query, memory.states, memory.mask, inside.within("cross_attention"))
        return torch.cat([context, query], dim=-1), left


class Recurrent(Network):
    """The sequence-to-sequence model over tokens: what the architecture "gru" of a run is.

    While it trains, each token that the decoder reads is the right one with probability `teacher_forcing`, else the one
    it just said itself (scheduled sampling; Bengio et al., 2015). Evaluation knows no such help: see `greedy`.
    """

    def __init__(self, config: ModelConfig, *, d_vocab: int, n_ctx: int, teacher_forcing: float = 1.0) -> None:
        super().__init__(config, d_vocab=d_vocab, n_ctx=n_ctx)
        self.teacher_forcing = teacher_forcing
        self.embedding = nn.Embedding(d_vocab, config.d_model)
        self.core = EncoderDecoder(
            config.d_model, config.d_model, config.n_layers, config.attention, affine=config.affine
        )
        self.unembedding = nn.Linear(self.core.d_features, d_vocab)

    def forward(
        self,
        tokens: Int[Tensor, "batch position"],
        source: Int[Tensor, "batch source"] | None = None,
        trace: Trace = UNTRACED,
    ) -> Float[Tensor, "batch position d_vocab"]:
        """Logits for what each position says, reading `tokens`; in training mode only with `teacher_forcing`."""
        if source is None:
            raise ValueError("a recurrent encoder-decoder needs a source")
        longest = max(tokens.shape[1], source.shape[1])
        if longest > self.n_ctx:
            raise ValueError(f"{longest} tokens do not fit into a context of {self.n_ctx}")
        memory = self._read(source, trace)
        if not self.training or self.teacher_forcing >= 1:
            read = trace("decoder.token_embedding", self.embedding(tokens))
            features, _ = self.core.decode(read, memory, trace=trace)
            return trace("logits", self.unembedding(features))
        logits: list[Tensor] = []
        state, helped = None, self.helped(tokens)
        for place in range(tokens.shape[1]):
            own = logits[-1].argmax(dim=-1) if logits else tokens[:, :1]
            read = torch.where(helped[:, place : place + 1], tokens[:, place : place + 1], own)
            features, state = self.core.decode(self.embedding(read), memory, state)
            logits.append(self.unembedding(features))
        return trace("logits", torch.cat(logits, dim=1))

    def helped(self, tokens: Int[Tensor, "batch position"]) -> Bool[Tensor, "batch position"]:
        """Where the right token is read: each place of each sequence for itself, with probability `teacher_forcing`."""
        return torch.rand(tokens.shape, device=tokens.device) < self.teacher_forcing

    @torch.no_grad()
    def greedy(
        self, source: Int[Tensor, "batch source"], start: int, n_more: int | None = None
    ) -> Int[Tensor, "batch more"]:
        """Let it speak by itself, each token from the state after the one before."""
        memory, state = self._read(source), None
        read, said = torch.full_like(source[:, :1], start), []
        for _ in range(source.shape[1] if n_more is None else n_more):
            features, state = self.core.decode(self.embedding(read), memory, state)
            read = self.unembedding(features).argmax(dim=-1)
            said.append(read)
        return torch.cat(said, dim=1)

    def _read(self, source: Int[Tensor, "batch source"], trace: Trace = UNTRACED) -> Memory:
        embedded = trace("encoder.token_embedding", self.embedding(source))
        return self.core.encode(embedded, source != self.d_vocab - 1, trace)
