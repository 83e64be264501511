"""What an analysis has no formula for gets a sentence and no number: parts of a model that a stranger might write."""

import pytest
import torch
from torch import nn

from tests.kit.heads_by_hand import QUESTION, random_model
from transformer.analysis.assumptions import NotCovered
from transformer.analysis.findings import Head
from transformer.analysis.heads.circuits import circuits
from transformer.analysis.heads.score_terms import measure_shares, split_question
from transformer.analysis.stream.attribution import direct_logits, writes
from transformer.analysis.stream.norms import normalise
from transformer.attention import MultiHeadAttention
from transformer.blocks import Block
from transformer.model import Transformer
from transformer.normalisation import Normalisation
from transformer.observation import observe
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
    "direct logits": lambda model, task: direct_logits(
        model, observe(model, torch.from_numpy(task.encode([QUESTION]).tokens))
    ),
    "score terms": lambda model, task: split_question(model, task, QUESTION, SITE),
    "shares": lambda model, task: measure_shares(model, task, sequences=4),
    "circuits": lambda model, task: circuits(model, Head(SITE, 0)),
    "steps of a norm": lambda model, task: normalise(model, task, QUESTION, SITE, 1),
}
UNKNOWN, OTHERWISE, FORMULA = "whose linear part is not known here: Halves", "do not add up to", "not computed by the"
SUMS, TERMS = ("writes", "direct logits"), ("score terms", "shares")
STRANGE = {
    "an unknown last norm": (LAST, lambda model: Halves(), {**dict.fromkeys((*SUMS, "circuits"), UNKNOWN)}),
    "an unknown first norm": (
        FIRST,
        lambda model: Halves(),
        dict.fromkeys((*TERMS, "circuits", "steps of a norm"), UNKNOWN),
    ),
    "a last norm that says otherwise": (
        LAST,
        lambda model: HalvesToo(model.final_norm.kind, 8),
        dict.fromkeys(SUMS, OTHERWISE),
    ),
    "a first norm that says otherwise": (
        FIRST,
        lambda model: HalvesToo(model.final_norm.kind, 8),
        dict.fromkeys(TERMS, OTHERWISE),
    ),
    "another attention": (SITE, lambda model: Louder(8, 2), dict.fromkeys((*TERMS, "circuits"), FORMULA)),
    "another block": ("decoder.1", lambda model: Twice(model.config), dict.fromkeys(SUMS, OTHERWISE)),
    "positions told both ways": (
        "positions",
        lambda model: BothWays(n_ctx=model.n_ctx, d_model=8, n_heads=2),
        dict.fromkeys((*TERMS, "circuits"), "by vectors and bias"),
    ),
}


@pytest.mark.parametrize("strange", STRANGE)
def test_a_part_that_a_formula_does_not_cover_is_named_and_no_number_is_given(strange: str) -> None:
    path, made, refused = STRANGE[strange]
    model, config = random_model("reverse")
    placed(model, path, made(model).eval())
    for name, sentence in refused.items():
        with pytest.raises(NotCovered, match=sentence):
            ANALYSES[name](model, config.build_task())


@pytest.mark.parametrize("name", ANALYSES)
def test_our_own_parts_are_covered(name: str) -> None:
    model, config = random_model("reverse")
    assert ANALYSES[name](model, config.build_task())
