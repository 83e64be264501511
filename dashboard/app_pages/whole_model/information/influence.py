"""Which outputs move when a token is replaced: the numbers shown, and sentences about them."""

from __future__ import annotations

from concurrent.futures import Future
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from dashboard.app_pages.whole_model.information import measured
from dashboard.app_pages.whole_model.information.blocks import Grain, factor_of
from dashboard.app_pages.whole_model.information.figures import Moved
from dashboard.app_pages.whole_model.information.measured import Poking
from dashboard.models import background
from dashboard.models.budget import passes
from dashboard.models.model import Model
from transformer.analysis.accuracy import ceilings
from transformer.analysis.findings import Head, Sample
from transformer.foundation.claims import claim
from transformer.foundation.words import counted

if TYPE_CHECKING:
    from transformer.analysis.interventions.influence import Pokes


LEAST, MOST_WORDS = 2, 6
"""Symbols that are tried in a token's place, at least, for one of them may be its own; of a text's thousands the
commonest, so many at most."""


@dataclass(frozen=True, eq=False)
class Asked:
    """What is asked of one input, while it is being measured; `ready` is the answer."""

    model: Model
    sample: Sample
    grain: Grain
    candidates: tuple[int, ...]
    pokes: Poking
    own: Poking
    slopes: Future[np.ndarray]
    reach: np.ndarray
    slot: int
    replacement: int | None

    @classmethod
    def of(cls, model: Model, question: np.ndarray, slot: int, replacement: int | None) -> Asked:
        """Begin to measure, unless that is begun or done."""
        reach, sample, task = ceilings.honest_reach(model.config, len(question)), model.sample(question), model.task
        affordable = passes(model.config.model, task.symbols, reach.shape[1])
        source = sample.question if task.has_source else ()
        parts = [len(part) for part in (source, sample.read) if part]
        factor = factor_of(parts, affordable / min(LEAST, task.symbols))
        coarse = max((attention.factor for attention in sample.attentions.values()), default=1)
        factor = -(-factor // coarse) * coarse  # what was downsampled already is not cut through
        grain = Grain.of(source, sample.read, sample.predicted, factor, words=not task.lawful)
        to_try = symbols_to_try if task.lawful else words_to_try
        candidates = to_try(task.symbols, affordable / len(grain.poked), replacement)
        pokes = measured.poking(model, question, candidates, None if grain.whole else grain.poked)
        own = pokes if slot in grain.poked else measured.poking(model, question, candidates, (slot,))
        slopes = measured.gradients(model, question, None if grain.whole else grain.standing)
        return cls(model, sample, grain, candidates, pokes, own, slopes, reach, slot, replacement)

    @property
    def done(self) -> bool:
        return all(future.done() for future in (self.pokes.future, self.own.future, self.slopes))

    def ready(self) -> Flow | None:
        """The answer, if it is there or comes at once."""
        pokes, own = background.ready(self.pokes.future), background.ready(self.own.future)
        slopes = background.ready(self.slopes)
        if pokes is None or own is None or slopes is None:
            return None
        grain = self.grain.poking(self.slot)
        return Flow(self.model, self.sample, grain, pokes, own, slopes, self.reach, self.slot, self.replacement)

    def so_far(self) -> tuple[float, str]:
        """What share of it is done, and what is being done."""
        share, many, symbols = min(self.pokes.share, self.own.share), len(self.grain.poked), len(self.candidates)
        if share == 1:
            return share, f"Computing the gradients of {len(self.grain.standing)} outputs …"
        percent = f"{share:.0%}".replace("%", " %")
        return share, f"Replacing {many} tokens in turn, each by {counted(symbols, 'symbol')}: {percent} done"


@dataclass(frozen=True)
class Flow:
    """One input, its tokens poked in turn, and the one among them that is looked at.

    Of a long input one token of each block is poked, and the one that is looked at.
    """

    model: Model
    sample: Sample
    grain: Grain
    """Which slots are poked; the one that is looked at stands for its block."""
    pokes: Pokes
    """Every block's slot."""
    own: Pokes
    """The slot that is looked at, where it is none of these; else the same."""
    slopes: np.ndarray
    """Gradients, float [row, slot], of the outputs that stand for their blocks."""
    reach: np.ndarray
    """Which slots an output may know of: bool [output, slot]."""
    slot: int
    """The token that is looked at, from 0."""
    replacement: int | None
    """The symbol that is put in its place; None is every other in turn."""

    def over_slots(self, head: Head) -> tuple[np.ndarray, np.ndarray] | None:
        """A head's pattern and mask, [output, slot], hidden where it does not read; None where no output asks."""
        attention = self.sample.attentions[head.site]
        n_source, (rows, columns) = self.grain.n_source, attention.whole or attention.mask.shape
        pattern, mask = (
            part.repeat(attention.factor, 0)[:rows].repeat(attention.factor, 1)[:, :columns]
            for part in (attention.pattern[head.index], attention.mask)
        )
        if not n_source:
            return pattern, mask
        if head.site.startswith("encoder"):
            return None
        tokens = len(self.grain.slots) - n_source
        room = ((0, 0), (0, tokens) if head.kind == "cross-attention" else (n_source, 0))
        return np.pad(pattern, room), np.pad(mask, room)

    @property
    def place(self) -> str:
        return self.grain.place(self.slot)

    @property
    def padding(self) -> bool:
        """Is the poked token padding? An untrained model may say it, and then reads it."""
        return int(self.pokes.read[self.slot]) == self.model.task.padding

    # --- numbers

    @cached_property
    def moved(self) -> np.ndarray:
        """|Δlogit|, float [output, poked slot]: under the one replacement, or the greatest under any."""
        found = self._moved(self.pokes).copy()
        found[:, self.grain.column(self.slot)] = self._moved(self.own)[:, self.column]
        return found

    def _moved(self, pokes: Pokes) -> np.ndarray:
        if self.replacement is None:
            return pokes.greatest()
        return pokes.moves[list(pokes.candidates).index(self.replacement)]

    @property
    def column(self) -> int:
        """Where the slot that is looked at stands among those that were poked with it."""
        return list(self.own.poked).index(self.slot)

    @cached_property
    def leaning(self) -> np.ndarray:
        """Gradients on the slots that are poked, float [row, poked slot]."""
        return self.slopes[:, list(self.grain.poked)]

    @cached_property
    def forbidden(self) -> np.ndarray:
        """Which outputs may know nothing of the slots that are poked: bool [output, poked slot]."""
        return ~self.reach[:, list(self.grain.poked)]

    @property
    def leaks(self) -> tuple[np.ndarray, np.ndarray]:
        """What moved that must not, bool [output, poked slot], and what leans that must not, bool [row, poked slot]."""
        steep = (self.leaning > 0) & self.forbidden[list(self.grain.standing)]
        return (self.moved > 0) & self.forbidden, steep

    @property
    def strongest(self) -> int:
        """The index of the candidate that moves the most when it is put in the poked token's place."""
        if self.replacement is not None:
            return list(self.own.candidates).index(self.replacement)
        return int(self.own.moves[:, :, self.column].max(axis=1).argmax())

    @property
    def symbol(self) -> str:
        """The strongest candidate's name."""
        return self.model.task.vocabulary[int(self.own.candidates[self.strongest])]

    @cached_property
    def outputs(self) -> list[Moved]:
        """Every output before and after the poked token is replaced by the strongest candidate."""
        case, own, names = (self.strongest, slice(None), self.column), self.own, self.model.task.vocabulary
        return [
            Moved(names[before], names[after], float(change), not known, move == 0)
            for before, after, change, known, move in zip(
                own.said,
                own.said_after[case],
                own.probability_after[case] - own.probability,
                self.reach[:, self.slot],
                own.moves[case],
                strict=True,
            )
        ]

    # --- sentences

    @claim
    def headline(self) -> str:
        """What leaks, or what the poked token moves."""
        found = ceilings.leaks(self.moved, ~self.forbidden)
        by = "" if self.replacement is None else f" by '{self.symbol}'"
        if found:
            worst = found[0]
            return (
                f"The mask leaks: the output at {worst.output + 1} moves by {worst.value:.3g} when "
                f"{self.grain.place(self.grain.poked[worst.slot])} is replaced{by}, which it must not know."
            )
        column = self.moved[:, self.grain.column(self.slot)]
        count, most = int((column > 0).sum()), int(column.argmax())
        if self.padding:
            return f"{self.place} is padding, and padding is not replaced."
        if not count:
            return f"Replacing {self.place}{by} moves no output."
        due = f", whose right token is '{self.sample.targets[most]}'" if self.sample.is_answer[most] else ""
        first = f"Replacing {self.place}{by} moves {count} of {len(column)} output{'s' if len(column) > 1 else ''}"
        return f"{first}: most the one at {most + 1}{due}." if count > 1 else f"{first}: the one at {most + 1}{due}."

    @claim
    def verdict(self) -> str:
        """Does the mask hold? Of the poked token, then of all that are poked."""
        pairs, whole, mask = int(self.forbidden.sum()), self.grain.whole, self.model.config.model.mask
        leaking, steep = self.leaks
        leaking[list(self.grain.standing)] |= steep
        if leaking.any():
            cells = "cells" if whole else "pairs of an output and a replaced token"
            which = "they are outlined" if whole else "their cells are outlined"
            return (
                f"{int(leaking.sum()):,} of {pairs:,} {cells} must be 0 and are not; {which}. "
                f"The model's own mask is {mask}."
            )
        recurrent = self.model.config.model.recurrent
        if self.reach.all():
            if recurrent:
                return "No cell is forbidden: every output may know every token."
            return f"No cell is forbidden: under the mask {mask} every output may know every token."
        column = ~self.reach[:, self.slot]
        position = self.slot - self.grain.n_source
        if not column.any():
            words = "Every output may know this token."
        elif position >= 0 and np.array_equal(column, np.arange(len(column)) < position):
            why = "they are said before it is read" if recurrent else "the mask holds"
            words = f"Nothing before position {position + 1} moved: {why}."
        else:
            words = f"No path leads from it to {int(column.sum())} of the outputs. They did not move: the mask holds."
        if whole and pairs == 1:
            return f"{words} The one hatched cell is exactly 0, and so is its gradient."
        if whole:
            return f"{words} All {pairs:,} hatched cells are exactly 0, and so are their gradients."
        return (
            f"{words} All {pairs:,} pairs of a replaced token and an output without a path between them are exactly 0."
        )

    @claim
    def flips(self) -> str:
        """What the strip shows."""
        if self.padding:
            return "No query sees padding. Another token in its place would change the mask as well."
        if self.symbol == self.grain.slots[self.slot]:
            return f"{self.place} is '{self.symbol}' already, so nothing can move."
        if all(output.still for output in self.outputs):
            if self.replacement is not None:
                return f"No output moves with '{self.symbol}' in its place."
            return "No output depends on that token."
        count = sum(output.flipped for output in self.outputs)
        flips = {0: "No output says", 1: "One output says"}.get(count, f"{count} outputs say")
        which = ", the symbol that moves them most" if self.replacement is None else ""
        return f"{flips} another token with '{self.symbol}' in its place{which}."

    def tried(self) -> str:
        """By which symbols a token was replaced."""
        if self.replacement is not None:
            return f"with '{self.symbol}' in the place of the column's token"
        if len(self.pokes.candidates) == self.model.task.symbols:
            return "over all symbols in the place of the column's token"
        if not self.model.task.lawful:
            names = ", ".join(f"'{self.model.task.vocabulary[token]}'" for token in self.pokes.candidates)
            return f"over {names}, the commonest tokens, in the place of the column's token"
        return (
            f"over {len(self.pokes.candidates)} symbols in the place of the column's token, for more would "
            "take too long"
        )

    def from_afar(self) -> str:
        """What a cell stands for, where not every token is poked."""
        if self.grain.whole:
            return ""
        n, tokens, words = self.grain.factor, len(self.grain.slots), self.grain.words
        poked, asked = ("longest word", "output that says the longest word") if words else ("first", "first output")
        return (
            f"One in {n} of the {tokens} tokens is replaced: the {poked} of its block of {n}, or the chosen "
            "one. A cell of "
            f"|Δlogit| shows the largest value of {n} outputs, and a cell of attention the largest of {n} × {n}. The "
            f"gradient is that of one output in {n}: the {asked} of its block."
        )

    def biggest(self, most: int = 6) -> pd.DataFrame:
        """The outputs that move the most, with their numbers."""
        moves = self.own.moves[self.strongest, :, self.column]
        chosen = [place for place in np.argsort(-moves, kind="stable")[:most] if moves[place] > 0]
        return pd.DataFrame(
            {
                "output at": [place + 1 for place in chosen],
                "right token": [self.sample.targets[place] for place in chosen],
                "said": [self.outputs[place].before for place in chosen],
                "says now": [self.outputs[place].after for place in chosen],
                "probability of what it said": [float(self.own.probability[place]) for place in chosen],
                "Δ": [self.outputs[place].change for place in chosen],
                "|Δlogit|": [float(moves[place]) for place in chosen],
            }
        )


def symbols_to_try(symbols: int, affordable: float, wanted: int | None) -> tuple[int, ...]:
    """Every symbol; or as many, evenly spread, as can be afforded, and the one wanted."""
    count = int(np.clip(affordable, 1, symbols))
    spread = np.linspace(0, symbols - 1, count).round().astype(int).tolist()
    return tuple(sorted({*spread, *([] if wanted is None else [wanted])}))


def words_to_try(words: int, affordable: float, wanted: int | None) -> tuple[int, ...]:
    """Of a text's tokens the commonest, which come first: as many as can be afforded, up to MOST_WORDS.

    Or the one wanted alone, where it is none of these.
    """
    common = tuple(range(int(np.clip(affordable, 1, min(MOST_WORDS, words)))))
    return common if wanted is None or wanted in common else (wanted,)
