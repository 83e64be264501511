"""The laws of the tasks, written again in plain Python; counted with 5 symbols. A new task is one entry of `LAWS`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from transformer.tasks import TASKS
from transformer.tasks._layouts import Aligned, Translation

LAWS: dict[str, Callable[[Sequence[int]], list[int]]] = {
    "count": lambda x: [list(x).count(x[0]) % 5],
    "duplicate": lambda x: [symbol for symbol in x for _ in range(2)],
    "duplicate-translate": lambda x: [symbol for symbol in x for _ in range(2)],
    "copy": lambda x: list(x),
    "reverse": lambda x: [x[len(x) - 1 - i] for i in range(len(x))],
    "reverse-aligned": lambda x: [x[len(x) - 1 - i] for i in range(len(x))],
    "reverse-translate": lambda x: [x[len(x) - 1 - i] for i in range(len(x))],
    "sort": lambda x: sorted(x),
}


def laid_out(name: str, question: Sequence[int], separator: Any) -> tuple[list[Any] | None, list[Any], list[Any]]:
    """Source, tokens and targets of one question, as the task's layout has them; None where there is no source."""
    answer = LAWS[name](question)
    if issubclass(TASKS[name], Aligned):
        return None, list(question), answer
    if issubclass(TASKS[name], Translation):
        return list(question), [separator, *answer[:-1]], answer
    sequence = [*question, separator, *answer]
    return None, sequence[:-1], sequence[1:]
