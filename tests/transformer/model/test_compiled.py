"""The hand-written reverser: exact, and with a head that is the anti-diagonal to the last number."""

import numpy as np
import pytest
import torch

from transformer.analysis.accuracy.by_position import accuracy_by_position, predictions
from transformer.analysis.intervals import wilson
from transformer.compiled import compiled_config, compiled_reverser
from transformer.observation import observe


@pytest.mark.parametrize("symbols", [2, 10, 36])
@pytest.mark.parametrize("length", [1, 2, 3, 8, 13])
def test_reverses_every_sequence(length, symbols):
    task = compiled_config(length, symbols).build_task()
    questions = np.random.default_rng(0).integers(0, symbols, (2000, length))
    said = predictions(compiled_reverser(length, symbols), task.encode(list(questions)))
    assert np.array_equal(said[:, length:], questions[:, ::-1])
    assert (said[:, length - 1] == task.separator).all()


@pytest.mark.parametrize("length", [1, 2, 3, 8, 13])
def test_reverses_by_itself(length):
    task = compiled_config(length).build_task()
    questions = np.random.default_rng(0).integers(0, 10, (50, length))
    prompt = torch.from_numpy(task.encode(list(questions)).tokens[:, : length + 1])
    said = compiled_reverser(length).continue_greedily(prompt, length)
    assert np.array_equal(said.numpy(), questions[:, ::-1])


@pytest.mark.parametrize("length", [2, 8, 13])
def test_its_head_is_the_anti_diagonal_exactly(length):
    question = np.random.default_rng(0).integers(0, 10, length)
    task = compiled_config(length).build_task()
    seen = observe(compiled_reverser(length), torch.from_numpy(task.encode([question]).tokens))
    pattern = seen["decoder.0.self_attention.pattern"][0, 0].numpy()
    assert np.array_equal(pattern[length:], task.expected_keys(question)[length:].astype(np.float32))


def test_what_cannot_be_known_it_guesses():
    """The interval is four standard errors wide: seven positions, and none may be told apart from chance."""
    task = compiled_config().build_task()
    found = accuracy_by_position(compiled_reverser(), task, sequences=4096)
    low, high = wilson(found.correct, found.sequences, 4.0)
    assert ((low <= 0.1) & (high >= 0.1))[:7].all()
    assert found.of("first half") == pytest.approx(0.1, abs=0.01)
    assert found.of("separator") == found.of("second half") == 1
    assert found.exact == found.sequences
