"""Where saved numbers say they come from: the view's link and the very weights, on every page."""

from __future__ import annotations

import hashlib
import json
import re
from html import unescape
from typing import Any
from urllib.parse import parse_qs, parse_qsl

import numpy as np
import plotly.graph_objects as go
import pytest
from streamlit.testing.v1 import AppTest

from dashboard.components.origin import Maker, origin_element
from dashboard.components.payload import unpack
from dashboard.components.plot import pack_figure
from dashboard.view.link import from_query
from tests.kit.checkout import ROOT
from tests.kit.pages import open_page
from transformer import compiled_reverser


def origin(app: AppTest) -> dict[str, Any]:
    """What the page says to whatever is saved of it."""
    element = re.compile('data-at="([0-9.]+)" data-origin="([^"]*)"')
    said = [found.groups() for each in app.get("html") if (found := element.search(each.proto.body))]
    return json.loads(unescape(max(said)[1]))  # a part that is redrawn alone says it anew


def digest_of(run: str, step: int) -> str:
    file = ROOT / "checkpoints" / run / "snapshots" / f"step-{step:06}.safetensors"
    return hashlib.sha256(file.read_bytes()).hexdigest()


@pytest.mark.daily(2)
@pytest.mark.parametrize("page", ["overview", "heads", "layers", "film", "masks", "positions", "accuracy", "runs"])
def test_every_page_says_its_weights_and_a_link_to_its_view(page: str) -> None:
    app = open_page(page, run="reverse", step="13", head="decoder.0.self_attention.1")
    said = origin(app)
    assert said["makers"] == [{"run": "reverse", "step": 13, "weights": digest_of("reverse", 13)}]
    shown = app.session_state["settings"]
    assert from_query({name: values[0] for name, values in parse_qs(said["query"]).items()}) == (shown, [])


def test_the_link_names_the_last_step_and_what_was_typed() -> None:
    said = origin(open_page("heads", run="reverse-translate", input="7 & 7"))  # "&" is no symbol, and is left out again
    assert dict(parse_qsl(said["query"])) == {"run": "reverse-translate", "step": "430"}
    assert said["makers"][0]["weights"] == digest_of("reverse-translate", 430)


def test_weights_written_by_hand_have_a_digest_of_their_own() -> None:
    expected = hashlib.sha256()
    for name, tensor in compiled_reverser().state_dict().items():
        expected.update(name.encode() + np.ascontiguousarray(tensor.numpy()).tobytes())
    assert origin(open_page("overview", run="compiled"))["makers"] == [
        {"run": "compiled", "step": 0, "weights": expected.hexdigest()}
    ]


def test_another_link_redraws_no_figure() -> None:
    def messages(app: AppTest) -> list[bytes]:
        asking = "news"  # for which each drawing has a token of its own
        return [each.proto.bytes for each in app.get("bidi_component") if asking not in each.proto.component_name]

    one = open_page("heads", run="reverse", input="7 7 7 1")
    other = open_page("heads", run="reverse", input="7 7 7 1", sequences="256")
    assert dict(parse_qsl(origin(one)["query"])) == {"run": "reverse", "step": "40", "input": "7 7 7 1"}
    assert origin(one)["query"] != origin(other)["query"]
    assert messages(one) == messages(other)


def test_figures_of_other_weights_name_their_own() -> None:
    def makers(app: AppTest, key: str) -> list[dict[str, Any]]:
        headers = [unpack(element.proto.bytes)[0] for element in app.get("bidi_component")]
        return next(header for header in headers if header.get("revision") == key)["makers"]

    app = open_page("runs", run="reverse", compare="reverse,reverse-translate")
    assert sorted(makers(app, "compare"), key=lambda maker: maker["run"]) == [
        {"run": "reverse", "step": 40, "weights": digest_of("reverse", 40)},
        {"run": "reverse-translate", "step": 430, "weights": digest_of("reverse-translate", 430)},
    ]
    app = open_page("film", run="reverse", step="13")  # the film goes on to the end
    assert makers(app, "film-heads") == [{"run": "reverse", "step": 40, "weights": digest_of("reverse", 40)}]


def test_what_a_run_is_called_cannot_leave_its_place() -> None:
    name = """x"><script>'&"""
    element = origin_element({"run": name}, [Maker(name, 3)])
    assert element.count("<") == 2
    said = json.loads(
        unescape(re.fullmatch('<div class="al-origin" data-at="[0-9.]+" data-origin="([^"]*)"></div>', element)[1])
    )
    assert said["makers"] == [{"run": name, "step": 3, "weights": ""}]
    assert dict(parse_qsl(said["query"])) == {"run": name}


def test_makers_cost_less_than_a_kilobyte() -> None:
    figure = go.Figure(go.Scatter(y=[1, 2]))
    plain = pack_figure(figure, key="k", alt="A line.", height=200)
    named = pack_figure(figure, key="k", alt="A line.", height=200, makers=[Maker("reverse", 40, "0" * 64)] * 6)
    assert 0 < len(named) - len(plain) < 1000
