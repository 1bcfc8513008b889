"""Passes over a split of the data: what each measures, in pieces that several workers may share."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from typing import Any

import numpy as np
from attrs import field, frozen


@frozen
class SplitPass:
    """A pass over all rows of a split.

    Args:
        on: The split.
        edited: Whether with the edits that are in force, or as it is in the data set.
        metrics: The metrics of an evaluation, by name; None if the losses of single rows are measured.
    """

    on: str
    edited: bool = True
    metrics: Mapping[str, Any] | None = None


@frozen(eq=False)
class SplitPiece:
    """What a pass measures of some consecutive minibatches, which have the same size and are from one block.

    Args:
        block: The number of the block.
        size: Rows of a minibatch.
        count: The number of minibatches.
        records: The records of a step, with an axis of minibatches; or the losses of the rows.
    """

    block: int
    size: int
    count: int
    records: Any = field(repr=False)

    @property
    def rows(self) -> int:
        """Return the number of rows."""
        return self.count * self.size


def join_pieces(pieces: Iterable[SplitPiece]) -> Iterator[SplitPiece]:
    """Yield records of a step as one pass has them: those of neighbours from the same block are joined."""
    for (block, size), every in groupby(pieces, key=lambda piece: (piece.block, piece.size)):
        first, *others = every
        names, count = [*first.records], sum(piece.count for piece in (first, *others))
        records = {name: np.concatenate([piece.records[name] for piece in (first, *others)]) for name in names}
        yield SplitPiece(block, size, count, records if others else first.records)
