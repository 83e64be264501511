"""The vector that leaves each box of a plan, for one token of one question: recorded while the model ran."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from transformer.analysis.machine.plan import SUBLAYERS, Box, Plan
from transformer.analysis.sample import lay_out, observe_batch
from transformer.model import Transformer
from transformer.network import Network
from transformer.observation import Observation
from transformer.tasks import Question, Task


@torch.no_grad()
def vectors(
    model: Network,
    task: Task,
    question: Question,
    plan: Plan,
    place: int,
    *,
    said: Int[np.ndarray, "answer"] | None = None,
) -> dict[str, Float[np.ndarray, "number"]]:
    """What leaves each box for the token at `place`, counted from 0; without boxes of token numbers or weights alone.

    In a stack that reads a source it is the source token at the same place, or the last one. Of a pattern and its
    scores it is the row of this query. `said`, if given, is read in place of the right answer.
    Raises IndexError when there is no such place.
    """
    batch = lay_out(task, question, said=said)
    if not 0 <= place < batch.tokens.shape[1]:
        raise IndexError(f"no place {place}: {batch.tokens.shape[1]} tokens are read")
    behind = place if batch.source is None else min(place, batch.source.shape[1] - 1)

    def row_alone(site: str, value: Tensor) -> Tensor | None:
        """Of a pattern the row that is asked for: of a long input all patterns together would not fit into memory."""
        if not site.endswith((".pattern", ".scores", ".mask", ".position_bias")):
            return value
        if site.endswith((".mask", ".position_bias")):
            return None
        at = behind if site.startswith("encoder.") and batch.source is not None else place
        return value[..., at : at + 1, :]

    seen = observe_batch(model, batch, remember=row_alone)
    found = {}
    for box in plan.boxes:
        value = _recurrent(seen, box) if model.config.recurrent else _transformer(cast("Transformer", model), seen, box)
        if value is not None:
            cross = box.kind in ("key", "value") and ".cross_attention." in box.name
            at = behind if cross or (box.stack == "encoder" and batch.source is not None) else place
            rows = value if value.dim() > 1 else value[None]
            found[box.name] = rows[min(at, len(rows) - 1)].float().cpu().numpy()
    return found


def _transformer(model: Transformer, seen: Observation, box: Box) -> Float[Tensor, "place number"] | None:
    """What leaves a box of a transformer, at every place."""
    name, kind = box.name, box.kind
    if kind in ("tokens", "told"):
        return None
    if kind == "positions":
        return seen[f"{box.stack}.0.resid_pre"][0]
    if kind == "block":
        return seen[f"{name}.resid_post"][0]
    if name == "final_norm":
        last = [site for site in seen.sites if site.endswith(".resid_post")][-1]
        return model.final_norm(seen[last])[0]
    if kind == "softmax":
        return seen["logits"][0].softmax(dim=-1)
    if kind == "norm" and name.endswith(".before"):
        norm = model.get_submodule(name)
        value: Tensor = norm(_stream_before(seen.sites, name))[0]
        return value
    if kind == "feed_forward":
        return seen[f"{name}.out"][0]
    if kind == "head":
        site, _, index = name.rpartition(".")
        return seen[f"{site}.z"][0, int(index)]
    if kind == "join":
        return seen[name][0].transpose(0, 1).flatten(1)
    if name.endswith(".sum"):
        return _sum(model, seen, name)
    if name in seen.sites:
        return seen[name][0]
    head, _, part = name.rpartition(".")
    site, _, index = head.rpartition(".")
    if part == "out":
        attention = model.get_submodule(site)
        wrote: Tensor = attention.contributions(seen[f"{site}.z"])[0, int(index)]  # type: ignore[operator]
        return wrote
    return seen[f"{site}.{part}"][0, int(index)]


def _stream_before(sites: Mapping[str, Tensor], norm: str) -> Tensor:
    """What a norm before a sub-layer reads: the residual stream as the sub-layer before left it."""
    block, _, part = norm.removesuffix(".before").rpartition(".around_")
    before = {"self": "resid_pre", "cross": "resid_mid", "feed_forward": "resid_cross"}[part]
    return sites.get(
        f"{block}.{before}", sites[f"{block}.resid_mid" if part == "feed_forward" else f"{block}.resid_pre"]
    )


def _sum(model: Transformer, seen: Observation, name: str) -> Float[Tensor, "place number"]:
    """The sum that a norm after a sub-layer reads."""
    site = name.removesuffix(".sum")
    block, _, after = site.rpartition(".")
    part = next(part for part, left in SUBLAYERS.items() if left == after)
    short = part.removesuffix("_attention")
    wrote = seen[f"{block}.{part}.out"][0]
    return wrote + _stream_before(seen.sites, f"{block}.around_{short}.before")[0] if model.config.residual else wrote


def _recurrent(seen: Observation, box: Box) -> Float[Tensor, "place number"] | None:
    """What leaves a box of a recurrent network, at every place."""
    if box.kind == "tokens":
        return None
    if box.kind == "softmax":
        return seen["logits"][0].softmax(dim=-1)
    if box.kind == "handed":
        return seen[box.name][-1]
    if box.kind == "alignment":
        return seen[f"{box.name}.z"][0, 0]
    if box.kind == "join":
        return torch.cat([seen["decoder.0.cross_attention.z"][0, 0], seen["decoder.0.states"][0]], dim=-1)
    return seen[box.name][0]
