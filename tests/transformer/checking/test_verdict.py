"""A verdict: what is said of it, and that it comes through JSON as it was, without PyTorch."""

import dataclasses
import json
import math
import subprocess
import sys

from transformer.checking.verdict import NOT_RUN, RIGHT, UNDECIDED, WRONG, Stage, Verdict, of_many

FOUND = Verdict(
    "mine.py",
    "attention",
    "attention",
    mistake="scale-missing",
    wrong=("The scale is missing.",),
    conventions=("Batch first.",),
    tried=("two sequences", "one token"),
    stages=(Stage("scores", 0.0, (2, 3), (2, 3), True), Stage("merged", None, None, (2, 6), False)),
    first="merged",
    isolated=("time",),
    seconds=1.5,
)


def through_json(verdict):
    return Verdict.read(json.loads(json.dumps(verdict.values(), allow_nan=False)))


def test_it_comes_through_json_as_it_was():
    assert through_json(FOUND) == FOUND
    assert through_json(Verdict("mine.py", not_run="It raises X.")) == Verdict("mine.py", not_run="It raises X.")


def test_a_difference_without_a_number_is_none():
    far = dataclasses.replace(FOUND.stages[0], difference=math.inf)
    (stage,) = through_json(dataclasses.replace(FOUND, stages=(far,))).stages
    assert stage == dataclasses.replace(far, difference=None)


def test_its_code_and_its_word():
    verdicts = [
        Verdict("a.py"),
        FOUND,
        Verdict("a.py", not_run="No.", wrong=("W.",)),
        Verdict("a.py", undecided="Why."),
    ]
    assert [each.code for each in verdicts] == [RIGHT, WRONG, NOT_RUN, UNDECIDED]
    assert [each.word for each in verdicts] == ["right", "wrong", "not run", "not decided"]
    assert verdicts[3].text() == "a.py: not decided\n  Why."
    assert dataclasses.replace(FOUND, undecided="Why.").code == WRONG


def test_a_folder_is_wrong_before_it_is_not_decided_before_it_is_not_run():
    order = {WRONG: Verdict("a.py", wrong=("W.",)), UNDECIDED: Verdict("a.py", undecided="Why.")}
    order |= {NOT_RUN: Verdict("a.py", not_run="No."), RIGHT: Verdict("a.py")}
    for place, code in enumerate(order):
        assert of_many([*[*order.values()][:place:-1], order[code]]) == code


def test_it_is_read_without_pytorch():
    code = "import sys, transformer.checking.verdict; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
