"""The strict reader of what a student's process answers: its code may have written anything there.

An answer has the shape, the types and the lengths that a bench's answer has, or it is refused whole. What it says may
still be made up: a reader cannot know what the code computed.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import torch
from safetensors import SafetensorError
from safetensors.torch import load
from torch import Tensor

from transformer.checking.bench import DTYPES, WIDEST_WINDOW, Answer, Described, Made, Parameter
from transformer.checking.faults import FAULTS, LONGEST_NAME, MOST_AXES, MOST_NAMES, MOST_TENSORS, Fault
from transformer.checking.isolation.limits import PROMISES
from transformer.checking.isolation.wire import Frames
from transformer.checking.recording import LARGEST, MOST_STEPS, Step
from transformer.foundation.checks import UserError
from transformer.foundation.foreign import DAMAGED, MOST_WORDS, quoted, record

PRECISIONS = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
"""Of a gradient."""
PARAMETER = "parameter "
"""Before a name among the sources of a step."""

T = TypeVar("T")
Reader = Callable[[Any], T]


class ForgedError(UserError):
    """No bench answers so; the message says what is wrong with it, to stand behind a colon."""


class Message:
    """One message of a student's process. Its parts are read once each; what is left over is refused at its end."""

    def __init__(self, frames: Frames, number: int) -> None:
        """Read the frames of the answer to request `number`. Raises ForgedError."""
        words, numbers = frames
        try:
            self._fields = record(words)
        except ValueError as error:
            raise ForgedError(str(error)) from None
        if int.from_bytes(numbers[:8], "little") > MOST_WORDS:
            raise ForgedError("its header of tensors is too long")
        try:
            self._tensors = load(numbers)
        except (SafetensorError, *DAMAGED):
            raise ForgedError("its tensors cannot be read") from None
        if self._fields.pop("number", None) != number:
            raise ForgedError("it came before it was asked for, or out of turn")

    def promises(self) -> tuple[str, ...]:
        """What the process is held to, as it says before it runs any code."""
        return self._read({"kept": list_of(one_of(PROMISES), len(PROMISES))})["kept"]

    def fault(self) -> Fault | None:
        """What the code did wrong; None where there is an answer instead."""
        if "refused" not in self._fields:
            return None
        found = self._read({"refused": record_of(_FAULT)})["refused"]
        if len(found["words"]) != FAULTS[found["name"]].count("{}"):
            raise ForgedError(f"the fault {quoted(found['name'])} has {len(found['words'])} words")
        return Fault(**found)

    def described(self) -> Described:
        """What is on the bench."""
        one = record_of({"name": text, "optional": truth})
        many = list_of(lambda value: Parameter(**one(value)), MOST_NAMES)
        return Described(**self._answer({"name": text, "is_class": truth, "parameters": many, "forward": many}))

    def made(self) -> Made:
        """What was made of a class."""
        named = dict_of(self._tensor, MOST_NAMES)
        windows = dict_of(lambda each: whole(each, 1, WIDEST_WINDOW), MOST_NAMES)
        return Made(**self._answer({"parameters": named, "buffers": named, "windows": windows}))

    def answer(self, arguments: Sequence[Any], *, recorded: bool, gradients: bool) -> Answer:
        """What was returned for these arguments."""
        places = [str(place) for place, each in enumerate(arguments) if isinstance(each, Tensor)]
        derived = [each for each in arguments if isinstance(each, Tensor) and each.is_floating_point()]
        counter = itertools.count()

        def step(value: Any) -> Step:
            place = next(counter)
            fields = {
                "name": text,
                "value": self._tensor,
                "sources": list_of(lambda each: source(each, place, len(arguments)), MOST_TENSORS),
                "dim": lambda each: None if each is None else whole(each, 0, MOST_AXES - 1),
            }
            found = Step(**record_of(fields)(value))
            if found.value.numel() > LARGEST or (found.dim is not None and found.dim >= found.value.dim()):
                raise ForgedError(f"step {place} is none that is recorded")
            return found

        found = self._answer(
            {
                "values": list_of(self._tensor, MOST_TENSORS, least=1),
                "array": truth,
                "changed": list_of(lambda each: int(one_of(places)(str(whole(each, 0, len(arguments))))), len(places)),
                "gradients": list_of(lambda each: None if each is None else self._tensor(each), len(derived)),
                "unused": list_of(text, MOST_NAMES),
                "steps": list_of(step, MOST_STEPS if recorded else 0),
            }
        )
        if len(found["gradients"]) != len(derived) * gradients or (found["unused"] and not gradients):
            raise ForgedError("it has other gradients than were asked for")
        for each, argument in zip(found["gradients"], derived, strict=False):
            if each is not None and (each.shape != argument.shape or each.dtype not in PRECISIONS):
                raise ForgedError("a gradient has another shape than its argument")
        return Answer(**found)

    def _answer(self, fields: Mapping[str, Reader[Any]]) -> dict[str, Any]:
        found: dict[str, Any] = self._read({"answer": record_of(fields)})["answer"]
        return found

    def _read(self, fields: Mapping[str, Reader[Any]]) -> dict[str, Any]:
        found = record_of(fields)(self._fields)
        if self._tensors:
            raise ForgedError("it has tensors that stand nowhere")
        return found

    def _tensor(self, value: Any) -> Tensor:
        found = self._tensors.pop(record_of({"tensor": text})(value)["tensor"], None)
        if found is None:
            raise ForgedError("it names a tensor that is not there")
        if found.dtype not in DTYPES or found.dim() > MOST_AXES:
            raise ForgedError("a tensor is of another type than is compared")
        return found


# --- the kinds of parts


def text(value: Any) -> str:
    if not isinstance(value, str) or len(value) > LONGEST_NAME + len(PARAMETER):
        raise ForgedError(f"{_shown(value)} stands where a short text should be")
    return value


def truth(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ForgedError(f"{_shown(value)} stands where true or false should be")
    return value


def whole(value: Any, low: int, high: int) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
        raise ForgedError(f"{_shown(value)} stands where a whole number from {low} to {high} should be")
    return value


def one_of(known: Sequence[str]) -> Reader[str]:
    def read(value: Any) -> str:
        if text(value) not in known:
            raise ForgedError(f"{quoted(value)} is none of what it could be")
        return str(value)

    return read


def list_of(each: Reader[T], most: int, least: int = 0) -> Reader[tuple[T, ...]]:
    def read(value: Any) -> tuple[T, ...]:
        if not isinstance(value, list) or not least <= len(value) <= most:
            raise ForgedError(f"{_shown(value)} stands where a list of {least} to {most} should be")
        return tuple(map(each, value))

    return read


def dict_of(each: Reader[T], most: int) -> Reader[dict[str, T]]:
    def read(value: Any) -> dict[str, T]:
        if not isinstance(value, dict) or len(value) > most:
            raise ForgedError(f"{_shown(value)} stands where a record of at most {most} should be")
        return {text(name): each(inner) for name, inner in value.items()}

    return read


def record_of(fields: Mapping[str, Reader[Any]]) -> Reader[dict[str, Any]]:
    def read(value: Any) -> dict[str, Any]:
        if not isinstance(value, dict) or value.keys() != fields.keys():
            raise ForgedError(f"{_shown(value)} stands where a record of {', '.join(fields)} should be")
        return {name: reader(value[name]) for name, reader in fields.items()}

    return read


def source(value: Any, place: int, arguments: int) -> str:
    """Where a step's tensor comes from, as `Step.sources` has it."""
    found = re.fullmatch(r"|parameter .+|(?P<kind>input|step) (?P<number>0|[1-9]\d{0,5})", text(value), re.DOTALL)
    if found is None or (found["kind"] and int(found["number"]) >= (place if found["kind"] == "step" else arguments)):
        raise ForgedError(f"step {place} reads {quoted(value)}")
    return str(value)


_FAULT: Mapping[str, Reader[Any]] = {
    "name": one_of(tuple(FAULTS)),
    "words": list_of(text, 8),
    "line": lambda value: whole(value, 0, 2**31),
    "text": text,
    "said": text,
    "fatal": truth,
}


def _shown(value: Any) -> str:
    """A foreign value in a sentence: a list may be of any size and depth, and is not repeated."""
    if isinstance(value, list):
        return f"a list of {len(value)}"
    if isinstance(value, dict):
        return f"a record of {len(value)}"
    return quoted(value)
