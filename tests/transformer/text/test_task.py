"""The task of reading: what is read and what is to be said, from which works, and what nobody can know of it."""

import math
import re
from collections import Counter

import numpy as np
import pytest

from tests.kit import texts
from transformer import masks
from transformer.analysis.accuracy import ceilings
from transformer.config import ConfigError, ModelConfig, RunConfig, TaskConfig
from transformer.text import shelf
from transformer.text.corpus import TextError
from transformer.text.tokens import UNKNOWN, split

HELD = "THE SECOND PLAY"


def own_words(scenes: dict[str, int]) -> str:
    """Works that share no word: everything in "A" begins with A, so a token tells its work."""
    cast = "{0}TITLE\n\n  DRAMATIS PERSONAE\n\n{1}\n\n"
    return "".join(
        cast.format(name, "\n".join(" ".join(f"{name}{line}x{i}" for i in range(9)) for line in range(many)))
        for name, many in scenes.items()
    )


@pytest.fixture(scope="module")
def task():
    return texts.config().build_task()


def reader(scenes, length=16):
    key = shelf.put("own.txt", own_words(scenes).encode())
    return RunConfig(task=TaskConfig(task="text", text=key, length=length, min_count=1)).build_task()


def said(task, rows) -> list[str]:
    return [task.typed(row) for row in rows]


# --- what is read, and what is to be said


def test_each_target_is_the_next_token_and_the_first_is_asked_of_sep(task):
    batch = task.batch(np.random.default_rng(0), 6)
    assert batch.tokens.shape == batch.targets.shape == (6, 32)
    assert (batch.tokens[:, 0] == task.vocabulary.index("SEP")).all()
    assert np.array_equal(batch.tokens[:, 1:], batch.targets[:, :-1])
    assert batch.is_target.all()
    assert batch.is_answer.all()
    assert batch.source is None
    learned = texts.TEXT.replace(texts.play(HELD, 3), "")
    counted = Counter(split(learned, "words"))
    known = "".join(token if counted[token] >= 2 else UNKNOWN for token in split(learned, "words"))
    assert all(window in known for window in said(task, batch.targets))


def test_shorter_passages_are_padded_at_their_end(task):
    short, long = task.parse("And what was"), task.parse("The rain that falls is answered by the rain")
    batch = task.encode([short, long], pad_to=20)
    assert batch.tokens.shape == (2, 20)
    for row, question in enumerate((short, long)):
        n, pad = len(question), task.d_vocab - 1
        assert batch.tokens[row].tolist() == [task.d_vocab - 2, *question[:-1], *[pad] * (20 - n)]
        assert batch.targets[row].tolist() == [*question, *[pad] * (20 - n)]
        assert batch.is_target[row].tolist() == batch.is_answer[row].tolist() == [True] * n + [False] * (20 - n)


@pytest.mark.parametrize("length", [1, 2, 31, 32])
def test_names_groups_and_slots_fit_the_targets(task, length):
    question = np.arange(3, 3 + length)
    batch = task.encode([question])
    names = task.target_names(length)
    assert len(set(names)) == len(task.groups(length)) == batch.targets.shape[1] == length
    assert task.answers(length).all()
    slots, targets = task.symbols_of_slots(length), task.symbols_of_targets(length)
    assert [question[s] if s >= 0 else task.separator for s in slots] == batch.tokens[0].tolist()
    assert [question[s] for s in targets] == batch.targets[0].tolist()
    assert not task.expected_keys(question).any()
    assert task.expected_keys(question).shape == (length, length)
    assert np.array_equal(task.answer(question), question)


def test_the_vocabulary_has_a_name_for_every_token(task):
    assert len(task.vocabulary) == task.d_vocab == len(set(task.vocabulary))
    assert task.vocabulary[-3:] == (UNKNOWN, "SEP", "PAD")
    assert (task.vocabulary[task.separator], task.vocabulary[task.padding]) == ("SEP", "PAD")
    assert not any(" " in name or "\n" in name for name in task.vocabulary)


# --- what is typed


@pytest.mark.parametrize("by", ["words", "characters"])
def test_what_is_typed_is_what_was_read(by):
    config = TaskConfig(task="text", text=texts.key(), split=by, min_count=5, length=32)
    task = RunConfig(task=config).build_task()
    for question in task.draw(np.random.default_rng(0), 20, 32):
        assert np.array_equal(task.parse(task.typed(question)), question)


def test_a_word_that_is_not_known_is_the_unknown_token(task):
    question = task.parse("The xylophone")
    assert [task.vocabulary[token] for token in question] == ["The", "␣", UNKNOWN]
    assert task.typed(question) == f"The {UNKNOWN}"
    assert task.parse(f"The {UNKNOWN}").tolist() == question.tolist()


@pytest.mark.parametrize(("text", "count"), [("", 0), ("a " * 17, 34), ("a " * 16 + "a", 33)])
def test_what_is_empty_or_too_long_is_refused_with_a_sentence(task, text, count):
    with pytest.raises(ValueError, match=f"^type 1 to 32 tokens, not {count}$"):
        task.parse(text)


def test_the_example_begins_with_a_line_of_what_was_held_out(task):
    text = task.typed(task.example)
    held = texts.play(HELD, 3)
    assert 1 <= len(task.example) <= 32
    assert UNKNOWN in text or text in held
    assert not text.startswith("\n")


# --- from which works


def test_a_batch_is_of_works_that_are_learned_from_and_has_no_window_twice():
    task = reader({"A": 30, "B": 30, "C": 30})
    known = task.known
    # One token lies between two windows of an even length, so that they begin with a word as often as with a blank.
    count = sum(len(range(0, len(split(work, "words")) - 15, 17)) for work in own_works({"A": 30, "C": 30}))
    rng = np.random.default_rng(0)
    for _ in range(5):
        batch = task.batch(rng, 20)
        assert len(np.unique(batch.targets, axis=0)) == len(batch.targets) == 20
        assert batch.targets.max() < known.vocabulary.unknown  # all of B's words are unknown
        windows = said(task, batch.targets)
        assert not any("B" in window for window in windows)
        assert not any(re.search(r"A\d", window) and re.search(r"C\d", window) for window in windows)
        assert 4 < sum(window[0].isalpha() for window in windows) < 16
    assert len(task.batch(rng, 10**6).targets) == count


def own_works(scenes):
    return [own_words({name: many}) for name, many in scenes.items()]


def test_measuring_is_on_works_that_were_held_out_and_gives_what_there_is():
    task = reader({"A": 30, "B": 12, "C": 30})
    work = own_works({"B": 12})[0]
    tokens = split(work, "words")
    learned = set(split("".join(own_works({"A": 30, "C": 30})), "words"))

    def expected(step):
        windows = [tokens[at : at + 16] for at in range(0, len(tokens) - 15, step)]
        return sorted("".join(t if t in learned else UNKNOWN for t in window) for window in windows)

    assert sorted(said(task, task.held_out().targets)) == expected(16)  # no token between two windows is left out
    assert sorted(said(task, task.fresh(np.random.default_rng(0), 10**6).targets)) == expected(17)
    assert len(task.fresh(np.random.default_rng(0), 3).targets) == 3
    assert all(len(question) == 5 for question in task.draw(np.random.default_rng(0), 4, 5))


@pytest.mark.parametrize("length", [12, 13])
@pytest.mark.parametrize("size", [2, 6, 10])
def test_what_is_measured_begins_with_a_word_as_often_as_with_a_blank(task, length, size):
    """Else the cost by place in the window would swing between that of words and that of blanks."""
    seen = set()
    for seed in range(8):
        drawn = task.draw(np.random.default_rng(seed), size, length)
        assert len(drawn) == size
        begins_with_a_word = [task.vocabulary[question[0]].isalnum() for question in drawn]
        assert sum(begins_with_a_word) == size / 2
        seen.add(begins_with_a_word[0])
    assert seen == {True, False}  # a single one may begin with either


def test_works_that_are_too_short_to_be_learned_from_are_said_to_be():
    task = reader({"A": 1, "B": 60, "C": 1}, length=100)
    with pytest.raises(TextError, match=r"^no training work of own-.* has 100 tokens: choose a shorter length$"):
        task.batch(np.random.default_rng(0), 4)


def test_the_same_seed_is_the_same_batch(task):
    batches = [task.batch(np.random.default_rng(seed), 4).tokens.tolist() for seed in (0, 0, 1)]
    assert batches[0] == batches[1] != batches[2]


def test_without_its_text_a_task_still_measures_and_says_what_it_needs_to_learn(tmp_path):
    scenes = {"A": 30, "B": 40, "C": 31}
    task = reader(scenes)
    path, before = tmp_path / "text.npz", task.held_out().targets
    task.known.save(path)
    shelf.register(path, task.text, "words", 1)
    (shelf.folder() / f"{task.text}.txt").unlink()
    assert np.array_equal(task.held_out().targets, before)  # so short a text is wholly in its excerpt
    with pytest.raises(TextError, match="is not here: name a file with --text"):
        task.batch(np.random.default_rng(0), 4)


# --- what can be known


def test_chance_is_the_commonest_token_and_its_loss_the_entropy_of_the_counts(task):
    learned = (texts.play("THE FIRST PLAY", 4), texts.play("THE THIRD PLAY", 4))
    counted = Counter(token for work in learned for token in split(work, "words"))
    known = [n for n in counted.values() if n >= 2]
    shares = [n / counted.total() for n in (*known, counted.total() - sum(known))]
    assert task.chance == pytest.approx(max(shares))
    assert task.chance_loss == pytest.approx(-sum(p * math.log(p) for p in shares if p))


@pytest.mark.parametrize("mask", ["causal", "full", "anti-causal", "sliding-window:1", "hide:3", "prefix:4"])
def test_a_target_is_certain_only_where_it_is_told(mask):
    """The target at i stands in the slot i + 1; one layer moves it to i exactly where the mask lets i see i + 1."""
    config = RunConfig(
        task=TaskConfig(task="text", text=texts.key(), length=8, min_count=2), model=ModelConfig(n_layers=1, mask=mask)
    )
    visible = masks.parse(mask).matrix(8)
    told = [i + 1 < 8 and bool(visible[i, i + 1]) for i in range(8)]
    found = ceilings.ceiling(config)
    assert [value == 1 for value in found.accuracy] == told
    assert [value == 0 for value in found.nats] == told
    assert np.isnan(found.accuracy[~np.array(told)]).all()
    assert np.isnan(found.nats[~np.array(told)]).all()
    assert math.isnan(ceilings.loss_floor(config))


# --- the config


def test_a_config_of_a_text_is_read_as_it_was_written():
    config = texts.config()
    assert RunConfig.from_dict(config.to_dict()) == config
    assert config.model.architecture == "decoder"
    assert config.model.mask == "causal"


def test_a_text_cannot_have_what_only_a_law_has_nor_a_law_a_text():
    key = texts.key()
    of_text = RunConfig(task=TaskConfig(task="text", text=key, length=8, min_length=4, symbols=7, min_count=3)).task
    assert (of_text.min_length, of_text.symbols, of_text.min_count) == (None, 10, 3)
    of_law = RunConfig(task=TaskConfig(text=key, split="characters", min_count=3)).task
    assert (of_law.text, of_law.split, of_law.min_count) == ("", "words", 5)


@pytest.mark.parametrize(
    ("task", "model", "sentence"),
    [
        ({"text": ""}, {}, "the text .none. is not here"),
        ({"text": "nowhere-12345678"}, {}, "the text nowhere-12345678 is not here"),
        ({"text": "../plays"}, {}, "is not here"),
        ({"length": 2000}, {}, "the held-out part of .* is shorter than 2000 tokens: choose a shorter length"),
        ({"min_count": 10**6}, {}, "lower the minimum count"),
        ({"split": "lines"}, {}, "split must be words or characters, not 'lines'"),
        ({"min_count": 0}, {}, "min_count must be between 1 and 1000000, not 0"),
        ({}, {"architecture": "encoder"}, "the task text is for the architecture decoder, not encoder"),
        ({}, {"architecture": "gru"}, "the task text is for the architecture decoder, not gru"),
    ],
)
def test_what_cannot_be_learned_is_refused_with_a_sentence(task, model, sentence):
    with pytest.raises(ConfigError, match=sentence):
        RunConfig(task=TaskConfig(**{"task": "text", "text": texts.key(), **task}), model=ModelConfig(**model))
