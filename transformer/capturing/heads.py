"""The heads of a captured model by the names that pages use: stack, layer and kind, whatever its modules are called."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from transformer.analysis.findings import Attention, Head
from transformer.analysis.sample import labels
from transformer.capturing.proof import FORBIDDEN
from transformer.capturing.record import Captured, CaptureError

STACK = re.compile(r"(?:^|[._])(enc|dec)(?:oders?)?(?:[._]|$)", re.IGNORECASE)
"""A word of a module's name that says in which stack it is; of several the first."""


def attentions(seen: Captured, queries: Sequence[str], sources: Sequence[str] = ()) -> dict[str, Attention]:
    """The first sequence of a capture, by the sites that our own models have: "decoder.0.self_attention" …

    `queries` are the tokens that the predicting stack reads, `sources` those of the encoder where there are two stacks.
    A sequence with more positions than names has "+1", "+2" … in front of them, as of a class token; one with fewer has
    numbers from 1. The mask is True where none was seen, and where any head may see; scores that were not seen are NaN.
    Raises CaptureError where no attention was seen.
    """
    return {
        site: _attention(seen, site, name, *labels(site, tuple(queries), tuple(sources)))
        for site, name in modules(seen).items()
    }


def modules(seen: Captured) -> dict[str, str]:
    """The name that the model itself gives to each attention, by its site among `attentions`.

    Layers are numbered in the order of the calls, in each stack by itself. Cross-attention is in the decoder.
    Self-attention is in the stack that its name says; where it says none, in the encoder if a query may see a key
    behind it. Raises CaptureError where no attention was seen.
    """
    if not seen.attentions():
        raise CaptureError(" ".join(["No attention was seen in this model.", *seen.unseen[:1]]))
    layers: Counter[tuple[str, str]] = Counter()
    found = {}
    for name in seen.attentions():
        kind = "cross_attention" if name in seen.crossing else "self_attention"
        stack = "decoder" if name in seen.crossing else _stack(seen, name)
        found[f"{stack}.{layers[stack, kind]}.{kind}"] = name
        layers[stack, kind] += 1
    return found


def heads(attentions: Mapping[str, Attention]) -> tuple[Head, ...]:
    """All heads, one attention after the other."""
    return tuple(Head(site, head) for site, attention in attentions.items() for head in range(len(attention.pattern)))


def _stack(seen: Captured, name: str) -> str:
    if said := STACK.search(name):
        return "encoder" if said[1].lower() == "enc" else "decoder"
    mask = _mask(seen, name)
    return "encoder" if mask.triu(1 + mask.shape[1] - mask.shape[0]).any() else "decoder"


def _mask(seen: Captured, name: str) -> Bool[Tensor, "query key"]:
    shape, mask = seen[f"{name}.pattern"].shape, seen.sites.get(f"{name}.mask")
    return torch.ones(shape[-2:], dtype=torch.bool) if mask is None else mask.expand(shape)[0].any(dim=0).cpu()


def _attention(seen: Captured, site: str, name: str, queries: tuple[str, ...], keys: tuple[str, ...]) -> Attention:
    pattern = _array(seen[f"{name}.pattern"][0])
    scores = np.full_like(pattern, np.nan)
    if (known := seen.sites.get(f"{name}.scores")) is not None:
        scores = _array(known[0].masked_fill(known[0] <= FORBIDDEN, torch.nan))
    return Attention(
        site=site,
        scores=scores,
        mask=_mask(seen, name).numpy(),
        pattern=pattern,
        queries=_fitted(queries, pattern.shape[1]),
        keys=_fitted(keys, pattern.shape[2]),
    )


def _fitted(names: tuple[str, ...], positions: int) -> tuple[str, ...]:
    more = positions - len(names)
    if more < 0:
        return tuple(str(number) for number in range(1, positions + 1))
    return (*(f"+{number}" for number in range(1, more + 1)), *names)


def _array(values: Tensor) -> Float[np.ndarray, "head query key"]:
    return values.float().cpu().numpy()
