"""Check mine: the page says what the library says, of the code that was asked about, and to its own session alone."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
from streamlit.testing.v1 import AppTest

from dashboard.app_pages.learn.check import desk as desks
from dashboard.app_pages.learn.check import running, words
from dashboard.app_pages.learn.check.desk import Desk, text_of
from dashboard.app_pages.learn.check.examples import EXAMPLES
from dashboard.app_pages.learn.check.outline import outline
from dashboard.app_pages.learn.check.result import LEAST, table
from dashboard.app_pages.learn.check.running import Asked, Check, CheckError
from dashboard.app_pages.learn.check.verdict import Explained, Known
from dashboard.models.background import Lane
from dashboard.server import roles
from dashboard.server.roles import VIEWER, Visitor
from dashboard.view import permission
from dashboard.view.link import View
from tests.kit import claims
from tests.kit.claims.laws import mistakes  # noqa: F401
from tests.kit.hostile.submissions import FORGING, body
from tests.kit.numbers.cells import Cells
from tests.kit.numbers.rounding import tolerance
from tests.kit.pages import State, link, open_page, shown
from tests.kit.waiting import PATIENCE, wait_for
from transformer.checking import signatures
from transformer.checking.bench import Described, Parameter
from transformer.checking.check import JUDGES, check_source
from transformer.checking.faults import Refused
from transformer.checking.isolation.limits import PROMISES, Limits
from transformer.checking.isolation.process import Warm
from transformer.checking.verdict import Stage
from transformer.foundation.claims import Claim
from transformer.foundation.program import program
from transformer.mistakes import MISTAKES, STAGES, usual_attention

GUEST = Visitor("guest", "abcdef")
RIGHT = """
import math

def helper(x):
    return x

def attention(q, k, v, mask=None):
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    if mask is not None:
        scores = scores.masked_fill(mask, float("-inf"))
    return scores.softmax(dim=-1) @ v
"""
LOOP = "def attention(q, k, v, mask=None):\n    while True: pass\n"
CODES = {
    "softmax-over-heads": EXAMPLES["softmax-over-heads"].code(),
    "own": RIGHT,
    "not divided": RIGHT.replace(" / math.sqrt(q.shape[-1])", ""),
    "another shape": RIGHT.replace("@ v", "@ v[..., :2]"),
    "it raises": RIGHT.replace("return scores", "raise ValueError('*swordfish* [a](b)')"),
    "a mask": "import torch\n\ndef causal_mask(n):\n    return torch.ones(n, n).tril(-1)\n",
    "a name that says nothing": "def f(a):\n    return a\n",
    "a forged answer": FORGING["text"],
    "an expanded result": body("import torch", "return torch.zeros(1).expand(10**9)"),
    "an interrupt": body("raise KeyboardInterrupt('*a* [b](c)')"),
}


@pytest.fixture(scope="module", autouse=True)
def patient() -> Iterator[None]:
    """A busy machine takes its time; and no process is left behind."""
    before, running.LIMITS = running.LIMITS, Limits(seconds=PATIENCE)
    yield
    running.LIMITS = before
    running.close()


@pytest.fixture(scope="module")
def warm() -> Iterator[Warm]:
    with Warm() as warm:
        yield warm


def desk(app: AppTest) -> Desk:
    found: Desk = app.session_state["check_desk"]
    return found


def typed(code: str, app: AppTest | None = None) -> AppTest:
    app = app or open_page("check", run="reverse")
    app.text_area(key=desks.FIELD).set_value(code).run()
    assert not app.exception
    return app


def pressed(app: AppTest) -> AppTest:
    app.button(key="check-begin").click().run()
    assert not app.exception
    return app


def ended(app: AppTest) -> AppTest:
    """The page once the check is over."""
    check = desk(app).check
    assert check is not None
    wait_for("the check is over", lambda: check.over)
    app.run()
    assert not app.exception
    return app


def checked(code: str, app: AppTest | None = None) -> AppTest:
    return ended(pressed(typed(code, app)))


def said(app: AppTest) -> str:
    """All words of a page, as they are read."""
    kinds = (app.title, app.markdown, app.caption, app.error, app.warning, app.info, app.code)
    return shown("\n".join(each.value for kind in kinds for each in kind))


def rows(app: AppTest) -> dict[str, list[str]]:
    """The table of stages, its rows by their label."""
    bodies = [each.proto.body for each in app.get("html") if "<table" in each.proto.body]
    return {row[0]: row[1:] for row in Cells(bodies[0]).rows[2:]} if bodies else {}


# --- what the page says


@pytest.mark.daily(2)
@pytest.mark.parametrize("case", CODES)
def test_the_page_says_what_the_library_says(case: str, warm: Warm) -> None:
    code = CODES[case]
    app = checked(code)
    name = outline(code).likeliest
    expected = check_source(code.encode(), "mine.py", name, limits=Limits(seconds=PATIENCE), warm=warm)
    text = said(app)
    found = desk(app).check
    assert found is not None
    assert found.verdict is not None
    assert found.verdict.word == expected.word
    assert (found.verdict.name, found.verdict.kind) == (expected.name, expected.kind)
    for sentence in (*expected.wrong, *expected.conventions, *expected.notes, *expected.tried):
        if found.verdict.known is None or sentence != expected.wrong[0]:
            assert sentence in text
    if expected.not_run:
        assert words.on_page(expected.not_run) in text
        assert "--kind" not in text
    if expected.mistake:
        mistake = MISTAKES[expected.mistake]
        for sentence in (mistake.title, mistake.hidden, mistake.exposes, mistake.mend):
            assert sentence in text
        assert "\n".join(mistake.difference()) in text
    shown_rows = rows(app)
    assert list(shown_rows) == [stage.name for stage in expected.stages]
    for stage in expected.stages:
        mark, difference, own, other = shown_rows[stage.name]
        assert ("differs first" in mark or "differ first" in mark) == (stage.name == expected.first)
        assert own == ("" if stage.shape is None else str(list(stage.shape)))
        assert other == str(list(stage.expected))
        if stage.difference:
            assert float(difference) == pytest.approx(stage.difference, rel=0.006, abs=tolerance())
    assert app.title[0].value.startswith(
        {"right": "Right ", "wrong": "Wrong: ", "not run": words.NOT_RUN}[expected.word]
    )


@pytest.mark.daily(2)
@pytest.mark.parametrize(
    ("case", "headline", "first"),
    [
        ("right", "Right in all that was tried.", None),
        ("softmax-over-heads", "Wrong: softmax runs over dimension 1, the heads.", "softmax"),
        ("masked-after-softmax", "Wrong: the mask comes after the softmax.", "masked"),
        ("heads-merged-without-transpose", "Wrong: heads are merged without the transpose.", "merged"),
    ],
)
def test_an_example_is_one_click_away_and_its_first_stage_is_framed(
    case: str, headline: str, first: str | None
) -> None:
    app = open_page("check", run="reverse")
    app.get_by_key("control-check_example").set_value(case).run()
    assert link(app) == {"run": "reverse", "check_example": case}
    assert app.text_area(key=desks.FIELD).value == EXAMPLES[case].code()
    app = ended(pressed(app))
    assert app.title[0].value == headline
    assert [name for name, cells in rows(app).items() if "first" in cells[0]] == ([first] if first else [])
    (body,) = [each.proto.body for each in app.get("html") if "<table" in each.proto.body]
    assert body.count("<tr style=") == (first is not None)
    assert f"min-width:{LEAST}px" in body
    if not first:
        assert "every stage that the code has agrees with the reference" in said(app)
    else:
        assert f"The first stage that differs from the reference is **{first}**" in said(app)
    assert f"held to {PATIENCE:g} s of computing, 2 GB of memory" in said(app)


def test_what_was_typed_stays_when_one_goes_to_another_page_and_back() -> None:
    app = typed(RIGHT)
    again = open_page("check", {"check_desk": desk(app)}, run="reverse")
    assert again.text_area(key=desks.FIELD).value == RIGHT


def test_after_an_edit_it_says_that_it_is_about_the_code_before() -> None:
    app = checked(CODES["softmax-over-heads"])
    assert app.title[0].value.startswith("Wrong: ")
    app = typed(RIGHT, app)
    assert app.title[0].value == words.CHANGED
    assert "about the code before your last change" in said(app)
    assert rows(app)
    app = ended(pressed(app))
    assert app.title[0].value == "Right in all that was tried."
    assert "about the code before" not in said(app)
    app.selectbox(key="control-check_kind").set_value("module").run()
    assert app.title[0].value == words.CHANGED
    assert link(app) == {"run": "reverse", "check_kind": "module"}


def test_the_name_and_the_kind_can_be_picked() -> None:
    app = typed(RIGHT)
    names = app.selectbox(key="check-name")
    assert (list(names.options), names.value) == (["helper", "attention"], "attention")
    names.set_value("helper").run()
    app = ended(pressed(app))
    assert "pick it under “What it is”" in said(app)
    app = typed("def f(a):\n    import torch\n    return torch.ones(a, a).tril()\n", app)
    app.selectbox(key="control-check_kind").set_value("mask").run()
    app = ended(pressed(app))
    assert app.title[0].value.startswith("Right")
    assert "“f” was checked as: mask." in said(app)


def test_a_button_pressed_in_the_midst_of_typing_takes_what_was_typed_and_tells_nobody_else() -> None:
    secret = RIGHT.replace("helper", "swordfish")
    app = open_page("check", run="reverse")
    app.text_area(key=desks.FIELD).set_value(secret)
    app = ended(pressed(app))
    check = desk(app).check
    assert check is not None
    assert check.asked == Asked(secret, "attention")
    assert link(app) == {"run": "reverse"}
    other = open_page("check", run="reverse")
    assert desk(other) is not desk(app)
    assert "swordfish" not in said(other)
    assert other.text_area(key=desks.FIELD).value == ""
    assert other.title[0].value == words.ASK
    assert words.PRIVATE in said(other)


# --- bad input


@pytest.mark.daily(3)
@pytest.mark.parametrize(
    ("code", "sentence"),
    [
        ("", "There is no code yet: paste some, or start from an example."),
        ("   \n", "There is no code yet: paste some, or start from an example."),
        ("x = 1\n", "There is no function and no class in this code."),
        ("def attention(q, k, v:\n", "This is no valid Python: line 1, "),
        ("def f(): pass\n\0", "This is no "),
        ("a" + ".b" * 40_000, "This is no Python that can be read."),
        ("#" * (desks.LONGEST + 1), "The code has 100,001 letters. At most 100,000 are checked."),
    ],
)
def test_what_cannot_be_checked_is_one_sentence_and_nothing_is_run(code: str, sentence: str) -> None:
    app = open_page("check", run="reverse")
    app.text_area(key=desks.FIELD).set_value(code)
    app = pressed(app)
    assert desk(app).check is None
    assert [shown(each.value).startswith(sentence) for each in app.warning] == [True]
    assert app.title[0].value == words.ASK
    assert link(app) == {"run": "reverse"}


@pytest.mark.parametrize(
    ("content", "text", "problem"),
    [
        (RIGHT.encode(), RIGHT, ""),
        (b"\xef\xbb\xbfx = 1\r\ny = 2\r", "x = 1\ny = 2\n", ""),
        ("# Schlüssel".encode("latin-1"), "", "The file is no UTF-8 text: byte 7 cannot be read."),
        (b"\x89PNG\r\n\x1a\n", "", "The file is no UTF-8 text: byte 1 cannot be read."),
        (b"x\0y", "", "The file is no text: it holds null characters."),
    ],
)
def test_a_file_is_its_text_or_one_sentence(content: bytes, text: str, problem: str) -> None:
    assert text_of(content) == (text, problem)


def test_a_file_comes_into_the_field() -> None:
    app = open_page("check", run="reverse", check_example="right")
    app.file_uploader[0].set_value(("mine.py", RIGHT.encode(), "text/x-python")).run()
    assert not app.exception
    assert app.text_area(key=desks.FIELD).value == RIGHT
    assert link(app) == {"run": "reverse"}
    app.file_uploader[0].set_value(("mine.py", b"\xff", "text/x-python")).run()
    assert ["byte 1 cannot be read" in each.value for each in app.warning] == [True]
    assert app.text_area(key=desks.FIELD).value == RIGHT
    app.file_uploader[0].set_value(("mine.py", b"#" * (desks.LONGEST + 1), "text/x-python")).run()
    assert ["At most 100,000 are checked" in each.value for each in app.warning] == [True]
    assert app.text_area(key=desks.FIELD).value == RIGHT


# --- bounds


class Answers:
    """Judges that answer when they are told to."""

    def __init__(self) -> None:
        self.told_to_end = False
        self.free = False

    def ask(self, job: dict[str, Any]) -> dict[str, Any]:
        wait_for("the judge may answer", lambda: self.free or self.told_to_end)
        if self.told_to_end:
            raise ValueError("it has ended")
        return {"problem": "nothing was checked"}

    def end(self) -> None:
        self.told_to_end = True

    def close(self) -> None:
        self.told_to_end = False


@pytest.fixture
def judge(monkeypatch: pytest.MonkeyPatch) -> Answers:
    judge = Answers()
    monkeypatch.setattr(running, "CHECKS", Lane(1))
    monkeypatch.setattr(running, "_spare", [judge])
    monkeypatch.setattr(running, "_line", [])
    monkeypatch.setattr(running, "Judge", lambda: judge)
    return judge


def test_an_endless_loop_is_ended_and_said_in_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "LIMITS", Limits(seconds=1))
    app = checked(LOOP)
    assert app.title[0].value == words.NOT_RUN
    (error,) = app.error
    assert shown(error.value) == "The code did not return within 1 s: look for a loop that never ends."


@pytest.mark.nightly
def test_a_check_can_be_stopped_and_the_next_one_begins() -> None:
    app = pressed(typed(LOOP))
    check = desk(app).check
    assert check is not None
    assert app.title[0].value == words.UNDER_WAY
    assert not [each for each in app.button if each.key == "check-begin"]
    app.button(key="check-stop").click().run()
    assert check.over
    assert check.verdict is None
    assert "The check was stopped." in said(app)
    wait_for("the process of the check has ended", check._future.done)
    assert all(judge._process is None or judge._process.poll() is None for judge in running._spare)
    app = checked(RIGHT, app)
    assert app.title[0].value == "Right in all that was tried."


def test_a_second_press_begins_no_second_check(judge: Answers, monkeypatch: pytest.MonkeyPatch) -> None:
    mine = Desk(own=RIGHT)
    monkeypatch.setattr("streamlit.session_state", State(settings=View(), visitor=permission.OWNER))
    desks._begin(mine)
    first = mine.check
    assert first is not None
    desks._begin(mine)
    assert mine.check is first
    assert running._line == [first]
    first.stop()
    desks._begin(mine)
    assert mine.check is not first
    assert mine.check is not None
    mine.check.stop()
    wait_for("nobody waits", lambda: list(running._line), lambda line: not line)


def test_others_wait_for_their_turn_and_are_told(judge: Answers) -> None:
    first, second, third = (Check(Asked(RIGHT, "attention"), guarded=False) for _ in range(3))
    wait_for("the first check has begun", lambda: first.begun)
    assert [each.ahead for each in (first, second, third)] == [0, 1, 2]
    assert words.waits(1) == "Your check waits for its turn: 1 other comes first."
    assert words.waits(2) == "Your check waits for its turn: 2 others come first."
    second.stop()
    assert second.over
    assert third.ahead == 1
    judge.free = True
    wait_for("the third check is over", lambda: third.over)
    assert first.problem == third.problem == "nothing was checked"
    assert third.verdict is None
    assert running._line == []


def test_no_more_wait_than_are_let_in(judge: Answers, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "MOST_WAITING", 1)
    monkeypatch.setattr(running, "AT_ONCE", 1)
    checks = [Check(Asked(RIGHT, "attention"), guarded=False) for _ in range(2)]
    with pytest.raises(CheckError, match="1 checks wait on this server already"):
        Check(Asked(RIGHT, "attention"), guarded=False)
    for each in checks:
        each.stop()
    wait_for("nobody waits", lambda: list(running._line), lambda line: not line)


def test_what_takes_too_long_is_broken_off(judge: Answers, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "LONGEST", 0.1)
    check = Check(Asked(RIGHT, "attention"), guarded=False)
    wait_for("the check is over", lambda: check.over)
    assert check.problem == "The check was broken off: it took longer than 0.1 s"


# --- who may


def test_where_code_is_run(monkeypatch: pytest.MonkeyPatch) -> None:
    def why(someone: Visitor, alone: bool, here: bool, said: str) -> str:
        monkeypatch.setattr("streamlit.session_state", State(visitor=someone))
        monkeypatch.setattr(roles, "is_alone", lambda: alone)
        monkeypatch.setattr(permission, "_is_from_here", lambda: here)
        monkeypatch.setenv(roles.RUN_CODE, said)
        return permission.to_run_code()

    for alone in (True, False):
        for here in (True, False):
            assert (why(permission.OWNER, alone, here, "") == "") == (alone and here)
            assert why(permission.OWNER, alone, here, "1") == ""
            assert why(GUEST, alone, here, "") == permission.NO_CODE
            assert why(GUEST, alone, here, "yes") == permission.NO_CODE
            assert why(GUEST, alone, here, "1") == ""
            assert why(VIEWER, alone, here, "1") == permission.LOOKING


@pytest.mark.daily(2)
@pytest.mark.parametrize(("someone", "said"), [(VIEWER, "1"), (GUEST, ""), (permission.OWNER, "elsewhere")])
def test_where_no_code_is_run_the_page_says_why_and_what_does_the_same(
    someone: Visitor, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(roles.RUN_CODE, said)
    if said == "elsewhere":
        monkeypatch.setattr(roles, "is_alone", lambda: False)
    app = open_page("check", {"visitor": someone}, run="reverse")
    assert app.title[0].value == words.OFF
    assert not app.text_area
    assert not [each for each in app.button if each.key == "check-begin"]
    assert [each.value for each in app.code if each.value.startswith(f"{program()} check ")]
    why = permission.LOOKING if someone is VIEWER else permission.NO_CODE
    assert why in [shown(each.value) for each in app.info]


@pytest.mark.parametrize("someone", [VIEWER, GUEST], ids=lambda someone: someone.role)
def test_a_click_that_is_sent_all_the_same_runs_nothing(someone: Visitor, monkeypatch: pytest.MonkeyPatch) -> None:
    """The page was drawn for somebody who may; the click comes from somebody who may not."""
    monkeypatch.setattr(Check, "__init__", lambda *_, **__: pytest.fail("it was run"))
    app = typed(RIGHT)
    app.session_state["visitor"] = someone
    app = pressed(app)
    assert desk(app).check is None
    assert app.title[0].value == words.OFF


def test_a_guest_s_code_is_run_only_where_all_of_it_is_isolated(monkeypatch: pytest.MonkeyPatch) -> None:
    jobs: list[dict[str, Any]] = []

    def ask(self: running.Judge, job: dict[str, Any]) -> dict[str, Any]:
        jobs.append(job)
        return {"problem": "this machine cannot isolate what the code does with files"}

    monkeypatch.setattr(running.Judge, "ask", ask)
    monkeypatch.setenv(roles.RUN_CODE, "1")
    monkeypatch.setattr(running, "can_read", lambda path: False)
    app = ended(pressed(typed(RIGHT, open_page("check", {"visitor": GUEST}, run="reverse"))))
    assert [shown(each.value) for each in app.error] == ["This machine cannot isolate what the code does with files."]
    assert app.title[0].value == words.NO_VERDICT
    assert jobs[0]["required"] == PROMISES
    ended(pressed(typed(RIGHT)))
    assert jobs[1]["required"] == ()
    monkeypatch.setattr(running, "can_read", lambda path: True)
    app = pressed(typed(RIGHT, open_page("check", {"visitor": GUEST}, run="reverse")))
    assert desk(app).check is None
    assert ["so visitors’ code is not run here" in shown(each.value).replace("'", "’") for each in app.warning] == [
        True
    ]


def test_a_guest_sends_no_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(roles.RUN_CODE, "1")
    app = open_page("check", {"visitor": GUEST}, run="reverse")
    assert app.file_uploader[0].disabled
    app.file_uploader[0].proto.disabled = False
    app.file_uploader[0].set_value(("mine.py", RIGHT.encode(), "text/x-python")).run()
    assert app.text_area(key=desks.FIELD).value == ""


# --- nobody else


def test_what_is_brought_along_stands_in_the_part_of_which_no_document_is_made() -> None:
    app = checked(RIGHT.replace("return scores", "raise ValueError('swordfish')"))
    (private,) = [block for block in blocks(app.main) if "private" in (getattr(block.proto, "id", "") or "")]
    inside = {id(each) for each in elements(private)}
    for each in elements(app.main):
        if "swordfish" in str(getattr(each, "value", "")):
            assert id(each) in inside


def blocks(block: Any) -> Iterator[Any]:
    for child in getattr(block, "children", {}).values():
        yield child
        yield from blocks(child)


def elements(block: Any) -> Iterator[Any]:
    return (each for each in blocks(block) if not hasattr(each, "children"))


# --- parts


def test_what_is_said_covers_what_the_library_has() -> None:
    assert tuple(words.KINDS) == tuple(JUDGES) == signatures.KINDS
    assert tuple(words.STAGES) == STAGES
    assert words.SAYS in str(refused())


def refused() -> Exception:
    with pytest.raises(Refused) as raised:
        signatures.guess(Described("f", False, (Parameter("a", False),)))
    return raised.value


@pytest.mark.parametrize("name", [name for name in EXAMPLES if name != "heads-merged-without-transpose"])
def test_an_example_computes_what_the_gallery_does(name: str) -> None:
    bound: dict[str, Any] = {}
    exec(EXAMPLES[name].code(), bound)
    query, key, value = torch.randn(3, 2, 3, 5, 4).unbind()
    mask = torch.ones(5, 5, dtype=torch.bool).tril()
    expected = (usual_attention if name == "right" else MISTAKES[name].wrong)(query, key, value, mask)
    for found, wanted in zip(bound["attention"](query, key, value, mask), expected, strict=True):
        torch.testing.assert_close(found, wanted)
    assert "trace" not in EXAMPLES[name].code().lower()
    assert EXAMPLES[name].title() == ("Right" if name == "right" else MISTAKES[name].title)


def test_the_example_of_a_module_computes_what_the_gallery_does() -> None:
    bound: dict[str, Any] = {}
    exec(EXAMPLES["heads-merged-without-transpose"].code(), bound)
    module = bound["MultiHeadAttention"](8, 2)
    x, mask = torch.randn(2, 5, 8), torch.ones(5, 5, dtype=torch.bool).tril()
    torch.testing.assert_close(module(x, mask), MISTAKES["heads-merged-without-transpose"].wrong(module, x, mask))


@pytest.mark.parametrize(
    ("code", "names", "likeliest"),
    [
        ("def a(): pass\nclass B: pass\nc = lambda: 0\nd = 1\n", ("a", "B", "c"), "c"),
        (
            "def attention(): pass\ndef test_it(): pass\ndef main(): pass\n",
            ("attention", "test_it", "main"),
            "attention",
        ),
        ("def main(): pass\n", ("main",), "main"),
        ("def f(): pass\ndef f(x): pass\nif x:\n    def g(): pass\n", ("f",), "f"),
        ("", (), ""),
    ],
)
def test_names_are_found_without_running(code: str, names: tuple[str, ...], likeliest: str) -> None:
    assert outline(code).names == names
    assert outline(code).likeliest == likeliest


def verdict(**other: Any) -> Explained:
    return Explained("mine.py", **{"wrong": ("Softmax is wrong.",), **other})


def test_headlines() -> None:
    known = Known("The mask is transposed", "", "", "Turn it.", "", ())
    assert words.headline(verdict()) == "Wrong: softmax is wrong."
    assert words.headline(verdict(known=known)) == "Wrong: the mask is transposed."
    assert words.headline(verdict(wrong=())) == "Right in all that was tried."
    assert words.headline(verdict(not_run="It raises X.")) == words.NOT_RUN
    assert words.headline(verdict(wrong=("NaN comes out.",))) == "Wrong: NaN comes out."
    assert words.wrong(verdict(known=known)) == []


def test_the_headline_is_true_of_every_verdict(heard: list[Claim]) -> None:
    known = Known("Masked with 0; it should be −∞", "", "", "", "", ())
    sentences = ("Softmax is wrong.", "NaN comes out.", "Masked with 0 before the softmax.")
    for wrong, undecided, not_run, named in itertools.product(
        ((), *itertools.permutations(sentences, 2)), ("", "No mask was compared."), ("", "It raises X."), (None, known)
    ):
        found = verdict(wrong=wrong, undecided=undecided, not_run=not_run, known=named if wrong else None)
        words.headline(found)
        claims.judge(found, heard[-1])
    assert all(law.met for law in claims.LAWS[heard[-1].name])


def test_what_it_was_held_to_and_what_not() -> None:
    everything = words.held(verdict(isolated=PROMISES, seconds=1.26))
    assert "Not isolated" not in everything
    assert everything.endswith("The check took 1.3 s.")
    some = words.held(verdict(isolated=("time", "output", "processes")))
    assert f"held to {PATIENCE:g} s of computing, 1 MB of printed text, no other process." in some
    assert "Not isolated on this machine: memory, network and files." in some
    assert "Not isolated on this machine: files." in words.held(verdict(isolated=PROMISES[:-1]))


def stage(name: str, difference: float | None, reached: bool, shape: tuple[int, ...] | None = (2, 3)) -> Stage:
    return Stage(name, difference, shape, (2, 3), reached)


def test_the_rows_of_the_table() -> None:
    found = verdict(
        stages=(
            stage("scores", 0.5, False),
            stage("scaled", 1e-8, True),
            stage("masked", 0.25, False),
            stage("softmax", 0.5, False),
            stage("values", None, False, None),
        ),
        first="masked",
    )
    labels, blocks = table(found)
    assert [(label.text, label.chosen) for label in labels] == [(s.name, s.name == "masked") for s in found.stages]
    marks, differences, own, _ = ([text for (text,) in block.texts] for block in blocks)
    assert marks == ["– no such step", "✓ same", "✕ differs first", "✕ differs", "✕ differs"]
    assert differences == ["0.5", "1e-08", "0.25", "0.5", ""]
    assert own == ["[2, 3]"] * 4 + [""]
    np.testing.assert_array_equal(blocks[1].shades[:, 0], [1.0, np.nan, 0.5, 1.0, np.nan])
    split = verdict(stages=(stage("split", 0.0, True), stage("scores", 2.0, False)), first="split")
    assert words.mark(split, split.stages[0]) == "✕ axes differ first"
    assert words.amount(stage("x", None, False)) == "no number"
    assert "The largest difference is 0.25." in words.stages(found)
