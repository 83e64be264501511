"""Known answers: heads made by hand that do one thing, and each number counted out."""

from __future__ import annotations

import math

import numpy as np
import pytest

from transformer.analysis.findings import Attention
from transformer.capturing.metrics import METRICS, even, induction, measure, repeated

NAMES = ("[CLS]", "the", "cat", ",", "the", "dog", "##s", ".", "[SEP]")
TOKENS = (101, 5, 6, 7, 5, 8, 9, 10, 102)
SEPARATORS = frozenset({101, 102})
N = len(NAMES)


def attention(
    pattern: np.ndarray, mask: np.ndarray | None = None, site: str = "encoder.0.self_attention", names=NAMES, keys=None
) -> Attention:
    """One attention with the heads whose patterns are given."""
    pattern = np.asarray(pattern, dtype=np.float32)
    mask = np.ones(pattern.shape[1:], dtype=bool) if mask is None else mask
    return Attention(site, np.zeros_like(pattern), mask, pattern, tuple(names), tuple(keys or names))


def on(*keys: int) -> np.ndarray:
    """Each query looks at one key whole."""
    return np.eye(N)[list(keys)]


def measured(*patterns: np.ndarray, mask: np.ndarray | None = None, **named) -> dict[str, np.ndarray]:
    return measure(
        {"encoder.0.self_attention": attention(np.stack(patterns), mask, **named)}, TOKENS, NAMES, SEPARATORS
    )


PREVIOUS = on(0, *range(N - 1))
SELF = np.eye(N)
SAME = on(0, 4, 2, 3, 1, 5, 6, 7, 8)


def test_a_head_that_does_one_thing_does_it_whole() -> None:
    first, last, full_stop = on(*[0] * N), on(*[8] * N), on(*[7] * N)
    found = measured(PREVIOUS, SELF, first, last, full_stop, SAME)
    np.testing.assert_array_equal(found["previous"], [1, 0, 1 / 8, 0, 1 / 8, 0])  # by query 1, by query 8
    np.testing.assert_allclose(found["self"], [1 / 9, 1, 1 / 9, 1 / 9, 1 / 9, 7 / 9])
    np.testing.assert_array_equal(found["first"], [0, 0, 1, 0, 0, 0])
    np.testing.assert_allclose(found["separator"], [2 / 9, 2 / 9, 1, 1, 0, 2 / 9])
    np.testing.assert_allclose(found["punctuation"], [2 / 9, 2 / 9, 0, 0, 1, 2 / 9])
    np.testing.assert_array_equal(found["same"], [0, 0, 0, 0, 0, 1])
    np.testing.assert_array_equal(found["entropy"], [0] * 6)
    distances = [8 / 9, 0, 36 / 9, 36 / 9, (28 + 1) / 9, 6 / 9]
    np.testing.assert_allclose(found["distance"], distances)
    assert list(found) == list(METRICS)


def test_a_causal_mask_leaves_out_who_has_no_choice_and_who_cannot_see() -> None:
    found = measured(PREVIOUS, SELF, SAME, mask=np.tri(N, dtype=bool))
    np.testing.assert_array_equal(found["previous"], [1, 0, 0])
    np.testing.assert_array_equal(found["self"], [0, 1, 6 / 8])  # of 8 queries; the first has no choice
    np.testing.assert_array_equal(found["same"], [0, 0, 1])  # of one query: the second "the"
    # Only the queries from the comma on may see punctuation.
    np.testing.assert_allclose(found["punctuation"], [2 / 6, 2 / 6, 2 / 6])


def test_entropy_is_in_bits() -> None:
    half = (SELF + PREVIOUS) / 2
    found = measured(half, np.full((N, N), 1 / N))
    assert found["entropy"][0] == pytest.approx(8 / 9)
    assert found["entropy"][1] == pytest.approx(math.log2(9))


def test_an_even_head_by_hand() -> None:
    mask = np.tri(N, dtype=bool)
    heads = {"decoder.0.self_attention": attention(np.stack([SELF, PREVIOUS]), mask, "decoder.0.self_attention")}
    found = even(heads, TOKENS, NAMES, SEPARATORS)
    seen = np.arange(2, N + 1)  # keys of each query with a choice
    np.testing.assert_allclose(found["previous"], [np.mean(1 / seen)] * 2)
    np.testing.assert_allclose(found["self"], [np.mean(1 / seen)] * 2)
    np.testing.assert_allclose(found["first"], [np.mean(1 / seen[1:])] * 2)
    np.testing.assert_allclose(found["separator"], [np.mean([*1 / seen[:-1], 2 / 9])] * 2)
    np.testing.assert_allclose(found["punctuation"], [np.mean([1 / 4, 1 / 5, 1 / 6, 1 / 7, 2 / 8, 2 / 9])] * 2)
    np.testing.assert_allclose(found["same"], [1 / 5] * 2)
    np.testing.assert_allclose(found["entropy"], [np.mean(np.log2(seen))] * 2)
    np.testing.assert_allclose(found["distance"], [np.mean((seen - 1) / 2)] * 2)


def test_what_nobody_is_asked_is_nan() -> None:
    alone = measured(SELF, mask=np.eye(N, dtype=bool))  # no query has a choice
    assert all(np.isnan(values).all() for values in alone.values())
    heads = {"encoder.0.self_attention": attention(np.eye(3)[None], names="abc")}
    different = measure(heads, (1, 2, 3), tuple("abc"), ())
    assert np.isnan([different[name][0] for name in ("same", "separator", "punctuation")]).all()
    assert different["self"] == 1


def test_cross_attention_has_no_previous_token_and_no_distance() -> None:
    heads = {
        "decoder.0.self_attention": attention(SELF[None], site="decoder.0.self_attention"),
        "decoder.0.cross_attention": attention(
            np.eye(3)[[0] * N][None], site="decoder.0.cross_attention", keys=("la", ".", "le")
        ),
    }
    found = measure(heads, TOKENS, NAMES, SEPARATORS)
    assert all(len(values) == 2 for values in found.values())
    for name in ("previous", "self", "same", "separator", "distance"):
        assert not np.isnan(found[name][0])
        assert np.isnan(found[name][1])
    assert (found["first"][1], found["punctuation"][1], found["entropy"][1]) == (1, 0, 0)


def test_another_stack_and_a_class_token_are_not_taken_for_the_tokens() -> None:
    other = measured(SAME, names=[f"source {number}" for number in range(N)])
    assert np.isnan(other["same"][0])
    assert np.isnan(other["separator"][0])
    assert other["self"] == pytest.approx(7 / 9)
    with_class = np.zeros((N + 1, N + 1))
    with_class[1:, 1:] = SAME
    with_class[0, 0] = 1
    heads = {"encoder.0.self_attention": attention(with_class[None], names=("+1", *NAMES))}
    assert measure(heads, TOKENS, NAMES, SEPARATORS)["same"] == 1


def test_punctuation_is_what_has_nothing_else() -> None:
    def share(name: str) -> float:
        heads = {"encoder.0.self_attention": attention(np.full((1, 3, 3), 1 / 3), names=("a", "b", name))}
        return float(measure(heads, (1, 2, 3), ("a", "b", name), ())["punctuation"][0])

    np.testing.assert_allclose([share(name) for name in (".", " ,", "##-", "...")], 1 / 3)
    assert np.isnan([share(name) for name in ("a.", "##s", " ", "$")]).all()


# --- induction


TAKEN = [101, 5, 6, 7, 5, 8, 9, 10, 5, 6, 7, 5, 8, 9, 10]


@pytest.mark.parametrize(
    ("tokens", "most", "expected"),
    [
        (TOKENS, 100, (TAKEN, 7)),
        (TOKENS, 15, (TAKEN, 7)),
        (TOKENS, 14, ([101, 5, 6, 7, 5, 8, 9, 5, 6, 7, 5, 8, 9], 6)),
        (TOKENS, 2, ([101], 0)),
        (TOKENS, 0, ([101], 0)),
        ((101, 102), 20, ([101, 102], 0)),
        ((), 20, ([], 0)),
        ((1, 2), 20, ([1, 2, 1, 2], 2)),
    ],
)
def test_a_passage_twice_without_its_separators(
    tokens: tuple[int, ...], most: int, expected: tuple[list[int], int]
) -> None:
    assert repeated(tokens, SEPARATORS, most) == expected


BLOCK = 4
TWICE = ("[CLS]", *"abcd", *"abcd")


def by_induction(share: float = 1.0) -> np.ndarray:
    """The head of the literature: after the second "a" it looks at the first "b"."""
    pattern = np.eye(2 * BLOCK + 1)
    for query in range(1 + BLOCK, 1 + 2 * BLOCK):
        pattern[query] = 0
        pattern[query, query] = 1 - share
        pattern[query, query - BLOCK + 1] += share
    return pattern


def test_a_head_of_induction_is_found() -> None:
    causal = np.tri(2 * BLOCK + 1, dtype=bool)
    previous = np.eye(2 * BLOCK + 1)[[0, *range(2 * BLOCK)]]
    heads = {
        "decoder.0.self_attention": attention(np.stack([previous, np.eye(2 * BLOCK + 1)]), causal, names=TWICE),
        "decoder.1.self_attention": attention(np.stack([by_induction(), by_induction(0.25)]), causal, names=TWICE),
    }
    np.testing.assert_allclose(induction(heads, 1, BLOCK), [0, 0, 1, 0.25])
    even_head = {"a": attention((causal / causal.sum(axis=1, keepdims=True))[None], causal, names=TWICE)}
    np.testing.assert_allclose(induction(even_head, 1, BLOCK), np.mean([1 / 6, 1 / 7, 1 / 8, 1 / 9]), rtol=1e-6)


def test_a_model_that_puts_a_position_in_front_is_read_rightly() -> None:
    pattern = np.eye(2 * BLOCK + 2)
    pattern[1:, 1:] = by_induction()
    heads = {"encoder.0.self_attention": attention(pattern[None], names=("+1", *TWICE))}
    np.testing.assert_array_equal(induction(heads, 1, BLOCK), [1])


def test_what_cannot_look_that_far_is_not_asked() -> None:
    query, key = np.indices((2 * BLOCK + 1, 2 * BLOCK + 1))
    window = (key <= query) & (key > query - BLOCK + 1)
    heads = {"decoder.0.self_attention": attention(np.eye(2 * BLOCK + 1)[None], window, names=TWICE)}
    assert np.isnan(induction(heads, 1, BLOCK)[0])


@pytest.mark.parametrize(
    ("names", "site", "block"),
    [
        (TWICE, "decoder.0.cross_attention", BLOCK),
        (("[CLS]", *"abcdabce"), "decoder.0.self_attention", BLOCK),
        (TWICE, "decoder.0.self_attention", 1),
        (TWICE, "decoder.0.self_attention", 0),
        (TWICE, "decoder.0.self_attention", 5),
    ],
)
def test_what_is_no_repetition_is_nan(names: tuple[str, ...], site: str, block: int) -> None:
    found = induction({site: attention(by_induction()[None], site=site, names=names)}, 1, block)
    assert np.isnan(found).all()
    assert len(found) == 1
