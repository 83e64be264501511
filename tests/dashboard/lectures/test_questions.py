"""Questions and their answers: what the browser is told is what the raw weights and the run's own counts say."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch

from dashboard.lectures.lecture import read
from dashboard.lectures.questions import Cells, Question, asked
from dashboard.lectures.shelf import lectures
from dashboard.lectures.values import ViewValues
from dashboard.view.link import View
from tests.kit.pages import PI, ROOT, SEP, network
from transformer.observation import observe

HEAD = "decoder.0.self_attention.2"
ABOUT = "---\ntitle: A test\nminutes: 1\nlanguage: en\naudience: nobody\n---\n"


@pytest.fixture(scope="module")
def values() -> ViewValues:
    return ViewValues(View(run="reverse"))


@pytest.fixture(scope="module")
def pattern() -> np.ndarray:
    model, _ = network("reverse")
    seen = observe(model, torch.tensor([[*PI, SEP, *PI[::-1][:-1]]]))
    return seen["decoder.0.self_attention.pattern"][0, 2].numpy()


def question(*lines: str) -> Question:
    (step,) = read("x", f"{ABOUT}## A\nview: heads?run=reverse\n" + "\n".join(lines) + "\n\nWords.").steps
    assert step.question is not None
    return step.question


def test_the_bars_are_the_counts_of_the_run(values: ViewValues) -> None:
    kept = json.loads((ROOT / "checkpoints/reverse/evaluation.json").read_text())
    header, body = asked(question("ask: How often?", "bars: accuracies"), values, "")
    assert header["truth"] == pytest.approx([count / kept["sequences"] for count in kept["correct"]])
    assert header["labels"][:3] == ["x2", "x3", "x4"]
    assert len(header["labels"]) == len(header["truth"]) == 16
    assert body == b""


def test_the_bars_of_a_row_are_the_weights_that_it_may_give(values: ViewValues, pattern: np.ndarray) -> None:
    header, _ = asked(question("ask: How much?", f'bars: row("{HEAD}", 9)'), values, "")
    assert header["truth"] == pytest.approx(pattern[8, :9].tolist(), abs=1e-6)
    assert header["labels"][7:] == ["6 at 8", "SEP at 9"]


def test_the_cells_are_the_pattern_and_its_mask(values: ViewValues, pattern: np.ndarray) -> None:
    header, body = asked(question("ask: Where?", f'cells: pattern("{HEAD}")'), values, "")
    weights = np.frombuffer(body, dtype="<f4").reshape(16, 16)
    np.testing.assert_allclose(weights, pattern, atol=1e-6)
    allowed = np.unpackbits(np.array(header["allowed"], dtype=np.uint8))[:256].reshape(16, 16)
    np.testing.assert_array_equal(allowed, np.tril(np.ones((16, 16))))
    assert header["rows"] == header["columns"]
    assert header["rows"][8] == "SEP"


def test_a_number_is_told_as_it_is_written(values: ViewValues, pattern: np.ndarray) -> None:
    header, _ = asked(question("ask: How much?", f'number: weight("{HEAD}", 9, 8) :.3f'), values, "")
    assert header["truth"] == pytest.approx(float(pattern[8, 7]), abs=1e-6)
    assert (header["digits"], header["share"]) == (3, False)
    assert asked(question("ask: How many?", "number: heads"), values, "")[0] | {"id": ""} == {
        "ask": "How many?",
        "kind": "number",
        "truth": 4.0,
        "digits": 0,
        "share": False,
        "id": "",
    }
    share = question("ask: Which share is it?", f'number: weight("{HEAD}", 9, 8) :.2f')
    assert asked(share, values, "")[0]["share"]


def test_the_right_choice_follows_from_the_numbers(values: ViewValues) -> None:
    lines = ("ask: How many?", "choice: two when heads == 2", "choice: four when heads == 4")
    assert asked(question(*lines), values, "")[0]["truth"] == 1


def test_a_question_and_its_choices_say_numbers_of_the_view(values: ViewValues) -> None:
    ask = "ask: Of {{ heads }} heads in {{ layers }} layers, how many?"
    choices = ("choice: 3 of {{ heads }} when heads == 3", "choice: all {{ heads :.1f }} when heads == 4")
    header, _ = asked(question(ask, *choices), values, "")
    assert header["ask"] == "Of 4 heads in 2 layers, how many?"
    assert header["choices"] == ["3 of 4", "all 4.0"]
    assert [(each.text, each.line) for each in question(ask, *choices).expressions] == [
        ("heads", 9),
        ("layers", 9),
        ("heads", 10),
        ("heads", 11),
    ]


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (("choice: two when heads == 2", "choice: three when heads == 3"), "none of the choices are true"),
        (("choice: few when heads > 2", "choice: many when heads > 3"), "2 of the choices are true"),
        (("bars: heads",), "“heads” is not what “bars” takes"),
        (("cells: accuracies",), "“accuracies” is not what “cells” takes"),
        (("number: accuracies",), "is no number"),
        (("number: heads > 2",), "is no number"),
        (("bars: accuracies + 1",), "has no value"),
        (('cells: pattern("decoder.7.self_attention.0")',), "there is no head"),
        (("number: heads", "ask: Of {{ nope }}?"), "there is no “nope” in a view"),
        (("choice: {{ nope }} when heads == 4", "choice: b when heads == 3"), "there is no “nope” in a view"),
    ],
)
def test_a_question_without_an_answer_is_named(values: ViewValues, lines: tuple[str, ...], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        asked(question(*(() if "ask" in "".join(lines) else ("ask: What?",)), *lines), values, "")


def test_a_text_has_no_bars() -> None:
    with pytest.raises(ValueError, match="which has no right answer"):
        asked(question("ask: What?", "bars: accuracies"), ViewValues(View(run="shakespeare")), "")


def test_a_pattern_of_many_tokens_is_not_painted() -> None:
    values = {"pattern": Cells(("a",) * 41, ("a",) * 41, np.zeros((41, 41)), np.ones((41, 41), dtype=bool))}
    with pytest.raises(ValueError, match="41 tokens is too large to paint; 40 are the most"):
        asked(question("ask: Where?", "cells: pattern"), values, "")


def test_another_answer_or_view_is_another_question(values: ViewValues) -> None:
    one = question("ask: How many?", "number: heads")
    other = question("ask: How many?", "number: layers")
    ids = {asked(each, values, of)[0]["id"] for each in (one, other) for of in ("", "step 40")}
    assert len(ids) == 4
    assert asked(one, values, "")[0]["id"] == asked(one, values, "")[0]["id"]


def test_every_shipped_lecture_asks_something() -> None:
    for lecture in lectures().files.values():
        assert any(step.question for step in lecture.steps), lecture.name
