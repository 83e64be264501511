"""What a model wants that it is not given, by its forward and its error; and the models that it is made of."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from inspect import Parameter, signature
from typing import Any

from torch import nn

from transformer.capturing.foreign.reading import Given
from transformer.foundation.foreign import shortened
from transformer.foundation.words import listed

PLAIN = (Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY)
SENSES = {
    "input_features": "sound",
    "input_values": "sound",
    "past_values": "numbers in time",
    "pixel_values_videos": "a film",
    "flattened_patches": "a picture in patches",
}
"""What models of the library transformers call an input that cannot be given here, and what it is."""


MOST = 6
"""Inputs that a sentence names, at most."""


def lacking(model: nn.Module, given: Given, error: BaseException) -> str:
    """A sentence with the inputs that a model's forward wants and was not given, by its parameters; may be empty.

    It wants those without a default, those that its error speaks of, and the main inputs of the models in it. Where
    there are none, the sentence has the tensors that it takes besides.
    """
    takes = [each for each in signature(model.forward).parameters.values() if each.kind in PLAIN]
    handed = {*given.named, *(each.name for each in takes[: len(given.args)])}
    rest = [each for each in takes if each.name not in handed]
    spoken, main = re.findall(r"\w+", str(error)), {each.main_input_name for _, each in _theirs(model)}
    wants = [each.name for each in rest if each.default is Parameter.empty or each.name in spoken or each.name in main]
    if wants:
        return f"It also reads {_listed(wants)}. Here a model is given one kind of input."
    tensors = [each.name for each in rest if "Tensor" in str(each.annotation) and "labels" not in each.name]
    return f"It can also be given {_listed(tensors)}." if tensors else ""


def _listed(names: Sequence[str]) -> str:
    named = [called(shortened(name)) for name in names[:MOST]]
    return listed([*named, f"{len(names) - MOST} more"] if len(names) > MOST else named)


def parts(model: nn.Module) -> list[tuple[str, nn.Module]]:
    """The models of the library transformers in a model, the outer ones first, that can be saved and opened alone."""
    import transformers

    return [(name, each) for name, each in _theirs(model) if name and hasattr(transformers, type(each).__name__)]


def is_theirs(model: object) -> bool:
    """Is it a model of the library transformers?"""
    if "transformers" not in sys.modules:
        return False
    from transformers import PreTrainedModel

    return isinstance(model, PreTrainedModel)


def _theirs(model: nn.Module) -> list[tuple[str, Any]]:
    return [(name, each) for name, each in model.named_modules() if is_theirs(each)]


def called(name: str) -> str:
    """An input by its name, and what it is where that is known: "input_values (sound)"."""
    return f"{name} ({SENSES[name]})" if name in SENSES else name
