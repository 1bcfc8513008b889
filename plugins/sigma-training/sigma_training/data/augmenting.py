"""Vary the rows of a block for one epoch of training, by augmentations in their order."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import groupby

import numpy as np
from attrs import evolve, frozen

from sigma_kernel.arrays import read_only
from sigma_kernel.contracts import Augmentation
from sigma_kernel.errors import expect, introduce_errors
from sigma_kernel.graph.random import RowDraws

AT_ONCE = 1 << 21  # numbers of the rows that an augmentation gets at once, as it holds several arrays of their size

Block = Mapping[str, np.ndarray]


@frozen
class Augmenter:
    """Apply the augmentations ``steps`` with random numbers that depend on seed, epoch and the number of the row."""

    seed: int
    steps: Mapping[str, Augmentation]

    def apply(self, block: Block, epoch: int, rows: np.ndarray) -> Block:
        """Return a block, whose rows have these numbers, as it is in an epoch."""
        for mixing, steps in groupby(enumerate(self.steps), lambda step: self.steps[step[1]].mixes_rows):
            draws = {name: RowDraws(self.seed, stream, epoch, rows) for stream, name in steps}
            size = len(rows) if mixing else max(1, AT_ONCE * len(rows) // sum(values.size for values in block.values()))
            before, block = block, {section: np.empty_like(values) for section, values in block.items()}
            for part in (slice(first, first + size) for first in range(0, len(rows), size)):
                for section, values in self._apply_some(before, part, draws).items():
                    block[section][part] = values
        return block

    def _apply_some(self, block: Block, part: slice, draws: Mapping[str, RowDraws]) -> Block:
        """Apply augmentations one after another to some rows, few enough for the caches of a processor."""
        block = {section: values[part] for section, values in block.items()}
        for name, draw in draws.items():
            own = {section: read_only(values) for section, values in block.items()}
            with introduce_errors(f"augmentation {name!r}", self.steps[name]):
                block, wanted = self.steps[name].augment(own, evolve(draw, rows=draw.rows[part])), _describe_form(own)
                expect(_describe_form(block) == wanted, f"augment() must return {wanted}", block)
        return block


def _describe_form(block: Block) -> dict[str, str]:
    return {section: f"{values.dtype} of shape {values.shape}" for section, values in block.items()}
