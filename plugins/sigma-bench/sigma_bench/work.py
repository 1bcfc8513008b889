"""Description of a training task for peers, as plain values and host arrays.

This module and the peers import only errors from Sigma, so that a peer's process holds nothing else of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, count
from typing import Any

import numpy as np
from attrs import evolve, field, frozen

Settings = Mapping[str, Any]


@frozen
class Part:
    """One part of a chain of layers.

    ``affine`` and ``convolution`` have parameters under ``<layer>.weights`` and ``<layer>.biases``: ``(inputs, units)``
    and ``(filters, channels, *window)``, ``batch_norm`` and ``layer_norm`` under ``<layer>.scale`` and
    ``<layer>.shift``.  A ``residual`` adds the outputs of its ``body`` and of its ``projection`` for the same value.
    ``embedding`` and ``positions`` have weights with a vector in each row.  ``encoder`` is a block of a
    transformer: its parameters are those of ``attention`` (``query``, ``key``, ``value``, ``output``), ``hidden``,
    ``feed_forward`` and two norms.  A ``recurrence`` also has ``<layer>.recurrent``, with the gates of Sigma's layers
    in their order.  The others are ``max_pool``, ``average_pool``, ``global_average_pool``, ``activation``, ``dropout``
    and ``flatten``.  ``shape`` is that of one input sample, channels or time first.
    """

    kind: str
    layer: str
    shape: tuple[int, ...]
    settings: Settings = field(factory=dict)

    @property
    def inner(self) -> Mapping[str, tuple[Part, ...]]:
        """Return the chains of parts that this part owns."""
        return {name: self.settings[name] for name in ("body", "projection") if name in self.settings}


def walk_parts(parts: Iterable[Part]) -> Iterator[Part]:
    """Yield parts and those that they own."""
    for part in parts:
        yield part
        yield from walk_parts(chain.from_iterable(part.inner.values()))


def without_dropout(parts: Iterable[Part]) -> tuple[Part, ...]:
    """Return parts without dropout."""
    kept = (part for part in parts if part.kind != "dropout")
    return tuple(
        evolve(part, settings={**part.settings, **{name: without_dropout(own) for name, own in part.inner.items()}})
        for part in kept
    )


@frozen
class UpdateRule:
    """The name of one of Sigma's optimisers, and its settings."""

    name: str
    settings: Mapping[str, float]


@frozen(eq=False)
class Workload:
    """A training task: a chain of parts that ends in class scores, and their softmax cross-entropy with labels.

    ``parameters`` are the initial values; ``key`` and each dropout's ``stream`` determine the random numbers;
    ``orders`` are the orders of rows in the first epochs, which then repeat.
    """

    parts: tuple[Part, ...]
    parameters: Mapping[str, np.ndarray]
    rule: UpdateRule
    precision: str
    key: np.ndarray
    inputs: np.ndarray
    labels: np.ndarray
    orders: np.ndarray
    batch_size: int
    keep_last: bool

    @property
    def drops(self) -> bool:
        """Return whether there is dropout."""
        return any(part.settings["rate"] > 0 for part in walk_parts(self.parts) if part.kind == "dropout")

    def without_dropout(self) -> Workload:
        """Return the same work without dropout."""
        return evolve(self, parts=without_dropout(self.parts))

    @property
    def per_epoch(self) -> int:
        """Return the iterations per epoch."""
        rows: int = self.orders.shape[1]
        whole, rest = divmod(rows, self.batch_size)
        return whole + bool(rest and self.keep_last)

    def epochs(self) -> list[list[np.ndarray]]:
        """Return the rows of every minibatch of every epoch whose order is known."""
        starts = range(0, self.per_epoch * self.batch_size, self.batch_size)
        return [[order[start : start + self.batch_size] for start in starts] for order in self.orders]

    def batches(self) -> Iterator[np.ndarray]:
        """Yield the rows of minibatches, endlessly."""
        batches = [rows for epoch in self.epochs() for rows in epoch]
        for i in count():
            yield batches[i % len(batches)]
