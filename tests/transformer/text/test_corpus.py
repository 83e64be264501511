"""A text cut up: tokens that join to it again, a vocabulary, works, what is held out, windows, the excerpt."""

import itertools
from collections import Counter

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st

from tests.kit import texts
from transformer.text import corpus as text_corpus
from transformer.text.corpus import Corpus, Excerpt, TextError, windows
from transformer.text.tokens import UNKNOWN, Vocabulary, shown, split
from transformer.text.works import Work, hold_out, without_licence, works

ANY = st.text(st.characters(exclude_categories=["Cs"]), max_size=60)
FEW = st.text("ab_ ,\n'é3", max_size=40)
BY = pytest.mark.parametrize("by", ["words", "characters"])


def in_a_word(character: str) -> bool:
    return character.isalnum() or character == "_"


# --- tokens


@hypothesis.given(ANY | FEW)
def test_words_are_the_runs_of_letters_and_what_stands_between_them_one_token_each(text):
    assert split(text, "words") == ["".join(run) for _, run in itertools.groupby(text, in_a_word)]


@BY
@hypothesis.given(text=ANY | FEW)
def test_the_tokens_joined_are_the_text_and_none_is_empty(by, text):
    tokens = split(text, by)
    assert "".join(tokens) == text
    assert all(tokens)
    assert by == "words" or len(tokens) == len(text)


def test_a_line_of_verse_by_hand():
    assert split("To be, or\nnot", "words") == ["To", " ", "be", ", ", "or", "\n", "not"]
    assert list(map(shown, (" ", ", ", "\n", "\t", "be"))) == ["␣", ",␣", "↵", "⇥", "be"]


# --- the vocabulary


@hypothesis.given(st.lists(st.sampled_from("abcdef"), max_size=40), st.integers(1, 5))
def test_the_vocabulary_is_what_is_frequent_enough_and_counts_the_rest(tokens, least):
    vocabulary, counted = Vocabulary.of(tokens, least, "characters"), Counter(tokens)
    assert set(vocabulary.tokens) == {token for token in tokens if tokens.count(token) >= least}
    assert list(vocabulary.counts[:-1]) == [counted[token] for token in vocabulary.tokens]
    assert list(vocabulary.counts[:-1]) == sorted(vocabulary.counts[:-1], reverse=True)
    assert sum(vocabulary.counts) == len(tokens)
    assert vocabulary.unknown == len(vocabulary.tokens) == len(vocabulary.shown) - 1


def test_equally_frequent_tokens_stand_in_the_order_of_their_text():
    assert Vocabulary.of("cabbac", 1, "characters").tokens == ("a", "b", "c")


@BY
@hypothesis.given(text=FEW, least=st.integers(1, 3))
def test_decoding_gives_the_text_with_the_unknown_marked_and_encodes_to_the_same(by, text, least):
    tokens = split(text, by)
    vocabulary = Vocabulary.of(tokens, least, by)
    indices = vocabulary.encode(text)
    marked = "".join(token if tokens.count(token) >= least else UNKNOWN for token in tokens)
    assert vocabulary.decode(indices) == marked
    assert np.array_equal(vocabulary.encode(marked), indices)
    assert np.array_equal(vocabulary.encode_tokens(tokens), indices)
    if least == 1:
        assert marked == text


# --- works

GUTENBERG = """The Project Gutenberg eBook of some plays
with a licence
*** START OF THE PROJECT GUTENBERG EBOOK SOME PLAYS ***
Some Plays
by Nobody

     Contents

     THE SONG
     THE STORM
     THE KING

THE SONG

I sing of THE KING
and of The Storm
      THE END

THE STORM

Contents
ACT I
The wind. THE STORM is here.
THE SONG
is over

THE KING

He reads THE KING
*** END OF THE PROJECT GUTENBERG EBOOK SOME PLAYS ***
Donate
"""


def test_a_gutenberg_file_is_cut_at_the_titles_of_its_contents():
    """A title within a line, or of a work that has begun already, cuts nothing."""
    found = works(GUTENBERG)
    assert [work.title for work in found] == ["THE SONG", "THE STORM", "THE KING"]
    assert found[0].text == "THE SONG\n\nI sing of THE KING\nand of The Storm\n      THE END\n\n"
    assert found[1].text.startswith("THE STORM\n\nContents")
    assert found[1].text.endswith("THE SONG\nis over\n\n")
    assert found[2].text == "THE KING\n\nHe reads THE KING\n"


def test_the_licence_is_no_part_of_a_work():
    inside = without_licence(GUTENBERG)
    assert inside.startswith("\nSome Plays")
    assert inside.endswith("He reads THE KING\n")
    assert without_licence("no asterisks\n*** here ***\n") == "no asterisks\n*** here ***\n"


def test_a_table_of_something_else_leaves_the_text_whole():
    text = "Contents\n\nOne\nTwo\nThree\n\nOne\n\nfirst\n\nThree\n\nthird\n\nTwo\n\nsecond\n"
    assert works(text) == [Work("", text)]


@pytest.mark.parametrize("before", ["", "A sonnet\nor two.\n\n"])
def test_old_editions_are_cut_where_a_cast_follows_a_title_and_nothing_before_the_first_is_lost(before):
    found = works(before + texts.TEXT)
    assert [work.title for work in found] == ["THE FIRST PLAY", "THE SECOND PLAY", "THE THIRD PLAY"]
    assert "".join(work.text for work in found) == before + texts.TEXT
    assert all(work.text.count("DRAMATIS PERSONAE") == 1 for work in found)


def test_titles_with_numbers_apostrophes_and_another_spelling_of_the_cast_are_found():
    heads = ("1 KING HENRY IV", "ALL'S WELL, THAT ENDS", "A MID-SUMMER’S DREAM")
    text = "".join(f"  {head}\n\n\n\tDRAMATIS PERSONÆ\n\nA speech in {head}.\n\n" for head in heads)
    assert tuple(work.title for work in works(text)) == heads


@pytest.mark.parametrize("text", ["one line", "prose\nand prose\n", "  ONE PLAY\n\nDRAMATIS PERSONAE\n\nall of it\n"])
def test_whatever_else_is_one_work(text):
    assert works(text) == [Work("", text)]


@pytest.mark.parametrize("many", [2, 3, 11, 12, 23, 24, 37, 100])
def test_of_every_twelve_works_one_is_held_out_whole(many):
    found = [Work(str(number), f"work {number}") for number in range(many)]
    learned, held = hold_out(found)
    assert sorted(learned + held, key=found.index) == found
    assert len(held) == max(1, many // 12)
    places = [0, *(found.index(work) + 1 for work in held), many + 1]
    gaps = np.diff(places)
    assert gaps[1:-1].max(initial=0) - gaps[1:-1].min(initial=many) <= 1  # evenly spread
    assert gaps.min() >= 1


@pytest.mark.parametrize("text", ["x\n" * 500, "words " * 200, "a" * 999 + "\n" + "b" * 80])
def test_of_a_single_work_the_end_is_held_out(text):
    (learned,), (held,) = hold_out([Work("", text)])
    assert learned.text + held.text == text
    assert 0 < len(held.text) <= 0.1 * len(text) + 1
    if "\n" in text[int(0.9 * len(text)) :]:
        assert learned.text.endswith("\n")


# --- a corpus, and its windows

SIZES = st.lists(st.integers(0, 30), min_size=1, max_size=5)


@hypothesis.given(SIZES, st.integers(1, 12), st.booleans())
def test_windows_do_not_overlap_and_reach_into_no_other_work(sizes, length, all_read):
    starts = np.cumsum([0, *sizes])
    works = tuple(np.arange(a, b) for a, b in itertools.pairwise(starts))
    found = windows(works, length, all_read=all_read)
    left_out = int(length % 2 == 0 and not all_read)  # after each, so that neighbours begin at different turns
    assert found.shape == (sum((size + left_out) // (length + left_out) for size in sizes), length)
    assert len(np.unique(found)) == found.size
    for window in found:
        assert window.tolist() == list(range(window[0], window[0] + length))
        assert np.searchsorted(starts, window[0], "right") == np.searchsorted(starts, window[-1], "right")


def test_a_corpus_is_its_works_and_knows_only_what_is_learned_from():
    corpus = Corpus.of(texts.TEXT, "words", 2)
    first, second, third = texts.TEXT.split("  THE ")[1:]
    learned = ["  THE " + first, "  THE " + third]
    assert corpus.titles == ("THE SECOND PLAY",)
    counted = Counter(token for work in learned for token in split(work, "words"))
    assert dict(zip(corpus.vocabulary.tokens, corpus.vocabulary.counts, strict=False)) == {
        token: n for token, n in counted.items() if n >= 2
    }
    for work, indices in zip((*learned, "  THE " + second), (*corpus.train, *corpus.held_out), strict=True):
        expected = [token if counted[token] >= 2 else UNKNOWN for token in split(work, "words")]
        assert corpus.vocabulary.decode(indices) == "".join(expected)
        assert len(indices) == len(expected)
    assert corpus.excerpt.sizes == (sum(map(len, corpus.train)), len(corpus.held_out[0]))


def test_too_little_to_learn_from_is_said():
    with pytest.raises(TextError, match="fewer than two words that occur 9 times: lower the minimum count"):
        Corpus.of("one two three four " * 4, "words", 9)


@pytest.mark.parametrize("most", [40, 200, 10**6])
def test_the_excerpt_is_a_stretch_of_each_work_that_was_held_out(monkeypatch, most):
    monkeypatch.setattr(text_corpus, "EXCERPT", most)
    many = "".join(texts.play(f"PLAY {number}", 1) for number in range(25))
    corpus = Corpus.of(many, "words", 1)
    parts = corpus.excerpt.held_out
    assert len(parts) == len(corpus.held_out) == 2
    for part, work in zip(parts, corpus.held_out, strict=True):
        assert len(part) == min(len(work), most // 2)
        whole, piece = work.tolist(), part.tolist()
        assert any(whole[i : i + len(piece)] == piece for i in range(len(whole)))


# --- the excerpt's file


@pytest.fixture(scope="module")
def excerpt() -> Excerpt:
    return Corpus.of(texts.TEXT + "\nA word like no other: naïve\0⟨unk⟩ \U0001d11e", "words", 1).excerpt


def test_what_is_read_is_what_was_saved_and_the_same_excerpt_is_the_same_file(excerpt, tmp_path):
    for name in ("text.npz", "again"):
        excerpt.save(tmp_path / name)
    assert (tmp_path / "text.npz").read_bytes() == (tmp_path / "again").read_bytes()
    found = Excerpt.load(tmp_path / "text.npz")
    assert found.vocabulary == excerpt.vocabulary
    assert (found.titles, found.sizes) == (excerpt.titles, excerpt.sizes)
    assert all(np.array_equal(a, b) for a, b in zip(found.held_out, excerpt.held_out, strict=True))
    assert np.array_equal(found.windows(16), excerpt.windows(16))
    assert found.probabilities.sum() == pytest.approx(1)


@pytest.mark.parametrize(
    "spoil",
    [
        lambda content: b"",
        lambda content: b"not a file of numbers",
        lambda content: b"\x89PNG\r\n\x1a\n" + content,
        lambda content: content[:10],
        lambda content: content[: len(content) // 2],
        lambda content: content[:-1],
        lambda content: content[:400] + bytes(200) + content[600:],
    ],
    ids=["empty", "words", "a picture", "its first bytes", "half", "without the last byte", "a hole"],
)
def test_a_damaged_file_is_refused_with_a_sentence(excerpt, tmp_path, spoil):
    path = tmp_path / "text.npz"
    excerpt.save(path)
    path.write_bytes(spoil(path.read_bytes()))
    with pytest.raises(TextError, match=r"text\.npz"):
        Excerpt.load(path)


@pytest.mark.parametrize(
    "wrong",
    [
        {"held_out": np.array([10**6])},
        {"held_out": np.array([-1])},
        {"held_out": np.array([], dtype=np.int64), "lengths": np.array([0])},
        {"lengths": np.array([], dtype=np.int64)},
        {"lengths": np.array([[1]])},
        {"lengths": np.array([10**9])},
        {"counts": np.array([1, 2])},
        {"counts": np.array(["a"])},
        {"counts": None},
        {"tokens": np.zeros(3, dtype=np.uint8)},
        {"tokens": np.frombuffer(b"\x01\x00\x00\x00\xff\xff\xff\x7fab", dtype=np.uint8)},
        {"tokens": np.frombuffer(b"\x01\x00\x00\x00\x01\x00\x00\x00\xff", dtype=np.uint8)},
        {"titles": np.array([None])},
        {"by": np.array("lines")},
        {"by": np.array(["words", "words"])},
        {"sizes": np.array([1])},
        {"sizes": np.array([-1, 5])},
    ],
    ids=str,
)
def test_a_file_whose_parts_do_not_fit_is_refused_with_a_sentence(excerpt, tmp_path, wrong):
    path = tmp_path / "text.npz"
    excerpt.save(path)
    with np.load(path) as file:
        values = dict(file) | wrong
    np.savez(path, **{name: value for name, value in values.items() if value is not None})
    with pytest.raises(TextError, match=r"text\.npz"):
        Excerpt.load(path)


def test_a_byte_that_is_wrong_is_noticed_or_harmless(excerpt, tmp_path):
    path, noticed = tmp_path / "text.npz", 0
    excerpt.save(path)
    content = path.read_bytes()
    for place in range(0, len(content), 1 + len(content) // 150):
        path.write_bytes(content[:place] + bytes([content[place] ^ 0x41]) + content[place + 1 :])
        try:
            found = Excerpt.load(path)
        except TextError:
            noticed += 1
            continue
        assert found.vocabulary == excerpt.vocabulary
        assert np.array_equal(found.held_out[0], excerpt.held_out[0])
    assert noticed > 50
