"""Convert what users pass as data (arrays, pairs, frames, generators, blocks) to data sets, and what they predict from.

Arrays of numbers are converted here.  The data sets ``arrays``, for words, objects and frames, and ``stream``, for
functions that make generators, are components.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import accumulate
from typing import Any, cast

import numpy as np

from sigma_kernel.arrays import as_array, read_only
from sigma_kernel.contracts import Dataset
from sigma_kernel.errors import SigmaDataError, SigmaPluginError, expect, introduce_errors
from sigma_kernel.graph.node import DTYPES, Spec
from sigma_kernel.network.tracing import Resolve

Host = dict[str, np.ndarray]

FITTED = "data.preprocessors."  # prefix of fitted values in the state
SECTIONS = ("inputs", "targets", "weights")  # of a tuple
ENDLESS, LARGEST = 10_000, 2**33  # blocks, and bytes of kept ones, after which a generator counts as endless


def specs(block: Host) -> dict[str, Spec]:
    """Return the specs of one sample of each section of a prepared block."""
    return {name: Spec(values.shape[1:], str(values.dtype)) for name, values in block.items()}


class Rows(Dataset):
    """Arrays in memory, one row a sample, in one block or several."""

    def __init__(self, *blocks: Mapping[str, Any]) -> None:
        self._blocks = [{name: as_array("data", name, values) for name, values in block.items()} for block in blocks]
        if not self._blocks:
            raise SigmaDataError("data: there is no block of rows. Give one, or more; an iterator serves one trainer.")
        for number, block in enumerate(self._blocks):
            counts = {name: len(values) for name, values in block.items()}
            if len(set(counts.values())) != 1:
                raise SigmaDataError(f"data: sections must have equally many rows (got {counts}).")
            first, here = ({name: values.shape[1:] for name, values in b.items()} for b in (self._blocks[0], block))
            if here != first:
                raise SigmaDataError(f"data: block {number} holds {here}; block 0 holds {first}. Make them alike.")

    @property
    def sections(self) -> Mapping[str, Spec]:
        """Return the spec of each section; types that graphs lack are converted when a block is prepared."""
        names = {name: values.dtype.name for name, values in self._blocks[0].items()}
        dtypes = {name: dtype if dtype in DTYPES else "int32" for name, dtype in names.items()}
        return {name: Spec(values.shape[1:], dtypes[name]) for name, values in self._blocks[0].items()}

    @property
    def blocks(self) -> int:
        """Return the number of blocks."""
        return len(self._blocks)

    def rows(self, block: int) -> int:
        """Return the number of rows of a block."""
        return len(next(iter(self._blocks[block].values())))

    def block(self, block: int) -> Mapping[str, np.ndarray]:
        """Return the arrays of a block."""
        return self._blocks[block]


def is_frame(values: Any) -> bool:
    """Return whether values are a data frame, of whatever library: an object with named columns."""
    return hasattr(type(values), "columns")


class Kept(Iterable[Any]):
    """The blocks of an iterator, read on first use and kept: a second preparation finds them again."""

    def __init__(self, source: Iterator[Any]) -> None:
        self._source: Iterator[Any] | None = source
        self._blocks: list[Any] | None = None

    def __iter__(self) -> Iterator[Any]:
        """Iterate over the blocks; raise SigmaDataError if reading them failed before, as the rest is not all."""
        source, self._source = self._source, None
        if source is not None:
            self._blocks = [*_limit_blocks(source)]
        if self._blocks is None:
            raise SigmaDataError("data: reading this iterator failed, and cannot be repeated. Set the data again.")
        return iter(self._blocks)


def _limit_blocks(source: Iterator[Any]) -> Iterator[Any]:
    """Yield blocks; raise SigmaDataError for more than ENDLESS, and for more than LARGEST bytes."""
    held = 0
    for number, block in enumerate(source):
        parts = block.values() if isinstance(block, Mapping) else block if isinstance(block, tuple | list) else ()
        held += sum(getattr(part, "nbytes", 0) for part in parts)
        if number == ENDLESS or held > LARGEST:
            raise SigmaDataError(
                f"data: this iterator has not ended after {number:,} blocks, {held / 2**30:.1f} GiB, which are kept. "
                "An epoch must end: take a part, such as itertools.islice(generator, 100). For data beyond memory, "
                "pass the function that makes the generator."
            )
        yield block


def keep_blocks(given: Any) -> Any:
    """Return data, or the data of each split, with iterators replaced by their blocks, which can be read repeatedly."""
    if isinstance(given, dict) and any(isinstance(part, Iterator) for part in given.values()):
        return {name: keep_blocks(part) for name, part in given.items()}
    return Kept(given) if isinstance(given, Iterator) else given


# -- conversion --------------------------------------------------------------------------------------------------------
def dataset(given: Any, where: str = "data", resolve: Resolve | None = None, labelled: bool = False) -> Dataset:
    """Convert data to a data set.

    They are a data set itself, sections by name, a tuple ``(inputs, targets)`` or ``(inputs, targets, weights)``, an
    iterable of such blocks, which is consumed once and kept in memory, or a function that returns a generator of
    blocks, which is called for each epoch.  Whole numbers of ``labelled`` data may be the labels of classes.  Raises
    SigmaDataError for anything else.
    """
    if isinstance(given, Dataset):
        return given
    if isinstance(given, Mapping) or _is_block(given):
        sections = _sections(given, where)
        arrays = {n: values if is_frame(values) else as_array(where, n, values) for n, values in sections.items()}
        plain = not any(is_frame(x) or x.dtype.kind in "OUSTb" for x in arrays.values())
        # classes are looked for in what no preprocessor has to fill first, if the room that does so is installed
        classes = labelled and plain and all(np.isfinite(x).all() for x in arrays.values() if x.dtype.kind == "f")
        with suppress(*([SigmaPluginError] if plain else [])):
            if resolve is not None and (classes or not plain):
                return cast("Dataset", resolve("dataset", {"type": "default:arrays", **sections}))
        return Rows(arrays)
    if resolve is not None and callable(given):
        stream = {"type": "default:stream", "source": given, "of": "batches", "keep": "one", "most": ENDLESS}
        return cast("Dataset", resolve("dataset", stream))
    if is_frame(given) or isinstance(given, str | bytes | np.ndarray) or not isinstance(given, Iterable):
        raise _no_data(given, where)
    blocks = [_sections(block, where) for block in given]
    if any(is_frame(values) for block in blocks for values in block.values()):
        raise SigmaDataError(f"{where}: blocks lose the names of columns. Give one frame, or frame[names].to_numpy().")
    return Rows(*blocks)


def _is_block(given: Any) -> bool:
    return isinstance(given, tuple) and not any(isinstance(part, Mapping) for part in given)


def _sections(block: Any, where: str) -> Mapping[str, Any]:
    if isinstance(block, Mapping):
        return block
    if not isinstance(block, tuple | list) or len(block) not in (2, 3):
        raise _no_data(block, where)
    return dict(zip(SECTIONS, block, strict=False))


def _no_data(given: Any, where: str) -> SigmaDataError:
    what = f"{type(given).__name__} of {len(given)}" if isinstance(given, tuple | list) else type(given).__name__
    if is_frame(given):
        names = given.column_names if hasattr(type(given), "column_names") else given.columns  # Arrow has both
        return SigmaDataError(
            f"{where}: a frame does not say what to predict (got {what}). Name its target column: "
            f"Frame(frame, target={[*map(str, names), 'price'][len(names) - 1]!r})."
        )
    return SigmaDataError(
        f"{where}: not data (got {what}). Give arrays by section, {{'inputs': x, 'targets': y}}, a tuple "
        "(inputs, targets) or (inputs, targets, weights), an iterable of such blocks, or a data set such as "
        "Arrays(...), Frame(...) or Stream(...)."
    )


def read(dataset: Dataset, block: int) -> Mapping[str, np.ndarray]:
    """Return a block of a data set, whose arrays cannot be written: they may be the user's own.

    Raises SigmaComponentError unless it has the rows that the data set declares.
    """
    with introduce_errors("data", dataset):
        sections, rows = dataset.block(block), dataset.rows(block)
        for name, values in sections.items():
            right = isinstance(values, np.ndarray) and len(values) == rows
            expect(right, f"block({block}) must return {name!r} as an array of {rows} rows", values)
    return {name: read_only(values) for name, values in sections.items()}


def samples(given: Any, names: Sequence[str], learned: Mapping[str, Any], resolve: Resolve) -> Host:
    """Return the arrays of what to predict from, by section: one for the first of ``names``, or several by name.

    A frame is read by column name, if the network was trained on columns with names, which are among what was
    ``learned`` from the data; a list of texts is read as the only one of these columns.
    """
    sections = given if isinstance(given, Mapping) else {names[0]: given}
    plain = {
        name: {"type": "default:columns", "columns": [*columns]} for name, columns in learned.get("columns", {}).items()
    }
    tables, arrays = {**plain, **learned.get("frames", {})}, Host()
    for name, values in sections.items():
        values = _as_column(values, tables.get(name, {}).get("columns", ()))
        if name in tables and (is_frame(values) or isinstance(values, dict) or hasattr(values, "__arrow_c_stream__")):
            extractor = resolve("extractor", tables[name])
            with introduce_errors("predict", extractor):
                values = extractor.extract(values)[name]
        arrays[name] = as_array("predict", name, values)
    return arrays


def _as_column(values: Any, columns: Sequence[Any]) -> Any:
    """Return a list of texts, some of them missing, as the only column with an encoder; others unchanged."""
    texts = isinstance(values, list | tuple) and any(isinstance(value, str) for value in values)
    if not texts or not all(isinstance(value, str | None) for value in values) or len(columns) != 1:
        return values
    (own,) = columns
    return {own["name"]: [*values]} if isinstance(own, Mapping) and "encoder" in own else values


@contextmanager
def number_errors(dataset: Dataset, block: int) -> Iterator[None]:
    """Add the number of the block to a SigmaDataError, if there are several."""
    try:
        yield
    except SigmaDataError as error:
        if dataset.blocks == 1:
            raise
        raise SigmaDataError(f"block {block}: {error}") from error


# -- rows by their numbers ---------------------------------------------------------------------------------------------
def gather_rows(dataset: Dataset, rows: Sequence[int]) -> Host:
    """Return the sections of numbered rows, in the given order; raise SigmaDataError for a row that does not exist."""
    starts, wanted = starts_of(dataset), np.asarray(rows, np.int64).reshape(-1)
    check_rows("data", wanted.tolist(), starts[-1])
    homes = np.searchsorted(starts, wanted, side="right") - 1
    if not len(wanted):
        return {name: values[:0] for name, values in read(dataset, 0).items()}
    blocks = {home: read(dataset, home) for home in np.unique(homes).tolist()}
    placed = [(blocks[home], row - starts[home]) for home, row in zip(homes.tolist(), wanted.tolist(), strict=True)]
    return {name: np.stack([block[name][row] for block, row in placed]) for name in placed[0][0]}


def check_rows(where: str, rows: Iterable[int], count: int) -> None:
    """Raise SigmaDataError for a row that does not exist."""
    wrong = next((row for row in rows if not 0 <= row < count), None)
    if wrong is not None:
        raise SigmaDataError(f"{where}: there is no row {wrong}. Rows are numbered from 0 to {count - 1}.")


def starts_of(dataset: Dataset) -> list[int]:
    """Return the number of the first row of each block; last, that of all rows."""
    return [0, *accumulate(dataset.rows(block) for block in range(dataset.blocks))]
