"""Tasks: sequences with a law, and the truth about what can be known of them.

A task samples its own data (numpy, no PyTorch), states its law (`answer`), its vocabulary and its chance level, and
says for any information flow how accurate a perfect predictor could be at each position: one who knows how long the
sequence is (`ceiling`), or takes it to have one length among others (`belief`).

Words. A *question* x1..xn is drawn at random; the *answer* y1..ym follows from it, and m from n alone. The model reads
*slots* (a source, if it has an encoder and a decoder, then its tokens) and has one *target* at each token. Lengths and
indices are counted in symbols and slots, from 0; what is shown to people counts from 1.

What people read of a task it says itself: its `verb` and `aim`, the names of its `parts`, its `alphabet`.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from jaxtyping import Bool, Float, Int

from transformer.foundation.checks import require
from transformer.foundation.registry import PlugInError, Registry
from transformer.foundation.words import listed
from transformer.masks import Mask

if TYPE_CHECKING:
    from transformer.config import TaskConfig


MOST_PATTERNS = 5000
"""Cases that are gone through one by one, at most."""
SAMPLED_QUESTIONS, MOST_ROWS = 2000, 20_000
"""Questions that are drawn where there are more cases: of one length, and at most of all that look alike."""
MOST_QUESTIONS = 2**17
"""Questions that are gone through one by one, at most, for what can be guessed under a law that no place decides."""
GUESSED_FROM, FILLS = 64, 512
"""Of such a law with more: questions a ceiling is averaged over, and ways to fill what is not seen of each."""
PI = "31415926535897932384626433832795"
ALPHABET = "0123456789abcdefghijklmnopqrstuvwxyz"
Question = Int[np.ndarray, "length"]
Answer = Int[np.ndarray, "answer"]
Questions = list[Int[np.ndarray, "_length"]] | Int[np.ndarray, "row length"]
"""Each of its own length, or all of one."""


@dataclass(frozen=True)
class Batch:
    """Sequences ready for a model. Padding stands at the end and is never a target."""

    tokens: Int[np.ndarray, "batch position"]
    targets: Int[np.ndarray, "batch position"]
    is_answer: Bool[np.ndarray, "batch position"]
    """Does the target follow from the question?"""
    is_target: Bool[np.ndarray, "batch position"]
    """Is there a target here at all? False on padding."""
    source: Int[np.ndarray, "batch source"] | None = None

    def part(self, sequences: slice) -> Batch:
        """Some of its sequences."""
        source = None if self.source is None else self.source[sequences]
        return Batch(
            self.tokens[sequences],
            self.targets[sequences],
            self.is_answer[sequences],
            self.is_target[sequences],
            source,
        )


@dataclass(frozen=True)
class Ceiling:
    """The best that any predictor can do with the information it is given, target by target."""

    accuracy: Float[np.ndarray, "target"]
    """How often the best guess is right; where several are equally likely, each is taken equally often."""
    nats: Float[np.ndarray, "target"]
    """Smallest expected cross-entropy, in nats."""
    least: Float[np.ndarray, "target"]
    """How often the best guess is right at the least: of several that are equally likely, the wrong one is taken."""
    greatest: Float[np.ndarray, "target"]
    """How often any guess is right at the most: of somebody who is told the length, where lengths vary.

    This is what is drawn as the ceiling. Accuracy is measured on sequences of one length, and there the best guess of
    somebody who is not told the length is no bound: another guess may suit this length better.
    """
    error: Float[np.ndarray, "target"]
    """Standard error of the accuracy, where it was estimated from some of all questions; 0 where it is exact."""
    nats_error: Float[np.ndarray, "target"]
    """The same of the nats."""
    greatest_error: Float[np.ndarray, "target"]
    """The same of the greatest."""

    @classmethod
    def of(
        cls,
        accuracy: Float[np.ndarray, "target"],
        nats: Float[np.ndarray, "target"],
        error: Float[np.ndarray, "target"] | None = None,
        nats_error: Float[np.ndarray, "target"] | None = None,
    ) -> Ceiling:
        """Of somebody who knows the length: nothing hangs on how ties are broken."""
        exact = np.zeros(len(accuracy))
        error, nats_error = exact if error is None else error, exact if nats_error is None else nats_error
        return cls(accuracy, nats, accuracy, accuracy, error, nats_error, error)


@dataclass(frozen=True)
class Belief:
    """What is expected of one target by somebody who sees a part of the sequence and takes it to have one length."""

    log_evidence: Float[np.ndarray, "row"]
    """ln P(what is seen | the length); minus infinity where it cannot be."""
    probability: Float[np.ndarray, "row token"]
    """Of each symbol, and last of SEP; where it cannot be, anything finite."""


@dataclass(frozen=True)
class Cases:
    """Questions of one length that stand for all there are."""

    questions: Int[np.ndarray, "row length"]
    weights: Float[np.ndarray, "row"]
    exact: bool
    """Are they all there is, and not a sample?"""

    @classmethod
    def drawn(cls, symbols: int, length: int, size: int) -> Cases:
        """So many, drawn with a fixed seed."""
        return cls(np.random.default_rng(0).integers(0, symbols, (size, length)), np.full(size, 1 / size), False)


@dataclass(frozen=True)
class Task(ABC):
    """A law over sequences of symbols. One subclass a file in this folder."""

    length: int = 8
    min_length: int | None = None
    symbols: int = 10

    law: ClassVar[str]
    """The law in one sentence."""
    verb: ClassVar[str]
    """What a model does that does it, after "It": "reverses", "counts the zeros"."""
    aim: ClassVar[str] = ""
    """What is to be done with the symbols that were read: "write them backwards". Its first word takes an s."""
    parts: ClassVar[tuple[str, ...]]
    """What the parts of its targets are called after "the", from the first to the last: "first half", "second half".

    The last is what a model is judged by. Where there is one part, it is all targets.
    """
    lawful: ClassVar[bool] = True
    """Is there a law, by which the answer follows from the question? A text has none that anybody knows."""
    architectures: ClassVar[tuple[str, ...]]
    """Which architectures fit; the first is the task's own."""
    limit: ClassVar[Mask]
    """What a query may see without being told its own answer."""
    rearranges: ClassVar[bool] = False
    """Is the answer made of symbols of the question, each from a place that does not hang on what they are?

    Then many questions are answered at once, and what can be known follows from the places.
    """

    def __init_subclass__(cls, **more: object) -> None:
        super().__init_subclass__(**more)
        if "answer" not in cls.__dict__:
            return
        if "rearranges" not in cls.__dict__:
            cls.rearranges = False  # what another law has said of itself does not hold for this one
        if "aim" not in cls.__dict__:
            cls.aim = ""
        missing = [name for name in ("law", "verb", "parts", "architectures", "limit") if not hasattr(cls, name)]
        if missing:
            raise PlugInError(f"the task {cls.__name__} does not say its {listed(missing)}")

    def __post_init__(self) -> None:
        """Raises ConfigError for lengths that vary where the task does not say what can be known of them."""
        require(
            len(self.lengths) == 1 or self.may_vary(),
            f"the task {self.name} takes sequences of one length: where lengths vary, it does not say what can be "
            "known (its belief)",
        )

    @classmethod
    def may_vary(cls) -> bool:
        """May its sequences differ in length? Where it says what can be known by who is not told the length."""
        return cls.rearranges or cls.belief is not Task.belief

    @classmethod
    def of(cls, config: TaskConfig) -> Task:
        """The task that a config describes."""
        return cls(length=config.length, min_length=config.min_length, symbols=config.symbols)

    # --- the law and its words

    @abstractmethod
    def answer(self, question: Question) -> Answer:
        """y from x: the law itself, for one question of any length. As long for all questions of one length."""

    def answer_length(self, length: int) -> int:
        """Symbols in the answer to a question of `length` symbols."""
        return len(self.answer(np.zeros(length, dtype=np.int64)))

    @property
    def name(self) -> str:
        return type(self).__module__.rsplit(".", 1)[-1].replace("_", "-")

    @property
    def chance(self) -> float:
        """Accuracy of guessing a symbol, each as often: 1/symbols, however often each is right."""
        return 1 / self.symbols

    def blind(self, length: int) -> Float[np.ndarray, "target"]:
        """Accuracy of who knows the law and reads nothing: says the commonest symbol of each place.

        That is chance where all symbols are as common, as they are where the answer rearranges the question.
        """
        targets = self.count_targets(length)
        return self.ceiling(np.zeros((targets, targets + length * self.has_source), dtype=bool)).accuracy

    @property
    def chance_loss(self) -> float:
        """Cross-entropy of guessing a symbol, in nats: ln(symbols)."""
        return math.log(self.symbols)

    @property
    def separator(self) -> int:
        return self.symbols

    @property
    def padding(self) -> int:
        return self.symbols + 1

    @property
    def d_vocab(self) -> int:
        return self.symbols + 2

    @property
    def vocabulary(self) -> tuple[str, ...]:
        """What each token is called; its index is the token."""
        return (*ALPHABET[: self.symbols], "SEP", "PAD")

    @property
    def alphabet(self) -> str:
        """Its symbols in words: "0 to 9", "0 to 9 and a to j"."""
        first, last = self.vocabulary[0], self.vocabulary[self.symbols - 1]
        if self.symbols <= 10:
            return f"{first} to {last}"
        return f"{first} to 9 and a{f' to {last}' if last != 'a' else ''}"

    @property
    def input_rule(self) -> str:
        """What can be typed as a question, in words: "1 to 8 symbols, 0 to 9"."""
        return f"{'1 symbol' if self.length == 1 else f'1 to {self.length} symbols'}, {self.alphabet}"

    @property
    def points(self) -> bool:
        """Is there a place to look at for some of its answers, where what is to be said stands in the question?"""
        return bool(self.expected_keys(self.example).any())

    @property
    def part(self) -> str:
        """The part that a model is judged by, after "the"."""
        return self.parts[-1]

    @property
    def lengths(self) -> range:
        return range(self.min_length or self.length, self.length + 1)

    @property
    @abstractmethod
    def n_ctx(self) -> int:
        """Tokens in the longest sequence that the model reads."""

    def parse(self, text: str) -> Question:
        """Read a typed question such as "3 1 4" or "314". Raises ValueError with a sentence for what cannot be used."""
        characters = [c for c in text.lower() if not c.isspace() and c not in ",;"]
        allowed = self.vocabulary[: self.symbols]
        wrong = next((c for c in characters if c not in allowed), None)
        if wrong is not None:
            raise ValueError(f"“{wrong}” is not a symbol of this task: use {self.alphabet}")
        if not 1 <= len(characters) <= self.length:
            raise ValueError(f"type {self.input_rule}: these are {len(characters) or 'none'}")
        return np.array([allowed.index(c) for c in characters], dtype=np.int64)

    def typed(self, question: Question) -> str:
        """A question as one would type it: what `parse` reads."""
        return " ".join(self.vocabulary[symbol] for symbol in question)

    @property
    def example(self) -> Question:
        """The question that stands for all: the digits of pi."""
        digits = np.array([int(digit) for digit in PI], dtype=np.int64)
        return np.resize(digits, self.length) % self.symbols

    # --- data

    def batch(self, rng: np.random.Generator, size: int, length: int | None = None, pad_to: int | None = None) -> Batch:
        """`size` fresh sequences: symbols uniform and independent, lengths uniform over `lengths` unless given.

        They are padded to the longest, or to a question of `pad_to` symbols.
        """
        if length is None and len(self.lengths) > 1:
            sizes = rng.integers(self.lengths.start, self.lengths.stop, size)
            symbols = rng.integers(0, self.symbols, sizes.sum())  # the draws of one sequence after the other, at once
            return self.encode(np.split(symbols, np.cumsum(sizes)[:-1]), pad_to)
        return self.encode(self.draw(rng, size, length or self.length), pad_to)

    def fresh(self, rng: np.random.Generator, size: int, length: int | None = None) -> Batch:
        """`size` sequences to measure on, which no training has seen; fewer where there are no more."""
        return self.batch(rng, size, length)

    def held_out(self) -> Batch:
        """Of a text, all that is held out. Raises TypeError for a law: there is no end of fresh sequences."""
        raise TypeError(f"the task {self.name} holds nothing out: it has a law")

    @property
    def surveyed(self) -> int:
        """Symbols in the sequences over which heads are averaged, unless it is said."""
        return self.length

    def draw(self, rng: np.random.Generator, size: int, length: int) -> Questions:
        """`size` questions of one length; fewer where there are no more."""
        return rng.integers(0, self.symbols, (size, length))

    def encode(self, questions: Questions, pad_to: int | None = None) -> Batch:
        """Lay questions out as the model reads them, padded to the longest or to a question of `pad_to` symbols."""
        if isinstance(questions, np.ndarray):
            lengths = np.full(len(questions), questions.shape[1])
        else:
            lengths = np.array([*map(len, questions)])
        widest, kinds = max(int(lengths.max()), pad_to or 0), {*lengths.tolist()}
        targets_of = max(self.count_targets(length) for length in {*kinds, widest})
        tokens = np.full((len(questions), targets_of), self.padding, dtype=np.int64)
        targets, is_answer, is_target = tokens.copy(), np.zeros_like(tokens, bool), np.zeros_like(tokens, bool)
        source = np.full((len(questions), widest), self.padding, dtype=np.int64) if self.has_source else None
        for length in kinds:  # all of one length at once: row by row takes ten times as long
            rows = np.flatnonzero(lengths == length)
            alike = questions if isinstance(questions, np.ndarray) else np.array([questions[row] for row in rows])
            read, predicted, determined = self._layout(alike, self._answers(alike))
            width = read.shape[1]
            tokens[rows, :width], targets[rows, :width] = read, predicted
            is_answer[rows, :width], is_target[rows, :width] = determined, True
            if source is not None:
                source[rows, :length] = alike
        return Batch(tokens, targets, is_answer, is_target, source)

    def _answers(self, questions: Int[np.ndarray, "row length"]) -> Int[np.ndarray, "row answer"]:
        """The answer to each of several questions of one length. Raises ValueError for a law that breaks its word."""
        if self.rearranges:
            found = questions[:, self.answer(np.arange(questions.shape[1]))]
            if len(found) and not np.array_equal(found[0], self.answer(questions[0])):
                raise ValueError(
                    f"the answer of the task {self.name} hangs on what the symbols are: it does not rearrange them"
                )
            return found
        answers = [self.answer(each) for each in questions]
        if len({len(each) for each in answers}) > 1:
            raise ValueError(f"the answers of the task {self.name} to questions of one length differ in length")
        found = np.array(answers, dtype=np.int64).reshape(len(questions), -1)
        if found.size and not 0 <= found.min() <= found.max() < self.symbols:
            raise ValueError(f"an answer of the task {self.name} has a symbol that is none of its {self.symbols}")
        return found

    @property
    def has_source(self) -> bool:
        """Does the model read the question through an encoder of its own?"""
        return False

    @abstractmethod
    def _layout(
        self, questions: Int[np.ndarray, "row length"], answers: Int[np.ndarray, "row answer"]
    ) -> tuple[Int[np.ndarray, "row position"], Int[np.ndarray, "row position"], Bool[np.ndarray, "position"]]:
        """Tokens, targets, and whether each target is determined, for questions of one length and their answers."""

    # --- what can be known

    @abstractmethod
    def target_names(self, length: int) -> tuple[str, ...]:
        """What each target is called: x2 … SEP, y1 …"""

    @abstractmethod
    def groups(self, length: int) -> tuple[str, ...]:
        """The part each target belongs to: one of `parts`, or "separator"."""

    def count_targets(self, length: int) -> int:
        """Targets of a question of `length` symbols."""
        return len(self.target_names(length))

    def answers(self, length: int) -> Bool[np.ndarray, "target"]:
        """Which targets are the answer's."""
        return np.array([name.startswith("y") for name in self.target_names(length)])

    @abstractmethod
    def symbols_of_slots(self, length: int) -> Int[np.ndarray, "slot"]:
        """Which symbol of the question each slot (source, then tokens) carries; -1 where none.

        Where no place of the question decides an answer, y1..ym are symbols n to n+m-1, of their own.
        """

    @abstractmethod
    def symbols_of_targets(self, length: int) -> Int[np.ndarray, "target"]:
        """Which symbol each target equals, counted alike; -1 where its position alone decides."""

    def _symbols_of_answer(self, length: int) -> Int[np.ndarray, "answer"]:
        """The same of y1..ym."""
        return self.answer(np.arange(length)) if self.rearranges else length + np.arange(self.answer_length(length))

    def ceiling(self, reach: Bool[np.ndarray, "target slot"]) -> Ceiling:
        """The ceiling when the slots in `reach` can influence each target (`analysis.ceilings.reachable` computes it).

        Symbols are independent, so a target is known where a slot that carries its symbol arrives, or where its
        position alone decides, and is a guess elsewhere. Of a law that no place decides, an answer is known where all
        of the question arrives; what a part of it is worth is an estimate (`sort` says it exactly). The length of the
        sequence is taken as known: where lengths vary, `analysis.accuracy.ceilings` weighs one against another.
        """
        length = reach.shape[1] - len(reach) if self.has_source else self.length_of(len(reach))
        slots, targets = self.symbols_of_slots(length), self.symbols_of_targets(length)
        arrives = (reach & (slots[None, :] == targets[:, None])).any(axis=1) | (targets < 0)
        known = np.where(arrives, 1.0, self.chance), np.where(arrives, 0.0, self.chance_loss)
        found = (*known, *np.zeros((2, len(reach))))
        for target in [] if self.rearranges else np.flatnonzero(~arrives).tolist():
            seen = tuple(sorted({*slots[reach[target]].tolist()}))
            for values, value in zip(found, _guessed(self, length, int(targets[target]), seen), strict=True):
                values[target] = value
        return Ceiling.of(*found)

    def expected_keys(self, question: Question) -> Bool[np.ndarray, "query key"]:
        """Where a head that does the task looks: for each target of the answer, its symbol's place in the question.

        Keys are the source where there is one, the tokens elsewhere.
        """
        length = len(question)
        targets = self.symbols_of_targets(length)
        expected = self.answers(length)[:, None] & (targets[:, None] == np.arange(length)[None, :])
        keys = length if self.has_source else len(targets)
        return np.pad(expected, ((0, 0), (0, keys - length)))

    # --- what can be known by somebody who does not know the length

    def carried(self, questions: Int[np.ndarray, "row length"]) -> Int[np.ndarray, "row symbol"]:
        """What the symbols are that slots and targets carry (`symbols_of_slots`), question by question."""
        return questions if self.rearranges else np.concatenate([questions, self._answers(questions)], axis=1)

    def contents(self, questions: Int[np.ndarray, "row length"]) -> Int[np.ndarray, "row slot"]:
        """The token in each slot."""
        slots = self.symbols_of_slots(questions.shape[1])
        return np.where(slots < 0, self.separator, self.carried(questions)[:, slots])

    def belief(
        self,
        length: int,
        target: int,
        visible: Bool[np.ndarray, "slot"],
        contents: Int[np.ndarray, "row read"],
    ) -> Belief:
        """What is expected of a target by somebody who takes the sequence to have this length.

        Each visible symbol of the question is one of `symbols`, and slots that carry the same one must agree. The
        target is known where its symbol is visible, and is a guess elsewhere. (What is really there may have more slots
        than this length, or fewer: not so those that are visible.)
        """
        sought = int(self.symbols_of_targets(length)[target])
        first, alike = self._firsts(length, visible)
        possible = np.ones(len(contents), dtype=bool)
        for slot, other in alike:
            possible &= contents[:, slot] == contents[:, other]
        evidence = np.where(possible, -len(first) * math.log(self.symbols), -np.inf)
        if sought < 0:
            return Belief(evidence, self._sure(np.full(len(contents), self.separator)))
        if sought in first:
            return Belief(evidence, self._sure(contents[:, first[sought]]))
        return Belief(evidence, self._even(len(contents)))

    def _firsts(self, length: int, visible: Bool[np.ndarray, "slot"]) -> tuple[dict[int, int], list[tuple[int, int]]]:
        """In which slot each visible symbol stands first, and each later slot with the first that carries the same."""
        first: dict[int, int] = {}
        alike = []
        slots = self.symbols_of_slots(length).tolist()
        for slot in np.flatnonzero(visible[: len(slots)]).tolist():
            if slots[slot] >= 0 and first.setdefault(slots[slot], slot) != slot:
                alike.append((slot, first[slots[slot]]))
        return first, alike

    def _sure(self, tokens: Int[np.ndarray, "row"]) -> Float[np.ndarray, "row token"]:
        return np.eye(self.symbols + 1)[tokens]

    def _even(self, rows: int) -> Float[np.ndarray, "row token"]:
        return np.tile(np.append(np.full(self.symbols, self.chance), 0.0), (rows, 1))

    def cases(self, target: int, lengths: tuple[int, ...], visible: Bool[np.ndarray, "slot"]) -> list[Cases]:
        """The questions to go through for one target, for each of some lengths that look alike from there.

        Symbols are exchangeable, so only which of the places are alike matters, and only of the places that tell the
        lengths apart or that say what the target would be: each such pattern is one question, as likely as its symbols
        can be chosen. Where there are too many patterns, questions are drawn with a fixed seed.
        """
        pairs: set[tuple[int, int]] = set()
        answers: set[int] = set()
        for length in lengths:
            first, alike = self._firsts(length, visible)
            pairs.update(alike)
            answers.update(first[s] for s in [int(self.symbols_of_targets(length)[target])] if s in first)
        found = []
        for length in lengths:
            own: list[int] = self.symbols_of_slots(length).tolist()
            telling = {own[slot] for slot in answers}
            telling |= {own[slot] for pair in pairs if own[pair[0]] != own[pair[1]] for slot in pair}
            found.append(self._patterns_of(sorted(telling), length, len(lengths)))
        return found

    def _patterns_of(self, places: list[int], length: int, times: int) -> Cases:
        """Questions that differ in which of these places are alike; some of all, where there are too many."""
        patterns = _patterns(len(places), self.symbols)
        if patterns is None:
            return Cases.drawn(self.symbols, length, min(SAMPLED_QUESTIONS, MOST_ROWS // times))
        questions = np.zeros((len(patterns), length), dtype=np.int64)
        questions[:, places] = patterns
        kinds = patterns.max(axis=1, initial=-1) + 1
        most = min(len(places), self.symbols)
        ways = np.array([math.perm(self.symbols, k) / self.symbols ** len(places) for k in range(most + 1)])
        return Cases(questions, ways[kinds], True)

    def length_of(self, targets: int) -> int:
        """Symbols in a question that has so many targets: the greatest length, where that has as many."""
        if self.count_targets(self.length) == targets:
            return self.length
        return next(length for length in range(1, targets + 1) if self.count_targets(length) == targets)


@lru_cache(maxsize=1024)
def _guessed(task: Task, length: int, sought: int, seen: tuple[int, ...]) -> tuple[float, float, float, float]:
    """Accuracy and nats of the best guess, and their standard errors, under a law that no place decides.

    Sought and seen are symbols as `symbols_of_targets` counts them. Exact, with errors of 0, where there are few
    questions: of all that look alike the commonest symbol is said. Else averaged over questions that are drawn with a
    fixed seed: what is not seen of each is filled in many ways, and those are kept that agree with what is seen of the
    answer. One half of them says what to guess and the other judges it, so that no luck is in it.
    An estimate is never 1.
    """
    places, told = [s for s in seen if 0 <= s < length], [s - length for s in seen if s >= length]
    if sought >= length and len(places) == length:
        return 1.0, 0.0, 0.0, 0.0
    if sought < length and not told:
        return task.chance, task.chance_loss, 0.0, 0.0
    if task.symbols**length <= MOST_QUESTIONS:
        return *_best_of_all(task, length, sought, [*places, *(length + each for each in told)]), 0.0, 0.0
    rng = np.random.default_rng(0)
    questions = rng.integers(0, task.symbols, (GUESSED_FROM, length))
    right, nats = np.ones(len(questions)), np.zeros(len(questions))
    for row, (question, answer) in enumerate(zip(questions, task.carried(questions)[:, length:], strict=True)):
        fills = rng.integers(0, task.symbols, (FILLS, length))
        fills[:, places] = question[places]
        carried = task.carried(fills)
        agree = carried[(carried[:, length:][:, told] == answer[told]).all(axis=1), sought]
        if len(agree) < 2:  # what is seen says it all, as far as one can see
            continue
        counts = np.bincount(agree[::2], minlength=task.symbols)
        right[row] = (agree[1::2] == counts.argmax()).mean()
        nats[row] = -np.log((counts[agree[1::2]] + 1 / task.symbols) / (counts.sum() + 1)).mean()
    errors = [max(float(each.std()) / len(each) ** 0.5, 1 / len(each)) for each in (right, nats)]
    return min(float(right.mean()), 1 - 1 / len(right)), float(nats.mean()), *errors


def _best_of_all(task: Task, length: int, sought: int, seen: list[int]) -> tuple[float, float]:
    """Accuracy and nats of the best guess of one symbol over all questions, of which some symbols are seen."""
    carried = task.carried(np.indices((task.symbols,) * length).reshape(length, -1).T)
    alike = np.zeros(len(carried), dtype=np.int64)
    for symbol in seen:
        alike = np.unique(alike * task.symbols + carried[:, symbol], return_inverse=True)[1]
    counts = np.bincount(alike * task.symbols + carried[:, sought], minlength=(alike.max() + 1) * task.symbols)
    counts = counts.reshape(-1, task.symbols)
    shares = counts / counts.sum(axis=1, keepdims=True)
    logarithms = np.log(shares, out=np.zeros_like(shares), where=shares > 0)
    return float(counts.max(axis=1).sum() / len(carried)), float(-(counts * logarithms).sum() / len(carried))


@lru_cache(maxsize=64)
def _patterns(places: int, symbols: int) -> Int[np.ndarray, "pattern place"] | None:
    """Every way in which places can be alike, each symbol being numbered when it first comes; None for too many.

    Set partitions of the places into at most `symbols` parts, as restricted growth strings (Knuth, 4A, 7.2.1.5).
    """
    found, kinds = np.zeros((1, 0), dtype=np.int64), np.zeros(1, dtype=np.int64)
    for _ in range(places):
        choices = np.minimum(kinds + 1, symbols)
        if choices.sum() > MOST_PATTERNS:
            return None
        rows = np.repeat(np.arange(len(found)), choices)
        symbol = np.concatenate([np.arange(n) for n in choices])
        found = np.concatenate([found[rows], symbol[:, None]], axis=1)
        kinds = np.maximum(kinds[rows], symbol + 1)
    return found


TASKS: Registry[Task] = Registry(
    Task,
    __name__,
    str(Path(__file__).parent),
)
