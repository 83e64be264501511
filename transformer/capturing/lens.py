"""The logit lens of a Hugging Face model: what it would say if it stopped after each of its layers.

nostalgebraist (2020), "interpreting GPT: the logit lens". The model's own last steps, its final norm and its
unembedding, are taken after every layer. That these are its last steps is proved on each input: behind the last layer
they must give the model's own logits.
"""

from __future__ import annotations

import copy
import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from transformer.capturing.foreign import Foreign, Given

NONE = "This model has no logit lens: its last steps are not a norm and an unembedding."
"""What is said where `lens` returns nothing."""
NORMS = ("ln_f", "norm", "final_layer_norm", "final_layernorm", "layer_norm", "norm_f")
"""How models name the norm behind their last layer."""


@dataclass(frozen=True, eq=False)
class Lens:
    """One input, read through the lens: at each position of the stack that predicts, layer by layer."""

    layers: tuple[str, ...]
    """ "embedding", "layer 0", "layer 1" …: what has been done when the model stops."""
    names: tuple[str, ...]
    """The tokens that are read."""
    tokens: Int[np.ndarray, "layer position"]
    """The likeliest token to come next."""
    words: tuple[tuple[str, ...], ...]
    """The same as words, layer by layer."""
    probabilities: Float[np.ndarray, "layer position"]
    """The likeliest token's probability."""
    of_final: Float[np.ndarray, "layer position"]
    """The probability of the token that is the likeliest in the end."""
    ranks: Int[np.ndarray, "layer position"]
    """How many tokens are at least as likely as the one that is the likeliest in the end: 1 where it leads alone."""


@torch.no_grad()
def lens(foreign: Foreign, given: Given) -> Lens | None:
    """One input of a model through the logit lens; nothing where its last steps are not a norm and an unembedding."""
    model: Any = foreign.model
    unembedding = _unembedding(model)
    if unembedding is None:
        return None
    stack = model.get_decoder()
    name = next((each for each in NORMS if isinstance(getattr(stack, each, None), nn.Module)), None)
    norm = nn.Identity() if name is None else getattr(stack, name)
    streams = _streams(model, name, given)
    own = getattr(model(*given.args, **given.named), "logits", None)
    if not streams or not isinstance(own, Tensor) or own.dim() != 3:
        return None
    stopped = _proved(norm, unembedding, streams[-1], own)
    if stopped is None:
        return None
    final = own[0].argmax(dim=-1, keepdim=True)
    found = [_looked_at(stopped(stream)[0].float().softmax(dim=-1), final) for stream in streams]
    tokens, probabilities, of_final, ranks = (torch.stack(parts).cpu().numpy() for parts in zip(*found, strict=True))
    words = {token: foreign.word(int(token)) for token in np.unique(tokens)}
    layers = ("embedding", *(f"layer {number}" for number in range(len(streams) - 1)))
    written = tuple(tuple(words[token] for token in row) for row in tokens)
    return Lens(layers, given.names, tokens, written, probabilities, of_final, ranks)


def _unembedding(model: nn.Module) -> nn.Module | None:
    if "transformers" not in sys.modules:
        return None
    from transformers import PreTrainedModel

    found = model.get_output_embeddings() if isinstance(model, PreTrainedModel) else None
    return found if isinstance(found, nn.Module) else None


def _streams(model: Any, norm: str | None, given: Given) -> Sequence[Tensor]:
    """The residual stream behind the embedding and behind each layer, none of them through the final norm.

    transformers puts the last one through it. So a copy is run that shares all weights and has no final norm; nothing
    of the model itself is changed, and others may use it meanwhile.
    """
    shared = {id(each): each for each in (*model.parameters(), *model.buffers())}
    twin = copy.deepcopy(model, shared)
    if norm is not None:
        setattr(twin.get_decoder(), norm, nn.Identity())
    output = twin(*given.args, **given.named, output_hidden_states=True)
    return getattr(output, "decoder_hidden_states", None) or getattr(output, "hidden_states", None) or ()


def _proved(
    norm: nn.Module, unembedding: nn.Module, last: Tensor, own: Float[Tensor, "batch position d_vocab"]
) -> Callable[[Tensor], Tensor] | None:
    """The last steps of a model, where they give its own logits. T5 scales by 1/√d_model between the two
    (Raffel et al. 2020, as in Mesh TensorFlow's tied embeddings)."""
    for scale in (1.0, 1 / math.sqrt(last.shape[-1])):

        def stopped(stream: Tensor, scale: float = scale) -> Tensor:
            logits: Tensor = unembedding(norm(stream) * scale)
            return logits

        if torch.allclose(stopped(last), own, rtol=1e-4, atol=1e-4 * float(own.abs().max())):
            return stopped
    return None


def _looked_at(
    probabilities: Float[Tensor, "position d_vocab"], final: Int[Tensor, "position 1"]
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The likeliest tokens of one layer, their probabilities, those of the final ones, and the ranks of these."""
    most, tokens = probabilities.max(dim=-1)
    of_final = probabilities.gather(-1, final)
    return tokens, most, of_final[:, 0], (probabilities >= of_final).sum(dim=-1)
