"""What can be known where lengths vary: against all sequences there are, grouped by what is seen of them."""

import itertools
import math
from collections import Counter, defaultdict

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st

from transformer import masks
from transformer.analysis.accuracy.ceilings import ceiling_of_mask, loss_floor
from transformer.config import ModelConfig, RunConfig, TaskConfig, TrainingConfig
from transformer.masks.painted import Painted
from transformer.tasks import TASKS

LAWS = {"copy": list, "sort": sorted}
MASKS = (
    *("full", "causal", "anti-causal", "padding", "sliding-window:1", "recent:2", "prefix:2", "block:2"),
    *("hide:1", "hide:3", "hide:4", "random:40:1"),
)


def laid_out(name, question):
    """Source, tokens and targets, from the words of the task alone."""
    answer = LAWS.get(name, lambda x: list(x)[::-1])(question)
    if name == "reverse-aligned":
        return [], list(question), answer
    if name == "reverse-translate":
        return list(question), ["SEP", *answer[:-1]], answer
    sequence = [*question, "SEP", *answer]
    return [], sequence[:-1], sequence[1:]


def arriving(matrix, n_layers, target, n_tokens, n_source):
    """The slots from which a walk of as many steps as there are layers leads to a target, found by walking back."""
    here, heard = {target}, False
    for _ in range(n_layers):
        heard |= n_source > 0
        here |= {key for query in here for key in range(n_tokens) if matrix[query][key]}
    return [("source", i) for i in range(n_source) if heard] + [("token", i) for i in sorted(here)]


def enumerated(name, lengths, symbols, matrix, n_layers):
    """{length: [(accuracy, least, greatest, nats) of each target]}: by Bayes, over every sequence there is."""
    views = defaultdict(Counter)
    targets_of = {}
    for length in lengths:
        for question in itertools.product(range(symbols), repeat=length):
            source, tokens, targets = laid_out(name, question)
            targets_of[length] = len(targets)
            if question == (0,) * length:
                slots = [arriving(matrix, n_layers, target, len(tokens), len(source)) for target in range(len(targets))]
            read = {("source", i): token for i, token in enumerate(source)}
            read |= {("token", i): token for i, token in enumerate(tokens)}
            for target, token in enumerate(targets):
                view = tuple((slot, read[slot]) for slot in slots[target])
                views[target, view][length, token] += symbols**-length
    found = {length: np.zeros((targets_of[length], 4)) for length in lengths}
    for (target, _), counts in views.items():
        total = Counter()
        for (_, token), weight in counts.items():
            total[token] += weight
        most = max(total.values())
        # a symbol that is never right here is a guess as well, when another length makes it likely: it is in `total`
        best = [token for token, weight in total.items() if weight > most - 1e-12]
        for length in {length for length, _ in counts}:
            own = {token: counts[length, token] for token in total}
            nats = -sum(weight * math.log(total[t] / total.total()) for t, weight in own.items() if weight)
            right = [own[token] for token in best]
            found[length][target] += sum(right) / len(right), min(right), max(own.values()), nats
    return found


def compared(name, lengths, symbols, mask, n_layers):
    shortest, longest = lengths
    task = TASKS[name](length=longest, min_length=shortest, symbols=symbols)
    matrix = mask.matrix(len(task.target_names(longest))) if isinstance(mask, masks.Mask) else mask
    expected = enumerated(name, range(shortest, longest + 1), symbols, matrix.tolist(), n_layers)
    for length, values in expected.items():
        found = ceiling_of_mask(task, mask, n_layers, length)
        assert found.accuracy == pytest.approx(values[:, 0], abs=1e-9)
        assert found.least == pytest.approx(values[:, 1], abs=1e-9)
        assert found.greatest == pytest.approx(values[:, 2], abs=1e-9)
        assert found.nats == pytest.approx(values[:, 3], abs=1e-9)
        assert not found.error.any()
    return expected


@pytest.mark.parametrize("name", TASKS.names())
@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize(("lengths", "symbols"), [((2, 4), 2), ((2, 3), 3)])
def test_the_ceiling_of_varying_lengths_is_bayes(name, mask, lengths, symbols):
    for n_layers in (1, 2):
        compared(name, lengths, symbols, masks.parse(mask), n_layers)


@pytest.mark.nightly
@pytest.mark.parametrize("name", TASKS.names())
@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize(("lengths", "symbols"), [((1, 5), 2), ((2, 5), 2), ((3, 5), 3), ((2, 5), 3), ((4, 5), 3)])
def test_the_ceiling_of_more_varying_lengths_is_bayes(name, mask, lengths, symbols):
    for n_layers in (1, 2, 3):
        compared(name, lengths, symbols, masks.parse(mask), n_layers)


@hypothesis.given(
    st.sampled_from(TASKS.names()),
    st.sampled_from([(1, 3), (2, 4), (3, 4)]),
    st.integers(1, 2),
    st.lists(st.booleans(), min_size=64, max_size=64),
)
def test_the_ceiling_under_any_mask_is_bayes(name, lengths, n_layers, cells):
    compared(name, lengths, 2, Painted.of(np.array(cells).reshape(8, 8)), n_layers)


@pytest.mark.parametrize("name", TASKS.names())
@pytest.mark.parametrize("mask", ["causal", "hide:3", "sliding-window:1", "full"])
@pytest.mark.parametrize("weight", [0.1, 1.0])
def test_the_loss_floor_is_bayes(name, mask, weight):
    config = RunConfig(
        task=TaskConfig(task=name, length=4, min_length=2, symbols=2),
        model=ModelConfig(mask=mask, n_layers=1),
        training=TrainingConfig(prompt_weight=weight),
    )
    task = config.build_task()
    matrix = masks.parse(mask).matrix(len(task.target_names(4))).tolist()
    cost = weights = 0.0
    for length, values in enumerated(name, range(2, 5), 2, matrix, 1).items():
        own = [1.0 if target.startswith("y") else weight for target in task.target_names(length)]
        cost, weights = cost + own @ values[:, 3], weights + sum(own)
    assert loss_floor(config) == pytest.approx(cost / weights, abs=1e-9)
