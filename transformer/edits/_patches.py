"""Patches: what another pass, or another model, had at a site, in place of what this one has."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from transformer.edits._base import Edit, EditError, HeadEdit, Look
from transformer.network import Network


@dataclass(frozen=True)
class Patch(Edit):
    """Put what another pass had at a site in place of what this one has: activation patching.

    Meng et al. (2022), "Locating and Editing Factual Associations in GPT", section 2.1; Wang et al. (2022),
    "Interpretability in the Wild", section 3. `Patch.of(site, seen[site])` makes one. The values are those of one
    sequence and stand for every sequence of the batch; they are held as bytes, so that equal patches are equal. `head`
    and `position`, from 0, narrow it to one head (where there are heads), one position, or both.
    """

    shape: tuple[int, ...]
    packed: bytes
    head: int | None = None
    position: int | None = None

    @classmethod
    def of(cls, site: str, value: Tensor, *, head: int | None = None, position: int | None = None) -> Patch:
        """A patch from the value of one sequence, [1, …, position, width]: what `Observation[site]` gives."""
        if len(value) != 1:
            raise EditError(f"a patch is taken from one sequence, not from {len(value)}")
        packed = value.detach().cpu().numpy().astype(np.float32).tobytes()
        return cls(site, tuple(value.shape[1:]), packed, head, position)

    def apply(self, value: Tensor) -> Tensor:
        if tuple(value.shape[1:]) != self.shape:
            sizes = (" × ".join(map(str, shape)) for shape in (self.shape, value.shape[1:]))
            raise EditError(f"the patch is {next(sizes)}, but {self.site} is {next(sizes)}")
        for what, index, size in (("head", self.head, self.shape[0]), ("position", self.position, self.shape[-2])):
            if index is not None and not 0 <= index < size:
                raise EditError(f"there is no {what} {index} to patch at {self.site}: there are {size}")
        if self.head is not None and len(self.shape) < 3:
            raise EditError(f"{self.site} has no heads to patch")
        held = torch.frombuffer(bytearray(self.packed), dtype=torch.float32).reshape(self.shape).to(value)
        patched = value.clone()
        heads = slice(None) if self.head is None else slice(self.head, self.head + 1)
        places = slice(None) if self.position is None else slice(self.position, self.position + 1)
        if len(self.shape) == 3:
            patched[:, heads, places] = held[heads, places]
        else:
            patched[:, places] = held[places]
        return patched

    @property
    def words(self) -> str:
        where = "" if self.position is None else f" at {self.position + 1}"
        which = "" if self.head is None else f" of head {self.head}"
        return f"{self.site}{which} patched{where}"


@dataclass(frozen=True)
class PatchHead(HeadEdit):
    """Put what a head of another model finds in the same tokens in place of what this one's finds.

    Each sequence gets its own: the other model, unedited, reads the tokens of the very pass that is edited.
    """

    must_change: ClassVar[bool] = True
    donor: Network
    found: Tensor | None = field(default=None, compare=False, repr=False)

    write = Edit.write  # another model has no text

    def begun(self, look: Look) -> PatchHead:
        return replace(self, found=look(self.donor, self.site))

    def apply(self, value: Tensor) -> Tensor:
        self.check(value)
        if self.found is None or self.found.shape != value.shape:
            raise EditError(f"{self.words}: the other model has no such head at {self.site}")
        return self.replaced(value, self.found[:, self.head])

    @property
    def words(self) -> str:
        return f"{self.name} patched from another model"
