"""Health: each detector fires on the faults it is for, names the very place, and is silent on every right model."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from transformer import attention, checkpoints, compiled_reverser
from transformer.analysis import health
from transformer.analysis.checkup import Finding
from transformer.compiled import compiled_config
from transformer.config import ModelConfig, RunConfig, TaskConfig, TrainingConfig
from transformer.masks import MASKS
from transformer.model import Transformer, build
from transformer.positions import ENCODINGS
from transformer.tasks import TASKS
from transformer.training.runs import Run

ROOT = Path(__file__).resolve().parents[1]
SHIPPED = ("reverse", "reverse-sinusoidal", "reverse-aligned", "reverse-aligned-causal", "reverse-translate")
TASK_OF = {"decoder": "reverse", "encoder": "reverse-aligned", "encoder-decoder": "reverse-translate"}
SEP, PAD = 10, 11
MASK_MENU = ("auto", *(str(MASKS[name]()) for name in MASKS.names()), "prefix:1", "sliding-window:0")
QUESTION = np.array([3, 1, 4, 1, 5, 9, 2, 6])


def small(architecture: str = "decoder", seed: int = 0, **shape: object) -> tuple[Transformer, RunConfig]:
    config = RunConfig(
        task=TaskConfig(task=TASK_OF[architecture]),
        model=ModelConfig(architecture=architecture, **{"d_model": 32, "d_ff": 48, **shape}),  # type: ignore[arg-type]
        training=TrainingConfig(seed=seed),
    )
    return build(config).eval(), config


def examined(model: Transformer, config: RunConfig, question: np.ndarray | None = QUESTION) -> dict[str, Finding]:
    found = health.examine(model, config.build_task(), question, config.training.seed).findings
    return {check.name: finding for check, finding in found}


def broken(found: dict[str, Finding]) -> set[str]:
    return {name for name, finding in found.items() if finding.holds is False}


def silent(found: dict[str, Finding]) -> set[str]:
    return {name for name, finding in found.items() if finding.holds is None}


# --- right models


@pytest.mark.parametrize("run", [*SHIPPED, "compiled"])
def test_nothing_is_wrong_with_what_is_shipped(run: str) -> None:
    if run == "compiled":
        models = [(compiled_reverser(), compiled_config())]
    else:
        snapshots = Run(ROOT / "checkpoints" / run).snapshots()
        models = [checkpoints.load(snapshots[step]) for step in (min(snapshots), max(snapshots))]
    for model, config in models:
        found = examined(model, config)
        assert broken(found) == set()
        says_at_once = config.task.task == "reverse-aligned"
        assert silent(found) == ({"free"} if says_at_once else set()) | (
            {"probe"} if run == "reverse-aligned" else set()
        )


SHAPES = {
    "mask": st.sampled_from(MASK_MENU),
    "positions": st.sampled_from(ENCODINGS.names()),
    "norm": st.sampled_from(["pre", "post", "none"]),
    "n_layers": st.integers(1, 3),
    "n_heads": st.sampled_from([1, 2, 4]),
    "d_model": st.just(16),
    "d_ff": st.sampled_from([0, 24]),
    "dropout": st.sampled_from([0.0, 0.5]),
    "query_key_gain": st.sampled_from([0.3, 1.0, 10.0]),
}
KINDS = [(task, architecture) for task in TASKS.names() for architecture in TASKS[task].architectures]


@settings(max_examples=15)
@given(st.sampled_from(KINDS), st.integers(1, 9), st.integers(0, 8), st.integers(2, 12), st.fixed_dictionaries(SHAPES))
def test_nothing_is_wrong_with_any_model_before_training(kind, length, shorter, symbols, shape) -> None:
    task, architecture = kind
    config = RunConfig(
        task=TaskConfig(task=task, length=length, min_length=max(1, length - shorter), symbols=symbols),
        model=ModelConfig(architecture=architecture, **shape),
        training=TrainingConfig(seed=length),
    )
    model = build(config).eval()
    before = {name: weight.clone() for name, weight in model.state_dict().items()}
    found = examined(model, config, config.build_task().example)
    assert broken(found) == set()
    assert {"rows", "batch", "finite", "evaluation"}.isdisjoint(silent(found))
    assert all(torch.equal(before[name], weight) for name, weight in model.state_dict().items())
    assert not model.training


# --- seeded faults

Fault = Callable[[Transformer, pytest.MonkeyPatch], object]
LOWEST = torch.finfo(torch.float32).min


def softmax(formula: Callable[[Tensor, Tensor], Tensor]) -> Fault:
    return lambda model, patch: patch.setattr(attention, "masked_softmax", formula)


def mask(formula: Callable[[Tensor], Tensor]) -> Fault:
    return lambda model, patch: patch.setattr(model, "visible", formula(model.visible))


def method(name: str, formula: Callable[..., object]) -> Fault:
    return lambda model, patch: patch.setattr(Transformer, name, formula)


def no_memory_mask(model: Transformer, patch: pytest.MonkeyPatch) -> None:
    right = model._stack
    patch.setattr(
        model,
        "_stack",
        lambda name, resid, mask, memory=None, memory_mask=None, trace=None: right(
            name, resid, mask, memory, None if memory_mask is None else torch.ones_like(memory_mask), trace
        ),
    )


class OverTheBatch(nn.Module):
    """Normalised over batch and positions in place of features: what a first attempt calls batch normalisation."""

    def forward(self, x: Tensor) -> Tensor:
        return (x - x.mean((0, 1))) / (x.std((0, 1)) + 1e-5)


def batch_norm(model: Transformer, patch: pytest.MonkeyPatch) -> None:
    model.final_norm = OverTheBatch().eval()


def encoded_along(place: Callable[[Tensor, Tensor], Tensor]) -> Fault:
    """Positions added to embedded tokens [batch, position, d_model] from a table [place, d_model], in a wrong way."""

    def embed(model: Transformer, tokens: Tensor, trace: object) -> Tensor:
        table = model.positions.vectors(model.n_ctx)
        assert table is not None
        return place(model.embedding(tokens) * math.sqrt(model.config.d_model), table)

    return method("_embed", embed)


def forgetful(model: Transformer, source: Tensor, start: int) -> Tensor:
    """Greedy speech that reads all but the newest of its own tokens."""
    tokens = torch.full_like(source[:, :1], start)
    for _ in range(source.shape[1]):
        said = model(tokens, source)[:, max(0, tokens.shape[1] - 2)].argmax(-1, keepdim=True)
        tokens = torch.cat([tokens, said], dim=1)
    return tokens[:, 1:]


def one_early(model: Transformer, tokens: Tensor, n_more: int) -> Tensor:
    """Greedy speech that reads off the logits one place too early."""
    prompt = tokens.shape[1]
    for _ in range(n_more):
        tokens = torch.cat([tokens, model(tokens)[:, -2:-1].argmax(-1)], dim=1)
    return tokens[:, prompt:]


def always_dropping(model: Transformer, patch: pytest.MonkeyPatch) -> None:
    patch.setattr(nn.Dropout, "forward", lambda self, x: nn.functional.dropout(x, 0.3, training=True))


def poison(name: str, value: float) -> Fault:
    def spoil(model: Transformer, patch: pytest.MonkeyPatch) -> None:
        with torch.no_grad():
            model.state_dict()[name].view(-1)[0] = value

    return spoil


ALIKE = {"padding", "batch"}
READS = {"probe", "padding", "free"}
ANY = {"probe", "padding", "batch", "finite", "evaluation", "free"}
FAULTS: list[tuple[str, str, Fault, set[str]]] = [
    ("masked after the softmax", "decoder", softmax(lambda s, m: s.softmax(-1).masked_fill(~m, 0)), {"rows", *READS}),
    ("masked with -1", "decoder", softmax(lambda s, m: s.masked_fill(~m, -1).softmax(-1)), {"forbidden", *READS}),
    ("masked with -1", "encoder", softmax(lambda s, m: s.masked_fill(~m, -1).softmax(-1)), {"forbidden", "padding"}),
    ("no softmax", "decoder", softmax(lambda s, m: s.masked_fill(~m, 0)), {"rows"}),
    (
        "softmax over the queries",
        "decoder",
        softmax(lambda s, m: s.masked_fill(~m, LOWEST).softmax(-2).masked_fill(~m, 0)),
        {"rows", *READS},
    ),
    (
        "softmax over the batch",
        "decoder",
        softmax(lambda s, m: s.softmax(0).masked_fill(~m, 0)),
        {"rows", "probe", "batch"},
    ),
    ("no mask", "decoder", mask(torch.ones_like), {"forbidden", "probe", "free"}),
    ("mask transposed", "decoder", mask(lambda m: m.T), {"rows", "forbidden", "probe", "free"}),
    ("mask sees one ahead", "decoder", mask(lambda m: m.new_ones(m.shape).tril(1)), {"forbidden", "probe", "free"}),
    (
        "mask sees one ahead",
        "encoder-decoder",
        mask(lambda m: m.new_ones(m.shape).tril(1)),
        {"forbidden", "probe", "free"},
    ),
    ("mask hides self", "decoder", mask(lambda m: m.tril(-1)), {"rows"}),
    (
        "no padding mask",
        "encoder",
        method("_not_padding", lambda self, t: torch.ones_like(t, dtype=torch.bool)[:, None, None]),
        {"forbidden", "padding"},
    ),
    (
        "no padding mask",
        "decoder",
        method("_not_padding", lambda self, t: torch.ones_like(t, dtype=torch.bool)[:, None, None]),
        {"forbidden"},
    ),
    ("memory not masked", "encoder-decoder", no_memory_mask, {"forbidden", "padding"}),
    (
        "heads merged without the transpose",
        "decoder",
        lambda model, patch: patch.setattr(
            attention.MultiHeadAttention, "_merge", lambda self, z: z.reshape(len(z), z.shape[2], -1)
        ),
        READS,
    ),
    ("normalised over the batch", "decoder", batch_norm, {"probe", "padding", "batch", "free"}),
    ("normalised over the batch", "encoder", batch_norm, {"padding", "batch"}),
    ("positions along the batch", "decoder", encoded_along(lambda x, table: x + table[: len(x), None]), {"batch"}),
    (
        "positions from the end",
        "decoder",
        encoded_along(lambda x, table: x + table[: x.shape[1]].flip(0)),
        {"padding", "free"},
    ),
    ("dropout left on", "decoder", lambda model, patch: model.train(), {"evaluation", "free"}),
    (
        "a block left in training mode",
        "encoder",
        lambda model, patch: model.encoder[0].train(),
        {"evaluation", "padding", "batch"},
    ),
    ("dropout whatever the mode", "decoder", always_dropping, ANY - {"finite"}),
    ("NaN in a weight", "decoder", poison("unembedding.bias", math.nan), ANY),
    ("NaN in the first layer", "decoder", poison("decoder.0.self_attention.value.bias", math.nan), {"rows", *ANY}),
    (
        "infinite weight",
        "encoder",
        poison("unembedding.weight", math.inf),
        {"padding", "batch", "finite", "evaluation"},
    ),
    ("speaks one place early", "decoder", method("continue_greedily", one_early), {"free"}),
    ("forgets its newest token", "encoder-decoder", method("greedy", forgetful), {"free"}),
]


@pytest.mark.parametrize(("name", "architecture", "fault", "fires"), FAULTS, ids=[f"{f[0]}, {f[1]}" for f in FAULTS])
def test_a_fault_fires_its_detectors_and_no_others(name, architecture, fault, fires, monkeypatch) -> None:
    model, config = small(architecture, dropout=0.5, positions="learned")
    assert broken(examined(model, config)) == set()
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        fault(model, monkeypatch)
        assert broken(examined(model, config)) == fires


def test_every_detector_has_a_fault() -> None:
    assert set().union(*(fires for *_, fires in FAULTS)) == {check.name for check in health.CHECKS}
