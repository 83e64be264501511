"""The page of positional encodings: every plotted matrix and every printed number against ones worked out here."""

from __future__ import annotations

import math
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from dashboard.app_pages.positions.positions.alibi_and_none import formula_of_the_paper, slopes_sentence
from dashboard.app_pages.positions.positions.bias import by_distance
from dashboard.app_pages.positions.positions.rotation import _judged
from dashboard.figures.kit import numbers
from dashboard.view.link import limits
from tests.dashboard.app_pages.conftest import Made
from tests.kit.claims import judge
from tests.kit.claims.world import World
from tests.kit.pages import PI, array, figures, laid_out, link, network, open_page, trace
from transformer.analysis.encodings import FittedShift
from transformer.foundation.claims import Claim
from transformer.training.runs import Run


def page(**query: str) -> AppTest:
    return open_page("positions", **query)


def z(app: AppTest, key: str) -> np.ndarray:
    return array(trace(app, key, "values")["z"])


def said(app: AppTest, pattern: str) -> re.Match[str]:
    """The one place on the page that says this."""
    texts = [element.value for element in (*app.caption, *app.markdown, *app.title)]
    (found,) = (match for text in texts if (match := re.search(pattern, text)))
    return found


def number(text: str) -> float:
    """ "4.4 × 10⁻¹⁶" as a number."""
    plain = text.translate(str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹−", "-0123456789-"))
    return float(plain.replace(" × 10", "e"))


def turning(name: str, length: int, width: int, base: float) -> np.ndarray:
    """Section 3.5 of the paper, or the unit vectors of rotary pairs, number by number."""
    ways = (math.sin, math.cos) if name == "sinusoidal" else (math.cos, math.sin)
    return np.array([[ways[i % 2](p / base ** ((i - i % 2) / width)) for i in range(width)] for p in range(length)])


SIZED = {"pe_width": "8", "pe_length": "20", "base": "100", "cursor": "7", "shift": "3"}


@pytest.mark.daily(2)
@pytest.mark.parametrize(
    ("name", "query", "sizes"),
    [
        ("sinusoidal", SIZED, (20, 8, 100)),
        ("sinusoidal", {"run": "reverse-sinusoidal"}, None),
        ("rotary", {"run": "compiled"}, None),
        ("rotary", SIZED, (20, 8, 100)),
    ],
)
def test_what_follows_from_a_formula_is_the_formula(
    name: str, query: dict[str, str], sizes: tuple[int, int, int] | None
) -> None:
    app = open_page("positions", {"code": True}, encoding=name, **query)
    assert len(app.code) >= 2
    model = network(query.get("run", "reverse"))[0]
    own = model.config.d_model if name == "sinusoidal" else model.config.d_head
    length, width, base = sizes or (model.n_ctx, own, 10_000)
    table = turning(name, length, width, base)
    np.testing.assert_allclose(z(app, "encoding"), table, atol=1e-6)
    products = np.array([[sum(a * b for a, b in zip(p, q, strict=True)) for q in table] for p in table])
    np.testing.assert_allclose(z(app, "similarity"), products, rtol=1e-5, atol=1e-5)
    assert number(said(app, r"equally far apart agree to (\S+ × \S+|0):")[1]) < 1e-12
    for each in ("mean", "least", "greatest"):
        np.testing.assert_allclose(array(trace(app, "profile", each)["y"]), products[0], rtol=1e-5, atol=1e-5)

    steps = int(query.get("shift", "1"))
    matrix = z(app, "step")
    shown = table[:, : len(matrix)]
    np.testing.assert_allclose(shown[steps:], shown[:-steps] @ matrix.T, atol=1e-5)
    missed = r"is (\S+ × \S+)\. M turns" if name == "sinusoidal" else r"largest error is (\S+ × \S+)\. So"
    assert 0 < number(said(app, missed)[1]) < 1e-12

    cursor = int(query.get("cursor", (length + 1) // 2))
    first, second = ("sine", "cosine") if name == "sinusoidal" else ("cosine", "sine")
    for place, part in enumerate((first, second)):
        drawn = array(trace(app, "encoding", part)["y"])
        np.testing.assert_allclose(drawn, table[cursor - 1, place::2], atol=1e-6)
    like = array(trace(app, "similarity", "its product with every position")["y"])
    np.testing.assert_allclose(like, products[cursor - 1], rtol=1e-5, atol=1e-5)
    for wave in figures(app)["waves"]["data"]:
        dimension = int(wave["name"].split()[-1])
        np.testing.assert_allclose(array(wave["y"]), table[:, dimension], atol=1e-6)
        value = said(app, rf"At position {cursor}, by dimension: .*\b{dimension}: (−?\d\.\d\d)[,.]")[1]
        assert number(value) == pytest.approx(table[cursor - 1, dimension], abs=0.00501)
    column = trace(app, "encoding", "values")["x"][width - 1]
    part = "cosine" if name == "sinusoidal" else "sine"
    waves_last = 2 * math.pi * base ** ((width - 2) / width)
    assert column == f"{width - 1} (pair {width // 2 - 1}, {part}, wavelength {numbers.short(waves_last)})"


def test_the_hands_are_where_the_formula_puts_them() -> None:
    app = page(encoding="sinusoidal", dimensions="0,5", **SIZED)
    for place in (7, 10):
        hands = trace(app, "pairs", f"position {place}")
        angles = [(place - 1) / 100 ** (2 * pair / 8) for pair in (0, 2)]
        middles = [0.0, hands["x"][1] - math.cos(angles[1])]
        np.testing.assert_allclose(np.subtract(hands["x"][:2], middles), np.cos(angles), atol=1e-6)
        np.testing.assert_allclose(hands["y"][:2], np.sin(angles), atol=1e-6)
    degrees = [math.degrees(3 / 100 ** (2 * pair / 8)) for pair in (0, 2)]
    said(app, rf"From position 7 to 10, pair 0 turns by {degrees[0]:.0f}°, pair 2 turns by {degrees[1]:.1f}°")


@pytest.mark.daily(1)
@pytest.mark.parametrize(("run", "step"), [("reverse", None), ("reverse", 0), ("reverse-translate", None)])
def test_a_learned_table_is_that_of_its_step(run: str, step: int | None) -> None:
    model, _ = network(run, step)
    table = model.positions.get_parameter("table").detach().double().numpy()
    app = open_page("positions", {"code": True}, run=run, **({} if step is None else {"step": str(step)}))
    assert len(app.code) >= 2
    np.testing.assert_allclose(z(app, "encoding"), table, rtol=1e-6)
    products = table @ table.T
    np.testing.assert_allclose(z(app, "similarity"), products, rtol=1e-5, atol=1e-4)
    pairs = [np.diagonal(products, distance) for distance in range(len(table))]
    for name, of in (("mean", np.mean), ("least", np.min), ("greatest", np.max)):
        drawn = array(trace(app, "profile", name)["y"])
        np.testing.assert_allclose(drawn, [of(each) for each in pairs], rtol=1e-5, atol=1e-4)
    apart = max(map(np.ptp, pairs))
    assert float(said(app, r"differ by up to (\S+): the positions matter")[1]) == pytest.approx(apart, rel=5e-3)
    before, after = table[:-1], table[1:]
    nearest = (np.linalg.pinv(before) @ after).T
    np.testing.assert_allclose(z(app, "step"), nearest[:32, :32], atol=1e-4)
    missed, unseen = (float(metric.value) for metric in app.metric)
    assert missed == pytest.approx(np.linalg.norm(after - before @ nearest.T) / np.linalg.norm(after), abs=5e-4)
    assert unseen > 0.5
    said(app, "A linear map can always fit so few independent vectors")


@pytest.mark.daily(1)
@pytest.mark.parametrize("query", [{}, {"pe_heads": "3", "pe_length": "5", "slope": "2"}])
def test_alibis_prices_are_the_papers(query: dict[str, str]) -> None:
    app = open_page("positions", {"code": True}, encoding="alibi", **query)
    assert len(app.code) >= 2
    heads, length, head = int(query.get("pe_heads", 4)), int(query.get("pe_length", 16)), int(query.get("slope", 0))
    slopes = [2 ** (-8 * (h + 1) / heads) for h in range(heads)]
    np.testing.assert_allclose(array(trace(app, "slopes", "slope")["y"]), slopes, rtol=1e-6)
    expected = [[-slopes[head] * abs(q - k) for k in range(length)] for q in range(length)]
    np.testing.assert_allclose(z(app, "penalty"), expected, rtol=1e-6)
    for h in range(heads):
        left = [math.exp(-slopes[h] * d) for d in range(length)]
        np.testing.assert_allclose(array(trace(app, "fading", f"head {h}")["y"]), left, rtol=1e-5)
    ends = [f"{math.log(2) / slopes[h]:.3g}" for h in (0, -1)]
    assert app.title[0].value == (
        f"Head 0 halves a key's weight every {ends[0]} positions, head {heads - 1} every {ends[1]}."
    )


@pytest.mark.daily(2)
@pytest.mark.parametrize("run", ["reverse-aligned", "reverse", "reverse-translate", "compiled"])
def test_without_positions_reading_backwards_changes_nothing(run: str) -> None:
    app = open_page("positions", {"code": True}, run=run, encoding="none")
    assert len(app.code) >= 2
    rounding = said(app, r"its logits change by (\S+ × \S+|0) at most")[1]
    assert number(rounding) < 1e-9
    assert app.title[0].value.endswith(f"reading backwards changes no logit by more than {rounding}.")
    moved = float(said(app, r"they change by up to (\S+)\. ")[1])
    assert (moved > 0.1) == (run != "reverse-aligned")
    assert not figures(app)


# What is added to what


@pytest.mark.daily(2)
@pytest.mark.parametrize(
    ("query", "place", "column"),
    [
        ({"run": "reverse"}, 1, 0),
        ({"run": "reverse", "query": "3", "sum_column": "5"}, 3, 5),
        ({"run": "reverse-sinusoidal", "query": "2", "sum_column": "63"}, 2, 63),
        ({"run": "compiled", "query": "4"}, 4, 0),
        ({"run": "reverse-translate", "query": "2", "sum_column": "7"}, 2, 7),
        ({"run": "reverse", "encoding": "sinusoidal", "query": "5", "sum_column": "2"}, 5, 2),
    ],
)
def test_a_token_and_its_position_are_added_up_from_the_weights(query: dict[str, str], place: int, column: int) -> None:
    model, config = network(query["run"])
    tokens, _, _ = laid_out(config, np.array([PI]))
    token, d = int(tokens[0, place - 1]), model.config.d_model
    times = math.sqrt(d) if config.model.scale_embeddings else 1.0
    first = model.embedding.weight[token].detach().double().numpy() * times
    second = model.positions.vectors(model.n_ctx)[place - 1].detach().double().numpy()
    if "encoding" in query:
        angles = (place - 1) / 10_000 ** (np.arange(0, d, 2) / d)
        second = np.stack([np.sin(angles), np.cos(angles)], axis=1).ravel()
    app = page(**query)
    assert not app.warning
    np.testing.assert_allclose(z(app, "addition"), [first, second, first + second], atol=1e-5)
    written = [f"{each[column] + 0.0:.2f}" for each in (first, second, first + second)]
    a, b, c = (re.escape(text.replace("-", "−")) for text in written)
    scaled = f" × √{d}" if config.model.scale_embeddings else ""
    said(app, f"In dimension {column}, '.+'{scaled} has {a} and position {place} adds {b}: the first block reads {c}")
    (frame,) = figures(app)["addition"]["layout"]["shapes"]
    assert (frame["x0"], frame["x1"]) == (column - 0.5, column + 0.5)
    beside = [note["text"] for note in figures(app)["addition"]["layout"]["annotations"]][1:]
    assert beside == [
        f"<b>{sign}{text.replace('-', '−')}</b>" for sign, text in zip(("", "+ ", "= "), written, strict=True)
    ]


@pytest.mark.daily(2)
@pytest.mark.parametrize(
    ("name", "instead", "offered"),
    [
        ("rotary", "turns its queries and keys", ["What if it were trained with rotary positions?"]),
        ("alibi", "subtracts from a score a penalty", ["What if it were trained with ALiBi positions?"]),
        ("none", "only the mask", ["What if it were trained without positions?"]),
    ],
)
def test_of_another_encoding_it_is_said_what_takes_the_place_of_a_sum_and_a_training_is_offered(
    name: str, instead: str, offered: list[str]
) -> None:
    app = page(encoding=name)
    said(app, instead)
    said(app, "no vector is added to the token embeddings")
    assert not {"addition", "norms"} & set(figures(app))
    assert [toggle.label for toggle in app.toggle if toggle.label.startswith("What if")] == offered


@pytest.mark.daily(2)
@pytest.mark.parametrize(
    ("run", "scaled", "switched"),
    [("reverse", True, False), ("compiled", False, False), ("reverse-sinusoidal", True, True)],
)
def test_lengths_are_those_of_the_weights(run: str, scaled: bool, switched: bool) -> None:
    model, config = network(run)
    app = page(run=run, **({"scaled": str(int(not scaled))} if switched else {}))
    toggle = app.toggle(key="control-scaled")
    assert toggle.value == (scaled != switched)
    stored = np.sqrt((model.embedding.weight[:-1].detach().double().numpy() ** 2).sum(axis=1))
    root = math.sqrt(model.config.d_model)
    drawn = figures(app)["norms"]["data"]
    named = {each["name"]: array(each["y"]) for each in drawn if each["mode"] == "markers"}
    label = f"token embeddings × √{model.config.d_model}" if toggle.value else "token embeddings"
    both = stored * root, stored
    now, other = both if toggle.value else both[::-1]
    np.testing.assert_allclose(named[label], now, rtol=1e-5)
    np.testing.assert_allclose(named[f"{label}, scale switched over"], other, rtol=1e-5)
    vectors = model.positions.vectors(model.n_ctx).detach().double().numpy()
    norms = np.sqrt((vectors**2).sum(axis=1))
    np.testing.assert_allclose(named["position vectors"], norms, rtol=1e-5)
    said(app, rf"are {now.mean():.2f} long on average, positions {norms.mean():.2f}")
    ratio = now.mean() / norms.mean()
    said(app, "What if it had another encoding")
    assert not [each for each in app.toggle if each.label.startswith("What if")]
    word = "Tokens dominate" if ratio >= 2 else "Positions dominate" if ratio <= 0.5 else "Neither dominates"
    said(app, rf"\*\*{word}")
    does = "multiplies" if config.model.scale_embeddings else "does not multiply"
    said(app, f"This model {does} its token embeddings")
    toggle.set_value(not toggle.value).run()
    assert not app.exception
    assert link(app) == {"run": run, **({} if switched else {"scaled": str(int(not scaled))})}


# The view


def test_neighbours_cosine_is_that_of_the_table() -> None:
    table = network("reverse-aligned")[0].positions.get_parameter("table").detach().double().numpy()[:3]
    unit = table / np.linalg.norm(table, axis=1, keepdims=True)
    mean = f"{np.mean([unit[0] @ unit[1], unit[1] @ unit[2]]):.2f}".replace("-", "−")
    app = page(run="reverse-aligned", pe_length="3", shift="2")
    assert app.title[0].value == (f"Learned positions: neighbours are nearly unrelated, cosine {mean} on average.")
    said(app, "fitted to 1 step, misses 0.00")
    said(app, "There is only one step, so none is left for a test")


def test_a_link_is_a_view_and_the_sliders_write_it() -> None:
    query = {"run": "reverse", "encoding": "sinusoidal", **SIZED}
    app = page(**query)
    assert not app.warning
    assert link(app) == query
    assert all(app.session_state[f"control-{name}"] == int(value) for name, value in SIZED.items())
    app.slider(key="control-cursor").set_value(10).run()  # the middle of 20: the page's own choice
    assert link(app) == {name: value for name, value in query.items() if name != "cursor"}
    app.slider(key="control-pe_length").set_value(2).run()
    assert not app.warning
    assert link(app) == {"run": "reverse", "encoding": "sinusoidal", "pe_width": "8", "pe_length": "2", "base": "100"}
    app.select_slider(key="control-base").set_value(1_000_000).run()
    assert link(app)["base"] == "1000000"
    app.segmented_control(key="control-encoding").set_value("alibi").run()  # the sizes were the other's
    assert not app.warning
    assert link(app) == {"run": "reverse", "encoding": "alibi", "base": "1000000"}


@pytest.mark.daily(1)
@pytest.mark.parametrize("name", ["sinusoidal", "rotary", "alibi"])
def test_the_largest_is_less_than_a_megabyte(name: str) -> None:
    most = {field: str(limits(field)[1]) for field in ("pe_width", "pe_length", "base")}
    app = page(encoding=name, **most)
    assert not app.warning
    sizes = [len(element.proto.bytes) for element in app.get("bidi_component")]
    assert 200_000 < max(sizes) < 1_000_000


@pytest.mark.daily(1)
@pytest.mark.parametrize(
    ("task", "length", "shape"),
    [
        ("reverse-aligned", 1, {"positions": "learned", "d_model": 3, "n_heads": 1}),
        ("reverse-aligned", 2, {"positions": "rotary", "d_model": 4, "n_heads": 2, "norm": "post"}),
        ("reverse", 3, {"positions": "alibi", "d_model": 6, "n_heads": 2, "norm": "none"}),
        ("reverse-translate", 3, {"positions": "none", "d_model": 5, "n_heads": 1}),
        ("reverse", 101, {"positions": "learned", "d_model": 514, "n_heads": 2}),
    ],
)
def test_models_of_every_size_can_be_looked_at(
    task: str, length: int, shape: dict[str, Any], alone: Made, tmp_path: Path, heard: list[Claim]
) -> None:
    alone({"task": task, "length": length}, n_layers=1, d_ff=0, **shape)
    for name in {shape["positions"], "sinusoidal", "alibi"}:
        app = page(run="one", encoding=name)
        assert not app.warning, name
        assert not app.error, name
        assert figures(app) or name == "none"
    heard.clear()
    app = page(run="one", pe_length="1")
    assert not app.exception
    if shape["positions"] in ("learned", "rotary"):
        (single,) = {each for each in heard if each.name.endswith("alike_sentence")}
        judge(World.of(Run(tmp_path / "one"), "positions", pe_length="1"), single)
        assert app.title[0].value == "There is only one position, so there is no order to encode."
    if length == 101:
        said(app, "Drawn are the first 512 of 514 columns and the first 200 of 202 positions")


@pytest.mark.parametrize(
    ("value", "text"),
    [(6.2832, "6.28"), (999.4, "999"), (999.6, "1,000"), (9_999.4, "9,999"), (9_999.6, "10 k"), (62_832, "62.8 k"),
     (999_499, "999 k"), (5_950_000, "5.95 M")],
)  # fmt: skip
def test_wavelengths_are_written_in_few_letters(value: float, text: str) -> None:
    assert numbers.short(value) == text


def test_deviations_are_written_as_powers_of_ten() -> None:
    assert list(map(numbers.tiny, (0.0, 4.44e-16, 0.02))) == ["0", "4.4 × 10⁻¹⁶", "2.0 × 10⁻²"]


def test_slopes_that_the_authors_code_has_otherwise_say_so() -> None:
    assert [heads for heads in range(1, 13) if formula_of_the_paper(heads)] == [3, 5, 6, 7, 9, 10, 11, 12]


def test_a_fitted_map_is_said_to_carry_over_and_nothing_more() -> None:
    works = "The map also works for steps that it was not fitted to: a step is nearly the same linear map for every p."
    part, fails = ("The map works in part for steps", "The map does not work for steps")
    for unseen, words in ((0.099, works), (0.1, part), (0.899, part), (0.9, fails)):
        assert _judged(FittedShift(np.eye(2), 15, 0.0, unseen), width=8).startswith(words)
    free = _judged(FittedShift(np.eye(2), 15, 0.0, 0.9), width=64)
    assert free.endswith(f"{fails} that it was not fitted to.")
    assert "no linear map" not in free


def test_the_title_of_a_bias_says_from_what_to_what_a_head_adds():
    from dashboard.app_pages.positions.positions.bias import headline

    assert headline("Relative", 1, -2.0, 0.0) == "Relative positions: head 1 adds −2.00 to 0.00 to its scores."


@pytest.mark.parametrize(
    ("bias", "said"),
    [
        (np.zeros((1, 1)), "There is only one position."),
        (-np.abs(np.subtract.outer(np.arange(4.0), np.arange(4.0))), "It goes by the distance alone, the same before"),
        (np.subtract.outer(np.arange(4.0), np.arange(4.0)), "It goes by the distance alone, and is another before"),
        (np.add.outer(np.arange(4.0), np.arange(4.0)), "Pairs that are equally far apart differ by up to 6:"),
    ],
)
def test_what_a_bias_goes_by_is_said(bias: np.ndarray, said: str, heard: list[Claim]) -> None:
    assert by_distance(bias).startswith(said)
    judge(cast("Any", bias), heard[0])


@pytest.mark.parametrize("heads", [1, 2, 6])
def test_how_slopes_go_down_is_said(heads: int, heard: list[Claim]) -> None:
    slopes_sentence(np.array([2 ** (-8 * (head + 1) / heads) for head in range(heads)]))
    judge(cast("Any", SimpleNamespace(view={"pe_heads": f"{heads}"})), heard[0])
