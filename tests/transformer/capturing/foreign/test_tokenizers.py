"""Tokens on the axes: as a person reads them, whatever kind of tokenizer made them."""

from __future__ import annotations

from typing import Any

import pytest
import transformers
from tokenizers import Tokenizer, decoders, models, pre_tokenizers

from tests.kit.foreign.folders import SPECIAL, byte_level, pieces, sentence_pieces
from transformer.capturing.foreign.tokenizers import (
    LONGEST_NAME,
    ForeignError,
    HuggingFaceTokenizer,
    NumberTokenizer,
    PlainTokenizer,
)


def wrapped(make: Any) -> HuggingFaceTokenizer:
    theirs = transformers.PreTrainedTokenizerFast(tokenizer_object=make(), **SPECIAL[make])
    return HuggingFaceTokenizer(theirs)


def names(tokenizer: Any, text: str) -> list[str]:
    return [tokenizer.word(token) for token in tokenizer.encode(text)]


def test_byte_level_tokens_are_text() -> None:
    tokenizer = wrapped(byte_level)
    text = "The king is dead, long live the king!"
    found = names(tokenizer, text)
    assert "".join(found) == text
    assert " king" in found
    assert tokenizer.decode(tokenizer.encode(text)) == text
    assert names(tokenizer, "\n") == ["↵"]
    assert names(tokenizer, "  ") == ["␣", "␣"]
    assert names(tokenizer, "<|endoftext|>") == ["<|endoftext|>"]
    assert tokenizer.separators == {0}


def test_a_part_of_a_character_is_written_by_the_signs_of_its_bytes() -> None:
    """GPT-2's table: bytes that are printable in Latin-1 stand for themselves, the others are moved up from 256."""
    tokenizer = wrapped(byte_level)
    assert names(tokenizer, "é") == ["Ã", "©"]  # C3 A9
    assert names(tokenizer, "日") == ["æ", "Ĺ", "¥"]  # E6 97 A5; 97 is the 0x56th of those moved up
    assert tokenizer.decode(tokenizer.encode("日")) == "日"


def test_what_cannot_be_printed_is_written_by_such_signs_too() -> None:
    """A blank at which no line breaks, C2 A0, as one token; it is no question mark."""
    made = Tokenizer(models.BPE({"Â": 0, "ł": 1, "Âł": 2}, [("Â", "ł")]))
    made.pre_tokenizer, made.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    tokenizer = HuggingFaceTokenizer(transformers.PreTrainedTokenizerFast(tokenizer_object=made))
    assert tokenizer.encode("\u00a0") == [2]
    assert names(tokenizer, "\u00a0") == ["Âł"]


def test_pieces_of_words_keep_their_sign_and_special_tokens_their_brackets() -> None:
    tokenizer = wrapped(pieces)
    assert names(tokenizer, "The king standing") == ["[CLS]", "the", "king", "stand", "##ing", "[SEP]"]
    assert names(tokenizer, "queen [MASK]") == ["[CLS]", "[UNK]", "[MASK]", "[SEP]"]
    assert tokenizer.encode("king", bare=True) == [6]
    assert tokenizer.separators == {0, 1, 2, 3, 4}


def test_a_piece_of_a_sentence_that_begins_a_word_begins_with_a_blank() -> None:
    tokenizer = wrapped(sentence_pieces)
    found = names(tokenizer, "The king is dead")
    assert found[-1] == "</s>"
    assert "".join(found[:-1]).replace("␣", " ") == " The king is dead"
    assert not any("▁" in name for name in found)


def test_bytes_that_a_vocabulary_falls_back_to_are_written_as_such() -> None:
    """As in Llama 2: a character that the vocabulary lacks is taken byte by byte."""
    words = ["<unk>", "a", "▁", *(f"<0x{byte:02X}>" for byte in range(256))]
    made = Tokenizer(models.BPE({word: i for i, word in enumerate(words)}, [], unk_token="<unk>", byte_fallback=True))
    made.pre_tokenizer = pre_tokenizers.Metaspace()
    made.decoder = decoders.Sequence([decoders.ByteFallback(), decoders.Metaspace()])
    tokenizer = HuggingFaceTokenizer(transformers.PreTrainedTokenizerFast(tokenizer_object=made, unk_token="<unk>"))
    assert names(tokenizer, "aé") == ["␣", "a", "<0xC3>", "<0xA9>"]


class Letters:
    """nanoGPT's way for characters."""

    letters = "\n abc" + "x"
    by_letter: dict[str, int] = {letter: i for i, letter in enumerate(letters)}  # noqa: RUF012

    def encode(self, text: str) -> list[int]:
        return [self.by_letter[letter] for letter in text]

    def decode(self, tokens: list[int]) -> str:
        return "".join(self.letters[token] for token in tokens)


def test_a_tokenizer_of_ones_own() -> None:
    tokenizer = PlainTokenizer(Letters())
    assert names(tokenizer, "ab\n c") == ["a", "b", "↵", "␣", "c"]
    assert tokenizer.decode([2, 3]) == "ab"
    assert tokenizer.word(77) == "⟨77⟩"
    with pytest.raises(ForeignError, match=r"^Its tokenizer cannot read this text: it has no é.$"):
        tokenizer.encode("é")


def test_token_numbers_are_typed_where_there_is_no_tokenizer() -> None:
    tokenizer = NumberTokenizer()
    assert tokenizer.encode(" 3 1,4\n15 ") == [3, 1, 4, 15]
    assert names(tokenizer, "3 15") == ["3", "15"]
    for wrong in ("king", "-1", "1.5", "²", "٣", "9" * 5000):
        with pytest.raises(
            ForeignError, match=r"^“.{1,40}” is no token number\. It has no tokenizer, .* as in 3 1 4\.$"
        ):
            tokenizer.encode(f"3 {wrong} 4")


def test_a_name_is_never_long_and_never_on_two_lines() -> None:
    words = {"a" * 5000: 0, "a\r\n\tb": 1}
    made = Tokenizer(models.WordLevel(words, unk_token="a\r\n\tb"))
    tokenizer = HuggingFaceTokenizer(transformers.PreTrainedTokenizerFast(tokenizer_object=made))
    assert tokenizer.word(0) == "a" * (LONGEST_NAME - 1) + "…"
    assert tokenizer.word(1) == "a␍↵⇥b"
    assert tokenizer.word(2) == "⟨2⟩"
