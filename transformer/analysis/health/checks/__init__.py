"""The checks of health: one law a file, found and not listed."""

from __future__ import annotations

from pathlib import Path

from transformer.analysis.health.case import Check
from transformer.foundation.registry import Registry

CHECKS: Registry[Check] = Registry(
    Check,
    __name__,
    str(Path(__file__).parent),
)


def checks() -> tuple[Check, ...]:
    """Every check, in the order in which they are shown: what breaks others stands before them."""
    made = [CHECKS[name]() for name in CHECKS.names()]
    return tuple(sorted(made, key=lambda check: (check.order, check.name)))
