"""Let a head look where it was painted."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
import torch
from jaxtyping import Bool
from torch import Tensor

from transformer.edits import Edit, EditError, HeadEdit
from transformer.edits.patterns._forced import forced
from transformer.foundation import packed_cells

PAINTED = re.compile(r"([1-9]\d{0,2})x([1-9]\d{0,2})(?:x([0-9a-f]*)|z([\w-]*))", re.ASCII)


@dataclass(frozen=True)
class ForcePattern(HeadEdit):
    """Let a head look evenly at chosen keys. A query for which none is chosen looks where it did.

    `ForcePattern.of(chosen, "decoder.0.self_attention.scores", head=2)` makes one from an array that is True where a
    query shall look. `packed` holds the same, a bit a cell.
    """

    title: ClassVar[str] = "look at painted keys"
    order: ClassVar[int] = 80
    part: ClassVar[str] = "scores"
    needs: ClassVar[str] = "a size and cells"
    sample: ClassVar[str] = "6x6xfffffffff0"

    n_query: int
    n_key: int
    packed: bytes
    where: str = field(default="at the painted keys", compare=False)
    """In words, for a chip."""

    @classmethod
    def of(
        cls,
        chosen: Bool[np.ndarray, "query key"],
        site: str,
        head: int,
        *,
        where: str = "at the painted keys",
    ) -> ForcePattern:
        """An edit that lets a head look where `chosen` is True."""
        n_query, n_key = chosen.shape
        return cls(site, head, n_query, n_key, packed_cells.packed(chosen), where)

    @property
    def chosen(self) -> Bool[np.ndarray, "query key"]:
        return packed_cells.unpacked(self.packed, self.n_query, self.n_key)

    def apply(self, value: Tensor) -> Tensor:
        self.check(value)
        n_query, n_key = value.shape[-2:]
        if (n_query, n_key) != (self.n_query, self.n_key):
            raise EditError(
                f"{self.words}: this was painted for {self.n_query} × {self.n_key} tokens, and here are "
                f"{n_query} × {n_key}"
            )
        if not self.chosen.any():
            raise EditError(f"{self.words}: nothing is painted yet")
        return self.replaced(value, forced(value[:, self.head], torch.from_numpy(self.chosen)))

    @property
    def words(self) -> str:
        return f"{self.name} looking {self.where}"

    def more(self) -> str:
        """Its size, "x" and its cells as hexadecimal digits; of many queries "z" and the cells as
        `transformer.foundation.packed_cells` writes them."""
        cells = f"x{self.packed.hex()}"
        if self.n_query > packed_cells.PLAIN:
            cells = f"z{packed_cells.written(self.chosen)}"
        return f"{self.n_query}x{self.n_key}{cells}"

    @classmethod
    def of_text(cls, site: str, head: int, more: str) -> Edit:
        found = PAINTED.fullmatch(more)
        if not found:
            raise EditError(_UNREADABLE)
        n_query, n_key = int(found[1]), int(found[2])
        if found[4] is not None:
            try:
                return cls.of(packed_cells.read(found[4], n_query, n_key), site, head)
            except ValueError as error:
                raise EditError(
                    f"the cells of this painted pattern of {n_query} × {n_key} cannot be read: {error}"
                ) from None
        if len(found[3]) != 2 * packed_cells.size(n_query, n_key):
            raise EditError(_UNREADABLE)
        return cls(site, head, n_query, n_key, bytes.fromhex(found[3]))


_UNREADABLE = f"a painted pattern is written as its size and its cells, as in {ForcePattern.sample}"
