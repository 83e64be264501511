"""Accuracy by position, its interval, and the sentence that is said about it."""

import math

import numpy as np
import pytest
import torch

from transformer.analysis.accuracy.by_position import CHUNK, accuracy_by_position, predictions
from transformer.analysis.accuracy.result import Accuracy, verdict
from transformer.analysis.intervals import wilson
from transformer.compiled import compiled_config, compiled_reverser
from transformer.config import ModelConfig, RunConfig, TaskConfig, TrainingConfig
from transformer.edits import EditError, OverrideMask
from transformer.edits.heads.zero import AblateHead
from transformer.foundation.interruption import Interrupted, interruptible
from transformer.model import build
from transformer.training.loop import train

# --- the interval


@pytest.mark.parametrize(
    ("correct", "total", "low", "high"),
    [
        (0, 10, 0.0, 0.2775),  # the textbook's rows (Newcombe, 1998, and Brown, Cai and DasGupta, 2001)
        (10, 10, 0.7225, 1.0),
        (5, 10, 0.2366, 0.7634),
        (81, 263, 0.2553, 0.3662),
        (15, 148, 0.0624, 0.1605),
        (1, 29, 0.0061, 0.1718),
    ],
)
def test_wilson_is_the_textbooks(correct, total, low, high):
    assert wilson(correct, total) == (pytest.approx(low, abs=5e-5), pytest.approx(high, abs=5e-5))


def test_wilson_contains_the_share_and_narrows():
    share = np.array([0, 1, 50, 99, 100])
    low, high = wilson(share, 100)
    assert ((low >= 0) & (low <= share / 100) & (share / 100 <= high) & (high <= 1)).all()
    narrow_low, narrow_high = wilson(share * 100, 10_000)
    assert (narrow_high - narrow_low < high - low).all()
    wide_low, wide_high = wilson(share, 100, 4.0)
    assert (wide_high - wide_low > high - low).all()


def test_wilson_solves_its_equation():
    """The bounds are the shares p at which the observed one is exactly z standard errors of p away."""
    for bound in wilson(37, 200):
        assert abs(37 / 200 - bound) / math.sqrt(bound * (1 - bound) / 200) == pytest.approx(1.959964)


# --- counting


def test_the_compiled_reverser_is_right_where_one_can_be():
    task = compiled_config(4).build_task()
    found = accuracy_by_position(compiled_reverser(4), task, sequences=500)
    assert found.names == ("x2", "x3", "x4", "SEP", "y1", "y2", "y3", "y4")
    assert found.groups == ("first half",) * 3 + ("separator",) + ("second half",) * 4
    assert found.correct[3:].tolist() == [500] * 5
    assert (found.correct[:3] < 100).all()
    assert found.sequences == found.exact == 500
    assert found.chance == 0.1


def test_counting_is_what_a_loop_counts():
    config = RunConfig(task=TaskConfig(length=3, symbols=3), training=TrainingConfig(max_steps=5))
    model, task = build(config), config.build_task()
    for _ in train(model, config):
        pass  # a little, so that it is right here and there
    found = accuracy_by_position(model, task, sequences=300, seed=5)
    batch = task.batch(np.random.default_rng([5, 1]), 300, 3)
    correct, exact = [0] * 6, 0
    with torch.no_grad():
        for tokens, targets in zip(batch.tokens, batch.targets, strict=True):
            right = model(torch.from_numpy(tokens[None]))[0].argmax(-1).numpy() == targets
            correct = [count + int(hit) for count, hit in zip(correct, right, strict=True)]
            exact += int(right[3:].all())
    assert found.correct.tolist() == correct
    assert found.exact == exact
    assert 0 < exact < 300


def test_predictions_do_not_depend_on_the_chunk():
    task = compiled_config(3).build_task()
    batch = task.batch(np.random.default_rng(0), CHUNK + 7)
    said = predictions(compiled_reverser(3), batch)
    assert said.shape == batch.targets.shape
    assert np.array_equal(said[:, 3:], batch.targets[:, 3:])


@pytest.mark.parametrize("edits", [(), (AblateHead("decoder.0.self_attention.z", 0),)], ids=["plain", "edited"])
def test_what_nobody_wants_is_not_measured_to_its_end(edits):
    """It is asked for between two chunks."""
    task, asked = RunConfig().build_task(), []
    with interruptible(lambda: not asked.append(1) and len(asked) < 3), pytest.raises(Interrupted):
        accuracy_by_position(build(RunConfig()).eval(), task, sequences=8 * CHUNK, edits=edits)
    assert len(asked) == 3
    assert accuracy_by_position(build(RunConfig()).eval(), task, sequences=8, edits=edits).sequences == 8


def test_the_seed_decides_and_is_not_the_trainings():
    config = RunConfig(task=TaskConfig(length=4))
    model, task = build(config).eval(), config.build_task()
    first, again, other = (accuracy_by_position(model, task, sequences=200, seed=seed) for seed in (0, 0, 1))
    assert np.array_equal(first.correct, again.correct)
    assert not np.array_equal(first.correct, other.correct)


def test_a_shorter_length_can_be_measured():
    config = RunConfig(task=TaskConfig(length=6, min_length=2))
    found = accuracy_by_position(build(config).eval(), config.build_task(), sequences=10, length=2)
    assert found.names == ("x2", "SEP", "y1", "y2")


def test_a_group_without_positions_has_no_accuracy():
    config = RunConfig(task=TaskConfig(task="reverse-aligned", length=4))
    found = accuracy_by_position(build(config).eval(), config.build_task(), sequences=10)
    assert math.isnan(found.of("separator"))


def test_edits_are_measured():
    """Without its one head the compiled reverser knows the separator, by its place, and nothing else."""
    model, task = compiled_reverser(), compiled_config().build_task()
    silenced = accuracy_by_position(model, task, sequences=1000, edits=(AblateHead("decoder.0.self_attention.z", 0),))
    assert silenced.of("separator") == 1
    assert silenced.of("second half") == pytest.approx(0.1, abs=0.02)
    blind = np.zeros((16, 16), dtype=bool)
    blind[8:12] = True  # y1 to y4 may look anywhere, y5 to y8 nowhere
    masked = accuracy_by_position(model, task, sequences=1000, edits=(OverrideMask.of(blind),))
    assert masked.mean[8:12].tolist() == [1.0] * 4
    assert (masked.mean[12:] < 0.2).all()
    with pytest.raises(EditError, match="met no site"):
        accuracy_by_position(model, task, sequences=10, edits=(AblateHead("encoder.0.self_attention.z", 0),))


# --- the verdict


def measured(config, first, second, sequences=4096):
    """Shares of the two halves, as if they had been measured."""
    task = config.build_task()
    share = {"first half": first, "second half": second, "separator": 1.0}
    groups = task.groups(task.length)
    correct = np.array([round(share[group] * sequences) for group in groups])
    return Accuracy(correct, sequences, task.target_names(task.length), groups, task.chance, 0)


ALIGNED = TaskConfig(task="reverse-aligned")


@pytest.mark.parametrize(
    ("config", "first", "second", "sentence"),
    [
        (RunConfig(), 0.1, 1.0, "second half 1.00, first half 0.10 = chance: the mask holds"),
        (RunConfig(), 1.0, 1.0, "second half 1.00, first half 1.00, chance 0.10: your mask leaks"),
        (RunConfig(), 0.13, 1.0, "second half 1.00, first half 0.13, chance 0.10: your mask leaks"),
        (
            RunConfig(),
            0.1,
            0.1,
            "second half 0.10 = chance, first half 0.10 = chance, chance 0.10: not yet at the ceiling",
        ),
        (RunConfig(), 0.1, 0.97, "second half 0.97, first half 0.10 = chance, chance 0.10: not yet at the ceiling"),
        (RunConfig(task=ALIGNED), 1.0, 1.0, "second half 1.00, first half 1.00: every answer can be known, and is"),
        (
            RunConfig(task=ALIGNED, model=ModelConfig(mask="causal")),
            0.1,
            1.0,
            "second half 1.00, first half 0.10 = chance: the mask holds",
        ),
        (
            RunConfig(task=ALIGNED, model=ModelConfig(mask="causal")),
            0.5,
            1.0,
            "second half 1.00, first half 0.50, chance 0.10: your mask leaks",
        ),
        (
            RunConfig(task=TaskConfig(task="reverse-translate")),
            1.0,
            1.0,
            "answer from the source 1.00: every answer can be known, and is",
        ),
        (RunConfig(task=TaskConfig(length=1)), 0.0, 1.0, "second half 1.00: every answer can be known, and is"),
    ],
)
def test_the_verdict_says_what_the_numbers_say(config, first, second, sentence):
    assert verdict(measured(config, first, second), config) == sentence


def test_an_honest_model_is_not_accused():
    """With an interval of 1.96 standard errors one seed in thirty would say that the mask leaks."""
    model, config = compiled_reverser(), compiled_config()
    task = config.build_task()
    for seed in range(60):
        found = accuracy_by_position(model, task, sequences=300, seed=seed)
        assert verdict(found, config).endswith("= chance: the mask holds")


@pytest.mark.parametrize("config", [RunConfig(), RunConfig(task=ALIGNED), RunConfig(task=TaskConfig(task="sort"))])
def test_an_untrained_model_is_not_yet_at_the_ceiling(config):
    found = accuracy_by_position(build(config).eval(), config.build_task(), sequences=500)
    assert verdict(found, config).endswith("not yet at the ceiling")
