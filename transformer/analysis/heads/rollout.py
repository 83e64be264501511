"""Attention rollout: from which tokens the information at a position may have come, through all layers at once.

Abnar and Zuidema (2020), "Quantifying Attention Flow in Transformers", section 3.1. No PyTorch here. What it cannot
know: it weighs all heads alike, and sees neither the values they carry nor the feed-forward layers. It is for models
with residual connections: half of each stream counts as what was there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from jaxtyping import Bool, Float

from transformer.analysis.findings import Attention


def mix(
    pattern: Float[np.ndarray, "query key"], own: Float[np.ndarray, "query slot"], read: Float[np.ndarray, "key slot"]
) -> Float[np.ndarray, "query slot"]:
    """One attention with its residual connection, (½ W + ½ I) with its rows re-normalised (section 3.1).

    `own` is where the queries' own streams come from, `read` where those of the keys come from: half of a stream is
    what was there, half is what it reads. A query that sees nothing keeps what it has.
    """
    return (own + pattern @ read) / (1 + pattern.sum(axis=-1, keepdims=True))


def rollout(attentions: Mapping[str, Attention], through: int | None = None) -> Float[np.ndarray, "query slot"]:
    """Which slots the stream at each position of the predicting stack comes from, after the layers up to `through`.

    Heads are averaged, layers multiplied; each row sums to 1. With an encoder and a decoder the slots are the
    source's, then the tokens', as in `ceilings.reachable`: the encoder is rolled out whole, and cross-attention is one
    more step that reads from it, as in Chefer et al. (2021), "Generic Attention-model Explainability", section 3.
    """
    means = {site: attention.pattern.mean(axis=0) for site, attention in attentions.items()}
    stack = stack_of(attentions)
    queries = len(means[f"{stack}.0.self_attention"])
    crossing = f"{stack}.0.cross_attention" in means
    encoded = _self_rollout(means, "encoder") if crossing else np.zeros((0, 0))
    sources = len(encoded)
    memory = np.pad(encoded, ((0, 0), (0, queries)))
    slots = np.eye(queries, sources + queries, k=sources)
    for layer in range(depth(attentions) if through is None else through + 1):
        slots = mix(means[f"{stack}.{layer}.self_attention"], slots, slots)
        if crossing:
            slots = mix(means[f"{stack}.{layer}.cross_attention"], slots, memory)
    return slots


def evenly(attentions: Mapping[str, Attention]) -> dict[str, Attention]:
    """The same attention if every head looked evenly at all it may see: what a rollout is to be compared with.

    Its rollout is above 0 exactly where the masks leave a path.
    """
    return {
        site: replace(attention, pattern=np.broadcast_to(_even(attention.mask), attention.pattern.shape))
        for site, attention in attentions.items()
    }


def stack_of(attentions: Mapping[str, Attention]) -> str:
    """The stack that predicts: the decoder where there is one."""
    return "decoder" if "decoder.0.self_attention" in attentions else "encoder"


def depth(attentions: Mapping[str, Attention]) -> int:
    """How many layers the predicting stack has."""
    return sum(site.startswith(f"{stack_of(attentions)}.") and site.endswith(".self_attention") for site in attentions)


def _self_rollout(means: Mapping[str, np.ndarray], stack: str) -> Float[np.ndarray, "query slot"]:
    layers = [mean for site, mean in means.items() if site.startswith(f"{stack}.")]
    slots = np.eye(len(layers[0]))
    for mean in layers:
        slots = mix(mean, slots, slots)
    return slots


def _even(mask: Bool[np.ndarray, "query key"]) -> Float[np.ndarray, "query key"]:
    return mask / np.maximum(mask.sum(axis=-1, keepdims=True), 1)
