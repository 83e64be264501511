"""The table of parts: name, question, what answers it, and the functions that its page shows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from dashboard.app_pages.whole_model.block import dropout, feed_forward, heads, logits, norm, parameters
from dashboard.models.model import Model


@dataclass(frozen=True)
class Part:
    """A part of the page: what it asks, and the function that draws the answer and returns the page's title."""

    name: str
    """In the link, as "norm"."""
    title: str
    """On its button; {norm} stands for the model's norm."""
    question: str
    """{norm} stands for the model's norm here too."""
    answer: Callable[[Model], str]
    code: tuple[str, ...]
    """Paths of the functions that "show the code" prints."""


PARTS: tuple[Part, ...] = (
    Part(
        "heads",
        "Heads",
        "How is one vector split into heads, and what does each head add to the output?",
        heads.answer,
        (
            "transformer.attention.MultiHeadAttention.forward",
            "transformer.attention.MultiHeadAttention.contributions",
            "transformer.analysis.heads.side_by_side.look_at_all_heads",
        ),
    ),
    Part(
        "norm",
        "{norm}",
        "What does {norm} do to one token's numbers, and where does it stand?",
        norm.answer,
        (
            "transformer.blocks.Norms",
            "transformer.normalisation.Normalisation",
            "transformer.blocks.Block.forward",
            "transformer.analysis.stream.norms.normalise",
            "transformer.analysis.stream.depth.look_down",
        ),
    ),
    Part(
        "feed_forward",
        "Feed-forward",
        "Which hidden units fire at this token, and how often does each fire?",
        feed_forward.answer,
        (
            "transformer.blocks.FeedForward",
            "transformer.analysis.stream.hidden_units.fire",
            "transformer.analysis.stream.hidden_units.count_firing",
        ),
    ),
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
        "Parameters",
        "Which numbers of a model does training change, and which never?",
        parameters.answer,
        (
            "transformer.analysis.weights.inventory",
            "transformer.analysis.weights.movements",
        ),
    ),
    Part(
        "logits",
        "Logits",
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
