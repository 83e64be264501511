"""Patch a head from another step of the training."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import ClassVar

from transformer.edits import Edit, EditError, Occasion, PatchHead, Wish, tame


@dataclass(frozen=True)
class PatchStep(Wish):
    """Let a head hand on what it found in the same tokens at another step of the training."""

    title: ClassVar[str] = "patch from another step"
    order: ClassVar[int] = 120
    needs: ClassVar[str] = "a step"
    sample: ClassVar[str] = "20"

    step: int

    def resolved(self, occasion: Occasion) -> PatchHead:
        """The patch. Raises EditError where no weights of that step are kept, and where it is the present one."""
        return PatchHead(self.site, self.head, occasion.at_step(self.step))

    @property
    def words(self) -> str:
        return f"{self.name} as at step {self.step}"

    def more(self) -> str:
        return str(self.step)

    @classmethod
    def of_text(cls, site: str, head: int, more: str) -> Edit:
        if not re.fullmatch(r"0|[1-9]\d{0,7}", more, re.ASCII):
            raise EditError(f"patch-step needs a step such as {cls.sample}, not “{tame(more)}”")
        return cls(site, head, int(more))
