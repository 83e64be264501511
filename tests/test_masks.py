"""Masks: True is what a query may see. Each written out by hand, and all of them against one contract."""

import numpy as np
import pytest

from transformer import masks
from transformer.masks import MASKS

ALL = pytest.mark.parametrize("name", MASKS.names())

BY_HAND = {
    "causal": """
        x....
        xx...
        xxx..
        xxxx.
        xxxxx""",
    "full": """
        xxxxx
        xxxxx
        xxxxx
        xxxxx
        xxxxx""",
    "hide:2": """
        x....
        xx...
        x.x..
        x.xx.
        x.xxx""",
    "hide:9": """
        x....
        xx...
        xxx..
        xxxx.
        xxxxx""",
    "padding": """
        xxxxx
        xxxxx
        xxxxx
        xxxxx
        xxxxx""",
    "prefix:0": """
        x....
        xx...
        xxx..
        xxxx.
        xxxxx""",
    "prefix:3": """
        xxx..
        xxx..
        xxx..
        xxxx.
        xxxxx""",
    "sliding-window:0": """
        x....
        .x...
        ..x..
        ...x.
        ....x""",
    "sliding-window:1": """
        xx...
        xxx..
        .xxx.
        ..xxx
        ...xx""",
    "sliding-window:2": """
        xxx..
        xxxx.
        xxxxx
        .xxxx
        ..xxx""",
}


def written(drawing: str) -> np.ndarray:
    return np.array([[cell == "x" for cell in row.strip()] for row in drawing.strip().split("\n")])


# --- the contract


@ALL
def test_says_what_it_is(name):
    assert MASKS[name].description
    assert not MASKS[name].description.endswith(".")


@ALL
def test_is_read_as_it_is_written(name):
    mask = masks.parse(name)
    assert mask.name == name
    assert masks.parse(str(mask)) == mask
    assert hash(masks.parse(str(mask))) == hash(mask)


@ALL
def test_is_a_square_of_booleans(name):
    for n in (1, 2, 7):
        matrix = masks.parse(name).matrix(n)
        assert matrix.shape == (n, n)
        assert matrix.dtype == bool
        assert matrix.flags.writeable  # a page paints on it


@ALL
def test_can_be_written_out_for_other_keys(name):
    mask = masks.parse(name)
    assert np.array_equal(mask.matrix(3, 7), mask.matrix(7)[:3])


@ALL
def test_does_not_depend_on_the_length(name):
    """A model cuts its mask to the input: the small one must be the corner of the large one."""
    whole = masks.parse(name).matrix(9)
    for n in range(1, 9):
        assert np.array_equal(masks.parse(name).matrix(n), whole[:n, :n])


@ALL
def test_every_query_sees_itself(name):
    assert masks.parse(name).matrix(9).diagonal().all()


@ALL
def test_is_drawn_by_hand_in_this_file(name):
    assert any(text.split(":")[0] == name for text in BY_HAND)


# --- each by itself


@pytest.mark.parametrize("text", BY_HAND)
def test_is_what_is_drawn_by_hand(text):
    assert np.array_equal(masks.parse(text).matrix(5), written(BY_HAND[text]))


def test_padding_hides_padded_keys_and_nothing_else():
    padding = np.array([[False, False, True], [False, False, False]])
    seen = masks.parse("padding").matrix(3, padding=padding)
    assert seen.shape == (2, 3, 3)
    assert np.array_equal(seen, np.broadcast_to(~padding[:, None, :], (2, 3, 3)))


@pytest.mark.parametrize("name", sorted(set(MASKS.names()) - {"padding"}))
def test_other_masks_leave_padding_to_the_model(name):
    mask = masks.parse(name)
    seen = mask.matrix(4, padding=np.array([False, False, True, True]))
    assert np.array_equal(seen, mask.matrix(4))


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("triangular", "no mask named 'triangular': choose one of causal, full"),
        ("", "no mask named '': choose one of"),
        ("Causal", "no mask named 'Causal'"),
        ("sliding_window", "no mask named 'sliding_window'"),
        ("__init__", "no mask named '__init__'"),
        ("causal:1", r"the mask 'causal' takes 0 number\(s\) after a colon, not 1"),
        ("prefix:1:2", r"the mask 'prefix' takes 1 number\(s\) after a colon, not 2"),
        ("prefix:x", "must be a whole number from 0 to 9999, not 'prefix:x'"),
        ("prefix:", "must be a whole number from 0 to 9999"),
        ("prefix:-1", "must be a whole number from 0 to 9999"),
        ("prefix:1.5", "must be a whole number from 0 to 9999"),
        ("prefix:10000", "must be a whole number from 0 to 9999"),
        ("prefix:" + "9" * 5000, "must be a whole number from 0 to 9999"),
    ],
    ids=lambda text: text[:40],
)
def test_what_cannot_be_read_is_refused_with_a_sentence(text, sentence):
    with pytest.raises(ValueError, match=sentence) as refusal:
        masks.parse(text)
    assert "\n" not in str(refusal.value)
