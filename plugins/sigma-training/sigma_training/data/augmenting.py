"""Vary the rows of a block for one epoch of training, by augmentations in their order."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from attrs import evolve, frozen

from sigma_kernel.arrays import read_only
from sigma_kernel.contracts import Augmentation
from sigma_kernel.errors import expect, introduce_errors
from sigma_kernel.graph.random import RowDraws

AT_ONCE = 1 << 18  # numbers of the rows that an augmentation gets at once, as it holds several arrays of their size

Block = Mapping[str, np.ndarray]


@frozen
class Augmenter:
    """Apply the augmentations ``steps`` with random numbers that depend on seed, epoch and the number of the row."""

    seed: int
    steps: Mapping[str, Augmentation]

    def apply(self, block: Block, epoch: int, rows: np.ndarray) -> Block:
        """Return a block, whose rows have these numbers, as it is in an epoch."""
        for stream, name in enumerate(self.steps):
            block = self._apply_one(name, block, RowDraws(self.seed, stream, epoch, rows))
        return block

    def _apply_one(self, name: str, block: Block, draw: RowDraws) -> Block:
        """Apply one augmentation: to some rows at a time, unless it mixes rows."""
        step, count, parts = self.steps[name], len(draw.rows), list[Block]()
        size = count if step.mixes_rows else max(1, AT_ONCE * count // sum(values.size for values in block.values()))
        for part in (slice(first, first + size) for first in range(0, count, size)):
            own = {section: read_only(values[part]) for section, values in block.items()}
            with introduce_errors(f"augmentation {name!r}", step):
                parts.append(step.augment(own, evolve(draw, rows=draw.rows[part])))
                wanted = _describe_form(own)
                expect(_describe_form(parts[-1]) == wanted, f"augment() must return {wanted}", parts[-1])
        return parts[0] if len(parts) == 1 else {name: np.concatenate([part[name] for part in parts]) for name in block}


def _describe_form(block: Block) -> dict[str, str]:
    return {section: f"{values.dtype} of shape {values.shape}" for section, values in block.items()}
