"""Contracts of data: sources, readers, extractors, encoders, preprocessors, augmentations, datasets, and others."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from html import escape
from pathlib import Path
from typing import IO, Any, ClassVar, Literal

import numpy as np
from attrs import field, frozen

from sigma_kernel.errors import SigmaConfigError, SigmaDataError, component_name
from sigma_kernel.graph.node import Node, Spec
from sigma_kernel.graph.random import RowDraws
from sigma_kernel.settings import Settled
from sigma_kernel.tables import align_rows, html

Label = str | int | float  # of a class; a boolean is an integer


class Source(Settled):
    """A source of bytes: a file, a download."""

    name: str

    @abstractmethod
    def open(self) -> AbstractContextManager[IO[bytes]]:
        """Return an open binary file; raises SigmaDataError, naming the source, if it cannot be opened."""


class Reader(Settled):
    """Decode bytes to arrays; sizes declared in a file are checked against its length before allocation."""

    @abstractmethod
    def read(self, source: Source) -> dict[str, np.ndarray]:
        """Return named arrays with one row per record."""


class Extractor(Settled):
    """Turn a reader's records into sections."""

    @abstractmethod
    def extract(self, records: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Return arrays by section, one row per sample."""


class Encoder(Settled):
    """Turn one column of a table into numbers; what it learns from the training rows is saved with the run.

    A column is an Arrow array (``pyarrow.Array``): float64, int64, bool, string, date32, timestamp or a dictionary of
    strings; a missing value is null.  ``kinds`` are the kinds of columns that the encoder takes, of ``number``,
    ``boolean``, ``category``, ``date``, ``text``, ``identifier`` and ``constant``; ``section`` is the section of the
    data that the numbers belong to.

    Values that cannot be encoded raise SigmaDataError with ``row``, the number of the first of them in what was given.
    """

    section: str
    kinds: ClassVar[tuple[str, ...]]

    @abstractmethod
    def fit(self, columns: Iterable[Any], targets: Iterable[np.ndarray] | None = None) -> dict[str, Any]:
        """Return what is learned from the training rows, as plain JSON values.

        ``columns`` are the batches of the column, read lazily, and again on every iteration over them; rows are
        numbered from 0 over all batches.  The state is the same to the bit however the rows are divided into batches.
        ``targets``, where there are any, have the same batches: class indices if they are integers, else numbers.
        """

    @abstractmethod
    def apply(self, column: Any, state: Mapping[str, Any]) -> np.ndarray:
        """Return the numbers of a batch, of shape (rows, width): float64, or int32 for indices of an embedding."""

    def apply_training(self, column: Any, state: Mapping[str, Any], rows: np.ndarray) -> np.ndarray:
        """Return the numbers of training rows, whose numbers are ``rows``; by default, what :meth:`apply` returns.

        An encoder that learns from targets leaves a row's own target out here.
        """
        return self.apply(column, state)

    @abstractmethod
    def names(self, column: str, state: Mapping[str, Any]) -> tuple[str, ...]:
        """Return a unique name for each number that a value of the column becomes."""


class Preprocessor(Settled):
    """Transform one section; the values fitted to the training split are saved with the model.

    A preprocessor that ``takes_classes`` gets words, and whole numbers of a table, as class indices. One with an
    ``approximate_graph``, such as of products that are added in another order, has a graph that rounds otherwise. One
    that ``casts`` may return floats in a wider dtype than theirs.
    """

    section: str
    takes_classes: ClassVar[bool] = False
    approximate_graph: ClassVar[bool] = False
    casts: ClassVar[bool] = False

    @abstractmethod
    def fit(self, blocks: Iterable[np.ndarray]) -> dict[str, np.ndarray]:
        """Return the state learned from the training split (empty, if stateless).

        ``blocks`` are its rows, read lazily: one block in memory at a time, read again on every iteration over them.
        """

    @abstractmethod
    def apply(self, values: np.ndarray, state: Mapping[str, np.ndarray]) -> np.ndarray:
        """Return the transformed values, one row per sample."""

    def graph(self, values: Node, state: Mapping[str, np.ndarray]) -> Node:
        """Return what :meth:`apply` returns as a node, for exporters; raises SigmaConfigError if that is impossible.

        Values of 8 and 16 bits come as int32. The default raises.
        """
        raise SigmaConfigError(
            f"{component_name(self)} does not say what it computes as a graph: it has no method `graph`."
        )

    def inverse(self, values: Node, state: Mapping[str, np.ndarray]) -> Node | None:
        """Return the values of which :meth:`apply` makes these, as a node of the shape before it; by default None.

        Predictions and targets of a section whose preprocessors all have an inverse are in the units of the data.
        Values come in float64 where the backend has that.
        """
        return None


class Augmentation(Settled):
    """Vary the rows that training reads, anew in each epoch; evaluation and prediction read them as they are.

    One that ``mixes_rows`` computes a row from other rows as well; each other row is computed alone.
    """

    mixes_rows: ClassVar[bool] = False

    @abstractmethod
    def augment(self, sections: Mapping[str, np.ndarray], draw: RowDraws) -> Mapping[str, np.ndarray]:
        """Return all sections of a block, varied, each of the same shape and dtype; rows are axis 0.

        Sections come before preprocessors, and cannot be written. All random numbers are of ``draw``, which has
        numbers of their own for each row and epoch, so that the result is a function of both arguments alone.
        Sections that do not fit raise SigmaDataError.
        """


class Dataset(Settled):
    """Rows in blocks: a burst runs on one resident block; a small dataset is one block.

    A dataset, or the mapping of splits that a configuration names, may have these attributes: ``classes``, the labels
    of its classes by index (:meth:`class_names` of the training split take precedence); ``white``, the value of a white
    pixel in its inputs; ``samples(path, shape, white) -> array``, which reads a file to predict from, one row per
    sample; ``files(path)``, the files in a folder to predict from, in the order of their samples;
    ``claims(path)``, whether ``samples`` reads a path though rows of tables have names; ``identify(path, learned) ->
    {column: texts}``, what identifies those samples, such as times; ``preprocessors``, by name, which act before those
    of the trainer; and ``learned``, plain JSON values derived from its rows, saved with a run and passed to ``samples``
    by that name.  Of these, ``frames`` has the table of an extractor for each section with named columns, which
    predicts from frames, and ``targets`` the names of the columns of each section that is predicted.
    """

    @property
    @abstractmethod
    def sections(self) -> Mapping[str, Spec]:
        """Return the shape and dtype of one sample of each section."""

    @property
    @abstractmethod
    def blocks(self) -> int:
        """Return the number of blocks."""

    @abstractmethod
    def rows(self, block: int) -> int:
        """Return the number of rows of a block, at least 1."""

    @abstractmethod
    def block(self, block: int) -> Mapping[str, np.ndarray]:
        """Return the arrays of a block, by section."""

    @property
    def has_row_numbers(self) -> bool:
        """Return whether the rows have the same numbers whenever they are read, in this run and when it is resumed.

        Rows are numbered from 0 over all blocks. Commands exclude and relabel rows by these numbers, and are refused
        for a dataset without them: one that collects its rows from a generator, for instance. A dataset that passes on
        the rows of another one has the other's value.
        """
        return True

    def numbers(self, block: int) -> np.ndarray:
        """Return the numbers of the rows of a block in its split; by default, from 0 on over all blocks."""
        return sum(self.rows(before) for before in range(block)) + np.arange(self.rows(block))

    @property
    def counts(self) -> dict[str, int]:
        """Return the numbers of ``rows``, of those ``excluded``, and of those ``relabelled``; by default none are."""
        return {"rows": len(self), "excluded": 0, "relabelled": 0}

    @property
    def drawn_anew(self) -> bool:
        """Return whether each block is read again for every epoch, as its rows may be others then."""
        return False

    @property
    def open_blocks(self) -> int:
        """Return from how many blocks at once rows are drawn; by default 1.

        With more, blocks are read in an order drawn for each epoch, and minibatches have rows of this many of them.  A
        dataset that passes on the rows of another one has the other's value.
        """
        return 1

    @property
    def lanes(self) -> int:
        """Return into how many lanes the rows are dealt for training; by default 1.

        With more, each lane has its own sequence of blocks, and as many rows as one shard of every batch: the worker
        that computes this shard reads this lane alone.  A dataset that wraps another one returns the other's value.
        """
        return 1

    @property
    def bytes_ahead(self) -> int | None:
        """Return how many bytes the blocks may have that are read before they are needed; by default any number.

        At most two are, as they are read.  A dataset that passes on the rows of another one has the other's value.
        """
        return None

    def encode(self, section: str, classes: int | None, names: Sequence[Label] = ()) -> Dataset:
        """Return the dataset with the words, or the whole numbers of a table, of a section encoded as class indices.

        ``classes`` is their number, 0 if it is unknown yet; None requests numbers instead of classes. ``names`` are the
        classes of the training split, by index. Other sections are unchanged. Raises SigmaDataError for words in place
        of numbers, and for classes that do not fit.
        """
        return self

    def class_names(self, section: str) -> Sequence[Label]:
        """Return the labels of a section's classes by index; empty if it has none.

        They have the type that the data has: ``classify`` returns words, numbers or booleans.
        """
        return ()

    def column_names(self, section: str) -> Sequence[str]:
        """Return the names of the columns of a section of vectors, one for each number; empty if it has none."""
        return ()

    def findings(self, classes: Collection[str], others: Mapping[str, Dataset]) -> Sequence[str]:
        """Return warnings about the rows before training, one sentence each; none by default.

        Called on the encoded training split; ``others`` are the other splits by name, and ``classes`` the sections that
        hold classes. Inspect only rows in memory, for a bounded time.
        """
        return ()

    def align(self, training: Dataset) -> Dataset:
        """Return the dataset with the columns of the training split: in its order, with its categories.

        Columns are matched by name if both have names, never by position.  Raises SigmaDataError for columns that do
        not match; by default, also for columns in another order.  ``training`` may be a run's saved summary: it has
        ``column_names``, and as ``tables`` the extractors of sections that were frames.
        """
        for section in self.sections:
            there, wanted = ([*dataset.column_names(section)] for dataset in (self, training))
            if there and wanted and there != wanted:
                names = f"the columns {', '.join(there)}; the training had {', '.join(wanted)}"
                raise SigmaDataError(f"data: section {section!r} has {names}. Give these, in this order.")
        return self

    def __len__(self) -> int:
        return sum(self.rows(block) for block in range(self.blocks))


class Iterator(Settled):
    """Order the rows of a block into minibatches (component kind ``iterator``).

    One that ``keeps_order`` returns ``range(rows)``: layers that carry the state of a row to the next batch need that.
    One with a ``section`` draws rows by their values there, by :meth:`draw`.
    """

    keeps_order: ClassVar[bool] = False
    section: str = ""

    @abstractmethod
    def indices(self, seed: int, epoch: int, block: int, rows: int) -> np.ndarray:
        """Return a permutation of ``range(rows)`` that depends on the arguments alone.

        For a dataset with several open blocks, it is also asked for the order of the blocks, whose number is ``rows``;
        ``block`` is 2**32 - 3 then, and 2**32 - 4 for the order in which they are dealt to lanes.
        """

    def draw(self, seed: int, epoch: int, block: int, values: np.ndarray) -> np.ndarray:
        """Return as many numbers of rows as there are ``values``, some of them repeatedly, by the arguments alone."""
        return self.indices(seed, epoch, block, len(values))


@frozen
class Inspection:
    """What data at a place hold: the ``head``, one line, and a ``table`` for people, its headings first.

    ``findings`` are what a user should know, one sentence each; ``document`` has all of it as plain JSON values.
    ``samples`` are pictures to show, by label: uint8, of shape (pictures, 3, height, width).
    """

    head: str
    table: Sequence[Sequence[str]] = field(repr=False)
    findings: Sequence[str] = field(repr=False)
    document: Mapping[str, Any] = field(repr=False)
    samples: Mapping[str, np.ndarray] = field(factory=dict, repr=False)

    def __str__(self) -> str:
        return "\n".join([self.head, *align_rows(self.table), *(f"note: {text}" for text in self.findings)])

    def _repr_html_(self) -> str:
        heading, *rows = self.table
        notes = "".join(f"<li>{escape(text)}</li>" for text in self.findings)
        return f"<p>{escape(self.head)}</p>{html(heading, rows)}" + (f"<ul>{notes}</ul>" if notes else "")


@frozen
class Finding:
    """What is odd about data: a sentence, and up to three places of rows that show it.

    ``rule`` names the kind of mistake; an ``error`` makes figures wrong, a ``warning`` most likely does, and a ``note``
    may be in order.
    """

    rule: str
    severity: Literal["error", "warning", "note"]
    text: str
    examples: tuple[str, ...] = field(default=(), repr=False)


@frozen
class ConfigurationDraft:
    """The text of a configuration that trains as it is, the name of its run, and what is unsure, in sentences."""

    name: str
    text: str = field(repr=False)
    notes: Sequence[str] = field(repr=False)


@frozen
class CachedData:
    """An entry of a cache: what is prepared of data at a ``source``, its bytes, its last use in seconds since 1970."""

    name: str
    source: str
    size: int
    last_use: float
    remove: Callable[[], None] = field(repr=False, eq=False)


class Inspector(Settled):
    """Inspect data of one form, and draft a configuration for them (component kind ``inspector``).

    ``wishes`` are the names of those that :meth:`draft` can heed. An inspector that holds objects takes these, as well
    as paths, as the ``place`` of data.
    """

    wishes: ClassVar[tuple[str, ...]] = ("target",)

    def hold(self, given: Any) -> Any:
        """Return an object, such as a frame, in a form that can be read repeatedly; by default None: it takes none."""
        return None

    @abstractmethod
    def takes(self, place: Path) -> bool:
        """Return whether a file or folder has this form, by its name and its first entries; it exists."""

    @abstractmethod
    def inspect(self, place: Path) -> Inspection:
        """Return what data hold; raises SigmaDataError for data that cannot be read."""

    @abstractmethod
    def draft(self, place: Path, written: str, wishes: Mapping[str, str]) -> ConfigurationDraft:
        """Return a configuration in which the data are at the place ``written``.

        ``wishes`` are what the user wants, such as the ``target``. Raises SigmaDataError for data that cannot be read,
        and SigmaConfigError for wishes that do not fit, or that are needed.
        """

    def examine(self, data: Any, splits: Mapping[str, Dataset] | None = None, quick: bool = False) -> Sequence[Finding]:
        """Return what is odd about data at a path, or about a data set, of which the network reads the ``splits``.

        By default, nothing is. The inspector in the role ``examiner`` examines data of any form. ``quick`` leaves out
        what takes long, and what data sets tell before training.
        """
        return ()

    def list_cached(self, folder: Path | None = None) -> Sequence[CachedData]:
        """Return what is prepared of data of this form, in a folder or the default cache, that used last first."""
        return ()

    def describe(self, data: Any, splits: Mapping[str, Dataset]) -> Inspection:
        """Return what a data set holds, of which the network reads the ``splits``, as :meth:`inspect` does of a place.

        By default, that is not known. The inspector in the role ``examiner`` describes data of any form.
        """
        return Inspection("", ((),), (), {})
