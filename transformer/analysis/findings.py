"""What was found out about a model, as plain values: no PyTorch here, so it can be stored, read and drawn without it.

`accuracy.py`, `sample.py` and `heads.py` find these things out.
"""

from __future__ import annotations

import io
import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from jaxtyping import Bool, Float, Int

from transformer.foundation.foreign import read_arrays, words_of


@dataclass(frozen=True)
class Attention:
    """All heads of one attention module, on one sequence."""

    site: str
    """Path of the module: "decoder.0.self_attention"."""
    scores: Float[np.ndarray, "head query key"]
    mask: Bool[np.ndarray, "query key"]
    pattern: Float[np.ndarray, "head query key"]
    queries: tuple[str, ...]
    keys: tuple[str, ...]
    factor: int = 1
    """How many tokens a side of a cell stands for: of a long input each cell is the strongest of a block."""
    whole: tuple[int, int] | None = None
    """How many queries and keys there are, where `factor` is not 1."""


def blocks(names: tuple[str, ...], factor: int, *, words: bool = False) -> tuple[str, ...]:
    """The labels of blocks of `factor` tokens: their places, "9–12", or the longest of their `words`, "brother…".

    The names themselves where a block is a token.
    """
    if factor == 1:
        return names
    if words:
        return tuple(f"{names[place]}…" for place in spokesmen(names, factor))
    return tuple(f"{first + 1}–{min(first + factor, len(names))}" for first in range(0, len(names), factor))


def spokesmen(names: Sequence[str], factor: int) -> tuple[int, ...]:
    """The place of the longest word of each block of `factor` tokens, or of its longest token: it stands for the rest.

    Of equally long ones the first.
    """
    rank = [(name[:1].isalpha(), len(name)) for name in names]
    starts = range(0, len(names), factor)
    return tuple(max(range(start, min(start + factor, len(names))), key=rank.__getitem__) for start in starts)


@dataclass(frozen=True)
class Detail:
    """All heads of one attention module on one question, cell by cell: where each looks, and what that does."""

    pattern: Float[np.ndarray, "head query key"]
    mask: Bool[np.ndarray, "query key"]
    value_norms: Float[np.ndarray, "head key"]
    """‖value · W_O‖ of each key: how much reading it whole would write into the residual stream. Of a recurrent
    network, whose context vector is read as it is, ‖value‖."""
    queries: tuple[str, ...]
    keys: tuple[str, ...]

    def contribution(self, head: int) -> Float[np.ndarray, "query key"]:
        """‖pattern · value · W_O‖: how much each query's reading of each key writes into the residual stream.

        Kobayashi et al., "Attention is Not Only a Weight" (2020), section 3: attention is not effect.
        """
        return self.pattern[head] * self.value_norms[head]


@dataclass(frozen=True)
class Sample:
    """One pass over one question. Texts are the tokens' names; positions are in reading order."""

    question: tuple[str, ...]
    read: tuple[str, ...]
    """The tokens that the predicting stack read."""
    predicted: tuple[str, ...]
    """What it says at each of them."""
    targets: tuple[str, ...]
    """What the law says at each of them."""
    is_answer: Bool[np.ndarray, "target"]
    confidence: Float[np.ndarray, "target"]
    """Probability of what is said."""
    attentions: dict[str, Attention]
    truth: Float[np.ndarray, "target"] | None = None
    """Probability of what the law says; a run's kept example goes without it."""

    @property
    def right(self) -> Bool[np.ndarray, "target"]:
        return np.array([said == target for said, target in zip(self.predicted, self.targets, strict=True)])

    def answers_right(self) -> tuple[int, int]:
        """How many tokens of the answer are right, and how many there are."""
        return int((self.right & self.is_answer).sum()), int(self.is_answer.sum())


@dataclass(frozen=True, order=True)
class Head:
    """One head: the path of its attention module, and its number in it. Written "decoder.1.self_attention.3"."""

    site: str
    index: int

    def __str__(self) -> str:
        return f"{self.site}.{self.index}"

    @classmethod
    def parse(cls, text: str) -> Head:
        """Read what `str` wrote."""
        site, _, index = text.rpartition(".")
        return cls(site, int(index))

    @property
    def short(self) -> str:
        """Layer and head, as the field writes it: "1.3". Both count from 0."""
        return f"{self.layer}.{self.index}"

    @property
    def layer(self) -> int:
        """Its layer, from 0."""
        return int(self.site.split(".")[1])

    @property
    def kind(self) -> str:
        """ "decoder self-attention", "encoder self-attention" or "cross-attention"."""
        stack, _, attention = self.site.split(".")
        return "cross-attention" if attention == "cross_attention" else f"{stack} self-attention"


@dataclass(frozen=True)
class Survey:
    """Every head over many sequences of one length."""

    sequences: int
    patterns: dict[str, Float[np.ndarray, "head query key"]]
    """Mean pattern of each attention module."""
    expected_share: dict[Head, float]
    """Share of a head's attention that lies on the token to be said, over the queries that may see it."""

    @property
    def foremost(self) -> Head:
        """The head that looks at the token to be said more than any other does: what it is worth, removal may show.

        Where nobody can say which token that is, as in a text, the head that looks most at the token before.
        """
        known = {head: share for head, share in self.expected_share.items() if not math.isnan(share)}
        if not known:
            known = {head: self._before(head) for head in self.expected_share}
        return max(known, key=lambda head: (known[head], head))

    def _before(self, head: Head) -> float:
        """The mean share of its attention on the token before, over the queries that have one."""
        on = np.diagonal(self.patterns[head.site][head.index], -1)
        return float(on.mean()) if on.size else 0.0


@dataclass(frozen=True)
class Example:
    """What the first look at a run shows: one question answered, and every head's mean. Kept beside its weights."""

    question: Int[np.ndarray, "length"]
    said: Int[np.ndarray, "answer"]
    sample: Sample
    survey: Survey
    snapshot: str
    """Digest of the weights' file: whose example this is."""

    def pack(self) -> bytes:
        """One .npz: the arrays, and everything else as JSON text. No pickle."""
        sample = {name: value for name, value in asdict(self.sample).items() if name not in ("attentions", "truth")}
        arrays = {
            "question": self.question,
            "said": self.said,
            "is_answer": sample.pop("is_answer"),
            "confidence": sample.pop("confidence"),
        }
        labels = {}
        for site, attention in self.sample.attentions.items():
            labels[site] = {"queries": attention.queries, "keys": attention.keys}
            arrays |= {f"{site}/{name}": getattr(attention, name) for name in ("scores", "mask", "pattern")}
            arrays[f"{site}/mean"] = self.survey.patterns[site]
        shares = {str(head): share for head, share in self.survey.expected_share.items()}
        text = {
            "sample": sample,
            "labels": labels,
            "sequences": self.survey.sequences,
            "shares": shares,
            "snapshot": self.snapshot,
        }
        file = io.BytesIO()
        np.savez_compressed(file, text=np.array(json.dumps(text)), **arrays)
        return file.getvalue()

    @classmethod
    def load(cls, path: Path) -> Example:
        """Read what `pack` made. Raises one of `foreign.DAMAGED` when it is not that, and OSError."""
        stored = read_arrays(path)
        text = words_of(stored["text"])
        attentions = {
            site: Attention(
                site,
                scores=stored[f"{site}/scores"],
                mask=stored[f"{site}/mask"],
                pattern=stored[f"{site}/pattern"],
                queries=tuple(names["queries"]),
                keys=tuple(names["keys"]),
            )
            for site, names in text["labels"].items()
        }
        sample = Sample(
            **{name: tuple(value) for name, value in text["sample"].items()},
            is_answer=stored["is_answer"],
            confidence=stored["confidence"],
            attentions=attentions,
            truth=None,
        )
        survey = Survey(
            text["sequences"],
            {site: stored[f"{site}/mean"] for site in attentions},
            {Head.parse(name): share for name, share in text["shares"].items()},
        )
        return cls(stored["question"], stored["said"], sample, survey, text["snapshot"])
