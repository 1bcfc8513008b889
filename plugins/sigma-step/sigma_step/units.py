"""Predictions and targets in the units of the data: the inverse of the preprocessors of targets, in the graph."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import Any

import numpy as np
from attrs import field, frozen

from sigma_kernel import functions as f
from sigma_kernel.contracts import Preprocessor
from sigma_kernel.errors import expect, introduce_errors
from sigma_kernel.graph.node import Node, originating


@frozen(eq=False)
class Units:
    """Transform values of preprocessed sections back to the units of the data.

    ``preprocessors`` are in the order in which they are applied, each with its fitted state; ``shapes`` are those of a
    sample of each section in the data.  Values come out in ``dtype``: beside a large offset, a float of 32 bits has no
    room for small differences.
    """

    preprocessors: Mapping[str, tuple[Preprocessor, Mapping[str, np.ndarray]]] = field(factory=dict)
    shapes: Mapping[str, tuple[int, ...]] = field(factory=dict)
    dtype: str = "float64"

    def restore(self, section: str, values: Node) -> Node | None:
        """Return values like those of a section in its units.

        None if there are not as many of them as in the section, or if one of its preprocessors has no inverse.
        """
        own = {name: step for name, step in self.preprocessors.items() if step[0].section == section}
        shape = self.shapes.get(section)
        if shape is None or prod(shape) != prod(values.shape[1:]):
            return None
        current = given = f.reshape(f.cast(values, self.dtype), (values.shape[0], *shape))
        for name, (step, state) in reversed(own.items()):
            with introduce_errors(f"preprocessor {name!r}", step), originating(name):
                inverse: Any = step.inverse(current, state)
                if inverse is None:
                    return None
                right = isinstance(inverse, Node) and inverse.shape == current.shape
                expect(right, f"inverse() must return a node of shape {current.shape}, or None", inverse)
            current = inverse
        return values if current is given else f.reshape(current, values.shape)
