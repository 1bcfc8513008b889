"""Minibatches in which all classes are equally frequent."""

from __future__ import annotations

import numpy as np
from attrs import field, frozen

from sigma_data.shuffling import BALANCE, permute_rows
from sigma_kernel import Iterator, SigmaDataError


@frozen
class Balanced(Iterator):
    """Draw rows so that each class comes equally often, in every epoch anew, by the seed of the run.

    An epoch has as many rows as the data, and all classes the same share of them, up to one row.  Rows of rare classes
    come several times, all equally often up to one; of frequent classes, another random part comes in each epoch.
    Classes are the distinct values of the ``section``, sets of labels if a row may have several.  Rows are balanced
    within each block of the data.  Evaluation is of all rows, once each.

    Args:
        section: Section with the classes.
    """

    section: str = field(default="targets")

    def indices(self, seed: int, epoch: int, block: int, rows: int) -> np.ndarray:
        """Return a permutation of ``range(rows)``, that of rows of one class."""
        return permute_rows(seed, block, rows, epoch)

    def draw(self, seed: int, epoch: int, block: int, values: np.ndarray) -> np.ndarray:
        """Return as many numbers of rows as there are values; SigmaDataError for values that are no classes."""
        if values.dtype.kind == "f" and (values != np.rint(values)).any():
            raise SigmaDataError(
                f"iterator: section {self.section!r} holds numbers, not classes. Choose 'minibatch', or set "
                "targets = 'classes' for the data set."
            )
        rows = len(values)
        _, codes = np.unique(values.reshape(rows, -1), axis=0, return_inverse=True)
        codes = codes.reshape(-1)
        order, counts = np.argsort(codes, kind="stable"), np.bincount(codes)
        starts, classes = np.cumsum(counts) - counts, len(counts)
        more = permute_rows(seed, BALANCE - 1 - block, classes, epoch) < rows % classes  # the classes with a row more
        drawn = []
        for name, count in enumerate(counts.tolist()):
            rounds = -(-(rows // classes + 1) // count)
            stream, first = BALANCE + block * classes + name, epoch * rounds
            places = np.concatenate([permute_rows(seed, stream, count, first + i) for i in range(rounds)])
            drawn.append(order[starts[name] + places[: rows // classes + more[name]]])
        return np.asarray(np.concatenate(drawn)[permute_rows(seed, block, rows, epoch)])
