"""What an edit is, and what makes one an error."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import ClassVar

from torch import Tensor

from transformer.network import Network

Look = Callable[[Network, str], Tensor | None]
"""What another model has at a site when it reads the tokens of this pass; None where it has no such site."""


class EditError(ValueError):
    """An edit that cannot be made; the message is one sentence."""


@dataclass(frozen=True)
class Edit(ABC):
    """A change at every site whose path matches `site` (shell-style: `decoder.*.self_attention.mask`)."""

    must_change: ClassVar[bool] = False
    """An edit that says what shall *be* (this head is zero) may find it so already. One that says what shall *change*
    (these two places change over) and changes no number anywhere is an error."""

    site: str

    def meets(self, site: str) -> bool:
        return fnmatchcase(site, self.site)

    def begun(self, look: Look) -> Edit:
        """The edit for one pass: itself, unless it takes something from another model that reads the same tokens."""
        return self

    @abstractmethod
    def apply(self, value: Tensor) -> Tensor:
        """The value to use instead; `value` itself is left as it is."""

    @property
    def words(self) -> str:
        """The edit in a few words, for a chip."""
        return repr(self)


@dataclass(frozen=True)
class HeadEdit(Edit):
    """An edit of one head; the values at its site are [batch, head, …]."""

    head: int

    def check(self, value: Tensor) -> None:
        """Raises EditError when there is no such head."""
        if not 0 <= self.head < value.shape[1]:
            raise EditError(f"there is no head {self.head} at {self.site}: it has heads 0 to {value.shape[1] - 1}")

    def replaced(self, value: Tensor, own: Tensor) -> Tensor:
        """`value` with this head's part replaced by `own`."""
        changed = value.clone()
        changed[:, self.head] = own
        return changed

    @property
    def name(self) -> str:
        """The head as people write it: "head 1.3", "cross head 0.2", "encoder head 0.1"."""
        stack, layer, attention = [*self.site.split("."), "?", "?"][:3]
        kind = "cross " if attention == "cross_attention" else "encoder " if stack == "encoder" else ""
        return f"{kind}head {layer}.{self.head}"
