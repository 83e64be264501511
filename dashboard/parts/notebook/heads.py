"""All heads of one forward pass, whoever's model it was: which there are, how they are called, and which stands out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from torch import Tensor

from dashboard.components.head_grid import heads_of
from transformer.analysis import sample
from transformer.analysis.accuracy.result import spans
from transformer.analysis.findings import Attention, Head
from transformer.capturing.heads import attentions
from transformer.capturing.record import Captured
from transformer.foundation.checks import UserError
from transformer.foundation.foreign import quoted, shortened
from transformer.observation import Observation, Seen

OF_HEADS = ("pattern", "mask", "scores")
"""What is shown of an attention [batch, head, query, key], by the last words of its sites."""
LONGEST_NAME = 80
"""Letters of a token's name that are written."""


class ShowError(UserError):
    """A sentence that says why heads cannot be shown."""


def seen_attentions(
    seen: Seen, names: Sequence[str] = (), sources: Sequence[str] = (), sequence: int = 0
) -> dict[str, Attention]:
    """The attentions of what `observe` or `capture` returned, on one sequence of its batch, counted from 0.

    `names` are the tokens that the predicting stack read, `sources` those of an encoder beside it; without them tokens
    are called by their numbers, or where those are not known by their places. Raises UserError where names do not fit,
    where there is no such sequence, and where no attention was seen.
    """
    names, sources = _called(names, "names"), _called(sources, "sources")
    alone = _alone(seen, sequence)
    if isinstance(alone, Observation):
        read = names or _numbers(alone.tokens)
        source = sources or (() if alone.source is None else _numbers(alone.source))
        found = sample.attentions(alone, read, source)
    else:
        queries, keys = _counts(alone)
        if len(names) > queries:
            raise ShowError(f"There are {len(names)} names for {queries} tokens.")
        found = attentions(alone, names or _places(queries), sources or (_places(keys) if alone.crossing else ()))
    for attention in found.values():
        _check(attention)
    return found


def count_sequences(seen: Seen) -> int:
    """Sequences of a batch; 1 where none was seen.

    Attention by windows is computed as more of them, so it is the smallest number that any attention has.
    """
    if isinstance(seen, Observation):
        return len(seen.tokens)
    return min((len(seen[f"{name}.pattern"]) for name in seen.attentions()), default=1)


def remarks(seen: Seen, found: Mapping[str, Attention], sequence: int = 0) -> tuple[str, ...]:
    """Which sequence of how many is shown, and which of its tokens the masks treat as padding; nothing of a plain one.

    A token is padding where no query of any layer may see it, and a query that may see no key is named too.
    """
    said = []
    if (count := count_sequences(seen)) > 1:
        others = f"from 0 to {count - 1}" if count > 2 else f"{1 - sequence}"
        said.append(
            f"Sequence {sequence} of a batch of {count} is shown. The argument sequence chooses another: {others}."
        )
    masks: dict[str, list[np.ndarray]] = {}
    for head in heads_of(found):
        if head.index == 0:
            masks.setdefault(head.kind, []).append(found[head.site].mask)
    for kind, layers in masks.items():
        if len({layer.shape for layer in layers}) > 1 or not all(layer.any() for layer in layers):
            continue
        unseen, blind = (np.all([~layer.any(axis=axis) for layer in layers], axis=0) for axis in (0, 1))
        if unseen.any():
            said.append(f"In {kind} no query may see the {_at(unseen, 'key')}: the mask treats that as padding.")
        if blind.any():
            said.append(f"In {kind} the {_at(blind, 'query', 'queries')} may see no key.")
    return tuple(said)


def _at(which: np.ndarray, one: str, many: str = "") -> str:
    """ "keys at 10 to 12"; places count from 1."""
    word = one if which.sum() == 1 else many or f"{one}s"
    return f"{word} at {spans([str(place + 1) for place in range(len(which))], which)}"


def _alone(seen: Seen, sequence: int) -> Observation | Captured:
    """One sequence of a batch, as a pass over it alone."""
    if not isinstance(seen, Observation | Captured):
        raise ShowError(f"What is shown is what observe or capture returned, not {quoted(seen)}.")
    count = count_sequences(seen)
    if isinstance(sequence, bool) or not isinstance(sequence, int) or not 0 <= sequence < count:
        known = f"{count}, counted from 0 to {count - 1}" if count > 1 else "one, which is 0"
        raise ShowError(f"There is no sequence {quoted(sequence)}: the batch has {known}.")
    sites = dict(seen.sites)
    for name in seen.attentions():
        of_module = len(seen[f"{name}.pattern"])
        first = sequence * of_module // count
        for site in (f"{name}.{kind}" for kind in OF_HEADS):
            if site in sites and len(sites[site]) == of_module:
                sites[site] = sites[site][first:]
    if isinstance(seen, Captured):
        return replace(seen, sites=sites)
    source = None if seen.source is None else seen.source[sequence:]
    return replace(seen, sites=sites, tokens=seen.tokens[sequence:], logits=seen.logits[sequence:], source=source)


def head_named(name: str, known: Sequence[Head]) -> int:
    """The number of the head that is called so: "1.3", or with its path "decoder.1.self_attention.3"."""
    for number, head in enumerate(known):
        if name in (head.short, str(head)):
            return number
    raise ShowError(
        f"There is no head “{shortened(name)}”; there are {len(known)}, from {known[0].short} to {known[-1].short}."
    )


def clearest(found: Mapping[str, Attention]) -> int:
    """The number of the head whose queries decide most clearly: the mean of each one's greatest weight is largest.

    Queries that have no choice, with one key to look at, do not count.
    """
    means = []
    for head in heads_of(found):
        attention = found[head.site]
        asked = attention.mask.sum(axis=1) > 1
        most = np.where(attention.mask, attention.pattern[head.index], 0.0).max(axis=1)
        means.append(float(most[asked].mean()) if asked.any() else 0.0)
    return int(np.nan_to_num(means).argmax())


def _called(names: Sequence[str], what: str) -> tuple[str, ...]:
    if isinstance(names, str) or not all(isinstance(name, str) for name in names):
        raise ShowError(f"{what} are a list of texts, one a token, not {quoted(names)}.")
    return tuple(name if len(name) <= LONGEST_NAME else f"{name[: LONGEST_NAME - 1]}…" for name in names)


def _numbers(tokens: Tensor) -> tuple[str, ...]:
    return tuple(str(token) for token in tokens[0].tolist())


def _counts(seen: Captured) -> tuple[int, int]:
    """How many tokens the last stack read, and how many the first one did."""
    shapes = [value.shape for site, value in seen.sites.items() if site.endswith(".pattern")]
    return (shapes[-1][-2], shapes[0][-1]) if shapes else (0, 0)


def _places(count: int) -> tuple[str, ...]:
    return tuple(str(place + 1) for place in range(count))


def _check(attention: Attention) -> None:
    _, queries, keys = attention.pattern.shape
    for names, count, what in ((attention.queries, queries, "queries"), (attention.keys, keys, "keys")):
        if len(names) != count:
            raise ShowError(f"There are {len(names)} names for the {count} {what} of {attention.site}.")
