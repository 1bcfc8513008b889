"""Embedding: one trained vector for each index."""

from __future__ import annotations

from typing import Any

import numpy as np
from attrs import define, field, frozen
from attrs.validators import optional

from sigma_kernel import functions as f
from sigma_kernel.contracts import Context, Draws, Initialiser, Layer, Parameter
from sigma_kernel.errors import SigmaNetworkError
from sigma_kernel.graph import Node, Spec
from sigma_kernel.settings import must
from sigma_layers.settings import count


def _is_index(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


index = must(_is_index, "a whole number of at least 0", SigmaNetworkError)


@frozen(repr=False)
class NormalVectors(Initialiser):
    """Draw standard normal vectors."""

    def __repr__(self) -> str:
        return "standard normal"

    def values(self, address: str, parameter: Parameter, draws: Draws) -> np.ndarray:
        """Return one vector for each index."""
        return draws.normal(parameter.shape)


@define(eq=False)
class Embedding(Layer):
    """Replace each index by a trained vector: ``Input(12, dtype="int32") + Embedding(1000, 64)``.

    Vectors begin as standard normal numbers.  The data is checked: an index out of range is refused with its row.

    Shapes: ``(batch, ...)``, int32 -> ``(batch, ..., units)``; weights ``(vocabulary, units)``.

    Mikolov, Chen, Corrado and Dean, Efficient Estimation of Word Representations in Vector Space, arXiv:1301.3781.

    Args:
        vocabulary: Number of different indices, which go from 0 to one below it.
        units: Length of a vector.
        padding: Index whose vector is zero and stays so, for entries that only fill up a sequence. No initialiser,
            modifier or command changes it.
    """

    vocabulary: int = field(validator=count)
    units: int = field(validator=count)
    padding: int | None = field(default=None, validator=optional(index))

    @padding.validator
    def _(self, _: Any, value: int | None) -> None:
        if value is not None and value >= self.vocabulary:
            raise SigmaNetworkError(f"Embedding.padding: {value} is not an index below {self.vocabulary} (vocabulary).")

    def parameters(self, x: Spec) -> dict[str, Parameter]:
        """Return the vectors; raises SigmaNetworkError unless its input are indices."""
        if x.dtype not in ("int32", "int64"):
            sides = ", ".join(map(str, x.shape))
            dtype = f'{sides and sides + ", "}dtype="int32"'
            raise SigmaNetworkError(f"embedding: takes indices (got {x.dtype}). Write Input({dtype}) before it.")
        fixed = {} if self.padding is None else {self.padding: 0.0}
        return {"weights": Parameter((self.vocabulary, self.units), NormalVectors(), fixed_rows=fixed)}

    def forward(self, context: Context, x: Node) -> Node:
        """Return the vectors; that of the padding is zero, and gets no gradient."""
        vectors = f.take(context.parameters["weights"], context.choose(x, self.vocabulary))
        if self.padding is None:
            return vectors
        return f.where(f.equal(f.expand(x, -1), self.padding), 0.0, vectors)
