"""The transformer, in three architectures from the same blocks: decoder, encoder, encoder-decoder."""

from __future__ import annotations

import math

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from transformer import masks
from transformer.blocks import Block
from transformer.config import ModelConfig, RunConfig
from transformer.foundation.drawing import drawing
from transformer.network import Network
from transformer.normalisation import norm_at
from transformer.positions import ENCODINGS, PositionalEncoding
from transformer.recurrent import Recurrent
from transformer.trace import UNTRACED, Trace


class Transformer(Network):
    """Tokens in, logits over the vocabulary out (Vaswani et al., 2017, figure 1).

    - decoder: one stack, causal unless its config says otherwise; GPT's shape.
    - encoder: one stack that sees everything unless its config says otherwise; BERT's shape.
    - encoder-decoder: an encoder reads `source`, a decoder reads `tokens` and looks at the encoder; the paper's.

    The last token of the vocabulary is padding: no query ever sees it. `n_ctx` bounds the tokens, and the source.
    Raises ValueError where the config still says "auto": `build(RunConfig(model=config))` lets the task decide.
    """

    visible: Bool[Tensor, "query key"]
    """The mask of the predicting stack, written out for n_ctx positions."""

    def __init__(self, config: ModelConfig, *, d_vocab: int, n_ctx: int) -> None:
        super().__init__(config, d_vocab=d_vocab, n_ctx=n_ctx)
        if config.architecture == "auto" or config.mask == "auto":
            raise ValueError("architecture and mask must be named here: RunConfig resolves 'auto' from the task")
        self.embedding = nn.Embedding(d_vocab, config.d_model)
        self.positions = ENCODINGS[config.positions](n_ctx=n_ctx, d_model=config.d_model, n_heads=config.n_heads)
        self.dropout = nn.Dropout(config.dropout)
        both = config.architecture == "encoder-decoder"
        if config.architecture != "decoder":
            self.encoder = nn.ModuleList(Block(config) for _ in range(config.n_layers))
        if config.architecture != "encoder":
            self.decoder = nn.ModuleList(Block(config, cross=both) for _ in range(config.n_layers))
        self.final_norm = norm_at(config, "pre")
        self.unembedding = nn.Linear(config.d_model, d_vocab)
        if both:
            self.memory_norm = norm_at(config, "pre")
        if config.tied:
            self.unembedding.weight = self.embedding.weight
        visible = masks.parse(config.mask).matrix(n_ctx)
        self.register_buffer("visible", torch.from_numpy(visible), persistent=False)
        self._initialise()

    def forward(
        self,
        tokens: Int[Tensor, "batch position"],
        source: Int[Tensor, "batch source"] | None = None,
        trace: Trace = UNTRACED,
    ) -> Float[Tensor, "batch position d_vocab"]:
        """Logits for what each position says. Raises ValueError when the input does not fit the architecture."""
        longest = max(tokens.shape[1], 0 if source is None else source.shape[1])
        if longest > self.n_ctx:
            raise ValueError(f"{longest} tokens do not fit into a context of {self.n_ctx}")
        both = self.config.architecture == "encoder-decoder"
        if both != (source is not None):
            raise ValueError("an encoder-decoder needs a source" if both else "only an encoder-decoder reads a source")

        memory = memory_mask = None
        if source is not None:
            memory_mask = self._not_padding(source)
            memory = self._stack("encoder", source, memory_mask, trace=trace)
            memory = trace("encoder.memory", self.memory_norm(memory))

        name = "encoder" if self.config.architecture == "encoder" else "decoder"
        length = tokens.shape[1]
        mask = self.visible[:length, :length] & self._not_padding(tokens)
        resid = self._stack(name, tokens, mask, memory, memory_mask, trace)
        return trace("logits", self.unembedding(self.final_norm(resid)))

    def _placed(self, tokens: Int[Tensor, "batch position"], trace: Trace) -> PositionalEncoding:
        """The encoding where each token believes to stand: at its own place, from 0, unless an edit moved it."""
        if not self.positions.movable:
            return self.positions
        own = torch.arange(tokens.shape[1], device=tokens.device)
        places = trace("places", own)
        return self.positions if places is own else self.positions.at(places)

    def _embed(
        self, tokens: Int[Tensor, "batch position"], positions: PositionalEncoding, trace: Trace
    ) -> Float[Tensor, "batch position d_model"]:
        """Token embeddings, scaled by sqrt(d_model) (section 3.4), plus what the encoding adds (section 3.5)."""
        embedded = self.embedding(tokens)
        if self.config.scale_embeddings:
            embedded = embedded * math.sqrt(self.config.d_model)
        embedded = trace("token_embedding", embedded)
        vectors = positions.vectors(tokens.shape[1])
        if vectors is not None:
            # A copy: these may be a view of the weights, and what was seen must not change when they do.
            embedded = embedded + trace("position_embedding", vectors.clone())
        return self.dropout(embedded)

    def _stack(
        self,
        name: str,
        tokens: Int[Tensor, "batch position"],
        mask: Bool[Tensor, "batch 1 #position key"],
        memory: Float[Tensor, "batch source d_model"] | None = None,
        memory_mask: Bool[Tensor, "batch 1 1 source"] | None = None,
        trace: Trace = UNTRACED,
    ) -> Float[Tensor, "batch position d_model"]:
        inside = trace.within(name)
        positions = self._placed(tokens, inside)
        resid = self._embed(tokens, positions, inside)
        for index, block in enumerate(getattr(self, name)):
            resid = block(resid, mask, memory, memory_mask, positions, inside.within(index))
        return resid

    def _not_padding(self, tokens: Int[Tensor, "batch key"]) -> Bool[Tensor, "batch 1 1 key"]:
        return (tokens != self.d_vocab - 1)[:, None, None, :]

    @torch.no_grad()
    def _initialise(self) -> None:
        """Weights N(0, 1/fan_in), biases 0; embeddings so that a scaled token is as long as a learned position, √d."""
        for module in self.modules():
            if isinstance(module, nn.Linear):
                nn.init.normal_(module.weight, std=module.in_features**-0.5)
                nn.init.zeros_(module.bias)
        nn.init.normal_(self.embedding.weight, std=self.config.d_model**-0.5)
        for name, weight in self.named_parameters():
            if name.endswith(("attention.query.weight", "attention.key.weight")):
                weight.mul_(self.config.query_key_gain)


def build(config: RunConfig) -> Network:
    """The untrained model of a run; its weights are drawn with the run's seed.

    It is a `Transformer`, or a recurrent network where the architecture is "gru". PyTorch's global generator is left as
    it was.
    """
    task = config.build_task()
    with drawing(config.training.seed):
        if config.model.recurrent:
            helped = config.training.teacher_forcing
            return Recurrent(config.model, d_vocab=task.d_vocab, n_ctx=task.n_ctx, teacher_forcing=helped)
        return Transformer(config.model, d_vocab=task.d_vocab, n_ctx=task.n_ctx)


def stretched(model: Transformer, n_ctx: int) -> Transformer:
    """The same weights in a model for up to `n_ctx` tokens, more or fewer than it was trained on.

    Raises ValueError with a sentence where that cannot be: stored positions end where their table does, and a painted
    mask at what was painted.
    """
    longest = masks.parse(model.config.mask).longest
    if longest is not None and n_ctx > longest:
        raise ValueError(f"the mask was painted for {longest} positions, not {n_ctx}")
    table, title = model.positions.state_dict(), model.config.encoding.title
    if table and n_ctx > model.n_ctx:
        what = "vector" if model.config.encoding.told == "vectors" else "number"
        raise ValueError(f"{title} positions have no {what} for position {model.n_ctx + 1}")
    with drawing():
        longer = Transformer(model.config, d_vocab=model.d_vocab, n_ctx=n_ctx)
    own = {f"positions.{name}": values[:n_ctx] for name, values in table.items()}
    if any(values.shape != longer.state_dict()[name].shape for name, values in own.items()):
        raise ValueError(f"{title} positions cannot be cut to {n_ctx} positions")
    longer.load_state_dict({**model.state_dict(), **own})
    return longer.to(model.unembedding.weight.device).train(model.training)
