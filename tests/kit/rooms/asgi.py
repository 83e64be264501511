"""Coroutines from tests that have no event loop, or somebody else's."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any


def to_its_end(answer: Coroutine[Any, Any, None]) -> None:
    """In a thread of its own: where a browser is driven, this one has an event loop already."""
    with ThreadPoolExecutor(1) as pool:
        pool.submit(asyncio.run, answer).result()
