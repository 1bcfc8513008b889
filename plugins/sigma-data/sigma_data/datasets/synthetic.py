"""Random data of any shape, with targets that can be learned."""

from __future__ import annotations

from math import prod
from typing import Literal

import numpy as np
from attrs import define, field

from sigma_data.arrays import Arrays
from sigma_data.datasets.splits import Divided
from sigma_kernel import SigmaDataError
from sigma_kernel.graph import Draw
from sigma_kernel.settings import deep_iterable, ge, in_

STREAMS = {"teacher": 0xFFFF_FF00, "inputs": 0xFFFF_FF01, "classes": 0xFFFF_FF02, "noise": 0xFFFF_FF03}


@define(eq=False, kw_only=True)
class Synthetic(Divided):
    """Normally distributed inputs drawn from ``seed``, and targets that can be learned from them.

    ``teacher`` generates the targets.  ``centres``: each of ``classes`` classes has a centre, a sample is its centre
    plus normal noise of standard deviation ``noise``, the target is the class, of shape ().  ``linear``: the target is
    a linear function of the sample, of shape (``outputs``,) and standard deviation about 1, plus such noise.
    ``chain``: a sample is a sequence of classes, int32, each the successor of the one before it, or with probability
    ``noise`` any class; the target is the same sequence one step later.

    Args:
        rows: Number of rows.
        shape: Shape of one input.
        teacher: What generates the targets.
        classes: Number of classes, for ``centres`` and ``chain``.
        outputs: Size of a target, for ``linear``.
        noise: Standard deviation of the noise, or probability of a random class.
    """

    rows: int = field(default=1000, validator=ge(1))
    shape: tuple[int, ...] = field(default=(16,), validator=deep_iterable(ge(1)))
    teacher: Literal["centres", "linear", "chain"] = field(
        default="centres", validator=in_(("centres", "linear", "chain"))
    )
    classes_: int = field(default=4, alias="classes", validator=ge(1))
    outputs: int = field(default=1, validator=ge(1))
    noise: float = field(default=0.5, validator=ge(0.0))

    def all_rows(self) -> tuple[Arrays, tuple[int, ...]]:
        """Return all rows."""
        try:
            return {"centres": self._centres, "linear": self._linear, "chain": self._chain}[self.teacher]()
        except (MemoryError, ValueError):  # ValueError for sizes that overflow NumPy's index
            raise SigmaDataError(
                f"synthetic: {self.rows} rows of shape {self.shape} do not fit into memory. Take fewer."
            ) from None

    def _centres(self) -> tuple[Arrays, tuple[int, ...]]:
        inputs = self._draw("noise").normal((self.rows, *self.shape), 0.0, self.noise)
        centres = self._draw("teacher").normal((self.classes_, *self.shape))
        targets = np.floor(self._draw("classes").uniform((self.rows,)) * self.classes_).astype(np.int32)
        inputs += centres[targets]
        return Arrays(inputs=inputs.astype(np.float32), targets=targets), tuple(range(self.classes_))

    def _linear(self) -> tuple[Arrays, tuple[int, ...]]:
        size = prod(self.shape)
        inputs = self._draw("inputs").normal((self.rows, size))
        weights = self._draw("teacher").normal((size, self.outputs)) / np.sqrt(size)
        targets = inputs @ weights + self._draw("noise").normal((self.rows, self.outputs), 0.0, self.noise)
        inputs = inputs.astype(np.float32).reshape(self.rows, *self.shape)
        return Arrays(inputs=inputs, targets=targets.astype(np.float32)), ()

    def _chain(self) -> tuple[Arrays, tuple[int, ...]]:
        length, classes = prod(self.shape), self.classes_
        successors = np.argsort(self._draw("teacher").uniform((classes,)))
        states = np.floor(self._draw("classes").uniform((self.rows, length + 1)) * classes).astype(np.int32)
        follows = self._draw("noise").uniform((self.rows, length + 1)) >= self.noise
        for step in range(length):
            states[:, step + 1] = np.where(follows[:, step + 1], successors[states[:, step]], states[:, step + 1])
        inputs, targets = (x.reshape(self.rows, *self.shape) for x in (states[:, :-1], states[:, 1:]))
        return Arrays(inputs=inputs, targets=targets), tuple(range(classes))

    def _draw(self, what: str) -> Draw:
        return Draw(self.seed, STREAMS[what])
