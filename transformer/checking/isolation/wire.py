"""Messages between the check and a student's process: JSON, and its tensors as safetensors. Nothing is unpickled.

A message is two frames. In the first a tensor is the record {"tensor": number}; the second holds the tensors. A
dataclass arrives as a record of its fields, a tuple as a list. What comes out of a student's process is read in
`answers.py` alone.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from multiprocessing.connection import Connection
from typing import Any

from safetensors.torch import load, save
from torch import Tensor

from transformer.checking.faults import MOST_BYTES
from transformer.foundation.checks import UserError
from transformer.foundation.foreign import MOST_WORDS

Frames = tuple[bytes, bytes]
LARGEST = 2 * MOST_BYTES + MOST_WORDS
"""Bytes of the second frame: results, and what was recorded on the way. MOST_WORDS are those of the first."""


LONG = "it is longer than any that is sent"


class TooLong(UserError):
    """A frame is longer than any that is sent; the message says so, to stand behind a colon."""


def packed(message: Mapping[str, Any]) -> Frames:
    """The frames of a record of texts, numbers, lists, records and tensors. Raises TooLong."""
    tensors: list[Tensor] = []
    words = json.dumps(_packed(message, tensors)).encode()
    if len(words) > MOST_WORDS or sum(each.numel() * each.element_size() for each in tensors) > 2 * MOST_BYTES:
        raise TooLong(LONG)  # before the tensors are copied
    numbers = save({str(number): tensor.contiguous().clone() for number, tensor in enumerate(tensors)})
    return words, numbers


def unpacked(frames: Frames) -> dict[str, Any]:
    """The record that was packed. Only for what the check itself has sent: it may come as anything else."""
    words, numbers = frames
    found: dict[str, Any] = _unpacked(json.loads(words), load(numbers))
    return found


def send(connection: Connection, frames: Frames) -> None:
    """Send both frames. Raises OSError where nobody is there any more."""
    for each in frames:
        connection.send_bytes(each)


def receive(connection: Connection) -> Frames:
    """The next two frames. Raises TooLong, and EOFError where no more comes or a frame breaks off."""
    try:
        return connection.recv_bytes(MOST_WORDS), connection.recv_bytes(LARGEST)
    except OSError:
        if connection.closed or not connection.readable:  # so the connection is left after too large a length
            raise TooLong(LONG) from None
        raise EOFError from None


def _packed(value: Any, tensors: list[Tensor]) -> Any:
    if isinstance(value, Tensor):
        tensors.append(value.detach())
        return {"tensor": str(len(tensors) - 1)}
    if dataclasses.is_dataclass(value):
        value = {each.name: getattr(value, each.name) for each in dataclasses.fields(value)}
    if isinstance(value, bytes):
        return {"bytes": value.hex()}
    if isinstance(value, Mapping):
        return {str(name): _packed(each, tensors) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_packed(each, tensors) for each in value]
    return value


def _unpacked(value: Any, tensors: dict[str, Tensor]) -> Any:
    if isinstance(value, list):
        return [_unpacked(each, tensors) for each in value]
    if not isinstance(value, dict):
        return value
    if value.keys() == {"tensor"}:
        return tensors[value["tensor"]]
    if value.keys() == {"bytes"}:
        return bytes.fromhex(value["bytes"])
    return {name: _unpacked(each, tensors) for name, each in value.items()}
