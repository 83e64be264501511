"""Intervals against examples and tables that others printed."""

import numpy as np
import pytest

from transformer.analysis.intervals import mean_interval, t95, wilson


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


@pytest.mark.parametrize(
    ("correct", "total", "low", "high"),
    [
        (0, 10, 0.0, 0.2775),  # the textbook's rows (Newcombe, 1998, and Brown, Cai and DasGupta, 2001)
        (10, 10, 0.7225, 1.0),
        (5, 10, 0.2366, 0.7634),
        (81, 263, 0.2553, 0.3662),
        (15, 148, 0.0624, 0.1605),
        (1, 29, 0.0061, 0.1718),
    ],
)
def test_wilson_s_interval_of_a_share_is_the_textbooks(correct: int, total: int, low: float, high: float) -> None:
    assert wilson(correct, total) == (pytest.approx(low, abs=5e-5), pytest.approx(high, abs=5e-5))


@pytest.mark.parametrize(("total", "z"), [(100, 1.959964), (10_000, 1.959964), (100, 4.0)])
def test_wilson_s_bounds_are_the_shares_of_which_the_observed_one_is_z_standard_errors_away(total, z) -> None:
    share = np.array([0, 0.01, 0.5, 0.99, 1])
    low, high = wilson(share * total, total, z)
    assert ((low >= 0) & (low <= share) & (share <= high) & (high <= 1)).all()
    for bound in (low, high):
        assert abs(share - bound) == pytest.approx(z * np.sqrt(bound * (1 - bound) / total))
