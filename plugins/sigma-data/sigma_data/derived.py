"""Base class of data sets that show another one."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Mapping, Sequence
from itertools import accumulate
from typing import Any

import numpy as np

from sigma_kernel import Dataset, Label
from sigma_kernel.graph import Spec


class Derived(Dataset):
    """A view of another data set, whose classes, columns and sections are those of that."""

    def __init__(self, dataset: Dataset) -> None:
        self.dataset = dataset
        self.starts = [0, *accumulate(dataset.rows(block) for block in range(dataset.blocks))]  # of its blocks

    @abstractmethod
    def with_dataset(self, dataset: Dataset) -> Dataset:
        """Return the same view of another data set."""

    @property
    def sections(self) -> Mapping[str, Spec]:
        """Return each section's shape and dtype for one sample."""
        return self.dataset.sections

    @property
    def blocks(self) -> int:
        """Return the number of blocks of the data set."""
        return self.dataset.blocks

    def rows(self, block: int) -> int:
        """Return the number of rows of a block."""
        return self.dataset.rows(block)

    def block(self, block: int) -> Mapping[str, np.ndarray]:
        """Return the sections of a block."""
        return self.dataset.block(block)

    @property
    def has_row_numbers(self) -> bool:
        """Return whether the rows of the data set have numbers that stay the same."""
        return self.dataset.has_row_numbers

    @property
    def drawn_anew(self) -> bool:
        """Return whether the rows of the data set are read again for every epoch."""
        return self.dataset.drawn_anew

    @property
    def open_blocks(self) -> int:
        """Return from how many blocks of the data set rows are drawn at once."""
        return self.dataset.open_blocks

    @property
    def lanes(self) -> int:
        """Return into how many lanes the rows of the data set are dealt."""
        return self.dataset.lanes

    @property
    def bytes_ahead(self) -> int | None:
        """Return how many bytes of blocks of the data set may be read ahead."""
        return self.dataset.bytes_ahead

    def encode(self, section: str, classes: int | None, names: Sequence[Label] = ()) -> Dataset:
        """Return the view of the encoded data set, whose classes are those of all its rows."""
        return self._with_dataset(self.dataset.encode(section, classes, names))

    def align(self, training: Dataset) -> Dataset:
        """Return the view of the data set with the columns of the training split."""
        return self._with_dataset(self.dataset.align(training))

    def _with_dataset(self, dataset: Dataset) -> Dataset:
        return self if dataset is self.dataset else self.with_dataset(dataset)

    @property
    def tables(self) -> Mapping[str, Any]:
        """Return what extracts the sections that were frames."""
        return getattr(self.dataset, "tables", {})

    @property
    def learned(self) -> Mapping[str, Any]:
        """Return what the data set derived from all its rows."""
        return getattr(self.dataset, "learned", {})

    def findings(self, classes: Collection[str], others: Mapping[str, Dataset]) -> Sequence[str]:
        """Return what is odd about the rows of the data set."""
        return self.dataset.findings(classes, others)

    def column(self, section: str) -> np.ndarray | None:
        """Return all rows of a section of the data set; None if it has no such section, or not in memory."""
        column = getattr(self.dataset, "column", None)
        values: np.ndarray | None = None if column is None else column(section)
        return values

    def class_names(self, section: str) -> Sequence[Label]:
        """Return the class names of a section."""
        return self.dataset.class_names(section)

    def column_names(self, section: str) -> Sequence[str]:
        """Return the names of the columns of a section."""
        return self.dataset.column_names(section)


def strip_views(dataset: Dataset) -> Dataset:
    """Return the data set below views that keep its rows and their order, or the data set itself."""
    while isinstance(dataset, Derived) and type(dataset).rows is Derived.rows:
        dataset = dataset.dataset
    return dataset
