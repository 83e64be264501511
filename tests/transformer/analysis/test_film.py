"""The film of a run: what it holds is what was measured, and the moments that are read off it are in the data."""

import io
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.kit.numbers.leaves import leaves
from transformer.analysis.accuracy.by_position import accuracy_by_position
from transformer.analysis.film.film import (
    LEVELS,
    Film,
    Reading,
    from_then_on,
    learned_at,
    quantise,
    sharpening,
    thinned,
)
from transformer.analysis.film.take import film
from transformer.analysis.findings import Head
from transformer.analysis.heads.survey import survey
from transformer.analysis.sample import sample
from transformer.config import ModelConfig, RunConfig, TaskConfig, TrainingConfig
from transformer.foundation.foreign import DAMAGED
from transformer.model import Transformer, build
from transformer.training.recording import develop, record
from transformer.training.runs import Run

SITE = "decoder.0.self_attention"


def told(**shares: list[float]) -> Film:
    """A film made by hand: the shares of heads "h0", "h1" …, on steps 0, 1, 4, 9 …"""
    frames = len(next(iter(shares.values())))
    levels = np.zeros((frames, len(shares), 2, 2), dtype=np.uint8)
    return Film(
        steps=np.arange(frames) ** 2,
        pictured=np.arange(frames),
        question=("1", "2"),
        read=("1", "2"),
        readings={SITE: Reading(SITE, levels, np.eye(2, dtype=bool), ("1", "2"), ("1", "2"))},
        correct=np.zeros((frames, 2), dtype=np.int64),
        sequences=10,
        names=("y1", "y2"),
        groups=("first half", "second half"),
        chance=0.1,
        shares={Head(SITE, int(name[1:])): np.array(share, dtype=np.float32) for name, share in shares.items()},
        surveyed=10,
        snapshot="abc",
    )


def small(task: str = "reverse", architecture: str = "auto", **model: object) -> RunConfig:
    shape = ModelConfig(architecture=architecture, n_layers=2, n_heads=2, d_model=16, d_ff=32, **model)
    return RunConfig(task=TaskConfig(task=task, length=4), model=shape)


def models(config: RunConfig, *seeds: int) -> list[Transformer]:
    return [build(replace(config, training=replace(config.training, seed=seed))).eval() for seed in seeds]


@pytest.mark.parametrize(
    ("share", "frame"),
    [
        ([0.1, 0.1, 0.2, 0.6, 0.9], 3),
        ([0.1, 0.5, 0.5, 0.5, 0.9], 1),  # exactly the middle counts
        ([0.1, 0.9, 0.1, 0.9, 0.9], 3),  # a spike does not
        ([0.1, 0.8, 0.9, 0.4, 0.9], 4),  # nor what is lost again
        ([0.1, 0.1, 0.1, 0.1, 0.9], 4),
        ([0.1, 0.15, 0.25, 0.2, 0.3], 2),
        ([0.1, 0.9], 1),  # a film may be short
        ([0.1, math.nan, 0.2, 0.8], 3),  # or have a hole
    ],
)
def test_a_head_sharpens_where_half_of_its_rise_is_behind_it_for_good(share: list[float], frame: int):
    moment = sharpening(told(h0=[0.1] * len(share), h1=share))
    assert moment is not None
    assert (moment.head, moment.frame, moment.step) == (Head(SITE, 1), frame, frame**2)
    assert (moment.before, moment.middle, moment.after) == pytest.approx((share[0], share[frame], share[-1]))


@pytest.mark.parametrize(
    ("share", "began", "ended"),
    [
        ([0.0, 0.0, 1.0, 1.0, 1.0], 1, 2),  # a jump lies between two kept steps
        ([0.0, 0.09, 0.5, 0.89, 1.0], 1, 4),  # a ramp, just outside a tenth and nine tenths
        ([0.0, 0.11, 0.5, 0.91, 1.0], 0, 3),  # and just inside
        ([0.0, 0.95, 0.05, 0.95, 1.0], 2, 3),  # what is lost again is not behind it
    ],
)
def test_a_rise_lasts_from_a_tenth_of_it_to_nine_tenths(share: list[float], began: int, ended: int):
    moment = sharpening(told(h0=share))
    assert moment is not None
    assert (moment.began, moment.ended) == (began**2, ended**2)


def test_of_several_that_rise_it_is_the_one_that_ends_highest():
    moment = sharpening(told(h0=[0.9, 0.9, 0.95], h1=[0.1, 0.7, 0.8], h2=[0.0, 0.75, 0.75]))
    assert moment is not None
    assert moment.head == Head(SITE, 1)  # h0 ends higher still, but was so from the start


@pytest.mark.parametrize(
    "shares",
    [
        {"h0": [0.1, 0.2, 0.25]},
        {"h0": [0.9, 0.5, 0.1], "h1": [0.5, 0.5, 0.5]},
        {"h0": [math.nan] * 3},
        {"h0": [0.5]},
    ],
)
def test_where_no_head_rises_there_is_no_moment(shares: dict[str, list[float]]):
    assert sharpening(told(**shares)) is None
    assert sharpening(replace(told(**shares), shares={})) is None


def test_a_position_is_learned_once_it_stays_right():
    correct = np.array([[1, 9, 1, 10], [9, 9, 1, 2], [8, 9, 9, 9], [9, 10, 8, 9]])
    found = learned_at(replace(told(h0=[0.0] * 4), correct=correct, names=("a",) * 4, groups=("g",) * 4))
    np.testing.assert_array_equal(found, [9, 0, math.nan, 4])


def test_from_then_on():
    assert from_then_on(np.array([True, True])) == 0
    assert from_then_on(np.array([True, False, True, True])) == 2
    assert from_then_on(np.array([True, False])) is None


@pytest.mark.parametrize("count", [1, 2, 3, 10, 41, 500])
@pytest.mark.parametrize("most", [3, 7, 40])
def test_thinning_keeps_the_ends_and_what_it_is_told_to_and_spreads_the_rest(count: int, most: int):
    kept = {0, count - 1, count // 3}
    chosen = thinned(count, most, [count // 3])
    assert chosen == sorted(set(chosen))
    assert kept <= set(chosen) <= set(range(count))
    assert len(chosen) == min(count, most)
    if 7 <= most < count:
        assert np.diff(chosen).max() <= 4 * (count / most)
    assert set(thinned(count, 1, [count // 3])) == kept


def test_what_is_packed_comes_back(tmp_path: Path):
    config = small("reverse-translate")
    made = film(enumerate(models(config, 0, 1)), config.build_task(), sequences=8, snapshot="abc")
    (tmp_path / "film.npz").write_bytes(made.pack())
    read = Film.load(tmp_path / "film.npz")
    for name in ("question", "read", "names", "groups", "snapshot"):
        assert getattr(read, name) == getattr(made, name), name
    for site, reading in made.readings.items():
        assert (read.readings[site].queries, read.readings[site].keys) == (reading.queries, reading.keys)
    found, expected = dict(leaves(read)), dict(leaves(made))
    assert list(found) == list(expected)
    for name, value in expected.items():
        np.testing.assert_array_equal(found[name], value, name)


def test_weights_are_kept_to_within_half_a_level():
    p = np.random.default_rng(0).random(100_000).astype(np.float32)
    assert np.abs(quantise(p) / LEVELS - p).max() <= 0.5 / LEVELS + 1e-6
    np.testing.assert_array_equal(quantise(np.array([0.0, 1.0, math.nan, -1e-9, 1 + 1e-6])), [0, 255, 0, 0, 255])


WHOLE = told(h0=[0.1, 0.5, 0.9])
PACKED = WHOLE.pack()
ARRAYS = dict(np.load(io.BytesIO(PACKED)))
SPOILT: dict[str, Callable[[Path], object]] = {
    "empty": lambda path: path.write_bytes(b""),
    "text": lambda path: path.write_bytes(b"a film"),
    "cut": lambda path: path.write_bytes(PACKED[: len(PACKED) // 2]),
    "other": lambda path: np.savez(path, text=np.array("{}")),
    "pickle": lambda path: np.savez(path, text=np.array([object()])),
    "few frames": lambda path: np.savez(path, **(ARRAYS | {"correct": ARRAYS["correct"][:2]})),
    "no such frame": lambda path: path.write_bytes(replace(WHOLE, pictured=WHOLE.pictured + 1).pack()),
    "no order": lambda path: path.write_bytes(replace(WHOLE, steps=WHOLE.steps[::-1]).pack()),
}


@pytest.mark.parametrize("spoil", SPOILT)
def test_a_file_that_is_no_film_is_refused(tmp_path: Path, spoil: str):
    SPOILT[spoil](tmp_path / "film.npz")
    with pytest.raises(DAMAGED):
        Film.load(tmp_path / "film.npz")
    with pytest.raises(FileNotFoundError):
        Film.load(tmp_path / "none.npz")


@pytest.mark.parametrize(
    "config",
    [small(), small("reverse-aligned"), small("reverse-translate"), small("sort", positions="sinusoidal")],
    ids=lambda config: config.task.task,
)
def test_every_frame_says_what_the_single_measurements_say(config: RunConfig):
    task, question = config.build_task(), np.array([3, 1, 2, 0])
    made = film(zip([0, 7], models(config, 0, 1), strict=True), task, question=question, sequences=64, seed=5)
    assert (made.steps.tolist(), made.pictured.tolist()) == ([0, 7], [0, 1])
    for frame, model in enumerate(models(config, 0, 1)):
        looked = sample(model, task, question)
        assert (made.question, made.read) == (looked.question, looked.read)
        assert list(made.readings) == list(looked.attentions)
        for site, attention in looked.attentions.items():
            reading = made.readings[site]
            np.testing.assert_allclose(reading.pattern(frame), attention.pattern, atol=0.5 / LEVELS + 1e-6)
            assert not reading.levels[frame][:, ~attention.mask].any()
            np.testing.assert_array_equal(reading.mask, attention.mask)
            assert (reading.queries, reading.keys) == (attention.queries, attention.keys)
        measured = accuracy_by_position(model, task, sequences=64, seed=5)
        np.testing.assert_array_equal(made.correct[frame], measured.correct)
        assert (made.names, made.groups, made.chance) == (measured.names, measured.groups, measured.chance)
        expected = survey(model, task, sequences=64, seed=5).expected_share
        assert {head: share[frame] for head, share in made.shares.items()} == pytest.approx(expected, nan_ok=True)


def test_a_large_film_keeps_the_patterns_of_some_frames_only(monkeypatch: pytest.MonkeyPatch):
    config = small()
    monkeypatch.setattr("transformer.analysis.film.take.MOST_CELLS", 3 * (2 * 2 * 8 * 8))
    made = film(enumerate(models(config, *range(6))), config.build_task(), sequences=4)
    assert len(made.steps) == len(made.correct) == 6
    assert made.pictured.tolist() == [0, 2, 5]
    assert all(len(reading.levels) == 3 for reading in made.readings.values())
    third = film([(2, models(config, 2)[0])], config.build_task(), sequences=4)
    np.testing.assert_array_equal(made.readings[SITE].pattern(1), third.readings[SITE].pattern(0))


def test_a_film_of_nothing_is_refused():
    with pytest.raises(ValueError, match="at least one step"):
        film([], small().build_task())


def test_a_run_that_has_ended_gets_the_film_of_its_snapshots(tmp_path: Path):
    training = TrainingConfig(max_steps=4, evaluate_every=2, batch_size=8, device="cpu")
    run = Run.create(tmp_path / "run", replace(small("reverse-aligned"), training=training))
    for _ in record(run):
        pass
    assert develop(run)
    kept = Film.load(run.folder / "film.npz")
    assert kept.steps.tolist() == list(run.snapshots())
    assert kept.snapshot == run.digest()
