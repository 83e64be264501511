"""Trace: one verb for looking inside and for reaching in.

Inside the model every interesting tensor passes through `trace("name", tensor)`, and what comes back is what is used.
The default `UNTRACED` hands tensors back untouched, so the model has no branches for it. A `Recorder` applies the
edits meant for a site, in order, and records the result: what is recorded is what was used.

A site is a path: `decoder.0.self_attention.pattern`. Parents pass `trace.within("decoder.0")` down.
"""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from torch import Tensor

if TYPE_CHECKING:
    from transformer.edits import Edit


class Trace:
    """The null trace: records nothing, changes nothing."""

    def __call__(self, name: str, value: Tensor) -> Tensor:
        return value

    def within(self, scope: str | int) -> Trace:
        """The same trace, one level deeper."""
        return self


UNTRACED = Trace()


class Recorder(Trace):
    """Applies edits and records the named sites of one forward pass. It belongs to one call and is not shared.

    `keep` says which sites are recorded (shell-style: "*.pattern"); edits apply at every site.
    """

    def __init__(self, edits: Sequence[Edit] = (), keep: Sequence[str] = ("*",)) -> None:
        self.edits, self.keep = tuple(edits), tuple(keep)
        self.sites: dict[str, Tensor] = {}
        self.met: set[int] = set()
        self.path = ""

    def __call__(self, name: str, value: Tensor) -> Tensor:
        site = f"{self.path}{name}"
        for index, edit in enumerate(self.edits):
            if edit.meets(site):
                value = edit.apply(value)
                self.met.add(index)
        if any(fnmatchcase(site, wanted) for wanted in self.keep):
            self.sites[site] = value
        return value

    def within(self, scope: str | int) -> Recorder:
        inner = Recorder.__new__(Recorder)
        inner.edits, inner.keep, inner.sites, inner.met = self.edits, self.keep, self.sites, self.met
        inner.path = f"{self.path}{scope}."
        return inner
