"""What moves when a token is poked: the numbers that a page shows, and the sentences about them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from dashboard import closer
from dashboard.figures.influence import Axes, Moved
from dashboard.models import Model
from transformer.analysis import ceilings
from transformer.analysis.findings import Head, Sample
from transformer.config import ModelConfig

if TYPE_CHECKING:
    from transformer.analysis.influence import Pokes

MOST_SLOTS = 128
"""More tokens than this, and poking each of them would take minutes."""
MOST_WORDS = 6
"""Of a text's thousands of tokens as many are tried, the commonest."""
OPERATIONS = 2e11
"""Floating-point operations for which somebody may be kept waiting: seconds on two cores."""


@dataclass(frozen=True)
class Flow:
    """One input, all its tokens poked in turn, and the one among them that is looked at."""

    model: Model
    sample: Sample
    pokes: Pokes
    slopes: np.ndarray
    """Gradients, float [output, slot]."""
    reach: np.ndarray
    """Which slots an output may know of: bool [output, slot]."""
    slot: int
    """The token that is poked, from 0."""
    replacement: int | None
    """The symbol that is put in its place; None is every other in turn."""

    @classmethod
    def of(cls, model: Model, question: np.ndarray, slot: int, replacement: int | None) -> Flow:
        reach = ceilings.honest_reach(model.config, len(question))
        to_try = symbols_to_try if model.task.lawful else words_to_try
        candidates = to_try(model.config.model, model.task.symbols, reach.shape[1], replacement)
        pokes, slopes = closer.pokes(model, question, candidates), closer.gradients(model, question)
        return cls(model, model.sample(question), pokes, slopes, reach, slot, replacement)

    def over_slots(self, head: Head) -> tuple[np.ndarray, np.ndarray] | None:
        """A head's pattern and mask, [output, slot], hidden where it does not read; None where no output asks."""
        attention = self.sample.attentions[head.site]
        pattern, mask = attention.pattern[head.index], attention.mask
        if not self.n_source:
            return pattern, mask
        if head.site.startswith("encoder"):
            return None
        tokens = len(self.pokes.read) - self.n_source
        room = ((0, 0), (0, tokens) if head.kind == "cross-attention" else (self.n_source, 0))
        return np.pad(pattern, room), np.pad(mask, room)

    # --- names

    @property
    def n_source(self) -> int:
        return len(self.pokes.read) - len(self.pokes.said)

    @cached_property
    def axes(self) -> Axes:
        names = self.model.task.vocabulary
        slots = [names[token] for token in self.pokes.read]
        places = [place_name(token, slot, self.n_source) for slot, token in enumerate(slots)]
        return Axes([names[token] for token in self.pokes.said], slots, places, self.n_source)

    @property
    def place(self) -> str:
        return self.axes.places[self.slot]

    @property
    def padding(self) -> bool:
        """Is the poked token padding? An untrained model may say it, and then reads it."""
        return int(self.pokes.read[self.slot]) == self.model.task.padding

    # --- numbers

    @cached_property
    def moved(self) -> np.ndarray:
        """|Δlogit|, float [output, slot]: under the one replacement, or the greatest under any."""
        if self.replacement is None:
            return self.pokes.greatest()
        return self.pokes.moves[list(self.pokes.candidates).index(self.replacement)]

    @property
    def strongest(self) -> int:
        """The index of the candidate that moves the most when it is put in the poked token's place."""
        if self.replacement is not None:
            return list(self.pokes.candidates).index(self.replacement)
        return int(self.pokes.moves[:, :, self.slot].max(axis=1).argmax())

    @property
    def symbol(self) -> str:
        """The strongest candidate's name."""
        return self.model.task.vocabulary[int(self.pokes.candidates[self.strongest])]

    @cached_property
    def outputs(self) -> list[Moved]:
        """Every output before and after the poked token is replaced by the strongest candidate."""
        case = self.strongest, slice(None), self.slot
        names = self.model.task.vocabulary
        return [
            Moved(names[before], names[after], float(change), not known, move == 0)
            for before, after, change, known, move in zip(
                self.pokes.said,
                self.pokes.said_after[case],
                self.pokes.probability_after[case] - self.pokes.probability,
                self.reach[:, self.slot],
                self.pokes.moves[case],
                strict=True,
            )
        ]

    # --- sentences

    def headline(self) -> str:
        """What leaks, or what the poked token moves."""
        found = ceilings.leaks(self.moved, self.reach)
        if found:
            worst = found[0]
            return (
                f"It leaks: the output at {worst.output + 1} moves by {worst.value:.3g} when "
                f"{self.axes.places[worst.slot]} is poked, which it must not know."
            )
        column = self.moved[:, self.slot]
        count, most = int((column > 0).sum()), int(column.argmax())
        by = f"Poking {self.place}" if self.replacement is None else f"Replacing {self.place} by '{self.symbol}'"
        if self.padding:
            return f"{self.place} is padding, which is not poked."
        if not count:
            return f"{by} moves no output."
        due = f", where '{self.sample.targets[most]}' is right" if self.sample.is_answer[most] else ""
        first = f"{by} moves {count} of {len(column)} output{'s' if len(column) > 1 else ''}"
        return f"{first}, most the one at {most + 1}{due}." if count > 1 else f"{first}, the one at {most + 1}{due}."

    def verdict(self) -> str:
        """Does the mask hold? Of the poked token, then of all."""
        hidden = ~self.reach
        found = ceilings.leaks(self.moved, self.reach) + ceilings.leaks(self.slopes, self.reach)
        if found:
            cells = len({(leak.output, leak.slot) for leak in found})
            return (
                f"{cells} of {int(hidden.sum())} cells that must be 0 are not; they are outlined. "
                f"The model was trained under the mask {self.model.config.model.mask}."
            )
        if not hidden.any():
            return (
                f"No cell is forbidden: under the mask {self.model.config.model.mask} every output may know all tokens."
            )
        column = hidden[:, self.slot]
        position = self.slot - self.n_source
        if not column.any():
            words = "Every output may know this token."
        elif position >= 0 and np.array_equal(column, np.arange(len(column)) < position):
            words = f"Nothing before position {position + 1} moved: the mask holds."
        else:
            words = f"The {int(column.sum())} outputs to which no path leads from it did not move: the mask holds."
        return f"{words} All {int(hidden.sum())} hatched cells are exactly 0, as are their gradients."

    def flips(self) -> str:
        """What the strip shows."""
        if self.padding:
            return "No query sees it, so another token in its place would be another mask."
        if self.symbol == self.axes.slots[self.slot]:
            return f"{self.place} is '{self.symbol}' already: nothing can move."
        if all(output.still for output in self.outputs):
            return "No output is told what stands there."
        count = sum(output.flipped for output in self.outputs)
        flips = {0: "no output says anything", 1: "one output says something"}.get(
            count, f"{count} outputs say something"
        )
        which = " which moves the most," if self.replacement is None else ""
        return f"With '{self.symbol}' in its place,{which} {flips} else."

    def tried(self) -> str:
        """By which symbols a token was replaced."""
        if self.replacement is not None:
            return f"with '{self.symbol}' in the token's place"
        if len(self.pokes.candidates) == self.model.task.symbols:
            return "whichever symbol is put in the token's place"
        if not self.model.task.lawful:
            names = ", ".join(f"'{self.model.task.vocabulary[token]}'" for token in self.pokes.candidates)
            return f"whichever of {names}, the commonest tokens, is put in the token's place"
        return f"with each of {len(self.pokes.candidates)} symbols in the token's place: more would take too long"

    def biggest(self, most: int = 6) -> pd.DataFrame:
        """The outputs that move the most, with their numbers."""
        moves = self.pokes.moves[self.strongest, :, self.slot]
        chosen = [place for place in np.argsort(-moves, kind="stable")[:most] if moves[place] > 0]
        return pd.DataFrame(
            {
                "output at": [place + 1 for place in chosen],
                "is to be": [self.sample.targets[place] for place in chosen],
                "said": [self.outputs[place].before for place in chosen],
                "now says": [self.outputs[place].after for place in chosen],
                "probability of what it said": [float(self.pokes.probability[place]) for place in chosen],
                "Δ": [self.outputs[place].change for place in chosen],
                "|Δlogit|": [float(moves[place]) for place in chosen],
            }
        )


def place_name(token: str, slot: int, n_source: int) -> str:
    """A token and where it stands: "'3' at 2", "'3' at 2 of the source"."""
    if slot < n_source:
        return f"'{token}' at {slot + 1} of the source"
    return f"'{token}' at {slot - n_source + 1}"


def symbols_to_try(config: ModelConfig, symbols: int, slots: int, wanted: int | None) -> tuple[int, ...]:
    """Every symbol; or as many, evenly spread, as can be tried at each slot, and the one wanted."""
    count = affordable(config, symbols, slots, symbols)
    spread = np.linspace(0, symbols - 1, count).round().astype(int).tolist()
    return tuple(sorted({*spread, *([] if wanted is None else [wanted])}))


def words_to_try(config: ModelConfig, words: int, slots: int, wanted: int | None) -> tuple[int, ...]:
    """Of a text's tokens the commonest, which come first: as many as can be tried, up to MOST_WORDS; and the one
    wanted."""
    common = range(affordable(config, words, slots, min(MOST_WORDS, words)))
    return tuple(sorted({*common, *([] if wanted is None else [wanted])}))


def affordable(config: ModelConfig, symbols: int, slots: int, most: int) -> int:
    """How many symbols can be tried at each slot within OPERATIONS; from one up to `most`.

    A pass costs two operations a weight and token, and four a number of a stream that a query reads from a key.
    """
    d, blocks = config.d_model, config.n_layers * (2 if config.architecture == "encoder-decoder" else 1)
    weights = blocks * (24 * d * d if config.recurrent else 4 * d * d + 2 * d * config.d_ff) + d * symbols
    cost = 2 * weights * slots + 4 * blocks * d * slots**2
    return int(np.clip(OPERATIONS / (cost * slots), 1, most))
