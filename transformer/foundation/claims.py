"""Claims: functions whose sentence stands on a page. A test proves each of them on many models."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T", bound="str | None")
ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Claim:
    """What a claim said once; None or nothing where it had nothing to say."""

    name: str
    sentence: str | None


listeners: list[Callable[[Claim], None]] = []
"""Who is told of each claim that is made. Outside the tests that is nobody."""


def claim(function: Callable[P, T]) -> Callable[P, T]:
    """Mark a function whose sentence is a claim about a model.

    It takes what was measured and returns the sentence, or None (or "") where the condition beside it does not hold.
    The law that the sentence keeps stands in tests/kit/claims/, under the function's name (`name_of`).
    """
    name = name_of(function)

    @wraps(function)
    def say(*args: P.args, **kwargs: P.kwargs) -> T:
        sentence = function(*args, **kwargs)
        for listen in listeners:
            listen(Claim(name, sentence))
        return sentence

    return say


def name_of(function: Callable[..., object]) -> str:
    """What a claim is called: its file and its name in it, as "app_pages/attention/heads/words.headline".

    The file and not the module: Streamlit runs the script of a page under the name `__main__`.
    """
    path = Path(function.__code__.co_filename).relative_to(ROOT).with_suffix("").as_posix()
    return f"{path.removeprefix('dashboard/')}.{function.__qualname__}"
