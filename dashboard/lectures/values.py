"""What the names in expressions of lectures and exercises stand for: numbers of a view, measured as its page does."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np

from dashboard.app_pages.positions.positions.settings import PositionsSettings
from dashboard.lectures import changes, texts, walks
from dashboard.lectures.changes import part
from dashboard.lectures.questions import Bars, Cells
from dashboard.lectures.walks import cell
from dashboard.models import heads, menu, positions
from dashboard.models.model import Model, words_of
from dashboard.models.passages import parsed
from dashboard.view.link import FIELDS, View
from dashboard.view.settings import Settings
from transformer import masks
from transformer.analysis.accuracy import ceilings
from transformer.analysis.accuracy.bags import bag_ceiling
from transformer.analysis.accuracy.result import Accuracy
from transformer.analysis.findings import Head
from transformer.experiments.lengths import Lengths
from transformer.training.runs import DEFAULT_ROOT

LENGTHS = DEFAULT_ROOT / "lengths.json.xz"
"""The shipped measurement over lengths."""


class ViewValues(Mapping[str, Any]):
    """What names mean in a view: NUMBERS, and functions of places, heads and runs, NAMES. Places count from 1.

    What is not asked for is not measured.
    """

    def __init__(self, view: View) -> None:
        """Raises ValueError where the view's run, step or input cannot be had."""
        self.view: View = view
        self.model: Model = model_of(view, menu.menu(named=view.run))
        self.question = self.model.task.example
        if view.input:
            self.question = parsed(self.model.task, view.input)

    def __getitem__(self, name: str) -> Any:
        return NUMBERS[name](self) if name in NUMBERS else partial(NAMES[name], self)

    def __contains__(self, name: object) -> bool:
        return name in NUMBERS or name in NAMES

    def __iter__(self) -> Iterator[str]:
        return iter((*NUMBERS, *NAMES))

    def __len__(self) -> int:
        return len(NUMBERS) + len(NAMES)

    @property
    def accuracy(self) -> Accuracy:
        """By position, as the page of accuracies measures it."""
        return self.model.accuracy(self.view.sequences, None, self.view.measured_length)

    def head(self, text: str) -> Head:
        """The head of a path such as "decoder.1.self_attention.2"; empty is the one that looks most at the answer."""
        if not text:
            return self.model.survey().foremost
        try:
            head = Head.parse(text)
            attention = self.model.sample(self.question).attentions[head.site]
        except (ValueError, KeyError):
            raise ValueError(f"there is no head “{text[:60]}”") from None
        if not 0 <= head.index < len(attention.pattern):
            raise ValueError(f"there is no head “{text[:60]}”")
        return head


def model_of(view: Settings, found: Mapping[str, menu.Choice]) -> Model:
    """The model that a view names of a menu. Raises ValueError, with a sentence, where there is none."""
    name = view.run or next(iter(found))
    if name not in found:
        raise ValueError(f"there is no run “{name[:60]}”")
    steps = found[name].snapshots
    if view.step is not None and view.step not in steps:
        raise ValueError(f"{name} has no weights of step {view.step}; it has those of {', '.join(map(str, steps))}")
    return Model.of(found[name], steps[-1] if view.step is None else view.step)


def _pattern(values: ViewValues, head: str) -> np.ndarray:
    found = values.head(head)
    return values.model.sample(values.question).attentions[found.site].pattern[found.index]


def _accuracies(values: ViewValues) -> Bars:
    """How often each position of the answer is right."""
    if not values.model.task.lawful:
        raise ValueError(f"{values.model.name} reads a text, which has no right answer")
    accuracy = values.accuracy
    return Bars(tuple(accuracy.names), tuple(float(each) for each in accuracy.mean))


def _row(values: ViewValues, head: str, query: float) -> Bars:
    """The weights that a query of a head gives to each key that it may see."""
    found = values.head(head)
    attention = values.model.sample(values.question).attentions[found.site]
    pattern = attention.pattern[found.index]
    cell(pattern, query, 1)
    row = int(query) - 1
    return Bars(
        tuple(f"{key} at {place}" for place, key in enumerate(attention.keys, 1) if attention.mask[row, place - 1]),
        tuple(float(weight) for weight, seen in zip(pattern[row], attention.mask[row], strict=True) if seen),
    )


def _cells(values: ViewValues, head: str) -> Cells:
    """A head's pattern, cell by cell."""
    found = values.head(head)
    attention = values.model.sample(values.question).attentions[found.site]
    if attention.factor != 1:
        raise ValueError("a cell of this pattern stands for several tokens")
    return Cells(attention.queries, attention.keys, attention.pattern[found.index], attention.mask)


def _score(values: ViewValues, head: str, query: float, key: float) -> float:
    found = values.head(head)
    return cell(values.model.sample(values.question).attentions[found.site].scores[found.index], query, key)


def _most(values: ViewValues, head: str, query: float) -> int:
    pattern = _pattern(values, head)
    cell(pattern, query, 1)
    return int(pattern[int(query) - 1].argmax()) + 1


def _contribution(values: ViewValues, head: str, query: float, key: float) -> float:
    found = values.head(head)
    return cell(heads.detail(values.model, values.question, found.site).contribution(found.index), query, key)


def _written(values: ViewValues, parts: str, place: float) -> float:
    """What all "heads" or all "feed-forwards" add to the right token's logit, above the mean token's, at an output."""
    from transformer.analysis.stream.attribution import writes

    kinds = {"heads": "attention", "feed-forwards": "feed_forward"}
    if parts not in kinds:
        raise ValueError(f"there are heads and feed-forwards, and no “{parts[:40]}”")
    question, task = values.question, values.model.task
    found = writes(values.model.transformer(), task, question, said=words_of(values.model, question))
    return sum(cell(each, place) for name, each in found.items() if kinds[parts] in name)


def _of(values: ViewValues, run: str, name: str) -> Any:
    """A number of another run, on the same input where it can read it."""
    return ViewValues(values.view.with_(run=run, step=None))[name]


def _setting(values: ViewValues, name: str) -> Any:
    """What the view sets a field to, or leaves it at."""
    if name not in FIELDS:
        raise ValueError(f"a view has no “{name[:40]}”")
    return getattr(values.view, name)


def _parameters(values: ViewValues) -> int:
    return sum(weights.numel() for weights in values.model.network().parameters())


def _evaluated(values: ViewValues, name: str) -> float:
    """What was measured when the run ended."""
    run = values.model.run
    found = {} if run is None else run.evaluation or {}
    if name not in found:
        raise ValueError(f"{values.model.name} keeps no {name}")
    return float(found[name])


def _ceiling(values: ViewValues, place: float) -> float:
    length = values.view.measured_length or values.model.config.task.length
    return cell(ceilings.ceiling(values.model.config, length).greatest, place)


def _under(values: ViewValues, mask: str, group: str) -> float:
    """The accuracy of a part, "second half", under another mask, without training the model for it."""
    found = masks.parse(mask)
    return part(values, values.model.accuracy(values.view.sequences, found, values.view.measured_length), group)


def _known_under(values: ViewValues, mask: str) -> int:
    """How many tokens of the answer can be known for certain under a mask, in as many layers as the model has."""
    task, layers = values.model.task, values.model.config.model.n_layers
    known = ceilings.ceiling_of_mask(task, masks.parse(mask), layers, len(values.question)).accuracy == 1
    return int(known[task.answers(len(values.question))].sum())


def _by_position(values: ViewValues, head: str) -> float:
    """The share of the variance of a head's scores that position–position makes up, over many sequences."""
    found = heads.shares(values.model)
    wanted = values.head(head)
    if wanted not in found.heads:
        raise ValueError(f"the scores of head {wanted.short} cannot be split")
    return float(found.share[found.heads.index(wanted), -1])


def _cosine(values: ViewValues, first: float, second: float) -> float:
    """Of the vectors that the model's encoding gives two positions. Raises ValueError where it adds none."""
    name = values.view.of(PositionsSettings).encoding or values.model.config.model.positions
    table = positions.table(values.model, name).values
    for place in (first, second):
        cell(table, place, 1)
    one, other = table[int(first) - 1], table[int(second) - 1]
    return float(one @ other / (np.linalg.norm(one) * np.linalg.norm(other)))


def _whole(_: ViewValues, encoding: str, length: float) -> float:
    """The share of whole answers right at a length with an encoding, mean over seeds: the shipped measurement."""
    found = Lengths.load(LENGTHS)
    if encoding not in found.measured:
        raise ValueError(f"no encoding “{encoding[:40]}” was measured; there are {', '.join(found.measured)}")
    return cell(found.exact(encoding).mean(axis=0), length)


def _loss(values: ViewValues, step: float) -> float:
    """The training loss that was logged at a step, in nats."""
    run = values.model.run
    rows = [] if run is None else run.metrics()
    found = [row["loss"] for row in rows if row["step"] == step]
    if not found:
        raise ValueError(f"{values.model.name} has no loss of step {step}")
    return float(found[-1])


def _right(values: ViewValues) -> int:
    return int((values.model.said(values.question) == values.model.task.answer(values.question)).sum())


NUMBERS: dict[str, Callable[[ViewValues], Any]] = {
    "layers": lambda values: values.model.config.model.n_layers,
    "heads": lambda values: values.model.config.model.n_heads,
    "d_model": lambda values: values.model.config.model.d_model,
    "d_head": lambda values: values.model.config.model.d_model // values.model.config.model.n_heads,
    "parameters": _parameters,
    "step": lambda values: values.model.step,
    "length": lambda values: len(values.question),
    "tokens": lambda values: len(values.model.sample(values.question).read),
    "vocabulary": lambda values: values.model.task.d_vocab,
    "symbols": lambda values: values.model.config.task.symbols,
    "bag": lambda values: float(bag_ceiling(values.model.task.length, values.model.config.task.symbols).mean()),
    "chance": lambda values: values.model.task.chance,
    "right": _right,
    "first_half": lambda values: part(values, values.accuracy, "first half"),
    "second_half": lambda values: part(values, values.accuracy, "second half"),
    "whole_steps": lambda _: Lengths.load(LENGTHS).config.training.max_steps,
    "perplexity": lambda values: _evaluated(values, "perplexity"),
    **walks.NUMBERS,
    **changes.NUMBERS,
    "head": lambda values: values.view.head,
    "accuracies": _accuracies,
    **texts.NUMBERS,
}
"""What needs no argument: numbers, the head that the view names, and bars."""
NAMES: dict[str, Callable[..., Any]] = {
    "token": lambda values, place: cell(np.array(values.model.sample(values.question).read), place),
    "predicted": lambda values, place: cell(np.array(values.model.sample(values.question).predicted), place),
    "confidence": lambda values, place: cell(values.model.sample(values.question).confidence, place),
    "accuracy": lambda values, place: cell(values.accuracy.mean, place),
    "ceiling": _ceiling,
    "weight": lambda values, head, query, key: cell(_pattern(values, head), query, key),
    "score": _score,
    "most": _most,
    "row": _row,
    "pattern": _cells,
    "contribution": _contribution,
    "written": _written,
    "under": _under,
    "known_under": _known_under,
    "loss": _loss,
    "by_position": _by_position,
    "cosine": _cosine,
    "whole": _whole,
    "answer_share": lambda values, head: values.model.survey().expected_share[values.head(head)],
    "of": _of,
    "setting": _setting,
    **walks.NAMES,
    **changes.NAMES,
    **texts.NAMES,
}
"""Functions of places, heads and runs."""
