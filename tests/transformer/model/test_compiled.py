"""The hand-written reverser: exact, and with a head that is the anti-diagonal to the last number."""

import numpy as np
import pytest
import torch

from transformer.analysis.accuracy.by_position import accuracy_by_position, predictions
from transformer.analysis.intervals import wilson
from transformer.compiled import compiled_config, compiled_reverser
from transformer.observation import observe


@pytest.mark.parametrize(("length", "symbols"), [(1, 10), (2, 2), (3, 36), (8, 10), (13, 36)])
def test_reverses_every_sequence_told_or_by_itself_with_a_head_that_is_the_anti_diagonal_exactly(length, symbols):
    task, model = compiled_config(length, symbols).build_task(), compiled_reverser(length, symbols)
    questions = np.random.default_rng(0).integers(0, symbols, (500, length))
    batch = task.encode(list(questions))
    said = predictions(model, batch)
    assert np.array_equal(said[:, length:], questions[:, ::-1])
    assert (said[:, length - 1] == task.separator).all()
    tokens = torch.from_numpy(batch.tokens)
    assert np.array_equal(model.continue_greedily(tokens[:50, : length + 1], length).numpy(), questions[:50, ::-1])
    pattern = observe(model, tokens[:1])["decoder.0.self_attention.pattern"][0, 0].numpy()
    assert np.array_equal(pattern[length:], task.expected_keys(questions[0])[length:].astype(np.float32))


def test_what_cannot_be_known_it_guesses():
    """The interval is four standard errors wide: seven positions, and none may be told apart from chance."""
    task = compiled_config().build_task()
    found = accuracy_by_position(compiled_reverser(), task, sequences=4096)
    low, high = wilson(found.correct, found.sequences, 4.0)
    assert ((low <= 0.1) & (high >= 0.1))[:7].all()
    assert found.of("first half") == pytest.approx(0.1, abs=0.01)
    assert found.of("separator") == found.of("second half") == 1
    assert found.exact == found.sequences
