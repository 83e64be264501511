"""Masks: True is what a query may see. Each written out by hand, and all of them against one contract."""

import base64
import dataclasses
import zlib

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from transformer import build, checkpoints, masks
from transformer.config import ConfigError, ModelConfig, RunConfig, TaskConfig
from transformer.masks import MASKS
from transformer.masks.painted import LARGEST, Painted
from transformer.training.library import changes

ALL = pytest.mark.parametrize("name", MASKS.names())

DRAWN = """
anti-causal  block:1  block:2  block:5  random:0:7  random:100:7  painted:5:sUD4AA
xxxxx        x....    xx...    xxxxx    x....       xxxxx         x.xx.
.xxxx        .x...    xx...    xxxxx    .x...       xxxxx         ..x.x
..xxx        ..x..    ..xx.    xxxxx    ..x..       xxxxx         .....
...xx        ...x.    ..xx.    xxxxx    ...x.       xxxxx         .xxxx
....x        ....x    ....x    xxxxx    ....x       xxxxx         x....

causal  full   padding  hide:2  hide:9  prefix:0  prefix:3
x....   xxxxx  xxxxx    x....   x....   x....     xxx..
xx...   xxxxx  xxxxx    xx...   xx...   xx...     xxx..
xxx..   xxxxx  xxxxx    x.x..   xxx..   xxx..     xxx..
xxxx.   xxxxx  xxxxx    x.xx.   xxxx.   xxxx.     xxxx.
xxxxx   xxxxx  xxxxx    x.xxx   xxxxx   xxxxx     xxxxx

recent:1  recent:3  sliding-window:0  sliding-window:1  sliding-window:2
x....     x....     x....             xx...             xxx..
xx...     xx...     .x...             xxx..             xxxx.
.xx..     xxx..     ..x..             .xxx.             xxxxx
..xx.     xxxx.     ...x.             ..xxx             .xxxx
...xx     .xxxx     ....x             ...xx             ..xxx
"""
"""By hand. The rows 10110 00101 00000 01111 10000 are the bytes b1 40 f8 00, in sixes 2c 14 03 38 00 00: "sUD4AA"."""
BY_HAND = {
    name: np.array([[cell == "x" for cell in row] for row in rows])
    for block in DRAWN.strip().split("\n\n")
    for name, *rows in zip(*map(str.split, block.split("\n")), strict=True)
}


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
def test_is_a_square_of_booleans_and_the_corner_of_any_larger_one(name):
    """A model cuts its mask to the input."""
    mask = masks.parse(name)
    whole = mask.matrix(9)
    for n in range(1, 10):
        matrix = mask.matrix(n)
        assert matrix.dtype == bool
        assert matrix.flags.writeable  # a page paints on it
        assert np.array_equal(matrix, whole[:n, :n])
    assert np.array_equal(mask.matrix(3, 7), whole[:3, :7])


@ALL
def test_every_query_sees_itself(name):
    assert masks.parse(name).matrix(9).diagonal().all()


@ALL
def test_is_drawn_by_hand_in_this_file(name):
    assert any(text.split(":")[0] == name for text in BY_HAND)


# --- each by itself


@pytest.mark.parametrize("text", BY_HAND)
def test_is_what_is_drawn_by_hand(text):
    assert np.array_equal(masks.parse(text).matrix(5), BY_HAND[text])


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


# --- by the throw of a die


def die(seed: int, query: int, key: int) -> int:
    """SplitMix64 in Python's own whole numbers, modulo 100."""
    z = (seed * 2**40 + query * 2**20 + key + 0x9E3779B97F4A7C15) % 2**64
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 % 2**64
    z = (z ^ z >> 27) * 0x94D049BB133111EB % 2**64
    return (z ^ z >> 31) % 100


@pytest.mark.parametrize(("density", "seed"), [(50, 0), (3, 1), (97, 9999)])
def test_a_random_mask_is_a_function_of_its_places_and_its_seed(density, seed):
    seen = masks.parse(f"random:{density}:{seed}").matrix(20)
    for query in range(20):
        for key in range(20):
            assert seen[query, key] == (query == key or die(seed, query, key) < density)


def test_the_die_is_the_published_one():
    """The first output of SplitMix64 from the state 0 (Vigna, splitmix64.c): e220a8397b1dcdaf."""
    assert die(0, 0, 0) == 0xE220A8397B1DCDAF % 100


@pytest.mark.parametrize("density", [10, 50, 90])
def test_a_random_mask_is_as_dense_as_it_says(density):
    """Off the diagonal, within five standard deviations; and another seed is another mask."""
    apart = ~np.eye(200, dtype=bool)
    drawn = [masks.parse(f"random:{density}:{seed}").matrix(200) for seed in (0, 1)]
    for seen in drawn:
        share = density / 100
        deviation = (share * (1 - share) / apart.sum()) ** 0.5
        assert abs(seen[apart].mean() - share) < 5 * deviation
    agreement = (drawn[0] == drawn[1])[apart].mean()
    assert abs(agreement - (share**2 + (1 - share) ** 2)) < 0.02


# --- painted


@st.composite
def paintings(draw):
    """Masks as they are painted: noise, a rule, and rows, columns, boxes and stripes on it."""
    n = draw(st.one_of(st.integers(1, 64), st.integers(65, 200)))
    noise = np.random.default_rng(draw(st.integers(0, 9))).integers(0, 2, (n, n)).astype(bool)
    cells = draw(st.sampled_from([noise, np.zeros((n, n), bool), np.ones((n, n), bool), np.tri(n, dtype=bool)])).copy()
    for _ in range(draw(st.integers(0, 3))):
        top, left = draw(st.integers(0, n - 1)), draw(st.integers(0, n - 1))
        cells[top : draw(st.integers(top, n)), left : draw(st.integers(left, n))] = draw(st.booleans())
    return cells


@given(paintings())
def test_what_is_painted_comes_back_from_its_text(cells):
    mask = Painted.of(cells)
    assert masks.parse(str(mask)) == mask
    assert len(str(mask)) <= 20 + -(-(len(cells) ** 2) // 6)
    assert str(mask).isascii()
    assert str(mask).isprintable()
    for n in (1, len(cells) // 2, len(cells)):
        np.testing.assert_array_equal(mask.matrix(n), cells[:n, :n])


def test_what_was_painted_on_up_to_64_positions_is_still_read():
    """Links that were made before more could be painted: bits, deflated by hand here."""
    for n in (1, 5, 33, 64):
        cells = np.random.default_rng(n).integers(0, 2, (n, n)).astype(bool) | np.tri(n, dtype=bool)
        bits = np.packbits(cells).tobytes()
        for data in (bits, zlib.compress(bits, 9)[2:-4]):
            text = base64.urlsafe_b64encode(data).decode().rstrip("=")
            np.testing.assert_array_equal(masks.parse(f"painted:{n}:{text}").matrix(n), cells)


def squares(n, factor, chosen):
    """A mask of squares, put together cell by cell."""
    return np.array([[chosen[row // factor][column // factor] for column in range(n)] for row in range(n)])


def test_usual_paintings_are_short_at_512_positions():
    n, factor = 512, 6
    side = -(-n // factor)
    rows, columns = np.indices((n, n)) // factor
    usual = [np.tri(n, dtype=bool)]
    for touched in (rows == 20, columns == 40, rows - columns == 12, rows + columns == side - 1, rows * columns > 4000):
        usual.append(usual[-1] ^ touched)
    usual.append(squares(n, factor, np.random.default_rng(0).random((side, side)) < 0.5))
    for cells, most in zip(usual, (300, 500, 500, 500, 1500, 1500, 3500), strict=True):
        text = str(Painted.of(cells))
        assert len(text) < most
        np.testing.assert_array_equal(masks.parse(text).matrix(n), cells)
    noise = np.random.default_rng(0).integers(0, 2, (LARGEST, LARGEST)).astype(bool)
    assert masks.parse(str(Painted.of(noise))) == Painted.of(noise)


def test_a_painted_mask_says_nothing_about_more_positions_than_it_has():
    mask = Painted.of(np.tri(8, dtype=bool))
    assert mask.longest == 8
    with pytest.raises(ValueError, match="painted for 8 positions, and the input has 9"):
        mask.matrix(9)
    with pytest.raises(ValueError, match="painted for 8 positions"):
        mask.matrix(3, 9)
    text = str(mask)
    with pytest.raises(ConfigError, match="painted for 8 positions, but the task reverse of length 5 has 10"):
        RunConfig(task=TaskConfig(length=5), model=ModelConfig(mask=text))
    with pytest.raises(ConfigError, match="painted for 8 positions"):
        RunConfig.from_dict({**RunConfig().to_dict(), "model": {**RunConfig().to_dict()["model"], "mask": text}})
    assert RunConfig(task=TaskConfig(length=4), model=ModelConfig(mask=text)).model.mask == text


def test_a_model_is_made_and_kept_under_a_painted_mask(tmp_path):
    cells = np.random.default_rng(1).integers(0, 2, (8, 8)).astype(bool) | np.eye(8, dtype=bool)
    config = RunConfig(task=TaskConfig(length=4), model=ModelConfig(mask=str(Painted.of(cells)), n_layers=1))
    model = build(config)
    np.testing.assert_array_equal(model.visible.numpy(), cells)
    checkpoints.save(tmp_path / "painted.safetensors", model, config)
    loaded, kept = checkpoints.load(tmp_path / "painted.safetensors")
    assert kept == config
    tokens = torch.tensor([[3, 1, 4, 1, 10, 1, 4, 1]])
    with torch.no_grad():
        torch.testing.assert_close(loaded(tokens), model.eval()(tokens), rtol=0, atol=0)


def test_a_painted_mask_is_told_in_few_letters():
    one = ModelConfig(mask=str(Painted.of(np.random.default_rng(2).integers(0, 2, (16, 16)).astype(bool))))
    other = ModelConfig(mask=str(Painted.of(np.tri(16, dtype=bool))))
    assert one.mask_label != other.mask_label
    assert len(one.mask_label) < 20
    assert ModelConfig(mask="prefix:3").mask_label == "prefix:3"
    assert ModelConfig().mask_label == "auto"
    assert changes(RunConfig(model=one), RunConfig(model=other)) == [f"mask {other.mask_label} → {one.mask_label}"]


def test_rules_hold_at_any_length():
    assert set(MASKS.names()) - set(masks.rules()) == {"painted"}
    for name in masks.rules():
        assert masks.parse(name).matrix(300).shape == (300, 300)


BOMB = base64.urlsafe_b64encode(zlib.compress(bytes(10**8), 9)[2:-4]).decode().rstrip("=")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("triangular", "no mask named 'triangular': choose one of anti-causal, block"),
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
        ("painted:16", "is written painted:N:CELLS, with 1 to 512 positions"),
        ("painted:16:AA:AA", "is written painted:N:CELLS"),
        ("painted::AA", "is written painted:N:CELLS"),
        ("painted:0:", "with 1 to 512 positions"),
        ("painted:513:AA", "with 1 to 512 positions"),
        ("painted:-1:AA", "with 1 to 512 positions"),
        ("painted:²:AA", "with 1 to 512 positions"),
        ("painted:" + "9" * 5000 + ":AA", "with 1 to 512 positions"),
        ("painted:5:", "cannot be read"),
        ("painted:5:sUD4A", "cannot be read: their text is damaged"),
        ("painted:5:sUD4Aä", "cannot be read: their text is damaged"),
        ("painted:5:s D4AA", "cannot be read: their text is damaged"),
        ("painted:5:sUD4", "cannot be read"),
        ("painted:5:sUD4AQ", "there are 25 cells, and these are not as many"),
        ("painted:64:AAAA", "cannot be read"),
        (f"painted:64:{BOMB}", "too few or too many"),
        (f"painted:512:{BOMB}", "too few or too many"),
        ("painted:65:AAAA", "cannot be read"),
        ("painted:65:" + "/" * 800, "their text is damaged"),
        ("random:101", "the density of the mask 'random' must be a whole number from 0 to 100, not 101"),
        ("block:0", "the width of the mask 'block' must be a whole number from 1 to 9999, not 0"),
        ("random:1:2:3", r"takes 2 number\(s\) after a colon, not 3"),
        ("prefix:²", "must be a whole number from 0 to 9999"),
    ],
    ids=lambda text: text[:40],
)
def test_a_hostile_text_is_refused_with_a_sentence(text, sentence):
    with pytest.raises(ValueError, match=sentence) as refusal:
        masks.parse(text)
    assert "\n" not in str(refusal.value)
    assert len(str(refusal.value)) < 6000


def test_a_mask_of_the_wrong_size_cannot_be_made():
    with pytest.raises(ValueError, match="1 to 512 positions, not 513"):
        Painted.of(np.ones((513, 513), dtype=bool))
    with pytest.raises(ValueError, match="has 25 cells"):
        dataclasses.replace(Painted.of(np.ones((5, 5), dtype=bool)), packed=b"")
