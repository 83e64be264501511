"""Kinds of token: which keys are of which kind, the shares of constructed patterns, and which kind a head prefers."""

import itertools

import numpy as np
import pytest
import torch

from tests.kit.pages import network
from transformer import observe
from transformer.analysis.batches import questions
from transformer.analysis.findings import Head
from transformer.analysis.heads.kinds import KINDS, SHARE, Kinds, cells_of, shares
from transformer.analysis.heads.measure import measure_kinds
from transformer.analysis.heads.metrics import Estimate

WORDS = ("SEP", "␣", "my", "lord", ",␣", ".↵")
READ = np.array([[0, 2, 1, 3, 5, 2, 1, 2]])  # SEP my ␣ lord .↵ my ␣ my
KEYS = {
    "previous": [[], [0], [], [2], [], [4], [], [6]],
    "self": [[], [1], [], [3], [], [5], [], [7]],
    "first": [[], [], [], [0], [], [0], [], [0]],
    "word": [[], [], [], [1], [], [3], [], [5]],
    "same": [[], [], [], [], [], [1], [], [1, 5]],
    "line": [[], [], [], [], [], [4], [], [4]],
    "words": [[], [], [], [1], [], [1, 3], [], [1, 3, 5]],
}
"""Which keys are of a kind to each query in turn, counted by hand: only words are queries."""
SINGLE = {
    "previous": [[], [0], [1]],
    "self": [[0], [1], [2]],
    "first": [[], [], [0]],
    "same": [[], [], [0]],
    "line": [[]] * 3,
}
CAUSAL = np.tril(np.ones((1, 8, 8), dtype=bool))


@pytest.mark.parametrize(
    ("read", "words", "separator", "expected"),
    [(READ, WORDS, 0, KEYS), (np.array([[0, 1, 0]]), ("a", "b"), 2, SINGLE)],
    ids=["words", "characters"],
)
def test_which_keys_are_of_which_kind(read, words, separator, expected):
    """A text of single characters has no words: there each token is a query."""
    cells = cells_of(read, words, separator)
    assert cells.keys() == expected.keys()
    assert set(KINDS) - cells.keys() == (set() if words == WORDS else {"word", "words"})
    for name, keys in expected.items():
        assert [np.flatnonzero(row).tolist() for row in cells[name][0]] == keys, name


def several(pattern: np.ndarray, cells: dict[str, np.ndarray]) -> dict[str, Estimate]:
    """A head's shares, as if three sequences had them."""
    return {
        name: Estimate.of(np.repeat(shares(pattern, each, CAUSAL), 3, axis=0), SHARE) for name, each in cells.items()
    }


@pytest.mark.parametrize("name", KINDS)
def test_a_head_that_looks_at_one_kind_has_all_of_its_attention_there_and_is_called_so(name):
    """It looks evenly at the keys of one kind, and at itself where there is none."""
    cells, pattern = cells_of(READ, WORDS, 0), np.zeros((1, 1, 8, 8))
    for query, keys in enumerate(KEYS[name]):
        pattern[0, 0, query, keys or [query]] = 1 / len(keys or [query])
    even = CAUSAL[:, None] / CAUSAL.sum(axis=-1)[:, None, :, None]
    assert shares(pattern, cells[name], CAUSAL)[0, 0] == pytest.approx(1)
    head, level = Head("decoder.0.self_attention", 0), {each: shares(even, cells[each], CAUSAL)[0] for each in cells}
    assert Kinds((head,), 3, several(pattern, cells), level).leaning(head) == name
    assert Kinds((head,), 3, several(even, cells), level).leaning(head) is None


def test_only_queries_with_a_choice_and_a_key_of_the_kind_are_asked():
    pattern = np.zeros((1, 1, 8, 8))
    pattern[0, 0, 5:, 4] = [0.2, 0.4, 0.9]
    line = cells_of(READ, WORDS, 0)["line"]
    assert shares(pattern, line, CAUSAL)[0, 0] == pytest.approx((0.2 + 0.9) / 2)  # a blank does not count
    blind = CAUSAL.copy()
    blind[:, 7] = np.eye(8, dtype=bool)[4]  # it sees the line end alone
    assert shares(pattern, line, blind)[0, 0] == pytest.approx(0.2)
    assert np.isnan(shares(pattern, line & False, CAUSAL)[0, 0])


def test_a_trained_model_s_shares_are_those_of_its_patterns():
    model, config = network("shakespeare")
    task = config.build_task()
    kinds = measure_kinds(model, task, sequences=2)
    batch, _ = questions(task, 2, task.surveyed, 0)
    seen = observe(model, torch.from_numpy(batch.tokens))
    words = np.array([[task.vocabulary[token] for token in tokens] for tokens in batch.tokens])
    asked = [[query for query in range(1, len(tokens)) if is_word(tokens, query)] for tokens in words]
    for head, kind in itertools.product(kinds.heads[::5], KINDS):
        each = []
        for tokens, queries, pattern in zip(words, asked, seen[f"{head.site}.pattern"][:, head.index], strict=True):
            read = {query: read_of(kind, tokens, query) for query in queries}
            each.append(np.mean([pattern[query, keys].double().sum() for query, keys in read.items() if keys]))
        found = kinds.share[kind].mean[kinds.heads.index(head)]
        assert found == pytest.approx(np.mean(each), abs=1e-5), (head, kind)


def is_word(tokens: np.ndarray, place: int) -> bool:
    return place > 0 and any(map(str.isalnum, tokens[place]))  # the separator stands first


def read_of(kind: str, tokens: np.ndarray, query: int) -> list[int]:
    """The keys of a kind for a query, by its words alone."""
    before = range(query)
    words = [key for key in before if is_word(tokens, key)]
    return {
        "previous": [query - 1],
        "self": [query],
        "first": [0] if query > 1 else [],
        "word": words[-1:],
        "same": [key for key in before if tokens[key] == tokens[query]],
        "line": [key for key in before if "↵" in tokens[key] or "␣␣" in tokens[key]],
        "words": words,
    }[kind]
