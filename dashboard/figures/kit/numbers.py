"""How numbers and intervals are written: on the axes, in labels and in sentences."""

from __future__ import annotations

import math

import numpy as np

from dashboard.figures.html.number_table import MINUS


def share_text(share: float) -> str:
    """A share with two digits; nearly all is not all, and gets three."""
    return f"{math.floor(1000 * share) / 1000:.3f}" if 0.995 <= share < 1 else f"{share:.2f}"


def written(value: float, decimals: int) -> str:
    """A number with so many digits after the point, its minus as long as a plus; nothing for nan."""
    if np.isnan(value):
        return ""
    text = f"{value:.{decimals}f}"
    return text.lstrip("-") if not text.strip("-0.") else text.replace("-", MINUS)


def interval(mean: float, half: float) -> str:
    """ "0.993 ± 0.001"; a dash where there is nothing to say, and no ± where one sequence says nothing of others."""
    return "–" if math.isnan(mean) else give_or_take(mean, half, 3).replace("-0.000", "0.000").replace("-", "−")


def give_or_take(mean: float, half: float, digits: int) -> str:
    """ "11.5 ± 0.6", or "11.5" where there is but one of it."""
    return f"{mean:.{digits}f}" + ("" if math.isnan(half) else f" ± {half:.{digits}f}")


def short(number: float) -> str:
    """A positive number in few letters: 6.28, 628, 6,283, 62.8 k, 5.95 M."""
    if number >= 999_500:
        return f"{number / 1e6:.3g} M"
    if number >= 9_999.5:
        return f"{number / 1e3:.3g} k"
    return f"{number:,.0f}" if number >= 999.5 else f"{number:.3g}"


def tiny(number: float) -> str:
    """A deviation as lecturers write it: 4.4 × 10⁻¹⁶; 0 when there is none; of broken weights it is no number."""
    if number == 0:
        return "0"
    if not math.isfinite(number):
        return "no number" if math.isnan(number) else "∞"
    digits, exponent = f"{number:.1e}".split("e")
    raised = str(int(exponent)).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
    return f"{digits} × 10{raised}"


def small(value: float) -> str:
    """A share or a loss: three digits, or a power of ten where they would all be 0."""
    return f"{value:.3f}" if value >= 0.0005 else tiny(value)


def signed(number: float, digits: int = 2, *, plus: bool = False) -> str:
    """With a minus sign as long as a plus, and none on a zero; with a `plus` where it is no minus."""
    text = f"{round(float(number), digits) + 0.0:.{digits}f}".replace("-", "−")
    return f"+{text}" if plus and not text.startswith("−") else text


def between(low: float, high: float) -> str:
    """The bounds of an interval, of a share: "95 % interval 0.982 to 0.991"."""
    return f"95 % interval {low:.3f} to {high:.3f}"
