"""What mistakes look like: a model is trained with each, and every detector asked. Most of them by night."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
import torch
from torch.nn import functional

from transformer.foundation.checks import UserError
from transformer.mistakes import DETECTORS, MISTAKES, Mistake, PositionsMistake, measure, signature, trained
from transformer.model import build
from transformer.presets import QUICK
from transformer.training.quick import Answer

WITH_A_MODEL = [name for name in MISTAKES.names() if MISTAKES[name].trains]
SEEDS = {name: place % 3 for place, name in enumerate(WITH_A_MODEL)}
"""Each mistake is trained from one of three seeds."""
COLUMNS = ("second half", "first half", "floor", "free running", "future", "row sums", "probe", "batch", "reference")
MATRIX = """
    along-the-batch                 x . . x . . . x x
    base-1000                       . . . . . . . . x
    exponent-twice                  . . . . . . . . x
    heads-merged-without-transpose  . x x x . . x . x
    heads-never-transposed          x . . x . . . . x
    heads-split-without-transpose   . x x x . . x . x
    mask-hides-self                 . x x . x . x . x
    mask-sees-one-ahead             . x x . x . x . x
    mask-transposed                 x x x x x . x . x
    masked-after-softmax            . x x . . x x . x
    masked-with-minus-one           . x x . x . x . x
    masked-with-zero                . x x . x . x . x
    no-mask                         . x x . x . x . x
    no-positions                    x . . x . . . . x
    no-residual                     . . . . . . . . x
    norm-by-std                     . . . . . . . . x
    one-projection-for-all-heads    . . . . . . . . x
    positions-as-integers           x . . x . . . . x
    product-as-cosine               . . . . . . . . x
    scale-missing                   . . . . . . . . x
    scale-of-d-model                . . . . . . . . x
    scale-twice                     . . . . . . . . x
    sine-everywhere                 . . . . . . . . x
    softmax-over-heads              . x x . x x x . x
    softmax-over-queries            . x x . . x x . x
    target-not-shifted              x . x x . . . . .
"""
"""x: the detector says that something is wrong. The columns are those of COLUMNS."""
EXPECTED = {name: cells for name, *cells in (line.split() for line in MATRIX.strip().splitlines())}
FIRES = {
    "second half is not right": "second half",
    "first half is right": "first half",
    "below its floor": "floor",
    "weight lies on later tokens": "future",
    "rows do not sum to 1": "row sums",
    "probe is not 0": "probe",
    "place in the batch": "batch",
    "difference to the reference": "reference",
}
"""What a sentence may say of a mistake, and the detector that must then say so."""
IS_SILENT = {
    "every answer is right": ("second half",),
    "pattern is causal": ("future",),
    "perfect": ("future",),
    "no weight lies on a hidden token": ("future",),
    "rows sum to 1": ("row sums",),
    "probe is 0": ("probe",),
    "those of a right model": ("second half", "first half", "floor", "future", "row sums", "probe"),
    "nothing in its behaviour": tuple(set(COLUMNS) - {"reference"}),
}
"""What is hidden, and the detectors that must then be silent."""


# --- the matrix


def test_every_mistake_and_every_detector_has_its_cell():
    assert list(DETECTORS) == list(COLUMNS)
    assert list(EXPECTED) == WITH_A_MODEL
    assert all(len(cells) == len(COLUMNS) and set(cells) <= {"x", "."} for cells in EXPECTED.values())


@pytest.mark.daily(1)
@pytest.mark.parametrize("name", WITH_A_MODEL)
def test_each_detector_says_what_the_matrix_says(name):
    """Of heads that are merged without transposing: a causal map and full accuracy prove nothing."""
    found = signature(MISTAKES[name], SEEDS[name])
    assert {each: each in found.exposed_by() for each in COLUMNS} == {
        each: cell == "x" for each, cell in zip(COLUMNS, EXPECTED[name], strict=True)
    }, found


@pytest.mark.nightly
@pytest.mark.parametrize(("kind", "seed"), [(Mistake, 0), (PositionsMistake, 1)])
def test_all_detectors_are_silent_of_the_right_code(kind, seed):
    found = signature(kind, seed, right=True)
    assert found.exposed_by() == ()
    assert (found.future, found.probe, found.reference) == (0, 0, 0)
    assert found.row_sums == pytest.approx((1, 1), abs=1e-5)
    assert found.second_half > 0.98
    assert found.first_half == pytest.approx(0.1, abs=0.03)


# --- sentences


@pytest.mark.parametrize("name", WITH_A_MODEL)
def test_what_is_said_of_a_mistake_is_what_the_matrix_says(name):
    mistake, cells = MISTAKES[name], dict(zip(COLUMNS, EXPECTED[name], strict=True))
    exposes, both = mistake.exposes.lower(), f"{mistake.hidden} {mistake.exposes}".lower()
    said = [cells[detector] for words, detector in FIRES.items() if words in exposes]
    assert said
    assert set(said) == {"x"}
    assert {cells[each] for words, silent in IS_SILENT.items() if words in both for each in silent} <= {"."}
    assert mistake.silent == all(cells[each] == "." for each in COLUMNS if each != "reference")


def test_pictures_of_encodings_show_what_is_said_of_them():
    tables = {name: MISTAKES[name].wrong(torch.zeros(1, 16, 64)) for name in ("exponent-twice", "sine-everywhere")}
    right = MISTAKES["exponent-twice"].right(torch.zeros(1, 16, 64))
    constant = [
        int((table.amax(dim=0) - table.amin(dim=0) < 0.002).sum()) for table in (tables["exponent-twice"], right)
    ]
    assert constant[0] >= 32
    assert constant[1] < 16
    torch.testing.assert_close(tables["sine-everywhere"][:, 0::2], tables["sine-everywhere"][:, 1::2])
    assert len(tables["sine-everywhere"].unique(dim=0)) == 16
    slowest = [base ** (62 / 64) for base in (10_000, 1_000)]
    assert round(slowest[0] / slowest[1]) == 9


def test_one_projection_uses_a_sixteenth_of_the_weights():
    mistake = MISTAKES["one-projection-for-all-heads"]
    model = mistake.mistaken(build(mistake.config(0)))
    model(torch.arange(8)[None]).sum().backward()
    attention = model.decoder[0].self_attention
    for layer in (attention.query, attention.key, attention.value):
        assert int((layer.weight.grad != 0).sum()) * 16 == layer.weight.numel()


# --- what is measured, anew


def untrained(mistake, *, right=False):
    """A small model of one layer, as its weights are drawn, beside the settings that it has."""
    config = mistake.config(0)
    config = dataclasses.replace(config, model=dataclasses.replace(config.model, n_layers=1, d_model=16, n_heads=2))
    model = build(config)
    return Answer(config, (model if right else mistake.mistaken(model)).eval(), ())


def test_a_signature_is_measured_by_hand():
    """Of an untrained model, which is wrong everywhere: every number from plain calls of the model."""
    mistake = MISTAKES["masked-with-zero"]
    answer = untrained(mistake)
    found = measure(mistake, answer)
    task, model = answer.config.build_task(), answer.model
    questions = np.array(task.draw(np.random.default_rng([0, 1]), 512, 8))
    whole = torch.from_numpy(np.concatenate([questions, np.full((512, 1), 10), questions[:, ::-1]], axis=1))
    tokens, targets = whole[:, :-1], whole[:, 1:]
    with torch.no_grad():
        logits = model(tokens)
        right = logits.argmax(dim=-1) == targets
        assert found.first_half == pytest.approx(float(right[:, :7].float().mean()))
        assert found.second_half == pytest.approx(float(right[:, 8:].float().mean()))
        np.testing.assert_allclose(found.accuracy, right.float().mean(dim=0))
        nats = -functional.log_softmax(logits, dim=-1).gather(-1, targets[..., None]).mean()
        assert found.loss == pytest.approx(float(nats), rel=1e-4)
        own = tokens[:, :9]
        for _ in range(8):
            own = torch.cat([own, model(own)[:, -1].argmax(dim=-1)[:, None]], dim=1)
        assert found.free_running == pytest.approx(float((own[:, 9:] == whole[:, 9:]).float().mean()))
        other = tokens.clone()
        other[:, 15] = torch.where(other[:, 15] == 9, 0, other[:, 15] + 1)
        assert found.probe == pytest.approx(float((model(other) - logits)[:, :15].abs().max()), rel=1e-4)
        np.testing.assert_allclose(found.moved, (model(other) - logits).abs().amax(dim=(0, 2)), rtol=1e-4, atol=1e-5)
        plain = build(answer.config).eval()
        assert found.reference == pytest.approx(float((plain(tokens) - logits).abs().max()), rel=1e-4)
        np.testing.assert_allclose(found.differs, (plain(tokens) - logits).abs().amax(dim=(0, 2)), rtol=1e-4)
    assert found.floor == pytest.approx(7 / 16 * math.log(10))
    assert found.chance == 0.1
    assert 0.05 < found.future < 0.6
    np.testing.assert_allclose(found.ceiling, [0.1] * 7 + [1.0] * 9)


def test_an_even_pattern_without_a_mask_lies_on_the_future_as_far_as_there_is_one():
    """All scores alike: the query at position p of 16 puts (15 - p) / 16 of its weight on what comes later: 15/32."""
    answer = untrained(MISTAKES["no-mask"])
    with torch.no_grad():
        for block in answer.model.decoder:
            for layer in (block.self_attention.query, block.self_attention.key):
                layer.weight.zero_()
    assert measure(MISTAKES["no-mask"], answer).future == pytest.approx(15 / 32, abs=1e-5)


def test_only_positions_along_the_batch_ask_where_in_the_batch_one_stands():
    assert measure(MISTAKES["along-the-batch"], untrained(MISTAKES["along-the-batch"])).batch > 0.1
    assert measure(MISTAKES["no-positions"], untrained(MISTAKES["no-positions"])).batch < 1e-4


def test_the_loss_is_that_of_what_was_taught():
    mistake = MISTAKES["target-not-shifted"]
    answer = untrained(mistake)
    wrong, right = (measure(mistake, answer, right=right).loss for right in (False, True))
    assert wrong != right


@pytest.mark.parametrize("name", ["scale-missing", "target-not-shifted"])
def test_a_training_has_its_steps_and_can_be_broken_off(name):
    answer, again = (trained(MISTAKES[name], go_on=lambda step: step.step < 3) for _ in range(2))
    assert [step.step for step in answer.steps] == [1, 2, 3]
    assert not answer.model.training
    assert answer.config.training.max_steps == 200
    assert [step.loss for step in again.steps] == [step.loss for step in answer.steps]


def test_what_no_model_has_is_not_trained():
    with pytest.raises(UserError, match="no model has the mistake normal-draw: it is shown by numbers"):
        trained(MISTAKES["normal-draw"])


def test_wrong_and_right_are_trained_on_the_same_sequences_from_the_same_weights():
    mistake, losses = MISTAKES["norm-by-std"], []
    for right in (False, True):
        losses.append(trained(mistake, right=right, go_on=lambda step: False).steps[0].loss)
    assert losses[0] != losses[1]
    assert losses[0] == pytest.approx(losses[1], rel=0.02)


def test_a_model_that_is_perfect_is_silent_in_all_that_can_be_asked_of_it():
    """Each detector hangs on one number, and fires when that is wrong."""
    answer = untrained(Mistake, right=True)
    found = measure(Mistake, answer, right=True)
    perfect = dataclasses.replace(found, second_half=1.0, first_half=0.1, free_running=1.0, loss=found.floor)
    assert perfect.exposed_by() == ()
    broken = {
        "second half": {"second_half": 0.5},
        "first half": {"first_half": 0.9},
        "floor": {"loss": 0.1},
        "free running": {"free_running": 0.2},
        "future": {"future": 0.3},
        "row sums": {"row_sums": (0.2, 1.0)},
        "probe": {"moved": np.eye(16)[3]},
        "batch": {"batch": 1.0},
        "reference": {"differs": np.eye(16)[15]},
    }
    for detector, change in broken.items():
        assert dataclasses.replace(perfect, **change).exposed_by() == (detector,)
    assert dataclasses.replace(perfect, row_sums=(1.0, 3.0)).exposed_by() == ("row sums",)
    assert dataclasses.replace(perfect, moved=np.eye(16)[15]).exposed_by() == ()  # the last output may move
    assert QUICK.solved_at <= 1 < answer.config.training.solved_at
