"""Words that go with numbers, and enumerations."""

from collections.abc import Sequence


def counted(number: int, thing: str) -> str:
    """So many of a thing: "1 step", "0 steps"."""
    return f"{number} {thing}{'' if number == 1 else 's'}"


def listed(words: Sequence[str], last: str = "and") -> str:
    """ "one", "one and two", "one, two and three"; nothing of none."""
    return f" {last} ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)
