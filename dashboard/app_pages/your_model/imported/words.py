"""Sentences about the heads of a model that is not ours: what each does on the input that is shown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from dashboard.models.imported import METRICS, Look
from dashboard.parts.prose import labels_of, plain
from transformer.analysis.findings import Head
from transformer.foundation.claims import claim
from transformer.foundation.words import counted

LOOKS: Mapping[str, str] = {
    "previous": "at the token before",
    "self": "at its own token",
    "first": "at the first token",
    "separator": "at special tokens where there are any",
    "punctuation": "at punctuation where there is any",
    "same": "at other places of the same token where there are any",
    "induction": "behind an earlier place of the same token",
}
"""Where a head looks, by the metric that says so, in the order in which one is preferred to another."""
CLEAR = 0.5
"""The share of a head's attention from which on it is said to do one thing."""
LAWLESS = (
    "A model that was trained here also has a yardstick: its task says which answer is right, and which can be known. "
    "This model’s task is not known here. So there is no accuracy, no ceiling and no check of its health, and what a "
    "head does is said of this input alone."
)


def does(measured: Mapping[str, np.ndarray], head: int) -> tuple[str, float] | None:
    """The one thing that a head does on this input: the name of its metric, and its share. None where none is clear."""
    shares = {name: float(measured[name][head]) for name in LOOKS if name in measured}
    known = {name: share for name, share in shares.items() if not np.isnan(share)}
    name = max(known, key=known.__getitem__, default="")
    return (name, known[name]) if name and known[name] >= CLEAR else None


def foremost(heads: Sequence[Head], measured: Mapping[str, np.ndarray]) -> Head:
    """The head that the page opens on: it looks at one thing other than the first or a special token most clearly."""
    telling = [name for name in LOOKS if name in measured and name not in ("first", "separator", "self")]
    best = np.nan_to_num(np.stack([measured[name] for name in telling])).max(axis=0)
    return heads[int(best.argmax())]


@claim
def headline(seen: Look, measured: Mapping[str, np.ndarray], head: Head) -> str:
    """Where the chosen head looks on this input, and with how much of its attention."""
    number = seen.heads.index(head)
    label, found = labels_of(seen.heads)[number], does(measured, number)
    if found is None:
        return f"Head {label} gives no one thing half of its attention."
    name, share = found
    who = "Of the input read twice, head" if name == "induction" else "Head"
    return f"{who} {label} looks {LOOKS[name]}: {share:.2f} of its attention."


def called(seen: Look, head: Head) -> str:
    """What the model itself calls the module of a head."""
    return f"The model calls this attention “{plain(seen.modules[head.site])}”."


def legend(seen: Look, head: Head) -> str:
    """What grey cells are, and what a contribution is; or that a contribution could not be seen."""
    grey = "" if seen.attentions[head.site].mask.all() else "Grey and hatched: the model’s mask forbids this key. "
    if head.site not in seen.value_norms:
        return f"{grey}Its values could not be seen, so there is no contribution."
    return f"{grey}Contribution: ‖pattern · v‖, how long the vector is that this reading adds to the head’s result."


@claim
def table_sentence(heads: Sequence[Head], measured: Mapping[str, np.ndarray]) -> str:
    """How many heads do one thing for at least half of their attention, thing by thing."""
    kinds = [does(measured, i) for i in range(len(heads))]
    counts = {name: sum(kind is not None and kind[0] == name for kind in kinds) for name in LOOKS}
    parts = [
        f"{count} look {LOOKS[name]}" if count > 1 else f"1 looks {LOOKS[name]}"
        for name, count in counts.items()
        if count
    ]
    rest = sum(kind is None for kind in kinds)
    parts += [f"{rest} at no single thing"] if rest and parts else []
    if not parts:
        none = f"None of the {len(heads)} heads gives" if len(heads) > 1 else "The one head does not give"
        return f"{none} half of its attention to one thing on this input."
    return f"Of {counted(len(heads), 'head')}, {', '.join(parts)}, with at least half of the attention."


def metric_help(name: str) -> str:
    """What a column of the table says."""
    return f"{METRICS[name].meaning}. In {METRICS[name].unit}."
