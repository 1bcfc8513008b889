"""The adding problem: remember two numbers of a long sequence."""

from __future__ import annotations

import numpy as np
from attrs import define, field

from sigma_data.arrays import Arrays
from sigma_data.datasets.splits import Divided
from sigma_kernel.graph import Draw
from sigma_kernel.settings import ge

STREAMS = {"numbers": 0xFFFF_FF10, "first": 0xFFFF_FF11, "second": 0xFFFF_FF12}


@define(eq=False, kw_only=True)
class Adding(Divided):
    """Sequences of a number from 0 to 1 and a mark, drawn from ``seed``; the target is the sum of the marked numbers.

    A step is ``(number, mark)``. One step of the first half and one of the second half are marked with 1, the others
    with 0. Inputs ``(steps, 2)``, targets ``(1,)``, float32. A constant answer of 1 has a mean squared error of 1/6.

    Hochreiter and Schmidhuber, Long Short-Term Memory, 1997; in the form of Le, Jaitly and Hinton, A Simple Way to
    Initialize Recurrent Networks of Rectified Linear Units, arXiv:1504.00941.

    Args:
        rows: Number of sequences.
        steps: Length of a sequence.
    """

    rows: int = field(default=5000, validator=ge(1))
    steps: int = field(default=50, validator=ge(2))

    def all_rows(self) -> tuple[Arrays, tuple[int, ...]]:
        """Return all sequences, with their sums."""
        numbers = Draw(self.seed, STREAMS["numbers"]).uniform((self.rows, self.steps))
        half, each = self.steps // 2, np.arange(self.rows)
        places = [self._place("first", 0, half), self._place("second", half, self.steps)]
        marks = np.zeros_like(numbers)
        for place in places:
            marks[each, place] = 1.0
        sums = sum(numbers[each, place] for place in places)
        inputs = np.stack([numbers, marks], axis=-1).astype(np.float32)
        return Arrays(inputs=inputs, targets=np.asarray(sums, np.float32)[:, None]), ()

    def _place(self, stream: str, start: int, stop: int) -> np.ndarray:
        """Return a step from ``start`` to before ``stop`` for each row."""
        drawn = Draw(self.seed, STREAMS[stream]).uniform((self.rows,))
        return np.asarray(start + np.floor(drawn * (stop - start)), int)
