"""What a mask lets be known: reachability against a search for paths, ceilings against the measured table."""

import itertools
import math
from collections import Counter

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st

from transformer import masks
from transformer.analysis.accuracy.ceilings import ceiling, ceiling_of_mask, honest_ceiling, reachable
from transformer.config import ModelConfig, RunConfig, TaskConfig
from transformer.tasks import TASKS
from transformer.tasks.sort import Sort

# --- reachability


def matrices(n_query, n_key=None):
    return st.lists(st.booleans(), min_size=n_query * (n_key or n_query), max_size=n_query * (n_key or n_query)).map(
        lambda cells: np.array(cells).reshape(n_query, n_key or n_query)
    )


def searched(target, n_layers, mask, cross=None, source=None):
    """Every place that information may start from, found by walking every path backwards, layer by layer.

    At each layer it came along the mask or stayed; from the decoder it may have come from the encoder's output, which
    is `n_layers` of the source's own mask away from the source.
    """
    found, frontier = set(), {("token", target, n_layers)}
    while frontier:
        kind, place, layers = frontier.pop()
        if layers == 0:
            found.add((kind, place))
            continue
        own = mask if kind == "token" else source
        for other in range(len(own)):
            if other == place or own[place][other]:
                frontier.add((kind, other, layers - 1))
        if kind == "token" and cross is not None:
            frontier |= {("source", other, n_layers) for other in range(cross.shape[1]) if cross[place][other]}
    return found


@hypothesis.given(st.integers(1, 6).flatmap(matrices), st.integers(1, 4))
def test_reachable_is_what_a_search_for_paths_finds(mask, n_layers):
    found = reachable(mask, n_layers)
    for target in range(len(mask)):
        assert {("token", slot) for slot in np.flatnonzero(found[target])} == searched(target, n_layers, mask)


@hypothesis.given(st.data(), st.integers(1, 4), st.integers(1, 4), st.integers(1, 3))
def test_reachable_through_an_encoder_is_what_a_search_for_paths_finds(data, n_tokens, n_source, n_layers):
    mask, source = data.draw(matrices(n_tokens)), data.draw(matrices(n_source))
    cross = data.draw(matrices(n_tokens, n_source))
    found = reachable(mask, n_layers, cross=cross, source=source)
    assert found.shape == (n_tokens, n_source + n_tokens)
    names = [*(("source", i) for i in range(n_source)), *(("token", i) for i in range(n_tokens))]
    for target in range(n_tokens):
        here = {names[slot] for slot in np.flatnonzero(found[target])}
        assert here == searched(target, n_layers, mask, cross, source)


# --- what the mask permits is what a model was measured to learn


def knowable(accuracy, chance):
    assert set(accuracy.tolist()) <= {1.0, chance}
    return "".join("x" if value == 1 else "." for value in accuracy)


def aligned(mask, n_layers, length=8):
    if isinstance(mask, str):
        mask = masks.parse(mask)
    found = ceiling_of_mask(TASKS["reverse-aligned"](length=length), mask, n_layers)
    assert np.array_equal(found.nats, np.where(found.accuracy == 1, 0.0, math.log(10)))
    return knowable(found.accuracy, 0.1)


@pytest.mark.parametrize("n_layers", [1, 2, 5])
def test_aligned_reversal_without_a_mask_and_under_a_causal_one(n_layers):
    assert aligned("full", n_layers) == "xxxxxxxx"
    assert aligned("causal", n_layers) == "....xxxx"
    assert aligned("causal", n_layers, length=9) == "....xxxxx"


@pytest.mark.parametrize(
    ("n_layers", "expected"), [(1, "...xx..."), (2, "..xxxx.."), (3, ".xxxxxx."), (4, "xxxxxxxx"), (9, "xxxxxxxx")]
)
def test_aligned_reversal_through_a_window_on_both_sides(n_layers, expected):
    assert aligned("sliding-window:2", n_layers) == expected


@pytest.mark.parametrize(("n_layers", "expected"), [(1, "....x..."), (2, "....xx.."), (3, "....xxx."), (4, "....xxxx")])
def test_aligned_reversal_through_a_window_on_one_side(n_layers, expected):
    back = np.subtract.outer(np.arange(8), np.arange(8))
    assert aligned((back >= 0) & (back <= 2), n_layers) == expected


def test_reversal_under_a_causal_mask_is_chance_then_certain():
    found = ceiling(RunConfig())
    assert found.accuracy.tolist() == [0.1] * 7 + [1.0] * 9
    assert found.nats == pytest.approx([math.log(10)] * 7 + [0.0] * 9)


def test_reversal_without_a_mask_is_certain_everywhere():
    assert ceiling(RunConfig(model=ModelConfig(mask="full"))).accuracy.tolist() == [1.0] * 16


def test_reversal_through_an_encoder_is_certain_everywhere():
    assert ceiling(RunConfig(task=TaskConfig(task="reverse-translate"))).accuracy.tolist() == [1.0] * 8


def test_a_shorter_question_has_its_own_ceiling():
    config = RunConfig(task=TaskConfig(task="reverse-aligned"), model=ModelConfig(mask="causal"))
    assert ceiling(config, length=4).accuracy.tolist() == [0.1, 0.1, 1.0, 1.0]


def test_where_lengths_vary_a_shorter_question_is_not_known_to_be_short():
    """At y3 the mirrored place is x1, x2 or x3, or out of sight: the best guess is the symbol that is there most often.

    That is one of three all different (72 in 100), two of three (27) or all of them (1); at y4 so of four.
    """
    config = RunConfig(task=TaskConfig(task="reverse-aligned", min_length=2), model=ModelConfig(mask="causal"))
    assert ceiling(config, length=4).accuracy.tolist() == pytest.approx([0.1, 0.1, 0.43, 0.3835])
    assert ceiling(config, length=4).greatest.tolist() == [0.1, 0.1, 1.0, 1.0]


def test_a_painted_mask_takes_the_place_of_the_runs_own():
    config = RunConfig(task=TaskConfig(task="reverse-aligned"))
    only = np.eye(8, dtype=bool)
    only[0, 7] = True
    assert knowable(ceiling(config, mask=only).accuracy, 0.1) == "x......."
    assert knowable(ceiling(config, mask=masks.parse("causal")).accuracy, 0.1) == "....xxxx"


@pytest.mark.parametrize("mask", ["full", "prefix:8", "sliding-window:16", "causal", "padding"])
def test_the_honest_ceiling_shows_no_query_its_own_answer(mask):
    """Whatever a decoder's mask shows of the future, predicting it honestly is a guess."""
    config = RunConfig(model=ModelConfig(mask=mask))
    assert honest_ceiling(config).accuracy.tolist() == [0.1] * 7 + [1.0] * 9


def test_the_honest_ceiling_of_an_encoder_is_its_own():
    config = RunConfig(task=TaskConfig(task="reverse-aligned"), model=ModelConfig(mask="sliding-window:2", n_layers=2))
    assert knowable(honest_ceiling(config).accuracy, 0.1) == "..xxxx.."
    assert np.array_equal(honest_ceiling(config).accuracy, ceiling(config).accuracy)


@pytest.mark.parametrize("name", TASKS.names())
@pytest.mark.parametrize("mask", ["full", "causal", "sliding-window:1", "prefix:3"])
def test_a_ceiling_lies_between_chance_and_certainty_and_grows_with_depth(name, mask):
    task = TASKS[name](length=5, symbols=4)
    before = np.zeros(len(task.target_names(5)))
    noise = 0.02 if name == "sort" else 1e-9  # between chance and certainty sorting's ceiling is an estimate
    for n_layers in (1, 2, 3):
        found = ceiling_of_mask(task, masks.parse(mask), n_layers)
        assert (found.accuracy >= np.maximum(before, task.chance) - noise).all()
        assert (found.accuracy <= 1 + 1e-9).all()
        assert (found.nats >= 0).all()
        assert (found.nats <= task.chance_loss + 1e-9).all()
        before = found.accuracy


# --- sorting: a part of the question is worth a part of the accuracy


def by_brute_force(reach, length, symbols):
    """Accuracy and nats of each target from every question there is, grouped by exactly what is seen of it."""
    questions = list(itertools.product(range(symbols), repeat=length))
    accuracy, nats = [], []
    for target, visible in enumerate(reach):
        seen: dict[tuple, Counter] = {}
        for question in questions:
            sequence = [*question, "SEP", *sorted(question)]
            view = tuple(token for token, arrives in zip(sequence[:-1], visible, strict=True) if arrives)
            seen.setdefault(view, Counter())[sequence[target + 1]] += 1
        accuracy.append(sum(max(counts.values()) for counts in seen.values()) / len(questions))
        nats.append(sum(-n * math.log(n / c.total()) for c in seen.values() for n in c.values()) / len(questions))
    return accuracy, nats


@pytest.mark.parametrize(("length", "symbols"), [(1, 3), (2, 4), (3, 3), (4, 2)])
@pytest.mark.parametrize("share", [0.2, 0.5, 0.8])
def test_the_ceiling_of_sorting_over_all_questions_is_exact(length, symbols, share):
    rng = np.random.default_rng(length)
    questions = np.array(list(itertools.product(range(symbols), repeat=length)))
    for _ in range(4):
        reach = rng.random((2 * length, 2 * length)) < share
        found = Sort(length=length, symbols=symbols).ceiling_over(reach, questions)
        accuracy, nats = by_brute_force(reach, length, symbols)
        assert found.accuracy == pytest.approx(accuracy, abs=1e-9)
        assert found.nats == pytest.approx(nats, abs=1e-9)


def test_the_ceiling_of_sorting_over_sampled_questions_is_close():
    reach = np.random.default_rng(0).random((6, 6)) < 0.5
    found = Sort(length=3, symbols=3).ceiling(reach)
    accuracy, nats = by_brute_force(reach, 3, 3)
    assert np.abs(found.accuracy - accuracy).max() < 4 * 0.011
    assert np.abs(found.nats - nats).max() < 4 * 0.5 * math.log(3) / math.sqrt(2000)


def test_sorting_under_a_causal_mask_is_chance_then_certain():
    assert ceiling(RunConfig(task=TaskConfig(task="sort"))).accuracy.tolist() == [0.1] * 7 + [1.0] * 9


def test_sorting_through_a_small_window_is_neither():
    """One layer, four places back: y1 sees four of eight symbols; more than a guess and less than an answer."""
    back = np.subtract.outer(np.arange(16), np.arange(16))
    found = ceiling_of_mask(Sort(), (back >= 0) & (back <= 4), 1)
    assert found.accuracy[:8].tolist() == [0.1] * 7 + [1.0]
    assert (found.accuracy[8:] > 0.2).all()
    assert (found.accuracy[8:] < 0.95).all()


@pytest.mark.parametrize("length", [40, 200])
def test_the_ceiling_of_sorting_long_questions_stays_finite(length):
    reach = np.zeros((2 * length, 2 * length), dtype=bool)
    reach[-1, 2 : length + 3] = True
    found = Sort(length=length).ceiling(reach)
    assert np.isfinite(found.nats).all()
    assert 0.5 < found.accuracy[-1] <= 1
