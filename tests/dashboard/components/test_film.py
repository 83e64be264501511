"""What the film sends to the browser: every number arrives, and what cannot be shown is refused in words."""

from __future__ import annotations

import json
import math
import re
from dataclasses import replace

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from dashboard import theme
from dashboard.components import registration
from dashboard.components.film import MOST_BYTES, MOST_POINTS, Moment, Reel, Track, pack_reel
from dashboard.components.payload import unpack
from dashboard.figures.loss import loss_axes, loss_curve
from dashboard.parts import film as parts_film
from tests.kit.waiting import PATIENCE
from transformer.analysis.film.film import Film
from transformer.analysis.film.take import film
from transformer.analysis.sample import sample
from transformer.config import ModelConfig, RunConfig, TaskConfig
from transformer.model import build

WEB = registration.FOLDER / "web"


def track(column: int = 0, pictures: int = 3, queries: int = 3, keys: int = 4, whole: bool = False) -> Track:
    patterns = np.random.default_rng(column).random((pictures, queries, keys), dtype=np.float32)
    mask = np.tril(np.ones((queries, keys), dtype=bool))
    levels = np.rint(patterns * 255).astype(np.uint8)
    names = tuple(map(str, range(queries))), tuple(f"k{i}" for i in range(keys))
    return Track(f"0.{column}", "", 0, column, levels if whole else patterns, mask, *names)


def reel(**changes: object) -> Reel:
    plain = Reel(
        pattern_steps=[0, 2, 5],
        tracks=[track(0), track(1)],
        loss_steps=np.arange(1, 6),
        loss=np.linspace(3, 1, 5),
        floor=0.2,
        chance_loss=math.log(10),
        loss_axes=((0, 10), (-0.3, 3.1)),
        solved_at=5,
        accuracy_steps=[0, 5],
        accuracy=np.array([[0.1, 0.2], [0.9, 1.0]]),
        sequences=[128, 512],
        names=("y1", "y2"),
        groups=("first half", "second half"),
        chance=0.1,
        ceiling=np.array([0.1, 1.0]),
    )
    return replace(plain, **changes)


def sent(**changes: object) -> tuple[dict, bytes]:
    return unpack(pack_reel(reel(**changes), alt="A film."))


def patterns(header: dict, body: bytes, panel: int) -> np.ndarray:
    record = header["panels"][panel]
    shape = (len(header["patternSteps"]), record["rows"], record["columns"])
    return np.frombuffer(body, np.uint8, math.prod(shape), record["patterns"]).reshape(shape)


def test_every_number_arrives():
    header, body = sent(moment=Moment(2, "it sharpens"), focus=1, kept=[0, 5])
    assert header["patternSteps"] == [0, 2, 5]
    for i in (0, 1):
        assert np.abs(patterns(header, body, i) / 255 - track(i).patterns).max() <= 0.5 / 255 + 1e-6
        record = header["panels"][i]
        mask = np.frombuffer(body, np.uint8, 12, record["mask"]).reshape(3, 4)
        np.testing.assert_array_equal(mask.astype(bool), track(i).mask)
        assert header["labels"][record["queries"]] == ["0", "1", "2"]
        assert header["labels"][record["keys"]] == ["k0", "k1", "k2", "k3"]
    loss = header["loss"]
    assert (loss["count"], loss["floor"], loss["solvedAt"]) == (5, 0.2, 5)
    assert loss["guessing"] == pytest.approx(2.302585)
    assert header["hit"] == "chance"
    np.testing.assert_array_equal(np.frombuffer(body, "<f4", 5, loss["steps"]), [1, 2, 3, 4, 5])
    np.testing.assert_array_equal(np.frombuffer(body, "<f4", 5, loss["values"]), [3, 2.5, 2, 1.5, 1])
    assert (header["accuracySteps"], header["sequences"]) == ([0, 5], [128, 512])
    measured = np.frombuffer(body, "<f4", 4, header["accuracy"]).reshape(2, 2)
    np.testing.assert_allclose(measured, [[0.1, 0.2], [0.9, 1.0]], rtol=1e-6)
    assert (header["ceiling"], header["chance"]) == ([0.1, 1.0], 0.1)
    assert header["moment"] == {"step": 2, "words": "it sharpens"}
    assert (header["focus"], header["kept"], header["uses"]) == (1, [0, 5], False)
    for dark, name in ((False, "light"), (True, "dark")):
        colours = np.frombuffer(body, np.uint8, 768, header["looks"][name]["colours"]).reshape(256, 3)
        np.testing.assert_array_equal(colours, theme.pattern_colours(dark))


def test_the_playhead_stops_where_something_is_known():
    assert sent(accuracy_steps=[0, 3])[0]["stops"] == [0, 1, 2, 3, 4, 5]  # few kept steps: the losses too
    many = list(range(0, 60, 3))
    kept = sent(pattern_steps=many, tracks=[track(0, 20)], accuracy_steps=[1, 57], moment=Moment(4, "…"))[0]
    assert kept["stops"] == sorted({*many, 1, 4})
    nothing = sent(pattern_steps=[], tracks=[], loss_steps=np.array([]), loss=np.array([]), accuracy_steps=[],
                   accuracy=np.zeros((0, 2)), sequences=[], solved_at=None)[0]  # fmt: skip
    assert nothing["stops"] == []
    long = sent(loss_steps=np.arange(1, 3001), loss=np.ones(3000))[0]["stops"]
    assert {0, 2, 5, 3000} <= set(long)
    assert 20 <= len(long) <= 45


def test_many_patterns_are_thinned_and_it_is_said():
    side, pictures = 128, 200
    large = [track(i, pictures, side, side, whole=True) for i in range(2)]
    moment = Moment(77, "…")
    header, body = sent(pattern_steps=list(range(pictures)), tracks=large, moment=moment)
    shown = header["patternSteps"]
    assert len(body) < MOST_BYTES + 100_000
    assert {0, 77, 199} <= set(shown)
    assert np.diff(shown).max() <= 4 * pictures / len(shown)
    assert header["note"].startswith(f"The heads are shown at {len(shown)} of 200 kept steps")
    np.testing.assert_array_equal(patterns(header, body, 1), large[1].patterns[shown])  # not rounded again
    assert sent()[0]["note"] == ""


def test_a_long_loss_is_thinned_to_its_last_point():
    header, body = sent(loss_steps=np.arange(1, 50_001), loss=np.linspace(3, 1, 50_000))
    count = header["loss"]["count"]
    assert count == MOST_POINTS
    steps = np.frombuffer(body, "<f4", count, header["loss"]["steps"])
    values = np.frombuffer(body, "<f4", count, header["loss"]["values"])
    assert (steps[0], steps[-1], values[-1]) == (1, 50_000, 1)
    np.testing.assert_allclose(values, np.linspace(3, 1, 50_000)[steps.astype(int) - 1], rtol=1e-6)


@pytest.mark.parametrize(
    ("changes", "looks", "sentence"),
    [
        ({"loss": np.ones(4)}, {}, "5 steps for 4 losses"),
        ({"accuracy": np.ones((3, 2))}, {}, r"\[measurement, target\], not \[3, 2\]"),
        ({"sequences": [1]}, {}, "1 numbers of sequences for 2 measurements"),
        ({"groups": ("a",)}, {}, "one entry a target"),
        ({"focus": 2}, {}, "0 to 1, not 2"),
        ({"pattern_steps": [0]}, {}, r"0\.0: patterns are \[1, 3, 4\], not \[3, 3, 4\]"),
        ({}, {"alt": " "}, "needs alt"),
        ({}, {"height": 10}, "at least 200"),
    ],
)
def test_a_reel_that_cannot_be_shown_is_refused_in_words(changes: dict, looks: dict, sentence: str):
    with pytest.raises(ValueError, match=sentence):
        pack_reel(reel(**changes), **{"alt": "A film.", **looks})


# From a run


def small() -> tuple[RunConfig, Film]:
    shape = ModelConfig(n_layers=2, n_heads=2, d_model=16, d_ff=32)
    config = RunConfig(task=TaskConfig(task="reverse-translate", length=4), model=replace(shape, architecture="auto"))
    return config, film([(0, build(config)), (3, build(config))], config.build_task(), sequences=8)


def test_the_reel_of_a_film_holds_the_film():
    config, made = small()
    metrics = [{"step": i, "loss": 3.0 - i} for i in (1, 2, 3)]
    shown = parts_film.of_film(made, config, metrics, [0, 3])
    assert [(one.name, one.group) for one in shown.tracks[-2:]] == [(f"1.{i}", "cross-attention") for i in (0, 1)]
    assert len(shown.tracks) == 12
    np.testing.assert_array_equal(shown.tracks[0].patterns, made.readings["encoder.0.self_attention"].levels[:, 0])
    np.testing.assert_array_equal(shown.accuracy, made.accuracy)
    assert (list(shown.accuracy_steps), list(shown.pattern_steps), list(shown.kept)) == ([0, 3], [0, 3], [0, 3])
    assert (shown.loss.tolist(), shown.solved_at, shown.moment) == ([2.0, 1.0, 0.0], None, None)
    pack_reel(shown, alt="A film.")


def test_the_reel_of_a_training_holds_what_there_is():
    config, _ = small()
    task = config.build_task()
    empty = parts_film.of_training(config, [], {}, None)
    header, _ = unpack(pack_reel(empty, alt="A film.", live=True))
    assert (header["loss"]["count"], header["accuracySteps"], header["panels"]) == (0, [], [])
    looked = sample(build(config), task, task.example)
    metrics = [{"step": 1, "loss": 2.5, "accuracy": [0.1, 0.2, 0.3, 0.4]}, {"step": 2, "loss": 2.0, "solved": True}]
    shown = parts_film.of_training(config, metrics, looked.attentions, 1)
    assert (shown.accuracy.tolist(), list(shown.sequences), shown.solved_at) == ([[0.1, 0.2, 0.3, 0.4]], [512], 2)
    pattern = looked.attentions["decoder.1.cross_attention"].pattern[1]
    assert np.abs(shown.tracks[-1].patterns[0] / 255 - pattern).max() <= 0.5 / 255 + 1e-6
    assert parts_film.of_training(config, [metrics[0] | {"probed": 128}], {}, None).sequences == [128]


@pytest.mark.parametrize("over", [np.array([0.5]), np.array([4.0, 3.5, 4.5])], ids=["short", "far from guessing"])
def test_a_loss_has_the_same_axes_while_it_is_trained_in_the_film_and_as_a_figure(over: np.ndarray):
    config, made = small()
    metrics = [{"step": 70 * i, "loss": float(value)} for i, value in enumerate(over, start=1)]
    live = parts_film.of_training(config, metrics, {}, None)
    shown = parts_film.of_film(made, config, metrics, [0, 3])
    figure = loss_curve(shown.loss_steps, shown.loss, chance=shown.chance_loss, **parts_film.against(config, metrics))
    drawn = figure.layout.xaxis.range, figure.layout.yaxis.range
    assert (figure.layout.xaxis.type, figure.layout.yaxis.type) == (None, None)  # linear
    assert figure.layout.yaxis.title.text == "loss (nats)"
    for reel in (live, shown):
        header, _ = unpack(pack_reel(reel, alt="A film."))
        assert header["loss"]["axes"] == [pytest.approx(end) for end in drawn]
    assert drawn[0][0] == 0
    assert drawn[0][1] >= metrics[-1]["step"]
    assert drawn[1][0] <= min(over) <= max(over) <= drawn[1][1]


def test_an_axis_of_nats_holds_what_was_held_out():
    steps, loss = np.arange(1, 4), np.array([5.0, 3.0, 1.0])
    read = np.array([1, 3]), np.array([4.9, 7.0])  # learned by heart
    _, (least, most) = loss_axes(steps, loss, floor=None, chance=4.0, held_out=read)
    assert least < 1.0
    assert most == pytest.approx(7.0 * 1.03)


def app() -> None:
    import numpy as np
    import streamlit as st

    from dashboard.components.film import Reel, film_player

    nothing = np.zeros(0)
    axes, names = ((0, 10), (0, 3)), (("y1",), ("all",))
    reel = Reel([], [], nothing, nothing, 0.0, 2.3, axes, None, [], np.zeros((0, 1)), [], *names, 0.1, np.ones(1))
    st.write(f"step {film_player(reel, key='film', alt='A film.', live=True)}")


def test_it_mounts_and_reports_the_step():
    test = AppTest.from_function(app).run(timeout=PATIENCE)
    assert not test.exception
    assert test.markdown[0].value == "step None"
    header, _ = unpack(test.get("bidi_component")[0].proto.bytes)
    assert (header["live"], header["uses"], header["replay"]) == (True, False, False)
    test.session_state["film"] = {"step": 5}
    assert test.run().markdown[0].value == "step 5"


def test_the_browser_reads_what_python_writes():
    """Every field of the header that the scripts name is sent."""
    known = json.dumps(sent(moment=Moment(2, "…"), focus=0, kept=[0])[0])
    for part in ("reel", "stage", "charts", "transport", "player"):
        for name in re.findall(r"(?<!/)\breel\.(\w+)", (WEB / "film" / f"{part}.js").read_text()):
            assert f'"{name}"' in known, name
