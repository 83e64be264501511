"""The process that checks for a server: one answer a line, whatever comes; told to end, it leaves nothing running."""

import dataclasses
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import transformer
from tests.kit.hostile.submissions import FORGING, RIGHT
from tests.kit.waiting import PATIENCE, wait_for
from transformer.checking.check import check_source
from transformer.checking.isolation.limits import PROMISES, Limits
from transformer.checking.serving import FILE, answered
from transformer.mistakes import MISTAKES

WRONG = RIGHT.replace("dim=-1", "dim=1").replace('float("-inf")', "-1e9")
START = (
    "import sys; sys.path.insert(0, sys.argv[1])\n"
    "from transformer.checking.serving import main\n"
    "from transformer.checking.isolation import process\n"
    "process.ENVIRONMENT += ('TMPDIR',)\n"
    "sys.path.pop(0); main()"
)


def job(code: str, **other):
    return {
        "code": code,
        "name": "attention",
        "kind": "",
        "limits": dataclasses.asdict(Limits(seconds=PATIENCE)),
        "required": [],
    } | other


@pytest.mark.parametrize("code", [RIGHT, WRONG, "1 / 0\n"])
def test_the_answer_is_the_library_s_and_the_words_of_the_gallery(code, warm):
    said = json.loads(json.dumps(answered(job(code), warm)))
    found = check_source(code.encode(), FILE, "attention", limits=Limits(seconds=PATIENCE), warm=warm).values()
    for values in (said["verdict"], found):
        values.pop("seconds")
    assert said["verdict"] == json.loads(json.dumps(found))
    if code == WRONG:
        mistake = MISTAKES["softmax-over-heads"]
        assert said["verdict"]["mistake"] == mistake.name
        assert said["gallery"]["mend"] == mistake.mend
        assert said["gallery"]["difference"] == list(mistake.difference())
    else:
        assert said["gallery"] is None


def test_what_cannot_be_done_is_a_sentence(warm, monkeypatch):
    half_a_character = answered(job("x = '\ud800'"), warm)["verdict"]["not_run"]
    assert half_a_character.startswith("The file is no UTF-8 text: byte ")
    assert "cannot isolate" in answered(job(RIGHT, required=[*PROMISES, "the moon"]), warm)["problem"]
    assert answered(job(RIGHT, kind="poem"), warm)["problem"].startswith("the kind must be one of attention, ")
    assert answered(job("#" * 6 * 2**20), warm) == {"problem": "mine.py is not checked: it is larger than 1 MB"}
    assert answered(job(FORGING["null"]), warm)["verdict"]["not_run"].startswith("The code’s process answered what no ")
    monkeypatch.setattr("transformer.checking.serving.check_source", lambda *_, **__: 1 / 0)
    assert answered(job(RIGHT), warm) == {"problem": "the check itself stopped with an error: division by zero"}


@pytest.mark.nightly
def test_it_answers_by_lines_and_ends_when_told(tmp_path):
    root = str(Path(transformer.__file__).parents[1])
    process = subprocess.Popen(
        [sys.executable, "-P", "-c", START, root],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=os.environ | {"TMPDIR": str(tmp_path)},
    )
    with process:
        for code, verdict in ((RIGHT, "right"), ("print('{}')\n" + WRONG, "wrong")):
            process.stdin.write(json.dumps(job(code)).encode() + b"\n")
            process.stdin.flush()
            assert json.loads(process.stdout.readline())["verdict"]["verdict"] == verdict
        process.stdin.write(json.dumps(job("open('written', 'w').close()\nwhile True: pass\n")).encode() + b"\n")
        process.stdin.flush()
        wait_for("the loop has begun", lambda: list(tmp_path.rglob("written")))
        process.terminate()
        assert process.stdout.readline() == b""
        assert process.wait(PATIENCE) == 0
        process.stdin.close()
