"""Intervals against examples and tables that others printed."""

from __future__ import annotations

import numpy as np
import pytest

from transformer.analysis.intervals import mean_interval, t95


def test_the_interval_of_a_mean_is_student_s() -> None:
    """Student's own example of 1908: the additional hours of sleep gained by ten patients."""
    sleep = np.array([1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4])
    mean, low, high = mean_interval(sleep)
    assert (round(mean, 2), round(low, 2), round(high, 2)) == (2.33, 0.90, 3.76)


@pytest.mark.parametrize(
    ("freedom", "printed"),
    [(1, 12.706), (9, 2.262), (10, 2.228), (11, 2.201), (20, 2.086), (30, 2.042), (63, 1.998), (120, 1.980)],
)
def test_student_s_t_is_that_of_the_tables(freedom: int, printed: float) -> None:
    assert t95(freedom) == pytest.approx(printed, abs=0.0006)
