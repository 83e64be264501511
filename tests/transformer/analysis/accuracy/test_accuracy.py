"""Accuracy by position, and the sentence that is said about it."""

import math

import numpy as np
import pytest
import torch

from transformer.analysis.accuracy.by_position import CHUNK, accuracy_by_position, predictions
from transformer.analysis.accuracy.result import Accuracy, verdict
from transformer.compiled import compiled_config, compiled_reverser
from transformer.config import ModelConfig, RunConfig, TaskConfig, TrainingConfig
from transformer.edits import EditError, OverrideMask
from transformer.edits.heads.zero import AblateHead
from transformer.foundation.interruption import Interrupted, interruptible
from transformer.model import build


def test_the_compiled_reverser_is_right_where_one_can_be():
    task = compiled_config(4).build_task()
    found = accuracy_by_position(compiled_reverser(4), task, sequences=500)
    assert found.names == ("x2", "x3", "x4", "SEP", "y1", "y2", "y3", "y4")
    assert found.groups == ("first half",) * 3 + ("separator",) + ("second half",) * 4
    assert found.correct[3:].tolist() == [500] * 5
    assert (found.correct[:3] < 100).all()
    assert found.sequences == found.exact == 500
    assert found.chance == 0.1


ALIGNED = TaskConfig(task="reverse-aligned")
CAUSAL = RunConfig(task=ALIGNED, model=ModelConfig(mask="causal"))
SMALL = RunConfig(
    task=TaskConfig(length=3, min_length=2, symbols=3),
    model=ModelConfig(n_layers=1, d_model=8, norm="none"),
    training=TrainingConfig(seed=3),  # of those that are right here and there, untrained
)


def test_counting_is_what_a_loop_counts():
    model, task = build(SMALL).eval(), SMALL.build_task()
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
    model, task, asked = build(SMALL).eval(), SMALL.build_task(), []
    with interruptible(lambda: not asked.append(1) and len(asked) < 3), pytest.raises(Interrupted):
        accuracy_by_position(model, task, sequences=8 * CHUNK, edits=edits)
    assert len(asked) == 3
    assert accuracy_by_position(model, task, sequences=8, edits=edits).sequences == 8


def test_the_seed_and_the_length_decide_what_is_measured():
    model, task = build(SMALL).eval(), SMALL.build_task()
    first, again, other = (accuracy_by_position(model, task, sequences=200, seed=seed) for seed in (0, 0, 1))
    assert np.array_equal(first.correct, again.correct)
    assert not np.array_equal(first.correct, other.correct)
    assert accuracy_by_position(model, task, sequences=10, length=2).names == ("x2", "SEP", "y1", "y2")


def test_a_group_without_positions_has_no_accuracy():
    assert math.isnan(measured(CAUSAL, 0.5, 0.5).of("separator"))


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
    share = {task.parts[0]: first, task.part: second, "separator": 1.0}
    groups = task.groups(task.length)
    correct = np.array([round(share[group] * sequences) for group in groups])
    return Accuracy(correct, sequences, task.target_names(task.length), groups, task.chance, 0)


NOT_YET, ALL = ": not yet at the ceiling", ": every answer can be known, and is"


@pytest.mark.parametrize(
    ("config", "first", "second", "sentence"),
    [
        (RunConfig(), 0.1, 1.0, "second half 1.00, first half 0.10 = chance: the mask holds"),
        (RunConfig(), 1.0, 1.0, "second half 1.00, first half 1.00, chance 0.10: your mask leaks"),
        (RunConfig(), 0.13, 1.0, "second half 1.00, first half 0.13, chance 0.10: your mask leaks"),
        (RunConfig(), 0.1, 0.1, f"second half 0.10 = chance, first half 0.10 = chance{NOT_YET}"),
        (RunConfig(), 0.1, 0.97, f"second half 0.97, first half 0.10 = chance{NOT_YET}"),
        (RunConfig(task=ALIGNED), 1.0, 1.0, f"second half 1.00, first half 1.00{ALL}"),
        (CAUSAL, 0.1, 1.0, "second half 1.00, first half 0.10 = chance: the mask holds"),
        (CAUSAL, 0.5, 1.0, "second half 1.00, first half 0.50, chance 0.10: your mask leaks"),
        (RunConfig(task=TaskConfig(task="reverse-translate")), 1.0, 1.0, f"answer from the source 1.00{ALL}"),
        (RunConfig(task=TaskConfig(length=1)), 0.0, 1.0, f"second half 1.00{ALL}"),
    ],
)
def test_the_verdict_says_what_the_numbers_say(config, first, second, sentence):
    assert verdict(measured(config, first, second), config) == sentence


def test_an_honest_model_is_not_accused():
    """With an interval of 1.96 standard errors one seed in thirty would say that the mask leaks."""
    model, config = compiled_reverser(4), compiled_config(4)
    task = config.build_task()
    for seed in range(60):
        found = accuracy_by_position(model, task, sequences=300, seed=seed)
        assert verdict(found, config).endswith("= chance: the mask holds")


@pytest.mark.parametrize("task", ["reverse", "reverse-aligned", "sort"])
def test_an_untrained_model_is_not_yet_at_the_ceiling(task):
    config = RunConfig(task=TaskConfig(task=task))
    found = accuracy_by_position(build(config).eval(), config.build_task(), sequences=100)
    assert verdict(found, config).endswith("not yet at the ceiling")
