"""The one record for a model that is not ours."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from inspect import signature
from typing import Any

import torch
from torch import nn

from transformer.capturing.foreign.pictures import Pictures
from transformer.capturing.foreign.reading import MOST, Given, Pairs, Reader, Says, Texts
from transformer.capturing.foreign.tokenizers import ForeignError, NumberTokenizer, Tokenizer
from transformer.foundation.checks import reason
from transformer.foundation.foreign import quoted

SIZES = ("vocab_size", "num_tokens", "n_vocab", "d_vocab")
"""How models name the number of tokens that they know."""
LENGTHS = ("max_position_embeddings", "n_positions", "block_size", "max_seq_len", "context_length", "n_ctx")
"""How models name the most positions that they read."""
STARTS = ("decoder_start_token_id", "bos_token_id", "pad_token_id")
TRIED = ("a", "0")
"""Inputs with which a model is tried: the first that its tokenizer can read."""
WHAT = {"text": "a text", "pair": "two texts", "picture": "a picture", "tokens": "token numbers"}


@dataclass(frozen=True, eq=False)
class Foreign:
    """A model of others, in evaluation mode, with what it reads."""

    name: str
    model: nn.Module
    reader: Reader

    @property
    def kind(self) -> str:
        """Its class: "GPT2LMHeadModel"."""
        return type(self.model).__name__

    @property
    def says(self) -> Says:
        """What it reads: a text; the two texts of an encoder-decoder; a picture; token numbers, without a tokenizer."""
        return self.reader.says

    @property
    def longest(self) -> int:
        """Positions of an input at most."""
        return self.reader.longest

    def given(self, text: str = "", second: str = "", picture: bytes | None = None) -> Given:
        """An input made ready for `capture`: a text, or token numbers; in an encoder-decoder `second` is what the
        decoder reads; of a picture the bytes of its file, or the built-in one.

        Raises ForeignError with a sentence where it is empty, too long, beyond the vocabulary, or no picture.
        """
        return self.reader.given(text, second, picture)

    def word(self, token: int) -> str:
        """One token as a person reads it."""
        return self.reader.word(token)

    def decode(self, tokens: Sequence[int]) -> str:
        """The text of these tokens."""
        return self.reader.decode(tokens)


def foreign(
    name: str, model: nn.Module, tokenizer: Tokenizer | None = None, preparation: Mapping[str, Any] | None = None
) -> Foreign:
    """A model with what it reads, by what it says of itself. It is put into evaluation mode and tried once.

    `preparation` is what a preprocessor_config.json holds. Raises ForeignError where it is not known what it reads, and
    where it cannot be called with that alone.
    """
    made = Foreign(name, model.eval(), _reader(model, tokenizer or NumberTokenizer(), preparation or {}))
    _try(made)
    return made


def _reader(model: nn.Module, tokenizer: Tokenizer, preparation: Mapping[str, Any]) -> Reader:
    config = getattr(model, "config", None)
    device = next((each.device for each in model.parameters()), torch.device("cpu"))
    wanted = getattr(model, "main_input_name", "input_ids")
    if wanted == "pixel_values":
        return Pictures.of(model, preparation, device)
    if wanted != "input_ids":
        raise ForeignError(f"It reads {quoted(wanted)}. Texts, token numbers and pictures can be read here.")
    longest = min(MOST, *_lengths(model))
    texts = Texts(tokenizer, _size(model), longest, device)
    if getattr(config, "is_encoder_decoder", False) and "decoder_input_ids" in signature(model.forward).parameters:
        start = _number(model, STARTS, least=0)
        if start is None:
            raise ForeignError("Its config does not say with which token its decoder begins: decoder_start_token_id.")
        return Pairs(texts, start)
    return texts


def _number(model: nn.Module, names: Sequence[str], least: int = 1) -> int | None:
    """The first of these that its config says, or the model itself."""
    for place in (getattr(model, "config", None), model):
        for name in names:
            value = place.get(name) if isinstance(place, dict) else getattr(place, name, None)
            if isinstance(value, int) and value >= least:
                return int(value)
    return None


def _size(model: nn.Module) -> int | None:
    """How many tokens it knows; of a model that does not say, the rows of its table where it has one table only."""
    tables = [each.num_embeddings for each in model.modules() if isinstance(each, nn.Embedding)]
    return _number(model, SIZES) or (tables[0] if len(tables) == 1 else None)


def _lengths(model: nn.Module) -> list[int]:
    """What bounds its positions. In RoBERTa's tables of positions those up to that of the padding are never used."""
    tables = [
        each.num_embeddings - each.padding_idx - 1
        for name, each in model.named_modules()
        if isinstance(each, nn.Embedding) and name.endswith("position_embeddings") and each.padding_idx is not None
    ]
    return [_number(model, LENGTHS) or MOST, *tables]


@torch.no_grad()
def _try(made: Foreign) -> None:
    """Call it with a short input: what cannot be called is refused where it is opened."""
    for text in TRIED:
        try:
            given = made.given(text)
        except ForeignError:
            continue
        try:
            made.model(*given.args, **given.named)
        except Exception as error:  # it is somebody else's code
            what = WHAT[made.says]
            raise ForeignError(f"It cannot be called with {what} alone: {reason(error)}") from error
        return
