"""Windows over rows in the order of time, as a data set: views of the rows as far as possible."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from sigma_data.arrays import read_only
from sigma_kernel import Dataset
from sigma_kernel.graph import Spec

LARGEST = 1 << 28  # bytes of the inputs of a block


class SeriesWindows(Dataset):
    """Windows of ``past`` rows of ``inputs``, and of ``ahead`` rows of ``targets`` that follow them.

    ``inputs`` and ``targets`` have a row per time, and a number per column; ``starts`` are the first rows of the
    windows. A sample of ``inputs`` is (past, columns), of ``targets`` (ahead * columns,), named by ``names``. Blocks of
    windows that start in consecutive rows are views.
    """

    def __init__(
        self, inputs: np.ndarray, targets: np.ndarray, starts: np.ndarray, past: int, ahead: int, names: Sequence[str]
    ) -> None:
        self._inputs, self._targets = slide(inputs, past), slide(targets, ahead)
        self.starts, self.past, self._names = starts, past, tuple(names)
        self._size = max(1, LARGEST // max(1, self.window_bytes))

    @property
    def window_bytes(self) -> int:
        """Return the bytes of the inputs of a window."""
        return int(np.prod(self._inputs.shape[1:])) * self._inputs.itemsize

    @property
    def sections(self) -> Mapping[str, Spec]:
        """Return the shapes of a window: (past, columns) and (ahead * columns,)."""
        goal = int(np.prod(self._targets.shape[1:]))
        return {"inputs": Spec(self._inputs.shape[1:], self._inputs.dtype.name), "targets": Spec((goal,), "float64")}

    @property
    def blocks(self) -> int:
        """Return the number of blocks, by default of at most 256 MiB each."""
        return -(-len(self.starts) // int(self._size))

    def rows(self, block: int) -> int:
        """Return the number of windows of a block."""
        return len(self._starts_of(block))

    def block(self, block: int) -> Mapping[str, np.ndarray]:
        """Return the windows of a block; views cannot be written to."""
        starts = self._starts_of(block)
        targets = self._targets[find_rows(starts + self.past)].reshape(len(starts), -1)
        return read_only({"inputs": self._read_inputs(starts), "targets": targets})

    def _read_inputs(self, starts: np.ndarray) -> np.ndarray:
        return self._inputs[find_rows(starts)]

    def column_names(self, section: str) -> Sequence[str]:
        """Return the names of the targets, with the number of steps."""
        return self._names if section == "targets" else ()

    def _starts_of(self, block: int) -> np.ndarray:
        return self.starts[block * self._size : (block + 1) * self._size]

    def __repr__(self) -> str:
        return f"SeriesWindows({len(self.starts)} windows of {self.past} rows)"


def slide(values: np.ndarray, length: int) -> np.ndarray:
    """Return all windows of so many rows as a view, (windows, length, columns)."""
    return sliding_window_view(values, length, axis=0).swapaxes(1, 2)


def find_rows(numbers: np.ndarray) -> slice | np.ndarray:
    """Return rows by their ascending numbers as a slice if they are neighbours, so that reading them makes a view."""
    dense = numbers[-1] - numbers[0] + 1 == len(numbers)
    return slice(int(numbers[0]), int(numbers[-1]) + 1) if dense else numbers


def number_runs(positions: np.ndarray, groups: np.ndarray, size: int | None) -> np.ndarray:
    """Return the number of the run of each row: rows of one group that follow each other by one step."""
    breaks = groups[1:] != groups[:-1]
    if size is not None:
        breaks |= np.diff(positions) != size
    return np.concatenate([[0], np.cumsum(breaks)]).astype(np.int64)


def find_starts(runs: np.ndarray, usable: np.ndarray, length: int, beyond: int = 0) -> np.ndarray:
    """Return the first rows of windows of ``length`` usable rows within one run, with ``beyond`` more rows of any."""
    count = len(runs) - length - beyond + 1
    if count <= 0:
        return np.zeros(0, np.int64)
    unusable = np.concatenate([[0], np.cumsum(~usable)])
    first = np.arange(count)
    whole = runs[first] == runs[first + length + beyond - 1]
    return np.flatnonzero(whole & (unusable[first + length] == unusable[first]))
