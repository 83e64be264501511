"""The one record for a model that is not ours."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from inspect import signature
from typing import Any

import torch
from torch import nn

from transformer.capturing.capture import capture
from transformer.capturing.foreign.pictures import Pictures
from transformer.capturing.foreign.reading import MOST, Given, Pairs, Reader, Says, Texts
from transformer.capturing.foreign.tokenizers import ForeignError, NumberTokenizer, Tokenizer
from transformer.capturing.foreign.wanted import called, is_theirs, lacking, parts
from transformer.foundation.checks import reason
from transformer.foundation.foreign import shortened
from transformer.foundation.words import listed

SIZES = ("vocab_size", "num_tokens", "n_vocab", "d_vocab")
"""How models name the number of tokens that they know."""
LENGTHS = ("max_position_embeddings", "n_positions", "block_size", "max_seq_len", "context_length", "n_ctx")
"""How models name the most positions that they read."""
HAND_OVER = "To type a text, hand over its tokenizer beside the model."
STARTS = ("decoder_start_token_id", "bos_token_id", "pad_token_id")
TRIED = ("The king is dead, long live the king", "3 1 4 1 5 9 2 6 5 3 5 8 9", "a", "0")
"""Inputs with which a model is tried, of those that it can read: some models want more than one token."""
WHAT: Mapping[Says, str] = {
    "text": "a text",
    "pair": "two texts",
    "picture": "a picture",
    "tokens": "token numbers",
    "token pair": "token numbers",
}


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
        """What it reads: a text; the two texts of an encoder-decoder; a picture; without a tokenizer token numbers."""
        return self.reader.says

    @property
    def hint(self) -> str:
        """Why token numbers are typed and no text, and what to do to type one; empty where it is something else."""
        return self.reader.hint

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
    """A model with what it reads, by what it says of itself. It is put into evaluation mode and tried.

    `preparation` is what a preprocessor_config.json holds. Raises ForeignError where it is not known what it reads, and
    where it cannot be called with that alone.
    """
    tokenizer, preparation = tokenizer or NumberTokenizer(todo=HAND_OVER), preparation or {}
    try:
        made = Foreign(name, model.eval(), _reader(model, tokenizer, preparation))
        _try(made)
    except ForeignError as error:
        said, code = _parts(model, tokenizer, preparation)
        raise type(error)(f"{error}{said}", code) from error.__cause__
    return made


def _reader(model: nn.Module, tokenizer: Tokenizer, preparation: Mapping[str, Any]) -> Reader:
    config = getattr(model, "config", None)
    device = next((each.device for each in model.parameters()), torch.device("cpu"))
    wanted = getattr(model, "main_input_name", "input_ids")
    if wanted == "pixel_values":
        return Pictures.of(model, preparation, device)
    if wanted != "input_ids":
        raise ForeignError(
            f"It reads {called(shortened(wanted))}. What can be given here is a text, token numbers or a picture."
        )
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


def _try(made: Foreign) -> bool:
    """Capture it on a short input, and say whether attention was seen.

    Raises ForeignError where it cannot be called.
    """
    failed: tuple[Given, Exception] | None = None
    for given in list(_readable(made)):
        try:
            seen = capture(made.model, *given.args, **given.named)
        except Exception as error:  # it is somebody else's code
            failed = given, error
            continue
        return bool(seen.attentions())
    if failed is not None:
        said = f"It cannot be called with {WHAT[made.says]} alone: it stops with an error. {stopped(made, *failed)}"
        raise ForeignError(said.rstrip()) from failed[1]
    return False


def _readable(made: Foreign) -> Iterator[Given]:
    """Inputs that it can read."""
    for text in TRIED:
        with suppress(ForeignError):
            yield made.given(text)


def stopped(made: Foreign, given: Given, error: Exception) -> str:
    """What a model lacks that stopped on an input, in sentences; of own code also what it raised. It may be empty."""
    raised = "" if is_theirs(made.model) else f"It raises {type(error).__name__}: {reason(error).rstrip('.')}."
    return " ".join(filter(None, [lacking(made.model, given, error), raised]))


def _parts(model: nn.Module, tokenizer: Tokenizer, preparation: Mapping[str, Any]) -> tuple[str, str]:
    """A sentence with the parts of a model that can be opened on their own, and how they are saved; each is tried."""
    found: dict[str, Foreign] = {}
    for name, part in parts(model) if is_theirs(model) else []:
        if any(name.startswith(f"{outer}.") for outer in found):
            continue
        try:
            one = Foreign(name, part, _reader(part, tokenizer, preparation))
            if _try(one):
                found[name] = one
        except Exception:  # it is somebody else's code
            continue
    if not found:
        return "", ""
    names = listed([f"{name} ({one.kind})" for name, one in found.items()])
    whose = "This part of it can be opened, saved" if len(found) == 1 else "These parts of it can be opened, each saved"
    lines = []
    for name, one in found.items():
        folder = name.replace(".", "-")
        lines.append(f'model.{name}.save_pretrained("{folder}")')
        if one.says in ("text", "pair"):
            lines.append(f'tokenizer.save_pretrained("{folder}")')
        if one.says == "picture" and preparation:
            lines.append(f'image_processor.save_pretrained("{folder}")')
    return f" {whose} on its own: {names}.", "\n".join(lines)
