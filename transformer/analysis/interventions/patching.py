"""Activation patching: where in a model the difference between two inputs lies, site by site and place by place."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from transformer.analysis.interventions.influence import together
from transformer.analysis.sample import lay_out, observe_batch
from transformer.edits import Edit, EditError, Patch
from transformer.network import Network, of_few_words
from transformer.observation import Observation
from transformer.tasks import Batch, Question, Task

KINDS = ("resid_mid", "resid_cross", "resid_post", "z")


@dataclass(frozen=True)
class Patching:
    """Activation patching between two inputs, site by site and place by place."""

    sites: tuple[str, ...]
    """In the order of the data's way."""
    recovered: Float[np.ndarray, "site column"]
    """Share of the logit difference that is restored: 0 nothing, 1 all; below 0 and above 1 are possible."""
    clean: float
    """Mean logit of the clean input's right tokens less that of the other's, in the clean run."""
    corrupted: float
    """The same in the corrupted run."""
    compared: int
    """Targets at which the two inputs' right answers differ."""
    first: int = 0
    """The place at which the first column begins: what is before it is the same in both runs."""
    factor: int = 1
    """How many neighbouring places a column hands on at once; the last may have fewer."""


@torch.no_grad()
def patching(
    model: Network,
    task: Task,
    clean: Question,
    corrupted: Question,
    edits: Sequence[Edit] = (),
    *,
    runs: float = math.inf,
    columns: float = math.inf,
) -> Patching:
    """Run on `corrupted`, each time with what the clean run had at one site and one place, and see what comes back.

    Wang et al. (2022), section 3.1; Meng et al. (2022), section 2.1. The measure is the mean over the targets whose
    right token differs of logit(right for clean) − logit(right for corrupted). Each run reads its own right answer.
    Of a text nobody knows what is right: there it is what the model itself finds likeliest, after the one and after
    the other. A place at which both runs have the same brings back exactly 0, and is not run. Where all places would
    need more `runs` or `columns`, those before the first difference are left out, and neighbours are patched together.
    Raises EditError when the two say the same, or differ in length.
    """
    if len(clean) != len(corrupted):
        raise EditError(f"both inputs must have the same length, not {len(clean)} and {len(corrupted)} symbols")
    one, other = lay_out(task, clean), lay_out(task, corrupted)
    whole, bare = observe_batch(model, one, edits), observe_batch(model, other, edits)
    told_apart = _ToldApart.of(task, (one, other), (whole, bare))
    high, low = (told_apart.mean(seen.logits[..., told_apart.tokens])[0] for seen in (whole, bare))
    if high == low:
        raise EditError("the logit difference is the same for both inputs, so there is nothing to bring back")

    sites = patched_sites(whole)
    differs = [_differing(whole[site], bare[site]) for site in sites]
    places = max(map(len, differs))
    first, most = 0, max(1, int(min(places, columns, runs / len(sites))))
    if places > most:
        first = min(int(np.flatnonzero(each)[0]) for each in differs if each.any())
    factor = -(-(places - first) // most)
    found = np.full((len(sites), -(-(places - first) // factor)), np.nan)
    asking = of_few_words(model, told_apart.tokens.tolist())
    size = together(asking, one.tokens.shape[1])
    for row, (site, differing) in enumerate(zip(sites, differs, strict=True)):
        parts = [slice(start, start + factor) for start in range(first, len(differing), factor)]
        found[row, : len(parts)] = 0.0
        run = [column for column, part in enumerate(parts) if differing[part].any()]
        for some in (run[start : start + size] for start in range(0, len(run), size)):
            patch = _PatchEach.of_parts(site, whole[site], [parts[column] for column in some])
            patched = observe_batch(asking, _repeated(other, len(some)), (*edits, patch), lambda *_: None)
            found[row, some] = (told_apart.mean(patched.logits) - low) / (high - low)
    return Patching(sites, found, float(high), float(low), len(told_apart.places), first, factor)


@dataclass(frozen=True, eq=False)
class _ToldApart:
    """The targets at which two inputs are to be answered by different tokens."""

    places: Int[np.ndarray, "compared"]
    tokens: Int[np.ndarray, "token"]
    """All that are right for either, in order."""
    wanted: Int[np.ndarray, "compared"]
    """Which of them is right for the clean input."""
    unwanted: Int[np.ndarray, "compared"]
    """Which is right for the other."""

    @classmethod
    def of(cls, task: Task, inputs: tuple[Batch, Batch], seen: tuple[Observation, Observation]) -> _ToldApart:
        """Of a law by its answers, of a text by what is said. Raises EditError where there are none."""
        right = [each.targets[0] for each in inputs]
        if not task.lawful:
            right = [each.logits[0].argmax(dim=-1).cpu().numpy() for each in seen]
        places = np.flatnonzero((right[0] != right[1]) & inputs[0].is_answer[0])
        if not len(places):
            same = "have the same answer" if task.lawful else "have the same likeliest tokens"
            raise EditError(f"both inputs {same}, so there is nothing to bring back")
        tokens = np.unique([each[places] for each in right])
        wanted, unwanted = (np.searchsorted(tokens, each[places]) for each in right)
        return cls(places, tokens, wanted, unwanted)

    def mean(self, logits: Float[Tensor, "batch position token"]) -> Float[np.ndarray, "batch"]:
        """The mean of logit(wanted) − logit(unwanted), from the logits of `tokens`."""
        found, rows = logits[:, self.places].cpu().double().numpy(), np.arange(len(self.places))
        apart: np.ndarray = found[:, rows, self.wanted] - found[:, rows, self.unwanted]
        return apart.mean(axis=1)


def _differing(one: Tensor, other: Tensor) -> Bool[np.ndarray, "position"]:
    """At which places two runs do not have the same: of [1, …, position, width]."""
    apart: np.ndarray = (one != other).any(dim=-1).flatten(0, -2).any(dim=0).cpu().numpy()
    return apart


@dataclass(frozen=True)
class _PatchEach(Patch):
    """The same sequence many times over, each patched at places of its own: sequence i at those of part i."""

    parts: tuple[slice, ...] = ()

    @classmethod
    def of_parts(cls, site: str, value: Tensor, parts: Sequence[slice]) -> _PatchEach:
        held = Patch.of(site, value)
        return cls(site, held.shape, held.packed, parts=tuple(parts))

    def apply(self, value: Tensor) -> Tensor:
        whole, patched = super().apply(value), value.clone()
        for sequence, part in enumerate(self.parts):
            patched[sequence, ..., part, :] = whole[sequence, ..., part, :]
        return patched


def _repeated(batch: Batch, n: int) -> Batch:
    """Its sequences, each `n` times."""
    fields = {name: value for name, value in vars(batch).items() if value is not None}
    return Batch(**{name: value.repeat(n, axis=0) for name, value in fields.items()})


def patched_sites(seen: Observation) -> tuple[str, ...]:
    """The residual stream where it has changed, and what all heads of an attention found, in the data's way."""
    found = []
    for site in seen.sites:
        block, _, kind = site.rpartition(".")
        first = kind == "resid_pre" and block.endswith(".0")
        idle = kind == "resid_post" and f"{block}.feed_forward.out" not in seen.sites
        if first or (kind in KINDS and not idle):
            found.append(site)
    return tuple(found)
