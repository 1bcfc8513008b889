"""Conformance suites for initialisers.

Inherit one in a plugin's tests and override ``make``::

    class TestGaussian(InitialiserSuite):
        def make(self):
            return Gaussian(0.1)
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import ClassVar

import numpy as np

from sigma_kernel.contracts import Initialiser, Parameter
from sigma_kernel.graph.random import Draw


def draw(initialiser: Initialiser, parameter: Parameter, seed: int = 0, stream: int = 0) -> np.ndarray:
    """Return the initial values of a parameter for a seed, as a run draws them."""
    return initialiser.values("2-dense.weights", parameter, Draw(seed, stream))


class InitialiserSuite(ABC):
    """Conformance tests of an initialiser, run on ``parameters``."""

    parameters: ClassVar[tuple[Parameter, ...]] = (
        Parameter((7,)),
        Parameter((5, 3)),
        Parameter((3, 5)),
        Parameter((6, 2, 3, 3), fan_in=18, fan_out=54),
    )

    @abstractmethod
    def make(self) -> Initialiser:
        """Return the initialiser under test."""

    def test_values_have_the_parameters_shape_in_float64(self) -> None:
        """Draw values for every parameter."""
        for parameter in self.parameters:
            values = draw(self.make(), parameter)
            assert values.shape == tuple(parameter.shape)
            assert values.dtype == np.float64
            assert np.isfinite(values).all()

    def test_the_same_seed_gives_the_same_values(self) -> None:
        """Draw twice, with the same initialiser and with a new one."""
        one = self.make()
        for parameter in self.parameters:
            values = [draw(initialiser, parameter).tobytes() for initialiser in (one, one, self.make())]
            assert len(set(values)) == 1

    def test_returned_values_belong_to_the_caller(self) -> None:
        """Overwrite the drawn values, and draw again."""
        initialiser, parameter = self.make(), self.parameters[0]
        first = draw(initialiser, parameter)
        kept = first.copy()
        first += 1.0
        assert np.array_equal(draw(initialiser, parameter), kept)


class RandomInitialiserSuite(InitialiserSuite):
    """Further conformance tests of an initialiser that draws random numbers."""

    def test_another_seed_or_parameter_gives_other_values(self) -> None:
        """Draw with another seed, and for another parameter."""
        parameter = self.parameters[0]
        drawn = [draw(self.make(), parameter, *place).tobytes() for place in ((0, 0), (1, 0), (0, 1))]
        assert len(set(drawn)) == 3


def distance(values: np.ndarray, law: Callable[[float], float]) -> float:
    """Return the distance of values from a distribution function: the Kolmogorov-Smirnov statistic.

    It exceeds ``1.95 / sqrt(n)`` for one in 1,000 samples of ``n`` values from that distribution.
    """
    expected = np.array([law(value) for value in np.sort(values, axis=None).tolist()])
    ranks = np.arange(expected.size + 1) / expected.size
    return float(max(np.max(ranks[1:] - expected), np.max(expected - ranks[:-1])))
