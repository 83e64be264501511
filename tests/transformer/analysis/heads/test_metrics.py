"""What heads do over many sequences: counted again by hand, and heads whose weights say what they look at."""

import itertools
import math

import numpy as np
import pytest
import torch

from tests.kit.numbers.leaves import leaves
from tests.kit.pages import laid_out
from transformer.analysis import batches
from transformer.analysis.batches import in_parts, questions
from transformer.analysis.findings import Head
from transformer.analysis.heads.measure import (
    heads_of,
    measure_heads,
    measure_removal,
    removal_takes_long,
    sequences_for,
)
from transformer.analysis.heads.metrics import METRICS, MIXED, NAMES, Estimate, HeadMetrics
from transformer.analysis.heads.survey import survey
from transformer.compiled import SHARPNESS, compiled_config, compiled_reverser
from transformer.config import ModelConfig, RunConfig, TaskConfig, TrainingConfig
from transformer.model import build
from transformer.observation import observe
from transformer.trace import only


def row_metrics(row: np.ndarray, seen: list[int], query: int, answers: int | None, across: bool) -> dict[str, float]:
    """What one query's row says, key by key; nothing where it has no say."""
    if len(seen) < 2:
        return {}
    found = {
        "uniform": sum(min(row[key], 1 / len(seen)) for key in seen),
        "entropy": -sum(row[key] * math.log2(row[key]) for key in seen if row[key] > 0),
    }
    if answers in seen:
        found["expected"] = row[answers]
    if across:
        found["first"] = row[0]
        return found
    found["distance"] = sum(row[key] * abs(key - query) for key in seen)
    if query - 1 in seen:
        found["previous"] = row[query - 1]
    if query in seen:
        found["self"] = row[query]
    if query >= 2 and 0 in seen:
        found["first"] = row[0]
    return found


def drawn(config: RunConfig, sequences: int, length: int):
    """The sequences of a measurement, laid out by hand."""
    x = np.random.default_rng([0, 2]).integers(0, 10, (sequences, length))
    tokens, source, targets = laid_out(config, x)
    return tokens, source, targets[:, -length:]


def by_hand(config: RunConfig, model, sequences: int, length: int) -> dict[Head, dict[str, np.ndarray]]:
    """Each head's metrics sequence by sequence, in loops."""
    task = config.task.task
    tokens, source, _ = drawn(config, sequences, length)
    seen = observe(model, tokens, source=source)
    found: dict[Head, dict[str, np.ndarray]] = {}
    for site in seen.attentions():
        pattern = seen[f"{site}.pattern"].double().numpy()
        n_query, n_key = pattern.shape[2:]
        across = site.endswith("cross_attention")
        visible = np.broadcast_to(seen[f"{site}.mask"][:, 0].numpy(), (sequences, n_query, n_key))
        works = across if task == "reverse-translate" else True
        for head in range(pattern.shape[1]):
            values = {name: np.full(sequences, np.nan) for name in METRICS if name != "drop"}
            for s in range(sequences):
                rows: dict[str, list[float]] = {}
                for query in range(n_query):
                    place = query - length if task == "reverse" else query  # of which answer, from 0
                    answers = length - 1 - place if works and place >= 0 else None
                    keys = [int(key) for key in np.flatnonzero(visible[s, query])]
                    for name, value in row_metrics(pattern[s, head, query], keys, query, answers, across).items():
                        rows.setdefault(name, []).append(value)
                for name, each in rows.items():
                    values[name][s] = sum(each) / len(each)
            found[Head(site, head)] = values
    return found


def described(task: str, length: int, **model) -> RunConfig:
    return RunConfig(task=TaskConfig(task=task, length=length), model=ModelConfig(**model))


MODELS = [
    described("reverse", 4, n_layers=2, n_heads=2, d_model=16, positions="rotary"),
    described("reverse", 3, n_heads=2, d_model=8, d_ff=0, norm="none", mask="full"),
    described("reverse", 4, n_heads=3, d_model=12, mask="sliding-window:1"),
    described("reverse-aligned", 5, n_heads=2, d_model=8, positions="alibi"),
    described("reverse-aligned", 4, architecture="decoder", n_heads=2, d_model=8),
    described("reverse-translate", 4, n_heads=2, d_model=8, norm="post"),
]


@pytest.mark.parametrize(
    ("config", "shorter"),
    [(config, i % 2) for i, config in enumerate(MODELS)],
    ids=[f"{config.task.task} {config.model.mask}" for config in MODELS],
)
def test_every_number_is_what_loops_count(config: RunConfig, shorter: int) -> None:
    """Where a question has no meaning there is none: places of two sequences have no distance."""
    model, task, length = build(config).eval(), config.build_task(), config.task.length - shorter
    found = measure_heads(model, task, sequences=8, length=length)
    expected = by_hand(config, model, 8, length)
    assert found.heads == heads_of(model) == tuple(expected)
    assert found.sequences == 8
    for i, head in enumerate(found.heads):
        for name, values in expected[head].items():
            estimate = found.estimates[name]
            measured = (estimate.low[i], estimate.mean[i], estimate.high[i])
            if np.isnan(values).all():
                assert np.isnan(measured).all(), (head, name)
                assert found.asked[name][i] == 0
                continue
            mean, half = values.mean(), 1.959964 * values.std(ddof=1) / math.sqrt(8)
            most = 1 if METRICS[name].unit == "share" else math.inf
            assert measured == pytest.approx((max(mean - half, 0), mean, min(mean + half, most)), abs=1e-5), (
                head,
                name,
            )


def test_an_even_head_gets_what_evenness_gives() -> None:
    """Causal, four symbols: the query at place q sees q + 1 keys, so that each gets 1 / (q + 1)."""
    config = described("reverse", 4, n_layers=1, n_heads=2, d_model=8)
    found = measure_heads(build(config).eval(), config.build_task(), sequences=3)
    sees = np.arange(2, 9)
    for name, value in {
        "expected": (1 / np.arange(5, 9)).mean(),
        "previous": (1 / sees).mean(),
        "self": (1 / sees).mean(),
        "first": (1 / sees[1:]).mean(),
        "uniform": 1.0,
        "entropy": np.log2(sees).mean(),
        "distance": ((sees - 1) / 2).mean(),
    }.items():
        assert found.even[name] == pytest.approx([value, value], abs=1e-6), name
    assert [found.asked[name].tolist() for name in ("expected", "previous", "first")] == [[4, 4], [7, 7], [6, 6]]


# --- intervals
def test_an_interval_covers_the_truth_about_as_often_as_it_says() -> None:
    rng = np.random.default_rng(1)
    estimate = Estimate.of(rng.beta(2, 5, (64, 2000)), METRICS["first"])
    covered = (estimate.low <= 2 / 7) & (estimate.high >= 2 / 7)
    assert 0.93 < covered.mean() < 0.97


def test_an_interval_stays_within_its_bounds_and_needs_two_sequences() -> None:
    values = np.array([[1.0, 0.0, math.nan, math.nan, 0.5], [0.9, 0.1, math.nan, 0.3, 0.5]])
    share = Estimate.of(values, METRICS["self"])
    assert share.high[0] == 1
    assert share.low[1] == 0
    assert np.isnan([share.mean[2], share.low[2], share.high[2], share.low[3], share.high[3]]).all()
    assert share.mean[3] == 0.3
    assert (share.low[4], share.mean[4], share.high[4]) == (0.5, 0.5, 0.5)
    assert Estimate.of(-values[:, :1], METRICS["drop"]).low[0] == -1
    assert (share.half[:2] >= (share.high - share.low)[:2] / 2).all()


# --- names: heads whose weights say where each query looks
def looker(config: RunConfig, wishes: dict[int, list[int]]):
    """One head, written by hand like the compiled reverser: the query at a place looks at the keys it wishes for.

    All other weights are zero, but that every place is told in the first registers of the stream.
    """
    model, width = build(config), config.build_task().n_ctx
    for parameter in model.parameters():
        parameter.requires_grad_(False).zero_()
    model.positions.get_parameter("table")[:, :width] = torch.eye(width)
    head = model.decoder[0].self_attention
    head.key.weight[:width, :width] = torch.eye(width)
    for query, keys in wishes.items():
        for key in keys:
            head.query.weight[key, query] = SHARPNESS * config.model.d_model**0.5
    return model.eval()


def shape(task: str = "reverse", length: int = 4, **model) -> RunConfig:
    sizes = {"n_layers": 1, "n_heads": 1, "d_model": 16, "d_ff": 0, "norm": "none", "positions": "learned"}
    return described(task, length, **(sizes | model))


PLACES = range(8)
MIRROR = {query: [7 - query] for query in range(4, 8)}


@pytest.mark.parametrize(
    ("wishes", "name"),
    [
        ({q: [q - 1] for q in PLACES if q}, "previous"),
        ({q: [q] for q in PLACES}, "self"),
        ({q: [0] for q in PLACES}, "first"),
        ({}, "uniform"),
        (MIRROR, "expected"),
        (MIRROR | {q: [q] for q in range(4)}, "expected"),
        (MIRROR | {q: [0] for q in range(4)}, "expected"),
        ({q: [q - 1, q] for q in PLACES if q}, MIXED),
        ({q: [q - q % 2] for q in PLACES}, MIXED),
        ({q: [q if q % 2 else 0] for q in PLACES}, MIXED),
        ({q: [7 - q, q] for q in range(4, 8)}, MIXED),
        ({q: [7 - q, q - 1] for q in range(5, 8)}, MIXED),
    ],
)
def test_a_head_is_called_what_it_does(wishes: dict[int, list[int]], name: str) -> None:
    config = shape()
    found = measure_heads(looker(config, wishes), config.build_task(), sequences=8)
    assert found.name(found.heads[0]) == name


def test_where_things_coincide_nothing_has_a_name_and_what_nobody_can_look_at_is_no_rival() -> None:
    """After one symbol the expected key is the token before; in a narrow window the first key is always another's."""
    for config, wishes, name in (
        (shape(length=1), {1: [0]}, MIXED),
        (shape(mask="sliding-window:1"), {q: [q - 1] for q in PLACES if q}, "previous"),
    ):
        found = measure_heads(looker(config, wishes), config.build_task(), sequences=4)
        assert found.estimates["previous"].mean.tolist() == [pytest.approx(1)]
        assert math.isnan(found.estimates["first"].mean[0])
        assert found.name(found.heads[0]) == name


def crafted(shares: dict[str, tuple[float, float]], asked: dict[str, int]) -> HeadMetrics:
    """One head whose shares have these intervals; what is not given is 0, and asked of seven queries."""
    ends = {name: np.array(shares.get(name, (0.0, 0.0))) for name in NAMES}
    return HeadMetrics(
        heads=(Head("decoder.0.self_attention", 0),),
        sequences=9,
        estimates={name: Estimate(each.mean(keepdims=True), each[:1], each[1:], 9) for name, each in ends.items()},
        even={name: np.array([0.1]) for name in NAMES},
        asked={name: np.array([float(asked.get(name, 7))]) for name in NAMES},
        alike=np.ones((1, 1)),
    )


@pytest.mark.parametrize(
    ("shares", "asked", "name"),
    [
        ({"self": (0.51, 0.6)}, {}, "self"),
        ({"self": (0.49, 0.6)}, {}, MIXED),
        ({"uniform": (0.89, 0.92)}, {}, MIXED),
        ({"uniform": (0.91, 0.92)}, {}, "uniform"),
        ({"expected": (0.95, 1.0), "previous": (0.95, 1.0)}, {}, MIXED),
        ({"expected": (0.9, 1.0), "previous": (0.6, 0.71)}, {}, MIXED),
        ({"expected": (0.9, 1.0), "previous": (0.6, 0.69)}, {}, "expected"),
        ({"expected": (0.9, 1.0), "previous": (0.9, 1.0)}, {"expected": 1}, "previous"),
        ({"expected": (0.9, 1.0)}, {"expected": 1}, MIXED),
        ({"first": (0.9, 1.0), "previous": (math.nan, math.nan)}, {"previous": 0}, "first"),
        ({"first": (math.nan, math.nan)}, {}, MIXED),
    ],
)
def test_a_name_needs_its_margin(shares: dict[str, tuple[float, float]], asked: dict[str, int], name: str) -> None:
    found = crafted(shares, asked)
    assert found.name(found.heads[0]) == name


@pytest.mark.parametrize(
    ("task", "seed"), [("reverse", 0), ("reverse-aligned", 1), ("reverse-translate", 0), ("sort", 1)]
)
def test_an_untrained_model_has_no_named_heads(task: str, seed: int) -> None:
    config = RunConfig(task=TaskConfig(task=task), training=TrainingConfig(seed=seed))
    found = measure_heads(build(config).eval(), config.build_task(), sequences=64)
    assert {found.name(head) for head in found.heads} == {MIXED}


@pytest.mark.parametrize(
    "config",
    [shape(mask="sliding-window:0"), shape("reverse-aligned", length=1), shape("reverse-translate", length=1)],
    ids=lambda config: config.task.task,
)
def test_who_has_no_choice_has_no_numbers(config: RunConfig) -> None:
    found = measure_heads(build(config).eval(), config.build_task(), sequences=4)
    for name, estimate in found.estimates.items():
        assert np.isnan(estimate.mean).all(), name
    assert np.isnan(found.alike).all()
    assert found.likenesses() == {}
    assert {found.name(head) for head in found.heads} == {MIXED}


# --- removal
def test_without_its_head_the_compiled_reverser_guesses() -> None:
    """It then reads nothing, every logit is 0, and it says the first symbol: right wherever that is asked for."""
    model, task = compiled_reverser(), compiled_config().build_task()
    found, head = measure_removal(model, task, sequences=100), measure_heads(model, task)
    drops = (np.random.default_rng([0, 2]).integers(0, 10, (100, 8)) != 0).mean(axis=1)
    assert found.mean.tolist() == [pytest.approx(drops.mean())]
    assert found.high[0] - found.mean[0] == pytest.approx(1.959964 * drops.std(ddof=1) / 10)
    assert head.estimates["expected"].mean.tolist() == [1]
    assert head.name(head.heads[0]) == "expected"
    assert head.sequences == 256


@pytest.mark.parametrize("config", [MODELS[0], MODELS[3], MODELS[5]], ids=lambda config: config.task.task)
@torch.no_grad()
def test_to_remove_a_head_is_to_clear_what_it_writes(config: RunConfig) -> None:
    """The same, by weights: the head's columns of the output matrix set to zero."""
    model, task, length = build(config).eval(), config.build_task(), config.task.length
    tokens, source, answers = drawn(config, 50, length)

    def right() -> np.ndarray:
        return (model(tokens, source).argmax(dim=-1).numpy()[:, -length:] == answers).mean(axis=1)

    before, found = right(), measure_removal(model, task, sequences=50)
    assert found.sequences == 50
    for i, head in enumerate(heads_of(model)):
        module = model.get_submodule(head.site)
        kept = module.out.weight.clone()
        module.out.weight[:, head.index * module.d_head : (head.index + 1) * module.d_head] = 0
        drops = before - right()
        module.out.weight[:] = kept
        assert found.mean[i] == pytest.approx(drops.mean(), abs=1e-9), head
        assert found.half[i] == pytest.approx(1.959964 * drops.std(ddof=1) / math.sqrt(50), abs=1e-9), head


def test_a_large_model_is_asked_about_first() -> None:
    small, large = RunConfig(), RunConfig(model=ModelConfig(n_layers=12, n_heads=12, d_model=144))
    assert not removal_takes_long(build(small), small.build_task())
    assert removal_takes_long(build(large), large.build_task())


# --- likeness
@pytest.mark.parametrize("config", [MODELS[0], MODELS[2], MODELS[5]], ids=lambda config: config.task.task)
def test_likeness_is_the_mean_cosine_of_rows(config: RunConfig) -> None:
    model, task = build(config).eval(), config.build_task()
    found = measure_heads(model, task, sequences=3)
    tokens, source, _ = drawn(config, 3, config.task.length)
    seen = observe(model, tokens, source=source)
    for (i, one), (j, other) in itertools.product(enumerate(found.heads), repeat=2):
        if one.kind != other.kind:
            assert math.isnan(found.alike[i, j])
            continue
        a, b = (seen[f"{head.site}.pattern"][:, head.index].double().numpy() for head in (one, other))
        choice = seen[f"{one.site}.mask"].expand(3, 1, *a.shape[1:])[:, 0].sum(-1).numpy() > 1
        cosines = [p @ q / math.sqrt((p @ p) * (q @ q)) for p, q in zip(a[choice], b[choice], strict=True)]
        assert found.alike[i, j] == pytest.approx(np.mean(cosines), abs=1e-5)
    pairs = {(i, j): found.alike[i, j] for i, j in np.ndindex(*found.alike.shape) if i < j and found.alike[i, j] >= 0}
    assert found.likenesses() == {(found.heads[i], found.heads[j]): alike for (i, j), alike in pairs.items()}


def test_a_lone_head_is_like_no_other() -> None:
    found = measure_heads(compiled_reverser(4), compiled_config(4).build_task(), sequences=4)
    assert found.likenesses() == {}
    assert found.alike.tolist() == [[pytest.approx(1)]]


# --- parts
@pytest.mark.parametrize("config", [MODELS[0], MODELS[5]], ids=lambda config: config.task.task)
def test_in_parts_it_is_the_same(config: RunConfig, monkeypatch: pytest.MonkeyPatch) -> None:
    model, task = build(config).eval(), config.build_task()
    one, several = [], []
    for found, held in ((one, batches.HELD), (several, 50_000)):
        monkeypatch.setattr(batches, "HELD", held)
        found += [measure(model, task, sequences=10) for measure in (measure_heads, survey, measure_removal)]
    parts = in_parts(model, questions(task, 10, config.task.length, 0)[0], lambda part, _: part, keep=("*.pattern",))
    assert 1 < len(parts) <= 10
    expected = dict(leaves(one))
    for name, value in leaves(several):
        np.testing.assert_allclose(value, expected[name], atol=1e-6, err_msg=name)


def test_no_part_holds_more_than_it_may(monkeypatch: pytest.MonkeyPatch) -> None:
    config = described("reverse", 32, n_layers=3, n_heads=4, d_model=16)
    model, task = build(config).eval(), config.build_task()
    monkeypatch.setattr(batches, "HELD", 2_000_000)
    batch, _ = questions(task, 40, 32, 0)

    def weigh(part: slice, seen) -> tuple[int, int]:
        return sum(value.nbytes for value in seen.sites.values()), len(seen.tokens)

    weights = in_parts(model, batch, weigh, keep=("*.pattern", "*.mask"))
    assert sum(sequences for _, sequences in weights) == 40
    assert all(500_000 < held <= 2_000_000 for held, sequences in weights[:-1])


def test_only_what_is_asked_for_is_kept() -> None:
    model, tokens = build(MODELS[0]).eval(), torch.arange(8)[None]
    everything, patterns = observe(model, tokens), observe(model, tokens, remember=only("*.pattern"))
    assert set(patterns.sites) == {site for site in everything.sites if site.endswith(".pattern")}
    assert len(patterns.sites) == 2
    assert all(torch.equal(value, everything[site]) for site, value in patterns.sites.items())
    nothing = observe(model, tokens, remember=only())
    assert nothing.sites == {}
    assert torch.equal(nothing.logits, everything.logits)


def test_long_sequences_are_fewer() -> None:
    lengths = {8: 256, 16: 256, 64: 64, 256: 32}
    assert {length: sequences_for(described("reverse", length).build_task()) for length in lengths} == lengths
