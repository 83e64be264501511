"""The installed package: what is in the wheel, and what its command does in a folder that knows nothing of the rest."""

from __future__ import annotations

import email
import json
import os
import re
import shutil
import subprocess
import sys
import venv
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from playwright.sync_api import expect

import transformer
from dashboard.__main__ import main
from tests.kit.checkout import ROOT, tracked
from tests.kit.driving import browser_of_a_test, free_port, serving
from transformer.training.exchange.archive import unpack

PACKAGES = ("transformer", "dashboard")
RUN, MOST_BYTES = "checkpoints/reverse", 1_000_000
"""The run that the wheel brings along, and the most that it may weigh there."""
QUICK = ("--max-steps", "2", "--length", "3", "--d-model", "16", "--d-ff", "0", "--device", "cpu")


@dataclass(frozen=True)
class Installed:
    """A wheel, and a fresh environment in which it is installed."""

    wheel: Path
    bin: Path
    folder: Path
    """An empty folder to stand in, away from the repository."""
    variables: dict[str, str]

    @property
    def runs(self) -> Path:
        """Where runs are kept if nobody says otherwise, on Linux."""
        return Path(self.variables["XDG_DATA_HOME"]) / "attention-lab" / "checkpoints"

    def command(self, *arguments: str, program: str = "attention-lab") -> str:
        """What it prints."""
        words = [self.bin / program, *arguments]
        ended = subprocess.run(words, cwd=self.folder, env=self.variables, capture_output=True, text=True, timeout=600)
        assert ended.returncode == 0, ended.stderr
        return ended.stdout


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """As `pip install .` does it, but for what the package depends on: that is taken from the present environment."""
    source, place = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("environment")
    for path in tracked(*PACKAGES, RUN, "pyproject.toml", "setup.py", "README.md", "LICENSE", "docs/licences.md"):
        (copy := source / path.relative_to(ROOT)).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, copy)
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
    alone = ["--quiet", "--no-index", "--no-deps"]
    subprocess.run([*pip, "wheel", *alone, "--no-build-isolation", "--wheel-dir", place, source], check=True)
    (wheel,) = place.glob("*.whl")
    venv.create(place / "venv")
    python = place / "venv" / "bin" / "python"
    subprocess.run([*pip, "--python", python, "install", *alone, "--no-compile", wheel], check=True)
    (packages,) = (place / "venv").glob("lib/python*/site-packages")
    others = [path for path in sys.path if path.endswith("site-packages")]
    (packages / "others.pth").write_text("\n".join(others))  # without what these say of an editable package
    folder = tmp_path_factory.mktemp("elsewhere")
    # Students have one of these.
    (folder / "transformer.py").write_text("raise SystemExit('this is another transformer')\n")
    ours = ("ATTENTION_LAB_", "STREAMLIT_", "PYTHON", "COV_CORE", "COVERAGE")
    variables = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    return Installed(wheel, python.parent, folder, variables | {"XDG_DATA_HOME": str(place / "data"), "NO_COLOR": "1"})


# --- what is in the wheel


@pytest.mark.nightly
def test_the_wheel_holds_the_two_packages_and_a_run_and_nothing_else(installed: Installed) -> None:
    own = {path.relative_to(ROOT).as_posix() for path in tracked(*PACKAGES)}
    shipped = {str(path.relative_to(ROOT)).replace("checkpoints", "transformer/shipped"): path for path in tracked(RUN)}
    with zipfile.ZipFile(installed.wheel) as wheel:
        names = {name for name in wheel.namelist() if ".dist-info/" not in name}
        assert all(wheel.read(name) == path.read_bytes() for name, path in shipped.items())
        assert sum(wheel.getinfo(name).compress_size for name in shipped) <= MOST_BYTES
    assert names == own | set(shipped)
    assert {"transformer/py.typed", "dashboard/py.typed", "dashboard/.streamlit/config.toml"} <= names
    assert {"dashboard/frame/style.css", "dashboard/lectures/masks.md"} <= names


def test_the_wheel_says_what_it_is(installed: Installed) -> None:
    with zipfile.ZipFile(installed.wheel) as wheel:
        (place,) = {name.split("/")[0] for name in wheel.namelist() if ".dist-info/" in name}
        said = email.message_from_bytes(wheel.read(f"{place}/METADATA"))
        for name in ("LICENSE", "docs/licences.md"):
            assert wheel.read(f"{place}/licenses/{name}") == (ROOT / name).read_bytes()
    assert said["Version"] == transformer.__version__
    assert said["License-Expression"] == "MIT"
    assert said.get_all("License-File") == ["LICENSE", "docs/licences.md"]
    assert set(said.get_all("Provides-Extra", [])) >= {"hf", "hand-out", "rooms"}


# --- the command


def test_the_command_is_there_and_without_a_repository_the_packaged_run(installed: Installed) -> None:
    """Beside one's own, which are kept among the user's data."""
    commands = set(re.findall(r"^│ ([a-z-]+) {2,}", installed.command("--help"), re.MULTILINE))
    assert commands >= {"run", "train", "evaluate", "generate", "export", "list", "resume"}
    assert installed.command("--version").strip() == transformer.__version__
    (line,) = re.findall(r"^reverse .*", installed.command("list"), re.MULTILINE)  # others may be trained by now
    assert re.match(r"reverse +reverse 8, .*, second half 1\.000, finished, comes with the package$", line)
    found = json.loads(installed.command("evaluate", "reverse", "--json", "--sequences", "64"))
    assert found["second_half"] == 1.0


@pytest.mark.nightly
def test_a_run_is_trained_measured_and_handed_on(installed: Installed, tmp_path: Path) -> None:
    """And found again in a `checkpoints/` of the folder that one stands in, as a clone of the repository has it."""
    installed.command("train", *QUICK, "--out", "checkpoints/X")
    installed.command("export", "checkpoints/X", "--out", "X.zip")
    found = json.loads(installed.command("evaluate", "X", "--json", "--sequences", "64"))
    assert len(found["accuracy_by_position"]) == 6
    assert {line.split()[0] for line in installed.command("list").splitlines()} == {"reverse", "X"}
    run = unpack(installed.folder / "X.zip", tmp_path)
    assert (run.config.task.length, list(run.snapshots())[-1]) == (3, 2)
    shutil.rmtree(installed.folder / "checkpoints")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("nosuch",), "Unknown command"),
        (("export", "nosuch"), "there is no run nosuch"),
        (("train", "--n-layers", "2.5"), "--n-layers must be a whole number, not 2.5"),
        (("run", "my_model:build"), "run takes options of Streamlit only"),
        (("run", "--server.port", "many"), "'many' is not a valid integer"),
        (("run", "--no.such.option", "3"), "No such option"),
        (("run", "--module", "my_model"), "--module takes MODULE:FUNCTION"),
        (("run", "--module", "my_model:build"), "there is no module my_model"),
        (("run", "--module", "x\ny:build"), "not x?y:build"),
    ],
)
def test_bad_input_is_one_line(
    arguments: tuple[str, ...],
    words: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    code, (out, err) = main(list(arguments)), capsys.readouterr()
    assert (code, out, len(err.splitlines())) == (2, "", 1)
    assert err.startswith("error: ")
    assert words in err


def test_run_hands_on_streamlits_options_and_names_the_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The module is looked for beside the user, and its code is not run here."""
    served: list[tuple[Path, tuple[str, ...]]] = []
    monkeypatch.setattr("dashboard.server.streamlit_private.serve", lambda *arguments: served.append(arguments))
    monkeypatch.setenv("ATTENTION_LAB_MODULE", "")  # so that it is taken back
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my_model.py").write_text("raise SystemExit('too early')\n")
    assert main(["run", "--server.port", "8600", "--server.headless=true", "--module", "my_model:build"]) == 0
    assert served == [(ROOT / "dashboard" / "app.py", ("--server.port", "8600", "--server.headless=true"))]
    assert os.environ["ATTENTION_LAB_MODULE"] == "my_model:build"


# --- the dashboard


@contextmanager
def served(installed: Installed) -> Iterator[tuple[str, Path]]:
    """The dashboard as the command starts it: its address, and what it prints."""
    port, log = str(free_port()), installed.folder / "log"
    command = [installed.bin / "attention-lab", "run", "--server.port", port, "--server.headless", "true"]
    address = f"http://localhost:{port}"
    with serving(command, address, log, cwd=installed.folder, env=installed.variables):
        yield address, log


@pytest.mark.nightly
def test_the_dashboard_opens_anywhere_and_trains(installed: Installed) -> None:
    with served(installed) as (address, log), browser_of_a_test() as chromium:
        assert f"Runs are kept in {installed.runs}." in log.read_text()
        page = chromium.new_page()
        page.goto(address)
        expect(
            page.get_by_role("heading", name="This transformer reads eight digits and writes them backwards.")
        ).to_be_visible()
        expect(page.get_by_label("Model", exact=True)).to_have_value("reverse · 1.000")
        expect(page.locator("canvas").first).to_be_visible()
        # The colour of the theme in dashboard/.streamlit, not Streamlit's own.
        train = page.get_by_test_id("stSidebar").get_by_test_id("stBaseButton-primary")
        expect(train).to_have_css("background-color", "rgb(36, 86, 200)")
        train.click()
        expect(page.get_by_text("solved at step").first).to_be_visible()
        expect(page.get_by_test_id("stException")).to_have_count(0)
        assert "Traceback" not in log.read_text()  # before the tab is closed: Streamlit may complain of that
    (run,) = installed.runs.glob("*/run.json")
    assert json.loads(run.read_text())["config"]["task"]["task"] == "reverse"


PAGES = """
import json, os
from pathlib import Path
import dashboard
from streamlit.testing.v1 import AppTest
from dashboard.view.pages import PAGES
main, found = str(Path(dashboard.__file__).parent / "frame" / "main.py"), {}
for name, page in PAGES.items():
    app = AppTest.from_file(main, default_timeout=120).switch_page(page.script).run()
    found[name] = [[each.value for each in kind] for kind in (app.title, app.exception, app.error)]
    runs = [app.session_state["menu"], app.session_state["settings"].run]
    assert [*runs[0]] == ["reverse", "compiled"] and runs[1] in ("", "reverse"), runs
    if name == "runs":
        assert app.button(key="delete").disabled and not app.button(key="open").disabled
print(json.dumps(found), flush=True)
os._exit(0)
"""


@pytest.mark.nightly
def test_every_page_opens_on_the_packaged_run(installed: Installed, tmp_path: Path) -> None:
    """It is only read. What was measured for a page and is not in the wheel is missed in a sentence."""
    alone = replace(installed, variables=installed.variables | {"ATTENTION_LAB_RUNS": str(tmp_path / "none")})
    found = json.loads(alone.command("-P", "-c", PAGES, program="python"))
    assert len(found) > 20
    assert {name: said for name, said in found.items() if len(said[0]) != 1 or said[1]} == {}
    missed = {name: error for name, (_, _, error) in found.items() if error}
    assert set(missed) == {"lengths", "bottleneck"}
    assert all(error[0].startswith("This measurement cannot be shown: there is no file") for error in missed.values())
