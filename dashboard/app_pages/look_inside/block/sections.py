"""The table of parts: name, question, what answers it, and the functions that its page shows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from dashboard.app_pages.look_inside.block import dropout, logits, parameters
from dashboard.models.model import Model


@dataclass(frozen=True)
class Part:
    """A part of the page: what it asks, and the function that draws the answer and returns the page's title."""

    name: str
    """In the link, as "norm"."""
    title: str
    """On its button."""
    question: str
    answer: Callable[[Model], str]
    code: tuple[str, ...]
    """Paths of the functions that "show the code" prints."""


PARTS: tuple[Part, ...] = (
    Part(
        "dropout",
        "Dropout",
        "What does dropout do to one input, and why is a model looked at in evaluation mode?",
        dropout.answer,
        (
            "transformer.blocks.Block.forward",
            "transformer.analysis.stream.dropout.repeat_passes",
            "transformer.analysis.stream.dropout.drop",
        ),
    ),
    Part(
        "parameters",
        "Buffer or parameter",
        "Which numbers of a model does training change, and which never?",
        parameters.answer,
        (
            "transformer.positions.learned.Learned.__init__",
            "transformer.positions.sinusoidal.Sinusoidal.__init__",
            "transformer.analysis.weights.inventory",
            "transformer.analysis.weights.movements",
        ),
    ),
    Part(
        "logits",
        "Logits to words",
        "How does the last vector become words, and what does the right word cost?",
        logits.answer,
        (
            "transformer.model.Transformer.forward",
            "transformer.analysis.stream.unembedding.softmax",
            "transformer.analysis.stream.unembedding.loss",
            "transformer.analysis.stream.unembedding.loss_gradient",
        ),
    ),
)
