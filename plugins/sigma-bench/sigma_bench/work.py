"""What a peer is to train: everything that decides the result, as plain values and host arrays.

This module and the peers import nothing of Sigma but its errors, so that a peer's process holds what it would without.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import count
from typing import Any

import numpy as np
from attrs import evolve, field, frozen

Settings = Mapping[str, Any]


@frozen
class Part:
    """One step of the forward pass, in a chain.

    ``affine`` and ``convolution`` have parameters under ``<layer>.weights`` and ``<layer>.biases``: ``(inputs, units)``
    and ``(filters, channels, *window)``.  The others are ``max_pool``, ``average_pool``, ``activation``, ``dropout``
    and ``flatten``.  ``shape`` is that of one sample as it comes in, channels first.
    """

    kind: str
    layer: str
    shape: tuple[int, ...]
    settings: Settings = field(factory=dict)


@frozen
class Rule:
    """How parameters change: the name of one of Sigma's optimisers, and its settings."""

    name: str
    settings: Mapping[str, float]


@frozen(eq=False)
class Work:
    """A training task: a chain of parts that ends in scores, and their softmax cross-entropy with labels.

    ``parameters`` hold the values as training starts, ``key`` and each dropout's ``stream`` number the draws, and
    ``orders`` says in which order the first epochs go through the rows; after them it begins again.
    """

    parts: tuple[Part, ...]
    parameters: Mapping[str, np.ndarray]
    rule: Rule
    precision: str
    key: np.ndarray
    inputs: np.ndarray
    labels: np.ndarray
    orders: np.ndarray
    batch_size: int
    keep_last: bool

    @property
    def drops(self) -> bool:
        """Return whether anything is dropped at random."""
        return any(part.settings["rate"] > 0 for part in self.parts if part.kind == "dropout")

    def undropped(self) -> Work:
        """Return the same work with nothing dropped."""
        return evolve(self, parts=tuple(part for part in self.parts if part.kind != "dropout"))

    @property
    def per_epoch(self) -> int:
        """Return the iterations that go through the rows once."""
        rows: int = self.orders.shape[1]
        whole, rest = divmod(rows, self.batch_size)
        return whole + bool(rest and self.keep_last)

    def epochs(self) -> list[list[np.ndarray]]:
        """Return the rows of every minibatch of every epoch whose order is known."""
        starts = range(0, self.per_epoch * self.batch_size, self.batch_size)
        return [[order[start : start + self.batch_size] for start in starts] for order in self.orders]

    def batches(self) -> Iterator[np.ndarray]:
        """Yield the rows of one minibatch after the other, without end."""
        known = [rows for epoch in self.epochs() for rows in epoch]
        for i in count():
            yield known[i % len(known)]
