"""Words that go with numbers."""


def counted(number: int, thing: str) -> str:
    """So many of a thing: "1 step", "0 steps"."""
    return f"{number} {thing}{'' if number == 1 else 's'}"
