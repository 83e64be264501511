"""The detectors of health: each looks whether a model keeps one law, and brings the evidence (`health.py` lists them).

They read the model in evaluation mode, through `observe`, so that a fault shows where it is; only `evaluation_mode`
asks what a plain call does.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from transformer.analysis.accuracy.ceilings import reach
from transformer.analysis.findings import Head
from transformer.analysis.health.case import Case, Cell, Finding, amount
from transformer.analysis.sample import labels
from transformer.masks import parse

ROW_SUM = 1e-5
"""A sum of float32 shares may miss 1 by so much: at most 32 of them here, each rounded to 6e-8."""
MOST_PROBES, MOST_STEPS, MOST_NAMED = 32, 8, 8
"""Tokens that are changed, tokens that are said freely, and tensors that are named."""
NO_ATTENTION = "It does not apply: there is no attention in this model."

# --- patterns


def rows(case: Case) -> Finding:
    """Σₖ pattern[q, k] = 1, or 0 where the query may see nothing, within ROW_SUM."""
    if not case.seen.attentions():
        return Finding(None, NO_ATTENTION)
    off = {site: (pattern.sum(-1) - may_see.any(-1).to(pattern)).abs() for site, pattern, may_see in case.patterns()}
    site, place, worst = _worst(off)
    said, row = _row(case, site, place)
    total = float(case.seen[f"{site}.pattern"][place].cpu().double().sum())
    count = sum(values.numel() for values in off.values())
    sentence = f"Of {count:,} rows the worst is {said}: its weights sum to {total:.7f}."
    return Finding(worst <= ROW_SUM, sentence, worst, ROW_SUM, row)


def forbidden(case: Case) -> Finding:
    """pattern[q, k] = 0, to the last bit, wherever the run's own mask or padding hides k from q."""
    mass = {
        site: pattern.abs().masked_fill(may_see, 0.0).sum(-1).masked_fill(may_see.all(-1), -1.0)
        for site, pattern, may_see in case.patterns()
    }
    cells = sum(int((~may_see).sum()) * pattern.shape[1] for _, pattern, may_see in case.patterns())
    if not case.seen.attentions():
        return Finding(None, NO_ATTENTION)
    if not cells:
        return Finding(None, "It does not apply: nothing is forbidden here, and nothing is padded.")
    site, place, worst = _worst(mass)
    said, row = _row(case, site, place)
    if worst == 0:
        return Finding(True, f"All {cells:,} forbidden cells are exactly 0; below, {said}.", 0.0, 0.0, row)
    sentence = f"Of {cells:,} forbidden cells not all are 0. The worst row is {said}: {amount(worst)} is on them."
    return Finding(False, sentence, worst, 0.0, row)


def _worst(values: Mapping[str, Float[Tensor, "batch head query"]]) -> tuple[str, tuple[int, int, int], float]:
    """Where a deviation is greatest, and how great; NaN is greater than any number."""
    ranks = {site: each.nan_to_num(nan=math.inf) for site, each in values.items()}
    site = max(ranks, key=lambda name: float(ranks[name].max()))
    index = int(ranks[site].argmax())
    sequence, head, query = (int(i) for i in np.unravel_index(index, tuple(ranks[site].shape)))
    return site, (sequence, head, query), float(values[site].flatten()[index])


def _row(case: Case, site: str, place: tuple[int, int, int]) -> tuple[str, dict[str, tuple[Cell, ...]]]:
    """One row of a pattern: whose it is, in words, and what it puts on each key."""
    sequence, head, query = place
    read = case.names(case.mixed.tokens[sequence])
    source = () if case.mixed.source is None else case.names(case.mixed.source[sequence])
    queries, keys = labels(site, read, source)
    may_see = next(seen for name, _, seen in case.patterns() if name == site)[sequence, 0, query]
    whose = Head(site, head)
    kind = "" if case.mixed.source is None else f" ({whose.kind})"
    said = f"head {whose.short}{kind}, sequence {sequence + 1}, query “{queries[query]}” at {query + 1}"
    return said, {
        "key": tuple(f"“{key}” at {i}" for i, key in enumerate(keys, start=1)),
        "may see": tuple("yes" if seen else "no" for seen in may_see.tolist()),
        "weight": tuple(case.seen[f"{site}.pattern"][place].tolist()),
    }


# --- what reaches what


def probe(case: Case) -> Finding:
    """Change one token at a time: no logit may change, not by a bit, that its mask keeps the token from reaching."""
    config = case.model.config
    reached = reach(case.task, parse(config.mask), config.n_layers, case.length)
    hidden = np.flatnonzero(~reached.all(axis=0))
    if not len(hidden):
        return Finding(None, "It does not apply: in this model every token may reach every output.")
    slots = hidden[np.unique(np.linspace(0, len(hidden) - 1, MOST_PROBES).round().astype(int))]
    out_of_reach = torch.from_numpy(~reached[:, slots].T)

    tokens, source = case.tensors(case.whole)
    width = 0 if source is None else source.shape[1]
    read = tokens if source is None else torch.cat([source, tokens], dim=1)
    row = torch.arange(len(slots), device=read.device)
    read = read[row % len(read)]  # a sequence for each token that is changed, the sequences in turn
    changed = read.clone()
    changed[row, slots] = (changed[row, slots] + 1) % case.task.symbols
    moved = (case.of_slots(read, width) - case.of_slots(changed, width)).abs().amax(-1).cpu()
    moved = moved.masked_fill(~out_of_reach, 0.0)

    names = [f"source token {slot + 1}" if slot < width else f"token {slot - width + 1}" for slot in slots]
    worst, count = float(moved.max()), int(out_of_reach.sum())
    table: dict[str, tuple[Cell, ...]] = {
        "changed": tuple(names),
        "from": case.names(read[row, slots].cpu().numpy()),
        "to": case.names(changed[row, slots].cpu().numpy()),
        "outputs out of reach": tuple(out_of_reach.sum(1).tolist()),
        "their logits moved by": tuple(moved.amax(1).tolist()),
    }
    tried = f"{len(slots)} tokens were changed, one at a time"
    if worst == 0:
        return Finding(True, f"{tried}: {count} outputs out of reach stayed the same, bit for bit.", table=table)
    first, output = divmod(int(moved.nan_to_num(nan=math.inf).argmax()), moved.shape[1])
    said = f"changing {names[first]} moved the logits of output {output + 1}, out of its reach, by {amount(worst)}"
    return Finding(False, f"{tried}: {said}.", worst, 0.0, table)


def padding(case: Case) -> Finding:
    """A sequence says the same whether or not padding follows it, but for rounding."""
    tokens, source = case.tensors(case.whole)
    width = tokens.shape[1] if source is None else source.shape[1]
    if width < 2:
        return Finding(None, "It does not apply: in a context of one token there is no room for padding.")
    kept = (width + 1) // 2
    tokens, source = tokens[:, :kept], None if source is None else source[:, :kept]
    pad = case.task.padding
    padded = case.logits(_padded(tokens, width, pad), None if source is None else _padded(source, width, pad))
    apart = (case.logits(tokens, source) - padded[:, :kept]).abs().amax(-1).cpu()
    worst = float(apart.max())
    place = torch.arange(kept).tolist()
    added = width - kept
    said = f"{len(tokens)} sequences of {kept} tokens, with and without {added} of padding behind: their logits"
    table: dict[str, tuple[Cell, ...]] = {
        "output": tuple(i + 1 for i in place),
        "logits differ by": tuple(apart.amax(0).tolist()),
    }
    return _rounded(case, worst, said, table)


def _padded(tokens: Int[Tensor, "batch _kept"], width: int, token: int) -> Int[Tensor, "batch width"]:
    return torch.nn.functional.pad(tokens, (0, width - tokens.shape[1]), value=token)


def batch(case: Case) -> Finding:
    """Sequences of a batch do not meet: each says the same in any order, and in less company, but for rounding."""
    tokens, source = case.tensors(case.mixed)
    whole, count = case.seen.logits, len(tokens)

    def of(order: Int[Tensor, "some"]) -> Float[Tensor, "some position d_vocab"]:
        return case.logits(tokens[order], None if source is None else source[order])

    everyone = torch.arange(count, device=tokens.device)
    reordered = (of(everyone.flip(0)).flip(0) - whole).abs().amax((1, 2))
    halves = torch.cat([of(half) for half in everyone.split((count + 1) // 2)])
    parted = (halves - whole).abs().amax((1, 2))
    worst = float(torch.stack([reordered, parted]).max())
    table: dict[str, tuple[Cell, ...]] = {
        "sequence": tuple(range(1, count + 1)),
        "in reverse order, differs by": tuple(reordered.tolist()),
        "in half the batch, differs by": tuple(parted.tolist()),
    }
    said = f"{count} sequences, in reverse order and in half the batch: their logits"
    return _rounded(case, worst, said, table)


def _rounded(case: Case, worst: float, said: str, table: dict[str, tuple[Cell, ...]]) -> Finding:
    """A finding about logits that only rounding may tell apart."""
    holds = worst <= case.rounding
    verdict = (
        "not at all" if worst == 0 else f"by {amount(worst)}, which is rounding" if holds else f"by {amount(worst)}"
    )
    return Finding(holds, f"{said} differ {verdict}.", worst, case.rounding, table)


# --- numbers and modes


def finite(case: Case) -> Finding:
    """No weight, and nothing computed from them, is NaN or infinite."""
    found = {f"weight {name}": weight for name, weight in case.model.state_dict().items()}
    found |= {f"inside {name}": value for name, value in case.seen.sites.items() if value.is_floating_point()}
    wrong = {name: int((~value.isfinite()).sum()) for name, value in found.items()}
    bad = {name: count for name, count in wrong.items() if count}
    numbers, tensors = sum(value.numel() for value in found.values()), len(found)
    if not bad:
        largest = sorted(((float(value.abs().max()), name) for name, value in found.items()), reverse=True)[:MOST_NAMED]
        table: dict[str, tuple[Cell, ...]] = {
            "largest": tuple(name for _, name in largest),
            "magnitude": tuple(magnitude for magnitude, _ in largest),
        }
        return Finding(True, f"All {numbers:,} numbers in {tensors} tensors are finite.", table=table)
    named = list(bad)[:MOST_NAMED]
    table = {
        "tensor": tuple(named),
        "not finite": tuple(bad[name] for name in named),
        "of": tuple(found[name].numel() for name in named),
    }
    total = sum(bad.values())
    said = (
        f"{total:,} of {numbers:,} numbers are NaN or infinite, in {len(bad)} of {tensors} tensors: first {named[0]}."
    )
    return Finding(False, said, float(total), 0.0, table)


@torch.no_grad()
def evaluation_mode(case: Case) -> Finding:
    """No module is in training mode, and two plain calls on one input agree to the last bit."""
    modules = dict(case.model.named_modules())
    training = [name or "the model" for name, module in modules.items() if module.training]
    tokens, source = case.tensors(case.whole)
    apart = float((case.model(tokens, source) - case.model(tokens, source)).abs().max())
    said = f"{len(training)} of {len(modules)} modules are in training mode, and two calls differ by {amount(apart)}"
    table: dict[str, tuple[Cell, ...]] = {
        "what": ("modules in training mode", "dropout, were it on", "two calls differ by"),
        "value": (len(training), case.model.config.dropout, apart),
    }
    first = f"; the first is {training[0]}" if training else ""
    return Finding(not training and apart == 0, f"{said}{first}.", apart, 0.0, table)


# --- speaking


def free_running(case: Case) -> Finding:
    """What it says token by token is what one pass over all of it says, but for rounding."""
    speaks = case.whole.source is not None or not case.whole.is_answer.all() or not case.task.lawful
    if not speaks:
        return Finding(None, "It does not apply: this model says its whole answer at once.")
    prompt = case.length + 1 if case.whole.source is None and case.task.lawful else 1
    steps = min(int(case.whole.is_answer[0].sum()), MOST_STEPS)
    mask = parse(case.model.config.mask)
    if np.triu(mask.matrix(prompt + steps - 1), 1)[:, prompt:].any():
        ahead = (
            f"It does not apply: under the mask {mask} a token sees later ones, which free speech does not have yet."
        )
        return Finding(None, ahead)
    tokens, source = case.tensors(case.whole)
    if source is None:
        said = case.model.continue_greedily(tokens[:, :prompt], steps)
    else:
        said = case.model.greedy(source, case.task.separator, steps)
    read = torch.cat([tokens[:, :prompt], said], dim=1)
    step_by_step = [case.logits(read[:, : prompt + i], source)[:, -1] for i in range(steps)]
    alone, at_once = torch.stack(step_by_step, dim=1), case.logits(read[:, :-1], source)[:, prompt - 1 :]
    apart = (alone - at_once).abs().amax(-1)
    short = at_once.amax(-1) - at_once.gather(-1, said[..., None])[..., 0]
    worst_of = torch.maximum(apart, short).cpu()
    worst = float(worst_of.max())
    sequence = int(worst_of.nan_to_num(nan=math.inf).amax(1).argmax())
    table: dict[str, tuple[Cell, ...]] = {
        "step": tuple(range(1, steps + 1)),
        "said by itself": case.names(said[sequence].cpu().numpy()),
        "likeliest in one pass": case.names(at_once[sequence].argmax(-1).cpu().numpy()),
        "logits differ by": tuple(apart[sequence].tolist()),
        "said below the likeliest by": tuple(short[sequence].tolist()),
    }
    words = f"{steps} tokens said one by one in each of {len(tokens)} sequences, and one pass over them"
    return _rounded(case, worst, f"{words} (below, sequence {sequence + 1}): the logits", table)
