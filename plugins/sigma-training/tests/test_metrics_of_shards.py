"""Totals of a metric are merged over shards by its own rule, not as gradients are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from sigma_kernel import functions as f
from sigma_kernel.contracts import Merger, Metric, Records, Share
from sigma_kernel.graph import Node
from sigma_training.group.merging import ShareMerger
from sigma_training.group.sharding import WeightedShare


class Largest(Metric):
    """The largest prediction."""

    def totals(self, prediction: Node, targets: Node) -> Node:
        return f.max(prediction)

    def merge(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return np.maximum(a, b)


class _Steps:
    """Iterations of a model with one parameter, which record one metric."""

    metrics: ClassVar = {"largest": Largest()}

    def split_gradients(self, gradients: Records) -> Records:
        return {f"w.{dtype}": vector for dtype, vector in gradients.items()}


def test_each_record_is_merged_by_its_own_rule() -> None:
    one, other = (
        WeightedShare(
            {"loss": np.float32(loss), "metrics.largest": np.float32(most)}, {"float32": np.array([w], np.float32)}, {}
        )
        for loss, most, w in ((1, 5, 2), (2, 3, 4))
    )
    merged = ShareMerger(_Steps()).merge([one, other])  # type: ignore[arg-type]
    assert merged == Share({"loss": 3, "metrics.largest": 5}, {"float32": np.array([6], np.float32)}, {})


def test_an_array_of_a_merger_of_its_own_stays_its_own() -> None:
    kept = np.zeros(2)

    class Kept(Merger):
        def merge(self, parts: Sequence[np.ndarray], weights: Sequence[float], address: str) -> np.ndarray:
            assert (list(weights), address) == ([0.5, 0.5], "w.float64")
            return np.add(parts[0], parts[1], out=kept)

    ones = WeightedShare({}, {"float64": np.ones(2)}, {}, 0.5)
    merged = ShareMerger(_Steps(), Kept()).merge([ones, ones]).gradients  # type: ignore[arg-type]
    assert kept.flags.writeable
    assert not np.shares_memory(merged["float64"], kept)
    assert merged["float64"].tolist() == [2, 2]
