"""The README keeps its word: its commands work, its example prints what it says, and what it names is there."""

import contextlib
import io
import re
import shlex
import subprocess
from pathlib import Path

import pytest

from dashboard.__main__ import main
from dashboard.view.pages import OVERVIEW, PAGES
from tests.kit.checkout import ROOT
from tests.kit.pages import answer, network
from tests.kit.waiting import PATIENCE
from transformer.analysis.heads.survey import survey
from transformer.training.runs import Run

TEXT = (ROOT / "README.md").read_text(encoding="utf-8")
GUIDE = sorted((ROOT / "docs" / "guide").glob("*.md"))
FENCED = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)
QUICK = ["--length", "3", "--d-model", "16", "--d-ff", "0", "--max-steps", "5"]


def blocks(language: str) -> list[str]:
    return [body for name, body in FENCED.findall(TEXT) if name == language]


def command_lines() -> list[list[str]]:
    """What stands after `attention-lab` in the shell blocks, comments left out."""
    lines = [line for block in blocks("sh") for line in block.splitlines()]
    return [shlex.split(line, comments=True)[1:] for line in lines if line.startswith("attention-lab")]


# --- from Python


def test_the_example_prints_what_its_comments_say():
    (block,) = blocks("python")
    expected = re.findall(r"^print\(.*?\)\s+# (.*)$", block, re.MULTILINE)
    assert expected
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(block, "README.md", "exec"), {})
    assert printed.getvalue().splitlines() == expected


# --- from the command line


def test_the_commands_work_one_after_the_other(tmp_path, monkeypatch, capsys):
    """As they stand; the training is made small. What is trained by the first is measured by the second."""
    monkeypatch.chdir(tmp_path)
    start, *commands = command_lines()  # tests/package/test_installed.py starts the dashboard
    assert start == ["run"]
    assert [command[0] for command in commands] == ["train", "evaluate", "export", "list"]
    for command in commands:
        assert main([*command, *QUICK] if command[0] == "train" else command) == 0, command
    said = capsys.readouterr().out
    trained = Path(commands[0][commands[0].index("--out") + 1])
    assert Run(trained).evaluation["verdict"] in said
    assert Run(trained).config.training.seed == int(commands[0][commands[0].index("--seed") + 1])
    assert commands[1][1] == commands[2][1] == str(trained)
    assert (tmp_path / "my-run.attention-run.zip").is_file()


def test_every_option_that_is_named_exists(capsys):
    texts = " ".join([TEXT, *(page.read_text(encoding="utf-8") for page in GUIDE)])
    named = set(re.findall(r"`(--[\w-]+)`|(?:python -m transformer|attention-lab).*?(--[\w-]+)", texts))
    assert not any(
        main([command, "--help"])
        for command in ("train", "evaluate", "generate", "corpus", "check", "export", "run", "sweep")
    )
    assert not main(["hand-out", "--help"])
    known = capsys.readouterr().out + " --help"
    for option in {one or other for one, other in named}:
        assert option in known, option


def test_every_make_target_that_is_named_exists_and_means_what_the_readme_says():
    """`make run` ends in the very command that stands beside it."""
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    named = {one or other for one, other in re.findall(r"`make ([\w-]+)`|^make ([\w-]+)", TEXT, re.MULTILINE)}
    assert {"run", "test"} <= named
    assert named <= set(re.findall(r"^([\w-]+):", makefile, re.MULTILINE))
    assert "streamlit run dashboard/app.py" in makefile
    assert "streamlit run dashboard/app.py" in TEXT
    assert "pip install -r requirements.txt" in TEXT
    done = subprocess.run(["make", "--dry-run", "run", "test"], cwd=ROOT, capture_output=True, timeout=PATIENCE)
    assert done.returncode == 0, done.stderr


# --- what it names


def named_files() -> list[Path]:
    """Each `name` in the folder map; those without a folder stand in, or beside, that of the first in their line."""
    table, found = TEXT[TEXT.index("## Where things are") :], []
    for line in re.findall(r"^\| `.*\|$", table, re.MULTILINE):
        folder = ROOT
        for name in re.findall(r"`([\w./-]+)`", line):
            places = (ROOT / name, folder / name, folder.parent / name)
            found.append(next((place for place in places if place.exists()), ROOT / name))
            if "/" in name and (ROOT / name).exists():
                folder = ROOT / name if name.endswith("/") else (ROOT / name).parent
    return found


def test_what_the_folder_map_names_is_there_and_no_folder_is_left_out():
    """Every folder with Python in it, or a file of it, has its line: a newcomer finds their way."""
    names = named_files()
    assert len(names) > 15
    assert [name for name in names if not name.exists()] == []
    folders = "transformer/analysis transformer/training transformer/positions transformer/masks transformer/tasks"
    for package in (*folders.split(), "transformer", "dashboard", "checkpoints", "tests"):
        assert any(name.is_relative_to(ROOT / package) for name in names), package


@pytest.mark.parametrize("page", [ROOT / "README.md", *GUIDE], ids=lambda page: page.stem)
def test_pictures_and_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#]+)\)", page.read_text(encoding="utf-8")):
        if not re.match(r"https?://", target):
            assert (page.parent / target).is_file(), target


def test_the_readme_is_short_and_the_guide_has_a_part_for_every_page():
    assert len(TEXT.splitlines()) <= 150
    for each in PAGES.values():
        if each is not OVERVIEW:
            name = (each.menu or each.title).lower().replace(" ", "-")
            menu = (ROOT / "docs" / "guide" / f"{name}.md").read_text(encoding="utf-8")
            assert f"## {each.title}\n" in menu
            assert f"](pictures/{each.address}.webp)" in menu
            assert f"](docs/guide/pictures/{each.address}.webp)" in TEXT


def test_the_words_and_numbers_of_the_readme_are_those_of_the_shipped_run():
    """The sequence of "It reverses", said by the model of the first page itself, and the share of its foremost head."""
    model, config = network("reverse-any")
    asked, said = (
        [int(word) for word in words.split()] for words in re.search(r"`((?:\d )+)SEP` →\s+`([\d ]+)`", TEXT).groups()
    )
    assert answer(model, config, asked) == said == asked[::-1]
    card = Run(ROOT / "checkpoints" / "reverse-any").evaluation
    halves = re.search(r"answer \((1\.\d+)\)\. It cannot predict the random question \((0\.\d+);", TEXT).groups()
    assert halves == tuple(f"{card[half]:.2f}" for half in ("second_half", "first_half"))
    found = survey(model, config.build_task())
    for named in re.findall(r"(0\.\d+) of its attention", TEXT):
        assert named == f"{found.expected_share[found.foremost]:.{len(named) - 2}f}"
