"""Pages opened without a browser, and what stands on them."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from google.protobuf.json_format import MessageToDict
from streamlit.testing.v1 import AppTest

from dashboard.components.payload import unpack
from dashboard.frame.training_panel import FOLD
from dashboard.view.pages import PAGES
from tests.kit.heads_by_hand import read_by_hand
from tests.kit.waiting import PATIENCE
from transformer import checkpoints, compiled_reverser
from transformer.compiled import compiled_config
from transformer.config import RunConfig
from transformer.model import Transformer
from transformer.training.runs import Run

ROOT = Path(__file__).resolve().parents[2]
SHIPPED = ("reverse", "reverse-sinusoidal", "reverse-aligned", "reverse-aligned-causal", "reverse-translate")
RUNS = (*SHIPPED, "compiled")
SEP = 10
PI = [3, 1, 4, 1, 5, 9, 2, 6]


class State(dict):
    """A session's state, of which Streamlit's own stands for one only while a page is run."""

    __getattr__, __setattr__ = dict.__getitem__, dict.__setitem__


UNFOLDED = {FOLD: True}
"""State of a session in which the settings of the training panel are unfolded, and so drawn."""


def open_page(page: str = "overview", state: Mapping[str, Any] | None = None, **query: str) -> AppTest:
    """A page, as the link with these parameters opens it, in a session that knows `state` already."""
    app = AppTest.from_file(str(ROOT / "dashboard" / "frame" / "main.py"), default_timeout=PATIENCE)
    for name, known in (state or {}).items():
        app.session_state[name] = known
    for name, value in query.items():
        app.query_params[name] = value
    app.switch_page(PAGES[page].script).run()
    assert not app.exception
    return app


@lru_cache(maxsize=8)
def page_to_read(page: str, **query: str) -> AppTest:
    """The same, run once for several tests that read it: none of them operates it."""
    return open_page(page, **query)


def components(app: AppTest) -> int:
    """How many stand on a page; none that asks for news, which go when what they wait for has come."""
    return sum("news" not in each.proto.component_name for each in app.get("bidi_component"))


def words(app: AppTest) -> str:
    """What a page says in paragraphs and captions, as it is read."""
    return shown(" ".join(each.value for each in (*app.markdown, *app.caption)))


def sentences(app: AppTest) -> set[str]:
    """Every text that a page hands to the browser and that has a word in it: also in figures, tables and tooltips."""
    found: set[str] = set()

    def take(value: Any) -> None:
        if isinstance(value, dict):
            for each in value.values():
                take(each)
        elif isinstance(value, list | tuple):
            for each in value:
                take(each)
        elif isinstance(value, str) and len(value) < 20_000:
            bare = re.sub(r"<style.*?</style>|<[^>]+>", " ", value, flags=re.DOTALL)
            found.add(shown(" ".join(bare.split())))

    def walk(node: Any) -> None:
        for each in node.children.values():
            if hasattr(each, "children"):
                take(MessageToDict(each.proto) if each.proto is not None else {})
                walk(each)
            elif each.type == "bidi_component":
                header, body = unpack(each.proto.bytes)
                take([header, json.loads(body) if body[:1] == b"{" else ""])
            else:
                take(MessageToDict(each.proto))
            if each.type == "arrow_data_frame":
                take([[str(name) for name in each.value.columns], each.value.select_dtypes("object").values.tolist()])

    walk(app._tree)
    return {text for text in found if re.search("[A-Za-z]{3}", text)}


def link(app: AppTest) -> dict[str, str]:
    """The parameters of the address that the page has written."""
    return {name: values[0] if isinstance(values, list) else values for name, values in app.query_params.items()}


def figures(app: AppTest) -> dict[str, dict[str, Any]]:
    """The Plotly figures on a page, by key."""
    messages = [unpack(element.proto.bytes) for element in app.get("bidi_component")]
    return {header["revision"]: json.loads(body) for header, body in messages if "revision" in header}


def shown(text: str) -> str:
    """A text as it is read: without what `plain` put in, by which its characters mean themselves."""
    text = text.replace("\u2060", "")
    return re.sub(r"\\([^A-Za-z0-9\s])", r"\1", text)


def falls_back(page: str, nonsense: Mapping[str, tuple[str, str]], **query: str) -> AppTest:
    """A page whose link names so much in vain: a notice says the words of each, and nothing of it stays in the link."""
    app = open_page(page, **query, **{name: value for name, (value, _) in nonsense.items()})
    notices = [shown(warning.value) for warning in app.warning]
    assert len(notices) == len(nonsense)
    for _, words in nonsense.values():
        assert any(words in notice for notice in notices), words
    assert link(app) == {"run": query.get("run", "reverse")}
    return app


def trace(app: AppTest, key: str, name: str) -> dict[str, Any]:
    return next(each for each in figures(app)[key]["data"] if each.get("name") == name)


def staged(app: AppTest) -> dict[str, Any]:
    """What the stage of a training has been told."""
    messages = [unpack(element.proto.bytes)[0] for element in app.get("bidi_component")]
    return next(header for header in messages if "accuracySteps" in header)


def large_head(app: AppTest) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """What the figure of the head in focus says of it, and the numbers of its matrices, NaN where nothing is seen."""
    each = figures(app).values()
    figure = next(figure for figure in each if "head" in (figure["layout"].get("meta") or {}))
    matrices = [trace for trace in figure["data"] if "view" in (trace.get("meta") or {})]
    values = {trace["meta"]["view"]: array(trace.get("customdata", trace["z"])) for trace in matrices}
    return figure["layout"] | figure["layout"]["meta"] | figure["layout"]["meta"]["head"], values


def array(value: Any) -> np.ndarray:
    """An array of a figure, which travels as a list or as base64."""
    if not isinstance(value, dict):
        return np.array(value)
    flat = np.frombuffer(base64.b64decode(value["bdata"]), value["dtype"])
    return flat.reshape([int(n) for n in str(value.get("shape", flat.size)).split(",")])


def network(run: str, step: int | None = None) -> tuple[Transformer, RunConfig]:
    if run == "compiled":
        return compiled_reverser(), compiled_config()
    return checkpoints.load(Run(ROOT / "checkpoints" / run).snapshot(step))


def laid_out(config: RunConfig, x: np.ndarray) -> tuple[torch.Tensor, torch.Tensor | None, np.ndarray]:
    """Tokens, source and targets of reversals, by hand: x is int [sequence, place]."""
    y, sep = x[:, ::-1], np.full((len(x), 1), SEP)
    tokens, source, targets = {
        "reverse": lambda: (np.hstack([x, sep, y[:, :-1]]), None, np.hstack([x[:, 1:], sep, y])),
        "reverse-aligned": lambda: (x, None, y),
        "reverse-translate": lambda: (np.hstack([sep, y[:, :-1]]), x, y),
    }[config.task.task]()
    return torch.tensor(tokens), None if source is None else torch.tensor(source), targets.copy()


@torch.no_grad()
def answer(model: Transformer, config: RunConfig, question: list[int]) -> list[int]:
    """What a model says by itself, one argmax after the other."""
    x = torch.tensor([question])
    if config.task.task == "reverse-aligned":
        return model(x)[0].argmax(-1).tolist()
    said: list[int] = []
    for _ in question:
        if config.task.task == "reverse":
            logits = model(torch.tensor([[*question, SEP, *said]]))
        else:
            logits = model(torch.tensor([[SEP, *said]]), x)
        said.append(int(logits[0, -1].argmax()))
    return said


def sample(run: str, step: int | None = None) -> tuple[Transformer, RunConfig, torch.Tensor, torch.Tensor | None]:
    """A run's network, and its example as it reads it, its own words in place of the answer: tokens and source."""
    model, config = network(run, step)
    if config.task.task == "text":
        task = config.build_task()
        return model, config, torch.tensor([[task.separator, *task.example[:-1]]]), None
    return model, config, *read_by_hand(config.task.task, PI, answer(model, config, PI))


def counted(model: Transformer, config: RunConfig, sequences: int = 4096) -> np.ndarray:
    """Whether each target is right, bool [sequence, target], on the sequences that the dashboard measures on."""
    rng = np.random.default_rng([config.training.seed + 1, 1])
    tokens, source, targets = laid_out(config, rng.integers(0, 10, (sequences, 8)))
    with torch.no_grad():
        return model(tokens, source).argmax(-1).numpy() == targets


def press_counted(app: AppTest, key: str, times: int = 1) -> AppTest:
    """What the browser says of a counted button that was pressed so many times more."""
    (button,) = (each.proto.id for each in app.get("bidi_component") if each.proto.id.endswith(f"-{key}"))
    name = f"{key}-seen"
    seen = app.session_state[name] if name in app.session_state else None  # noqa: SIM401 - it has no get
    told = seen["count"] if seen else 0
    states = app._tree.get_widget_states()
    states.widgets.add(id=button, json_value=json.dumps({"presses": {"since": 1, "count": told + times}}))
    app._run(states)
    assert not app.exception
    return app


def is_off(app: AppTest, key: str) -> bool:
    """Is a counted button disabled?"""
    (button,) = (each.proto for each in app.get("bidi_component") if each.proto.id.endswith(f"-{key}"))
    return bool(unpack(button.bytes)[0]["disabled"])


def press(app: AppTest, label: str) -> AppTest:
    app = next(button for button in app.button if button.label == label).click().run()
    assert not app.exception
    return app
