"""A lecture's file: what is read of it, and what is wrong in it, with its line."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from dashboard.lectures import shelf
from dashboard.lectures.expressions import Expression
from dashboard.lectures.lecture import Lecture, load, read
from dashboard.lectures.reading import MOST_BYTES, Mistake
from dashboard.view.link import View

ABOUT = "---\ntitle: Masks: who sees whom\nminutes: 15\nlanguage: en\naudience: everybody\n---\n"
STEP = "## A step\nview: heads?run=reverse&query=9\nlook: head-pattern\ncontrols: head, sidebar\nclaim: heads == 4\n\n"
TEXT = f"{ABOUT}\n{STEP}It has {{{{ heads }}}} heads of $d = 16$ and `x[3]`.\n\n> For me: wait.\n> And smile.\n"


def test_everything_that_is_written_is_read() -> None:
    lecture = read("masks", TEXT)
    assert (lecture.name, lecture.title, lecture.minutes) == ("masks", "Masks: who sees whom", 15)
    (step,) = lecture.steps
    assert (step.title, step.line, step.page, step.look) == ("A step", 8, "heads", "head-pattern")
    assert step.view == View(run="reverse", query=9)
    assert step.controls == ("head", "sidebar")
    assert step.prose[0] == "It has "
    assert [each.text for each in step.expressions] == ["heads"]
    assert step.prose[2] == " heads of $d = 16$ and `x[3]`."
    assert step.notes == ("For me: wait.\nAnd smile.",)
    assert [(claim.text, claim.line) for claim in step.claims] == [("heads == 4", 12)]
    assert step.expressions[0].line == 14


def test_a_training_has_a_minute_unless_the_lecture_says_otherwise() -> None:
    step = "\n## One\nview: heads\n\nWords.\n"
    assert read("one", ABOUT + step).training == 60
    assert read("one", ABOUT.replace("language: en", "language: en\ntraining: 90") + step).training == 90


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ("", 1, "does not begin with a line “---”"),
        ("---\ntitle: x\n", 2, "do not end with a line"),
        (ABOUT.replace("minutes: 15", "minutes: soon"), 3, "minutes is a whole number from 1 to 240"),
        (ABOUT.replace("minutes: 15", "minutes: 0"), 3, "minutes is a whole number"),
        (ABOUT.replace("minutes: 15", "minutes: 9" + "9" * 400), 3, "minutes is a whole number"),
        (
            ABOUT.replace("language: en\n", "language: en\ntraining: 0\n"),
            5,
            "training is a whole number from 1 to 3600",
        ),
        (ABOUT.replace("language: en\n", "language: en\ntraining: 3601\n"), 5, "training is a whole number"),
        (ABOUT.replace("language: en\n", ""), 5, "there is no language"),
        (ABOUT.replace("language: en", "title: again"), 4, "“title” stands here a second time"),
        (ABOUT.replace("language: en", "colour: red"), 4, "“colour” is not among title"),
        (ABOUT.replace("language: en", "nonsense"), 4, "no line of the form"),
        (ABOUT, 6, "there is no step"),
        (f"{ABOUT}\nHello.\n\n## A\n", 8, "before the first step"),
        (f"{ABOUT}## \nview: heads\n\nWords.", 7, "the step has no heading"),
        (f"{ABOUT}## A\n\nWords.", 7, "names no view"),
        (f"{ABOUT}## A\nview: heads\n\n", 7, "has no words"),
        (f"{ABOUT}## A\nview: nowhere\n\nWords.", 8, "there is no page “nowhere”"),
        (
            f"{ABOUT}## A\nview: heads?layers=99999\n\nWords.",
            8,
            "it must be a whole number from 1 to 12",
        ),
        (f"{ABOUT}## A\nview: heads?nonsense=1\n\nWords.", 8, "“nonsense” means nothing here"),
        (f"{ABOUT}## A\nview: heads?nonsense\n\nWords.", 8, "is no query of a link"),
        (f"{ABOUT}## A\nview: heads?lecture=masks\n\nWords.", 8, "“lecture” is set by the lecture itself"),
        (f"{ABOUT}## A\nview: heads\nview: heads\n\nWords.", 9, "“view” stands here a second time"),
        (f"{ABOUT}## A\nview: heads\ncolour: red\n\nWords.", 9, "“colour” is not among view"),
        (f"{ABOUT}## A\nview: heads\nclaim: heads =\n\nWords.", 9, "“heads =” is no expression"),
        (f"{ABOUT}## A\nview: heads\n\nIt has\n4 heads.", 11, "the number 4 is typed"),
        (f"{ABOUT}## A\nview: heads\n\nIt is 0.99.", 10, "the number 0.99 is typed"),
        (f"{ABOUT}## A\nview: heads\n\nIt\nis {{{{ a b }}}}.", 11, "“a b” is no expression"),
        (f"{ABOUT}## A\nview: heads\nbars: accuracies\n\nWords.", 7, "“bars” answers nothing: there is no line “ask”"),
        (f"{ABOUT}## A\nview: heads\nask:\n\nWords.", 9, "“ask” asks nothing"),
        (f"{ABOUT}## A\nview: heads\nask: Which of 4?\n\nWords.", 9, "the number 4 is typed"),
        (f"{ABOUT}## A\nview: heads\nask: Is {{{{ a b }}}}?\n\nWords.", 9, "“a b” is no expression"),
        (f"{ABOUT}## A\nview: heads\nask: A?\nnumber: heads\nbars: accuracies\n\nW.", 9, "not for number and bars"),
        (f"{ABOUT}## A\nview: heads\nask: A?\nchoice: yes\n\nWords.", 10, "not of the form"),
        (f"{ABOUT}## A\nview: heads\nask: A?\nchoice: a when heads == 4\n\nWords.", 9, "among two at least"),
        (ABOUT + "## A\nview: heads\n\nWords.\n" * 61, 7 + 4 * 60, "a lecture has at most 60 steps"),
    ],
)
def test_a_mistake_is_named_with_its_line(text: str, line: int, said: str) -> None:
    with pytest.raises(Mistake, match=re.escape(said)) as found:
        read("x", text)
    assert found.value.line == line
    assert str(found.value).startswith(f"line {line}: ")


def test_a_file_that_is_no_text_or_too_long_is_named(tmp_path: Path) -> None:
    (tmp_path / "x.md").write_bytes(b"---\ntitle: \xff\n")
    with pytest.raises(Mistake) as found:
        load(tmp_path / "x.md")
    assert str(found.value) == "line 2: this is no UTF-8 text"
    (tmp_path / "x.md").write_bytes(b"a" * (MOST_BYTES + 1))
    with pytest.raises(Mistake, match="200,001 bytes"):
        load(tmp_path / "x.md")


def test_one_bad_file_hurts_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "good.md").write_text(TEXT)
    (tmp_path / "bad.md").write_text(ABOUT)
    (tmp_path / "folder.md").mkdir()
    monkeypatch.setattr(shelf, "OWN", str(tmp_path))
    found = shelf.lectures()
    assert found.files["good"].title == "Masks: who sees whom"
    assert "attention" in found.files  # the shipped ones are there as well
    assert any(each.startswith("bad.md, line 6: there is no step") for each in found.mistakes)
    assert any(each.startswith("folder.md cannot be read") for each in found.mistakes)
    (tmp_path / "bad.md").write_text(TEXT.replace("15", "16"))
    assert shelf.lectures().files["bad"].minutes == 16  # read again, for it was changed


def test_a_folder_that_is_not_there_holds_no_lecture(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(shelf, "OWN", str(tmp_path / "nowhere"))
    assert "attention" in shelf.lectures().files


def test_the_shipped_lectures_have_eight_to_fourteen_steps_and_end_with_something_to_try() -> None:
    found = shelf.lectures()
    assert not found.mistakes
    for lecture in found.files.values():
        assert isinstance(lecture, Lecture)
        assert 8 <= len(lecture.steps) <= 14
        assert lecture.steps[-1].controls, "the last step leaves controls to try something with"


def test_the_shipped_lectures_take_as_long_as_they_promise() -> None:
    """As docs/guide/lectures.md counts: reading aloud, a look at each step, questions, and what is tried at the end."""
    for lecture in shelf.lectures().files.values():
        said = [part for step in lecture.steps for part in (step.title, _plain(step.prose), _plain(step.notes))]
        asked = [step.question for step in lecture.steps if step.question]
        said += [_plain(part) for each in asked for part in (each.words, *(words for words, _ in each.choices))]
        spoken = sum(len(part.split()) for part in said) / 140
        needed = spoken + len(lecture.steps) / 3 + len(asked) + 3
        assert needed <= lecture.minutes <= needed + 3, f"{lecture.name} takes {needed:.1f} minutes"


def _plain(parts: tuple[str | Expression, ...]) -> str:
    return "".join(part if isinstance(part, str) else "1" for part in parts)
