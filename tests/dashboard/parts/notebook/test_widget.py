"""All heads in a notebook: what the browser and Python say to each other."""

from __future__ import annotations

import base64
import gzip
import json
from typing import Any

import numpy as np
import plotly.graph_objects as go
import pytest
import torch
import traitlets

import dashboard
from dashboard.components.payload import unpack
from dashboard.parts.notebook import show as showing
from dashboard.parts.notebook.widget import HeadsWidget
from dashboard.server import plotly_js
from tests.kit.models import small, tokens_of
from transformer import capture, observe
from transformer.foundation.checks import UserError


def pattern(message: bytes) -> np.ndarray:
    _, body = unpack(message)
    z = json.loads(body)["data"][0]["z"]
    return np.frombuffer(base64.b64decode(z["bdata"]), dtype=z["dtype"]).reshape(6, 6)


def test_a_head_that_is_chosen_comes_as_the_models_own() -> None:
    seen = observe(small(), tokens_of(1, 6))
    widget = dashboard.show(seen, names=tuple("abcdef"), focus="0.1")
    assert isinstance(widget, HeadsWidget)
    assert (widget.focus, str(widget.head)) == (1, "decoder.0.self_attention.1")
    for focus, (layer, head) in ((1, (0, 1)), (6, (1, 2))):
        widget.focus = focus
        own = seen[f"decoder.{layer}.self_attention.pattern"][0, head].numpy()
        np.testing.assert_allclose(np.nan_to_num(pattern(widget.message)), own, atol=1e-6)
    assert str(widget.head) == "decoder.1.self_attention.2"
    with pytest.raises(traitlets.TraitError, match="0 to 7"):
        widget.focus = 8


def test_what_is_sent_is_one_head_and_no_plotly() -> None:
    widget = dashboard.show(small(), [1, 2, 3, 4, 5, 6])
    (_, columns) = widget.document["parts"]
    grid, large = (column["parts"][0] for column in columns["columns"])
    assert large["choice"] == {"of": grid["key"], "messages": []}
    assert (widget.chooses, widget.changes) == (grid["key"], large["key"])
    assert len(json.dumps(widget.document)) < 40_000
    sent: list[Any] = []
    widget.send = lambda content, buffers=None: sent.append((content, buffers))
    widget._handle_custom_msg("plotly", [])
    ((content, (packed,)),) = sent
    assert content == "plotly"
    assert gzip.decompress(packed).decode() == plotly_js.source()


def test_it_takes_the_colours_of_the_notebook_and_keeps_its_head() -> None:
    widget = dashboard.show(observe(small(), tokens_of(1, 6)), focus="1.3")
    light = widget.document["theme"]["--st-background-color"]
    widget.dark = True
    assert widget.document["theme"]["--st-background-color"] != light
    header, _ = unpack(widget.message)
    assert header["alt"].startswith("Head 1.3, decoder self-attention. ")
    assert "head_grid" in json.dumps(widget.document)


def test_two_widgets_of_one_page_do_not_answer_each_other() -> None:
    seen = observe(small(), tokens_of(1, 6))
    links = {json.loads(unpack(dashboard.show(seen).message)[1])["layout"]["meta"]["link"] for _ in range(2)}
    assert len(links) == 2


@pytest.mark.parametrize("tokens", [[1, 2, 3], torch.tensor([1, 2, 3]), torch.tensor([[1, 2, 3]])])
def test_a_model_is_run_on_the_tokens_that_are_given(tokens: Any) -> None:
    model = small()
    by_itself, handed = dashboard.show(model, tokens), dashboard.show(observe(model, torch.tensor([[1, 2, 3]])))
    assert unpack(by_itself.message)[0] == unpack(handed.message)[0]


def test_any_other_model_is_captured() -> None:
    layer = torch.nn.TransformerEncoderLayer(8, 2, batch_first=True).eval()
    model = torch.nn.Sequential(torch.nn.Embedding(10, 8), layer)
    tokens = torch.tensor([[1, 2, 3]])
    with torch.no_grad():
        one, other = (
            dashboard.show(model, tokens, list("abc")),
            dashboard.show(capture(model, tokens), names=list("abc")),
        )
    assert unpack(one.message)[0] == unpack(other.message)[0]


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (("a text",), "What is shown is an observation, a capture, or a model and its tokens, not 'a text'"),
        ((small(),), r"show\(model, tokens, names\)"),
        ((small(), ["a", "b"]), "Tokens are a list of whole numbers"),
    ],
)
def test_what_cannot_be_shown_is_said_in_a_sentence(given: tuple[Any, ...], sentence: str) -> None:
    with pytest.raises(UserError, match=sentence):
        dashboard.show(*given)


def test_without_anywidget_one_head_is_shown(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(showing, "find_spec", lambda name: None)
    figure = dashboard.show(observe(small(), tokens_of(2, 6)), focus="1.1", sequence=1)
    assert isinstance(figure, go.Figure)
    assert figure.layout.meta["head"]["name"] == "decoder.1.self_attention.1"
    printed = capsys.readouterr().out
    assert 'pip install "attention-lab[notebook]"' in printed
    assert "Sequence 1 of a batch of 2 is shown. The argument sequence chooses another: 0." in printed
