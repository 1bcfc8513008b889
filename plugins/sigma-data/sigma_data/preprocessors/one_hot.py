"""One-hot encoding of class indices."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import ClassVar

import numpy as np
from attrs import field, frozen

from sigma_kernel import Preprocessor, SigmaDataError, functions as f
from sigma_kernel.graph import Node
from sigma_kernel.settings import ge, optional


@frozen
class OneHot(Preprocessor):
    """Encode class indices as one-hot vectors, on a new last axis.

    Raises SigmaDataError for values that are not indices, and for indices out of range.

    Args:
        classes: Number of classes; by default that of the training split.
        section: Section of the data to transform.
    """

    takes_classes: ClassVar[bool] = True

    classes: int | None = field(default=None, validator=optional(ge(1)))
    section: str = field(default="targets", kw_only=True)

    def fit(self, blocks: Iterable[np.ndarray]) -> dict[str, np.ndarray]:
        """Return the number of ``classes``."""
        return {"classes": np.asarray(self.classes or 1 + max(map(self._greatest, blocks)), np.int64)}

    def apply(self, values: np.ndarray, state: Mapping[str, np.ndarray]) -> np.ndarray:
        """Return one-hot vectors, float32."""
        self._check_whole_numbers(values)
        classes = int(state["classes"])
        wrong = np.argwhere((values < 0) | (values >= classes))
        if len(wrong):
            row, value = wrong[0][0], values[tuple(wrong[0])]
            where = f"one_hot: section {self.section!r}, row {row}"
            raise SigmaDataError(f"{where}: {value} is not one of {classes} classes. Correct it, or set `classes`.")
        vectors = np.zeros((*values.shape, classes), np.float32)
        np.put_along_axis(vectors, values[..., None].astype(np.int64), 1.0, axis=-1)
        return vectors

    def graph(self, values: Node, state: Mapping[str, np.ndarray]) -> Node:
        """Return one-hot vectors as a node; vectors of zeros for what is no class."""
        places = f.reshape(f.cast(values, "int64"), (*values.shape, 1))
        return f.cast(f.equal(places, np.arange(int(state["classes"]))), "float32")

    def _greatest(self, values: np.ndarray) -> int:
        self._check_whole_numbers(values)
        return int(values.max())

    def _check_whole_numbers(self, values: np.ndarray) -> None:
        if values.dtype.kind not in "iub":
            raise SigmaDataError(f"one_hot: section {self.section!r} holds {values.dtype}. It takes class indices.")
