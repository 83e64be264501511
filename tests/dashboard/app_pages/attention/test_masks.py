"""The page on which a mask is painted, without a browser: what is on it is what the model does under that mask."""

from __future__ import annotations

import base64
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from streamlit.testing.v1 import AppTest

from dashboard.components.payload import unpack
from tests.kit.models import untrained
from tests.kit.pages import PAGES, PI, UNFOLDED, array, figures, laid_out, link, network, open_page, press, shown, trace
from transformer import masks
from transformer.config import TaskConfig
from transformer.masks.painted import Painted

FAST = {"live": "0", "sequences": "32"}
"""A link on which nothing is retrained under the mask, and little is measured."""
REVERSE = {"run": "reverse"} | FAST


def painter(app: AppTest) -> tuple[dict[str, Any], np.ndarray]:
    """What the canvas was told: its header, and the mask."""
    messages = [unpack(element.proto.bytes) for element in app.get("bidi_component")]
    header, body = next(message for message in messages if message[0].get("key") == "painter")
    n = header["n"]
    return header, np.unpackbits(np.frombuffer(body, np.uint8), count=n * n).reshape(n, n).astype(bool)


def stroke(app: AppTest, cells: np.ndarray, at: int) -> AppTest:
    """Let the browser report a mask, and the page answer."""
    return report(app, {"n": len(cells), "cells": base64.b64encode(np.packbits(cells).tobytes()).decode(), "at": at})


def report(app: AppTest, said: Any) -> AppTest:
    """What AppTest has no verb for: a trigger of a component, as the browser sends it."""
    canvas = next(
        element.proto.id
        for element in app.get("bidi_component")
        if unpack(element.proto.bytes)[0].get("key") == "painter"
    )
    states = app._tree.get_widget_states()
    trigger = json.dumps([{"event": "stroke", "value": said}])
    states.widgets.add(id=f"$$STREAMLIT_INTERNAL_KEY_{canvas}__events", json_trigger_value=trigger)
    return app._run(states)


def under(run: str, cells: np.ndarray, question: list[int]) -> np.ndarray:
    """Logits [position, token] of a model whose own mask is `cells`, the right tokens being read."""
    model, config = network(run)
    model.visible = torch.from_numpy(cells)
    tokens, source, _ = laid_out(config, np.array([question]))
    with torch.no_grad():
        return model(tokens, source)[0].double().numpy()


@pytest.mark.nightly
@pytest.mark.parametrize("run", ["reverse", "reverse-aligned", "reverse-translate", "compiled"])
def test_the_page_says_what_the_model_says_under_a_painted_mask(run: str) -> None:
    n = 8 if run in ("reverse-aligned", "reverse-translate") else 16
    cells = np.random.default_rng(3).random((n, n)) < 0.6
    cells[5] = False  # a query that may see nothing
    app = open_page("masks", run=run, mask=str(Painted.of(cells)), **FAST)
    assert not app.warning
    header, drawn = painter(app)
    np.testing.assert_array_equal(drawn, cells)
    assert f"{cells.sum()} of {n * n} cells" in header["alt"]
    assert header["alt"].endswith("The query at 6 may see nothing: its attention is zero.")
    pattern = trace(app, "after-pattern", "values")["z"]
    np.testing.assert_array_equal(np.isfinite(array(pattern)), cells)
    sums = np.where(np.isfinite(array(pattern)), array(pattern), 0).sum(axis=1)
    np.testing.assert_allclose(sums, cells.any(axis=1), atol=1e-5)

    _, config = network(run)
    _, _, targets = laid_out(config, np.array([PI]))
    logits = {"before": under(run, network(run)[0].visible.numpy(), PI), "after": under(run, cells, PI)}
    for name, values in logits.items():
        share = np.exp(values) / np.exp(values).sum(axis=1, keepdims=True)
        truth = share[np.arange(n), targets[0]][-8:]
        np.testing.assert_allclose(array(trace(app, "probabilities", name)["y"]), truth, atol=1e-5)
    said = [values.argmax(axis=1)[-8:] for values in logits.values()]
    flips = int((said[0] != said[1]).sum())
    assert any(caption.value.startswith(f"{flips} of 8 prediction") for caption in app.caption)
    marked = [each for each in figures(app)["probabilities"]["data"] if each["name"] == "the prediction flips"]
    assert [list(array(each["x"])) for each in marked] == ([list(np.flatnonzero(said[0] != said[1]))] if flips else [])
    (strip,) = (html.proto.body for html in app.get("html") if '"after: ' in html.proto.body)
    assert strip.count(", flipped") == flips


def test_a_stroke_is_in_the_link_and_on_the_page() -> None:
    app = open_page("masks", **REVERSE, mask="causal")
    cells = np.tri(16, dtype=bool)
    np.testing.assert_array_equal(painter(app)[1], cells)
    cells[8, 3:7] = False
    stroke(app, cells, at=10)
    assert masks.parse(link(app)["mask"]) == Painted.of(cells)
    np.testing.assert_array_equal(painter(app)[1], cells)
    assert app.session_state["control-mask"] is None
    stroke(app, np.tri(16, dtype=bool), at=9)  # one that comes late
    np.testing.assert_array_equal(painter(app)[1], cells)
    stroke(app, np.tri(16, dtype=bool), at=11)  # undone: it is a rule again
    assert link(app) == REVERSE | {"mask": "causal"}
    assert app.session_state["control-mask"] == "causal"
    stroke(app, np.ones((8, 8), dtype=bool), at=12)  # of another canvas
    assert link(app) == REVERSE | {"mask": "causal"}
    report(app, {"n": 16, "cells": "!", "at": 13})
    assert not app.exception
    assert link(app) == REVERSE | {"mask": "causal"}


def test_a_shorter_input_is_padded_and_painted_at_its_full_size() -> None:
    cells = np.tri(16, dtype=bool)
    cells[9, 0] = False
    app = open_page("masks", **REVERSE, input="3 1 4", mask=str(Painted.of(cells)))
    header, drawn = painter(app)
    np.testing.assert_array_equal(drawn, cells)
    assert header["queries"].count("PAD") == 10
    assert len(array(trace(app, "probabilities", "after")["y"])) == 3


def test_a_mask_that_cannot_be_read_or_has_fewer_positions_falls_back_with_a_notice() -> None:
    small = "The mask was painted for 8 positions, and reverse has 16."
    told = {str(Painted.of(np.tri(8, dtype=bool))): small, "painted:16:AAAA": "There is no mask “painted:16:AAAA”."}
    for mask, said in told.items():
        app = open_page("masks", **REVERSE, mask=mask)
        assert [shown(warning.value) for warning in app.warning] == [f"{said} The page shows the model's own mask."]
        assert link(app) == REVERSE


def test_of_a_mask_for_more_positions_the_first_are_taken() -> None:
    large = np.random.default_rng(0).random((16, 16)) < 0.5
    app = open_page("masks", run="reverse-aligned", **FAST, mask=str(Painted.of(large)))
    assert not app.warning
    np.testing.assert_array_equal(painter(app)[1], large[:8, :8])


@pytest.mark.nightly
def test_every_rule_can_be_started_from() -> None:
    app = open_page("masks", run="reverse-aligned", **FAST)
    menu = app.button_group(key="control-mask").options
    assert list(menu) == list(masks.rules())
    for name in masks.rules():
        app.button_group(key="control-mask").set_value(name).run()
        assert not app.exception
        np.testing.assert_array_equal(painter(app)[1], masks.parse(name).matrix(8))
        assert masks.parse(link(app)["mask"]) == masks.parse(name)
    app.button_group(key="control-mask").set_value("random").run()
    app.number_input(key="control-mask-density").set_value(80).run()
    app.number_input(key="control-mask-seed").set_value(5).run()
    assert link(app)["mask"] == "random:80:5"


def test_a_painted_mask_is_offered_to_the_next_training() -> None:
    text = str(Painted.of(np.random.default_rng(0).random((16, 16)) < 0.5))
    app = open_page("masks", UNFOLDED, **REVERSE, mask=text)
    app.selectbox(key="control-train_mask").set_value(text).run()
    assert not app.exception
    assert not app.sidebar.error
    assert link(app)["train_mask"] == text
    app.number_input(key="control-length").set_value(9).run()
    (error,) = (error.value for error in app.sidebar.error)
    assert "painted for 16 positions, but the task reverse of length 9 has 18" in error


@pytest.fixture
def book(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("dashboard.app_pages.attention.masks.kept_masks.FILE", str(tmp_path / "masks.json"))
    return tmp_path / "masks.json"


def test_a_mask_is_saved_chosen_deleted_and_brought_back(book: Path) -> None:
    text = str(Painted.of(np.random.default_rng(0).random((16, 16)) < 0.5))
    app = open_page("masks", **REVERSE, mask=text)
    app.text_input(key="control-mask-name").set_value("my *hole*").run()
    assert json.loads(book.read_text()) == {"masks": {"my *hole*": text}}
    assert link(app)["mask"] == text
    app.button_group(key="control-mask").set_value("causal").run()
    app.text_input(key="control-mask-name").set_value("my *hole*").run()
    assert [error.value for error in app.main.error] == [
        "There is a mask “my \\*hole\\*” already: choose another name."
    ]
    app.selectbox(key="control-mask-saved").set_value("my *hole*").run()
    assert link(app)["mask"] == text
    press(app, r"Delete “my \*hole\*”")
    assert json.loads(book.read_text()) == {"masks": {}}
    assert link(app)["mask"] == text
    app.session_state["answered"] = {}
    press(app, r"Bring “my \*hole\*” back")
    assert json.loads(book.read_text()) == {"masks": {"my *hole*": text}}
    aligned = open_page("masks", run="reverse-aligned", **FAST)
    assert aligned.selectbox(key="control-mask-saved").options == ["my *hole*"]


def test_a_file_of_masks_that_is_damaged_is_named_and_left(book: Path) -> None:
    book.write_text("{")
    app = open_page("masks", **REVERSE, mask="causal")
    (error,) = (error.value for error in app.main.error)
    assert error.endswith("cannot be read as a list of masks; it was left as it is.")
    assert book.read_text() == "{"


# Any model


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("task", "changes"),
    [
        ({"task": "reverse-translate", "length": 3, "min_length": 1}, {"d_ff": 0, "norm": "none"}),
        ({"task": "sort", "length": 10}, {"positions": "rotary", "n_layers": 1, "mask": "random:40:1"}),
        ({"task": "reverse-aligned", "length": 1}, {"architecture": "decoder", "positions": "none"}),
    ],
)
def test_every_kind_of_model_can_be_painted_on(root: Path, task: dict[str, Any], changes: dict[str, Any]) -> None:
    untrained(root / "one", TaskConfig(**task), **changes)
    app = open_page("masks", **FAST, mask="full")
    _, cells = painter(app)
    assert cells.all()
    cells = cells.copy()
    cells[-1] = False
    stroke(app, cells, at=1)
    assert not app.exception
    assert not app.warning
    np.testing.assert_array_equal(painter(app)[1], cells)
    app.text_input(key="control-input").set_value("1").run()
    assert not app.exception


def test_a_very_long_input_is_not_painted_but_has_every_rule(root: Path) -> None:
    untrained(root / "long", TaskConfig(length=257), n_layers=1)
    app = open_page("masks", **FAST, mask="prefix:3")
    words = "Painting is for up to 512 positions; this input has 514."
    assert any(caption.value.endswith(words) for caption in app.caption)
    assert "mask" in figures(app)


def test_a_long_input_is_painted_in_squares(root: Path) -> None:
    """200 positions in 67 squares a side, the last of two cells: what is kept and tried is the mask, cell by cell."""
    untrained(root / "long", TaskConfig(length=100), n_layers=1)
    app = open_page("masks", **FAST, mask="causal")
    header, cells = painter(app)
    np.testing.assert_array_equal(cells, np.tri(200, dtype=bool))
    assert header["squares"]["factor"] == 3
    assert len(header["queries"]) == 200
    assert header["squares"]["keys"][::66] == ["1–3", "199–200"]
    assert any(caption.value.startswith("Each square is 3 × 3 positions") for caption in app.caption)
    cells[30:33] = False
    cells[60:90, 3:9] = False
    stroke(app, cells, at=1)
    assert not app.exception
    assert not app.warning
    assert masks.parse(link(app)["mask"]) == Painted.of(cells)
    np.testing.assert_array_equal(painter(app)[1], cells)
    pattern = np.isfinite(array(trace(app, "after-pattern", "values")["z"]))
    for row, column in ((10, 0), (10, 10), (20, 2), (20, 20), (66, 66), (0, 66)):
        assert pattern[row, column] == cells[3 * row : 3 * row + 3, 3 * column : 3 * column + 3].any()
    values = trace(app, "after-pattern", "values")
    places = array(values["customdata"])
    assert values["hovertemplate"].startswith("queries %{customdata[0]}–%{customdata[1]},<br>keys %{cust")
    assert (list(places[20, 2]), list(places[66, 0])) == ([61, 63, 7, 9], [199, 200, 1, 3])
    assert figures(app)["after-pattern"]["layout"]["meta"]["tokens"]["x"][66] == "199–200"
    said = "The queries at 31, 32, 33 may see nothing: their attention is zero."
    assert painter(app)[0]["alt"].endswith(said)


def test_a_mask_too_irregular_for_a_link_is_refused_and_nothing_is_lost(root: Path) -> None:
    untrained(root / "long", TaskConfig(length=150), n_layers=1)
    before = open_page("masks", **FAST, mask="random:50:1")
    header, cells = painter(before)
    noise = cells.copy()
    noise[7] = True
    app = stroke(before, noise, at=5)
    (notice,) = (warning.value for warning in app.warning)
    assert re.fullmatch(
        r"This mask is too irregular for a link: it takes 1\d,\d{3} letters, and a link has room for 12,000\..*", notice
    )
    assert link(app)["mask"] == "random:50:1"
    np.testing.assert_array_equal(painter(app)[1], cells)
    assert (header["refused"], painter(app)[0]["refused"]) == (0, 5)
    stroke(app, np.tri(300, dtype=bool), at=6)
    assert not app.warning
    assert link(app)["mask"] == "causal"


@pytest.fixture
def painted(root: Path) -> str:
    """A mask under which one query may see nothing, and the only run, whose own it is."""
    cells = np.random.default_rng(0).random((8, 8)) < 0.6
    cells[0] = False
    text = str(Painted.of(cells))
    untrained(root / "painted", TaskConfig(length=4), mask=text)
    return text


@pytest.mark.daily(2)
@pytest.mark.parametrize("page", ["overview", *(page for page in PAGES if page not in ("overview", "heads")), "heads"])
def test_every_page_opens_on_a_model_of_a_painted_mask(
    page: str, painted: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if page in ("mistakes", "lengths", "corners", "context"):  # a first look: what they train is not this model
        monkeypatch.setattr("dashboard.view.session.BEHIND", 0.5)
    app = open_page(page)
    assert not app.error
    assert not any(painted in element.value for element in (*app.caption, *app.markdown, *app.title))


def test_the_models_own_painted_mask_changes_nothing(painted: str) -> None:
    app = open_page("masks", mask=painted, **FAST)
    said = trace(app, "probabilities", "before")["y"], trace(app, "probabilities", "after")["y"]
    np.testing.assert_array_equal(*map(array, said))
    assert any(caption.value.startswith("0 of 4 predictions flip") for caption in app.caption)


def test_the_way_to_an_output_stands_before_what_the_model_says_and_is_linked_above() -> None:
    app = open_page("masks", **REVERSE)
    assert [each.value for each in app.header] == [
        "Which tokens can reach one output?",
        "What it does to a head",
        "What the model says",
    ]
    assert app.header[0].proto.anchor == "reach"
    assert any("(#reach)" in each.value for each in app.markdown)
