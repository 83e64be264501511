"""A model that somebody's own code builds: a function in a module that is named when the program is started.

This is the one place that runs code of others: whoever starts the program names it.
"""

from __future__ import annotations

import importlib
import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

from torch import nn

from transformer.capturing.foreign import Foreign, ForeignError, foreign
from transformer.capturing.foreign.tokenizers import HuggingFaceTokenizer, PlainTokenizer, Tokenizer
from transformer.foundation.checks import reason
from transformer.foundation.foreign import shortened

NAMED = re.compile(r"([^\W\d]\w*(?:\.[^\W\d]\w*)*):([^\W\d]\w*)")
HOW = "It should return a torch.nn.Module, or one and its tokenizer, which has encode(text) and decode(tokens)."


def built(named: str) -> Foreign:
    """The model that a function builds, named as in "my_model:build": the module lies here or on Python's path.

    The function takes nothing and returns a model, or a model and its tokenizer: one of transformers, or anything with
    `encode(text) -> list[int]` and `decode(list[int]) -> str`. The model is called with tokens [1, position] alone. A
    model of transformers is called as one that lies in a folder. Raises ForeignError with a sentence, also for whatever
    the code raises.
    """
    found = NAMED.fullmatch(named)
    if found is None:
        raise ForeignError(f"Name a module and a function in it, as in my_model:build, not “{shortened(named)}”.")
    module, function = found.groups()
    build = getattr(_imported(module), function, None)
    if not callable(build):
        raise ForeignError(f"The module {module} has no function {function}.")
    with _running(f"{named} does not build a model"):
        made = build()
    model, tokenizer = made if isinstance(made, tuple) and len(made) == 2 else (made, None)
    if not isinstance(model, nn.Module):
        raise ForeignError(f"{named} returns a value of the type {type(model).__name__}. {HOW}")
    return foreign(named, model, _tokenizer(named, tokenizer))


def _imported(name: str) -> ModuleType:
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    with _running(f"The module {name} cannot be imported"):
        try:
            return importlib.import_module(name)
        except ModuleNotFoundError as error:
            if error.name is not None and f"{name}.".startswith(f"{error.name}."):
                raise ForeignError(f"There is no module {error.name} in this folder or on Python's path.") from None
            raise


def _tokenizer(named: str, theirs: Any) -> Tokenizer | None:
    if theirs is None:
        return None
    if "transformers" in sys.modules:
        from transformers import PreTrainedTokenizerBase

        if isinstance(theirs, PreTrainedTokenizerBase):
            return HuggingFaceTokenizer(theirs)
    if not all(callable(getattr(theirs, name, None)) for name in ("encode", "decode")):
        raise ForeignError(f"{named} returns a tokenizer of the type {type(theirs).__name__}. {HOW}")
    return PlainTokenizer(theirs)


@contextmanager
def _running(what: str) -> Iterator[None]:
    """Whatever somebody's code raises becomes a sentence; the error itself stays behind it, for whoever wrote it."""
    try:
        yield
    except ForeignError:
        raise
    except (Exception, SystemExit) as error:
        raise ForeignError(f"{what}: it raises {type(error).__name__}: {reason(error)}") from error
