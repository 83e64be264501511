"""What a run keeps of itself equals what would be found out anew, and needs no PyTorch to be read."""

import subprocess
import sys
from dataclasses import fields

import numpy as np
import pytest

from tests.kit.waiting import PATIENCE
from transformer.analysis.accuracy.by_position import accuracy_by_position
from transformer.analysis.accuracy.result import Accuracy
from transformer.analysis.findings import Example, Head, blocks
from transformer.analysis.heads.survey import survey
from transformer.analysis.sample import sample, say
from transformer.checkpoints import load
from transformer.training.runs import DEFAULT_ROOT, list_runs

RUNS = {run.name: run for run in list_runs(DEFAULT_ROOT)}


@pytest.fixture(params=[name for name in RUNS if name.startswith("reverse") and not name[-1].isdigit()])
def shipped(request):
    return RUNS[request.param]


def test_the_kept_example_is_what_the_model_does(shipped):
    model, config = load(shipped.snapshot())
    task = config.build_task()
    kept = Example.load(shipped.folder / "example.npz")
    assert kept.snapshot == shipped.digest()
    assert np.array_equal(kept.question, task.example)
    assert np.array_equal(kept.said, say(model, task, task.example))
    anew = sample(model, task, task.example, said=kept.said)
    for field in fields(anew):
        old, new = getattr(kept.sample, field.name), getattr(anew, field.name)
        if field.name in ("attentions", "truth"):  # how likely the right tokens are is not kept
            continue
        if isinstance(new, np.ndarray):
            np.testing.assert_allclose(old, new, atol=1e-5)
        else:
            assert old == new
    assert list(kept.sample.attentions) == list(anew.attentions)
    for site, attention in anew.attentions.items():
        old = kept.sample.attentions[site]
        assert (old.queries, old.keys) == (attention.queries, attention.keys)
        assert np.array_equal(old.mask, attention.mask)
        np.testing.assert_allclose(old.pattern, attention.pattern, atol=1e-5)
        np.testing.assert_allclose(old.scores, attention.scores, atol=1e-3)


def test_the_kept_survey_is_the_survey(shipped):
    model, config = load(shipped.snapshot())
    kept, anew = Example.load(shipped.folder / "example.npz").survey, survey(model, config.build_task())
    assert kept.sequences == anew.sequences
    assert kept.foremost == anew.foremost
    assert kept.expected_share == pytest.approx(anew.expected_share, abs=1e-5)
    for site, pattern in anew.patterns.items():
        np.testing.assert_allclose(kept.patterns[site], pattern, atol=1e-5)


@pytest.mark.daily(1)
def test_the_kept_accuracy_is_the_accuracy(shipped):
    model, config = load(shipped.snapshot())
    task = config.build_task()
    kept = Accuracy.from_evaluation(shipped.evaluation, task)
    anew = accuracy_by_position(model, task, sequences=kept.sequences, seed=config.training.seed + 1)
    assert np.abs(kept.correct - anew.correct).max() <= 2  # another processor may round a tie the other way
    assert abs(kept.exact - anew.exact) <= 2
    assert (kept.names, kept.groups, kept.chance) == (anew.names, anew.groups, anew.chance)


def test_heads_are_read_as_they_are_written():
    head = Head("decoder.1.self_attention", 3)
    assert Head.parse(str(head)) == head


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
assert page.title[0].value == "It reverses: 8 of 8 right.", page.title[0].value
assert "torch" not in sys.modules
"""


@pytest.mark.nightly
def test_the_first_screen_is_drawn_without_pytorch():
    main = DEFAULT_ROOT.parent / "dashboard" / "frame" / "main.py"
    done = subprocess.run(
        [sys.executable, "-c", FIRST_SCREEN, str(main)], capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]


def test_a_block_is_called_by_its_places_or_by_its_longest_word():
    names = ("SEP", "I", ",↵␣␣␣", "am", "not", "␣", "␣␣")
    assert blocks(names, 1) == names
    assert blocks(names, 3) == ("1–3", "4–6", "7–7")
    assert blocks(names, 3, words=True) == ("SEP…", "not…", "␣␣…")
    assert blocks(names[1:3], 2, words=True) == ("I…",)
