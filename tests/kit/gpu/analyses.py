"""Every public function of the library that looks at a model, with arguments, for what holds of all of them."""

from __future__ import annotations

import inspect
import pkgutil
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any

import numpy as np
import torch

import transformer.analysis
from transformer import observe
from transformer.analysis import batches, encodings, sample, weights
from transformer.analysis.accuracy import surprise
from transformer.analysis.film import take
from transformer.analysis.findings import Head
from transformer.analysis.heads import measure
from transformer.analysis.health import examine
from transformer.analysis.interventions import effects, influence
from transformer.analysis.machine import movement, plan
from transformer.edits.heads.zero import AblateHead
from transformer.generation import generate
from transformer.sampling import Sampling

SITE = "decoder.0.self_attention"
FEW = 16
Call = Callable[[Any, Any], Any]


def _tokens(model: Any, task: Any) -> torch.Tensor:
    return torch.from_numpy(task.encode([task.example]).tokens[0])


def _batch(model: Any, task: Any) -> Any:
    return batches.questions(task, FEW, task.length, 0)[0]


def _seen(model: Any, task: Any) -> Any:
    return sample.observe_batch(model, sample.lay_out(task, task.example))


def _plan(model: Any, task: Any) -> Any:
    return plan.plan_model(model.config, plan.size_of(task, task.example))


GIVEN: dict[str, Call] = {
    "batch": _batch,
    "clean": lambda m, t: t.example,
    "corrupted": lambda m, t: effects.one_token_changed(m, t, t.example),
    "first": lambda m, t: np.arange(4)[None],
    "initial": lambda m, t: m,
    "other": lambda m, t: np.arange(4, 8)[None],
    "plan": _plan,
    "question": lambda m, t: t.example,
    "questions": lambda m, t: np.stack([t.example] * 2),
    "seen": _seen,
    "separator": lambda m, t: t.separator,
    "task": lambda m, t: t,
    "tokens": _tokens,
}
VALUES = {
    "block": "decoder.0",
    "head": Head(SITE, 1),
    "name": "learned",
    "path": SITE,
    "paths": [SITE],
    "site": SITE,
    "edits": [AblateHead(f"{SITE}.z", 0)],
    "removed": [0],
    "everything_seen": True,
    "query": 5,
    "rate": 0.2,
    "place": 3,
    "sequences": FEW,
    "text": [1, 2, 3, 4, 5],
    "token": 1,
}
"""What a parameter of this name is given."""


def _called(function: Callable[..., Any]) -> Call:
    """The function with what it must be given, with an edit where it takes some, and of sequences few."""
    _, *others = inspect.signature(function).parameters.values()
    wanted = [each.name for each in others if each.default is each.empty or each.name in ("edits", "sequences")]

    def call(model: Any, task: Any) -> Any:
        given = {name: GIVEN[name](model, task) if name in GIVEN else VALUES[name] for name in wanted}
        found = function(model, **given)
        return list(found) if isinstance(found, Iterator) else found

    return call


def _found() -> Iterator[tuple[str, Callable[..., Any]]]:
    """Each public function whose first parameter is a model, by its place below `transformer.analysis`."""
    for module in pkgutil.walk_packages(transformer.analysis.__path__, "transformer.analysis."):
        for name, each in vars(import_module(module.name)).items():
            function = inspect.unwrap(each) if inspect.isfunction(each) else None
            if function is None or name.startswith("_") or function.__module__ != module.name:
                continue
            first = next(iter(inspect.signature(function).parameters.values()), None)
            if first is not None and str(first.annotation) in ("Network", "Transformer"):
                yield f"{module.name.removeprefix('transformer.analysis.')}.{name}", each


NOT_RUN = {
    *("heads.measure.heads_of", "heads.measure.removal_takes_long", "heads.measure.removal_work"),
    *("heads.score_terms.splittable", "assumptions.attention_of", "interventions.influence.together"),
    *("stream.dropout.with_dropout", "stream.sublayers.sublayer_of"),
    *("stream.sublayers.map_after", "stream.sublayers.map_before"),
}
"""What reads a model's shape alone."""
OF_TEXTS: dict[str, Call] = {
    "accuracy.surprise.surprise": lambda m, t: surprise.surprise(m, t, np.array(t.example)),
    "accuracy.surprise.growth": surprise.growth,
    "heads.measure.measure_kinds": _called(measure.measure_kinds),
}
"""What looks at a model of a text."""
LAWFUL: dict[str, Call] = {
    **{name: _called(each) for name, each in _found() if name not in NOT_RUN | OF_TEXTS.keys()},
    "batches.in_parts": lambda m, t: batches.in_parts(m, _batch(m, t), lambda part, seen: seen.logits.cpu(), keep=()),
    "encodings.bias_of": lambda m, t: encodings.bias_of(m, "alibi"),
    "film.take.film": lambda m, t: take.film([(1, m), (2, m)], t, sequences=FEW),
    "health.examine.examine": lambda m, t: [found.holds for _, found in examine.examine(m, t).findings],
    "interventions.effects.redundancy": lambda m, t: effects.redundancy(m, t, sequences=2),
    "interventions.influence.poke": lambda m, t: influence.poke(m, t.encode([t.example]), [1, 2]),
    "interventions.influence.gradients": lambda m, t: influence.gradients(m, t.encode([t.example])),
    "machine.movement.moved": lambda m, t: movement.moved(
        _plan(m, t), m.state_dict(), {name: 2 * values for name, values in m.state_dict().items()}
    ),
    "sample.observe_batch": lambda m, t: _seen(m, t).sites,
    "weights.movements": lambda m, t: weights.movements(m, m),
    "observe": lambda m, t: observe(m, torch.tensor([[1, 2, 3]])).sites,
    "generate": lambda m, t: list(generate(m, _tokens(m, t)[:4], 5, Sampling(temperature=1.0, top_k=5, top_p=0.9))),
}
"""What looks at a model of a task with a law, and two functions of the face."""
