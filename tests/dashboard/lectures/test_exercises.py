"""Exercises: what is read of their files, what is wrong in one, and what the names in their goals come to."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from dashboard.__main__ import main
from dashboard.lectures import shelf
from dashboard.lectures.exercises.exercise import Exercise, Reached, load, reached, read
from dashboard.lectures.reading import Mistake
from dashboard.lectures.values import ViewValues
from dashboard.models.menu import menu
from dashboard.view.link import OF_MODEL, View
from dashboard.view.pages import PAGES
from transformer.analysis.accuracy.by_position import accuracy_by_position
from transformer.analysis.sample import sample
from transformer.config import ModelConfig, RunConfig, TaskConfig, TrainingConfig
from transformer.edits import parse_edit
from transformer.masks import MASKS
from transformer.masks.painted import Painted
from transformer.mistakes import MISTAKES
from transformer.training.recording import record
from transformer.training.runs import Run

HEAD = """---
title: Remove a head
order: 7
view: edits?run=reverse
goal: one edit, when it counts when edits == 1
---
"""
TEXT = f"{HEAD}\nRemove 1 of the {{{{ heads }}}} heads.\n\n> Press *Add*.\n"
LAST = "decoder.1.self_attention"


def test_everything_that_is_written_is_read() -> None:
    exercise = read("remove", TEXT)
    assert (exercise.name, exercise.title, exercise.order, exercise.page) == ("remove", "Remove a head", 7, "edits")
    assert exercise.view == View(run="reverse")
    (goal,) = exercise.goals
    assert (goal.words, goal.met.text) == ("one edit, when it counts", "edits == 1")
    assert (exercise.words[0], exercise.words[2]) == ("Remove 1 of the ", " heads.")
    assert exercise.hint == ("Press *Add*.",)


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ("", 1, "does not begin with a line “---”"),
        ("---\ntitle: x\n", 2, "what the exercise is do not end"),
        (HEAD.replace("title: Remove a head\n", ""), 5, "there is no title"),
        (HEAD.replace("goal: one edit, when it counts when edits == 1\n", ""), 5, "there is no goal"),
        (HEAD.replace("order: 7", "order: soon"), 3, "order is a whole number from 0 to 999, not “soon”"),
        (HEAD.replace("order: 7", "order: 9" + "9" * 400), 3, "order is a whole number"),
        (HEAD.replace("order: 7", "title: again"), 3, "“title” stands here a second time"),
        (HEAD.replace("order: 7", "colour: red"), 3, "“colour” is not among title"),
        (HEAD.replace("edits?run", "nowhere?run"), 4, "there is no page “nowhere”"),
        (HEAD.replace("run=reverse", "exercise=x"), 4, "“exercise” is set"),
        (HEAD.replace(", when it counts when edits == 1", ""), 5, "is not of the form"),
        (HEAD.replace("edits == 1", "edits[0]"), 5, "only numbers, names"),
        (HEAD.replace("edits == 1", "edits == 1\n" + "goal: a when edits == 1\n" * 9), 16, "at most 8 goals"),
        (HEAD, 6, "the exercise has no words"),
    ],
)
def test_a_mistake_is_named_with_its_line(text: str, line: int, said: str) -> None:
    with pytest.raises(Mistake) as caught:
        read("bad", text)
    assert said in str(caught.value)
    assert caught.value.line == line


def test_a_folder_of_ones_own_adds_exercises_and_names_what_is_wrong(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "exercises").mkdir()
    (tmp_path / "exercises" / "mine.md").write_text(TEXT)
    (tmp_path / "exercises" / "bad.md").write_text("hello")
    monkeypatch.setattr(shelf, "OWN", str(tmp_path))
    found = shelf.exercises()
    assert next(iter(found.files)) == "mine"  # its order is the least
    assert found.mistakes == ("bad.md, line 1: the file does not begin with a line “---”.",)
    assert set(shelf.SHIPPED.glob("exercises/*.md")) == {
        shelf.SHIPPED / "exercises" / f"{name}.md" for name in found.files if name != "mine"
    }


@pytest.mark.parametrize("exercise", shelf.exercises().files.values(), ids=lambda each: each.name)
def test_a_shipped_exercise_can_be_measured_where_it_begins_and_is_not_solved_there(exercise: Exercise) -> None:
    assert exercise.page in PAGES
    assert exercise.hint
    values = ViewValues(exercise.view)
    assert not all(reached(goal, values).met for goal in exercise.goals)
    assert all("–" not in str(each.value(values)) for each in exercise.words if not isinstance(each, str))


FIRST = "decoder.0.self_attention"
MIDDLE = np.tri(16, dtype=bool)
for hidden in (1, 2, 7, 8):
    MIDDLE[hidden:, hidden - 1] = False  # from all later queries
COPY = int("".join(str(int(query == key + 8 < 16)) for query in range(16) for key in range(16)), 2)
SOLUTIONS: dict[str, dict[str, object]] = {
    "reading-head": {"head": f"{FIRST}.3", "input": "1 2 3 4 5 6 7 8"},
    "known-by-a-beginner": {"input": "7 7 7 7 7 7 7 7"},
    "turning-point": {"step": 20, "input": "3 8 8 3 3 8 8 3"},
    "swapped": {"edits": "swap:4,7"},
    "half-known": {"mask": str(Painted.of(MIDDLE))},
    "unseen-break": {"edits": "only:decoder.0.cross_attention.1"},
    "two-heads": {"edits": f"zero:{FIRST}.0~zero:{FIRST}.2", "input": "8 8 8 8 8 8 8 8"},
    "copied-by-hand": {"edits": f"painted:{FIRST}.0:16x16x{COPY:064x}"},
    "in-the-middle": {"turned": -60, "stretch": 3.0},
    "no-trace": {"mistake": "scale-missing", "mistake_seed": 2},
}
TRAINED = {"one-head": (ModelConfig(n_layers=1, n_heads=1), 400), "cheat": (ModelConfig(mask="full"), 40)}
"""The model that solves an exercise, and the steps that it may take."""


def test_every_shipped_exercise_has_its_solution() -> None:
    assert {*SOLUTIONS, *TRAINED} == set(shelf.exercises().files)


@pytest.mark.parametrize("name", SOLUTIONS)
def test_a_shipped_exercise_is_solved_by_what_its_hint_leads_to(name: str) -> None:
    exercise = shelf.exercises().files[name]
    values = ViewValues(exercise.view.with_(**SOLUTIONS[name]))
    assert all(reached(goal, values).met for goal in exercise.goals)


MASKED = [name for name in MASKS.names() if name not in ("painted", "padding")]
WIDTHS = [f"{name}:{n}" for name in ("recent", "hide", "block", "prefix", "sliding-window") for n in range(1, 17)]


def one_choice(exercise: Exercise) -> list[dict[str, object]]:
    """What one click on the page, or one key that is held down, chooses: it takes no thought."""
    heads, steps = [], []
    if exercise.page in ("heads", "edits"):
        found = ViewValues(exercise.view)
        attentions = found.model.sample(found.question).attentions
        heads = [f"{site}.{head}" for site, each in attentions.items() for head in range(len(each.pattern))]
    if exercise.page in ("heads", "accuracy"):
        steps = list(menu()[exercise.view.run].snapshots)
    choices: dict[str, dict[str, list]] = {
        "heads": {"head": heads, "step": steps},
        "accuracy": {"step": steps},
        "edits": {"edits": [f"zero:{head}" for head in heads]},
        "masks": {"mask": MASKED + WIDTHS},
        "context": {"turned": [*range(-180, 181, 5)], "stretch": [tenth / 10 for tenth in range(51)]},
        "mistakes": {"mistake": [*MISTAKES.names()], "mistake_seed": [0, 1, 2]},
    }
    return [{field: value} for field, values in choices[exercise.page].items() for value in values]


@pytest.mark.parametrize("exercise", shelf.exercises().files.values(), ids=lambda each: each.name)
def test_no_shipped_exercise_is_solved_by_one_choice(exercise: Exercise) -> None:
    views = [exercise.view.with_(**choice) for choice in one_choice(exercise)]
    solved = [view for view in views if all(reached(goal, ViewValues(view)).met for goal in exercise.goals)]
    assert solved == []


@pytest.mark.nightly
@pytest.mark.parametrize("name", TRAINED)
def test_a_shipped_exercise_is_solved_by_a_training(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dashboard.models.menu.ROOT", tmp_path)
    exercise, (model, steps) = shelf.exercises().files[name], TRAINED[name]
    training = TrainingConfig(max_steps=steps)
    run = Run.create(tmp_path / name, RunConfig(task=TaskConfig(), model=model, training=training))
    for _ in record(run):
        pass
    values = ViewValues(exercise.view.with_(run=run.name))
    assert all(reached(goal, values).met for goal in exercise.goals)


@pytest.mark.nightly
@pytest.mark.parametrize("exercise", shelf.exercises().files.values(), ids=lambda each: each.name)
def test_to_open_another_model_is_no_solution(exercise: Exercise) -> None:
    for run in menu():
        values = ViewValues(exercise.view.with_(**{**OF_MODEL, "run": run}))
        assert not all(reached(goal, values).met for goal in exercise.goals), run


# --- how a goal stands


def test_a_goal_says_what_its_left_side_comes_to_or_why_it_has_no_value() -> None:
    exercise = read("x", TEXT.replace("edits == 1", "abs(step - 3) < 2"))
    assert reached(exercise.goals[0], {"step": 4}) == Reached("one edit, when it counts", True, 1)
    assert reached(exercise.goals[0], {"step": 9}) == Reached("one edit, when it counts", False, 6)
    assert "there is no “step” in a view" in reached(exercise.goals[0], {}).why


def test_why_a_goal_cannot_be_measured_is_said_without_its_expression() -> None:
    exercise = read("x", TEXT.replace("edits == 1", 'edited_by(1, "second half") < 0.5'))
    assert reached(exercise.goals[0], values()).why == "nothing is edited yet"
    exercise = read("x", TEXT.replace("edits == 1", 'edits == 1 and kind_of_edit(1) == "zero"'))
    assert reached(exercise.goals[0], values()).why == ""  # the second part is not asked for


@pytest.mark.parametrize("now", ["y1", "y1 y2", ""])
def test_a_goal_about_words_shows_what_holds_by_now(now: str) -> None:
    exercise = read("x", TEXT.replace("edits == 1", "knowable == 'y1'"))
    assert reached(exercise.goals[0], {"knowable": now}) == Reached("one edit, when it counts", now == "y1", now)


# --- what names come to


def values(**view: object) -> ViewValues:
    return ViewValues(View(run="reverse", **view))  # type: ignore[arg-type]


def test_edits_are_counted_and_measured_as_the_library_does() -> None:
    text = f"zero:{LAST}.2~-zero:{LAST}.1~zero:{LAST}.0"
    found = values(edits=text)
    assert found["edits"] == 2
    assert found["kind_of_edit"](1) == "zero"
    made = [parse_edit(f"zero:{LAST}.{head}") for head in (2, 0)]
    model = found.model

    def right(edits: list) -> float:
        seed = model.config.training.seed + 1
        measured = accuracy_by_position(model.network(), model.task, sequences=1024, length=8, seed=seed, edits=edits)
        return float(measured.mean[-8:].mean())

    assert found["edited"]("second half") == pytest.approx(right(made))
    assert found["edited_by"](1, "second half") == pytest.approx(right(made[:1]))
    with pytest.raises(IndexError, match="there is no edit 3"):
        found["edited_by"](3, "second half")
    with pytest.raises(IndexError, match="nothing is edited yet"):
        values()["edited_by"](1, "second half")


def test_a_pattern_moves_where_something_before_it_was_changed() -> None:
    assert values(edits=f"zero:{LAST}.2")["pattern_moved"] == 0
    found = values(edits="zero:decoder.0.self_attention.2")
    network, task, question = found.model.network(), found.model.task, found.question
    before, after = (sample(network, task, question, edits=edits).attentions for edits in ([], _made(found)))
    moved = max(np.abs(before[site].pattern - after[site].pattern).max() for site in before)
    assert found["pattern_moved"] == pytest.approx(moved)
    assert moved > 0


def _made(found: ViewValues) -> list:
    return [parse_edit(found.view.edits)]


def test_what_can_be_known_is_named_by_its_place_in_the_answer() -> None:
    assert values()["knowable"] == "y1 y2 y3 y4 y5 y6 y7 y8"
    known = values(mask="recent:4")["known_under"]("recent:4")
    assert values(mask="recent:4")["knowable"].split() == [f"y{place}" for place in range(1, known + 1)]


def test_a_copy_is_counted_place_by_place() -> None:
    # Without edits the model reverses: a palindrome's reverse is its copy.
    assert values(input="1 2 3 4 4 3 2 1")["copied"] == 8
    assert values(input="1 2 3 4 5 6 7 8")["copied"] == 0


def test_a_number_of_the_step_before_is_that_of_the_weights_kept_then() -> None:
    steps = list(values().model.run.snapshots())  # type: ignore[union-attr]
    at = values(step=steps[3])
    assert at["earlier"]("second_half") == values(step=steps[2])["second_half"]
    with pytest.raises(ValueError, match="the first step that was kept"):
        values(step=steps[0])["earlier"]("second_half")


def test_another_length_is_measured_under_the_edits() -> None:
    found = values(edits=f"zero:{LAST}.2")
    model = found.model
    seed = model.config.training.seed + 1
    edits = [parse_edit(f"zero:{LAST}.2")]
    measured = accuracy_by_position(model.network(), model.task, sequences=1024, length=5, seed=seed, edits=edits)
    assert found["right_at"](5, "second half") == pytest.approx(float(measured.mean[-5:].mean()))
    with pytest.raises(ValueError, match="from 1 to 64"):
        found["right_at"](1000, "second half")
    assert torch.is_grad_enabled()


# --- proven from the command line


def test_a_shipped_exercise_is_proven(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["exercise", "check", str(shelf.SHIPPED / "exercises" / "two-heads.md")]) == 0
    assert capsys.readouterr().out.endswith("two-heads.md: it opens; goals that can be measured: 5.\n")


@pytest.mark.parametrize(
    ("text", "code", "said"),
    [
        (TEXT.replace("edits == 1", "edits == 0"), 1, "line 1: it is solved where it begins"),
        (TEXT.replace("edits == 1", "nonsense(edits) == 0"), 1, "line 5: there is no “nonsense” in a view"),
        (TEXT.replace("run=reverse", "run=nope"), 1, "line 1: there is no run “nope”"),
        ("hello", 2, "line 1: the file does not begin"),
    ],
)
def test_what_does_not_hold_of_an_exercise_is_one_line(
    text: str, code: int, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "mine.md"
    path.write_text(text)
    assert main(["exercise", "check", str(path)]) == code
    assert said in capsys.readouterr().err


def test_a_file_that_is_no_text_or_too_large_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.md"
    path.write_bytes(b"---\n\xff\n")
    with pytest.raises(Mistake, match="no UTF-8"):
        load(path)
    path.write_bytes(b" " * 200_001)
    with pytest.raises(Mistake, match="an exercise has at most 200,000"):
        load(path)
