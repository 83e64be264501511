"""What an analysis has no formula for gets a sentence and no number: parts of a model that a stranger might write."""

from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import pytest
from torch import nn

from tests.kit.checkout import call_that_raised, calls
from tests.kit.heads_by_hand import QUESTION, random_model
from transformer.analysis import assumptions
from transformer.analysis.assumptions import NotCovered
from transformer.analysis.findings import Head
from transformer.analysis.heads.circuits import circuits
from transformer.analysis.heads.score_terms import measure_shares, split_question
from transformer.analysis.heads.side_by_side import look_at_all_heads
from transformer.analysis.sample import lay_out, observe_batch
from transformer.analysis.stream.attribution import direct_logits, writes
from transformer.analysis.stream.norms import normalise
from transformer.attention import MultiHeadAttention
from transformer.blocks import Block
from transformer.mistakes._base import with_attention
from transformer.model import Transformer
from transformer.normalisation import Normalisation
from transformer.positions.alibi import ALiBi
from transformer.positions.learned import Learned

SITE, FIRST, LAST = "decoder.0.self_attention", "decoder.0.around_self.before", "final_norm"


class Halves(nn.Module):
    """A norm that says nothing of itself."""

    def forward(self, x):
        return x / 2


class HalvesToo(Normalisation):
    """A norm that says another linear part than it has."""

    def forward(self, x):
        return super().forward(x) / 2


class Louder(MultiHeadAttention):
    """Attention that reads the queries' stream twice as loud."""

    def forward(self, looking, looked_at, *rest, **more):
        return super().forward(2 * looking, looked_at, *rest, **more)


class Twice(Block):
    """A block that adds what its attention wrote twice."""

    def kept(self, resid):
        return 2 * resid


class BothWays(Learned):
    """Positions as vectors in the stream and as a bias on the scores."""

    def bias(self, n_query, n_key):
        return ALiBi(n_ctx=self.n_ctx, d_model=self.d_model, n_heads=self.n_heads).bias(n_query, n_key)


def placed(model: Transformer, path: str, made: nn.Module) -> None:
    """Put a module in the place of another of a model, with as many of its weights as it can hold."""
    made.load_state_dict(model.get_submodule(path).state_dict(), strict=False)
    parent, _, name = path.rpartition(".")
    setattr(model.get_submodule(parent), name, made)


ANALYSES = {
    "writes": lambda model, task: writes(model, task, QUESTION),
    "direct logits": lambda model, task: direct_logits(model, observe_batch(model, lay_out(task, QUESTION))),
    "score terms": lambda model, task: split_question(model, task, QUESTION, SITE),
    "shares": lambda model, task: measure_shares(model, task, sequences=4),
    "circuits": lambda model, task: circuits(model, Head(SITE, 0)),
    "circuits of the second layer": lambda model, task: circuits(model, Head("decoder.1.self_attention", 0)),
    "steps of a norm": lambda model, task: normalise(model, task, QUESTION, SITE, 1),
    "all heads": lambda model, task: look_at_all_heads(model, task, QUESTION, SITE, 1),
    "a mistake": lambda model, task: with_attention(model, lambda own: own),
}
ACROSS = {"circuits across": lambda model, task: circuits(model, Head("decoder.0.cross_attention", 0))}
"""Of an encoder-decoder."""
UNKNOWN, OTHERWISE, FORMULA = "whose linear part is not known here: Halves", "do not add up to", "not computed by the"
SUMS, TERMS, CIRCUITS = (
    ("writes", "direct logits"),
    ("score terms", "shares"),
    ("circuits", "circuits of the second layer"),
)


class Strange(NamedTuple):
    """A model with a part that a stranger wrote, and the sentences with which analyses refuse it."""

    path: str
    made: Callable[[Transformer], nn.Module] | None
    """The part, which is put in the place of the one at `path`."""
    refused: dict[str, str]
    """By the name of the analysis."""
    settings: Mapping[str, Any] = MappingProxyType({})
    """Of the model, where they are others than `random_model` has."""
    task: str = "reverse"


STRANGE = {
    "an unknown last norm": Strange(LAST, lambda model: Halves(), dict.fromkeys((*SUMS, *CIRCUITS), UNKNOWN)),
    "an unknown first norm": Strange(
        FIRST,
        lambda model: Halves(),
        dict.fromkeys((*TERMS, "circuits", "steps of a norm"), UNKNOWN),
    ),
    "an unknown norm after a sub-layer": Strange(
        "decoder.0.around_self.after",
        lambda model: Halves(),
        dict.fromkeys((*SUMS, *CIRCUITS, "steps of a norm"), UNKNOWN),
        {"norm": "post"},
    ),
    "an unknown norm of the encoder's memory": Strange(
        "memory_norm", lambda model: Halves(), {"circuits across": UNKNOWN}, task="reverse-translate"
    ),
    "a last norm that says otherwise": Strange(
        LAST,
        lambda model: HalvesToo(model.final_norm.kind, 8),
        dict.fromkeys(SUMS, OTHERWISE),
    ),
    "a first norm that says otherwise": Strange(
        FIRST,
        lambda model: HalvesToo(model.final_norm.kind, 8),
        dict.fromkeys(TERMS, OTHERWISE),
    ),
    "another attention": Strange(SITE, lambda model: Louder(8, 2), dict.fromkeys((*TERMS, "circuits"), FORMULA)),
    "another block": Strange("decoder.1", lambda model: Twice(model.config), dict.fromkeys(SUMS, OTHERWISE)),
    "positions told both ways": Strange(
        "positions",
        lambda model: BothWays(n_ctx=model.n_ctx, d_model=8, n_heads=2),
        dict.fromkeys((*TERMS, *CIRCUITS, "all heads", "a mistake"), "by vectors and bias"),
    ),
    "no residual connections": Strange(
        "",
        None,
        dict.fromkeys(SUMS, "no residual connections: its logits are no sum of what its parts wrote")
        | dict.fromkeys(CIRCUITS, "no residual connections: no straight way leads from its embeddings"),
        {"residual": False},
    ),
}


def refusals(strange: Strange) -> Iterator[NotCovered]:
    """What each analysis that is to refuse this model raises, with its sentence in it."""
    model, config = random_model(strange.task, **strange.settings)
    if strange.made:
        placed(model, strange.path, strange.made(model).eval())
    for name, sentence in strange.refused.items():
        with pytest.raises(NotCovered, match=sentence) as refused:
            (ANALYSES | ACROSS)[name](model, config.build_task())
        yield refused.value


@pytest.mark.parametrize("strange", STRANGE)
def test_a_part_that_a_formula_does_not_cover_is_named_and_no_number_is_given(strange: str) -> None:
    assert all(refusals(STRANGE[strange]))


def test_every_question_that_the_library_asks_of_a_model_refuses_one_of_these() -> None:
    """A new question needs a model here that has not what it asks for."""
    refused = {call_that_raised(each, assumptions) for strange in STRANGE.values() for each in refusals(strange)}
    assert refused == {*calls("transformer", assumptions)}


@pytest.mark.parametrize("name", ANALYSES)
def test_our_own_parts_are_covered(name: str) -> None:
    model, config = random_model("reverse")
    assert ANALYSES[name](model, config.build_task())


def test_our_own_parts_are_covered_across() -> None:
    model, config = random_model("reverse-translate")
    assert ACROSS["circuits across"](model, config.build_task())
