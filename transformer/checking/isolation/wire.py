"""Messages between the check and a student's process: JSON, and its tensors as safetensors. Nothing is unpickled.

A message is two frames. In the first a tensor is the record {"tensor": number}; the second holds the tensors. A
dataclass arrives as a record of its fields, a tuple as a list.
"""

from __future__ import annotations

import dataclasses
import json
from multiprocessing.connection import Connection
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor

from transformer.foundation.checks import UserError
from transformer.foundation.foreign import record

LARGEST = 2**26
"""Bytes in a frame."""


class WireError(UserError):
    """A message that cannot be sent or read; the message is one sentence."""


def send(connection: Connection, message: dict[str, Any]) -> None:
    """Send a record of texts, numbers, lists, records and tensors."""
    tensors: list[Tensor] = []
    words = json.dumps(_packed(message, tensors)).encode()
    numbers = save({str(number): tensor for number, tensor in enumerate(tensors)})
    if max(len(words), len(numbers)) > LARGEST:
        raise WireError(f"it returned more than {LARGEST // 2**20} MB")
    connection.send_bytes(words)
    connection.send_bytes(numbers)


def receive(connection: Connection) -> dict[str, Any]:
    """The next message. Raises WireError for one that is none, and EOFError where nobody is there any more."""
    try:
        words, numbers = connection.recv_bytes(LARGEST), connection.recv_bytes(LARGEST)
    except ConnectionError:
        raise EOFError from None
    except OSError:
        raise WireError("it sent a message that is too long") from None
    try:
        return _unpacked(record(words), load(numbers))
    except (ValueError, KeyError, SafetensorError):
        raise WireError("it sent a message that is none") from None


def _packed(value: Any, tensors: list[Tensor]) -> Any:
    if isinstance(value, Tensor):
        tensors.append(value.detach().cpu().contiguous().clone())
        return {"tensor": str(len(tensors) - 1)}
    if dataclasses.is_dataclass(value):
        value = {each.name: getattr(value, each.name) for each in dataclasses.fields(value)}
    if isinstance(value, bytes):
        return {"bytes": value.hex()}
    if isinstance(value, dict):
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
