"""What an edit is, how it is written, and what makes one an error."""

from __future__ import annotations

import dataclasses
import re
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, ClassVar

from torch import Tensor

from transformer.foundation.checks import UserError
from transformer.network import Network

Look = Callable[[Network, str], Tensor | None]
"""What another model has at a site when it reads the tokens of this pass; None where it has no such site."""
LAST = 1000
"""Where an edit stands in a menu that does not say where."""
HEAD = re.compile(r"((?:encoder|decoder)\.\d{1,3}\.(?:self|cross)_attention)\.(\d{1,3})", re.ASCII)
SOME_HEAD = "decoder.1.self_attention.3"


class EditError(UserError):
    """An edit that cannot be made; the message is one sentence."""


def number(label: str, least: float, most: float, default: float, step: float = 1) -> Any:
    """A field that is a number, and how a menu offers it: what it is called, from where to where, in which steps."""
    metadata = {"label": label, "min_value": least, "max_value": most, "value": default, "step": step}
    return dataclasses.field(default=default, metadata=metadata)


@dataclass(frozen=True)
class Edit(ABC):
    """A change at every site whose path matches `site` (shell-style: `decoder.*.self_attention.mask`).

    A kind of edit is one public file in a folder of this one: found, not listed. Its name is the word that begins the
    edit's text in a link.
    """

    kind: ClassVar[str]
    """The name of its file, with hyphens."""
    title: ClassVar[str]
    """What a menu calls it."""
    order: ClassVar[int] = LAST
    """Where it stands there: the small ones first."""
    sample: ClassVar[str] = ""
    """What may stand behind the kind in its text, and of a head's edit behind the head."""
    must_change: ClassVar[bool] = False
    """An edit that says what shall *be* (this head is zero) may find it so already. One that says what shall *change*
    (these two places change over) and changes no number anywhere is an error."""

    site: str

    def __init_subclass__(cls) -> None:
        cls.kind = cls.__module__.rpartition(".")[2].replace("_", "-")

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

    def write(self) -> str:
        """The edit as a link has it: its kind, a colon, what `read` reads. Raises EditError where it has no text."""
        raise EditError(f"{self.words}: this edit does not fit into a link")

    @classmethod
    def read(cls, text: str) -> Edit:
        """The edit from what stands behind its kind. Raises EditError with a sentence."""
        raise EditError(f"{cls.kind} cannot be read from a link")

    @classmethod
    def example(cls) -> str:
        """A text of this kind."""
        return f"{cls.kind}:{cls.sample}" if cls.sample else cls.kind


@dataclass(frozen=True)
class HeadEdit(Edit):
    """An edit of one head; the values at its site are [batch, head, …].

    Its text names the head: "zero:decoder.1.self_attention.3". One that needs more says what, and reads and writes it:
    "scale:decoder.1.self_attention.3:0.5".
    """

    part: ClassVar[str] = "z"
    """What of the head is changed, as the last part of its site is called."""
    needs: ClassVar[str] = ""
    """What stands behind the head, in words: "a number"; empty is nothing."""

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

    def write(self) -> str:
        named = f"{self.kind}:{self.site.rpartition('.')[0]}.{self.head}"
        return f"{named}:{self.more()}" if self.needs else named

    @classmethod
    def read(cls, text: str) -> Edit:
        named, colon, more = text.partition(":")
        found = HEAD.fullmatch(named)
        if not found:
            raise EditError(f"{cls.kind} names a head, as in {cls.kind}:{SOME_HEAD}, not “{tame(named)}”")
        if bool(colon) != bool(cls.needs) or bool(more) != bool(cls.needs):
            needed = f"needs {cls.needs}" if cls.needs else "takes nothing"
            raise EditError(f"{cls.kind} {needed} after the head")
        return cls.of_text(f"{found[1]}.{cls.part}", int(found[2]), more)

    @classmethod
    def example(cls) -> str:
        return f"{cls.kind}:{SOME_HEAD}:{cls.sample}" if cls.needs else f"{cls.kind}:{SOME_HEAD}"

    def more(self) -> str:
        """What stands behind the head in its text."""
        return ""

    @classmethod
    def of_text(cls, site: str, head: int, more: str) -> Edit:
        """The edit of a head from what `more` wrote. Raises EditError with a sentence."""
        return cls(site, head)


@dataclass(frozen=True)
class PlacesEdit(Edit):
    """An edit of where tokens believe to stand, in all stacks. Its text is its kind; one that needs more reads and
    writes it: "swap:3,5"."""

    must_change: ClassVar[bool] = True
    site: str = "*.places"

    def write(self) -> str:
        return self.kind

    @classmethod
    def read(cls, text: str) -> Edit:
        if text:
            raise EditError(f"{cls.kind} takes nothing behind it, not “{tame(text)}”")
        return cls()


def tame(text: str) -> str:
    """A foreign text, made safe to repeat."""
    return "".join(c for c in text if c.isalnum() or c in "._-,")[:30] or "…"
