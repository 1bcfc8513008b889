"""Convert what users pass as data (arrays, pairs, iterables of blocks) to a data set."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np

from sigma_kernel.contracts import Dataset
from sigma_kernel.errors import SigmaDataError, expect, inside
from sigma_kernel.graph.node import Spec

Host = dict[str, np.ndarray]


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
        """Return the spec of each section."""
        return specs(self._blocks[0])

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


def as_array(where: str, name: str, values: Any) -> np.ndarray:
    """Convert a section to an array with one row per sample; raise SigmaDataError if that is impossible."""
    try:
        array = np.asarray(values)
    except ValueError:
        raise SigmaDataError(f"{where}: section {name!r}: samples have different shapes. Cut or pad them.") from None
    if not array.ndim:
        raise SigmaDataError(f"{where}: section {name!r} is a single value. Axis 0 is for the samples.")
    return array


class Kept(Iterable[Any]):
    """The blocks of an iterator, read on first use and kept: a second preparation finds them again."""

    def __init__(self, source: Iterator[Any]) -> None:
        self._source: Iterator[Any] | None = source
        self._blocks: list[Any] | None = None

    def __iter__(self) -> Iterator[Any]:
        """Iterate over the blocks; raise SigmaDataError if reading them failed before, as the rest is not all."""
        source, self._source = self._source, None
        if source is not None:
            self._blocks = [*source]
        if self._blocks is None:
            raise SigmaDataError("data: reading this iterator failed, and cannot be repeated. Set the data again.")
        return iter(self._blocks)


def kept(given: Any) -> Any:
    """Return data, or the data of each split, with iterators replaced by their blocks, which can be read repeatedly."""
    if isinstance(given, dict) and any(isinstance(one, Iterator) for one in given.values()):
        return {name: kept(one) for name, one in given.items()}
    return Kept(given) if isinstance(given, Iterator) else given


def dataset(given: Any, where: str = "data") -> Dataset:
    """Convert data to a data set: a data set itself, arrays by section, a pair, or an iterable of such blocks.

    An iterable is consumed once, and its blocks are kept in memory.  Raises SigmaDataError for anything else.
    """
    if isinstance(given, Dataset):
        return given
    blocks = [given] if isinstance(given, Mapping) or _is_pair(given) else given
    if isinstance(blocks, str | bytes | np.ndarray) or not isinstance(blocks, Iterable):
        raise _no_data(given, where)
    return Rows(*(_sections(block, where) for block in blocks))


def _is_pair(given: Any) -> bool:
    return isinstance(given, tuple) and not any(isinstance(part, Mapping) for part in given)


def _sections(block: Any, where: str) -> Mapping[str, Any]:
    if isinstance(block, Mapping):
        return block
    if not isinstance(block, tuple | list) or len(block) != 2:
        raise _no_data(block, where)
    return dict(zip(("inputs", "targets"), block, strict=True))


def _no_data(given: Any, where: str) -> SigmaDataError:
    what = f"{type(given).__name__} of {len(given)}" if isinstance(given, tuple | list) else type(given).__name__
    return SigmaDataError(
        f"{where}: not data (got {what}). Give arrays by section, {{'inputs': x, 'targets': y}}, a pair "
        "(inputs, targets), an iterable of such blocks, or a data set such as Arrays(...) or Stream(...)."
    )


def read(dataset: Dataset, block: int) -> Mapping[str, np.ndarray]:
    """Return a block of a data set; raise SigmaComponentError unless it has the rows that the data set declares."""
    with inside("data", dataset):
        found, rows = dataset.block(block), dataset.rows(block)
        for name, values in found.items():
            right = isinstance(values, np.ndarray) and len(values) == rows
            expect(right, f"block({block}) must return {name!r} as an array of {rows} rows", values)
    return found


@contextmanager
def placed(dataset: Dataset, block: int) -> Iterator[None]:
    """Add the number of the block to a SigmaDataError, if there are several."""
    try:
        yield
    except SigmaDataError as error:
        if dataset.blocks == 1:
            raise
        raise SigmaDataError(f"block {block}: {error}") from error
