"""How far arrays are from the reference, as shares of what rounding explains."""

from __future__ import annotations

import numpy as np

from sigma_hooks.agreement import Difference, deviations, differences

INF, NAN = np.inf, np.nan


def worst(found: list[float], wanted: list[float], moved: list[float]) -> Difference:
    one, two, three = ({"x": np.array(values)} for values in (found, wanted, moved))
    [difference] = deviations(one, two, [three], 2.0)
    return difference


def test_the_element_with_the_greatest_share_is_reported_even_if_it_is_allowed() -> None:
    difference = worst([1.0, 2.02, 30.1], [1.0, 2.0, 30.0], [1.01, 2.01, 33.0])
    usual = np.sqrt((0.01**2 + 0.01**2 + 3.0**2) / 3)  # by hand: the root mean square of the distances
    allowed = 2.0 * (3.0 + usual + 30.0 * np.finfo(float).eps)
    assert difference.place == (2,)
    np.testing.assert_allclose([difference.distance, difference.allowed], [0.1, allowed])
    np.testing.assert_allclose(difference.share, 0.1 / allowed)
    assert differences({"x": np.array([30.1])}, {"x": np.array([30.0])}, [{"x": np.array([33.0])}], 2.0) == []


def test_equal_arrays_have_a_share_of_zero_whatever_they_hold() -> None:
    for values in ([1.0, 0.0], [INF, -INF], [NAN, 1.0], [0.0]):
        difference = worst(values, values, values)
        assert (difference.distance, difference.share) == (0.0, 0.0)


def test_one_infinite_or_lost_number_is_beyond_every_tolerance() -> None:
    for found, wanted in ((INF, 1.0), (NAN, 1.0), (1.0, INF), (INF, -INF)):
        assert worst([found], [wanted], [wanted]).share == INF


def test_where_rounding_decides_whether_a_number_is_finite_any_is_allowed() -> None:
    assert worst([INF, 1.0], [1e308, 1.0], [INF, 1.0]).share == 0.0


def test_an_empty_array_has_no_deviation() -> None:
    empty = {"x": np.zeros((0, 3))}
    assert deviations(empty, empty, [empty], 2.0) == []
