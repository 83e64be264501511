"""What is measured inside a block: heads side by side, norms, hidden units; cached."""

from __future__ import annotations

from concurrent.futures import Future
from typing import TYPE_CHECKING

import numpy as np

from dashboard.models import background
from dashboard.models.budget import SURVEY_CELLS, affordable
from dashboard.models.cache import cached
from dashboard.models.model import Model, words_of
from transformer.config import ModelConfig, RunConfig, TaskConfig

if TYPE_CHECKING:
    from transformer.analysis.heads.side_by_side import SideBySide
    from transformer.analysis.stream.hidden_units import Fired, Firing
    from transformer.analysis.stream.norms import Normed
    from transformer.model import Transformer
    from transformer.tasks import Question


WIDE = RunConfig(
    task=TaskConfig(task="reverse", length=30), model=ModelConfig(n_layers=1, n_heads=8, d_model=512, d_ff=0)
)
"""As in many lectures: 60 tokens of 512 numbers, 8 heads of 64. It is never trained."""
WIDE_SITE = "decoder.0.self_attention"
NORMS = {"pre": "pre-norm", "post": "post-norm", "none": "no norm"}
DEPTHS = (2, 4, 6, 8, 10, 12)
"""Layers of the untrained models whose gradients are measured."""


@cached(64)
def side_by_side(model: Model, question: Question, site: str, place: int) -> SideBySide:
    """All heads of an attention at one token, while the model reads its own words."""
    from transformer.analysis.heads.side_by_side import look_at_all_heads

    return look_at_all_heads(model.transformer(), model.task, question, site, place, said=words_of(model, question))


@cached(64)
def wide(place: int) -> SideBySide:
    """The same of the untrained model of a lecture."""
    from transformer.analysis.heads.side_by_side import look_at_all_heads

    task = WIDE.build_task()
    return look_at_all_heads(_untrained_wide(), task, task.example, WIDE_SITE, place)


@cached(8)
def output_weight(model: Model, site: str) -> np.ndarray:
    """W_O of an attention, float [head, d_head, d_model]."""
    from transformer.analysis.heads.side_by_side import output_weight

    return output_weight(model.transformer(), site)


@cached(1)
def wide_output_weight() -> np.ndarray:
    """The same of the untrained model of a lecture."""
    from transformer.analysis.heads.side_by_side import output_weight

    return output_weight(_untrained_wide(), WIDE_SITE)


@cached(1, "Drawing the weights of 8 heads …")
def _untrained_wide() -> Transformer:
    return _built(WIDE)


@cached(64)
def normed(model: Model, question: Question, path: str, place: int) -> Normed:
    """The norm of a sub-layer at one token. Raises ConfigError for a model without norms."""
    from transformer.analysis.stream.norms import normalise

    return normalise(model.transformer(), model.task, question, path, place, said=words_of(model, question))


@cached(64)
def most_normed(model: Model, question: Question, paths: tuple[str, ...]) -> tuple[str, int]:
    """The sub-layer and the token, its place counted from 0, that a norm changes most: see `most_changed`."""
    from transformer.analysis.stream.norms import most_changed

    return most_changed(model.transformer(), model.task, question, paths, said=words_of(model, question))


@cached(64)
def fired(model: Model, question: Question, block: str, place: int) -> Fired:
    """The hidden units of a block at one token. Raises ConfigError for a model without feed-forward layers."""
    from transformer.analysis.stream.hidden_units import fire

    return fire(model.transformer(), model.task, question, block, place, said=words_of(model, question))


@cached(64, "Counting which hidden units fire …")
def firing(model: Model, block: str) -> Firing:
    """How often each of them fires, on fresh sequences; of a text, on windows that were held out."""
    from transformer.analysis.batches import questions
    from transformer.analysis.stream.hidden_units import count_firing

    task = model.task
    batch, _ = questions(task, affordable(256, task, task.surveyed, SURVEY_CELLS), task.surveyed, 0)
    return count_firing(model.transformer(), batch, block)


# --- gradients of untrained models


def small(norm: str, kind: str, n_layers: int) -> RunConfig:
    """A narrow model of many layers whose norms stand here or there; all else is the same, and so is the seed."""
    shape = ModelConfig(n_layers=n_layers, n_heads=2, d_model=32, d_ff=64, norm=norm, norm_kind=kind)
    return RunConfig(task=TaskConfig(length=4), model=shape)


@cached(4)
def gradients(depths: tuple[int, ...], kind: str) -> Future[dict[tuple[str, int], np.ndarray]]:
    """The gradient of each layer before training, float [layer], by the norm's place and depth, of norms of one kind.

    It is measured behind the page."""
    return background.MEASUREMENTS.submit(_gradients, depths, kind)


def _gradients(depths: tuple[int, ...], kind: str) -> dict[tuple[str, int], np.ndarray]:
    from transformer.analysis.stream.depth import look_down

    found = {}
    for norm in NORMS:
        for depth in depths:
            config = small(norm, kind, depth)
            found[norm, depth] = look_down(_built(config), config.build_task()).gradient
    return found


def _built(config: RunConfig) -> Transformer:
    from transformer.model import Transformer, build

    model = build(config).eval()
    assert isinstance(model, Transformer)
    return model
