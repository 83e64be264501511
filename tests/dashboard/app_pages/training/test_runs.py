"""The page of runs: what is compared, what a race and a population begin, the table against the folders, and a run."""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import replace
from datetime import datetime
from html import unescape
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from streamlit.testing.v1 import AppTest

from dashboard.app_pages.training.runs import population, rows
from dashboard.app_pages.training.runs import table as runs_table
from dashboard.app_pages.training.runs.comparison import comparable
from dashboard.models import menu
from dashboard.parts.prose import plain
from tests.kit.experiments.populations import made_up
from tests.kit.pages import array, figures, link, open_page, shown, trace
from transformer.__main__ import app as commands
from transformer.config import ModelConfig, RunConfig, TaskConfig, TrainingConfig
from transformer.experiments.populations import plan as plans
from transformer.experiments.populations.table import Row
from transformer.positions import ENCODINGS
from transformer.training import library
from transformer.training.exchange import archive
from transformer.training.listing import entry_of, list_runs
from transformer.training.runs import Control, Run, located

ROOT = Path(__file__).resolve().parents[4] / "checkpoints"
HOSTILE = "*x* :red[a] <b>, $y$ www.x.org %2C"


def all_but_the_last(folder: str, names: list[str]) -> set[str]:
    """Of a run's weights only the last are wanted here."""
    return set(sorted(names)[:-1]) if folder.endswith("snapshots") else set()


@pytest.fixture
def runs(root: Path) -> Path:
    """Two shipped runs of one task, and an older one of another."""
    for name in ("reverse", "reverse-sinusoidal", "reverse-aligned"):
        shutil.copytree(ROOT / name, root / name, ignore=all_but_the_last)
    return root


@pytest.fixture
def packaged(runs: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The shipped reversal, not among one's own runs but in the installed package."""
    package = tmp_path_factory.mktemp("shipped")
    (runs / "reverse").rename(package / "reverse")
    monkeypatch.setattr("transformer.training.runs.ROOT", runs)
    monkeypatch.setattr("transformer.training.runs.PACKAGED", package)
    return package


@pytest.fixture
def handed(runs: Path, monkeypatch: pytest.MonkeyPatch) -> list[Run]:
    """What is put into the queue; nobody trains it."""
    queue: list[Run] = []
    monkeypatch.setattr("dashboard.server.background.pool.submit", lambda run, who: queue.append(run))
    return queue


def press(app: AppTest, key: str) -> AppTest:
    app.button(key=key).click().run()
    assert not app.exception
    return app


def said(app: AppTest) -> str:
    return "\n".join(element.value for element in (*app.caption, *app.warning, *app.success, *app.error, *app.info))


def listed(app: AppTest) -> str:
    """The words beside the curves, without their tags."""
    text = next(element.value for element in app.get("html") if "<ul" in element.value)
    return unescape(re.sub("<.*?>", "", text.replace("<br>", " ")))


def last(name: str, file: str = "metrics.jsonl") -> dict:
    return json.loads((ROOT / name / file).read_text().splitlines()[-1])


# --- together


def test_it_compares_the_newest_runs_that_share_a_task(runs: Path):
    app = open_page("runs")
    step, other = last("reverse")["step"], last("reverse-sinusoidal")["step"]
    assert app.title[0].value == f"Both solve it. The first does so at step {step}, with learned positions."
    words = listed(app)
    assert f"learned positions (reverse): solved at step {step} after {last('reverse')['seconds']:.1f} s." in words
    assert f"sinusoidal positions (reverse-sinusoidal): solved at step {other} after" in words
    assert words.count("Second half 1.00, first half 0.10 = chance: the mask holds.") == 2
    assert link(app) == {"run": "reverse"}


def test_it_begins_with_the_model_of_the_menu(runs: Path):
    """It comes first even where the newest runs share another task, and stands alone where no other has its own."""
    app = open_page("runs", run="reverse-aligned")
    assert listed(app).count("solved at") == 1
    assert "reverse-aligned: solved at step" in listed(app)
    alone = "No other run here learns reverse-aligned of this length, so reverse-aligned is compared with nothing"
    assert alone in said(app)
    for name in ("new", "newer"):
        shutil.copytree(runs / "reverse-aligned", runs / name)
    app = open_page("runs", run="reverse-sinusoidal")
    assert "learned positions (reverse): solved" in listed(app)
    assert "new" not in listed(app)
    app = open_page("runs", run="reverse-aligned")
    assert listed(app).count("solved at") == 3
    assert "No other run" not in said(app)


def test_windows_of_any_length_of_one_text_are_compared():
    text = TaskConfig(task="text", text="shakespeare", length=512)
    assert comparable(text, replace(text, length=64))
    assert not comparable(text, replace(text, length=64, min_count=2))
    assert not comparable(text, replace(text, text="other"))
    assert not comparable(text, TaskConfig(length=512))
    assert comparable(TaskConfig(length=8), TaskConfig(length=8))
    assert not comparable(TaskConfig(length=8), TaskConfig(length=9))


@pytest.mark.parametrize(
    ("names", "query", "levels"),
    [
        (("reverse-sinusoidal", "reverse-aligned"), {}, [0.1]),
        # Guessing among ten; and the least that can be said: the question and SEP weigh 0.1.
        (
            ("reverse-sinusoidal",),
            {"measure": "loss", "clock": "seconds"},
            [np.log(10), 7 * 0.1 * np.log(10) / (8 * 0.1 + 8)],
        ),
    ],
)
def test_the_curves_are_those_of_the_files_and_the_levels_those_of_the_tasks(
    runs: Path, names: tuple[str, ...], query: dict[str, str], levels: list[float]
):
    app = open_page("runs", compare=",".join(names), **query)
    for name in names:
        lines = [json.loads(line) for line in (ROOT / name / "metrics.jsonl").read_text().splitlines()]
        if not query:
            lines = [line for line in lines if "accuracy" in line]
        half = 8 if name == "reverse-sinusoidal" else 4
        values = [line["loss"] if query else np.mean(line["accuracy"][-half:]) for line in lines]
        drawn = trace(app, "compare", name)
        np.testing.assert_allclose(array(drawn["x"]), [line[query.get("clock", "step")] for line in lines])
        np.testing.assert_allclose(array(drawn["y"]), values, rtol=1e-6)
    assert [shape["y0"] for shape in figures(app)["compare"]["layout"]["shapes"]] == pytest.approx(levels)
    assert (app.title[0].value == "2 of 2 runs have solved their tasks.") == (len(names) == 2)
    assert "No other run" not in said(app)


def test_what_a_link_names_in_vain_is_said_and_five_are_too_many(runs: Path):
    copies = [f"copy-{i}" for i in range(5)]
    for name in copies:
        shutil.copytree(runs / "reverse", runs / name)
    app = open_page("runs", compare=",".join([*copies, "<b>nobody</b>", "copy-0"]), measure="beauty", clock="moons")
    assert "There is no run “\\<b\\>nobody\\</b\\>” to compare." in said(app)
    assert said(app).count("There is no ") == 3
    assert "At most 4 runs can be compared" in said(app)
    assert link(app) == {"run": "reverse", "compare": "copy-0,copy-1,copy-2,copy-3"}


def test_without_a_run_it_says_what_to_do(runs: Path):
    for run in list_runs(runs):
        shutil.rmtree(run.folder)
    app = open_page("runs")
    assert app.title[0].value == "Nothing to compare yet."
    assert "Press Train in the sidebar, or start a race" in said(app)
    assert not app.dataframe
    assert app.button(key="race-0").label


def test_a_run_of_a_hostile_name_is_opened_and_compared_and_its_name_is_only_a_name(runs: Path):
    (runs / "reverse").rename(runs / HOSTILE)
    app = open_page("runs")
    app.selectbox(key="shelf-run").set_value(HOSTILE).run()
    press(app, "open")
    assert link(app)["run"] == HOSTILE
    assert plain(HOSTILE) == r"\*x\* \:red\[a\] \<b\>, \$y\$ www^.x.org %2C".replace("^", "\u2060")
    assert f"Every page shows {plain(HOSTILE)} now." in said(app)
    app = open_page("runs", compare="*x* :red[a] <b>%2C $y$ www.x.org %252C")
    assert app.title[0].value == f"{plain(HOSTILE)}: solved at step 40 after 0.7 s."
    assert f"{HOSTILE}: solved at step 40" in listed(app)
    assert not app.warning


# --- races


def test_a_race_trains_what_it_says_unwatched_and_compares_it_until_all_are_stopped(handed: list[Run]):
    app = press(open_page("runs", layers="1", max_steps="30", pace="key"), "race-1")
    one, four = (run.config for run in handed)
    assert (one.model.n_heads, four.model.n_heads) == (1, 4)
    assert (one.model.n_layers, one.training.max_steps) == (1, 30)
    assert replace(one, model=replace(one.model, n_heads=4)) == four
    assert [run.control for run in handed] == [Control()] * 2  # nobody steps through a race
    assert link(app)["compare"] == ",".join(run.name for run in handed)
    assert app.title[0].value == "Not solved yet: 2 of 2 runs have not ended."
    assert listed(app).count("waiting for its turn") == 2
    assert app.button(key="stop-all").label == "Stop all"
    press(app, "stop-all")
    assert [run.control.stop for run in handed] == [True] * 2


def test_what_cannot_be_raced_says_why(runs: Path):
    app = open_page("runs", width="6", heads="2")
    assert [app.button(key=f"race-{place}").disabled for place in range(4)] == [False, True, False, False]
    assert "1 head or 4: d\\_model (6) must be divisible by n\\_heads (4)." in said(app)
    app = open_page("runs", heads="3")
    assert "Nothing to race: d\\_model (64) must be divisible by n\\_heads (3)." in said(app)


def test_a_race_whose_folder_cannot_be_made_is_a_sentence(runs: Path, monkeypatch: pytest.MonkeyPatch):
    def refuse(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("dashboard.view.training.Run.create", refuse)
    words = shown(said(press(open_page("runs"), "race-3")))
    assert "The race did not start: No space left on device." in words


# --- the table


def test_the_table_says_what_the_folders_say(runs: Path):
    one_head = Run.create(runs / "one", RunConfig(model=ModelConfig(n_heads=1)), device="a device")
    frame = open_page("runs").dataframe[0].value
    assert list(frame["name"]) == ["one", "reverse-aligned", "reverse-sinusoidal", "reverse"]
    assert list(frame["changed"])[1:] == ["first of its task", "positions learned → sinusoidal", "first of its task"]
    assert "heads 4 → 1" in frame["changed"][0]
    assert "positions sinusoidal → learned" in frame["changed"][0]
    for row in frame.itertuples():
        folder = runs / row.name
        card = json.loads((folder / "run.json").read_text())
        assert row.device == card["device"]
        assert abs(datetime.fromtimestamp(card["created"]) - row.created.to_pydatetime()).total_seconds() < 1e-3
        if row.name == "one":
            assert (row.steps, row.seconds, row.status) == (0, 0.0, "queued")
            assert np.isnan(row.accuracy)
            continue
        line, evaluation = last(row.name), json.loads((folder / "evaluation.json").read_text())
        assert (row.steps, row.solved, row.seconds) == (line["step"], line["step"], line["seconds"])
        assert (row.accuracy, row.status) == (evaluation["second_half"], "finished")
    assert one_head.state.status == "queued"


def test_other_rows_are_another_table(runs: Path):
    """What a browser reports late of the rows it had is then no word on those that stand there now."""
    app = open_page("runs")
    table = app.dataframe[0].proto.id
    assert table
    assert app.run().dataframe[0].proto.id == table
    shutil.copytree(runs / "reverse", runs / "newest")
    assert app.run().dataframe[0].proto.id != table


def test_a_run_like_the_one_before_changed_nothing(runs: Path):
    made = [Run.create(runs / name, RunConfig(), device="x") for name in ("first", "second")]
    assert runs_table.frame_of(list(map(entry_of, made)))["changed"].tolist() == ["nothing", "first of its task"]


def test_a_card_may_say_anything_of_when(runs: Path):
    path = runs / "reverse" / "run.json"
    card = json.loads(path.read_text())
    for created in (float("nan"), 1e300, -1e300, "yesterday", None):
        path.write_text(json.dumps(card | {"created": created, "device": ["?"]}))
        assert len(runs_table.frame_of([entry_of(Run(runs / "reverse"))])) == 1


# --- one run


def once_more(app: AppTest, state: Any) -> AppTest:
    """What the browser sends with a request of a timer that was on its way while a field went."""
    states = app._tree.get_widget_states()
    states.widgets.append(state)
    app._run(states)
    assert not app.exception
    return app


def test_a_run_is_renamed_where_it_is_shown_and_compared(runs: Path):
    app = open_page("runs", run="reverse", compare="reverse-sinusoidal,reverse")
    assert app.selectbox(key="shelf-run").value == "reverse"
    field = app.text_input(key="shelf-name-reverse").set_value("  my first one ")
    late = field._widget_state
    field.run()
    assert not app.exception
    assert "reverse is now called my first one." in said(app)
    assert link(app) == {"run": "my first one", "compare": "reverse-sinusoidal,my first one"}
    assert app.selectbox(key="shelf-run").value == "my first one"
    app = once_more(app, late)
    assert not app.error
    assert sorted(run.name for run in list_runs(runs)) == ["my first one", "reverse-aligned", "reverse-sinusoidal"]


def test_what_is_no_name_is_one_sentence(runs: Path):
    app = open_page("runs", run="reverse")
    app.text_input(key="shelf-name-reverse").set_value("a/b").run()
    assert not app.exception
    assert app.error[0].value.startswith(f"reverse was not renamed: {plain('a name cannot hold “/”')}")
    assert app.text_input(key="shelf-name-reverse").value == "reverse"
    assert (runs / "reverse" / "run.json").is_file()


def test_a_deleted_run_can_be_had_back_even_after_a_reload(runs: Path):
    app = open_page("runs", run="reverse-aligned", compare="reverse,reverse-aligned")
    press(app, "delete")
    assert not (runs / "reverse-aligned").exists()
    assert link(app)["compare"] == "reverse"
    assert "reverse-aligned was deleted just now." in said(app)
    assert "There is no run “reverse-aligned” here; this is reverse." in said(app)
    app = press(open_page("runs"), "undo")
    assert (runs / "reverse-aligned" / "run.json").is_file()
    assert "reverse-aligned is back." in said(app)
    assert "was deleted" not in said(app)


def test_a_run_that_trains_is_left_alone_even_where_it_began_meanwhile(runs: Path):
    app, run = open_page("runs", run="reverse", compare="reverse-aligned"), Run(runs / "reverse")
    run.set_state("queued", 20)
    press(app, "delete")
    assert "reverse was not deleted: reverse is queued: stop it first." in said(app)
    assert run.folder.is_dir()
    run.set_state("running", 20)
    state = json.loads((run.folder / "state.json").read_text()) | {"host": "elsewhere"}
    (run.folder / "state.json").write_text(json.dumps(state))
    app.run()
    assert app.button(key="delete").disabled
    assert app.text_input(key="shelf-name-reverse").disabled
    assert app.get("download_button")[0].proto.disabled
    assert "reverse is running: stop it first." in said(app)
    press(app, "stop-it")
    assert run.control.stop


# --- in and out


def unfolded(app: AppTest) -> AppTest:
    app.session_state["bring-in"] = True
    return app.run()


def test_a_run_arrives_once_each_time_it_is_sent(runs: Path):
    file = archive.pack(Run(runs / "reverse-aligned"))
    app = unfolded(open_page("runs"))
    box = app.file_uploader[0].set_value(("from afar.attention-run.zip", file, "application/zip"))
    late = box._widget_state
    box.run()
    assert not app.exception
    assert "from afar was added." in said(app)
    assert app.selectbox(key="shelf-run").value == "from afar"
    assert Run(runs / "from afar").digest() == Run(ROOT / "reverse-aligned").digest()
    assert "from afar" in list(app.dataframe[0].value["name"])
    once_more(app, late)
    assert not (runs / "from afar-2").exists()
    unfolded(app).file_uploader[0].set_value(("from afar.attention-run.zip", file, "application/zip")).run()
    assert "from afar-2 was added." in said(app)


def test_what_is_no_run_is_one_sentence(runs: Path):
    app = unfolded(open_page("runs"))
    app.file_uploader[0].set_value(("x.zip", b"hello", "application/zip")).run()
    (error,) = app.error
    assert error.value.startswith("x.zip was not added: this is not a packed run")
    assert sorted(run.name for run in list_runs(runs)) == ["reverse", "reverse-aligned", "reverse-sinusoidal"]


def test_a_run_that_cannot_be_read_is_left_out_with_a_reason(runs: Path):
    (runs / "torn").mkdir()
    (runs / "torn" / "run.json").write_text('{"format": "*another*/9"}')
    app = open_page("runs")
    left_out = [each.value for each in app.caption if "Left out" in each.value]
    assert len(left_out) == 1
    assert "torn" in left_out[0]
    assert "*another*" not in left_out[0]  # what a file says is no markup


def test_how_long_ago():
    said = {
        0: "just now",
        59: "just now",
        60: "1 minute ago",
        150: "2 minutes ago",
        3600: "1 hour ago",
        86_399: "23 hours ago",
        86_400: "1 day ago",
        200_000: "2 days ago",
    }
    assert {seconds: runs_table.ago(seconds) for seconds in said} == said


# --- what the installed package brings along


def test_a_packaged_run_is_listed_and_only_read(packaged: Path) -> None:
    before = {path: path.read_bytes() for path in packaged.rglob("*") if path.is_file()}
    app = open_page("runs", run="reverse")
    assert [each.value for each in app.selectbox if each.key == "shelf-run"] == ["reverse"]
    controls = ("delete", "open", "download")
    off = {each.key: each.disabled for kind in ("button", "download_button") for each in app.get(kind)}
    assert [off[key] for key in controls] == [True, False, False]
    assert app.text_input(key="shelf-name-reverse").disabled
    assert "comes with the installed package" in " ".join(each.value for each in app.caption)
    for change in (library.delete, lambda run: library.rename(run, "mine")):
        with pytest.raises(library.LibraryError, match="comes with the installed package"):
            change(Run(packaged / "reverse"))
    assert {path: path.read_bytes() for path in packaged.rglob("*") if path.is_file()} == before


def test_a_run_of_ones_own_comes_before_a_packaged_one_of_its_name(runs: Path, packaged: Path) -> None:
    assert located("reverse") == packaged / "reverse"
    assert [run.name for run in list_runs(runs)].count("reverse") == 1
    shutil.copytree(runs / "reverse-sinusoidal", runs / "reverse")
    assert located("reverse") == menu.run_called("reverse").folder == runs / "reverse"
    assert [run.folder for run in list_runs(runs) if run.name == "reverse"] == [runs / "reverse"]
    assert len(list_runs(packaged.parent)) == 0


# --- the panel of a population

CONFIGS = {
    "the default": RunConfig(),
    "another shape and rate": RunConfig(
        task=TaskConfig(length=6, min_length=2), model=ModelConfig(n_layers=3, d_model=32, mask="sliding-window:3"),
        training=TrainingConfig(learning_rate=0.0123, seed=5, max_steps=40, device="cpu"),
    ),
    "in place": RunConfig(task=TaskConfig(task="reverse-aligned"), model=ModelConfig(norm="post", dropout=0.1)),
    "recurrent": RunConfig(task=TaskConfig(task="reverse-translate"), model=ModelConfig(architecture="gru")),
}  # fmt: skip


@pytest.mark.parametrize("name", CONFIGS)
def test_the_command_trains_the_plan_in_which_nothing_varies_but_what_is_named(name: str):
    config = CONFIGS[name]
    over = ("attention",) if config.model.recurrent else ("positions", "n_heads")
    plan = population.planned(config, over, 3)
    _command, bound, _ = commands.parse_args(
        ["sweep", *population.options(plan)], print_error=False, exit_on_error=False
    )
    assert plans.planned(bound.arguments["seeds"], bound.arguments["settings"]) == plan
    seed = config.training.seed
    assert [member.config for member in population.planned(config, (), 2).members()] == [
        replace(config, training=replace(config.training, seed=each)) for each in (seed, seed + 1)
    ]


def test_what_the_positions_decide_is_decided_for_each_encoding() -> None:
    members = population.planned(RunConfig(), ("positions",), 1).members()
    wanted = {each: RunConfig(model=ModelConfig(positions=each)) for each in ENCODINGS.names()}
    assert {member.settings["positions"]: member.config for member in members} == wanted


def test_the_page_says_how_many_and_begins_them(monkeypatch: pytest.MonkeyPatch, root: Path) -> None:
    begun: list[tuple[Path, tuple[str, ...]]] = []
    monkeypatch.setattr(population.sweeping, "start", lambda folder, *words: begun.append((folder, words)))
    app = open_page("runs", sweep_seeds="8", sweep_over="positions,n_heads", max_steps="5")
    combined = 3 * len(ENCODINGS.names())
    assert f"{8 * combined} trainings: 8 seeds, {combined} combinations of settings." in said(app)
    press(app, "train-population")
    [(folder, words)] = begun
    assert folder == root / "population-1"
    assert words[:2] == ("--seeds", "0-7")
    assert plans.Sweep.load(folder).combinations == 15


@pytest.mark.daily(1)
@pytest.mark.parametrize("ended", [4, 3])
def test_one_whose_members_failed_has_ended_and_one_without_their_rows_was_cut_off(
    ended: int, monkeypatch: pytest.MonkeyPatch, root: Path
) -> None:
    rows = iter(range(4))

    def row(member: plans.Member) -> Row | None:
        return Row.failed(member.name, 0, "no reason") if next(rows) < ended else None

    made_up(root / "population-1", "0-3", {"max-steps": "5"}, row)
    monkeypatch.setattr(type(population.sweeping), "failed", True)  # the command says so where a member failed
    monkeypatch.setattr(population.sweeping, "path", root / "population-1")
    assert ("The last population was cut off." in said(open_page("runs"))) == (ended < 4)


# --- many runs


ROWS = pd.DataFrame(
    {
        "name": [f"{'Run' if i % 2 else 'run'}-{i:02}" for i in range(30)],
        "solved": pd.array([None if i % 3 == 0 else (7 * i) % 30 for i in range(30)], dtype="Int64"),
        "changed": ["heads 4 → 1" if i % 5 else "nothing" for i in range(30)],
        "device": "CPU",
        "status": "finished",
        "created": pd.date_range("2026-01-01", periods=30)[::-1],
    }
)


WORDED = ("name", "changed", "device", "status")
"""The columns in which words are looked for."""


@pytest.mark.parametrize("words", ["", "RUN-0", "heads cpu", "nothing [", "-1 nothing"])
@pytest.mark.parametrize("by", ["created", "name", "solved", "changed"])
@pytest.mark.parametrize("ascending", [False, True])
def test_the_pages_of_the_table_are_all_rows_that_match_in_order(
    words: str, by: str, ascending: bool, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(rows, "A_PAGE", 4)
    first = rows.page_of(ROWS, words, by, ascending, 1)
    pages = [rows.page_of(ROWS, words, by, ascending, number) for number in range(1, first.pages + 1)]
    shown_rows = [row for page in pages for row in page.frame.to_dict("records")]
    wanted = [
        row
        for row in ROWS.to_dict("records")
        if all(
            any(word in row[column].lower() for column in ("name", "changed", "device", "status"))
            for word in words.lower().split()
        )
    ]
    assert sorted(row["name"] for row in shown_rows) == sorted(row["name"] for row in wanted)
    assert all(len(page.frame) == 4 for page in pages[:-1])
    values = [row[by].lower() if isinstance(row[by], str) else row[by] for row in shown_rows if not pd.isna(row[by])]
    assert values == sorted(values, reverse=not ascending)
    assert all(pd.isna(row[by]) for row in shown_rows[len(values) :])
    assert rows.page_of(ROWS, words, by, ascending, 99).frame.equals(pages[-1].frame)


def test_all_of_many_runs_can_be_reached_and_what_is_ticked_elsewhere_stays(
    runs: Path, monkeypatch: pytest.MonkeyPatch
):
    assert "Filter" not in [field.label for field in open_page("runs").text_input]  # of few all are shown
    monkeypatch.setattr(rows, "A_PAGE", 2)
    for name in ("a", "b"):
        shutil.copytree(runs / "reverse", runs / name)
    app = open_page("runs", compare="reverse-aligned,b")
    seen = list(app.dataframe[0].value["name"])
    for number in (2, 3):
        seen += open_page("runs", rows_page=str(number)).dataframe[0].value["name"].tolist()
    assert sorted(seen) == sorted(run.name for run in list_runs(runs))
    beyond = open_page("runs", rows_page="4")
    (notice,) = beyond.warning
    assert notice.value == "The table of runs has 3 pages here, and no page 4; this is the last."
    assert (link(beyond)["rows_page"], list(beyond.dataframe[0].value["name"])) == ("3", seen[-1:])
    assert not beyond.run().warning
    assert "Runs 1 to 2 of 5." in said(app)
    assert "Compared as well, but not among these rows: b." in said(app)
    app.text_input(key="control-rows_filter").set_value("REVERSE").run()
    assert link(app)["rows_filter"] == "REVERSE"
    assert link(app)["compare"] == "reverse-aligned,b"
    assert "Runs 1 to 2 of 3 that match, of 5 in all." in said(app)
    app.text_input(key="control-rows_filter").set_value("nobody").run()
    assert "No run of 5 matches." in said(app)
    assert link(app)["compare"] == "reverse-aligned,b"
