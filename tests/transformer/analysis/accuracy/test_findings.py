"""What a run keeps of itself equals what would be found out anew, and needs no PyTorch to be read."""

import subprocess
import sys

import numpy as np
import pytest

from tests.kit.numbers.leaves import leaves
from tests.kit.waiting import PATIENCE
from transformer.analysis.accuracy.by_position import accuracy_by_position
from transformer.analysis.accuracy.result import Accuracy
from transformer.analysis.findings import Example, blocks
from transformer.analysis.heads.survey import survey
from transformer.analysis.sample import sample, say
from transformer.checkpoints import load
from transformer.training.listing import list_runs
from transformer.training.runs import DEFAULT_ROOT

RUNS = {run.name: run for run in list_runs(DEFAULT_ROOT)}


@pytest.fixture(scope="module", params=[name for name in RUNS if name.startswith("reverse") and not name[-1].isdigit()])
def shipped(request):
    """A run, its model, its settings and its task."""
    run = RUNS[request.param]
    model, config = load(run.snapshot())
    return run, model, config, config.build_task()


def test_the_kept_example_is_what_the_model_does(shipped):
    run, model, _, task = shipped
    kept = Example.load(run.folder / "example.npz")
    assert kept.snapshot == run.digest()
    assert np.array_equal(kept.question, task.example)
    assert np.array_equal(kept.said, say(model, task, task.example))
    anew = sample(model, task, task.example, said=kept.said)
    for words in ("question", "read", "predicted", "targets"):
        assert getattr(kept.sample, words) == getattr(anew, words)
    for site, attention in anew.attentions.items():
        old = kept.sample.attentions[site]
        assert (old.queries, old.keys) == (attention.queries, attention.keys)
    old, new = dict(leaves(kept.sample)), dict(leaves(anew))
    assert old.keys() == {name for name in new if name != ".truth"}  # how likely the right tokens are is not kept
    for name, value in old.items():
        np.testing.assert_allclose(value, new[name], atol=1e-3 if name.endswith("scores") else 1e-5, err_msg=name)


def test_the_kept_survey_is_the_survey(shipped):
    run, model, _, task = shipped
    kept, anew = Example.load(run.folder / "example.npz").survey, survey(model, task)
    assert kept.sequences == anew.sequences
    assert kept.foremost == anew.foremost
    assert kept.expected_share == pytest.approx(anew.expected_share, abs=1e-5)
    for site, pattern in anew.patterns.items():
        np.testing.assert_allclose(kept.patterns[site], pattern, atol=1e-5)


@pytest.mark.daily(1)
def test_the_kept_accuracy_is_the_accuracy(shipped):
    run, model, config, task = shipped
    kept = Accuracy.from_evaluation(run.evaluation, task)
    anew = accuracy_by_position(model, task, sequences=kept.sequences, seed=config.training.seed + 1)
    assert np.abs(kept.correct - anew.correct).max() <= 2  # another processor may round a tie the other way
    assert abs(kept.exact - anew.exact) <= 2
    assert (kept.names, kept.groups, kept.chance) == (anew.names, anew.groups, anew.chance)


def test_an_example_that_is_something_else_is_refused(tmp_path):
    path = tmp_path / "example.npz"
    path.write_bytes(b"not an archive")
    with pytest.raises(ValueError, match=r"."):
        Example.load(path)
    np.savez(path, text=np.array("{}"))
    with pytest.raises(KeyError):
        Example.load(path)


FIRST_SCREEN = """
import sys
from streamlit.testing.v1 import AppTest
page = AppTest.from_file(sys.argv[1], default_timeout=120).run()
assert not page.exception, page.exception
assert "transformer" in page.title[0].value, page.title
assert "torch" not in sys.modules
"""


@pytest.mark.nightly
def test_the_first_screen_is_drawn_without_pytorch():
    main = DEFAULT_ROOT.parent / "dashboard" / "frame" / "main.py"
    command = [sys.executable, "-c", FIRST_SCREEN, str(main)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert done.returncode == 0, done.stderr[-2000:]


def test_a_block_is_called_by_its_places_or_by_its_longest_word():
    names = ("SEP", "I", ",↵␣␣␣", "am", "not", "␣", "␣␣")
    assert blocks(names, 1) == names
    assert blocks(names, 3) == ("1–3", "4–6", "7–7")
    assert blocks(names, 3, words=True) == ("SEP…", "not…", "␣␣…")
    assert blocks(names[1:3], 2, words=True) == ("I…",)
