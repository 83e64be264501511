"""`python -m transformer check`: words, JSON, exit codes, and a folder of submissions of which none hurts another."""

import json
import os
from contextlib import nullcontext

import pytest
import torch

from tests.kit.hostile.submissions import FORGING, RIGHT
from transformer.__main__ import main
from transformer.checking import check

WRONG = RIGHT.replace("dim=-1", "dim=1").replace('float("-inf")', "-1e9")
BROKEN = {
    "loop.py": "def attention(q, k, v, mask=None):\n    while True: pass\n",
    "fork.py": "import os\nwhile True: os.fork()\n",
    "exit.py": "import os\nos._exit(0)\n",
    "kill.py": "import os\nos.kill(os.getppid(), 9)\nos.kill(-1, 9)\n",
    "overwrite.py": "import pathlib\nfor path in pathlib.Path(__file__).parent.glob('*.py'): path.write_text('x')\n",
    "[bold]name.py": "def attention(q, k, v:\n",
    "deep/er.py": "import missing\n",
}


def put(folder, files):
    for name, source in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(source)


CASES = [(RIGHT, 0, "right"), (WRONG, 1, "wrong"), ("1 / 0", 2, "not run")]


@pytest.fixture
def one_process(warm, monkeypatch):
    """Commands check one file after the other, in a process that is there already."""
    monkeypatch.setattr(check, "Warm", lambda *_: nullcontext(warm))
    monkeypatch.setattr(check.os, "sched_getaffinity", lambda _: {0}, raising=False)


@pytest.mark.parametrize(("source", "code", "word"), CASES)
def test_the_verdict_and_the_exit_code(source, code, word, tmp_path, capsys, one_process):
    put(tmp_path, {"mine.py": source})
    assert main(["check", f"{tmp_path}/mine.py:attention"]) == code
    said = capsys.readouterr().out
    assert said.splitlines()[0] in (f"mine.py:attention (attention): {word}", f"mine.py:attention: {word}")


def test_json_has_the_stages_as_plain_values(tmp_path, capsys, one_process):
    put(tmp_path, {"mine.py": WRONG})
    assert main(["check", f"{tmp_path}/mine.py:attention", "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert found["verdict"] == "wrong"
    assert found["first"] == "softmax"
    assert found["wrong"][-1] == "Softmax runs over dimension 1, the heads; it should run over the keys, the last."
    stages = {each["name"]: each for each in found["stages"]}
    assert stages["masked"]["reached"]
    assert stages["softmax"]["difference"] > 0.1
    assert stages["softmax"]["expected"] == [2, 3, 5, 5]


def test_the_name_may_be_left_out_where_there_is_one(tmp_path, capsys, one_process):
    put(tmp_path, {"mine.py": RIGHT, "two.py": RIGHT + "\ndef other(): pass\n"})
    assert main(["check", f"{tmp_path}/mine.py"]) == 0
    assert main(["check", f"{tmp_path}/two.py"]) == 0
    said = capsys.readouterr().out
    assert "two.py:attention (attention): right" in said
    assert "Not checked, for the names do not say what it is: other." in said


def test_each_definition_is_judged_whose_kind_its_names_say(tmp_path, capsys, one_process):
    put(tmp_path, {"mine.py": RIGHT + WRONG.replace("attention", "dot_product") + "\nclass LayerNorm: pass\n"})
    assert main(["check", f"{tmp_path}/mine.py"]) == 1
    said = capsys.readouterr().out
    assert said.startswith("mine.py:attention, dot_product (attention): wrong\n  dot_product: Softmax runs over dim")
    assert "  attention: Queries, keys and values: [batch, head, position, d_head].\n" in said
    assert main(["check", f"{tmp_path}/mine.py:dot_product"]) == 1
    broken = "\ndef sine_positions(length, d_model): return missing\n"
    put(
        tmp_path,
        {"part.py": RIGHT + broken + "\nclass LayerNorm: pass\nclass Trainer: pass\ndef turn(x, y, z): pass\n"},
    )
    assert main(["check", f"{tmp_path}/part.py"]) == 0
    said = capsys.readouterr().out
    assert "Not checked, for it could not be run: sine_positions. It raises NameError in line" in said
    assert "Not checked, for the names do not say what it is: LayerNorm, Trainer, turn." in said


@pytest.mark.parametrize(
    ("source", "sentence"),
    [
        (
            "class LayerNorm: pass\nclass Trainer: pass\n",
            "The file defines LayerNorm, Trainer: say which one, as in none",
        ),
        (
            "class Args: pass\ndef turn(x): pass\nclass DecoderBlock: pass\n",
            "say which one, as in none.py:DecoderBlock.",
        ),
        ("class Args: pass\ndef turn(x): pass\n", "say which one, as in none.py:turn"),
        (
            "def attention(q, k, v): 1 / 0\ndef causal_mask(n): 1 / 0\n",
            "None of what the file defines could be run. attention: It raises ZeroDivisionError in line 1",
        ),
    ],
)
def test_a_file_of_which_nothing_is_checked_says_why(source, sentence, tmp_path, capsys, one_process):
    put(tmp_path, {"none.py": source})
    assert main(["check", f"{tmp_path}/none.py"]) == 2
    assert sentence in capsys.readouterr().out


def test_numpy_is_handed_arrays(tmp_path, capsys, one_process):
    softmax = "e = np.exp(s - s.max(-1, keepdims=True)); return e / e.sum(-1, keepdims=True) @ V"
    scores = "s = Q @ K.swapaxes(-1, -2) / np.sqrt(Q.shape[-1])"
    put(tmp_path, {"mine.py": f"import numpy as np\ndef attention(Q, K, V):\n    {scores}\n    {softmax}\n"})
    assert main(["check", f"{tmp_path}/mine.py"]) == 0


def test_the_kind_may_be_said_and_is_found_by_trying_where_it_is_right(tmp_path, capsys, one_process):
    made = "def f(a):\n    import torch\n    return torch.ones(a, a)"
    put(tmp_path, {"mine.py": f"{made}.tril()\n", "other.py": f"{made}\n"})
    assert main(["check", f"{tmp_path}/mine.py:f"]) == 0
    assert "Its name does not say what it is: it does what a check of mask wants." in capsys.readouterr().out
    assert main(["check", f"{tmp_path}/other.py:f"]) == 2
    assert "say it with --kind" in capsys.readouterr().out
    assert main(["check", f"{tmp_path}/other.py:f", "--kind", "mask"]) == 1


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ([], "say what to check: FILE:NAME, or --many FOLDER"),
        (["nowhere.py:attention"], "nowhere.py cannot be read: No such file or directory"),
        (["{here}/mine.py:attention", "--kind", "poem"], "the kind must be one of attention, module, "),
        (["{here}/mine.py:attention", "--seconds", "0"], "seconds must be between 0.1 and 3600, not 0"),
        (["--many", "{here}/nothing"], "there is no folder "),
        (["--many", "{here}/empty"], "there is no .py file below "),
        (["{here}/mine.ipynb"], "is a notebook: save its code as a .py file first"),
        (["{here}/large.py:attention"], "is larger than 1 MB"),
    ],
)
def test_bad_input_is_one_sentence(arguments, sentence, tmp_path, capsys, one_process):
    put(tmp_path, {"mine.py": RIGHT, "mine.ipynb": "{}", "large.py": "#" * (2**20 + 1)})
    (tmp_path / "empty").mkdir()
    assert main(["check", *(each.format(here=tmp_path) for each in arguments)]) == 2
    said = capsys.readouterr()
    assert sentence in said.err
    assert said.err.count("\n") == 1


FORGED = {f"forged-{name}.py": FORGING[name] for name in ("null", "two-gigabytes")}
FEW = (*FORGED, "exit.py")


@pytest.mark.parametrize("bad", [FEW, pytest.param((*BROKEN, *FORGED), marks=pytest.mark.nightly)], ids=("few", "all"))
def test_no_submission_of_a_folder_hurts_another(bad, tmp_path, capsys):
    right = {f"right-{number}.py": RIGHT for number in range(2)}
    put(tmp_path, {**right, **{name: (BROKEN | FORGED)[name] for name in bad}, "wrong.py": WRONG})
    os.mkfifo(tmp_path / "pipe.py")
    (tmp_path / "device.py").symlink_to("/dev/zero")
    bad = (*bad, "pipe.py", "device.py")
    code = main(["check", "--many", str(tmp_path), "--name", "attention", "--json", "--seconds", "5"])
    found = {each["file"]: each for each in map(json.loads, capsys.readouterr().out.splitlines())}
    assert code == 1
    assert found.keys() == {*right, *bad, "wrong.py"}
    assert {each["verdict"] for name, each in found.items() if name in right} == {"right"}
    assert {each["verdict"] for name, each in found.items() if name in bad} == {"not run"}
    for name in bad:
        assert found[name]["not_run"].isprintable()
        assert 10 < len(found[name]["not_run"]) < 400
        assert "The check itself stopped" not in found[name]["not_run"]
    assert found["wrong.py"]["verdict"] == "wrong"
    assert (tmp_path / "right-0.py").read_text() == RIGHT


def test_a_folder_is_a_table(tmp_path, capsys, one_process):
    put(tmp_path, {"a.py": RIGHT, "b.py": WRONG, "[red]c.py": "def attention(q, k, v:\n"})
    assert main(["check", "--many", str(tmp_path), "--name", "attention"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines[:-1]] == ["file", "[red]c.py", "a.py", "b.py"]
    assert lines[-1] == "1 right, 1 wrong, 1 not run"
    assert "Softmax runs over" in lines[3]


def test_the_check_computes_on_one_thread_and_leaves_as_many_as_there_were():
    before = torch.get_num_threads()
    with check.one_thread(), check.one_thread():
        assert torch.get_num_threads() == 1
    assert torch.get_num_threads() == before
