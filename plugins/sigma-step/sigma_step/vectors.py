"""Where the gradients of parameters lie in vectors, one for each dtype: what a shard computes, and an update reads."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from math import prod

import numpy as np
from attrs import frozen

from sigma_kernel import functions as f
from sigma_kernel.graph.node import Node, Spec


@frozen
class VectorLayout:
    """The gradients of parameters with these specs, by address, one after another."""

    specs: Mapping[str, Spec]

    @cached_property
    def places(self) -> dict[str, slice]:
        """Return the elements of each gradient in the vector of its dtype."""
        ends, places = dict.fromkeys(self.sizes, 0), dict[str, slice]()
        for address, spec in self.specs.items():
            begin = ends[spec.dtype]
            ends[spec.dtype] += prod(spec.shape)
            places[address] = slice(begin, ends[spec.dtype])
        return places

    @cached_property
    def sizes(self) -> dict[str, int]:
        """Return the number of elements of each vector, by dtype."""
        dtypes = dict.fromkeys(spec.dtype for spec in self.specs.values())
        return {dtype: sum(prod(x.shape) for x in self.specs.values() if x.dtype == dtype) for dtype in dtypes}

    def join(self, gradients: Mapping[str, Node]) -> dict[str, Node]:
        """Return the vectors of these gradients, by dtype."""
        return {
            dtype: f.concat(*(f.reshape(gradients[a], (-1,)) for a, spec in self.specs.items() if spec.dtype == dtype))
            for dtype in self.sizes
        }

    def part(self, vectors: Mapping[str, Node], address: str) -> Node:
        """Return the gradient of one parameter."""
        spec = self.specs[address]
        return f.reshape(vectors[spec.dtype][self.places[address]], spec.shape)

    def split(self, vectors: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Return the gradient of each parameter, by address: views of the vectors."""
        return {a: vectors[x.dtype][self.places[a]].reshape(x.shape) for a, x in self.specs.items()}
