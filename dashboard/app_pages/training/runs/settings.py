"""What *Runs and races* alone keeps in the view."""

from __future__ import annotations

from dataclasses import dataclass

from dashboard.view.fields import number_field, text_field


@dataclass(frozen=True)
class RunsSettings:
    measure: str = text_field()
    """What is compared: accuracy, or loss."""
    clock: str = text_field()
    """By what: steps, or seconds."""
    rows_filter: str = text_field()
    """Words that stand in the rows of the table of runs that are listed; empty is all rows."""
    rows_by: str = text_field()
    """The column by which all of them are sorted; empty is when they were made."""
    rows_ascending: bool = False
    """Sort from the smallest to the greatest."""
    rows_page: int = number_field(1, 1, 100_000)
    """The page of this table, where it has more than one."""
    sweep_seeds: int = number_field(64, 1, 1000)
    """From how many seeds a population is trained."""
    sweep_over: str = text_field("positions")
    """The settings that vary in it, with commas between them; empty is none."""
