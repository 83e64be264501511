"""What a lecture can say of a model that reads a text: what a token costs it, what it thinks likely, what it writes."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from dashboard.app_pages.text.reading.settings import ReadingSettings
from dashboard.app_pages.text.writing.settings import WritingSettings
from dashboard.lectures.walks import cell
from dashboard.models import passages
from dashboard.models.cache import cached
from dashboard.models.model import Model
from transformer.sampling import Sampling
from transformer.text.task import Text

if TYPE_CHECKING:
    from dashboard.lectures.values import ViewValues
    from transformer.analysis.accuracy.surprise import Surprise
    from transformer.generation import Said
    from transformer.tasks import Question


def _text(values: ViewValues) -> Text:
    """Its task. Raises ValueError where it reads no text."""
    if values.model.task.lawful:
        raise ValueError(f"{values.model.name} reads no text")
    return cast("Text", values.model.task)


# --- what it reads


def _passage(values: ViewValues) -> tuple[Question, Surprise]:
    """The passage of the page “It reads” and what it cost: of what is held out, or the input."""
    view, task = values.view.of(ReadingSettings), _text(values)
    if view.read_what == "input":
        return values.question, passages.surprise(values.model, values.question, 0)
    passage, before, _ = passages.held_out(task, int(view.read_work or "1"), view.read_place)
    return passage[before:], passages.surprise(values.model, passage, before)


def _read_token(values: ViewValues, place: float) -> str:
    token = cell(_passage(values)[0], place)
    return _text(values).vocabulary[token]


def _read_guess(values: ViewValues, place: float, rank: float) -> str:
    return _text(values).vocabulary[cell(_passage(values)[1].likeliest, place, rank)]


def _counted(values: ViewValues, kind: str) -> float:
    """The perplexity of a model that counts runs of tokens, on all that is held out: as measured."""
    run = values.model.run
    found = {} if run is None else (run.evaluation or {}).get("baselines", {})
    if not isinstance(found.get(kind), float):
        raise ValueError(f"{values.model.name} keeps no perplexity of a “{kind[:40]}”")
    return float(found[kind])


# --- from logits to words


@cached(32)
def _logits(model: Model, question: Question, place: int) -> np.ndarray:
    from transformer.analysis.stream.unembedding import look_at_output

    return look_at_output(model.transformer(), model.task, question, place).logits


def _ranked(values: ViewValues, place: float, rank: float) -> tuple[np.ndarray, int]:
    """The logits of an output and the token of a rank there, the likeliest first."""
    _text(values)
    logits = _logits(values.model, values.question, int(cell(np.arange(len(values.question)), place)))
    return logits, cell(np.argsort(-logits, kind="stable"), rank)


def _said_token(values: ViewValues, place: float, rank: float) -> str:
    _, token = _ranked(values, place, rank)
    return values.model.task.vocabulary[token]


def _logit(values: ViewValues, place: float, rank: float) -> float:
    logits, token = _ranked(values, place, rank)
    return float(logits[token])


def _probability(values: ViewValues, place: float, rank: float, temperature: float) -> float:
    from transformer.analysis.stream.unembedding import softmax

    logits, token = _ranked(values, place, rank)
    return float(softmax(logits, temperature)[token])


# --- what it writes


def _written(values: ViewValues) -> tuple[Said, ...]:
    """The text of the page “It writes”; its prompt has to stand in the view."""
    view = values.view.of(WritingSettings)
    if not view.prompt:
        raise ValueError("the view names no prompt")
    sampling = Sampling(temperature=view.temperature, top_k=view.top_k, top_p=view.top_p, seed=view.writing_seed)
    prompt = _text(values).begun(passages.as_typed(view.prompt))
    return _generated(values.model, tuple(prompt), sampling, view.written)


@cached(16)
def _generated(model: Model, prompt: tuple[int, ...], sampling: Sampling, tokens: int) -> tuple[Said, ...]:
    import torch

    from transformer.generation import generate

    never = cast("Text", model.task).unsayable
    return tuple(generate(model.network(), torch.tensor(prompt), tokens, sampling, never=never))


NUMBERS: dict[str, Callable[[ViewValues], Any]] = {
    "n_ctx": lambda values: values.model.task.n_ctx,
    "known": lambda values: len(_text(values).known.vocabulary.tokens),
    "read_tokens": lambda values: len(_passage(values)[0]),
    "read_perplexity": lambda values: _passage(values)[1].perplexity,
    "read_first": lambda values: int((_passage(values)[1].rank == 1).sum()),
    "written_kinds": lambda values: len({each.token for each in _written(values)}),
    "written_perplexity": lambda values: float(np.exp(np.mean([each.nats for each in _written(values)]))),
}
"""Numbers that need no argument."""
NAMES: dict[str, Callable[..., Any]] = {
    "read_token": _read_token,
    "read_cost": lambda values, place: cell(_passage(values)[1].nats, place),
    "read_rank": lambda values, place: cell(_passage(values)[1].rank, place),
    "read_guess": _read_guess,
    "read_share": lambda values, place, rank: cell(_passage(values)[1].probability, place, rank),
    "counted": _counted,
    "said_token": _said_token,
    "logit": _logit,
    "probability": _probability,
}
"""Functions of places, ranks and heads. A rank is 1 for the likeliest; a place counts in the passage or the input."""
