"""Pictures with their labels as a data set."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
from attrs import evolve, field, frozen

from sigma_data.arrays import classes_lacking, read_only
from sigma_data.subset import Subset
from sigma_kernel import Dataset, Label
from sigma_kernel.graph import Spec

EVERY = np.arange(256, dtype=np.uint8)
SMALLEST = 1e-30  # factor whose inverse float32 holds


@frozen(eq=False)
class Pictures(Dataset):
    """Pictures in blocks, and their labels, one row each.

    ``pixels`` are bytes; ``labels`` has the other sections of all rows, of which ``rows`` are those of each block.
    Pixels are multiplied by the ``scale`` when a block is read; a scale of 1 keeps the bytes.  At most ``memory`` bytes
    of these are read ahead.
    """

    pixels: Sequence[np.ndarray]
    rows_of_labels: Sequence[np.ndarray]
    labels: Dataset  # in one block
    scale: float = 1.0
    form: Mapping[str, Any] = field(factory=dict)  # plain values, saved to predict from other pictures
    notes: tuple[str, ...] = ()
    memory: int | None = None

    @property
    def sections(self) -> Mapping[str, Spec]:
        """Return each section's shape and dtype for one sample."""
        inputs = Spec(self.pixels[0].shape[1:], "int32" if self.scale == 1.0 else "float32")
        return {"inputs": inputs, **self.labels.sections}

    @property
    def blocks(self) -> int:
        """Return the number of blocks."""
        return len(self.pixels)

    @property
    def bytes_ahead(self) -> int | None:
        """Return the memory of pictures that are read ahead."""
        return self.memory

    def rows(self, block: int) -> int:
        """Return the number of rows of a block."""
        return len(self.pixels[block])

    def block(self, block: int) -> Mapping[str, np.ndarray]:
        """Return the arrays of a block."""
        labels, rows = self.labels.block(0), self.rows_of_labels[block]
        inputs = scale_bytes(self.pixels[block], self.scale)
        return read_only({"inputs": inputs, **{name: values[rows] for name, values in labels.items()}})

    def encode(self, section: str, classes: int | None, names: Sequence[Label] = ()) -> Pictures:
        """Return the pictures with the labels encoded as class indices, or as numbers if ``classes`` is None."""
        return evolve(self, labels=self.labels.encode(section, classes, names))

    def class_names(self, section: str) -> Sequence[Label]:
        """Return the labels of the classes of a section; empty if it does not hold classes."""
        return self.labels.class_names(section)

    @property
    def learned(self) -> Mapping[str, Any]:
        """Return the form of the pictures, and the names of the columns of targets."""
        return {**getattr(self.labels, "learned", {}), "pictures": self.form}

    def findings(self, classes: Collection[str], others: Mapping[str, Dataset]) -> tuple[str, ...]:
        """Return which files are left out, and which classes a split lacks."""
        return (*self.notes, *classes_lacking({"training": self, **others}, classes))

    def column(self, section: str) -> np.ndarray | None:
        """Return all rows of a section, except those of the pictures."""
        return Subset(self.labels, np.concatenate(self.rows_of_labels)).column(section)


def scale_bytes(values: np.ndarray, factor: float) -> np.ndarray:
    """Return bytes times a factor, computed in float64, as float32; unchanged if it is 1."""
    if factor == 1.0:
        return values
    scaled, divisor = np.empty(values.shape, np.float32), np.float32(1 / max(factor, SMALLEST))
    if np.array_equal(EVERY / divisor, (EVERY * factor).astype(np.float32)):  # as 255, without float64 in between
        np.divide(values, divisor, out=scaled)
    else:
        np.multiply(values, factor, out=scaled, dtype=np.float64, casting="same_kind")
    return scaled
