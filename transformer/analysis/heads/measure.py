"""Measuring heads: what each looks at over many sequences, which are alike, and what removing one costs."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from transformer.analysis.batches import in_parts, questions, working_attention
from transformer.analysis.findings import Head
from transformer.analysis.heads.kinds import SHARE, Kinds, cells_of, shares
from transformer.analysis.heads.metrics import METRICS, Estimate, HeadMetrics
from transformer.edits import Edit
from transformer.edits.heads.zero import AblateHead
from transformer.network import Network, of_few_words
from transformer.observation import Observation
from transformer.tasks import Batch, Task

MOST_SEQUENCES, FEWEST_SEQUENCES = 256, 32
TOKENS = 2**13
"""Long sequences are fewer, so that no more tokens than this are read; but never fewer than `FEWEST_SEQUENCES`."""
WORK = 5e10
"""Multiplications after which heads are removed on fewer sequences: a few seconds of one core."""
CELL = 150
"""Multiplications that take as long as one cell of a pattern, its softmax above all; measured on one core."""
Measured = Float[np.ndarray, "3 sequence head"]
"""The heads' own values, those of an even head, and how many queries were asked."""


def sequences_for(task: Task, length: int | None = None) -> int:
    """How many sequences heads are measured on: 256, and fewer of the long ones."""
    tokens = len(task.target_names(length or task.surveyed))
    return max(FEWEST_SEQUENCES, min(MOST_SEQUENCES, TOKENS // tokens))


# --- what they look at


def measure_heads(
    model: Network, task: Task, *, sequences: int | None = None, length: int | None = None, seed: int = 0
) -> HeadMetrics:
    """Every head's metrics on the fresh sequences of a survey, the right answers being read (teacher forcing)."""
    length = length or task.surveyed
    sequences = sequences or sequences_for(task, length)
    batch, expected_keys = questions(task, sequences, length, seed)
    likeness = _Likeness()

    def look(part: slice, seen: Observation) -> dict[str, Measured]:
        expected = torch.from_numpy(expected_keys[part]).to(seen.logits.device)
        patterns = {site: seen[f"{site}.pattern"] for site in seen.attentions()}
        sites, choices = [], {}
        for site, pattern in patterns.items():
            mask = seen[f"{site}.mask"][:, 0].expand_as(pattern[:, 0])
            place = _place(site, mask, expected if working_attention(task, site) else torch.zeros_like(mask))
            sites.append(_measured(pattern, place))
            choices[site] = place.asked["entropy"]
        likeness.add(patterns, choices)
        return {name: np.concatenate([site[name] for site in sites], axis=-1) for name in sites[0]}

    parts = in_parts(of_few_words(model), batch, look, keep=("*.pattern", "*.mask"))
    measured = {name: np.concatenate([part[name] for part in parts], axis=1) for name in parts[0]}
    return HeadMetrics(
        heads=heads_of(model),
        sequences=len(batch.tokens),
        estimates={name: Estimate.of(own, METRICS[name]) for name, (own, _, _) in measured.items()},
        even={name: Estimate.of(even, METRICS[name]).mean for name, (_, even, _) in measured.items()},
        asked={name: asked.mean(axis=0) for name, (_, _, asked) in measured.items()},
        alike=likeness.matrix(),
    )


def _measured(pattern: Float[Tensor, "batch head query key"], place: Place) -> dict[str, Measured]:
    """Each metric of the heads in one attention, of an even head in their place, and how many queries were asked."""
    own, even = measures(pattern, place), measures(place.even, place)
    asked = {name: queries.sum(dim=-1)[:, None].to(pattern.dtype) for name, queries in place.asked.items()}
    return {
        name: torch.stack([own[name], *(each[name].expand_as(own[name]) for each in (even, asked))])
        .cpu()
        .numpy()
        .astype(np.float64)
        for name in own
    }


@dataclass(frozen=True)
class Place:
    """What is the same for all heads of one attention: which cells each share counts, and which queries are asked."""

    cells: dict[str, Bool[Tensor, "batch query key"]]
    asked: dict[str, Bool[Tensor, "batch query"]]
    even: Float[Tensor, "batch 1 query key"]
    """The pattern of a head that looks evenly at all it may see."""


def _place(site: str, mask: Bool[Tensor, "batch query key"], expected: Bool[Tensor, "batch query key"]) -> Place:
    """A query that may see one key only has no choice: it says nothing about a head and is not asked.

    For a share, neither is one that may see none of its cells. "first" leaves out the queries for which the first key
    is themselves or the token before. In cross-attention queries and keys are places in two sequences: there is no
    previous token, no self and no distance.
    """
    nowhere, across = torch.zeros_like(mask), site.endswith("cross_attention")
    first = nowhere.clone()
    first[:, 0 if across else 2 :, 0] = True
    places = [torch.arange(n, device=mask.device) for n in mask.shape[1:]]
    back = places[0][:, None] - places[1][None, :]
    templates = {
        "expected": expected,
        "previous": nowhere if across else (back == 1),
        "self": nowhere if across else (back == 0),
        "first": first,
    }
    has_choice = mask.sum(dim=-1) > 1
    cells = {name: template & mask for name, template in templates.items()}
    asked = {name: has_choice & cell.any(dim=-1) for name, cell in cells.items()}
    asked |= {"uniform": has_choice, "entropy": has_choice, "distance": has_choice & (not across)}
    return Place(cells, asked, (mask / mask.sum(dim=-1, keepdim=True).clamp(min=1))[:, None])


def measures(pattern: Float[Tensor, "batch head query key"], place: Place) -> dict[str, Float[Tensor, "batch head"]]:
    """Each metric's mean over the queries asked, sequence by sequence; nan where none is.

    "uniform" is the sum over keys of min(p, 1/m), with m keys to be seen: 1 − the total variation distance from
    looking evenly at all of them, so 1 for an even head and 1/m for one that looks at a single key.
    """
    rows = {name: (pattern * cell[:, None]).sum(dim=-1) for name, cell in place.cells.items()}
    rows["uniform"] = torch.minimum(pattern, place.even).sum(dim=-1)
    rows["entropy"] = torch.special.entr(pattern).sum(dim=-1) / math.log(2)
    queries, keys = (torch.arange(n, device=pattern.device) for n in pattern.shape[-2:])
    away = (queries[:, None] - keys[None, :]).abs().to(pattern.dtype)
    rows["distance"] = torch.einsum("bhqk,qk->bhq", pattern, away)
    return {
        name: (row * place.asked[name][:, None]).sum(dim=-1) / place.asked[name].sum(dim=-1)[:, None]
        for name, row in rows.items()
    }


class _Likeness:
    """Sums of cosines between the rows of heads, over the queries that have a choice."""

    def __init__(self) -> None:
        self.sums: dict[tuple[str, str], np.ndarray] = {}
        self.rows: dict[str, int] = defaultdict(int)
        self.heads: dict[str, int] = {}

    def add(
        self,
        patterns: Mapping[str, Float[Tensor, "batch head _query _key"]],
        choices: Mapping[str, Bool[Tensor, "batch _query"]],
    ) -> None:
        """The patterns are brought to unit length in place, their last use: a copy would double what is held."""
        for site, pattern in patterns.items():
            pattern.div_(pattern.norm(dim=-1, keepdim=True).clamp(min=1e-30)).mul_(choices[site][:, None, :, None])
            self.rows[site] += int(choices[site].sum())
            self.heads[site] = pattern.shape[1]
        for one, rows in patterns.items():
            for other, columns in patterns.items():
                if Head(one, 0).kind == Head(other, 0).kind:
                    products = (rows.flatten(2) @ columns.flatten(2).transpose(1, 2)).sum(dim=0)
                    self.sums[one, other] = self.sums.get((one, other), 0.0) + products.cpu().numpy()

    def matrix(self) -> Float[np.ndarray, "head other"]:
        """The mean cosines; nan between kinds, and where no query has a choice."""
        blocks = [
            [
                self.sums[one, other] / (self.rows[one] or math.nan)
                if (one, other) in self.sums
                else np.full((self.heads[one], self.heads[other]), math.nan)
                for other in self.heads
            ]
            for one in self.heads
        ]
        return np.block(blocks).astype(np.float64)


# --- on which kinds of token they look


def measure_kinds(model: Network, task: Task, *, sequences: int | None = None, seed: int = 0) -> Kinds:
    """Every self-attention head's share on each kind, on the held-out passages that its metrics are measured on."""
    batch, _ = questions(task, sequences or sequences_for(task), task.surveyed, seed)
    every = cells_of(batch.tokens, tuple(task.vocabulary), task.separator)

    def look(part: slice, seen: Observation) -> dict[str, np.ndarray]:
        sites = [site for site in seen.attentions() if site.endswith("self_attention")]
        found: dict[str, list[np.ndarray]] = {name: [] for name in every}
        for site in sites:
            pattern = seen[f"{site}.pattern"].cpu().double()
            mask = seen[f"{site}.mask"][:, 0].cpu().expand_as(pattern[:, 0])
            even = (mask / mask.sum(dim=-1, keepdim=True).clamp(min=1))[:, None].expand_as(pattern)
            both = torch.stack([pattern, even.double()]).numpy()
            for name, cells in every.items():
                found[name].append(np.stack([shares(each, cells[part], mask.numpy()) for each in both]))
        return {name: np.concatenate(each, axis=-1) for name, each in found.items()}

    parts = in_parts(of_few_words(model), batch, look, keep=("*.pattern", "*.mask"))
    both = {name: np.concatenate([part[name] for part in parts], axis=1) for name in every}
    return Kinds(
        heads=tuple(head for head in heads_of(model) if head.site.endswith("self_attention")),
        sequences=len(batch.tokens),
        share={name: Estimate.of(own, SHARE) for name, (own, _) in both.items()},
        even={name: Estimate.of(even, SHARE).mean for name, (_, even) in both.items()},
    )


# --- what removing them costs


def measure_removal(
    model: Network,
    task: Task,
    edits: Sequence[Edit] = (),
    *,
    sequences: int | None = None,
    length: int | None = None,
    seed: int = 0,
) -> Estimate:
    """The drop of accuracy on the answer's tokens when one head is silenced, each in turn (Michel et al., 2019, 3.2).

    Under `edits`, where there are any: what a head costs when others are gone already.

    Teacher forced, on the sequences of `measure_heads`; on the first of them alone where removing takes long. Each
    sequence is its own control: the interval is that of the paired differences.
    """
    length = length or task.surveyed
    batch, _ = questions(task, sequences or sequences_for(task, length), length, seed)
    if sequences is None:
        affordable = int(WORK / removal_work(model, batch.tokens.shape[1]))
        batch = batch.part(slice(0, max(FEWEST_SEQUENCES, affordable)))
    before = right_answers(model, batch, edits)
    removals = [(*edits, AblateHead(f"{h.site}.z", h.index)) for h in heads_of(model)]
    drops = [before - right_answers(model, batch, removal) for removal in removals]
    return Estimate.of(np.stack(drops, axis=1), METRICS["drop"])


def removal_takes_long(model: Network, task: Task) -> bool:
    """Would removing each head in turn take more than a few seconds, even on few sequences?"""
    return removal_work(model, len(task.target_names(task.surveyed))) * FEWEST_SEQUENCES > WORK


def removal_work(model: Network, tokens: int) -> float:
    """About how many multiplications it takes to remove each head in turn, on one sequence of so many tokens."""
    weights, heads = sum(parameter.numel() for parameter in model.parameters()), len(heads_of(model))
    return float(heads * (weights * tokens + heads * CELL * tokens**2))


def heads_of(model: Network) -> tuple[Head, ...]:
    """All heads of a model, in the order of the data's way; none where there is no attention."""
    config = model.config
    if config.recurrent:
        return (Head("decoder.0.cross_attention", 0),) if config.attends else ()
    sites = [f"encoder.{layer}.self_attention" for layer in range(config.n_layers)]
    if config.architecture == "decoder":
        sites = [f"decoder.{layer}.self_attention" for layer in range(config.n_layers)]
    elif config.architecture == "encoder-decoder":
        kinds = ("self_attention", "cross_attention")
        sites += [f"decoder.{layer}.{kind}" for layer in range(config.n_layers) for kind in kinds]
    return tuple(Head(site, head) for site in sites for head in range(config.n_heads))


def right_answers(model: Network, batch: Batch, edits: Sequence[Edit] = ()) -> Float[np.ndarray, "sequence"]:
    """The share of each answer's tokens that is said rightly."""

    def said(_: slice, seen: Observation) -> Int[np.ndarray, "part position"]:
        return seen.logits.argmax(dim=-1).cpu().numpy()

    right = (np.concatenate(in_parts(model, batch, said, edits, keep=())) == batch.targets) & batch.is_answer
    return right.sum(axis=1) / batch.is_answer.sum(axis=1)
