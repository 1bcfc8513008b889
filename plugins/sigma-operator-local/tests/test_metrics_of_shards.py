"""Totals of a metric are merged over shards by its own rule, not as gradients are."""

from __future__ import annotations

import numpy as np

from sigma_kernel import functions as f
from sigma_kernel.contracts import Merger, Metric, Share
from sigma_kernel.graph import Node
from sigma_operator_local.shards import Sharding, Sum


class Largest(Metric):
    """The largest prediction."""

    def totals(self, prediction: Node, targets: Node) -> Node:
        return f.max(prediction)

    def merge(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return np.maximum(a, b)


def test_each_record_is_merged_by_its_own_rule() -> None:
    one, other = (
        Share({"loss": np.float32(loss), "metrics.largest": np.float32(most)}, {"gradients.w": np.float32(w)}, {})
        for loss, most, w in ((1, 5, 2), (2, 3, 4))
    )
    merged = Sharding(2, 1, Sum(), None)._pair({"largest": Largest()}, one, other)
    assert merged == Share({"loss": 3, "metrics.largest": 5}, {"gradients.w": 6}, {})


def test_an_array_of_a_merger_of_its_own_stays_its_own() -> None:
    kept = np.zeros(2)

    class Kept(Merger):
        def merge(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
            return np.add(a, b, out=kept)

    merged = Sharding(2, 1, Kept(), None)._merge_gradients(np.ones(2), np.ones(2))
    assert kept.flags.writeable
    assert not merged.flags.writeable
