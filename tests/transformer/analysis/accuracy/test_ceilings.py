"""What a mask lets be known: ceilings against the measured table, and against every question there is."""

import itertools
import math
from collections import Counter

import numpy as np
import pytest

from transformer import masks
from transformer.analysis.accuracy.ceilings import ceiling, ceiling_of_mask, honest_ceiling, loss_floor
from transformer.config import ModelConfig, RunConfig, TaskConfig
from transformer.tasks import TASKS
from transformer.tasks.sort import Sort


def knowable(accuracy, chance):
    assert set(accuracy.tolist()) <= {1.0, chance}
    return "".join("x" if value == 1 else "." for value in accuracy)


BACK = np.subtract.outer(np.arange(16), np.arange(16))
BEFORE = (BACK >= 0) & (BACK <= 2)


@pytest.mark.parametrize(
    ("mask", "n_layers", "known"),
    [
        *(("full", n_layers, "xxxxxxxx") for n_layers in (1, 5)),
        *(("causal", n_layers, known) for n_layers in (1, 2, 5) for known in ("....xxxx", "....xxxxx")),
        *zip(["sliding-window:2"] * 4, range(1, 5), ["...xx...", "..xxxx..", ".xxxxxx.", "xxxxxxxx"], strict=True),
        *zip([BEFORE] * 4, range(1, 5), ["....x...", "....xx..", "....xxx.", "....xxxx"], strict=True),
    ],
)
def test_a_reversal_in_place_knows_what_was_measured_under_its_mask(mask, n_layers, known):
    """What a layer does not bring within reach of its mirror image is a guess."""
    mask = masks.parse(mask) if isinstance(mask, str) else mask
    found = ceiling_of_mask(TASKS["reverse-aligned"](length=len(known)), mask, n_layers)
    assert knowable(found.accuracy, 0.1) == known
    assert np.array_equal(found.nats, np.where(found.accuracy == 1, 0.0, math.log(10)))


def aligned(**task):
    return RunConfig(task=TaskConfig(task="reverse-aligned", **task), model=ModelConfig(mask="causal"))


@pytest.mark.parametrize(
    ("config", "length", "accuracy"),
    [
        (RunConfig(), 8, [0.1] * 7 + [1.0] * 9),
        (RunConfig(task=TaskConfig(task="sort")), 8, [0.1] * 7 + [1.0] * 9),
        (RunConfig(model=ModelConfig(mask="full")), 8, [1.0] * 16),
        (RunConfig(task=TaskConfig(task="reverse-translate")), 8, [1.0] * 8),
        (aligned(), 4, [0.1, 0.1, 1.0, 1.0]),
        # From y5 on it is x4, or x3, x2, x1: the best guess is the symbol that stands there most often.
        (aligned(min_length=4), 8, [0.1, 0.1, 0.1, 0.1, 0.3835, 0.43, 0.55, 1.0]),
    ],
)
def test_the_ceiling_of_a_run_is_known(config, length, accuracy):
    assert ceiling(config, length).accuracy.tolist() == pytest.approx(accuracy)


def test_a_reversal_that_is_not_told_its_length_expects_sep_from_the_fifth_place_on():
    found = ceiling(RunConfig(task=TaskConfig(min_length=4)))
    assert found.accuracy.tolist() == [0.1] * 3 + [0.0] * 4 + [1.0] * 9
    assert found.greatest.tolist() == [0.1] * 7 + [1.0] * 9


def test_where_lengths_vary_a_shorter_question_is_not_known_to_be_short():
    """At y3 the mirrored place is x1, x2 or x3, or out of sight: the best guess is the symbol that is there most often.

    That is one of three all different (72 in 100), two of three (27) or all of them (1); at y4 so of four.
    """
    found = ceiling(aligned(min_length=2), length=4)
    assert found.accuracy.tolist() == pytest.approx([0.1, 0.1, 0.43, 0.3835])
    assert found.greatest.tolist() == [0.1, 0.1, 1.0, 1.0]
    assert loss_floor(aligned(length=4, min_length=2, symbols=2)) == pytest.approx(0.499, abs=5e-4)


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


@pytest.mark.parametrize("name", TASKS.names())
@pytest.mark.parametrize("mask", ["full", "causal", "sliding-window:1", "prefix:3"])
def test_a_ceiling_lies_between_chance_and_certainty_and_grows_with_depth(name, mask):
    task = TASKS[name](length=5, symbols=4)
    before = np.zeros(len(task.target_names(5)))
    noise = 1e-9 if task.rearranges else 0.02  # between chance and certainty other ceilings may be estimates
    for n_layers in (1, 2, 3):
        found = ceiling_of_mask(task, masks.parse(mask), n_layers)
        assert (found.accuracy >= np.maximum(before, task.chance) - noise).all()
        assert (found.accuracy <= 1 + 1e-9).all()
        assert (found.nats >= 0).all()
        assert (found.nats <= task.chance_loss + 1e-9).all()
        before = found.accuracy


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
def test_the_ceiling_of_sorting_is_exact_over_all_questions_and_close_over_some(length, symbols):
    """A part of the question is worth a part of the accuracy."""
    rng = np.random.default_rng(length)
    task, questions = Sort(length=length, symbols=symbols), list(itertools.product(range(symbols), repeat=length))
    for share in (0.2, 0.5, 0.5, 0.8):
        reach = rng.random((2 * length, 2 * length)) < share
        accuracy, nats = by_brute_force(reach, length, symbols)
        exact, sampled = task.ceiling_over(reach, np.array(questions)), task.ceiling(reach)
        assert exact.accuracy == pytest.approx(accuracy, abs=1e-9)
        assert exact.nats == pytest.approx(nats, abs=1e-9)
        assert np.abs(sampled.accuracy - accuracy).max() < 4 * 0.011
        assert np.abs(sampled.nats - nats).max() < 4 * 0.5 * math.log(symbols) / math.sqrt(2000)


def test_sorting_through_a_small_window_is_neither_a_guess_nor_an_answer():
    """One layer, four places back: y1 sees four of eight symbols."""
    found = ceiling_of_mask(Sort(), (BACK >= 0) & (BACK <= 4), 1)
    assert found.accuracy[:8].tolist() == [0.1] * 7 + [1.0]
    assert ((found.accuracy[8:] > 0.2) & (found.accuracy[8:] < 0.95)).all()


def test_the_ceiling_of_sorting_long_questions_stays_finite():
    reach = np.zeros((400, 400), dtype=bool)
    reach[-1, 2:203] = True
    found = Sort(length=200).ceiling(reach)
    assert np.isfinite(found.nats).all()
    assert 0.5 < found.accuracy[-1] <= 1
