"""Tasks: their law against an independent reading of it, their batches, their words, their loss floor."""

import itertools
import math
from collections import Counter

import numpy as np
import pytest

from tests.kit import strangers
from tests.kit.numbers.task_laws import LAWS, laid_out
from transformer import tasks
from transformer.analysis.accuracy import ceilings
from transformer.config import ConfigError, ModelConfig, RunConfig, TaskConfig, TrainingConfig
from transformer.foundation.registry import PlugInError
from transformer.tasks import TASKS
from transformer.tasks._layouts import Continuation
from transformer.tasks.sort import Sort

ALL = pytest.mark.parametrize("name", [*TASKS.names(), *strangers.TASKS])


@pytest.fixture(autouse=True)
def _strangers(monkeypatch):
    """The tasks of strangers keep the contract of those that are shipped."""
    strangers.lend(monkeypatch, TASKS, *strangers.TASKS)


# --- the contract


@ALL
@pytest.mark.parametrize("min_length", [None, 1, 3])
def test_the_law_holds_in_every_batch(name, min_length):
    if min_length and not TASKS[name].may_vary():
        with pytest.raises(ConfigError, match=f"the task {name} takes sequences of one length"):
            TASKS[name](length=6, min_length=min_length)
        return
    task = TASKS[name](length=6, min_length=min_length, symbols=5)
    batch = task.batch(np.random.default_rng(0), 200)
    pad = len(task.vocabulary) - 1
    lengths = Counter()
    for row in range(200):
        tokens, targets = batch.tokens[row].tolist(), batch.targets[row].tolist()
        if task.has_source:
            question = [t for t in batch.source[row].tolist() if t != pad]
        else:
            question = list(itertools.takewhile(lambda t: t < task.symbols, tokens))
        lengths[len(question)] += 1
        source, read, expected = laid_out(task.name, question, task.separator)
        padding = [pad] * (len(tokens) - len(read))
        assert tokens == read + padding
        assert targets == expected + padding
        assert batch.is_target[row].tolist() == [True] * len(read) + [False] * len(padding)
        answers = [t for t, chosen in zip(targets, batch.is_answer[row], strict=True) if chosen]
        assert answers == LAWS[name](question)
        if source is not None:
            assert batch.source[row].tolist() == source + [pad] * (batch.source.shape[1] - len(source))
    assert set(lengths) == ({6} if min_length is None else set(range(min_length, 7)))
    assert max(lengths.values()) < 2 * 200 / len(lengths)


@ALL
def test_questions_are_uniform(name):
    task = TASKS[name](length=4, symbols=3)
    batch = task.batch(np.random.default_rng(0), 8100)
    questions = (batch.source if task.has_source else batch.tokens)[:, :4]
    counts = Counter(map(tuple, questions.tolist()))
    assert len(counts) == 81
    assert max(abs(count - 100) for count in counts.values()) < 45  # 4.5 standard deviations


@ALL
def test_the_same_seed_is_the_same_batch(name):
    task = TASKS[name](length=6, min_length=2 if TASKS[name].may_vary() else None)
    batches = [task.batch(np.random.default_rng(seed), 8) for seed in (0, 0, 1)]
    assert np.array_equal(batches[0].tokens, batches[1].tokens)
    assert np.array_equal(batches[0].targets, batches[1].targets)
    assert not np.array_equal(batches[0].tokens, batches[2].tokens)


@ALL
@pytest.mark.parametrize("min_length", [None, 2])
def test_a_batch_is_its_sequences_drawn_and_laid_out_one_by_one(name, min_length):
    min_length = min_length if TASKS[name].may_vary() else None
    task, rng = TASKS[name](length=6, min_length=min_length, symbols=5), np.random.default_rng(7)
    sizes = rng.integers(2, 7, 9).tolist() if min_length else [6] * 9
    alone = [task.encode([rng.integers(0, 5, size)], pad_to=max(sizes)) for size in sizes]
    drawn = np.random.default_rng(7)
    batch = task.batch(drawn, 9)
    assert drawn.bit_generator.state == rng.bit_generator.state
    for part in ("tokens", "targets", "is_answer", "is_target", *(["source"] if task.has_source else [])):
        np.testing.assert_array_equal(getattr(batch, part), np.concatenate([getattr(each, part) for each in alone]))


@ALL
def test_one_length_can_be_asked_for(name):
    task = TASKS[name](length=6, min_length=2 if TASKS[name].may_vary() else None)
    batch = task.batch(np.random.default_rng(0), 8, length=3)
    assert batch.is_target.all()
    assert (batch.is_answer.sum(axis=1) == len(LAWS[name]([0, 1, 2]))).all()


@ALL
def test_padding_to_a_longer_question_only_appends(name):
    task = TASKS[name](length=6, symbols=5)
    question = [np.array([4, 0, 2])]
    short, long = task.encode(question), task.encode(question, pad_to=5)
    n = short.tokens.shape[1]
    assert long.tokens.shape[1] == task.encode([np.zeros(5, dtype=np.int64)]).tokens.shape[1] > n
    assert np.array_equal(long.tokens[:, :n], short.tokens)
    assert (long.tokens[:, n:] == task.padding).all()
    assert not long.is_target[:, n:].any()
    assert not long.is_answer[:, n:].any()


@ALL
@pytest.mark.parametrize("length", [1, 2, 5, 6])
def test_names_and_groups_fit_the_targets(name, length):
    task = TASKS[name](length=6, symbols=5)
    batch = task.batch(np.random.default_rng(0), 1, length)
    n = batch.targets.shape[1]
    names = task.target_names(length)
    assert len(names) == len(set(names)) == len(task.groups(length)) == len(task.symbols_of_targets(length)) == n
    assert set(task.groups(length)) <= {*task.parts, "separator"}
    assert task.groups(length)[-1] == task.part == task.parts[-1]
    assert n == task.count_targets(length)
    assert task.count_targets(task.length_of(n)) == n
    assert task.answers(length).sum() == task.answer_length(length) == len(LAWS[name]([0] * length))
    assert [x.startswith("y") for x in names] == batch.is_answer[0].tolist()
    assert [x == "SEP" for x in names] == (batch.targets[0] == task.separator).tolist()
    slots = n + (length if task.has_source else 0)
    assert len(task.symbols_of_slots(length)) == slots
    assert n <= task.n_ctx
    assert task.batch(np.random.default_rng(0), 1).tokens.shape[1] == task.n_ctx


@ALL
def test_slots_and_targets_are_the_symbols_they_are_said_to_be(name):
    task = TASKS[name](length=6, symbols=36)
    if not task.rearranges:
        return  # no place decides its answers
    question = np.array([7, 11, 13, 17, 19, 23])
    batch = task.encode([question])
    slots = batch.tokens[0] if batch.source is None else np.concatenate([batch.source[0], batch.tokens[0]])
    for values, symbols in ((slots, task.symbols_of_slots(6)), (batch.targets[0], task.symbols_of_targets(6))):
        assert [question[s] if s >= 0 else task.separator for s in symbols] == values.tolist()


@ALL
def test_the_vocabulary_has_a_name_for_every_token(name):
    task = TASKS[name](symbols=12)
    assert task.vocabulary == (*"0123456789ab", "SEP", "PAD")
    assert len(task.vocabulary) == task.d_vocab
    assert task.vocabulary[task.separator] == "SEP"
    assert task.vocabulary[task.padding] == "PAD"
    assert task.chance == pytest.approx(1 / 12)
    assert task.chance_loss == pytest.approx(math.log(12))


@pytest.mark.parametrize("text", ["3 1 b", "31b", "3,1,B", " 3;1 , B\t", "3\n1\nb"])
def test_a_typed_question_is_read_with_letters_in_either_case(text):
    assert TASKS["reverse"](symbols=12).parse(text).tolist() == [3, 1, 11]


@pytest.mark.parametrize(
    ("text", "symbols", "sentence"),
    [
        ("x", 10, "“x” is not a symbol of this task: use 0 to 9"),
        ("123-", 10, "“-” is not a symbol"),
        ("12 4", 4, "“4” is not a symbol of this task: use 0 to 3"),
        ("c", 12, "“c” is not a symbol of this task: use 0 to 9 and a to b"),
        ("", 10, "type 1 to 8 symbols, 0 to 9: these are none"),
        (" , ", 10, "type 1 to 8 symbols"),
        ("123456789", 10, "type 1 to 8 symbols, 0 to 9: these are 9"),
        ("²", 10, "“²” is not a symbol"),
        ("٣", 10, "“٣” is not a symbol"),
    ],
)
def test_what_cannot_be_asked_is_refused_with_a_sentence(text, symbols, sentence):
    with pytest.raises(ValueError, match=sentence):
        TASKS["reverse"](symbols=symbols).parse(text)


@pytest.mark.parametrize(
    ("symbols", "alphabet"), [(2, "0 to 1"), (10, "0 to 9"), (11, "0 to 9 and a"), (20, "0 to 9 and a to j")]
)
def test_a_task_says_its_symbols_in_words(symbols, alphabet):
    assert TASKS["reverse"](symbols=symbols).alphabet == alphabet


@ALL
def test_a_task_says_what_it_does_and_what_its_parts_are_called(name):
    kind = TASKS[name]
    assert kind.verb.split()[0].endswith("s")
    assert all(part == part.lower() for part in kind.parts)
    assert len(kind.parts) in (1, 2)


def test_a_task_that_says_nothing_of_itself_is_refused():
    with pytest.raises(PlugInError, match="the task Silent does not say its law and verb"):
        type("Silent", (Continuation,), {"answer": lambda self, question: question})


@pytest.mark.parametrize(
    ("answer", "rearranges", "sentence"),
    [
        (np.sort, True, "hangs on what the symbols are: it does not rearrange them"),
        (lambda question: question + 1, False, "has a symbol that is none of its 3"),
        (np.unique, False, "to questions of one length differ in length"),
    ],
)
def test_a_law_that_breaks_its_word_is_an_error_and_no_wrong_batch(answer, rearranges, sentence):
    said = {"law": "", "verb": "errs", "rearranges": rearranges, "answer": lambda self, question: answer(question)}
    with pytest.raises(ValueError, match=sentence):
        type("Wrong", (Continuation,), said)(length=3, symbols=3).encode(np.array([[2, 1, 0], [1, 1, 1]]))


@pytest.mark.parametrize("most", [3**4, 0])
@pytest.mark.parametrize("seed", range(6))
def test_the_ceiling_of_a_law_that_no_place_decides_is_that_of_every_question(monkeypatch, seed, most):
    """Against all questions there are: at each target the likeliest token given exactly what is visible there.

    Where there are more than are gone through it is an estimate, within its error.
    """
    monkeypatch.setattr(tasks, "MOST_QUESTIONS", most)
    tasks._guessed.cache_clear()
    task = TASKS["count"](length=4, symbols=3)
    questions = np.array([*itertools.product(range(3), repeat=4)])
    batch, reach = task.encode(questions), np.random.default_rng(seed).random((5, 5)) < 0.6
    found = task.ceiling(reach)
    for target in range(5):
        seen: dict[bytes, Counter] = {}
        for read, right in zip(batch.tokens[:, reach[target]], batch.targets[:, target], strict=True):
            seen.setdefault(read.tobytes(), Counter())[int(right)] += 1
        counts = [np.array([*each.values()]) for each in seen.values()]
        exact = sum(each.max() for each in counts) / len(questions)
        nats = -sum(float((each * np.log(each / each.sum())).sum()) for each in counts) / len(questions)
        assert abs(found.accuracy[target] - exact) <= 1e-12 + (0.02 + 4 * found.error[target]) * (not most)
        assert abs(found.nats[target] - nats) <= 1e-12 + (0.05 + 4 * found.nats_error[target]) * (not most)
        assert not (most and found.error[target])
    sure = task.ceiling(np.tri(5, dtype=bool))
    assert sure.accuracy.tolist() == pytest.approx([1 / 3] * 3 + [1, 1])
    assert not sure.error.any()
    tasks._guessed.cache_clear()


# --- where the answer stands


@ALL
def test_expected_keys_hold_what_is_to_be_said(name):
    task = TASKS[name](length=6, symbols=3)
    for question in np.random.default_rng(0).integers(0, 3, (20, 6)):
        expected, batch = task.expected_keys(question), task.encode([question])
        keys = batch.tokens[0] if batch.source is None else batch.source[0]
        assert expected.shape == (batch.targets.shape[1], len(keys))
        assert np.array_equal(expected.any(axis=1), batch.is_answer[0] & task.points)
        assert task.points or not task.rearranges
        for query, key in np.argwhere(expected):
            assert key < 6
            assert keys[key] == batch.targets[0, query]


@pytest.mark.parametrize(
    ("name", "first", "turned"),
    [("reverse", 6, True), ("copy", 6, False), ("reverse-aligned", 0, True), ("reverse-translate", 0, True)],
)
def test_the_answer_is_expected_on_a_diagonal(name, first, turned):
    """The query at first + j (0-based) says y_(j+1), and looks at its place in the question, or the mirrored one."""
    expected = TASKS[name](length=6).expected_keys(np.arange(6)[::-1])
    assert np.argwhere(expected).tolist() == [[first + j, 5 - j if turned else j] for j in range(6)]


def test_sorting_expects_every_place_that_holds_the_symbol():
    expected = Sort(length=3).expected_keys(np.array([5, 2, 5]))
    assert np.argwhere(expected).tolist() == [[3, 1], [4, 0], [4, 2], [5, 0], [5, 2]]


# --- the loss floor


@pytest.mark.parametrize("weight", [0.1, 1.0, 0.0])
def test_floor_of_a_fixed_length(weight):
    """x2..x8 cost ln 10 each; SEP comes when it must, y1..y8 are known."""
    config = RunConfig(training=TrainingConfig(prompt_weight=weight))
    assert ceilings.loss_floor(config) == pytest.approx(7 * math.log(10) * weight / (8 * weight + 8))


@pytest.mark.parametrize("name", ["reverse-aligned", "reverse-translate"])
def test_nothing_need_be_lost_where_everything_can_be_known(name):
    assert ceilings.loss_floor(RunConfig(task=TaskConfig(task=name))) == 0


def bayes_floor(task, visible, weight):
    """By brute force: every question there is, and at each target the entropy given exactly what is visible there.

    `visible(i, read)` is what the predictor of target i sees of what is read.
    """
    cases = [
        (q, 1 / task.symbols ** len(q)) for n in task.lengths for q in itertools.product(range(task.symbols), repeat=n)
    ]
    seen: dict[tuple, Counter] = {}
    weights = 0.0
    for question, probability in cases:
        _, read, targets = laid_out(task.name, list(question), task.separator)
        for i, target in enumerate(targets):
            w = probability * (1.0 if i >= len(question) else weight)
            seen.setdefault((i, visible(i, read)), Counter())[target] += w
            weights += w
    nats = 0.0
    for counts in seen.values():
        total = sum(counts.values())
        nats -= sum(c * math.log(c / total) for c in counts.values() if c)
    return nats / weights


@pytest.mark.parametrize("name", ["reverse", "copy", "sort"])
@pytest.mark.parametrize(("min_length", "length", "symbols"), [(1, 4, 2), (2, 4, 3), (3, 3, 3), (4, 5, 2)])
@pytest.mark.parametrize("weight", [0.1, 1.0])
def test_floor_of_varying_lengths_is_bayes(name, min_length, length, symbols, weight):
    settings = TaskConfig(task=name, length=length, min_length=min_length, symbols=symbols)
    config = RunConfig(task=settings, training=TrainingConfig(prompt_weight=weight))
    expected = bayes_floor(config.build_task(), lambda i, read: tuple(read[: i + 1]), weight)
    assert ceilings.loss_floor(config) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("name", ["reverse", "copy"])
@pytest.mark.parametrize("mask", ["full", "sliding-window:1", "prefix:2"])
def test_floor_under_a_mask_that_leaks_is_bayes(name, mask):
    settings = TaskConfig(task=name, length=4, min_length=2, symbols=2)
    config = RunConfig(task=settings, model=ModelConfig(mask=mask, n_layers=1))

    def visible(i, read):
        reach = {"full": range(9), "sliding-window:1": (i - 1, i, i + 1), "prefix:2": (0, 1, *range(2, i + 1))}[mask]
        return tuple((j, read[j]) for j in range(len(read)) if j in reach or j == i)

    floor, expected = ceilings.loss_floor(config), bayes_floor(config.build_task(), visible, 0.1)
    assert floor == pytest.approx(expected, abs=1e-9)
    if mask == "full":
        assert floor == expected == 0


def test_a_law_made_of_another_is_asked_for_each_answer():
    """What rearranges symbols is answered for many questions at once; what is made of it may do anything to them."""

    class Next(TASKS["reverse"]):
        def answer(self, question):
            return (question + 1) % self.symbols

    assert TASKS["reverse"].rearranges
    assert not Next.rearranges
    batch = Next(length=4, symbols=5).batch(np.random.default_rng(0), 20)
    np.testing.assert_array_equal(batch.targets[:, 4:], (batch.tokens[:, :4] + 1) % 5)
