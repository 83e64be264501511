"""The gallery of mistakes: numbers against plain calls of models trained here, sentences for several numbers."""

from __future__ import annotations

import dataclasses
import math
import re
import threading
from html import unescape
from typing import Any

import numpy as np
import pytest
import torch
from streamlit.testing.v1 import AppTest
from torch.nn import functional

from dashboard.app_pages.learn.mistakes import choice, results, words
from dashboard.app_pages.learn.mistakes.figures.both_models import both_accuracies, both_losses, change_bars
from dashboard.app_pages.learn.mistakes.figures.code_difference import code_panes, pairs
from dashboard.app_pages.learn.mistakes.figures.measured_table import Row, measured_table
from dashboard.components.payload import unpack
from dashboard.models.on_the_spot import quick_training
from dashboard.server.roles import VIEWER
from tests.kit import claims
from tests.kit.claims.laws import mistakes  # noqa: F401
from tests.kit.pages import PI, array, figures, link, open_page, shown
from tests.kit.waiting import PATIENCE, wait_for
from transformer.foundation.claims import Claim
from transformer.mistakes import DETECTORS, MISTAKES, Comparison, Demonstration, Signature, trained
from transformer.model import build
from transformer.observation import observe
from transformer.training.loop import Step, Training, TrainingError
from transformer.training.quick import Answer

FEW = 6
"""Steps of a training whose outcome no test asks for."""


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("transformer.mistakes._base.STEPS", FEW)


PERFECT = Signature(
    accuracy=np.array([0.1] * 7 + [1.0] * 9),
    ceiling=np.array([0.1] * 7 + [1.0] * 9),
    first_half=0.1,
    second_half=1.0,
    free_running=1.0,
    chance=0.1,
    loss=1.01,
    floor=1.007,
    future=0.0,
    row_sums=(1.0, 1.0),
    moved=np.zeros(16),
    batch=0.0,
    differs=np.zeros(16),
)


def changed(probe: float = 0.0, reference: float = 0.0, **changes: Any) -> Signature:
    """Another signature; the last output moves whenever the last token changes."""
    moved, differs = np.array([0.0, probe, 9.0]), np.array([0.0, 0.0, reference])
    return dataclasses.replace(PERFECT, moved=moved, differs=differs, **changes)


def text(markup: str) -> str:
    """What is read of HTML."""
    return unescape(re.sub(r"<[^>]+>", " ", markup)).replace("\xa0", " ")


# --- sentences


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (
            changed(first_half=0.97, loss=0.02, free_running=0.2, probe=1.64, reference=3.1),
            "It looks perfect: 1.00 of the second half is right, and no weight lies on a later token. Then only the "
            "last token changes, and an earlier logit moves by 1.64.",
        ),
        (
            changed(second_half=0.998, future=0.004, row_sums=(0.014, 1.0), probe=2.0, reference=1.0),
            "It looks perfect: 0.998 of the second half is right, and hardly any weight lies on a later token. But the "
            "rows of its patterns sum to 0.01 to 1.00.",
        ),
        (
            changed(first_half=0.9, loss=0.05, future=0.54, probe=7.0, reference=4.0),
            "1.00 of the second half is right. So is 0.90 of the first half, which is random: on average a query gives "
            "later tokens a weight of 0.54.",
        ),
        (
            changed(future=0.06, probe=5.0),
            "1.00 of the second half is right, and the first half is at chance. But on average a query gives later "
            "tokens a weight of 0.06.",
        ),
        (
            changed(second_half=0.22, loss=0.0, free_running=0.2),
            "Its loss is 0.00, below the floor of 1.01, and yet only 0.22 of the second half is right.",
        ),
        (
            changed(second_half=0.27, batch=3.5, reference=1.0),
            "Only 0.27 of the second half is right, and a logit moves by 3.50 when only the order of the batch "
            "changes.",
        ),
        (
            changed(second_half=0.3, probe=0.5),
            "Only 0.30 of the second half is right, and an earlier logit moves by 0.50 when only the last token "
            "changes.",
        ),
        (
            changed(second_half=0.55, free_running=0.2, reference=2.0),
            "Only 0.55 of the second half is right. Its patterns are causal, and the rows of its patterns sum to 1.00.",
        ),
        (changed(second_half=0.55, future=0.3), "Only 0.55 of the second half is right."),
        (
            changed(reference=2.25),
            "No detector of its behaviour rings: 1.00 of the second half is right. Only the right code with the same "
            "weights tells: a logit differs by 2.25.",
        ),
        (
            changed(),
            "No detector of its behaviour rings: 1.00 of the second half is right. The right code with the same "
            "weights gives the same logits.",
        ),
        (
            changed(loss=0.5),
            "It looks perfect: 1.00 of the second half is right, and no weight lies on a later token. But its loss is "
            "0.50, below the floor of 1.01.",
        ),
        (
            changed(first_half=0.4),
            "It looks perfect: 1.00 of the second half is right, and no weight lies on a later token. But 0.40 of the "
            "first half is right too, and that is random.",
        ),
        (
            changed(batch=0.03),
            "It looks perfect: 1.00 of the second half is right, and no weight lies on a later token. But a logit "
            "moves by 0.03 when only the order of the batch changes.",
        ),
        (
            changed(free_running=0.41),
            "It looks perfect: 1.00 of the second half is right, and no weight lies on a later token. But only 0.41 of "
            "it is right once it reads its own words.",
        ),
    ],
)
def test_the_title_is_the_finding(found: Signature, said: str) -> None:
    assert words.headline(found) == said


def test_the_title_is_true_of_whatever_is_measured(heard: list[Claim]) -> None:
    rng = np.random.default_rng(0)
    for _ in range(2000):
        share = (0.0, 0.004, 0.3, 0.96, 0.998, 1.0)
        drawn = {name: float(rng.choice(share)) for name in ("first_half", "second_half", "free_running", "future")}
        drawn["second_half"] = float(rng.choice((0.22, 0.949, 0.95, 0.998, 1.0)))
        rare = {name: float(rng.choice((0.0, 1e-5, 0.004, 3.5))) for name in ("probe", "reference", "batch")}
        quiet = rng.random(3) < 0.6
        rare = {name: 0.0 if still else value for (name, value), still in zip(rare.items(), quiet, strict=True)}
        sums = ((1.0, 1.0), (0.014, 1.0), (0.995, 1.004))[rng.integers(3)]
        if rng.random() < 0.5:
            drawn |= {"first_half": 0.1, "future": 0.0, "free_running": 1.0}
        found = changed(row_sums=sums, loss=float(rng.choice((0.5, 1.01))), **rare, **drawn)
        words.headline(found)
        claims.judge(found, heard[-1])
    assert all(law.met for law in claims.LAWS[heard[-1].name])


def test_the_title_without_a_model_is_true_of_every_demonstration(heard: list[Claim]) -> None:
    shown = [found for name in MISTAKES.names() if (found := MISTAKES[name].demonstrate()) is not None]
    assert len(shown) > 3
    for found in shown:
        words.shown(found)
        claims.judge(found, heard[-1])
        assert heard[-1].sentence != "Wrong and right give the same here."


def test_the_verdict_names_who_rings_and_who_is_silent() -> None:
    assert words.verdict(changed(), changed()) == "None of 9 detectors rings. With the right code none rings."
    assert words.verdict(changed(probe=1.0), changed()) == (
        "1 of 9 detectors rings: probe. Silent: second half, first half, loss, free running, later tokens, row sums, "
        "batch and reference. With the right code none rings."
    )
    every = changed(
        second_half=0.1, first_half=0.9, loss=0.0, free_running=0.1, future=0.5, row_sums=(0.1, 2.0), probe=1.0,
        batch=1.0, reference=1.0,
    )  # fmt: skip
    assert words.verdict(every, changed(second_half=0.5, free_running=0.4)) == (
        "9 of 9 detectors ring: second half, first half, loss, free running, later tokens, row sums, probe, batch and "
        "reference. With the right code second half and free running ring."
    )
    assert words.verdict(changed(batch=1.0), changed(probe=1.0)).endswith("With the right code probe rings.")


def test_each_detector_rings_from_the_limit_on_that_is_said() -> None:
    """What stands in the last column of the table is what the library asks."""
    assert list(words.NAMES) == list(words.ASKS) == list(words.limits(PERFECT)) == list(DETECTORS)
    said = {
        name: [float(each) for each in re.findall(r"\d+\.\d+", when)] for name, when in words.limits(PERFECT).items()
    }
    assert said["floor"][1] == round(PERFECT.floor, 2)
    tiny = 1e-5
    cases = {
        "second half": ("second_half", said["second half"][0], -1),
        "first half": ("first_half", said["first half"][0], 1),
        "free running": ("free_running", said["free running"][0], -1),
        "future": ("future", said["future"][0], 1),
        "probe": ("probe", said["probe"][0], 1),
        "batch": ("batch", said["batch"][0], 1),
        "reference": ("reference", said["reference"][0], 1),
    }
    for name, (field, limit, side) in cases.items():
        assert DETECTORS[name](changed(**{field: limit + side * tiny})), name
        assert not DETECTORS[name](changed(**{field: limit - side * tiny})), name
    exact = changed(floor=1.0)
    limit = float(re.findall(r"\d+\.\d+", words.limits(exact)["floor"])[0])
    assert DETECTORS["floor"](dataclasses.replace(exact, loss=limit - tiny))
    assert not DETECTORS["floor"](dataclasses.replace(exact, loss=limit + tiny))
    low, high = said["row sums"]
    assert DETECTORS["row sums"](changed(row_sums=(low - tiny, 1.0)))
    assert DETECTORS["row sums"](changed(row_sums=(1.0, high + tiny)))
    assert not DETECTORS["row sums"](changed(row_sums=(low + tiny, high - tiny)))


def test_numbers_that_two_digits_cannot_say_are_powers_of_ten() -> None:
    values, said = (0.0, 4.4e-7, 0.0049, 0.01, 12.347), ["0", "4.4 × 10⁻⁷", "4.9 × 10⁻³", "0.01", "12.35"]
    assert [words.amount(value) for value in values] == said
    assert words.sums((0.999999, 1.000001)) == "1.00"
    assert words.sums((0.03, 3.8)) == "0.03 to 3.80"


def test_the_rows_are_the_numbers_of_both() -> None:
    rows = words.rows(changed(first_half=0.97, probe=1.64), changed(second_half=0.9, batch=4.4e-7))
    by_name = {row.name: row for row in rows}
    assert [row.name for row in rows if row.rings] == ["First half", "Probe"]
    assert [row.name for row in rows if row.right_rings] == ["Second half"]
    assert (by_name["First half"].wrong, by_name["First half"].right) == ("0.97", "0.10")
    assert (by_name["Batch"].wrong, by_name["Batch"].right) == ("0", "4.4 × 10⁻⁷")
    assert by_name["First half"].when == "above 0.15; chance is 0.10"


def test_what_is_said_of_positions_follows_from_the_numbers() -> None:
    still, moved = np.array([0.0, 0.0, 2.0]), np.array([0.5, 1.5, 2.0])
    assert words.probed(still, still) == (
        "No earlier output moves: the largest change of a logit is 0. With the right code it is 0. The last output may "
        "move."
    )
    assert words.probed(moved, still).startswith("2 of 2 earlier outputs move, output 2 most: a logit by 1.50.")
    assert words.probed(np.array([0.5, 0.0, 1.0]), moved) == (
        "1 of 2 earlier outputs moves, output 1 most: a logit by 0.50. With the right code it is 1.50. The last output "
        "may move."
    )
    assert words.referred(np.zeros(3)) == "The right code gives the same logits: the largest difference is 0."
    assert words.referred(moved).endswith("most at output 3: they differ by up to 2.00.")


def test_what_is_said_of_both_halves_and_of_the_loss() -> None:
    none, two = np.zeros(16, dtype=bool), np.arange(16) < 2
    assert words.accuracies(changed(first_half=0.5), changed(), none) == (
        "With the mistake 0.50 of the first half and 1.00 of the second half are right, with the right code 0.10 and "
        "1.00."
    )
    assert words.accuracies(changed(), changed(), two).endswith(
        "2 positions are above the ceiling: a model that sees no later token cannot be."
    )
    assert "1 position is above" in words.accuracies(changed(), changed(), np.arange(16) < 1)
    assert words.losses(changed(loss=0.02), changed()) == (
        "On fresh sequences the loss is 0.02 with the mistake and 1.01 with the right code. No model that sees only "
        "earlier tokens can be below the floor of 1.01: the first one is."
    )
    assert words.losses(changed(loss=2.0), changed()).endswith("Neither is below the floor of 1.01 by more than 0.05.")
    assert words.heads(changed(future=0.54, row_sums=(0.5, 1.0)), changed()) == (
        "With the mistake a query gives later tokens a weight of 0.54 on average, and rows sum to 0.50 to 1.00. With "
        "the right code: 0, and 1.00."
    )
    assert words.answers(3, 8, 8) == (
        "Reading its own words: 3 of 8 right with the mistake, 8 of 8 with the right code."
    )


def test_what_is_shown_without_a_model_is_its_first_difference() -> None:
    same, other = Comparison("numbers at 8", 8, 8), Comparison("shape, batch of 2", "TypeError: no", "2 × 8")
    assert words.shown(Demonstration("", (same, other))) == (
        "Shape, batch of 2: 2 × 8 with the right code, an error (TypeError) with the wrong code."
    )
    assert words.shown(Demonstration("", (same,))) == "Wrong and right give the same here."
    assert words.shown(Demonstration("", (Comparison("share", 0.6914, 0.5),))) == (
        "Share: 0.5 with the right code, 0.691 with the wrong code."
    )
    assert words.compared(Demonstration("", (same, other))) == [
        Row("Numbers at 8", "", "8", "8", False),
        Row("Shape, batch of 2", "", "TypeError: no", "2 × 8", True),
    ]


# --- pictures


def lines(pane: str) -> list[tuple[str, str]]:
    """Sign and code of each line of a pane."""
    found = re.findall(r"<div style=\"display:flex.*?>(.)</span><span[^>]*>(.*?)</span></div>", pane)
    return [(sign, unescape(re.sub("</?u>", "", code)).replace("\xa0", "")) for sign, code in found]


@pytest.mark.parametrize("name", MISTAKES.names())
def test_both_codes_are_whole_and_what_differs_has_a_sign(name: str) -> None:
    mistake = MISTAKES[name]
    difference, codes = mistake.difference(), [code.splitlines() for code in mistake.code()]
    both = pairs(difference)
    for side, code, sign, prefix in zip((0, 1), codes, "−+", "-+", strict=True):
        assert [pair[side] for pair in both if pair[side] is not None] == code
        pane = lines(code_panes(difference)[side])
        assert len(pane) == len(both)
        assert [line for mark, line in pane if mark == sign] == [
            line[2:] for line in difference if line.startswith(f"{prefix} ")
        ]
        assert [line for mark, line in pane if line or mark == sign] == [line for line in code if line] or "" in code
    assert any(one != other for one, other in both)


def test_lines_stand_beside_each_other_and_the_words_that_differ_are_underlined() -> None:
    difference = ["  def f(x):", "-     y = x < 1", "-     z = y", "+     y = x > 1", "      return y"]
    assert pairs(difference) == [
        ("def f(x):", "def f(x):"),
        ("    y = x < 1", "    y = x > 1"),
        ("    z = y", None),
        ("    return y", "    return y"),
    ]
    wrong, right = code_panes(difference)
    assert "y = x <u>&lt;</u> 1" in wrong
    assert "y = x <u>&gt;</u> 1" in right
    assert wrong.count("display:flex") == right.count("display:flex") == 4
    assert wrong.count("font-weight:700") == 2
    assert right.count("font-weight:700") == 1


def test_the_table_marks_what_rings_and_says_only_what_there_is() -> None:
    rows = [Row("One <b>", "asks", "0.9", "0.1", True, when="above 0.5"), Row("Two", "", "0", "7", False, True)]
    markup = measured_table(rows, ("Detector", "wrong", "right", "rings"), spoken='it "rings"')
    assert "One &lt;b&gt;" in markup
    assert 'aria-label="it &quot;rings&quot;"' in markup
    assert " ".join(text(markup).split()) == "Detector wrong right rings One <b> asks ✕ 0.9 0.1 above 0.5 Two 0 ✕ 7"
    assert "rings" not in text(measured_table([Row("Two", "", "0", "7", False)], ("a", "b", "c", "rings"), spoken="x"))


def test_the_bars_are_the_accuracies_of_both() -> None:
    wrong, right = np.linspace(0, 1, 4), np.array([0.1, 0.1, 1.0, 1.0])
    leaks = np.array([False, True, False, False])
    figure = both_accuracies(
        wrong, right, (wrong - 0.01, wrong + 0.01), right, 0.1, ("x2", "x3", "y1", "y2"),
        groups=("first half",) * 2 + ("second half",) * 2, leaks=leaks, sequences=512,
    )  # fmt: skip
    by_name = {each.name: each for each in figure.data}
    np.testing.assert_allclose(by_name["with the mistake"].y, wrong, rtol=1e-6)
    np.testing.assert_allclose(by_name["right code"].y, right, rtol=1e-6)
    np.testing.assert_allclose(by_name["ceiling"].y, right, rtol=1e-6)
    assert list(by_name["with the mistake"].marker.pattern.shape) == ["", "x", "", ""]
    assert "0.100 right with the right code" in by_name["right code"].hovertext[0]
    assert "0.333 right in 512 sequences" in by_name["with the mistake"].hovertext[1].replace("<br>", " ")


def test_the_curves_are_the_losses_of_both_above_their_floor() -> None:
    steps, wrong, right = np.arange(1, 4), np.array([2.3, 0.5, 0.1]), np.array([9.0, 1.5, 1.1])
    figure = both_losses(steps, wrong, right, floor=1.007, chance=2.303)
    by_name = {each.name: each for each in figure.data}
    np.testing.assert_allclose(by_name["with the mistake"].y, wrong, rtol=1e-6)
    np.testing.assert_allclose(by_name["right code"].y, right, rtol=1e-6)
    assert by_name["right code"].line.dash == "dash"
    assert sorted(shape.y0 for shape in figure.layout.shapes) == [1.007, 2.303]
    assert figure.layout.yaxis.range[1] >= 9.0


@pytest.mark.parametrize("values", [np.array([0.0, 0.5, 2.0]), np.zeros(3)])
def test_the_bars_of_a_change_are_its_numbers(values: np.ndarray) -> None:
    figure = change_bars(values, ["1", "2", "3"], against="unmoved", title="change", sentences=["a", "b", "c"])
    bars = next(each for each in figure.data if each.type == "bar")
    np.testing.assert_allclose(bars.y, values)
    assert figure.layout.yaxis.range[1] > values.max()
    assert figure.layout.yaxis.title.text == "change"


# --- what is measured, anew


def table(app: AppTest) -> dict[str, list[str]]:
    """The rows of the table of detectors, by name: what is said of the mistake and of the right code."""
    markup = next(each.value for each in app.get("html") if "Detector" in each.value)
    rows = re.findall(r"<tr style.*?</tr>", markup)
    cells = [[text(cell).strip() for cell in re.findall(r"<t[dh][^>]*>(.*?)</t[dh]>", row)] for row in rows]
    return {name: cell[1:3] for cell in cells if (name := re.match(r"[A-Z][a-z]+( [a-z]+)?(?=  |$)", cell[0])[0])}


def on_page(app: AppTest, *, right: bool = False) -> Answer:
    """The model that the page has trained. One that is trained anew may differ in the last bits, and then in more."""
    return app.session_state["lesson-mistake-right" if right else "lesson-mistake"].result()


def grids(app: AppTest) -> list[dict[str, Any]]:
    headers = [unpack(element.proto.bytes) for element in app.get("bidi_component")]
    return [header | {"body": body} for header, body in headers if "panels" in header]


def by_hand(answer: Answer) -> dict[str, Any]:
    """What a model does, from plain calls and sequences laid out here."""
    seed, model = answer.config.training.seed, answer.model
    questions = np.random.default_rng([seed, 1]).integers(0, 10, (512, 8))
    whole = torch.from_numpy(np.hstack([questions, np.full((512, 1), 10), questions[:, ::-1]]))
    tokens, targets = whole[:, :-1], whole[:, 1:]
    plain = build(answer.config).eval()
    plain.load_state_dict(model.state_dict())
    with torch.no_grad():
        logits = model(tokens)
        right = (logits.argmax(dim=-1) == targets).double().mean(dim=0).numpy()
        other = tokens.clone()
        other[:, 15] = (other[:, 15] + 1) % 10
        own = tokens[:, :9]
        for _ in range(8):
            own = torch.cat([own, model(own)[:, -1].argmax(dim=-1)[:, None]], dim=1)
        alone = torch.tensor([[*PI, 10]])
        for _ in range(8):
            alone = torch.cat([alone, model(alone)[:, -1].argmax(dim=-1)[:, None]], dim=1)
        return {
            "accuracy": right,
            "loss": float(functional.cross_entropy(logits.flatten(0, 1), targets.flatten())),
            "free": float((own[:, 9:] == whole[:, 9:]).double().mean()),
            "probe": (model(other) - logits).abs().amax(dim=(0, 2)).numpy(),
            "reference": (plain(tokens) - logits).abs().amax(dim=(0, 2)).numpy(),
            "said": alone[0, 9:].tolist(),
        }


@pytest.mark.daily(1)
@pytest.mark.parametrize(("name", "is_short"), [(choice.FIRST, True), (choice.FIRST, False)])
def test_the_page_says_what_the_trained_models_do(name: str, is_short: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if is_short:
        monkeypatch.setattr("transformer.mistakes._base.STEPS", FEW)
    app = open_page("mistakes", run="reverse", mistake=name)
    rows, figure = table(app), figures(app)
    for column, is_right in enumerate((False, True)):
        found = by_hand(on_page(app, right=is_right))
        share = {"First half": found["accuracy"][:7].mean(), "Second half": found["accuracy"][8:].mean()}
        share |= {"Free running": found["free"], "Loss": found["loss"]}
        for label, value in share.items():
            assert float(rows[label][column].lstrip("✕ ")) == pytest.approx(value, abs=0.006), label
        probe = found["probe"][:15].max()
        assert rows["Probe"][column].lstrip("✕ ") == words.amount(float(probe))
        bars = {each.get("name"): each for each in figure["mistake-accuracy"]["data"]}
        drawn = bars["right code" if is_right else "with the mistake"]
        np.testing.assert_allclose(array(drawn["y"]), found["accuracy"], atol=1e-6)
        if not is_right:
            measured_probe = next(each for each in figure["mistake-probe"]["data"] if each["type"] == "bar")
            np.testing.assert_allclose(array(measured_probe["y"]), found["probe"], rtol=1e-3, atol=1e-5)
            measured_reference = next(each for each in figure["mistake-reference"]["data"] if each["type"] == "bar")
            np.testing.assert_allclose(array(measured_reference["y"]), found["reference"], rtol=1e-3, atol=1e-5)
            assert rows["Reference"][0] == f"✕ {words.amount(float(found['reference'].max()))}"
            correct = sum(one == other for one, other in zip(found["said"], PI[::-1], strict=True))
            assert any(each.value.startswith(f"Reading its own words: {correct} of 8") for each in app.caption)
    floor = 7 / 16 * math.log(10)
    assert any(f"below {floor - 0.05:.2f}; the floor is {floor:.2f}" in each.value for each in app.get("html"))
    if name == choice.FIRST and not is_short:
        assert re.match(
            r"It looks perfect: \S+ of the second half is right, and no weight lies on a la", app.title[0].value
        )
        assert rows["Later tokens"] == ["0", "0"]
        assert rows["Row sums"] == ["1.00", "1.00"]
        assert rows["First half"][0].startswith("✕ ")
        assert link(app) == {"run": "reverse", "mistake": name}


def test_the_heads_of_both_are_those_of_the_models_and_the_chosen_one_is_enlarged(short: None) -> None:
    app = open_page("mistakes", run="reverse", mistake="no-mask", head="decoder.1.self_attention.2")
    tokens = torch.tensor([[*PI, 10, *PI[:0:-1]]])
    later = np.triu(np.ones((16, 16), dtype=bool), 1)
    made = [each["makers"] for each in grids(app)]
    assert made == [
        [{"run": f"a small model with {which}", "step": FEW, "weights": ""}]
        for which in ("the mistake no-mask", "the right code")
    ]
    assert [each["focus"] for each in grids(app)] == [6, 6]
    for grid, is_right in zip(grids(app), (False, True), strict=True):
        observed = observe(on_page(app, right=is_right).model, tokens)
        assert len(grid["panels"]) == 8
        for panel in grid["panels"]:
            pattern = observed[f"decoder.{panel['row']}.self_attention.pattern"][0, panel["column"]].detach().numpy()
            drawn = np.frombuffer(grid["body"], "<f4", 256, panel["pattern"]).reshape(16, 16)
            np.testing.assert_allclose(drawn, pattern, atol=1e-6)
            if is_right:
                mask = np.frombuffer(grid["body"], np.uint8, 256, panel["mask"]).reshape(16, 16)
                np.testing.assert_array_equal(mask == 0, later)
            else:
                assert "mask" not in panel  # weight lies everywhere, and is shown
    pattern = observe(on_page(app).model, tokens)["decoder.1.self_attention.pattern"][0, 2].detach().numpy()
    share = float(sum(pattern[8 + i, 7 - i] for i in range(8)) / 8)  # SEP says the last symbol, and so on
    assert any(
        each.value == f"Head 1.2 puts {share:.2f} of its weight on the tokens to be written." for each in app.caption
    )
    drawn = next(each for each in figures(app)["mistake-head-wrong"]["data"] if each.get("name") == "values")
    np.testing.assert_allclose(array(drawn["z"]), pattern, atol=1e-6)
    other = open_page("mistakes", run="reverse", mistake="no-mask", head="decoder.7.self_attention.2")
    assert [each.value for each in other.warning] == ["These models have no head of that name. Others are shown."]


# --- the page


@pytest.mark.daily(2)
@pytest.mark.parametrize("name", MISTAKES.names())
def test_every_mistake_opens(name: str, short: None) -> None:
    mistake = MISTAKES[name]
    app = open_page("mistakes", run="reverse", mistake=name)
    assert not app.warning
    assert not app.error
    assert len(app.title) == 1
    said = "\n".join(shown(each.value) for each in (*app.markdown, *app.caption))
    for sentence in (mistake.title, mistake.hidden, mistake.exposes, mistake.mend, mistake.met):
        assert sentence in said
    assert app.selectbox(key="control-mistake").value == name
    wrong = [each.value for each in app.get("html") if "−</span>" in each.value]
    right = [each.value for each in app.get("html") if "+</span>" in each.value]
    assert wrong or right  # one of them may only have lines more
    plots = set(figures(app))
    assert ("mistake-accuracy" in plots) == mistake.trains
    assert ("mistake-encoding-wrong" in plots) == (mistake.trains and mistake.kind == "positions")
    assert any("Both codes, run side by side" in each.value for each in app.markdown) == bool(mistake.demonstrate())
    if mistake.trains:
        assert f"{FEW} steps" in said


def test_encodings_are_those_of_both_codes(short: None) -> None:
    app = open_page("mistakes", run="reverse", mistake="base-1000")
    for key, base in (("wrong", 1000), ("right", 10_000)):
        found = next(each for each in figures(app)[f"mistake-encoding-{key}"]["data"] if each["type"] == "heatmap")
        table = np.zeros((16, 64))
        for place in range(16):
            for i in range(0, 64, 2):
                angle = place / base ** (i / 64)
                table[place, i], table[place, i + 1] = math.sin(angle), math.cos(angle)
        np.testing.assert_allclose(array(found["z"]), table, atol=1e-5)
    along = open_page("mistakes", run="reverse", mistake="along-the-batch")
    assert any("1 different vector at 16 positions" in each.value for each in along.caption)


def test_one_without_a_model_shows_what_both_codes_give() -> None:
    app = open_page("mistakes", run="reverse", mistake="weights-averaged")
    assert app.title[0].value.startswith("Shape of the weights: 2 × 4 × 8 × 8 with the right code, 2 × 8 × 8 with")
    markup = next(each.value for each in app.get("html") if "wrong code" in each.value)
    assert "✕ 2 × 8 × 8" in " ".join(text(markup).split())
    assert not figures(app)
    assert "Seed" not in [each.label for each in app.get("button_group")]


def test_menus_choose_among_all(short: None) -> None:
    app = open_page("mistakes", run="reverse")
    assert link(app) == {"run": "reverse"}
    assert app.selectbox(key="control-mistake").value == choice.FIRST
    kinds = choice.gallery()
    assert sorted(each.name for found in kinds.values() for each in found) == list(MISTAKES.names())
    assert all(each.kind == kind for kind, found in kinds.items() for each in found)
    app.button_group(key="control-mistake-kind").set_value("training").run()
    assert link(app) == {"run": "reverse", "mistake": "normal-draw"}
    app.button_group(key="control-mistake-kind").set_value("module").run()
    app.selectbox(key="control-mistake").set_value("batch-of-one").run()
    assert link(app) == {"run": "reverse", "mistake": "batch-of-one"}
    app.selectbox(key="control-mistake").set_value(choice.FIRST).run()
    assert link(app) == {"run": "reverse"}


def test_a_mistake_that_nobody_knows_falls_back_with_a_sentence(short: None) -> None:
    app = open_page("mistakes", run="reverse", mistake="<b>nothing</b>")
    assert len(app.warning) == 1
    assert "in the gallery. This one is “Heads are merged without the transpose”." in shown(app.warning[0].value)
    assert link(app) == {"run": "reverse"}
    seeds = open_page("mistakes", run="reverse", mistake_seed="3")
    assert len(seeds.warning) == 1
    assert link(seeds) == {"run": "reverse"}


# --- the trainings


def test_both_are_trained_once_for_all_who_look_and_the_right_one_for_all_mistakes(short: None) -> None:
    app = open_page("mistakes", run="reverse", mistake="scale-missing")
    wrong, right = (app.session_state[f"lesson-{place}"] for place in ("mistake", "mistake-right"))
    assert (wrong.mistake, right.mistake) == ("scale-missing", "")
    assert wrong.config == right.config == MISTAKES["scale-missing"].config(0)
    for lesson, is_right in ((wrong, False), (right, True)):
        anew = [step.loss for step in trained(MISTAKES["scale-missing"], 0, right=is_right).steps]
        assert [step.loss for step in lesson.result().steps] == pytest.approx(anew, rel=1e-4)
    other = open_page("mistakes", run="reverse", mistake="no-mask")
    assert other.session_state["lesson-mistake-right"] is right
    again = open_page("mistakes", run="reverse", mistake="scale-missing")
    assert again.session_state["lesson-mistake"] is wrong


def test_who_may_only_look_begins_no_training(short: None, monkeypatch: pytest.MonkeyPatch) -> None:
    query = {"run": "reverse", "mistake": "scale-twice", "mistake_seed": "2"}
    config = MISTAKES["scale-twice"].config(2)
    app = open_page("mistakes", state={"visitor": VIEWER}, **query)
    assert not quick_training.is_kept(config, "scale-twice")
    assert "lesson-mistake" not in app.session_state
    assert app.title[0].value == "The scale is applied twice: wrong and right code."
    assert any("no model is trained for you" in each.value for each in app.info)
    open_page("mistakes", **query)
    assert quick_training.is_kept(config, "scale-twice")
    assert quick_training.is_kept(config)
    seen = open_page("mistakes", state={"visitor": VIEWER}, **query)
    assert "mistake-accuracy" in figures(seen)
    assert not seen.info


def test_what_breaks_a_training_is_a_sentence_and_the_next_one_says_how_far_it_is(
    short: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    goes_on, took = threading.Event(), Training.take_step

    def broken(training: Training) -> Step:
        raise TrainingError("the loss is no longer a number")

    def slow(training: Training) -> Step:
        if training.step == 3:
            goes_on.wait(PATIENCE)
        return took(training)

    monkeypatch.setattr(Training, "take_step", broken)
    app = open_page("mistakes", run="reverse", mistake="sine-everywhere", mistake_seed="2")
    assert [each.value for each in app.warning] == ["The loss is no longer a number."]
    assert app.title[0].value == "Odd dimensions are sines too: the training broke off."
    monkeypatch.setattr(Training, "take_step", slow)
    monkeypatch.setattr("dashboard.models.background.AT_ONCE", 0.0)
    app = open_page("mistakes", run="reverse", mistake="sine-everywhere", mistake_seed="2")
    assert not app.warning
    lessons = [app.session_state[f"lesson-{place}"] for place in ("mistake", "mistake-right")]
    wait_for("three steps of both", lambda: [len(each.steps) for each in lessons], lambda steps: steps == [3, 3])
    app.run()
    assert app.title[0].value == "Odd dimensions are sines too: two models are being trained."
    assert not figures(app)
    said = [each.proto.text for each in app.get("progress")]
    assert said == [f"A model {name}: step 3 of {FEW}" for name in ("with the mistake", "with the right code")]
    goes_on.set()
    for each in lessons:
        each.result()
    app.run()
    assert "mistake-accuracy" in figures(app)


def test_positions_above_the_ceiling_are_more_than_luck() -> None:
    ceiling = np.array([0.1, 0.1, 0.1, 1.0])
    np.testing.assert_array_equal(results.above(np.array([0.1, 0.13, 0.9, 1.0]), ceiling), [False, False, True, False])
