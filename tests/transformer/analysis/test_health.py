"""Health: each detector fires on the faults it is for, names the very place, and is silent on every right model."""

import math
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from transformer import attention, checkpoints, compiled_reverser
from transformer.analysis.health import case, examine
from transformer.analysis.health.case import Finding, HealthError
from transformer.analysis.health.checks import checks
from transformer.compiled import compiled_config
from transformer.config import ModelConfig, RunConfig, TaskConfig, TrainingConfig
from transformer.masks import MASKS
from transformer.model import Transformer, build
from transformer.positions import ENCODINGS, PositionalEncoding
from transformer.tasks import TASKS
from transformer.training.runs import Run

ROOT = Path(__file__).resolve().parents[3]
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
    found = examine.examine(model, config.build_task(), question, config.training.seed).findings
    return {check.name: finding for check, finding in found}


def broken(found: dict[str, Finding]) -> set[str]:
    return {name for name, finding in found.items() if finding.holds is False}


def silent(found: dict[str, Finding]) -> set[str]:
    return {name for name, finding in found.items() if finding.holds is None}


@pytest.mark.parametrize("run", [*SHIPPED, "compiled"])
def test_nothing_is_wrong_with_what_is_shipped(run: str) -> None:
    snapshots = {} if run == "compiled" else Run(ROOT / "checkpoints" / run).snapshots()
    models = [checkpoints.load(snapshots[step]) for step in {min(snapshots), max(snapshots)}] if snapshots else []
    for model, config in models or [(compiled_reverser(), compiled_config())]:
        found = examined(model, config)
        assert broken(found) == set()
        cannot_be_asked = {"free"} if config.task.task == "reverse-aligned" else set()
        assert silent(found) == cannot_be_asked | ({"probe"} if run == "reverse-aligned" else set())


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
    shortest = max(1, length - shorter) if TASKS[task].may_vary() else None
    config = RunConfig(
        task=TaskConfig(task=task, length=length, min_length=shortest, symbols=symbols),
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

    def embed(model: Transformer, tokens: Tensor, positions: PositionalEncoding, trace: object) -> Tensor:
        table = positions.vectors(model.n_ctx)
        assert table is not None
        return place(model.embedding(tokens) * math.sqrt(model.config.d_model), table)

    return method("_embed", embed)


def forgetful(model: Transformer, source: Tensor, start: int, n_more: int) -> Tensor:
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


def merged_as_they_lie(model: Transformer, patch: pytest.MonkeyPatch) -> None:
    patch.setattr(attention.MultiHeadAttention, "_merge", lambda self, z: z.reshape(len(z), z.shape[2], -1))


def poison(name: str, value: float) -> Fault:
    def spoil(model: Transformer, patch: pytest.MonkeyPatch) -> None:
        with torch.no_grad():
            model.state_dict()[name].view(-1)[0] = value

    return spoil


READS = {"probe", "padding", "free"}
ANY = {"probe", "padding", "batch", "finite", "evaluation", "free"}
SEES_PADDING = method("_not_padding", lambda self, t: torch.ones_like(t, dtype=torch.bool)[:, None, None])
SEES_ONE_AHEAD = mask(lambda m: m.new_ones(m.shape).tril(1))
MASKED_LOW = softmax(lambda s, m: s.masked_fill(~m, -1).softmax(-1))
OVER_QUERIES = softmax(lambda s, m: s.masked_fill(~m, LOWEST).softmax(-2).masked_fill(~m, 0))
OVER_BATCH = softmax(lambda s, m: s.softmax(0).masked_fill(~m, 0))
FROM_THE_END = encoded_along(lambda x, table: x + table[: x.shape[1]].flip(0))
SEEN = {"forbidden", "probe", "free"}
FAULTS: list[tuple[str, str, Fault, set[str]]] = [
    ("masked after the softmax", "decoder", softmax(lambda s, m: s.softmax(-1).masked_fill(~m, 0)), {"rows", *READS}),
    ("masked with -1", "decoder", MASKED_LOW, {"forbidden", *READS}),
    ("masked with -1", "encoder", MASKED_LOW, {"forbidden", "padding"}),
    ("no softmax", "decoder", softmax(lambda s, m: s.masked_fill(~m, 0)), {"rows"}),
    ("softmax over the queries", "decoder", OVER_QUERIES, {"rows", *READS}),
    ("softmax over the batch", "decoder", OVER_BATCH, {"rows", "probe", "batch"}),
    ("no mask", "decoder", mask(torch.ones_like), SEEN),
    ("mask transposed", "decoder", mask(lambda m: m.T), {"rows", *SEEN}),
    ("mask sees one ahead", "decoder", SEES_ONE_AHEAD, SEEN),
    ("mask sees one ahead", "encoder-decoder", SEES_ONE_AHEAD, SEEN),
    ("mask hides self", "decoder", mask(lambda m: m.tril(-1)), {"rows"}),
    ("no padding mask", "encoder", SEES_PADDING, {"forbidden", "padding"}),
    ("no padding mask", "decoder", SEES_PADDING, {"forbidden"}),
    ("memory not masked", "encoder-decoder", no_memory_mask, {"forbidden", "padding"}),
    ("heads merged without the transpose", "decoder", merged_as_they_lie, READS),
    ("normalised over the batch", "decoder", batch_norm, {"probe", "padding", "batch", "free"}),
    ("normalised over the batch", "encoder", batch_norm, {"padding", "batch"}),
    ("positions along the batch", "decoder", encoded_along(lambda x, table: x + table[: len(x), None]), {"batch"}),
    ("positions from the end", "decoder", FROM_THE_END, {"padding", "free"}),
    ("dropout left on", "decoder", lambda model, _: model.train(), {"evaluation", "free"}),
    ("a block in training", "encoder", lambda model, _: model.encoder[0].train(), {"evaluation", "padding", "batch"}),
    ("dropout whatever the mode", "decoder", always_dropping, ANY - {"finite"}),
    ("NaN in a weight", "decoder", poison("unembedding.bias", math.nan), ANY),
    ("NaN in the first layer", "decoder", poison("decoder.0.self_attention.value.bias", math.nan), {"rows", *ANY}),
    ("infinite weight", "encoder", poison("unembedding.weight", math.inf), ANY - {"probe", "free"}),
    ("speaks one place early", "decoder", method("continue_greedily", one_early), {"free"}),
    ("forgets its newest token", "encoder-decoder", method("greedy", forgetful), {"free"}),
]


@cache
def fired_by(architecture: str) -> set[str]:
    """The detectors that fire on a right model."""
    return broken(examined(*small(architecture, dropout=0.5, positions="learned")))


@pytest.mark.daily(2)
@pytest.mark.parametrize(("name", "architecture", "fault", "fires"), FAULTS, ids=[f"{f[0]}, {f[1]}" for f in FAULTS])
def test_a_fault_fires_its_detectors_and_no_others(name, architecture, fault, fires, monkeypatch) -> None:
    assert fired_by(architecture) == set()
    model, config = small(architecture, dropout=0.5, positions="learned")
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        fault(model, monkeypatch)
        assert broken(examined(model, config)) == fires


def test_every_detector_has_a_fault() -> None:
    assert set().union(*(fires for *_, fires in FAULTS)) == {check.name for check in checks()}


def pierced(visible: Tensor) -> Tensor:
    """A mask with one hole: query 2 sees key 9."""
    hole = visible.clone()
    hole[2, 9] = True
    return hole


def laid_out(seed: int) -> Tensor:
    """The whole sequences of the check on "reverse", by hand: the question first, the others drawn."""
    x = np.random.default_rng([seed, 3]).integers(0, 10, (8, 8))
    x[0] = QUESTION
    return torch.tensor(np.hstack([x, np.full((8, 1), SEP), x[:, :0:-1]]))


def test_the_worst_row_is_named_with_its_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    model, config = small(n_layers=1)
    right = attention.masked_softmax

    def generous(scores: Tensor, mask: Tensor) -> Tensor:
        pattern = right(scores, mask).clone()
        pattern[0, 2, 3] = 0.0
        pattern[0, 2, 3, :4] = torch.tensor([0.5, 0.25, 0.5, 0.25])
        return pattern

    monkeypatch.setattr(attention, "masked_softmax", generous)
    found = examined(model, config)["rows"]
    assert found.worst == 0.5
    assert "head 0.2, sequence 1, query “1” at 4: its weights sum to 1.5" in found.sentence
    assert found.table["weight"] == (0.5, 0.25, 0.5, 0.25, *12 * [0.0])
    assert found.table["key"] == tuple(f"“{t}” at {i}" for i, t in enumerate([*"31415926", "SEP", *"6295141"], start=1))


def test_what_is_read_through_a_hole_in_the_mask_is_the_evidence(monkeypatch: pytest.MonkeyPatch) -> None:
    model, config = small(n_layers=1, n_heads=1, norm="none")
    mask(pierced)(model, monkeypatch)
    found = examined(model, config)
    # The one query that may look ahead, by hand: sequences cut to these lengths, embeddings, projections, softmax.
    tokens, leaks = laid_out(0), []
    attend, table = model.decoder[0].self_attention, model.positions.table
    for row, n in enumerate((8, 7, 7, 6, 6, 5, 5)):
        x = tokens[row, :n]
        read = torch.cat([x, torch.tensor([SEP]), x.flip(0)])[:-1]
        stream = model.embedding.weight[read] * math.sqrt(32) + table[: 2 * n]
        scores = (attend.key.weight @ stream.T).T @ (attend.query.weight @ stream[2]) / math.sqrt(32)
        leaks.append(scores[[0, 1, 2, 9]].softmax(0)[3].item())
    worst = int(np.argmax(leaks))
    assert found["forbidden"].worst == pytest.approx(leaks[worst], rel=1e-4)
    assert f"head 0.0, sequence {worst + 1}, query “{int(tokens[worst, 2])}” at 3" in found["forbidden"].sentence
    assert found["forbidden"].table["may see"] == ("yes",) * 3 + ("no",) * 13
    assert found["forbidden"].table["weight"][9] == pytest.approx(leaks[worst], rel=1e-4)
    # The probe: token 10 changed, output 3 moves; no other output out of reach does.
    moved = found["probe"].table["their logits moved by"]
    assert [i for i, change in enumerate(moved) if change] == [8]  # token 1 can reach everything and is not tried
    with torch.no_grad():
        changed = tokens[:1].clone()  # the ninth that is tried: of eight sequences the first again
        changed[0, 9] = (changed[0, 9] + 1) % 10
        apart = (model(tokens[:1]) - model(changed))[0, 2].abs().max()
    assert moved[8] == pytest.approx(float(apart), rel=1e-4)
    assert found["probe"].worst == moved[8]
    assert "changing token 10 moved the logits of output 3" in found["probe"].sentence
    assert found["probe"].table["outputs out of reach"] == tuple(range(1, 16))


def test_padding_and_company_are_measured_in_logits(monkeypatch: pytest.MonkeyPatch) -> None:
    model, config = small()
    FROM_THE_END(model, monkeypatch)
    tokens = laid_out(0)[:, :8]
    with torch.no_grad():
        apart = model(tokens) - model(torch.nn.functional.pad(tokens, (0, 8), value=PAD))[:, :8]
    found = examined(model, config)["padding"]
    np.testing.assert_allclose(found.table["logits differ by"], apart.abs().amax((0, 2)), rtol=1e-3)
    assert found.worst == pytest.approx(float(apart.abs().max()), rel=1e-4)
    assert "8 sequences of 8 tokens, with and without 8 of padding" in found.sentence


def test_what_it_says_early_is_shown_beside_what_it_should_say(monkeypatch: pytest.MonkeyPatch) -> None:
    model, config = checkpoints.load(Run(ROOT / "checkpoints" / "reverse").snapshots()[40])
    right = examined(model, config)["free"]
    told = re.search(r"sequence (\d)", right.sentence)
    assert told  # which of them rounding moves most is another on another processor
    text = laid_out(config.training.seed)[int(told[1]) - 1, :9].tolist()
    for _ in range(8):
        with torch.no_grad():
            text.append(int(model(torch.tensor([text]))[0, -1].argmax()))
    assert right.table["said by itself"] == right.table["likeliest in one pass"] == tuple(map(str, text[9:]))
    monkeypatch.setattr(Transformer, "continue_greedily", one_early)
    found = examined(model, config)["free"]
    tokens = laid_out(config.training.seed)
    said = one_early(model, tokens[:, :9], 8)
    with torch.no_grad():
        at_once = model(torch.cat([tokens[:, :9], said[:, :7]], dim=1))[:, 8:]
    short = at_once.amax(-1) - at_once.gather(-1, said[..., None])[..., 0]
    assert found.worst == pytest.approx(float(short.max()), rel=1e-4)
    row = int(short.amax(1).argmax())
    assert found.table["said by itself"] == tuple(config.build_task().vocabulary[i] for i in said[row])
    assert f"sequence {row + 1}" in found.sentence


def test_each_number_that_is_none_is_counted() -> None:
    model, config = small("encoder")
    with torch.no_grad():
        model.unembedding.weight[:3, 0] = math.nan
        model.unembedding.weight[3, 0] = -math.inf
    found = examined(model, config)["finite"]
    assert found.table["tensor"][0] == "weight unembedding.weight"
    assert (found.table["not finite"][0], found.table["of"][0]) == (4, 12 * 32)


def test_rounding_stays_well_below_what_is_allowed_it() -> None:
    model, config = checkpoints.load(Run(ROOT / "checkpoints" / "reverse-translate").snapshots()[430])
    for finding in examined(model, config).values():
        assert finding.worst <= finding.tolerance / 20


@pytest.mark.daily(1)
@pytest.mark.parametrize(
    ("length", "shape"),
    [
        (8, {}),
        (256, {"n_layers": 12, "n_heads": 12, "d_model": 144, "d_ff": 0}),
        (64, {"n_layers": 4, "d_model": 512, "d_ff": 2048}),
    ],
)
def test_the_work_is_bounded_whatever_the_model(length: int, shape: dict[str, int]) -> None:
    config = RunConfig(task=TaskConfig(length=length), model=ModelConfig(**shape))  # type: ignore[arg-type]
    model, read = build(config).eval(), []
    model.register_forward_pre_hook(lambda _, given: read.append(given[0].numel()))
    found = examine.examine(model, config.build_task(), config.build_task().example)
    assert found.short == (length > 8)
    assert not found.broken
    weights = sum(weight.numel() for weight in model.parameters())
    assert sum(read) * weights <= 2 * case.WORK
    assert len(read) <= case.PASSES


def test_a_model_too_large_is_not_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(case, "MOST_WEIGHTS", 1000)
    with pytest.raises(HealthError, match="weights would take too long here"):
        examined(*small())
