"""Trace: one verb for looking inside and for reaching in.

Inside the model every interesting tensor passes through `trace("name", tensor)`, and what comes back is what is used.
The default `UNTRACED` hands tensors back untouched, so the model has no branches for it. A `Recorder` applies the
edits meant for a site, in order, and records the result: what is recorded is what was used.

A site is a path: `decoder.0.self_attention.pattern`. Parents pass `trace.within("decoder.0")` down.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

import torch
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


Remember = Callable[[str, Tensor], Tensor | None]
"""What is kept of the value at a site: all of it, a part, or nothing. It cannot change what the model computes."""


def only(*names: str) -> Remember:
    """Remember the sites of these names, whole, and no others (shell-style: `*.pattern`)."""
    return lambda site, value: value if any(fnmatchcase(site, name) for name in names) else None


class Recorder(Trace):
    """Applies edits and records every named site of one forward pass. It belongs to one call and is not shared."""

    def __init__(self, edits: Sequence[Edit] = (), remember: Remember | None = None) -> None:
        self.edits = tuple(edits)
        self.remember = remember
        self.sites: dict[str, Tensor] = {}
        self.met: set[int] = set()
        self.changed: set[int] = set()
        self.path = ""

    def __call__(self, name: str, value: Tensor) -> Tensor:
        site = f"{self.path}{name}"
        for index, edit in enumerate(self.edits):
            if edit.meets(site):
                edited = edit.apply(value)
                self.met.add(index)
                # Compared only where it matters, and only until it changed something.
                if edit.must_change and index not in self.changed and not torch.equal(edited, value):
                    self.changed.add(index)
                value = edited
        kept = value if self.remember is None else self.remember(site, value)
        if kept is not None:
            self.sites[site] = kept
        return value

    def within(self, scope: str | int) -> Recorder:
        inner = Recorder.__new__(Recorder)
        inner.edits, inner.remember, inner.sites = self.edits, self.remember, self.sites
        inner.met, inner.changed = self.met, self.changed
        inner.path = f"{self.path}{scope}."
        return inner
