"""What *Attention heads* alone keeps in the view."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class HeadsSettings:
    mean: bool = False
    """The mean over many sequences instead of this one."""
    together: bool = False
    """Show the same passage under each head that prefers a kind of token."""
