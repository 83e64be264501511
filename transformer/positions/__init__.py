"""Positional encodings: how a model is told the order of its tokens, and what each encoding says of itself.

A file in this folder is one encoding, a subclass of `PositionalEncoding`. What it says in words it says as plain values
of its class, so that menus, pictures of the machine and settings read them without PyTorch (`described`).
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from transformer.foundation.registry import PlugInError, Registry, fault_of_values

if TYPE_CHECKING:
    from transformer.positions._base import BASE, NO_POSITIONS, PlaceError, PositionalEncoding, angles

__all__ = [
    "BASE",
    "ENCODINGS",
    "NO_POSITIONS",
    "Described",
    "PlaceError",
    "PositionalEncoding",
    "Told",
    "angles",
    "described",
]

Told = Literal["vectors", "rotation", "bias", "nowhere"]
"""Where a model is told of positions: vectors are added to its embeddings, queries and keys are turned before they
meet, a bias is added to its scores, or nothing happens."""
METHODS = {"vectors": "vectors", "rotation": "rotate", "bias": "bias"}
"""The method of `PositionalEncoding` that does it."""


class Described:
    """What an encoding says of itself. All of it are plain values, written out in the body of its own class."""

    title: ClassVar[str] = ""
    """Its name where people read, before the word "positions": "learned", "ALiBi"."""
    told: ClassVar[Told] = "nowhere"
    """Where it tells a model of positions."""
    does: ClassVar[str] = ""
    """What it does, in words after "Each head" (of self-attention), or where vectors are added after "The encoding".
    Empty where it tells nothing."""
    description: ClassVar[str] = ""
    """The same as a phrase that stands for itself."""
    formula: ClassVar[str] = ""
    """LaTeX, with its source in the module's docstring; empty where nothing follows from a formula."""
    learned: ClassVar[bool] = False
    """Does training move it?"""
    term: ClassVar[str] = ""
    """Of a bias: what it adds to q · k / √d, in short and with its sign: "− m · distance"."""
    pairs: ClassVar[Literal["", "d_model", "d_head"]] = ""
    """The width whose dimensions it takes in pairs, if it does: that width must be even."""
    pairing: ClassVar[str] = ""
    """What it does with the pairs, in words after its title: "positions turn pairs of dimensions"."""
    decay_after: ClassVar[int] = 0
    """Steps after which the learning rate falls where nobody says: where neighbours look alike, to tell them apart for
    good takes small steps. 0 never."""


FIELDS = tuple(Described.__annotations__)


@cache
def described(name: str) -> type[Described]:
    """What an encoding says of itself, read from its file without PyTorch.

    Raises KeyError when there is none of that name, PlugInError where it leaves out what pages need.
    """
    read = {field: value for field, value in ENCODINGS.read(name).items() if field in FIELDS}
    found: type[Described] = type(name, (Described,), read)
    if fault := _fault_of_words(found):
        raise PlugInError(f"the encoding {name} cannot be used: {fault}")
    return found


def _fault_of_words(found: type[Described]) -> str:
    """What is missing in what an encoding says, or wrong; empty for nothing."""
    wanted = ["title", "description"]
    wanted += ["does"] * (found.told != "nowhere") + ["term"] * (found.told == "bias")
    if fault := fault_of_values(found, Described, wanted):
        return fault
    return "" if bool(found.pairs) == bool(found.pairing) else "`pairs` and `pairing` are said together or not at all"


def _fault(found: type[PositionalEncoding]) -> str:
    """Why an encoding cannot be used: its words are missing or no plain values, or it acts elsewhere than it says."""
    name = found.__module__.rpartition(".")[2].replace("_", "-")
    if fault := _fault_of_words(found):
        return fault
    said = described(name)
    for field in FIELDS:
        if getattr(found, field) != getattr(said, field):
            return f"write its `{field}` out as a plain value in the body of its class"
    own: type[Any] = ENCODINGS.base
    does = [told for told, method in METHODS.items() if getattr(found, method) is not getattr(own, method)]
    wanted = [] if found.told == "nowhere" else [found.told]
    if does != wanted:
        return (
            f"it says that it is told by {found.told}, and overrides {' and '.join(METHODS[each] for each in does)}"
            if does
            else f"it says that it is told by {found.told}, and does not override `{METHODS[found.told]}`"
        )
    return ""


ENCODINGS: Registry[PositionalEncoding] = Registry(
    f"{__name__}._base:PositionalEncoding", __name__, str(Path(__file__).parent), fault=_fault
)


def __getattr__(name: str) -> Any:
    """What needs PyTorch is imported when it is first used."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from transformer.positions import _base

    return getattr(_base, name)
