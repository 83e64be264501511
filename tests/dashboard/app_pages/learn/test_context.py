"""The context vector by hand: every number against a GRU and its attention written anew in numpy; the page, its links.

Nothing here asks the library what is right: gates, scores, softmax and sums are worked out below, in double precision.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from dashboard.app_pages.learn.context.figures.planes import angle_plane, hull, said_plane, values_plane
from dashboard.app_pages.learn.context.figures.scores import fit_bars
from dashboard.app_pages.learn.context.steps import MAKES, STAGES, code, formula, headline, worked
from dashboard.app_pages.learn.context.tables import hand_shapes, hand_table, hand_thumbs, scores_table
from dashboard.figures.dot_products import growth_panels
from dashboard.figures.html.number_table import number_table
from dashboard.models.walks import by_hand as context_model
from dashboard.parts.prose import code_around
from tests.kit.numbers.cells import Cells, close
from tests.kit.numbers.rounding import near
from tests.kit.pages import array, falls_back, link, open_page, press, press_counted, trace
from tests.kit.recurrent_by_hand import gru_step, mapped
from tests.kit.recurrent_by_hand import numbers as exact
from transformer.analysis.dot_products import growth
from transformer.recurrent.corners import CORNERS, CornerConfig, Walker, build_walker
from transformer.recurrent.look_back import look_back, moved, one_walk, weigh
from transformer.recurrent.scoring import SCORINGS

WALKS = [(0, 1, 2, 0), (2, -1, 4, 1), (3, 1, 6, 1)]


@pytest.fixture(scope="module", autouse=True)
def _short_trainings() -> Iterator[None]:
    """The page's own choice is trained as it is for readers; of the others a test asks nothing but their numbers."""
    context_model.walker("scaled-dot")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(context_model, "STEPS", 20)
        yield


def untrained(scoring: str, affine: bool = True, seed: int = 3) -> Walker:
    """Random weights, all biases included: nothing is right because it is zero."""
    model = build_walker(CornerConfig(attention=scoring, affine=affine, most=6, seed=seed)).eval()
    torch.manual_seed(seed)
    with torch.no_grad():
        for weight in model.parameters():
            weight.add_(0.7 * torch.randn_like(weight))
    return model


# --- the same, written anew


def fit(model: Walker, scoring: str, q: np.ndarray, k: np.ndarray) -> float:
    """How well one query fits one key."""
    product = sum(float(a) * float(b) for a, b in zip(q, k, strict=True))
    if scoring == "additive":
        energy = exact(model.core.attention.energy.weight)[0]
        return sum(float(w) * math.tanh(a + b) for w, a, b in zip(energy, q, k, strict=True))
    return {
        "uniform": 0.0,
        "dot": product,
        "scaled-dot": product / math.sqrt(len(q)),
        "cosine": product / (math.sqrt(sum(q * q)) * math.sqrt(sum(k * k))),
    }[scoring]


def by_hand(model: Walker, scoring: str, given: np.ndarray, target: int, change: Any = lambda q: q) -> dict[str, Any]:
    """Everything on the way to a target, the model's own scores used before it and `scoring` at it."""
    attention, states, h = model.core.attention, [], np.zeros(2)
    for point in given.astype(np.float64):
        h = gru_step(model.core.encoder.layers[0], point, h)["after"]
        states.append(h)
    read, s = given[-1].astype(np.float64), states[-1]
    for place in range(target + 1):
        s = gru_step(model.core.decoder.layers[0], read, s)["after"]
        own, used = (True, attention.scoring) if place < target else (False, scoring)
        q = mapped(attention.query, s) if own else change(mapped(attention.query, s))
        keys, values = [mapped(attention.key, h) for h in states], [mapped(attention.value, h) for h in states]
        scores = np.array([fit(model, used, q, k) for k in keys])
        exponentials = np.array([math.exp(e - max(scores)) for e in scores])
        pattern = exponentials / sum(exponentials)
        context = np.array([sum(a * v[i] for a, v in zip(pattern, values, strict=True)) for i in range(2)])
        features = np.array([*context, *s])
        heard, read = read, mapped(model.out, features)
    return {
        "states": np.array(states), "state": s, "value": np.array(values), "key": np.array(keys), "query": q,
        "scores": scores, "exponentials": exponentials, "total": sum(exponentials), "pattern": pattern,
        "weighted": pattern[:, None] * np.array(values), "context": context, "features": features, "said": read,
        "read": heard,
    }  # fmt: skip


def turned_by(factor: float, degrees: float) -> Callable[[np.ndarray], np.ndarray]:
    """What makes a query longer and turns it."""

    def change(q: np.ndarray) -> np.ndarray:
        turned = complex(*q) * factor * np.exp(1j * np.radians(degrees))
        return np.array([turned.real, turned.imag])

    return change


@pytest.mark.parametrize("with_maps", [True, False])
@pytest.mark.parametrize("scoring", SCORINGS)
def test_every_number_of_the_run_is_what_is_worked_out_by_hand(scoring: str, with_maps: bool) -> None:
    model = untrained(scoring, with_maps)
    for start, turn, n, target in WALKS:
        walk = one_walk(start, turn, n)
        look, real = look_back(model, walk, target), by_hand(model, scoring, walk.source[0], target)
        for name in ("states", "state", "value", "key", "query", "pattern", "context", "said", "read"):
            assert getattr(look, name) == near(real[name]), name
        for name in ("pattern", "context", "said"):
            assert getattr(weigh(look, scoring), name) == near(real[name]), name
        assert np.array_equal(look.given, walk.source[0])
        assert np.array_equal(look.true, walk.target[0, target])
        named = {"value"} if scoring == "uniform" else {"query", "key", "value"}
        assert set(look.maps) == (named if with_maps else set())


@pytest.mark.parametrize("scoring", [*context_model.FIXED, "additive"])
@pytest.mark.parametrize("change", [(1.0, 0), (2.5, 0), (1.0, 90), (0.3, -35)])
def test_other_scores_and_a_moved_query_are_worked_out_alike(scoring: str, change: tuple[float, int]) -> None:
    model = untrained("additive" if scoring == "additive" else "dot")
    for start, way, n, target in WALKS:
        walk = one_walk(start, way, n)
        look, real = look_back(model, walk, target), by_hand(model, scoring, walk.source[0], target, turned_by(*change))
        work = weigh(look, scoring, moved(look.query, *change))
        for name in ("query", "scores", "exponentials", "total", "pattern", "weighted", "context", "features", "said"):
            assert getattr(work, name) == near(real[name]), name
        assert work.cosines == near([fit(model, "cosine", real["query"], k) for k in real["key"]])
        assert work.missed == near(math.dist(real["said"], look.true))


# --- laws

vectors = st.lists(st.floats(-3, 3, width=32), min_size=2, max_size=2)


@given(vectors, st.integers(1, 6), st.integers(0, 1))
def test_laws_of_the_weighted_sum(query: list[float], n: int, target: int) -> None:
    look = look_back(untrained("dot"), one_walk(1, 1, n), target)
    q = np.array(query, dtype=np.float32)
    works = {scoring: weigh(look, scoring, q) for scoring in context_model.FIXED}
    for work in works.values():
        assert work.pattern.sum() == near(1)
        assert (work.pattern >= 0).all()
        corners = look.value[hull(look.value)].astype(np.float64)
        for a, b in zip(corners, np.roll(corners, -1, axis=0), strict=True):
            # Anticlockwise: the context lies to the left of every edge of the values' hull, or on it.
            across = (b[0] - a[0]) * (work.context[1] - a[1]) - (b[1] - a[1]) * (work.context[0] - a[0])
            assert across >= -1e-5
    assert works["uniform"].context == near(look.value.mean(axis=0))
    assert works["uniform"].pattern == near(np.full(n, 1 / n))
    assert works["dot"].scores == near(math.sqrt(2) * works["scaled-dot"].scores)
    if np.linalg.norm(q) > 1e-3:
        longer = weigh(look, "cosine", 3 * q)
        assert longer.pattern == pytest.approx(works["cosine"].pattern, abs=1e-5)
    else:
        assert weigh(look, "dot", 0 * q).pattern == near(np.full(n, 1 / n))


def test_the_walk_goes_around_the_square_and_keeps_its_noise() -> None:
    for start in range(4):
        for turn in (1, -1):
            walk = one_walk(start, turn, 3, noise=0.0)
            places = [(start + turn * i) % 4 for i in range(5)]
            assert np.array_equal(np.vstack([walk.source[0], walk.target[0]]), CORNERS[places])
            noisy = one_walk(start, turn, 3)
            assert np.array_equal(noisy.source, one_walk(start, turn, 5).source[:, :3])
            assert 0 < np.abs(noisy.source - walk.source).max() < 0.5


def test_what_cannot_be_is_said() -> None:
    model, walk = untrained("dot"), one_walk(0, 1, 2)
    with pytest.raises(ValueError, match="no weights for scores of the kind 'additive'"):
        weigh(look_back(model, walk, 0), "additive")
    with pytest.raises(ValueError, match="does not look back"):
        look_back(build_walker(CornerConfig(attention="none")), walk, 0)
    with pytest.raises(IndexError, match="no target 2"):
        look_back(model, walk, 2)
    with pytest.raises(ValueError, match="no walk starts at 4"):
        one_walk(4, 1, 2)


def test_the_model_has_learned_what_it_is_said_to_have_learned() -> None:
    """On walks of this test's own, written out by hand: the noise alone is 0.14 off, saying the middle 1.4."""
    found = context_model.walker("scaled-dot")
    rng, missed = np.random.default_rng(99), []
    for i in range(100):
        places = (i + (1, -1)[i % 2] * np.arange(2 + i % 5 + 2)) % 4
        points = CORNERS[places] + 0.1 * rng.standard_normal((len(places), 2))
        said = by_hand(found.model, "scaled-dot", points[:-2], i % 2)["said"]
        missed.append(math.dist(said, points[-2 + i % 2]))
    assert math.sqrt(np.mean(np.square(missed))) == pytest.approx(found.error, abs=0.04)
    assert found.error < 0.2


# --- why √d


def test_dot_products_grow_like_the_root_of_the_width_and_are_drawn_beside_that_law() -> None:
    found = context_model.measured()
    assert found.widths.tolist() == [2**i for i in range(10)]
    assert found.law == pytest.approx([2 ** (i / 2) for i in range(10)])
    # Ten thousand products: their spread is within 5 % of √d (five standard errors at d = 1, more elsewhere).
    assert found.spread == pytest.approx(found.law, rel=0.05)
    assert found.largest[-1] > 0.9
    assert found.largest_scaled[2:].max() < 0.45
    assert (np.diff(found.largest) > 0).all()
    figure = growth_panels(found.widths, found.spread, found.law, (found.largest, found.largest_scaled), found.keys)
    drawn = {"law": found.law, "measured": found.spread, "q · k": found.largest, "q · k / √d": found.largest_scaled}
    assert [curve.name for curve in figure.data] == list(drawn)
    for curve, values in zip(figure.data, drawn.values(), strict=True):
        assert np.array_equal(curve.y, values)


def test_the_growth_is_counted_right() -> None:
    found = growth((3, 8), keys=4, draws=30, seed=5)
    for i, width in enumerate((3, 8)):
        rng = np.random.default_rng([5, width])
        q, k = (torch.from_numpy(rng.standard_normal((30, n, width), dtype=np.float32)).double() for n in (1, 4))
        dots = torch.einsum("nod,nkd->nk", q, k)
        assert found.spread[i] == pytest.approx(float(dots.std(correction=0)), rel=1e-6)
        for largest, scores in ((found.largest, dots), (found.largest_scaled, dots / math.sqrt(width))):
            assert largest[i] == pytest.approx(float(scores.softmax(-1).amax(-1).mean()), rel=1e-6)


# --- words and tables


def work_of(scoring: str, n: int = 4, query: Any = None) -> Any:
    look = look_back(untrained("additive" if scoring == "additive" else "dot"), one_walk(2, 1, n), 1)
    return weigh(look, scoring, query)


@pytest.mark.parametrize("scoring", [*context_model.FIXED, "additive"])
def test_every_step_has_its_line_of_code_its_shapes_and_its_table(scoring: str) -> None:
    work = work_of(scoring)
    assert len(hand_thumbs(work)) == len(STAGES)
    for stage in STAGES:
        name, mark = code(work, stage)
        lines, _, marked = code_around(name, mark)
        assert mark in lines[marked]
        assert formula(work, stage)
        assert hand_shapes(work, stage)[-1].name
        assert worked(work, stage).count("{") == worked(work, stage).count("}")
        assert hand_rows(work, stage)


def hand_rows(work: Any, stage: str) -> dict[str, list[str]]:
    """The rows of a step's table by their label, as they are drawn."""
    table = hand_table(work, stage)
    rows = Cells(number_table(table.labels, table.blocks, axis=table.axis, spoken="x")).rows[2:]
    assert len(rows) == len(table.labels)
    return {row[0]: row[1:] for row in rows}


@pytest.mark.parametrize("scoring", ["scaled-dot", "cosine"])
def test_the_digits_of_every_step_are_those_worked_out_by_hand(scoring: str) -> None:
    model, walk = untrained("dot"), one_walk(2, -1, 5)
    work, real = weigh(look_back(model, walk, 1), scoring), by_hand(model, scoring, walk.source[0], 1)
    rows = {stage: hand_rows(work, stage) for stage in ("values", "keys", "divide", "context", "join", "output")}
    for i in range(5):
        corner = {stage: rows[stage][f"corner at {i + 1}"] for stage in ("values", "keys", "divide", "context")}
        for stage, vector in (("values", "value"), ("keys", "key")):
            close(corner[stage], np.array([*walk.source[0][i], *real["states"][i], *real[vector][i]]))
        close(corner["divide"][:2], real["key"][i])
        close(corner["divide"][-3:], np.array([real[name][i] for name in ("scores", "exponentials", "pattern")]))
        close(corner["context"], np.array([real["pattern"][i], *real["value"][i], *real["weighted"][i]]))
    close(rows["divide"]["Σ"][-2:], np.array([real["total"], 1.0]))
    close(rows["context"]["Σ = c"][3:], real["context"])
    close(rows["join"]["[c ; s]"], real["features"])
    close_to_the_output(rows["output"], model, real, walk.target[0, 1])


def close_to_the_output(rows: dict[str, list[str]], model: Walker, real: dict[str, Any], true: np.ndarray) -> None:
    """Of each coordinate: what each feature adds, the bias, what is said, and what is right."""
    weight, bias = exact(model.out.weight), exact(model.out.bias)
    for i, name in enumerate("xy"):
        close(rows[name], np.array([*(weight[i] * real["features"]), bias[i], real["said"][i], true[i]]))


def numbers(latex: str) -> list[float]:
    return [float(text) for text in re.findall(r"-?\d+\.\d+", latex)]


def test_the_calculations_with_numbers_hold() -> None:
    """What is written out can be followed with pencil and paper, up to the rounding of what is written."""
    work = work_of("dot")
    i = work.strongest
    a, b, c, d, e = numbers(worked(work, "scores"))
    assert a * b + c * d == pytest.approx(e, abs=3e-3 * (1 + abs(a) + abs(b) + abs(c) + abs(d)))
    assert (a, c) == pytest.approx(tuple(work.query), abs=6e-4)
    assert (b, d) == pytest.approx(tuple(work.look.key[i]), abs=6e-4)
    top, bottom, share = numbers(worked(work, "divide"))
    assert top / bottom == pytest.approx(share, abs=2e-3)
    *terms, total = numbers(worked(work, "sum"))
    assert len(terms) == 4
    assert sum(terms) == pytest.approx(total, abs=4e-3)
    parts = np.array(numbers(worked(work, "context")))
    summed = parts[:12].reshape(4, 3)
    assert (summed[:, :1] * summed[:, 1:]).sum(axis=0) == pytest.approx(parts[12:], abs=5e-3)
    w = np.array(numbers(worked(work, "output")))
    assert w[:8].reshape(2, 4) @ w[8:12] + w[12:14] == pytest.approx(w[14:], abs=2e-2)
    a, b, c, d = np.split(np.array(numbers(worked(work_of("cosine"), "scores"))), [4, 5, 6])
    assert b == c == pytest.approx(a[0] * a[1] + a[2] * a[3], abs=5e-3)
    assert c[0] / (d[0] * d[1]) == pytest.approx(d[2], abs=1e-2)
    *_, dotted, scaled = numbers(worked(work_of("scaled-dot"), "scores"))
    assert dotted / math.sqrt(2) == pytest.approx(scaled, abs=1e-3)


def test_without_maps_a_vector_is_the_state_itself() -> None:
    work = weigh(look_back(untrained("uniform"), one_walk(0, 1, 3), 0), "uniform")
    assert formula(work, "keys") == "k_i = h_i"
    assert formula(work, "query") == "q = s"
    assert "the mean of all 3 values" in headline(work)


# --- figures


def test_the_arrows_end_where_the_vectors_do_and_the_arcs_are_the_angles() -> None:
    query, keys = np.array([1.0, 1.0]), np.array([[0.0, 2.0], [-1.0, -1.0], [0.5, 0.0]])
    figure = angle_plane(query, keys, [45.0, 180.0, -45.0])
    arrows = [a for a in figure.layout.annotations if a.showarrow]
    assert [(a.x, a.y, a.ax, a.ay) for a in arrows] == [(*tip, 0, 0) for tip in [query, *keys]]
    arcs = figure.data[0]
    x, y = (np.array([np.nan if v is None else v for v in axis], dtype=float) for axis in (arcs.x, arcs.y))
    for i, key in enumerate(keys):
        part = slice(41 * i, 41 * i + 40)
        bearing = np.degrees(np.unwrap(np.arctan2(y[part], x[part])))
        assert bearing[0] == pytest.approx(45)
        assert abs(bearing[-1] - np.degrees(np.arctan2(key[1], key[0]))) % 360 == pytest.approx(0, abs=1e-9)
    assert figure.layout.shapes[0].x1 == 1
    assert "180.0° from q" in figure.data[1].hovertext[2]


def test_the_hull_is_around_all_values() -> None:
    points = np.array([[0, 0], [2, 0], [2, 2], [0, 2], [1, 1], [1, 0.0]])
    assert {tuple(points[i]) for i in hull(points)} == {(0, 0), (2, 0), (2, 2), (0, 2)}
    assert sorted(hull(points[:2])) == [0, 1]
    shares = np.array([0.4, 0.1, 0.1, 0.1, 0.2, 0.1])
    figure = values_plane(points, shares, shares @ points)
    assert np.array_equal(np.array([figure.data[1].x[-1], figure.data[1].y[-1]]), shares @ points)
    sizes = figure.data[1].marker.size[:6]
    assert np.argsort(sizes)[-1] == 0


def test_the_bars_are_the_numbers() -> None:
    figure = fit_bars([180.0, None], np.array([-1.0, 0.5]), np.array([-2.0, 1.0]), np.array([0.05, 0.95]))
    assert [trace.x for trace in figure.data] == [(-1.0, 0.5), (-2.0, 1.0), (0.05, 0.95)]
    assert figure.data[0].y == ("k_1, 180°", "k_2")
    assert figure.layout.yaxis.ticktext == ("k<sub>1</sub>, 180°", "k<sub>2</sub>")
    assert figure.layout.xaxis.range == (-2.4, 1.9)
    assert figure.layout.xaxis3.range[0] == 0
    assert figure.data[1].text == ("−2.00", "1.00")


def test_the_said_and_the_right_corner_are_where_they_are() -> None:
    given, true, said = np.array([[-1.0, -1.0], [-1.0, 1.0]]), np.array([1.0, 1.0]), np.array([0.5, 3.0])
    figure = said_plane(given, true, said)
    marks = np.stack([figure.data[-1].x, figure.data[-1].y], axis=1)
    assert np.array_equal(marks, np.vstack([said, true, given]))
    assert np.abs(marks).max() < figure.layout.yaxis.range[1]


# --- the page


def tables(app: Any) -> list[dict[str, list[str]]]:
    """Each table of the page, its rows by their label."""
    bodies = [each.proto.body for each in app.get("html") if "<table" in each.proto.body]
    return [{row[0]: row[1:] for row in Cells(body).rows[2:]} for body in bodies]


def test_the_digits_on_the_page_are_those_of_the_run() -> None:
    walk, model = one_walk(2, -1, 5), context_model.walker("additive").model
    view = {"walk_start": "3", "walk_turn": "anticlockwise", "walk_given": "5", "walk_target": "2"}
    app = open_page("context", hand="output", scores="cosine", scores_trained="additive", **view)
    close_to_the_output(tables(app)[0], model, by_hand(model, "cosine", walk.source[0], 1), walk.target[0, 1])


def test_other_scores_stand_beside_the_trained() -> None:
    shown = tables(open_page("context", walk_start="2"))[1]
    walk, model = one_walk(1, 1, 2), context_model.walker("scaled-dot").model
    assert list(shown) == ["uniform", "cosine", "dot", "scaled dot"]
    for cells, scoring in zip(shown.values(), context_model.FIXED, strict=True):
        real = by_hand(model, scoring, walk.source[0], 0)
        missed = math.dist(real["said"], walk.target[0, 0])
        close(cells, np.array([*real["pattern"], *real["context"], *real["said"], missed]))
    assert len(scores_table([work_of(s) for s in context_model.FIXED]).series()) == 4


def test_the_steps_are_gone_through_and_the_query_is_moved_on_every_walk_and_put_back() -> None:
    app, model = open_page("context", run="reverse"), context_model.walker("scaled-dot").model
    first = app.title[0].value
    press_counted(app, "hand-on")
    assert link(app) == {"run": "reverse", "hand": "keys"}
    next(s for s in app.slider if s.label.startswith("Stretch the query")).set_value(4.0)
    next(s for s in app.slider if s.label.startswith("Turn the query")).set_value(90).run()
    moved = {"run": "reverse", "hand": "keys", "stretch": "4.0", "turned": "90"}
    assert link(app) == moved
    assert app.title[0].value != first

    def shares(*walk: int) -> np.ndarray:
        """Of the first target of a walk."""
        return by_hand(model, "scaled-dot", one_walk(*walk).source[0], 0, turned_by(4, 90))["pattern"]

    assert array(trace(app, "fit", "share α")["x"]) == pytest.approx(shares(3, 1, 2), abs=1e-5)
    for label, value, field in (("Given corners", 5, "walk_given"), ("Start", "3", "walk_start")):
        next(w for w in (*app.segmented_control, *app.selectbox) if w.label == label).set_value(value).run()
        moved |= {field: str(value)}
        assert link(app) == moved
    assert array(trace(app, "fit", "share α")["x"]) == pytest.approx(shares(2, 1, 5), abs=1e-5)
    press(app, "Reset")
    assert link(app) == {"run": "reverse", "hand": "keys", "walk_given": "5", "walk_start": "3"}


@pytest.mark.daily(1)
@pytest.mark.parametrize(
    "view",
    [
        {"scores_trained": "additive", "hand": "scores", "turned": "-180"},
        {"scores_trained": "uniform", "hand": "keys", "walk_given": "3"},
        {"scores_trained": "uniform", "scores": "cosine", "walk_given": "6", "walk_target": "2"},
    ],
)
def test_the_ends_of_every_choice_are_drawn(view: dict[str, str]) -> None:
    app = open_page("context", run="reverse", **view)
    assert not app.warning
    assert not app.error
    assert link(app) == {"run": "reverse", **view}


def test_the_headline_says_which_value_has_the_largest_share_in_the_context() -> None:
    """It opens on two given corners, and the larger cases are one click away."""
    app = open_page("context", run="reverse")
    assert any("lies in the convex hull of the 2 values" in caption.value for caption in app.caption)
    assert order_of_scores(app) == [MAKES[scoring] for scoring in context_model.FIXED]
    model = context_model.walker("scaled-dot").model
    [menu] = [menu for menu in app.segmented_control if menu.label == "Given corners"]
    assert (list(menu.options), menu.value) == (["2", "3", "4", "5", "6"], 2)
    for n in (2, 3, 6):
        if n > 2:
            next(menu for menu in app.segmented_control if menu.label == "Given corners").set_value(n).run()
            assert link(app) == {"run": "reverse", "walk_given": str(n)}
        assert len([row for row in tables(app)[0] if row.startswith("corner")]) == n
        real = by_hand(model, "scaled-dot", one_walk(3, 1, n).source[0], 0)
        first = int(real["pattern"].argmax()) + 1
        said = f"Value {first} has the largest share in the context vector: {real['pattern'].max():.2f}."
        assert app.title[0].value == said
        if n == 2:
            assert real["scores"][first - 1] > 0  # the score that wins where the page opens


def order_of_scores(app: Any) -> list[str]:
    """What the line that leads along the scores says of each, from left to right."""
    [line] = [caption.value for caption in app.caption if caption.value.startswith("From left to right: ")]
    return re.split("; |: |[.]$", line)[1:-1]


def test_another_model_has_scores_of_its_own() -> None:
    app = open_page("context", run="reverse", scores_trained="additive", scores="dot", turned="30")
    assert order_of_scores(app) == [MAKES[scoring] for scoring in context_model.scorings("additive")]
    next(s for s in app.selectbox if s.label == "Model trained with").set_value("dot").run()
    assert link(app) == {"run": "reverse", "scores_trained": "dot"}


def test_at_first_sight_nothing_is_trained(monkeypatch: pytest.MonkeyPatch) -> None:
    """What needs PyTorch follows; what numpy measures is there at once."""
    monkeypatch.setattr("dashboard.view.session.BEHIND", 0.5)
    monkeypatch.setattr("dashboard.models.walks.by_hand.walker", lambda trained: pytest.fail("trained at first sight"))
    app = open_page("context", run="reverse")
    assert trace(app, "growth", "law")
    assert any("will now be trained" in caption.value for caption in app.caption)


def test_what_a_link_names_in_vain_falls_back_with_a_notice_each_in_the_words_of_the_menu() -> None:
    nonsense = {
        "walk_start": ("9", "There is no start “9” here; this is bottom right."),
        "walk_turn": ("up", "“up”"),
        "walk_given": ("1", ""),
        "walk_target": ("3", "There is no target “3” here; this is the next corner."),
        "hand": ("dot", "There is no step “dot” here; this is Values."),
        "scores_trained": ("cosine", "“cosine”"),
        "stretch": ("nan", "stretch=“nan”"),
        "turned": ("7", ""),
        "scores": ("additive", "There is no score “additive” here; this is scaled dot product."),
    }
    assert len(falls_back("context", nonsense, run="reverse").title) == 1


def test_of_a_query_without_length_only_what_is_true_is_said() -> None:
    """Additive scores are the one kind that still tells keys apart."""
    app = open_page("context", run="reverse", stretch="0.0", hand="scores", scores_trained="additive")
    for scoring in ("additive", "cosine", "uniform"):
        if scoring != "additive":
            next(w for w in app.segmented_control if w.label == "Score").set_value(scoring).run()
        assert not app.warning
        assert not app.error
        captions = " ".join(caption.value for caption in app.caption)
        assert "has no angle" in captions
        assert "every dot product is 0." in captions
        assert "twice as long" not in captions
        assert ("has score 0 with every key, so all weights are equal" in captions) == (scoring == "cosine")
        assert ("the mean of all 2 values" in app.title[0].value) == (scoring != "additive")
