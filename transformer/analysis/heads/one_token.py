"""One token of a text at the moment it was said: what every head looked at, and how likely each token was."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float

from transformer.generation import window_start
from transformer.model import Transformer
from transformer.network import of_few_words
from transformer.observation import observe
from transformer.trace import Remember


@dataclass(frozen=True, eq=False)
class Glance:
    """What the last query before a token saw, and what the model made of it."""

    start: int
    """The first place of the text that was read, from 0: a long text is read in a window."""
    rows: dict[str, Float[np.ndarray, "head key"]]
    """The pattern's row of that query, by attention module; key 0 stands at `start`, the last one is the query."""
    probabilities: Float[np.ndarray, "d_vocab"]
    """Of the next token: the softmax of the logits, float64."""


@torch.no_grad()
def glance(model: Transformer, text: Sequence[int], place: int) -> Glance:
    """Look at a decoder as it says the token at `place`, from 0: the query is the token before, at `place` - 1.

    Only what stands before `place` is read, within the window of a model that writes (`window_start`).
    Raises ValueError where nothing stands before it.
    """
    if not 1 <= place <= len(text):
        raise ValueError(f"nothing said the token at place {place} of {len(text)}")
    start = window_start(place, model.n_ctx)
    seen = observe(of_few_words(model), torch.tensor([text[start:place]]), remember=_LAST)
    rows = {site: seen[f"{site}.pattern"].cpu().numpy() for site in seen.attentions()}
    logits = model.unembedding(model.final_norm(seen[f"decoder.{model.config.n_layers - 1}.resid_post"]))
    return Glance(start, rows, logits.cpu().double().softmax(dim=0).numpy())


_LAST: Remember = lambda site, value: (  # noqa: E731
    value[0, ..., -1, :].clone() if site.endswith((".pattern", ".resid_post")) else None
)
"""The last query's row of every pattern, and its stream."""
