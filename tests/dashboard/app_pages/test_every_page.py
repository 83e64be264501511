"""Every page, run without a browser: its numbers against numbers counted here, its links, and its training panel.

What is compared is worked out from the weights by other means than the library's: sequences laid out by hand, answers
taken from logits, accuracies counted with numpy.
"""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from streamlit.testing.v1 import AppTest

from dashboard.components.payload import unpack
from dashboard.parts.prose import JOINER
from dashboard.view.link import OF_MODEL
from tests.kit.pages import (
    PAGES,
    PI,
    ROOT,
    RUNS,
    UNFOLDED,
    answer,
    array,
    counted,
    laid_out,
    large_head,
    link,
    network,
    open_page,
    shown,
    staged,
    trace,
)
from transformer import observe
from transformer.config import ConfigError, ModelConfig, RunConfig, TaskConfig
from transformer.model import build
from transformer.training import lock
from transformer.training.recording import record
from transformer.training.runs import Run

RUNS_FOLDER = ROOT / "checkpoints"
MARKDOWN = ("title", "header", "subheader", "markdown", "caption", "info", "warning", "error", "success")
"""The elements whose text is read as Markdown."""


@pytest.mark.nightly
@pytest.mark.parametrize("run", RUNS)
def test_every_page_opens_on_a_third_of_the_runs_and_every_run_on_a_third_of_the_pages(run: str) -> None:
    for page in list(PAGES)[RUNS.index(run) % 3 :: 3]:
        app = open_page(page, run=run)
        assert len(app.title) == 1, page
        assert not app.warning, page
        assert not app.error, page
        assert link(app) == {"run": run}, page
        empty = page in ("tokens", "writing") or PAGES[page].imported or (page, run) == ("film", "compiled")
        assert app.get("bidi_component") or empty, page


@pytest.mark.nightly
@pytest.mark.parametrize("run", ["reverse", "bottleneck-gru", "bottleneck-gru-attention"])
def test_the_name_of_a_run_is_a_text_on_every_page(run: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever trains, uploads or renames a run chooses what it is called."""
    monkeypatch.setattr("dashboard.models.menu.ROOT", tmp_path)
    name = "*www.evil.test*"
    shutil.copytree(RUNS_FOLDER / run, tmp_path / name)
    named = 0
    for page, asked in [*((page, {}) for page in PAGES), *(("questions", {"asked": str(n)}) for n in range(2, 6))]:
        app = open_page(page, run=name, **asked)
        words = [each.value for kind in MARKDOWN for each in getattr(app, kind)]
        labels = [each.label for kind in ("button", "expander", "toggle") for each in getattr(app, kind)]
        for said in [*words, *labels]:
            assert "www.evil" not in said, page
            named += f"\\*www{JOINER}.evil" in said
    assert named > 5


# Numbers


@pytest.mark.daily(2)
@pytest.mark.parametrize(
    ("run", "step", "question"),
    [("reverse", 0, PI), *((run, None, [[0, 0, 7, 0, 0, 0, 0, 1], PI][i % 2]) for i, run in enumerate(RUNS))],
)
def test_the_title_counts_what_is_right(run: str, step: int | None, question: list[int]) -> None:
    said = answer(*network(run, step), question)
    right = [one == other for one, other in zip(said, question[::-1], strict=True)]
    if run == "reverse-aligned-causal":
        right = right[4:]  # what the first half has to say stands to its right
    assert all(right) == (step != 0)
    at = {} if step is None else {"step": str(step)}
    app = open_page(run=run, input=" ".join(map(str, question)), **at)
    assert ("is to read" in app.title[0].value) == (not all(right))
    told = [found for each in app.markdown for found in re.findall(r"answer (\d) of (\d) tokens are right", each.value)]
    whole = sum(one == other for one, other in zip(said, question[::-1], strict=True))
    assert told == [(str(whole), str(len(question)))]


@pytest.mark.daily(2)
@pytest.mark.parametrize(
    ("run", "sequences"),
    [("reverse", 4096), ("reverse-translate", 5000), *((run, 1024) for run in RUNS if run != "reverse-translate")],
)
def test_the_verdict_and_the_table_are_counts_on_as_many_sequences_as_the_link_says(run: str, sequences: int) -> None:
    model, config = network(run)
    right = counted(model, config, sequences)
    app = open_page("accuracy", run=run, **({} if sequences == 4096 else {"sequences": str(sequences)}))
    assert app.select_slider(key="control-sequences").value == sequences
    assert any(f"on {sequences:,} fresh sequences" in caption.value for caption in app.caption)
    table = app.dataframe[0].value
    np.testing.assert_array_equal(table["right"], right.sum(axis=0))
    np.testing.assert_allclose(table["accuracy"], right.mean(axis=0))
    assert (table["low"] <= table["accuracy"]).all()
    assert (table["accuracy"] <= table["high"]).all()
    bars = trace(app, "accuracy", "measured")
    np.testing.assert_allclose(array(bars["y"]), right.mean(axis=0), atol=1e-6)
    said = app.title[0].value.lower()
    if config.model.architecture == "encoder-decoder":
        assert f"answer from the source {right.mean():.2f}" in said
    else:
        for half in ("first half", "second half"):
            share = right[:, (table["part"] == half).to_numpy()].mean()
            assert f"{half} {share:.2f}" in said
    whole = right[:, table["target"].str.startswith("y").to_numpy()].all(axis=1).mean()
    assert app.metric[0].value == f"{whole:.1%}"
    if run == "reverse-aligned-causal":
        assert table["ceiling"].tolist() == [0.1] * 4 + [1.0] * 4
    elif config.task.task == "reverse":
        assert table["ceiling"].tolist() == [0.1] * 7 + [1.0] * 9


@pytest.mark.daily(2)
@pytest.mark.parametrize(("run", "head"), [("reverse", "decoder.1.self_attention.2"), *((run, "") for run in RUNS)])
def test_the_patterns_are_those_of_the_model_and_a_link_enlarges_its_head(run: str, head: str) -> None:
    model, config = network(run)
    said = answer(model, config, PI)
    tokens, source, _ = laid_out(config, np.array([said[::-1]]))  # it reads its own words
    if config.task.task == "reverse":
        tokens[0, :8] = torch.tensor(PI)
    else:
        source = None if source is None else torch.tensor([PI])
        tokens = torch.tensor([PI]) if source is None else tokens
    seen = observe(model, tokens, source=source)
    app = open_page("heads", run=run, **({"head": head} if head else {}))
    header, body = next(
        message for element in app.get("bidi_component") if "panels" in (message := unpack(element.proto.bytes))[0]
    )
    expected = [
        (seen[f"{site}.pattern"][0, head].numpy(), seen[f"{site}.mask"][0, 0].numpy())
        for site in seen.attentions()
        for head in range(seen[f"{site}.pattern"].shape[1])
    ]
    assert len(header["panels"]) == len(expected)
    for panel, (pattern, mask) in zip(header["panels"], expected, strict=True):
        shape = panel["rows"], panel["columns"]
        drawn = np.frombuffer(body, "<f4", np.prod(shape), panel["pattern"]).reshape(shape)
        np.testing.assert_allclose(drawn, pattern, atol=1e-5)
        if "mask" in panel:
            hidden = np.frombuffer(body, np.uint8, np.prod(shape), panel["mask"]).reshape(shape)
            np.testing.assert_array_equal(hidden.astype(bool), np.broadcast_to(mask, shape))
        else:
            assert mask.all()
    large, values = large_head(app)
    if head:
        assert (large["name"], large["number"]) == (head, 6)
        assert app.title[0].value.startswith("Head 1.2 puts")
    pattern, mask = expected[large["number"]]
    np.testing.assert_allclose(values["pattern"], np.where(mask, pattern, np.nan), atol=1e-5)
    name = header["panels"][large["number"]]["name"]
    assert head or re.search(rf"Heads? (.+ )?{re.escape(name)}( .+)? looks? most at the answer", app.title[0].value)


def test_another_mask_is_measured_under_that_mask() -> None:
    model, config = network("reverse")
    masked = build(replace(config, model=replace(config.model, mask="sliding-window:3")))
    masked.load_state_dict(model.state_dict())
    before, after = (counted(each, config, 1024)[:, 8:].mean() for each in (model, masked.eval()))
    app = open_page("masks", run="reverse", mask="sliding-window:3", sequences="1024")
    falls = f"the second half falls from {before:.2f} to {after:.2f}."
    assert app.title[0].value == f"Under the sliding-window mask {falls}"
    window = np.abs(np.subtract.outer(np.arange(16), np.arange(16))) <= 3
    pattern = array(trace(app, "after-pattern", "values")["z"])
    np.testing.assert_array_equal(np.isfinite(pattern), window)
    np.testing.assert_array_equal(np.isfinite(array(trace(app, "after-pattern", "forbidden")["z"])), ~window)
    np.testing.assert_allclose(np.nansum(pattern, axis=1), 1, atol=1e-5)


def test_the_loss_is_the_run_s_own() -> None:
    lines = (ROOT / "checkpoints" / "reverse" / "metrics.jsonl").read_text().splitlines()
    curve = trace(open_page(run="reverse"), "overview-loss", "measured")
    np.testing.assert_allclose(array(curve["y"]), [json.loads(line)["loss"] for line in lines], rtol=1e-6)
    np.testing.assert_array_equal(array(curve["x"]), np.arange(1, len(lines) + 1))


# Links


@pytest.mark.daily(3)
@pytest.mark.parametrize(
    ("page", "query", "widgets"),
    [
        ("overview", {"run": "reverse-translate", "step": "0"}, {"run": "reverse-translate", "step": 0}),
        ("heads", {"run": "reverse", "head": "decoder.1.self_attention.2", "mean": "1"}, {"mean": True}),
        ("layers", {"run": "reverse", "likeliest": "1", "through": "0"}, {"likeliest": True, "through": 0}),
        ("layers", {"run": "reverse", "query": "12", "stage": "decoder.1.resid_mid"}, {"likeliest": False}),
        (
            "information",
            {"run": "reverse-translate", "poked": "3", "replacement": "7", "beside": "head"},
            {"poked-source": 3, "replacement": "7", "beside": "head"},
        ),
        ("overview", {"run": "compiled", "input": "1 2 3"}, {"run": "compiled", "input": "1 2 3"}),
        ("masks", {"run": "reverse", "mask": "prefix:3"}, {"mask": "prefix", "mask-width": 3}),
        ("masks", {"run": "reverse", "mask": "sliding-window:999"}, {"mask-width": 999}),
        ("positions", {"run": "reverse", "encoding": "alibi"}, {"encoding": "alibi"}),
        ("positions", {"run": "reverse", "dimensions": "3,5"}, {"dimensions": [3, 5]}),
        ("accuracy", {"run": "reverse", "sequences": "256"}, {"sequences": 256}),
        (
            "overview",
            {"run": "reverse", "task": "sort", "positions": "alibi", "layers": "3", "width": "32", "seed": "5"},
            {"task": "sort", "positions": "alibi", "layers": 3, "width": 32, "seed": 5},
        ),
        ("overview", {"run": "reverse", "norm_kind": "rms"}, {"norm_kind": "rms"}),
        (
            "overview",
            {"run": "reverse", "train_mask": "full", "max_steps": "50", "min_length": "4"},
            {"train_mask": "full", "max_steps": 50, "min_length": 4},
        ),
    ],
)
def test_a_link_is_a_view(
    page: str, query: dict[str, str], widgets: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also after a visit to another page, and from the first page to all of them."""
    monkeypatch.setattr("dashboard.view.session.BEHIND", 0.5)  # a first look at each page is enough
    app = open_page(page, **query)
    assert not app.warning
    assert link(app) == query
    for name, value in widgets.items():
        assert app.session_state[f"control-{name}"] == value
    pages = list(PAGES)
    at = pages.index(page) + 1
    others = len(pages) if query.get("task") else 1
    for other in (pages[at:] + pages[:at])[:others]:
        app.switch_page(PAGES[other].script).run()
        assert not app.exception
        reads = PAGES[other].menu == "Text"  # it opens a model that reads text, and the next page gives this one back
        aside = OF_MODEL if PAGES[other].imported or reads else {}
        kept = {name: value for name, value in query.items() if name not in aside}
        assert link(app) == (kept | {"run": "shakespeare"} if reads else kept)


def test_a_rerun_cut_off_before_its_end_leaves_the_link_to_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    app = open_page("positions", UNFOLDED, run="reverse")
    with monkeypatch.context() as cut:
        cut.setattr("dashboard.view.session.end", lambda: None)
        app.number_input(key="control-layers").set_value(1).run()
        assert link(app) == {"run": "reverse"}
    app.run()
    assert link(app) == {"run": "reverse", "layers": "1"}


@pytest.mark.daily(6)
@pytest.mark.parametrize(
    ("page", "query", "words"),
    [
        ("overview", {"run": "nope"}, "no run “nope”"),
        ("overview", {"run": "../reverse"}, "no run"),
        ("overview", {"step": "3"}, "no weights of step 3"),
        ("overview", {"input": "hello"}, "cannot be read"),
        ("overview", {"input": "1 2 3 4 5 6 7 8 9"}, "cannot be read"),
        ("overview", {"layers": "0"}, "layers=“0” cannot be used"),
        ("overview", {"foo": "<b>"}, "“foo” means nothing"),
        ("overview", {"task": "bar"}, "no task “bar”"),
        ("overview", {"positions": "bar"}, "no positional encoding “bar”"),
        ("overview", {"norm_kind": "bar"}, "no norm “bar”"),
        ("overview", {"device": "bar"}, "no device “bar”"),
        ("overview", {"train_mask": "bar"}, "no mask “bar”"),
        ("overview", {"architecture": "bar"}, "no architecture “bar”"),
        ("heads", {"head": "bar"}, ""),
        ("heads", {"across": "bar"}, "metric “bar”"),
        ("heads", {"up": "<b>"}, "metric “<b>”"),
        ("layers", {"stage": "bar"}, ""),
        ("layers", {"query": "17"}, ""),
        ("layers", {"through": "2"}, ""),
        ("masks", {"head": "bar"}, ""),
        ("masks", {"mask": "bar"}, ""),
        ("masks", {"mask": "prefix:5:4"}, ""),
        ("information", {"poked": "17"}, ""),
        ("information", {"replacement": "bar"}, ""),
        ("information", {"beside": "bar"}, ""),
        ("positions", {"encoding": "bar"}, ""),
        ("positions", {"encoding": "sinusoidal", "pe_width": "7"}, ""),
        ("positions", {"encoding": "sinusoidal", "pe_width": "514"}, ""),
        ("positions", {"encoding": "sinusoidal", "pe_length": "0"}, ""),
        ("positions", {"encoding": "sinusoidal", "base": "500"}, ""),
        ("positions", {"encoding": "sinusoidal", "base": "x"}, ""),
        ("positions", {"encoding": "sinusoidal", "cursor": "17"}, ""),
        ("positions", {"encoding": "rotary", "shift": "16"}, ""),
        ("positions", {"encoding": "alibi", "slope": "4"}, ""),
        ("positions", {"encoding": "alibi", "pe_heads": "17"}, ""),
        ("positions", {"pe_length": "17"}, ""),
        ("positions", {"scaled": "2"}, ""),
        ("order", {"order": "nonsense"}, "cannot be read"),
        ("order", {"order": "places-turn:0"}, "cannot be read"),
        ("order", {"order": "zero:decoder.0.self_attention.1"}, "does something else"),
        ("order", {"head": "decoder.0.self_attention.9"}, "no head of that name"),
        ("inside", {"query": "17"}, "There is no query at 17: this sequence has 16"),
        ("inside", {"input": "3 1", "query": "5"}, "query at 5: this sequence has 4. The page shows the one at 3"),
        ("inside", {"operation": "exp", "key": "17"}, "There is no key at 17: there are 16. The page shows the one"),
        ("inside", {"query": "0"}, "query=“0” cannot be used"),
        ("inside", {"query": "x"}, "query=“x” cannot be used"),
        ("inside", {"operation": "bias"}, "no step “bias”"),
        ("inside", {"operation": "<b>"}, "no step"),
        ("inside", {"head": "decoder.9.self_attention.0"}, "no head of that name"),
        ("block", {"part": "<b>"}, ""),
        ("block", {"block": "<b>"}, ""),
        ("block", {"sublayer": "<b>"}, ""),
        ("block", {"joint": "<b>"}, ""),
        ("block", {"query": "99"}, ""),
        ("block", {"part": "logits", "query": "99"}, "There is no output 99 here"),
        ("machine", {"zoom": "nope"}, "nope"),
        ("machine", {"box": "nope"}, "nope"),
        ("machine", {"query": "99"}, "There is no token at 99: 16 are read. The page shows the one at 9."),
        ("accuracy", {"depth": "bar"}, "no look closer “bar”"),
        ("accuracy", {"depth": "confusion", "confused": "17"}, "no target 17"),
        ("questions", {"asked": "6"}, ""),
        ("questions", {"asked": "nonsense"}, ""),
        ("questions", {"unrolled": "0"}, ""),
        ("check", {"check_example": "poem"}, "There is no example “poem” here."),
        ("check", {"check_kind": "poem"}, "There is no kind “poem”."),
    ],
)
def test_what_a_link_names_in_vain_falls_back_with_one_notice(page: str, query: dict[str, str], words: str) -> None:
    """What stands last in the link is what is not there; all else that it says holds."""
    app = open_page(page, **{"run": "reverse"} | query)
    (notice,) = (shown(warning.value) for warning in app.warning)
    assert words in notice
    assert len(app.title) == 1
    assert link(app) == {"run": "reverse"} | dict(list(query.items())[:-1])
    if page == "overview":
        assert app.title[0].value == "This transformer reads eight digits and writes them backwards."
        assert not train(app).disabled
    app.run()
    assert not app.warning


@pytest.mark.daily(2)
@pytest.mark.parametrize("dimensions", ["0,1,2,3,4,5,6,7,8,9", "64,65", ",", "x", "1,1,1"])
def test_any_dimensions_can_be_asked_for(dimensions: str) -> None:
    app = open_page("positions", dimensions=dimensions)
    assert 1 <= len(app.multiselect(key="control-dimensions").value) <= 8


# Input


def test_a_typed_sequence_is_read_and_nonsense_refused() -> None:
    app = open_page(run="reverse")
    app.text_input(key="control-input").set_value("98765432").run()
    assert link(app) == {"run": "reverse", "input": "98765432"}
    assert app.text_input(key="control-input").value == "9 8 7 6 5 4 3 2"
    title = app.title[0].value
    app.text_input(key="control-input").set_value("3 x 1").run()
    assert [error.value for error in app.error] == ["“x” is not a symbol of this task: use 0 to 9."]
    assert app.title[0].value == title
    assert link(app) == {"run": "reverse", "input": "98765432"}
    next(button for button in app.button if button.label == "Draw another").click().run()
    assert not app.error
    assert re.fullmatch(r"\d( \d){7}", link(app)["input"])


# The training panel


def train(app: AppTest) -> Any:
    return next(button for button in app.sidebar.button if button.label == "Train")


def described(app: AppTest) -> RunConfig:
    """What the panel's widgets say, read off one by one. Raises ConfigError when it cannot be trained."""
    value = {key.removeprefix("control-"): app.session_state[key] for key in CONTROLS if key in app.session_state}
    of_a_transformer = {"positions": "positions", "train_mask": "mask", "heads": "n_heads"}
    return RunConfig(
        task=TaskConfig(
            task=value["task"], length=value["length"], min_length=value["min_length"], symbols=value["symbols"]
        ),
        model=ModelConfig(
            architecture=value["architecture"],
            n_layers=value["layers"],
            d_model=value["width"],
            d_ff=4 * value["width"],
            **{field: value[name] for name, field in of_a_transformer.items() if name in value},
        ),
    )


MENUS = ("task", "architecture", "positions", "train_mask", "device")
NUMBERS = ("layers", "heads", "width", "length", "symbols", "seed", "max_steps", "min_length")
CONTROLS = [f"control-{name}" for name in (*MENUS, *NUMBERS)]
PUT_RIGHT = {"width": 64, "heads": 4, "min_length": 8}


def trainable(app: AppTest) -> bool:
    """Whether the button can be pressed; where it cannot, the panel says why, in the words of the error."""
    assert not app.exception
    said, problem = [shown(error.value).lower() for error in app.sidebar.error], []
    try:
        described(app)
    except ConfigError as error:
        problem = [f"{error}.".lower()]
    assert said == problem
    assert train(app).disabled == bool(problem)
    return not problem


@pytest.mark.nightly
@pytest.mark.parametrize("task", ["reverse", "reverse-translate", "reverse-aligned", "copy", "sort"])
def test_every_option_of_every_menu_can_be_trained_or_says_why(task: str) -> None:
    app = open_page("exercises", UNFOLDED)
    assert task in app.selectbox(key="control-task").options
    app.selectbox(key="control-task").set_value(task).run()
    assert trainable(app)
    for menu in MENUS[1:]:
        first = app.selectbox(key=f"control-{menu}").value
        for option in app.selectbox(key=f"control-{menu}").options:
            app.selectbox(key=f"control-{menu}").set_value(option).run()
            assert app.selectbox(key=f"control-{menu}").value.lower() == option.lower()  # ALiBi's option is alibi
            assert trainable(app), (menu, option)
        app.selectbox(key=f"control-{menu}").set_value(first).run()
        assert trainable(app)
        assert menu not in link(app)
    app.selectbox(key="control-task").set_value("reverse").run()
    assert trainable(app)
    assert link(app) == {"run": "reverse"}


@pytest.mark.daily(2)
@pytest.mark.parametrize(
    ("query", "words"),
    [
        ({"width": "65"}, "d_model (65) must be divisible by n_heads (4)."),
        ({"heads": "5"}, "d_model (64) must be divisible by n_heads (5)."),
        ({"width": "12", "positions": "rotary"}, "must be even, not 3."),
        ({"width": "63", "heads": "3", "positions": "sinusoidal"}, "d_model must be even, not 63."),
        ({"min_length": "9"}, "min_length must be between 1 and length (8), not 9."),
    ],
)
def test_numbers_that_do_not_go_together_say_why_and_can_be_put_right(query: dict[str, str], words: str) -> None:
    app = open_page(**query)
    assert not trainable(app)
    assert words in shown(app.sidebar.error[0].value)
    for name in NUMBERS:
        if name in query:
            assert app.number_input(key=f"control-{name}").value == int(query[name])
    for name, value in PUT_RIGHT.items():
        if name in query:
            app.number_input(key=f"control-{name}").set_value(value)
    assert trainable(app.run())


def test_train_hands_over_what_the_panel_describes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The run is made and handed to the worker, watched, and its model taken when it has ended."""
    monkeypatch.setattr("dashboard.models.menu.ROOT", tmp_path)
    handed: list[Run] = []
    monkeypatch.setattr("dashboard.server.background.pool.submit", lambda run, who: handed.append(run))
    monkeypatch.setattr("dashboard.view.training.FIRST_STEP", 0.0)
    app = open_page("heads", seed="3", layers="1", heads="2", width="32", max_steps="6", length="4")
    config = described(app)
    train(app).click().run()
    assert not app.exception
    (run,) = handed
    assert run.config.task == config.task
    assert run.config.model == config.model
    assert (run.config.training.seed, run.config.training.max_steps) == (3, 6)
    assert any("is waiting for its turn" in element.value for element in app.markdown)
    next(button for button in app.sidebar.button if button.label == "Stop").click().run()
    assert run.control.stop
    run.ask(stop=False)
    for _ in record(run):
        pass
    ended = (run.folder / "state.json").read_text()
    with lock.hold(run.folder):
        run.set_state("running", 6)
        app.run()
        assert staged(app)["loss"]["count"] == 6
        assert staged(app)["accuracySteps"] == [1, 5, 6]
        (run.folder / "state.json").write_text(ended)
    app.run()
    assert not app.exception
    assert any("all 6 steps taken" in element.value for element in app.markdown)
    assert app.selectbox(key="control-run").value == run.name
    assert link(app)["run"] == run.name
    assert trainable(app)
