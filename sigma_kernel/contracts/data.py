"""Where data comes from: bytes, records, sections, blocks, order."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import IO, ClassVar

import numpy as np

from sigma_kernel.graph.node import Spec


class Source(ABC):
    """Where bytes come from."""

    name: str

    @abstractmethod
    def open(self) -> AbstractContextManager[IO[bytes]]:
        """Return an open binary file; whatever prevents it is a SigmaDataError that names the source."""


class Reader(ABC):
    """Turn bytes into arrays; what a file declares is checked against its size before anything is allocated."""

    @abstractmethod
    def read(self, source: Source) -> dict[str, np.ndarray]:
        """Return named arrays with one row a record."""


class Extractor(ABC):
    """Turn what a reader returned into sections."""

    @abstractmethod
    def extract(self, records: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Return arrays by section, one row a sample."""


class Preprocessor(ABC):
    """Change one section; what it learns from the training split is saved with the model.

    One that ``takes_classes`` is given words, and whole numbers of a table, as class indices.
    """

    section: str
    takes_classes: ClassVar[bool] = False

    @abstractmethod
    def fit(self, blocks: Iterable[np.ndarray]) -> dict[str, np.ndarray]:
        """Return what is to be remembered of the training split (nothing, if stateless).

        ``blocks`` are its rows, which need not fit into memory together: each block is read when it is its turn, and
        again each time that one iterates; who does not iterate reads nothing.
        """

    @abstractmethod
    def apply(self, values: np.ndarray, state: Mapping[str, np.ndarray]) -> np.ndarray:
        """Return the changed values, one row a sample."""


class Dataset(ABC):
    """Rows in blocks: a burst runs on one resident block; a small dataset is one block.

    A data set, or the mapping of splits that a configuration names, may also say what its ``classes`` are called (in
    the order of their indices; :meth:`class_names` of the training split come first), what number a ``white`` pixel is
    in its inputs, and how it reads a file to predict from: ``samples(path, shape, white) -> array``, a row each sample.
    What it has ``learned`` of its rows, plain JSON values, is saved with a run, and handed to ``samples`` by that name.
    """

    @property
    @abstractmethod
    def sections(self) -> Mapping[str, Spec]:
        """Return each section's shape and dtype for one sample."""

    @property
    @abstractmethod
    def blocks(self) -> int:
        """Return the number of blocks."""

    @abstractmethod
    def rows(self, block: int) -> int:
        """Return the number of rows of a block; never 0."""

    @abstractmethod
    def block(self, block: int) -> Mapping[str, np.ndarray]:
        """Return the arrays of a block, by section."""

    def encode(self, section: str, classes: int | None, names: Sequence[str] = ()) -> Dataset:
        """Return the data set with words, and whole numbers of a table, in a section as class indices.

        ``classes`` is how many there are, 0 while that is not known; None asks for numbers, which words are not.
        ``names`` are the classes of the training split, in the order of their indices.  All else stays as it is.
        Raises SigmaDataError for words that are wanted as numbers, and for classes that do not fit.
        """
        return self

    def class_names(self, section: str) -> Sequence[str]:
        """Return what the classes of a section are called, in the order of their indices, if it has any."""
        return ()

    def __len__(self) -> int:
        return sum(self.rows(block) for block in range(self.blocks))


class Iterator(ABC):
    """The order in which the rows of a block form minibatches (the kind is called ``iterator``)."""

    @abstractmethod
    def indices(self, seed: int, epoch: int, block: int, rows: int) -> np.ndarray:
        """Return a permutation of ``range(rows)``, a function of the arguments alone."""
