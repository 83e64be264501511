"""What the heads of any model do with one text or picture: numbers that need no law. No PyTorch here."""

from __future__ import annotations

import unicodedata
from collections.abc import Collection, Mapping, Sequence

import numpy as np
from jaxtyping import Bool, Float

from transformer.analysis.findings import Attention
from transformer.analysis.heads.metrics import METRICS as OF_LAWFUL_TASKS
from transformer.analysis.heads.metrics import Metric
from transformer.analysis.heads.rollout import evenly

METRICS: Mapping[str, Metric] = {
    **{name: OF_LAWFUL_TASKS[name] for name in ("previous", "self", "first")},
    "separator": Metric(
        "separator", "share", "Share of its attention on tokens that the model puts around a text, as [SEP]"
    ),
    "punctuation": Metric("punctuation", "share", "Share of its attention on full stops, commas and the like"),
    "same": Metric(
        "same token", "share", "Share of its attention on other places that hold the same token as the query"
    ),
    **{name: OF_LAWFUL_TASKS[name] for name in ("entropy", "distance")},
}
"""All metrics, in the order of a table. Each is a mean over the queries that may see two keys or more and, for a share,
one of those that it counts. Clark et al. (2019), "What Does BERT Look At?", sections 3.1 to 3.3, count such shares."""
NO_TOKEN = -1


def measure(
    attentions: Mapping[str, Attention], tokens: Sequence[int], names: Sequence[str], separators: Collection[int]
) -> dict[str, Float[np.ndarray, "head"]]:
    """Each metric of every head, one attention after the other as `heads` lists them; nan where no query is asked.

    `tokens` and their `names` are what the predicting stack reads. In cross-attention a query and a key are places in
    two sequences: there is no previous token, no self, no same token and no distance. What an encoder reads beside a
    decoder has names only, so of its tokens it is not known which are separators, and which are the same.
    """
    found = [_measured(attention, _cells(attention, tokens, names, separators)) for attention in attentions.values()]
    return {name: np.concatenate([each[name] for each in found]) for name in METRICS}


def even(
    attentions: Mapping[str, Attention], tokens: Sequence[int], names: Sequence[str], separators: Collection[int]
) -> dict[str, Float[np.ndarray, "head"]]:
    """What `measure` would give for heads in the same places that look evenly at all they may see."""
    return measure(evenly(attentions), tokens, names, separators)


def _cells(
    attention: Attention, tokens: Sequence[int], names: Sequence[str], separators: Collection[int]
) -> dict[str, Bool[np.ndarray, "query key"]]:
    """Which keys each share counts, for each query."""
    across, back = attention.site.endswith("cross_attention"), _back(attention)
    shape, more = back.shape, len(attention.queries) - len(tokens)
    cells = {name: np.zeros(shape, dtype=bool) for name in ("previous", "self", "first", "separator", "same")}
    if across:
        cells["first"][:, 0] = True
    else:
        cells |= {"previous": back == 1, "self": back == 0}
        cells["first"][:, 0] = back[:, 0] > 1
    if not across and shape[0] == shape[1] and more >= 0 and attention.queries[more:] == tuple(names):
        read = np.array([NO_TOKEN] * more + list(tokens))
        cells["separator"] |= np.isin(read, list(separators))
        cells["same"] |= (read[:, None] == read) & (read != NO_TOKEN) & (back != 0)
    marks = np.array([_is_punctuation(name) for name in attention.keys], dtype=bool)
    return cells | {"punctuation": np.broadcast_to(marks, shape)}


def _measured(
    attention: Attention, cells: Mapping[str, Bool[np.ndarray, "query key"]]
) -> dict[str, Float[np.ndarray, "head"]]:
    pattern, choice = attention.pattern.astype(np.float64), attention.mask.sum(axis=1) > 1
    found = {}
    for name, cell in cells.items():
        counted = cell & attention.mask
        found[name] = _mean((pattern * counted).sum(axis=-1), choice & counted.any(axis=1))
    logarithms = np.log2(pattern, where=pattern > 0, out=np.zeros_like(pattern))
    found["entropy"] = _mean(-(pattern * logarithms).sum(axis=-1), choice)
    apart = choice & (not attention.site.endswith("cross_attention"))
    found["distance"] = _mean((pattern * np.abs(_back(attention))).sum(axis=-1), apart)
    return found


def _mean(values: Float[np.ndarray, "head query"], asked: Bool[np.ndarray, "query"]) -> Float[np.ndarray, "head"]:
    return values[:, asked].mean(axis=1) if asked.any() else np.full(len(values), np.nan)


def _back(attention: Attention) -> np.ndarray:
    """How many places each key stands before each query. Where there are more keys, the first ones came before."""
    queries, keys = attention.mask.shape
    return np.arange(keys - queries, keys)[:, None] - np.arange(keys)


def _is_punctuation(name: str) -> bool:
    """Only punctuation, a word piece's ## and blanks left out."""
    text = name.removeprefix("##").strip()
    return bool(text) and all(unicodedata.category(sign).startswith("P") for sign in text)


# --- induction: a passage that is read twice


def repeated(tokens: Sequence[int], separators: Collection[int], most: int) -> tuple[list[int], int]:
    """A passage's own tokens twice in a row, behind the separators that it begins with; and how many they are.

    They are cut so that no more than `most` tokens are read. There may be none: `induction` needs two.
    """
    leading = next((place for place, token in enumerate(tokens) if token not in separators), len(tokens))
    own = [token for token in tokens if token not in separators][: max(0, (most - leading) // 2)]
    return [*tokens[:leading], *own, *own], len(own)


def induction(attentions: Mapping[str, Attention], start: int, block: int) -> Float[np.ndarray, "head"]:
    """Each head's mean attention from a token of a repetition to the token behind its first occurrence.

    Prefix matching, Olsson et al. (2022), "In-context Learning and Induction Heads". The first block of so many
    tokens begins at `start` of what is read, and the second ends it. Queries count that may see the key, and another.
    Of cross-attention, and of a stack that reads something else, nan.
    """
    return np.concatenate([_matched(attention, start, block) for attention in attentions.values()])


def _matched(attention: Attention, start: int, block: int) -> Float[np.ndarray, "head"]:
    names, heads = attention.queries, len(attention.pattern)
    more = len(names) - start - 2 * block  # positions that the model adds come first
    start += more
    first, second = names[start : start + block], names[start + block :]
    if block < 2 or more < 0 or first != second or attention.site.endswith("cross_attention"):
        return np.full(heads, np.nan)
    queries = np.arange(start + block, start + 2 * block)
    keys = queries - block + 1
    asked = attention.mask[queries, keys] & (attention.mask[queries].sum(axis=1) > 1)
    return _mean(attention.pattern[:, queries, keys].astype(np.float64), asked)
