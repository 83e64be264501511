"""All heads of one forward pass, whoever's model it was: which there are, how they are called, and which stands out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from torch import Tensor

from dashboard.components.head_grid import heads_of
from transformer.analysis import sample
from transformer.analysis.findings import Attention, Head
from transformer.capturing.heads import attentions
from transformer.capturing.record import Captured
from transformer.foundation.checks import UserError
from transformer.foundation.foreign import quoted, shortened
from transformer.observation import Observation, Seen

LONGEST_NAME = 80
"""Letters of a token's name that are written."""


class ShowError(UserError):
    """A sentence that says why heads cannot be shown."""


def seen_attentions(seen: Seen, names: Sequence[str] = (), sources: Sequence[str] = ()) -> dict[str, Attention]:
    """The attentions of what `observe` or `capture` returned, on the first sequence of its batch.

    `names` are the tokens that the predicting stack read, `sources` those of an encoder beside it; without them tokens
    are called by their numbers, or where those are not known by their places. Raises UserError where names do not fit,
    and where no attention was seen.
    """
    names, sources = _called(names, "names"), _called(sources, "sources")
    if isinstance(seen, Observation):
        read = names or _numbers(seen.tokens)
        source = sources or (() if seen.source is None else _numbers(seen.source))
        found = sample.attentions(seen, read, source)
    elif isinstance(seen, Captured):
        queries, keys = _counts(seen)
        if len(names) > queries:
            raise ShowError(f"There are {len(names)} names for {queries} tokens.")
        found = attentions(seen, names or _places(queries), sources or (_places(keys) if seen.crossing else ()))
    else:
        raise ShowError(f"What is shown is what observe or capture returned, not {quoted(seen)}.")
    for attention in found.values():
        _check(attention)
    return found


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
