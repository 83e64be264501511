"""Positional encodings: each against its paper's formula, and all of them against one contract."""

import dataclasses
import math
import re

import pytest
import torch

from tests.kit import strangers
from transformer.config import ConfigError, ModelConfig, RunConfig, TaskConfig
from transformer.foundation.registry import PlugInError
from transformer.model import build
from transformer.observation import observe
from transformer.positions import ENCODINGS, FIELDS, NO_POSITIONS, described

N_CTX, D_MODEL, N_HEADS = 12, 16, 4
EVERY = (*ENCODINGS.names(), *strangers.ENCODINGS)
ALL = pytest.mark.parametrize("name", EVERY)


@pytest.fixture(autouse=True)
def _strangers(monkeypatch):
    """The encodings of strangers keep the contract of those that are shipped."""
    strangers.lend(monkeypatch, ENCODINGS, *strangers.ENCODINGS)


def encoding(name, n_ctx=N_CTX, d_model=D_MODEL, n_heads=N_HEADS):
    return ENCODINGS[name](n_ctx=n_ctx, d_model=d_model, n_heads=n_heads)


# --- the contract


@ALL
def test_says_what_it_is(name):
    """In words that stand in a sentence; and its class says what is read from its file without PyTorch."""
    kind, said = ENCODINGS[name], described(name)
    for words in (kind.description, kind.does):
        assert not words.endswith(".")
        assert "  " not in words
    assert kind.formula.count("{") == kind.formula.count("}")
    assert {field: getattr(said, field) for field in FIELDS} == {field: getattr(kind, field) for field in FIELDS}


@ALL
def test_acts_where_it_says(name):
    """What is overridden, and what it gives."""
    made, told = encoding(name), described(name).told
    x = torch.randn(2, N_HEADS, N_CTX, D_MODEL // N_HEADS, generator=torch.Generator().manual_seed(0))
    vectors, bias = made.vectors(5), made.bias(3, 5)
    assert (vectors is not None, bias is not None) == (told == "vectors", told == "bias")
    assert torch.equal(made.rotate(x), x) == (told != "rotation")
    assert vectors is None or vectors.shape == (5, D_MODEL)
    assert bias is None or bias.shape == (N_HEADS, 3, 5)
    if told == "rotation":  # linear, and of a shorter input the same
        torch.testing.assert_close(made.rotate(2 * x - x.flip(0)), 2 * made.rotate(x) - made.rotate(x.flip(0)))
        assert torch.equal(made.rotate(x[..., :3, :]), made.rotate(x)[..., :3, :])


NEW = {
    "no words": ("class New(PositionalEncoding): pass", "does not say its title, description"),
    "no term": (
        "class New(PositionalEncoding):\n    title = description = does = 'new'\n    told = 'bias'\n"
        "    def bias(self, n_query, n_key): return None",
        "does not say its term",
    ),
    "nowhere there is": (
        "class New(PositionalEncoding):\n    title = description = does = 'new'\n    told = 'logits'",
        "`told` must be one of vectors, rotation, bias, nowhere, not 'logits'",
    ),
    "another way": (
        "class New(PositionalEncoding):\n    title = description = does = 'new'\n    told = 'vectors'\n"
        "    def rotate(self, x): return 2 * x",
        "says that it is told by vectors, and overrides rotate",
    ),
    "no way": (
        "class New(PositionalEncoding):\n    title = description = does = 'new'\n    told = 'vectors'",
        "says that it is told by vectors, and does not override `vectors`",
    ),
    "words that are made": (
        "class New(PositionalEncoding):\n    title = description = 'new'\n    formula = f'{1 + 1}'",
        "write its `formula` out as a plain value",
    ),
    "inherited words": (
        "from transformer.positions import rotary\nclass New(rotary.Rotary): pass",
        "does not say its title, description",
    ),
    "no text": (
        "class New(PositionalEncoding):\n    title = description = 3",
        "`title` must be a text, not 3",
    ),
    "no switch": (
        "class New(PositionalEncoding):\n    title = description = 'new'\n    learned = 1",
        "`learned` must be True or False, not 1",
    ),
    "a number of another kind": (
        "class New(PositionalEncoding):\n    title = description = 'new'\n    decay_after = True",
        "`decay_after` must be a whole number, not True",
    ),
    "pairs of something else": (
        "class New(PositionalEncoding):\n    title = description = 'new'\n    pairs = 'heads'",
        "`pairs` must be one of an empty text, d_model, d_head, not 'heads'",
    ),
    "half a word of pairs": (
        "class New(PositionalEncoding):\n    title = description = 'new'\n    pairs = 'd_head'",
        "`pairs` and `pairing` are said together",
    ),
}


@pytest.mark.parametrize("strange", NEW)
def test_what_does_not_say_what_pages_need_is_refused_in_a_sentence(strange, tmp_path, monkeypatch):
    code, sentence = NEW[strange]
    (tmp_path / "newcomers").mkdir()
    name = f"new-{list(NEW).index(strange)}"
    file = tmp_path / "newcomers" / f"{name.replace('-', '_')}.py"
    file.write_text(f"from transformer.positions import PositionalEncoding\n{code}\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(ENCODINGS, "_modules", lambda: {name: f"newcomers.{file.stem}"})
    with pytest.raises(PlugInError, match=re.escape(sentence)):
        ENCODINGS[name]


@ALL
@pytest.mark.parametrize("length", [1, 5, N_CTX])
def test_can_be_drawn(name, length):
    picture, columns = encoding(name).picture(length)
    assert picture.shape[0] == length
    assert picture.shape[1] >= 1
    assert picture.isfinite().all()
    assert not picture.requires_grad
    assert columns


@ALL
@pytest.mark.parametrize("task", ["reverse", "reverse-aligned", "reverse-translate"])
def test_a_model_with_it_runs_learns_and_is_restored(name, task):
    config = RunConfig(
        task=TaskConfig(task=task, length=4), model=ModelConfig(positions=name, d_model=16, n_heads=2, d_ff=8)
    )
    model = build(config)
    tokens = torch.tensor([[0, 1, 2, 3], [3, 2, 1, 0]])
    source = tokens.flip(1) if task == "reverse-translate" else None
    model(tokens, source).square().sum().backward()
    for weight_name, weight in model.named_parameters():
        assert weight.grad is not None, weight_name
        assert weight.grad.isfinite().all(), weight_name

    other = build(dataclasses.replace(config, training=dataclasses.replace(config.training, seed=1)))
    assert not torch.equal(other(tokens, source), model(tokens, source))
    other.load_state_dict(model.state_dict())
    assert torch.equal(other(tokens, source), model(tokens, source))


@ALL
def test_fits_any_length_up_to_its_own(name):
    model = build(RunConfig(task=TaskConfig(length=4), model=ModelConfig(positions=name, d_model=16, n_heads=2)))
    for length in range(1, model.n_ctx + 1):
        assert model(torch.zeros(1, length, dtype=torch.long)).shape == (1, length, model.d_vocab)


@ALL
def test_what_is_learned_is_a_parameter_and_what_is_not_is_none(name):
    """And what is not stored is built anew as it was."""
    made, kind = encoding(name), described(name)
    assert bool([*made.parameters()]) == kind.learned
    again = encoding(name)
    again.load_state_dict(made.state_dict())
    for buffer, value in made.named_buffers():
        assert torch.equal(again.get_buffer(buffer), value)


@pytest.mark.parametrize("name", [name for name in EVERY if name != "none"])
def test_tells_positions_apart(name):
    """The same three tokens twice, everything in sight: without positions the model would say the same twice."""
    model = build(RunConfig(model=ModelConfig(positions=name, mask="full", norm="none", d_model=16, n_heads=2)))
    tokens = torch.tensor([[1, 2, 3, 1, 2, 3]])
    logits = observe(model, tokens).logits[0]
    assert (logits[:3] - logits[3:]).abs().max() > 1e-3
    blind = build(RunConfig(model=ModelConfig(positions="none", mask="full", norm="none", d_model=16, n_heads=2)))
    logits = observe(blind, tokens).logits[0]
    torch.testing.assert_close(logits[:3], logits[3:], atol=1e-5, rtol=0)


# --- each by itself


def test_sinusoidal_is_the_papers_formula():
    expected = [
        [
            math.sin(p / 10000 ** (d / D_MODEL)) if d % 2 == 0 else math.cos(p / 10000 ** ((d - 1) / D_MODEL))
            for d in range(D_MODEL)
        ]
        for p in range(N_CTX)
    ]
    torch.testing.assert_close(encoding("sinusoidal").vectors(N_CTX), torch.tensor(expected), atol=1e-6, rtol=0)


def test_learned_adds_its_own_rows():
    learned = encoding("learned")
    assert torch.equal(learned.vectors(5), learned.table[:5])


def test_rotary_is_the_papers_formula():
    x = torch.randn(N_CTX, 4, generator=torch.Generator().manual_seed(0))
    turned = encoding("rotary").rotate(x)
    for p in range(N_CTX):
        for i in range(2):
            angle = p * 10000 ** (-2 * i / 4)
            a, b = float(x[p, 2 * i]), float(x[p, 2 * i + 1])
            expected = [a * math.cos(angle) - b * math.sin(angle), a * math.sin(angle) + b * math.cos(angle)]
            torch.testing.assert_close(turned[p, 2 * i : 2 * i + 2], torch.tensor(expected), atol=1e-5, rtol=0)


def test_rotary_scores_depend_on_the_distance_only():
    rotary = encoding("rotary", n_ctx=10, d_model=8, n_heads=1)
    generator = torch.Generator().manual_seed(0)
    query, key = torch.randn(8, generator=generator), torch.randn(8, generator=generator)
    scores = rotary.rotate(query.expand(10, 8)) @ rotary.rotate(key.expand(10, 8)).T
    for distance in range(-9, 10):
        diagonal = scores.diagonal(distance)
        torch.testing.assert_close(diagonal, diagonal[:1].expand_as(diagonal), atol=1e-4, rtol=0)
    assert scores.std() > 0.1


def test_rotary_keeps_lengths_and_leaves_position_zero():
    x = torch.randn(2, N_HEADS, N_CTX, 4, generator=torch.Generator().manual_seed(0))
    turned = encoding("rotary").rotate(x)
    torch.testing.assert_close(turned.norm(dim=-1), x.norm(dim=-1))
    assert torch.equal(turned[..., 0, :], x[..., 0, :])


@pytest.mark.parametrize(
    ("n_heads", "slopes"),
    [(4, [1 / 4, 1 / 16, 1 / 64, 1 / 256]), (8, [1 / 2, 1 / 4, 1 / 8, 1 / 16, 1 / 32, 1 / 64, 1 / 128, 1 / 256])],
)
def test_alibi_slopes_are_the_papers(n_heads, slopes):
    bias = encoding("alibi", n_heads=n_heads).bias(N_CTX, N_CTX)
    for head, slope in enumerate(slopes):
        for query in range(N_CTX):
            for key in range(N_CTX):
                assert bias[head, query, key] == -slope * abs(query - key)
    assert torch.equal(encoding("alibi", n_heads=n_heads).bias(7, 7), bias[:, :7, :7])
    assert encoding("alibi", n_heads=n_heads).bias(3, 7).shape == (n_heads, 3, 7)


def test_alibi_is_refused_where_its_table_would_fill_the_memory():
    """Of the longest input, 4,096 positions, four heads have a table of 2²⁶ numbers."""
    task = TaskConfig(length=2048)
    assert RunConfig(task=task, model=ModelConfig(positions="alibi", n_heads=4)).build_task().n_ctx == 4096
    with pytest.raises(ConfigError, match="8 heads and 4,096 positions take 134,217,728, and at most 67,108,864"):
        RunConfig(task=task, model=ModelConfig(positions="alibi", n_heads=8))
    RunConfig(task=task, model=ModelConfig(positions="rotary", n_heads=8))


@pytest.mark.parametrize("nothing", [encoding("none"), NO_POSITIONS], ids=["none", "base"])
def test_none_adds_nothing(nothing):
    x = torch.randn(2, 3, 4, generator=torch.Generator().manual_seed(0))
    assert nothing.vectors(5) is None
    assert nothing.bias(5, 5) is None
    assert nothing.rotate(x) is x
