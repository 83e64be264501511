"""What is wrong, in one sentence that says what would be right; and records that check themselves."""

from __future__ import annotations

import dataclasses
from typing import Any

from transformer.foundation.foreign import quoted, shortened


class UserError(ValueError):
    """What is wrong with what was asked for, and not with the program; the message is one sentence, made to be read."""


class ConfigError(UserError):
    """A setting that cannot be used; the message is one sentence that says what can."""


LONGEST = 120
"""Characters of a library's own words that are repeated: they may quote a whole file."""


def reason(error: BaseException) -> str:
    """What went wrong, to stand in a sentence: our own errors' words; of others one short line, and no path.

    Never empty: an error that says nothing is named by its type.
    """
    if isinstance(error, UserError):
        return str(error) or type(error).__name__
    if isinstance(error, OSError):
        return error.strerror or type(error).__name__
    if isinstance(error, KeyError) and error.args:
        return f"it has no {shortened(error.args[0])}"
    return shortened(str(error).strip().split("\n")[0], LONGEST) or type(error).__name__


def require(condition: bool, sentence: str) -> None:
    if not condition:
        raise ConfigError(sentence)


def within(name: str, value: float, low: float, high: float) -> None:
    require(low <= value <= high, f"{name} must be between {low:.10g} and {high:.10g}, not {value:.10g}")


def check_types(record: Any) -> None:
    """A file may hold anything: say so here, and not where it first breaks."""
    for entry in dataclasses.fields(record):
        value, (kinds, words) = getattr(record, entry.name), _KINDS[str(entry.type)]
        boolean = isinstance(value, bool)
        right = isinstance(value, kinds) and boolean == (kinds is bool)
        if not right:  # to write the sentence takes five times as long as to look
            raise ConfigError(f"{entry.name} must be {words}, not {quoted(value)}")


_KINDS: dict[str, tuple[Any, str]] = {
    "str": (str, "text"),
    "bool": (bool, "true or false"),
    "int": (int, "a whole number"),
    "int | None": ((int, type(None)), "a whole number or nothing"),
    "float": ((int, float), "a number"),
}
