"""What a peer is to train: everything that decides the result, taken from a prepared trainer as host arrays."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import count
from typing import Any

import numpy as np
from attrs import frozen

from sigma_kernel.errors import SigmaConfigError
from sigma_kernel.network import Placed
from sigma_kernel.training.trainer import Trainer


@frozen
class Work:
    """A training task.

    ``state`` is the state tree as training starts, ``streams`` numbers the draws, ``block`` holds all rows of the
    prepared data, and ``order`` says in which order an epoch goes through them.
    """

    layers: tuple[Placed, ...]
    shapes: Mapping[str, tuple[int, ...]]  # of one sample, by layer
    state: Mapping[str, np.ndarray]
    streams: Mapping[str, int]
    optimiser: Any
    precision: str
    block: Mapping[str, np.ndarray]
    order: Callable[[int], np.ndarray]
    batch_size: int
    keep_last: bool

    @classmethod
    def of(cls, trainer: Trainer) -> Work:
        """Return the work of a trainer that is prepared and has not begun.

        Raises SigmaConfigError where the data comes in several blocks.
        """
        session = trainer.session
        feed, model = session.feed, session.model
        if feed.dataset.blocks > 1:
            raise SigmaConfigError(
                f"peers: they hold all the data at once, and this comes in {feed.dataset.blocks} blocks. "
                "Leave --peers out, or take less of it."
            )
        block = feed.prepare(feed.dataset.block(0))
        return cls(
            layers=model.network.layers,
            shapes={name: spec.shape for name, spec in model.shapes.outputs.items()},
            state=session.snapshot().arrays,
            streams=model.shapes.streams.numbers,
            optimiser=model.optimiser,
            precision=model.precision,
            block=block,
            order=partial(_order, feed, feed.dataset.rows(0)),
            batch_size=feed.batch_size,
            keep_last=feed.keep_last,
        )

    def batches(self) -> Iterator[np.ndarray]:
        """Yield the rows of one minibatch after the other, epoch after epoch without end."""
        for epoch in count():
            order = self.order(epoch)
            end = len(order) if self.keep_last else len(order) - len(order) % self.batch_size
            for start in range(0, end, self.batch_size):
                yield order[start : start + self.batch_size]


def _order(feed: Any, rows: int, epoch: int) -> np.ndarray:
    order: np.ndarray = feed.order.order(feed.seed, epoch, 0, rows)
    return order
