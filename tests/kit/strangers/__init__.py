"""Plug-ins of one file each that nobody ships, as a stranger would write them, and how a test lends them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from transformer.foundation.registry import Registry

TASKS = ("duplicate", "count", "duplicate-translate")
ENCODINGS = ("by-distance", "random-table", "half-turned", "gate")
NORMS = ("one-gain", "no-gain", "shift-only", "mean-absolute", "euclidean")


def lend(monkeypatch: pytest.MonkeyPatch, registry: Registry[Any], *names: str) -> None:
    """Put plug-ins of this folder into a registry, as if they lay in its own."""
    modules = registry._modules

    taken = sorted(set(names) & set(modules()))
    assert not taken, f"the registry has {', '.join(taken)} already: call the stranger something else"

    def and_these() -> dict[str, str]:
        return modules() | {name: f"{__name__}.{name.replace('-', '_')}" for name in names}

    monkeypatch.setattr(registry, "_modules", and_these)
    monkeypatch.setattr(registry, "_found", dict(registry._found))
    monkeypatch.setattr(registry, "_named", set())


@contextmanager
def lent(registry: Registry[Any], *names: str) -> Iterator[None]:
    """The same for as long as one looks: which plug-ins a law is about is read where its cases are listed."""
    with pytest.MonkeyPatch.context() as patch:
        lend(patch, registry, *names)
        yield
