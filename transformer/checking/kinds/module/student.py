"""A student's module, asked in its convention: what its parameters are for, and how it is handed x and a mask."""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import pad

from transformer.checking import laws, signatures
from transformer.checking.bench import Answer, Bench, Described
from transformer.checking.conventions import ROTATIONS, SEEN, MaskForm
from transformer.checking.faults import Refused
from transformer.foundation.foreign import quoted, shortened
from transformer.positions import angles

D_MODEL, HEADS, GROUPS, LONGEST = 24, 6, 2, 40
BATCH, LENGTH = 8, 9
"""Together more positions than a layer reads numbers, so that it can be read off its results."""
SHORT = 6
"""Positions of x for code that was made for few."""
WIDEST = 2048
"""Numbers that a vector of x may have at most."""
WINDOW = 4
"""Tokens of a window, where a class is told how many: fewer than LENGTH."""
GRID = (3, 3)
"""A window of a picture."""
LONG, BEYOND = (40, 160, 640), 6
"""Positions among which a window is looked for that LENGTH does not show; so many beyond one whose size is known."""
ANY_HEADS = (1, 2, 3, 4, 6, 8, 12, 16)
"""How many heads a class may have that takes no number of them."""
MASK_AXES = ("full", "matrix", "batch", "heads")
"""[batch, 1, query, key], [query, key], [batch, query, key] or [batch · head, query, key]."""
ROLES = ("query", "key", "value", "mask")
DEFAULTS = {"flag": False, "causal": False, "dropout": 0.0}
GIVEN = ("rotation", "cosine", "sine", "start")
"""What a module may be handed about positions."""
SETTINGS = {
    "d_model": D_MODEL,
    "n_heads": HEADS,
    "n_groups": GROUPS,
    "d_head": D_MODEL // HEADS,
    "d_out": D_MODEL,
    "d_other": D_MODEL,
    "n_ctx": LONGEST,
    "window": WINDOW,
    "side": GRID[0],
    "dropout": 0.1,
    "bias": True,
    "causal": False,
}
ONE_HEAD = {"d_head": 8, "d_out": 8}
"""Settings of a class that is one head: narrower than d_model, so that no width is taken for another."""


def causal(batch: int, length: int) -> Tensor:
    """The causal mask [batch, 1, query, key]."""
    return torch.ones(length, length, dtype=torch.bool).tril().expand(batch, 1, -1, -1)


def enough(width: int, length: int, least: int = BATCH) -> int:
    """So many sequences that their positions tell a layer's weights, and not as many as positions: no axis is taken for
    the other.
    """
    many = max(least, -(-5 * width // (4 * length)))
    return many + (many == length)


@dataclass
class Student:
    """The module, asked in its convention."""

    bench: Bench
    places: dict[str, str]
    needed: set[str]
    parameters: dict[str, Tensor] = field(default_factory=dict)
    form: MaskForm = SEEN
    axes: str = "full"
    first: bool = False
    """Do positions come before the sequences of the batch?"""
    window: frozenset[int] = frozenset()
    """Distances from a query to the keys that a window which is built in lets it see; none where there is no window."""
    built_in: bool = False
    """Is a causal mask built in beside one of padding?"""
    heads: int = HEADS
    counted: bool = True
    """Was it told how many heads to have? Where it was not, any number may be its own."""
    length: int = LENGTH
    """Positions of x, in the comparison."""
    told_length: bool = False
    """Was it told for how many positions it is made?"""
    width: int = D_MODEL
    """Numbers of a vector of x."""
    further: Mapping[str, str] = field(default_factory=dict)
    """Other masks, and what may be looked at, that need not be given: the role of each by its name."""
    name: str = ""
    windows: Mapping[str, int] = field(default_factory=dict)
    """How far windows reach by their names in the code: of its attributes, and of its file."""
    grid: bool = False
    """Is its window one of a picture, so that it takes as many positions as that has, and no others?"""
    told_window: bool = False
    """Was it told how far its window reaches?"""
    positions: Mapping[str, str] = field(default_factory=dict)
    """What it is handed about positions: the role of each by its name."""
    turns: bool = False
    """Do names say that it turns queries and keys?"""
    rotation: tuple[int, int] = (0, 0)
    """The way in which rotations are handed over, by its place among ROTATIONS, and how wide a head is."""
    cache: tuple[str, str] = ("", "")
    """The parameter that takes the keys and values of earlier tokens, and the one that asks for them, if it has any."""
    flags: Mapping[str, bool] = field(default_factory=dict)
    """The parameters that open another path; is it the one that switches a causal mask?"""

    def drawn(self, batch: int, length: int, seed: int) -> Tensor:
        """x [batch, position, d_model], so large that attention is not uniform."""
        return 3 * torch.randn(batch, length, self.width, generator=torch.Generator().manual_seed(seed))

    def mask(self, batch: int, length: int) -> Tensor:
        """The mask of a comparison [batch, 1, query, key]: causal, or one of padding where no other can be said."""
        if self.window:
            place = torch.arange(length)
            return torch.isin(place - place[:, None], torch.tensor(sorted(self.window))).expand(batch, 1, -1, -1)
        if self.axes == "keys":
            seen = torch.ones(batch, 1, length, length, dtype=torch.bool)
            seen[..., length - length // 3 :] = False
            return seen & causal(batch, length) if self.built_in else seen
        return causal(batch, length)

    @property
    def crossed(self) -> bool:
        """Does it take queries, keys and values, or queries and what is looked at?"""
        return len([one for one in ("query", "key", "value", "x", "memory") if one in self.places]) > 1

    def ask(
        self,
        x: Tensor,
        seen: Tensor | None = None,
        looked_at: Tensor | None = None,
        flags: Mapping[str, Any] = MappingProxyType({}),
        **options: Any,
    ) -> Answer:
        """What it answers for x [batch, position, d_model] and a mask [batch, 1, query, key], with some flags set.

        Raises Refused.
        """
        looked_at = x if looked_at is None else looked_at
        if seen is None and self.places.get("mask") in self.needed:
            seen = torch.ones(len(x), 1, x.shape[1], looked_at.shape[1], dtype=torch.bool)
        given: dict[str, Any] = {}
        for one in ("query", "x"):
            if one in self.places:
                given[one] = self.turn(x)
        for one in ("key", "value", "memory"):
            if one in self.places:
                given[one] = self.turn(looked_at)
        if seen is not None and "mask" in self.places:
            given["mask"] = self._mask(seen)
        given |= {one: value for one, value in DEFAULTS.items() if self.places.get(one) in self.needed}
        named = {self.places[one]: value for one, value in given.items()} | self._placed(x.shape[1]) | dict(flags)
        return self.bench.call(list(named.values()), list(named), **options)

    def output(self, answer: Answer, like: Tensor) -> Tensor:
        """The output [batch, position, d_model], what is narrower filled up with zeros.

        Raises Refused where none of the tensors has its shape.
        """
        wanted = self.turn(like).shape
        fitting = [each for each in answer.values if each.dim() == 3 and each.shape[:2] == wanted[:2]]
        found = next((each for each in fitting if each.shape == wanted), None)
        if found is None and self.heads == 1:
            found = next((each for each in fitting if each.shape[2] < like.shape[-1]), None)
        if found is None:
            raise Refused(f"It returns the shape {list(answer.values[0].shape)}; the output should be {list(wanted)}.")
        return pad(self.turn(found), (0, like.shape[-1] - found.shape[-1]))

    def run(self, x: Tensor, seen: Tensor | None = None, looked_at: Tensor | None = None, **options: Any) -> Tensor:
        return self.output(self.ask(x, seen, looked_at, **options), x)

    def shown(self, seen: Tensor | None) -> Tensor | None:
        """The mask, if it takes one."""
        return seen if "mask" in self.places else None

    def turn(self, x: Tensor) -> Tensor:
        return x.transpose(0, 1) if self.first else x

    def rotations(self) -> list[tuple[int, int]]:
        """Every way in which rotations may be handed over; one where it is handed none."""
        roles = set(self.positions.values())
        if not roles - {"start"}:
            return [(0, 0)]
        heads = (self.heads,) if self.counted else ANY_HEADS
        widths = [self.width // each for each in heads if self.width % (2 * each) == 0]
        return list(itertools.product((0, 1, 2) if "rotation" in roles else (2, 3, 4), widths))

    def _placed(self, length: int) -> dict[str, Any]:
        """What it is handed about the positions of x, by name."""
        place, width = self.rotation
        made = ROTATIONS[place](angles(torch.arange(length), width).float()) if width else ()
        what = {"rotation": made[0] if len(made) == 1 else made, "cosine": made[0], "sine": made[-1]} if made else {}
        return {name: what.get(role, 0) for name, role in self.positions.items()}

    def _mask(self, seen: Tensor) -> Tensor:
        written = self.form.write(seen)
        if self.axes == "matrix":
            return written[0, 0]
        if self.axes == "batch":
            return written[:, 0]
        if self.axes == "heads":
            return written.expand(-1, self.heads, -1, -1).flatten(0, 1)
        if self.axes == "keys":
            return written[:, 0, 0]
        return written


def student_of(bench: Bench, described: Described) -> Student:
    """What the parameters of `forward` are for."""
    positions = {
        each.name: role
        for each in described.called_with
        if not each.optional and (role := signatures.role(each.name, GIVEN))
    }
    parameters = tuple(each for each in described.called_with if each.name not in positions)
    names = [each.name for each in parameters if not each.optional]
    masks = [each.name for each in parameters if signatures.role(each.name, ("mask",))]
    masks = [name for name in masks if "mask" in name.lower()] or masks  # an M beside a mask is something to look at
    one = [name for name in names if name not in masks]
    if len(one) == 1:
        roles: tuple[str, ...] = ("x", "mask")
        places = {"x": one[0]}
        for each in parameters:
            found = signatures.role(each.name, ("mask", *DEFAULTS))
            if found and found not in places and each.name != one[0]:
                places[found] = each.name
    else:
        roles = ("x", "memory", "mask") if len(one) == 2 else ROLES
        places = signatures.places(parameters, roles, DEFAULTS)
    needed = {each.name for each in parameters if not each.optional}
    for each in parameters:
        if not each.optional and each.name not in places.values():
            raise Refused(
                f"`forward` needs an argument {quoted(each.name)}, which the check does not know.", fatal=True
            )
    optional = [each.name for each in parameters if each.optional]
    asks = next((name for name in optional if re.search(r"(use|return|output)_?(cache|past|present)", name)), "")
    cache = next((name for name in optional if re.search(r"past|cache", name) and name != asks), "")
    further = {
        each.name: found
        for each in parameters
        if each.optional and each.name not in (*places.values(), cache)
        if (found := signatures.role(each.name, ("mask", "memory")))
    }
    told = any(signatures.role(each.name, tuple(SETTINGS)) == "window" for each in described.parameters)
    name = shortened(described.name)
    return Student(
        bench,
        places,
        needed,
        flags=laws.flags(parameters),
        further=further,
        name=name,
        told_window=told,
        positions=positions,
        cache=(cache, asks) if cache else ("", ""),
    )
