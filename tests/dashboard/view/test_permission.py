"""What guests and viewers may do: the controls say why not, and a click that is sent all the same changes nothing."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from streamlit.proto.WidgetStates_pb2 import WidgetStates
from streamlit.runtime.state import SessionState
from streamlit.testing.v1 import AppTest

from dashboard.models import menu
from dashboard.server import background
from dashboard.server.roles import VIEWER, Visitor
from dashboard.view import permission
from tests.kit.checkout import ROOT, contents
from tests.kit.pages import State, open_page, shown
from tests.kit.runs import tiny
from transformer.config import ModelConfig, RunConfig, TaskConfig, TrainingConfig
from transformer.presets import PRESETS
from transformer.training.queue.pool import Pool
from transformer.training.recording import record
from transformer.training.runs import Run

GUEST, OTHER = Visitor("guest", "abcdef"), Visitor("guest", "uvwxyz")


class Queue(Pool):
    """A pool that only remembers."""

    def __init__(self) -> None:
        super().__init__(0)
        self.runs: list[tuple[Run, str]] = []

    def submit(self, run: Run, who: str = "") -> None:
        self.runs.append((run, who))

    def live(self, who: str) -> int:
        return sum(each == who for _, each in self.runs)


@pytest.fixture
def queue(monkeypatch: pytest.MonkeyPatch) -> Queue:
    queue = Queue()
    monkeypatch.setattr(background, "pool", queue)
    monkeypatch.setattr("dashboard.view.training.FIRST_STEP", 0.0)
    return queue


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A shipped run, one of a guest's that has ended, and one of another guest's."""
    root = tmp_path_factory.mktemp("made")
    shutil.copytree(ROOT / "checkpoints" / "reverse", root / "reverse")
    for guest in (GUEST, OTHER):
        run = Run.create(root / ".guests" / guest.name / f"tiny@{guest.name}", tiny())
        for _ in record(run):
            pass
    return root


@pytest.fixture
def root(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of these runs, in which the dashboard looks."""
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    monkeypatch.setattr(menu, "ROOT", tmp_path)
    return tmp_path


def page(someone: Visitor, address: str = "overview", **query: str) -> AppTest:
    return open_page(address, {"visitor": someone}, **query)


def button(app: AppTest, label: str) -> Any:
    return next(each for each in app.button if each.label == label)


def sent(control: Any) -> Any:
    """A control that takes what a browser's raw message says, though it is disabled."""
    control.proto.disabled = False
    return control


def press(app: AppTest, label: str) -> AppTest:
    app = sent(button(app, label)).click().run()
    assert not app.exception
    return app


def models(app: AppTest) -> list[str]:
    """The names in the menu of models; a guest's says so."""
    labels = [label.split(" · ") for label in app.selectbox(key="control-run").options]
    return [f"{words[0]} ({words[-1]})" if words[-1] == "guest's" else words[0] for words in labels]


# --- what a guest may


def test_a_guest_trains_into_a_folder_of_one_s_own(queue: Queue, root: Path) -> None:
    before = contents(root)
    app = press(page(GUEST), "Train")
    ((run, who),) = queue.runs
    assert who == GUEST.name
    assert run.folder == root / ".guests" / GUEST.name / run.name
    assert run.name.endswith(f"@{GUEST.name}")
    assert {name for name in contents(root) if name not in before} == {
        f".guests/{GUEST.name}/{run.name}/{name}" for name in ("run.json", "state.json", "control.json")
    }
    assert contents(root).items() >= before.items()
    assert app.session_state["watched"] == run.name


def test_one_s_own_runs_stand_in_the_menu_and_another_s_where_a_link_names_it(root: Path) -> None:
    """Both sorts of visitor are told who they are."""
    own, others = f"tiny@{GUEST.name}", f"tiny@{OTHER.name}"
    assert list(menu.menu(GUEST.name)) == ["reverse", own, "compiled"]
    assert list(menu.menu(GUEST.name, others)) == ["reverse", others, own, "compiled"]
    tiny = "tiny (guest's)"
    app = page(GUEST)
    assert models(app) == ["reverse", tiny, "compiled by hand"]
    assert any(f"@{GUEST.name}" in each.value for each in app.caption)
    app = page(VIEWER)
    assert models(app) == ["reverse", "compiled by hand"]
    assert any(permission.LOOKING in each.value for each in app.caption)
    assert models(page(GUEST, run=others)) == ["reverse", tiny, tiny, "compiled by hand"]
    app = page(GUEST, run="tiny@gggggg")
    assert "There is no run “tiny@gggggg” here" in shown(app.warning[0].value)


LARGE = [
    (RunConfig(model=ModelConfig(n_layers=5)), "at most 4 layers, and this one has 5"),
    (RunConfig(model=ModelConfig(d_model=256, n_heads=4)), "at most 128 numbers in d_model, and this one has 256"),
    (RunConfig(model=ModelConfig(d_ff=1024)), "at most 512 units in a feed-forward layer, and this one has 1,024"),
    (RunConfig(task=TaskConfig(length=200)), "at most 128 tokens in a sequence, and this one has 200"),
    (RunConfig(training=TrainingConfig(batch_size=129)), "at most 128 sequences in a batch, and this one has 129"),
    (RunConfig(training=TrainingConfig(max_steps=5001)), "at most 5,000 steps, and this one has 5,001"),
    (
        RunConfig(task=TaskConfig(length=100), training=TrainingConfig(max_steps=5000, batch_size=64)),
        "reads at most 10,000,000 tokens, and this one 32,000,000: take fewer steps",
    ),
]


@pytest.mark.daily(3)
@pytest.mark.parametrize(("config", "sentence"), LARGE)
def test_what_is_too_large_for_a_guest_is_said(
    config: RunConfig, sentence: str, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("streamlit.session_state", State(visitor=GUEST))
    assert sentence in permission.to_train([config])
    monkeypatch.setattr("streamlit.session_state", State(visitor=permission.OWNER))
    assert not permission.to_train([config])


def test_a_guest_can_train_every_preset(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("streamlit.session_state", State(visitor=GUEST))
    assert [preset.name for preset in PRESETS if permission.to_train([preset.config])] == []


def test_a_guest_s_trainings_and_runs_are_counted(queue: Queue, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("streamlit.session_state", State(visitor=GUEST))
    assert not permission.to_train([RunConfig()] * permission.AT_ONCE)
    assert "at most 4 trainings at once, and you have 0" in permission.to_train([RunConfig()] * 5)
    for i in range(permission.AT_ONCE):
        queue.submit(Run(root / str(i)), GUEST.name)
    assert "at most 4 trainings at once, and you have 4" in permission.to_train([RunConfig()])
    assert "at most 4 trainings" in permission.to_resume(Run(root / ".guests" / GUEST.name / f"tiny@{GUEST.name}"))
    queue.runs.clear()
    own = root / ".guests" / GUEST.name
    for i in range(permission.AT_ONCE):
        shutil.copytree(own / f"tiny@{GUEST.name}", own / f"other{i}@{GUEST.name}")
        with monkeypatch.context() as elsewhere:
            elsewhere.setattr("socket.gethostname", lambda: "another-replica")
            Run(own / f"other{i}@{GUEST.name}").set_state("queued" if i % 2 else "running", 0, "")
        assert ("at most 4 trainings at once" in permission.to_train([RunConfig()])) == (i == 3)
    for i in range(permission.AT_ONCE):
        shutil.rmtree(own / f"other{i}@{GUEST.name}")
    monkeypatch.setattr(permission, "KEPT", 1)
    assert "at most 1 runs, and you have 1: delete one" in permission.to_train()
    monkeypatch.setattr(permission, "KEPT", 12)
    monkeypatch.setattr(permission, "OF_ALL", 2)
    assert "keeps 2 runs of guests at most, and has them already" in permission.to_train([RunConfig()])


def test_a_guest_renames_and_deletes_one_s_own_and_has_it_back(root: Path) -> None:
    own, folder = f"tiny@{GUEST.name}", root / ".guests" / GUEST.name
    app = page(GUEST, "runs", run=own)
    app.text_input(key=f"shelf-name-{own}").set_value("better @uvwxyz").run()
    assert (folder / f"better uvwxyz@{GUEST.name}" / "run.json").is_file()
    app = press(app, "Delete")
    assert not (folder / f"better uvwxyz@{GUEST.name}").exists()
    press(app, "Undo")
    assert (folder / f"better uvwxyz@{GUEST.name}" / "run.json").is_file()
    assert (root / ".guests" / OTHER.name / f"tiny@{OTHER.name}" / "run.json").is_file()


# --- what is another's


@pytest.mark.daily(2)
@pytest.mark.parametrize("someone", [GUEST, VIEWER], ids=lambda someone: someone.role)
@pytest.mark.parametrize("run", ["reverse", f"tiny@{OTHER.name}"])
def test_nothing_of_another_s_can_be_changed_by_what_a_browser_sends(someone: Visitor, run: str, root: Path) -> None:
    """Each control is disabled; a click and a value are sent all the same, as a browser's raw message could."""
    before = contents(root)
    app = page(someone, "runs", run=run)
    if run != "reverse":  # it stands in the menu of models, not in the list of runs
        assert run not in app.selectbox(key="shelf-run").options
        return
    app.selectbox(key="shelf-run").select(run).run()
    name = app.text_input(key=f"shelf-name-{run}")
    assert name.disabled
    sent(name).set_value("mine").run()
    assert button(app, "Delete").disabled
    press(app, "Delete")
    assert contents(root) == before
    why = "You can only look here" if someone is VIEWER else f"{run} is not yours"
    assert any(why in shown(each.value) for each in app.caption)


@pytest.mark.daily(1)
@pytest.mark.parametrize("someone", [GUEST, VIEWER], ids=lambda someone: someone.role)
def test_nobody_else_s_training_is_stopped_paused_or_slowed(
    someone: Visitor, root: Path, queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = Run.create(root / "live", tiny())
    weights = root / ".guests" / OTHER.name / f"tiny@{OTHER.name}" / "snapshots"
    shutil.copytree(weights, run.folder / "snapshots", dirs_exist_ok=True)
    run.set_state("queued", 0)  # a sign of life of just now
    before = contents(root)
    app = page(someone, run="live")
    app.session_state["watching"], app.session_state["found"] = "live", "live"
    app.run()
    for label in ("Pause", "Stop"):
        assert button(app, label).disabled
        assert button(app, label).help
        press(app, label)
    sent(app.selectbox(key="control-pace-False")).select("1").run()
    assert contents(root) == before
    assert Run(run.folder).control == run.control


def test_a_viewer_trains_nothing(root: Path, queue: Queue) -> None:
    before = contents(root)
    app = page(VIEWER)
    assert button(app, "Train").disabled
    press(app, "Train")
    app = page(VIEWER, "runs")
    for each in [each for each in app.button if each.key and each.key.startswith("race-")]:
        assert each.disabled
        sent(each).click().run()
    assert not queue.runs
    assert contents(root) == before


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("someone", "address", "label"),
    [
        (GUEST, "lengths", "Measure again"),
        (VIEWER, "corners", "Measure again"),
        (GUEST, "bottleneck", "Train again"),
    ],
)
def test_only_the_owner_measures_anew(
    someone: Visitor, address: str, label: str, root: Path, queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[Any] = []
    monkeypatch.setattr("dashboard.models.background.Measuring.start", lambda *given: started.append(given))
    app = page(someone, address, **({"corner_part": "forcing"} if address == "corners" else {}))
    found = [each for each in app.button if each.label in (label, "Measure")]
    assert found
    for each in found:
        assert each.disabled
        assert each.help
        sent(each).click().run()
    assert not started
    assert not queue.runs
    assert not app.exception


def test_only_the_owner_keeps_masks_and_texts(root: Path) -> None:
    before = contents(root)
    app = page(GUEST, "masks", mask="sliding-window:2")
    field = app.text_input(key="control-mask-name")
    assert field.disabled
    sent(field).set_value("mine").run()
    assert contents(root) == before


# --- after a day


def test_what_guests_left_goes_after_a_day_without_change(root: Path) -> None:
    state = root / ".guests" / GUEST.name / f"tiny@{GUEST.name}" / "state.json"
    now = Run(state.parent).state.heartbeat
    empty = root / ".guests" / "empty"
    empty.mkdir()
    os.utime(empty, (0, 0))
    menu.forget_guests(now + menu.DAY - 60)
    assert not empty.exists()
    assert state.is_file()
    menu.forget_guests(now + menu.DAY + 60)
    assert not state.parent.parent.exists()
    assert (root / "reverse" / "run.json").is_file()


def test_whose_a_run_is(root: Path) -> None:
    assert menu.run_called("reverse").folder == root / "reverse"
    assert menu.run_called("tiny@abcdef").folder == root / ".guests" / "abcdef" / "tiny@abcdef"
    assert menu.guest_of(menu.run_called("tiny@abcdef")) == "abcdef"
    assert menu.guest_of(menu.run_called("reverse")) == ""
    (root / "mail@office").mkdir()
    assert menu.run_called("mail@office").folder == root / "mail@office"  # somebody's own, who is no guest
    assert "../x@abcdef" not in menu.menu(named="../x@abcdef")


def test_no_message_of_a_browser_says_who_it_is() -> None:
    """A browser may send a value under any name; what the session keeps under that is kept."""
    state = SessionState(_old_state={"visitor": GUEST})
    sent = WidgetStates()
    sent.widgets.add(id="visitor", json_value='{"role": "owner"}')
    state.set_widgets_from_proto(sent)
    assert state["visitor"] == GUEST


def test_where_there_is_no_text_nobody_is_told_to_do_what_is_the_owner_s(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("transformer.text.shelf.keys", lambda: ())
    for someone, said in ((GUEST, "only the owner of this server can add one"), (permission.OWNER, "or upload a text")):
        app = page(someone, task="text")
        assert any("There is no text to read yet" in each and said in each for each in (e.value for e in app.error))
