"""What can be known where lengths vary: against all sequences there are, grouped by what is seen of them."""

import dataclasses
import itertools
import math
from collections import Counter, defaultdict

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st

from tests.kit.numbers.task_laws import laid_out
from transformer import masks
from transformer.analysis.accuracy.aim import Aim
from transformer.analysis.accuracy.ceilings import _ceilings, best_guess, ceiling_of_mask, loss_floor
from transformer.analysis.accuracy.result import Accuracy, as_far, known_and_guessed, verdict
from transformer.config import ModelConfig, RunConfig, TaskConfig, TrainingConfig
from transformer.masks.painted import Painted
from transformer.tasks import TASKS

MASKS = (
    *("full", "causal", "anti-causal", "padding", "sliding-window:1", "recent:2", "prefix:2", "block:2"),
    *("hide:1", "hide:3", "hide:4", "random:40:1"),
)


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
            source, tokens, targets = laid_out(name, question, "SEP")
            source = source or []
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
    matrix = mask.matrix(len(task.target_names(longest)))
    for length, values in enumerated(name, range(shortest, longest + 1), symbols, matrix.tolist(), n_layers).items():
        found = ceiling_of_mask(task, mask, n_layers, length)
        for field, expected in zip(("accuracy", "least", "greatest", "nats"), values.T, strict=True):
            assert getattr(found, field) == pytest.approx(expected, abs=1e-9), field
        assert not found.error.any()


SHAPES = (((2, 4), 2), ((2, 3), 3), ((1, 5), 2), ((4, 5), 3))
VARYING = [name for name in TASKS.names() if TASKS[name].may_vary()]
PAIRS = [(name, mask, *SHAPES[(i + j) % 4]) for i, name in enumerate(VARYING) for j, mask in enumerate(MASKS)]


@pytest.mark.daily(12)
@pytest.mark.parametrize(("name", "mask", "lengths", "symbols"), PAIRS)
def test_the_ceiling_of_varying_lengths_is_bayes(name, mask, lengths, symbols):
    for n_layers in (1, 2, 3):
        compared(name, lengths, symbols, masks.parse(mask), n_layers)


@hypothesis.given(
    st.sampled_from(VARYING),
    st.sampled_from([(1, 3), (2, 4), (3, 4)]),
    st.integers(1, 2),
    st.lists(st.booleans(), min_size=64, max_size=64),
)
def test_the_ceiling_under_any_mask_is_bayes(name, lengths, n_layers, cells):
    compared(name, lengths, 2, Painted.of(np.array(cells).reshape(8, 8)), n_layers)


@pytest.mark.daily(8)
@pytest.mark.parametrize("name", VARYING)
@pytest.mark.parametrize("mask", ["causal", "hide:3", "sliding-window:1", "full"])
def test_the_loss_floor_is_bayes(name, mask):
    task, model = TaskConfig(task=name, length=4, min_length=2, symbols=2), ModelConfig(mask=mask, n_layers=1)
    names = {length: TASKS[name](length=4).target_names(length) for length in (2, 3, 4)}
    found = enumerated(name, range(2, 5), 2, masks.parse(mask).matrix(len(names[4])).tolist(), 1)
    for weight in (0.1, 1.0):
        own = {n: [1.0 if target.startswith("y") else weight for target in each] for n, each in names.items()}
        cost = sum(own[length] @ values[:, 3] for length, values in found.items())
        config = RunConfig(task=task, model=model, training=TrainingConfig(prompt_weight=weight))
        assert loss_floor(config) == pytest.approx(cost / sum(map(sum, own.values())), abs=1e-9)


@pytest.mark.parametrize(("name", "mask"), [("reverse-aligned", "causal"), ("sort", "sliding-window:2")])
def test_where_there_are_too_many_cases_the_ceiling_has_an_interval_that_holds(name, mask, monkeypatch):
    task = TASKS[name](length=5, min_length=2, symbols=3)
    exact = ceiling_of_mask(task, masks.parse(mask), 1)
    monkeypatch.setattr("transformer.tasks._patterns", lambda places, symbols: None)
    monkeypatch.setattr("transformer.tasks.sort.MOST_QUESTIONS", 0)
    _ceilings.cache_clear()
    found = ceiling_of_mask(task, masks.parse(mask), 1)
    _ceilings.cache_clear()
    assert found.error.any()
    assert (np.abs(found.accuracy - exact.accuracy) <= 4 * found.error + 1e-9).all()
    assert (np.abs(found.nats - exact.nats) <= 4 * found.nats_error + 1e-9).all()


CAUSAL = ModelConfig(architecture="decoder")
ALIGNED = TaskConfig(task="reverse-aligned", min_length=4)
CASES = [
    (TaskConfig(min_length=4), ModelConfig()),
    (TaskConfig(min_length=1, length=5, symbols=2), ModelConfig(mask="hide:3")),
    (TaskConfig(task="copy", min_length=2, length=5, symbols=3), ModelConfig(mask="sliding-window:1", n_layers=1)),
    (ALIGNED, CAUSAL),
    (TaskConfig(task="reverse-aligned", min_length=1, symbols=2), ModelConfig(mask="recent:3", n_layers=1)),
    (TaskConfig(task="reverse-translate", min_length=2, length=4), ModelConfig()),
    (TaskConfig(task="sort", min_length=2, length=5, symbols=3), ModelConfig(mask="sliding-window:2", n_layers=1)),
    (TaskConfig(task="sort", length=4, symbols=3), ModelConfig(mask="recent:4", n_layers=1)),
]


def guesses(config, batch, *, ties, told=False):
    """What the best guess says to a batch; of several that are equally likely, any, or what suits this length."""
    task = config.build_task()
    best = best_guess(task, masks.parse(config.model.mask), config.model.n_layers)
    rng = np.random.default_rng(3)
    said = np.full_like(batch.targets, task.padding)
    widths = batch.is_target.sum(axis=1)
    for length, reach in best.reach.items():
        rows = np.flatnonzero(widths == len(reach))
        questions = (batch.tokens if batch.source is None else batch.source)[rows, :length]
        for target in range(len(reach) if len(rows) else 0):
            lengths = (length,) if told else best.alike(length, target)
            mixed, single = best.expects(target, lengths, task.contents(questions))
            tied = mixed >= mixed.max(axis=1, keepdims=True) * (1 - 1e-9)
            luck = {"good": 1, "bad": -1, "any": 0}[ties] * single[lengths.index(length)]
            score = np.where(tied, luck + 1e-3 * rng.random(mixed.shape), -2.0)
            said[rows, target] = score.argmax(axis=1)
    return said


def counted(config, batch, said):
    task = config.build_task()
    right = said == batch.targets
    names, groups = task.target_names(task.length), task.groups(task.length)
    return Accuracy(right.sum(axis=0), len(right), names, groups, task.chance, 0)


@pytest.mark.daily(4)
@pytest.mark.parametrize(("task", "model"), CASES)
def test_the_best_guess_is_at_the_ceiling_and_does_not_leak_and_a_mere_guess_is_not_there(task, model):
    config = RunConfig(task=task, model=honest(task, model))
    batch = config.build_task().fresh(np.random.default_rng(1), 4000, task.length)
    for ties, told in itertools.product(("good", "bad"), (False, True)):
        found = verdict(counted(config, batch, guesses(config, batch, ties=ties, told=told)), config)
        assert not found.endswith("not yet at the ceiling")
        assert not found.endswith("leaks")
    if task.task != "copy":  # through so narrow a window nothing of the answer is known
        guess = np.random.default_rng(0).integers(0, task.symbols, batch.targets.shape)
        assert verdict(counted(config, batch, guess), config).endswith("not yet at the ceiling")


def honest(task, model):
    """A mask that shows no answer: the window to both sides, cut off where the task is read one token at a time."""
    if task.task in ("reverse-aligned", "reverse-translate"):
        return model
    kind = TASKS[task.task](length=task.length)
    n = kind.n_ctx
    mask = masks.parse("causal" if model.mask == "auto" else model.mask).matrix(n) & kind.limit.matrix(n)
    return dataclasses.replace(model, mask=str(Painted.of(mask)))


@pytest.mark.daily(3)
@pytest.mark.parametrize(("task", "model"), CASES)
@pytest.mark.parametrize("ties", ["good", "bad"])
def test_training_stops_where_the_best_guess_is_made_and_not_before(task, model, ties, monkeypatch):
    config = RunConfig(task=task, model=model, training=TrainingConfig(solved_at=1.0))
    aim = Aim(config)
    said = lambda _, batch: guesses(config, batch, ties=ties)  # noqa: E731
    monkeypatch.setattr("transformer.analysis.accuracy.aim.predictions", said)
    batch = config.build_task().fresh(np.random.default_rng(2), 512, task.length)
    assert aim.near(counted(config, batch, said(None, batch)).mean, 512)
    assert aim.reached(None, np.random.default_rng(4))
    if aim.best is not None:
        worse = lambda _, batch: np.where(np.arange(len(batch.tokens))[:, None] % 20, said(_, batch), 0)  # noqa: E731
        monkeypatch.setattr("transformer.analysis.accuracy.aim.predictions", worse)
        assert not aim.reached(None, np.random.default_rng(4))


def test_what_was_solved_is_said_where_not_every_answer_can_be_known():
    assert known_and_guessed(RunConfig()) == ""
    assert as_far(RunConfig(task=TaskConfig(min_length=4))) == ""
    fixed = RunConfig(task=TaskConfig(task="reverse-aligned"), model=CAUSAL)
    assert as_far(fixed) == ", as far as it can be known,"
    assert known_and_guessed(fixed) == "y5 to y8 can be known; y1 to y4 can only be guessed"
    assert known_and_guessed(RunConfig(task=ALIGNED, model=CAUSAL)) == (
        "y8 can be known; y5 to y7 in part: the best guess has 0.45; y1 to y4 can only be guessed, because the "
        "model is not told the length"
    )


def test_the_verdict_says_of_a_question_whose_length_is_not_told_that_it_is_random():
    config = RunConfig(task=TaskConfig(min_length=4))
    batch = config.build_task().fresh(np.random.default_rng(1), 4000, 8)
    assert verdict(counted(config, batch, guesses(config, batch, ties="any")), config) == (
        "second half 1.00, first half 0.04 (random symbols, which can only be guessed): the mask holds"
    )
