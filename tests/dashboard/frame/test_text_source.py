"""Training on a text from the dashboard: what the panel offers, what it trains, and how it is watched and compared."""

from __future__ import annotations

import json
import math
import re
import shutil
import zipfile
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from dashboard.app_pages.training.runs import comparison, races
from dashboard.components.film import pack_reel
from dashboard.components.payload import unpack
from dashboard.figures.loss import loss_curve
from dashboard.frame import text_source
from dashboard.frame.training_panel import OWN
from dashboard.parts import film
from dashboard.server import background
from dashboard.view.link import View
from dashboard.view.training import NO_TEXT, config_of, fields_of
from tests.kit import texts
from tests.kit.pages import UNFOLDED, array, figures, link, open_page, press, trace
from tests.kit.text_server import BOOK, nowhere, server
from tests.kit.waiting import PATIENCE
from transformer.presets import GPU_READERS, READERS
from transformer.text import shelf
from transformer.text.perplexity import perplexity, said
from transformer.training.devices.found import Device, Devices
from transformer.training.exchange import archive
from transformer.training.library import LibraryError
from transformer.training.recording import develop, record
from transformer.training.runs import Run

SMALL = {"task": "text", "length": "16", "min_count": "2", "layers": "1", "heads": "2", "width": "16"}
SMALL |= {"max_steps": "40", "batch": "4", "positions": "rotary", "device": "cpu"}


@pytest.fixture
def empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A shelf with nothing on it."""
    monkeypatch.setenv("ATTENTION_LAB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(text_source, "shakespeare", text_source.Fetching())
    return tmp_path / "cache" / "texts"


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("dashboard.models.menu.ROOT", tmp_path / "runs")
    monkeypatch.setattr("dashboard.view.training.FIRST_STEP", 0.0)
    monkeypatch.setattr("dashboard.view.clicks.ECHO", 0.0)
    return tmp_path / "runs"


@pytest.fixture
def handed(runs: Path, monkeypatch: pytest.MonkeyPatch) -> list[Run]:
    queue: list[Run] = []
    monkeypatch.setattr("dashboard.server.background.pool.submit", lambda run, who: queue.append(run))
    return queue


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A reader of the small text: sixty steps, measured every twenty."""
    return texts.trained(tmp_path_factory.mktemp("trained") / "reader", texts.config())


def words(app: AppTest) -> str:
    elements = (*app.title, *app.markdown, *app.caption, *app.error, *app.warning, *app.info)
    return "\n".join(element.value for element in elements)


def upload(app: AppTest, name: str, content: bytes) -> AppTest:
    app.sidebar.get("file_uploader")[0].set_value((name, content, "text/plain")).run()
    assert not app.exception
    return app


# --- which text


def test_without_a_text_it_says_what_to_do_and_a_file_will_do(empty: Path, handed: list[Run]) -> None:
    app = open_page("positions", task="text")
    assert any(error.value.lower().startswith(NO_TEXT[:30]) for error in app.error)
    assert next(button for button in app.button if button.label == "Train").disabled
    for content, why in (
        ("hi".encode("utf-16"), "bad.txt is too short"),
        ("é".encode("latin-1") * 2000, "not encoded in UTF-8"),
    ):
        app = upload(app, "bad.txt", content)
        assert why in "\n".join(error.value for error in app.error)
    assert shelf.keys() == ()
    app = upload(app, "My plays.txt", texts.TEXT.encode())
    (key,) = shelf.keys()
    assert key.startswith("my-plays-")
    assert app.selectbox(key="control-text").value == key
    assert link(app)["text"] == key
    assert not app.error


def test_what_is_uploaded_is_chosen_and_trained(handed: list[Run]) -> None:
    texts.key()
    app = open_page("positions", **SMALL)
    app = upload(app, "another.txt", (texts.TEXT + "One line more.\n").encode())
    press(app, "Train")
    (run,) = handed
    assert run.config.task.text.startswith("another-")
    assert run.config.model.tied
    assert (run.config.training.decay, run.config.training.max_steps) == ("linear", 40)
    assert run.name.startswith("another-16-1x2-rotary")


def test_shakespeare_is_fetched_at_a_click(empty: Path, runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ATTENTION_LAB_SHAKESPEARE", nowhere())
    app = press(open_page("positions", task="text"), "Fetch Shakespeare")
    text_source.shakespeare.wait(PATIENCE)
    app.run()
    assert any("there is no connection" in error.value for error in app.error)
    assert any("--file PATH" in error.value for error in app.error)
    with server(BOOK.encode()) as (url, _):
        monkeypatch.setenv("ATTENTION_LAB_SHAKESPEARE", url)
        press(app, "Fetch Shakespeare")
        text_source.shakespeare.wait(PATIENCE)
    app.run()
    assert "Fetch Shakespeare" not in [button.label for button in app.button]
    assert app.selectbox(key="control-text").value == shelf.resolve("shakespeare")


def test_a_text_is_removed_and_had_back(empty: Path, runs: Path) -> None:
    first, second = (shelf.put(f"{name}.txt", (texts.TEXT + name).encode()) for name in ("first", "second"))
    app = open_page("positions", **SMALL, text=second)
    press(app, "Remove")
    assert shelf.keys() == (first,)
    assert app.selectbox(key="control-text").value == first
    assert not app.warning
    press(app, "Bring “second” back")
    assert shelf.keys() == (first, second)
    assert app.selectbox(key="control-text").value == second
    assert not [button for button in app.button if button.label.startswith("Bring")]
    press(press(app, "Remove"), "Remove")  # the last one: nothing is left to read
    assert shelf.keys() == ()
    assert any(NO_TEXT[:30] in error.value.lower() for error in app.error)
    assert [button.label for button in app.button if button.label.startswith("Bring")] == ["Bring “first” back"]


def test_a_text_that_is_being_read_is_not_removed(empty: Path, handed: list[Run]) -> None:
    key = shelf.put("plays.txt", texts.TEXT.encode())
    app = press(press(open_page("positions", **SMALL, text=key), "Train"), "Remove")
    assert shelf.keys() == (key,)
    assert any(f"is being read by {handed[0].name}: stop the training first" in error.value for error in app.error)


def test_a_text_that_a_link_names_in_vain_falls_back_with_a_notice() -> None:
    key = texts.key()
    app = open_page("positions", task="text", text="macbeth-00000000", length="16")
    assert app.selectbox(key="control-text").value in (key, *shelf.keys())
    assert any("macbeth-00000000" in warning.value for warning in app.warning)


# --- what is trained


@pytest.mark.daily(1)
@pytest.mark.parametrize("reader", [*READERS, *GPU_READERS], ids=lambda reader: reader.name)
def test_a_preset_fills_the_panel_and_is_what_is_trained(
    reader, empty: Path, handed: list[Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those for a GPU are offered where a training process has found one."""
    found = [Device("cpu", "CPU, 2 cores"), *([Device("cuda:0", "a GPU")] if reader in GPU_READERS else [])]
    monkeypatch.setattr(background.pool, "devices", Devices(tuple(found)))
    shelf.put("shakespeare.txt", BOOK.encode() * 3)
    app = open_page("positions", UNFOLDED, seed="3")
    app.selectbox(key="control-preset").set_value(reader.name).run()
    assert app.selectbox(key="control-preset").value == reader.name
    assert set(app.selectbox(key="control-preset").options) >= {each.name for each in READERS}
    press(app, "Train")
    (run,) = handed
    assert reader.matches(run.config)
    assert run.config.training.seed == 3
    app.number_input(key="control-max_steps").set_value(50).run()  # its rate would fall at another pace
    assert app.selectbox(key="control-preset").value == OWN
    app.selectbox(key="control-preset").set_value("reverse").run()
    assert {name for name in link(app) if name != "run"} == {"seed"}


def test_the_task_menu_brings_what_suits_a_text_and_back() -> None:
    texts.key()
    app = open_page("positions", UNFOLDED)
    app.selectbox(key="control-task").set_value("text").run()
    assert app.number_input(key="control-length").value == 128
    assert app.number_input(key="control-length").max == 512
    keys = {widget.key for widget in app.sidebar.number_input}
    assert "control-min_count" in keys
    assert not keys & {"control-symbols", "control-min_length"}
    app.selectbox(key="control-task").set_value("copy").run()
    assert not app.exception
    assert app.number_input(key="control-length").value == 8
    assert {name for name in link(app) if name != "run"} == {"task"}


def test_a_question_is_not_as_long_as_a_window() -> None:
    app = open_page("positions", UNFOLDED, length="300")
    assert app.number_input(key="control-length").value == 64
    assert any("at most 64 symbols" in warning.value for warning in app.warning)


def test_a_text_that_is_too_short_for_its_windows_says_so(runs: Path) -> None:
    key = shelf.put("few.txt", b"a few words, and a few more. " * 60)
    app = open_page("positions", UNFOLDED, **{**SMALL, "length": "512", "text": key})
    for too_short in (True, False):
        assert next(button for button in app.button if button.label == "Train").disabled == too_short
        assert any("choose a shorter length" in error.value for error in app.error) == too_short
        app.number_input(key="control-length").set_value(4).run()


def test_a_config_becomes_fields_and_a_config_again() -> None:
    view = View(task="text", text=texts.key(), split="characters", min_count=3, length=20, max_steps=77, batch=5)
    assert View(**fields_of(config_of(view))) == view


# --- how it is watched


def test_a_training_is_watched_by_what_was_held_out(handed: list[Run]) -> None:
    app = press(open_page("positions", **SMALL, text=texts.key()), "Train")
    (run,) = handed
    for step in record(run):
        if step.step == 25:
            run.set_state("running", 25)
            app.run()
            last = [line for line in run.metrics() if "held_out_loss" in line][-1]
            shown = math.exp(last["held_out_loss"])
            assert f"step 25 of 40, {run.metrics()[-1]['seconds']:.1f} s: perplexity {shown:.1f} on " in words(app)
            assert f"on {last['probed']} windows of {len(last['accuracy'])} held-out tokens" in words(app)
    app.run()
    evaluation = json.loads((run.folder / "evaluation.json").read_text(), parse_constant=pytest.fail)
    assert f"all 40 steps taken, perplexity {evaluation['perplexity']:.1f} over {evaluation['read']:,}" in words(app)
    assert "nan" not in words(app).replace("finance", "")
    assert develop(run)
    app.run()
    header, _ = next(m for e in app.get("bidi_component") if "loss" in (m := unpack(e.proto.bytes))[0])
    assert header["loss"]["floor"] is None
    measured = [[line["step"], line["held_out_loss"]] for line in run.metrics() if "held_out_loss" in line]
    assert header["loss"]["heldOut"] == measured
    assert set(header["ceiling"]) == {None}


def test_the_reference_is_the_entropy_of_the_counts(trained: Run) -> None:
    """Counted anew, from the text: how surprising its tokens are to who knows only their counts."""
    known = trained.config.build_task().known
    tokens = np.concatenate(shelf.corpus(texts.key(), "words", 2).train)
    shares = np.bincount(tokens, minlength=len(known.vocabulary.tokens) + 1) / len(tokens)
    entropy = -sum(p * math.log(p) for p in shares if p)
    header, _ = unpack(pack_reel(film.of_training(trained.config, trained.metrics(), {}, None), alt="A training."))
    assert header["loss"]["guessing"] == pytest.approx(entropy)
    assert header["loss"]["guess"] == "counts alone"
    json.dumps(header, allow_nan=False)


def test_the_loss_curve_of_a_text_has_no_floor_and_what_was_held_out() -> None:
    steps, losses = np.arange(1, 6), np.array([5.0, 4.0, 3.0, 2.5, 2.0])
    held_out = np.array([2, 4]), np.array([4.5, 3.25])
    figure = loss_curve(steps, losses, floor=None, chance=4.0, guess="counts alone", held_out=held_out)
    curve = next(trace for trace in figure.data if trace.name == "held out")
    assert list(curve.x) == [2, 4]
    assert list(curve.y) == [4.5, 3.25]
    assert figure.layout.yaxis.range[0] < 2.0
    assert figure.layout.yaxis.range[1] > 5.0
    assert {shape.y0 for shape in figure.layout.shapes} == {4.0}
    assert {a.text for a in figure.layout.annotations} == {"counts alone: 4.00", "held out: 3.25"}
    assert "nan" not in figure.to_json().lower()


# --- how it stands among others


@pytest.fixture
def shown(trained: Run, runs: Path) -> Run:
    for name in ("reader", "reader-2"):
        shutil.copytree(trained.folder, runs / name)
    return Run(runs / "reader")


def test_the_menu_the_table_and_the_chart_say_perplexity(shown: Run) -> None:
    expected = shown.evaluation["perplexity"]
    app = open_page("runs", run="reader", compare="reader,reader-2")
    menu = app.selectbox(key="control-run")
    assert f"reader · perplexity {expected:.1f}" in menu.options
    known = len(shown.config.build_task().known.vocabulary.tokens)
    assert any(f"plays, {known} words, 32 tokens at a time" in caption.value for caption in app.caption)
    table = app.dataframe[0].value
    assert table["perplexity"].tolist() == [round(expected, 1)] * 2
    assert table["accuracy"].isna().all()
    assert app.title[0].value == f"Both have perplexity {expected:.1f}."
    measured = [line for line in shown.metrics() if "held_out_loss" in line]
    curve = trace(app, "compare", "reader")
    assert array(curve["x"]).tolist() == [line["step"] for line in measured]
    assert array(curve["y"]) == pytest.approx([line["held_out_loss"] for line in measured], rel=1e-6)
    layout = json.dumps(figures(app)["compare"]["layout"]).lower()
    assert "counts alone: " in layout
    assert "nan" not in layout
    assert not re.search(r"\bnan\b", words(app))
    app.segmented_control(key="control-measure").set_value("accuracy").run()
    assert not app.exception
    assert len(array(trace(app, "compare", "reader")["y"])) == len(measured)


def test_who_is_shown_the_answers_reads_nothing(tmp_path: Path) -> None:
    honest = texts.untrained(tmp_path / "honest", texts.config())
    cheat = texts.untrained(tmp_path / "cheat", texts.config(mask="full"))
    found = {
        run.name: comparison.standing(comparison.Course(run).update(), comparison.Label(run.name, f"by {run.name}"))
        for run in (honest, cheat)
    }
    assert not found["honest"].cheats
    assert found["cheat"].cheats
    assert "need not learn to read" in races.meaning(found["cheat"])
    assert races.meaning(found["honest"]) == ""


def test_a_foreign_run_of_a_text_arrives_whole_or_not_at_all(trained: Run, tmp_path: Path) -> None:
    file = archive.pack(trained)
    arrived = archive.unpack(BytesIO(file), tmp_path / "runs", "guest")
    assert (arrived.folder / "text.npz").read_bytes() == (trained.folder / "text.npz").read_bytes()
    assert arrived.evaluation == trained.evaluation
    for name, content in (
        ("text.npz", b"no words"),
        ("text.npz", (trained.folder / "text.npz").read_bytes()[:-40]),
        ("evaluation.json", json.dumps(trained.evaluation | {"perplexity": math.nan}).encode()),
    ):
        damaged = BytesIO()
        with zipfile.ZipFile(BytesIO(file)) as source, zipfile.ZipFile(damaged, "w") as target:
            for entry in source.namelist():
                target.writestr(entry, content if entry == name else source.read(entry))
        with pytest.raises(LibraryError, match=f"its {name} cannot be used"):
            archive.unpack(damaged, tmp_path / "runs", "broken")
    assert [path.name for path in (tmp_path / "runs").iterdir() if not path.name.startswith(".")] == ["guest"]


def test_a_perplexity_is_always_a_number_or_words() -> None:
    assert perplexity(0.0) == 1.0
    assert perplexity(math.log(42)) == pytest.approx(42)
    assert math.isfinite(perplexity(1e9))
    written = [said(value) for value in (31.62, 1204.4, perplexity(1e9), math.nan)]
    assert written == ["31.6", "1,204", "beyond a million", "unknown"]


# --- what is offered beside a model of a text


def test_beside_a_model_of_a_text_a_text_is_offered_until_something_else_is_said(shown: Run, handed: list[Run]) -> None:
    def panel(app: AppTest) -> tuple[str, int]:
        return app.selectbox(key="control-task").value, app.number_input(key="control-length").value

    assert panel(open_page("positions", UNFOLDED, run="reader", task="reverse")) == ("reverse", 8)
    assert panel(open_page("positions", UNFOLDED, run="reader", layers="3")) == (
        "reverse",
        8,
    )  # an old link
    app = open_page("positions", UNFOLDED, run="reader", seed="3")
    assert panel(app) == ("text", READERS[0].task.length)
    assert app.segmented_control(key="control-split").value == shown.config.task.split
    assert set(link(app)) <= {"run", "seed"}  # what is only offered is not in the link
    app.number_input(key="control-layers").set_value(1).run()
    assert panel(app) == ("text", READERS[0].task.length)
    assert link(app)["task"] == "text"
    assert link(app)["length"] == str(READERS[0].task.length)
    press(app, "Train")
    assert (handed[0].config.task.task, handed[0].config.model.n_layers) == ("text", 1)
    app = open_page("positions", UNFOLDED, run="reader")
    app.selectbox(key="control-task").set_value("reverse").run()
    assert panel(app) == ("reverse", 8)
    assert set(link(app)) == {"run", "task"}
    app = open_page("positions", UNFOLDED, run="reader")
    app.selectbox(key="control-preset").set_value("reverse").run()
    assert panel(app) == ("reverse", 8)


def test_the_offer_goes_with_the_model(shown: Run) -> None:
    app = open_page("positions", UNFOLDED, run="reader")
    assert app.selectbox(key="control-task").value == "text"
    app.selectbox(key="control-run").set_value("compiled").run()
    assert not app.exception
    assert app.selectbox(key="control-task").value == "reverse"
    assert app.number_input(key="control-length").value == 8
