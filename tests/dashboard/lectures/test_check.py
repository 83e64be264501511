"""The proof of a lecture: the shipped ones hold, and what does not hold is named with its line."""

from __future__ import annotations

from pathlib import Path

import pytest

from dashboard.__main__ import main
from dashboard.lectures.check import mistakes
from dashboard.lectures.lecture import read
from dashboard.lectures.shelf import SHIPPED, lectures
from transformer.foundation.foreign import shortened

ABOUT = "---\ntitle: A test\nminutes: 1\nlanguage: en\naudience: nobody\n---\n"
BAD = f"""{ABOUT}## One
view: heads?run=reverse&head=decoder.7.self_attention.0
look: nothing
controls: mean, input, foo
claim: heads == 5
claim: heads == 4
claim: weight("", 9, 80) > 0
ask: Of {{{{ none }}}}?

Words {{{{ weight("", 9, 8) :.2f }}}},
and {{{{ nope }}}}.
"""


EVERY_DAY = "attention"
"""The others are held to what they say at night: each opens a page for every step."""


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(path.stem, marks=[] if path.stem == EVERY_DAY else pytest.mark.nightly)
        for path in sorted(SHIPPED.glob("*.md"))
    ],
)
def test_a_shipped_lecture_holds(name: str) -> None:
    assert [str(mistake) for mistake in mistakes(lectures().files[name])] == []


def test_what_does_not_hold_is_named_with_its_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dashboard.lectures.check.BEHIND", 0.0)
    found = [str(mistake) for mistake in mistakes(read("bad", BAD))]
    expected = [
        "line 7: This model has no head of that name; another is shown",
        "line 7: the page has no element “nothing” to look at; it has ",
        "line 7: the page has no control of “foo”, nor has any other",
        "line 17: there is no “nope” in a view",
        "line 14: there is no “none” in a view",
        "line 11: “heads == 5” is not true of this view: the left side is 4",
        'line 13: “weight("", 9, 80) > 0” has no value: there is no place 80',
    ]
    assert len(found) == len(expected)
    for said, begins in zip(found, expected, strict=True):
        assert said.startswith(begins)


def test_a_run_that_is_not_here_is_named() -> None:
    text = f"{ABOUT}## One\nview: heads?run=nowhere\n\nWords.\n"
    said = [str(mistake) for mistake in mistakes(read("bad", text))]
    assert said[-1] == "line 7: there is no run “nowhere”"


def test_the_command_says_what_holds_and_ends_with_what_does_not(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dashboard.lectures.check.BEHIND", 0.0)
    good, bad, none = tmp_path / "good.md", tmp_path / "bad.md", tmp_path / "none.md"
    good.write_text(f"{ABOUT}## One\nview: overview?run=reverse\nclaim: right == length\n\n{{{{ right }}}} right.\n")
    bad.write_text(good.read_text().replace("right == length", "right == 3"))
    assert main(["lecture", "check", str(good)]) == 0
    assert capsys.readouterr().out == f"{good}: 1 steps, 1 numbers, 1 claims and 0 questions hold.\n"
    assert main(["lecture", "check", str(good), str(bad)]) == 1
    said = capsys.readouterr()
    assert said.err == f"{bad}, line 9: “right == 3” is not true of this view: the left side is 8.\n"
    assert main(["lecture", "check", str(none)]) == 2
    assert capsys.readouterr().err == f"{shortened(str(none))}: No such file or directory.\n"
    bad.write_text("nothing")
    assert main(["lecture", "check", str(bad)]) == 2
    assert capsys.readouterr().err == f"{bad}, line 1: the file does not begin with a line “---”.\n"
    assert main(["lecture", "nonsense"]) == 2
    assert capsys.readouterr().err.startswith("error: ")
