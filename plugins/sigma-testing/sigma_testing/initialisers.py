"""Conformance suites for initialisers.

Inherit one in a plugin's tests and override ``make``::

    class TestGaussian(InitialiserSuite):
        def make(self):
            return Gaussian(0.1)
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from math import prod
from typing import Any, ClassVar

import numpy as np

from sigma_kernel.arrays import read_only
from sigma_kernel.contracts import Initialiser, Parameter
from sigma_kernel.graph.random import Draw
from sigma_testing.determinism import DeterministicSuite
from sigma_testing.processes import other_process
from sigma_testing.suite import alike


def draw(initialiser: Initialiser, parameter: Parameter, seed: int = 0, stream: int = 0) -> np.ndarray:
    """Return the initial values of a parameter for a seed, as a run draws them."""
    return initialiser.values("2-dense.weights", parameter, Draw(seed, stream))


class InitialiserSuite(DeterministicSuite):
    """Conformance tests of an initialiser, run on ``parameters``."""

    parameters: ClassVar[tuple[Parameter, ...]] = (
        Parameter((7,)),
        Parameter((1,)),
        Parameter((5, 3)),
        Parameter((3, 5)),
        Parameter((6, 2, 3, 3), fan_in=18, fan_out=54),
        Parameter((200, 120)),
    )

    @abstractmethod
    def make(self) -> Initialiser:
        """Return the initialiser under test."""

    def use(self) -> None:
        """Make it, and use it once."""
        draw(self.make(), self.parameters[0])

    def results(self) -> Mapping[str, Any]:
        """Return the values of all parameters."""
        return {"values": [draw(self.make(), parameter) for parameter in self.parameters]}

    def test_values_have_the_parameters_shape_in_float64(self) -> None:
        """Draw values for every parameter."""
        for parameter in self.parameters:
            values = draw(self.make(), parameter)
            assert values.shape == tuple(parameter.shape)
            assert values.dtype == np.float64
            assert np.isfinite(values).all()

    def test_the_same_seed_gives_the_same_values(self) -> None:
        """Draw twice, with the same initialiser and with a new one."""
        first = self.make()
        for parameter in self.parameters:
            values = [draw(initialiser, parameter).tobytes() for initialiser in (first, first, self.make())]
            assert len(set(values)) == 1

    def test_another_process_draws_the_same_values(self) -> None:
        """Draw from `draws` alone: hashes of texts and numbers of processes differ from run to run."""
        for parameter in self.parameters:
            wanted = draw(self.make(), parameter).tobytes()
            with other_process(1):
                other = draw(self.make(), parameter).tobytes()
            assert alike(other, wanted), "values depend on the process"

    def test_returned_values_belong_to_the_caller(self) -> None:
        """Overwrite the drawn values, and draw again."""
        initialiser, parameter = self.make(), self.parameters[0]
        first = draw(initialiser, parameter)
        kept = first.copy()
        first += 1.0
        assert np.array_equal(draw(initialiser, parameter), kept)

    def test_values_do_not_depend_on_what_was_drawn_before(self) -> None:
        """Draw for all parameters in two orders, with the same initialiser."""
        initialiser = self.make()
        first = [draw(initialiser, parameter).tobytes() for parameter in self.parameters]
        assert alike([draw(initialiser, parameter).tobytes() for parameter in reversed(self.parameters)], first[::-1])

    def test_values_are_fitted_to_the_rows_that_it_reads(self) -> None:
        """Fit twice, and to rows that are ten times as large: return other values, and leave the given ones."""
        initialiser = self.make()
        for parameter in self.parameters if initialiser.reads_rows else ():
            first = draw(initialiser, parameter)
            rows = np.random.default_rng(0).normal(size=(initialiser.reads_rows, prod(parameter.shape)))
            fitted = [_fit(initialiser, parameter, first, scale * rows) for scale in (1.0, 1.0, 10.0)]
            wrong = [x for x in fitted if x.shape != first.shape or not np.isfinite(x).all()]
            assert not wrong, f"fit() must return finite numbers of shape {first.shape}"
            assert np.array_equal(fitted[0], fitted[1]), "fit() depends on something else than its arguments"
            assert not np.array_equal(fitted[0], fitted[2]), "fit() ignores the rows: leave out `reads_rows`"


def _fit(initialiser: Initialiser, parameter: Parameter, values: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Return the values fitted to a layer that multiplies each value by a column, and adds up those of a unit."""
    given, shape = read_only(values), (len(rows), *parameter.shape)
    return np.asarray(
        initialiser.fit("2-dense.weights", parameter, given, lambda x: (rows.reshape(shape) * x).sum(axis=1))
    )


class RandomInitialiserSuite(InitialiserSuite):
    """Further conformance tests of an initialiser that draws random numbers around ``mean``."""

    mean: ClassVar[float] = 0.0
    large: ClassVar[tuple[Parameter, ...]] = (
        Parameter((9000,)),
        Parameter((200, 120)),
        Parameter((32, 16, 5, 5), fan_in=400, fan_out=800),
    )

    @abstractmethod
    def deviation(self, parameter: Parameter) -> float:
        """Return the standard deviation that values of a parameter should have."""

    def test_another_seed_or_parameter_gives_other_values(self) -> None:
        """Draw with another seed, and for another parameter."""
        for parameter in self.parameters:
            drawn = [draw(self.make(), parameter, *place).tobytes() for place in ((0, 0), (1, 0), (0, 1))]
            assert len(set(drawn)) == 3, str(parameter)

    def test_values_of_large_parameters_have_the_mean_and_the_deviation(self) -> None:
        """Draw many values; compare with six standard errors."""
        for parameter in self.large:
            values, wanted = draw(self.make(), parameter, seed=3), self.deviation(parameter)
            assert abs(values.mean() - self.mean) < 6 * wanted / values.size**0.5, str(parameter)
            assert abs(values.std() / wanted - 1) < 6 / (2 * values.size) ** 0.5, str(parameter)

    def test_all_parts_of_a_large_parameter_are_random(self) -> None:
        """Look for numbers that repeat, and compare the deviations of the first rows and the last."""
        for parameter in self.large:
            values = draw(self.make(), parameter, seed=3)
            half = len(values) // 2
            assert len(np.unique(values)) > 0.99 * values.size, str(parameter)
            assert 0.9 < values[:half].std() / values[-half:].std() < 1.1, str(parameter)


def distance(values: np.ndarray, law: Callable[[float], float]) -> float:
    """Return the distance of values from a distribution function: the Kolmogorov-Smirnov statistic.

    It exceeds ``1.95 / sqrt(n)`` for one in 1,000 samples of ``n`` values from that distribution.
    """
    expected = np.array([law(value) for value in np.sort(values, axis=None).tolist()])
    ranks = np.arange(expected.size + 1) / expected.size
    return float(max(np.max(ranks[1:] - expected), np.max(expected - ranks[:-1])))
