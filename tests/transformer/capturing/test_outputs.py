"""How far an answer moves: by PyTorch's own divergence, by norms, and by removing heads one by one."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from tests.kit.foreign.hugging_face import SMALL, WORDS, given, made
from transformer import Change, capture, capture_changed
from transformer.analysis.findings import Head
from transformer.capturing.heads import modules
from transformer.capturing.outputs import Answer, answer, difference, removals
from transformer.capturing.record import CaptureError

LOGITS = ("GPT2LMHeadModel", "LlamaForCausalLM")
EMBEDDINGS = ("BertModel", "T5Model", "ViTModel")


@pytest.mark.parametrize("kind", LOGITS + EMBEDDINGS)
def test_hugging_faces_outputs_say_what_they_are(kind: str) -> None:
    output = capture(made(kind), **given(kind)).output
    found = answer(output)
    assert found.kind == ("logits" if kind in LOGITS else "embedding")
    np.testing.assert_array_equal(found.values, output[0][0].numpy())


def test_the_classes_of_a_sequence_are_one_position() -> None:
    import transformers

    torch.manual_seed(0)
    for classes, kind in ((3, "logits"), (1, "embedding")):
        model = transformers.BertForSequenceClassification(transformers.BertConfig(**SMALL | WORDS, num_labels=classes))
        found = answer(capture(model, **given("BertModel")).output)
        assert (found.kind, found.values.shape) == (kind, (1, classes))


class Reader(nn.Module):
    """A vocabulary of 11, vectors of 4."""

    def __init__(self, width: int, behind: tuple = ()) -> None:
        super().__init__()
        self.tokens, self.positions = nn.Embedding(11, 4), nn.Embedding(7, 4)
        self.head, self.behind = nn.Linear(4, width), behind

    def forward(self, tokens: Tensor):
        out = self.head(self.tokens(tokens))
        return (out, *self.behind) if self.behind else out


@pytest.mark.parametrize(
    ("width", "behind", "kind"),
    [
        (11, (), "logits"),
        (4, (), "embedding"),
        (6, (), "embedding"),
        (6, (None,), "logits"),  # nanoGPT returns (logits, loss)
        (6, (torch.zeros(()),), "logits"),
        (11, (torch.zeros(2, 3),), "logits"),
        (4, (torch.zeros(2, 3),), "embedding"),
    ],
)
def test_what_other_models_return_is_told_by_its_width_or_its_loss(width: int, behind: tuple, kind: str) -> None:
    model = Reader(width, behind)
    found = answer(capture(model, torch.tensor([[1, 2, 3], [4, 5, 6]])).output, model)
    assert (found.kind, found.values.shape) == (kind, (3, width))


@pytest.mark.parametrize(
    "output", [None, "logits", (), torch.zeros(1, 2, 3, 4), torch.zeros(2, 3, dtype=torch.long), torch.zeros(())]
)
def test_what_is_no_answer_is_said(output: object) -> None:
    with pytest.raises(CaptureError, match="neither logits nor an embedding"):
        answer(output)


def test_logits_move_by_their_divergence() -> None:
    torch.manual_seed(0)
    before, after = torch.randn(2, 5, 50) * 4
    found = difference(Answer("logits", before.numpy()), Answer("logits", after.numpy()))
    inputs = (after.double().log_softmax(-1), before.double().log_softmax(-1))
    expected = functional.kl_div(*inputs, reduction="none", log_target=True).sum(-1)
    np.testing.assert_allclose(found, expected.numpy(), rtol=1e-9)
    same = Answer("logits", before.numpy())
    np.testing.assert_array_equal(difference(same, same), np.zeros(5))
    # By hand: a fair coin that becomes one of 3 to 1.
    coin, biased = (Answer("logits", np.log([each])) for each in ([0.5, 0.5], [0.75, 0.25]))
    assert difference(coin, biased) == pytest.approx(0.5 * np.log(0.5 / 0.75) + 0.5 * np.log(0.5 / 0.25))


def test_a_shift_of_all_logits_is_no_move_and_a_forbidden_token_costs_nothing() -> None:
    values = np.array([[1.0, 2.0, -np.inf]])
    before, after = Answer("logits", values), Answer("logits", values + 5)
    np.testing.assert_allclose(difference(before, after), 0, atol=1e-15)


def test_an_embedding_moves_by_a_share_of_its_length() -> None:
    before = Answer("embedding", np.array([[3.0, 4.0], [1.0, 0.0], [0.0, 0.0], [0.0, 0.0]]))
    after = Answer("embedding", np.array([[3.0, 3.0], [1.0, 0.0], [0.0, 0.0], [1.0, 0.0]]))
    np.testing.assert_allclose(difference(before, after), [0.2, 0, 0, np.inf])


def test_answers_of_two_kinds_or_sizes_cannot_be_compared() -> None:
    one = Answer("logits", np.zeros((2, 3)))
    for other in (Answer("embedding", np.zeros((2, 3))), Answer("logits", np.zeros((3, 3)))):
        with pytest.raises(CaptureError, match="cannot be compared"):
            difference(one, other)


@pytest.mark.parametrize("kind", ["GPT2LMHeadModel", "BertModel"])
def test_each_head_in_turn_is_removed(kind: str) -> None:
    model, question = made(kind), given(kind)
    seen = capture(model, **question)
    heads = [Head(site, head) for site in modules(seen) for head in (3, 0)]
    found = list(removals(model, (), question, heads))
    assert [head for head, _ in found] == heads
    for head, moved in found:
        removed = frozenset({(modules(seen)[head.site], head.index)})
        after = capture_changed(model, Change(removed), **question).output[0][0]
        before = seen.output[0][0]
        if kind == "BertModel":
            expected = (after - before).norm(dim=-1) / before.norm(dim=-1)
        else:
            inputs = (after.log_softmax(-1), before.log_softmax(-1))
            expected = functional.kl_div(*inputs, reduction="none", log_target=True).sum(-1)
        np.testing.assert_allclose(moved, expected.numpy(), rtol=1e-3, atol=1e-6)
        assert moved.max() > 0


def test_removals_are_made_as_they_are_asked_for_and_a_head_that_is_not_there_is_said() -> None:
    model, question = made("BertModel"), given("BertModel")
    going = removals(model, (), question, [Head("encoder.0.self_attention", 0), Head("decoder.5.cross_attention", 1)])
    assert next(going)[0].short == "0.0"
    with pytest.raises(CaptureError, match=r"no head 5\.1 in its cross-attention"):
        next(going)
