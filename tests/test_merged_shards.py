"""Shards of a batch in training: what mergers and metrics get cannot be written, and is merged by their rules."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from sigma_kernel import Environment, functions as f
from sigma_kernel.contracts import Merger, Metric
from sigma_kernel.errors import SigmaComponentError
from sigma_kernel.graph import Node
from sigma_operator_local import LocalOperator

pytestmark = pytest.mark.rooms


class LargestByColumn(Metric):
    """The largest prediction of each column, written over the first operand, or over the second."""

    over = 0

    def totals(self, prediction: Node, targets: Node) -> Node:
        return f.max(prediction, axis=0)

    def merge(self, *parts: np.ndarray) -> np.ndarray:
        return np.maximum(*parts, out=parts[self.over])

    def value(self, totals: np.ndarray, rows: int) -> list[float]:
        return [*map(float, totals)]


class LastByColumn(LargestByColumn):
    over = 1


class InPlace(Merger):
    """A merger that adds to its first operand, or to its second."""

    over = 0

    def merge(self, parts: Sequence[np.ndarray], weights: Sequence[float], address: str) -> np.ndarray:
        return np.add(parts[0], parts[1], out=parts[self.over])


class Last(InPlace):
    over = 1


@pytest.mark.parametrize(
    ("wrong", "named"),
    [({"metrics": {"most": kind()}}, "metric 'most'") for kind in (LargestByColumn, LastByColumn)]
    + [({"operator": LocalOperator(shards=3, merger=kind())}, "merger") for kind in (InPlace, Last)],
)
def test_a_component_that_writes_to_what_a_shard_has_computed_is_refused_by_name(wrong: Any, named: str) -> None:
    rows = np.ones((6, 2), np.float32)
    network = "input(2) + output(2) + squared_difference()"
    settings = {"optimiser": "adam", "backend": "numpy", "operator": LocalOperator(shards=3), **wrong}
    trainer = Environment("e", seed=0).create_trainer(data=(rows, rows), network=network, **settings)
    with pytest.raises(SigmaComponentError, match=f"(?s)^{re.escape(named)} .*read-only.*Correct its code"):
        trainer.fit(epochs=1)


def test_a_metric_of_several_totals_is_merged_over_shards() -> None:
    class Columns(LargestByColumn):
        def merge(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
            return np.maximum(a, b)

    rows = np.random.default_rng(0).normal(size=(6, 2)).astype(np.float32)
    trainer = Environment("e", seed=0).create_trainer(
        data=(rows, rows),
        network="input(2) + output(2) + squared_difference()",
        optimiser={"type": "gradient_descent", "learning_rate": 0.0},
        backend="numpy",
        operator=LocalOperator(shards=3),
        metrics={"most": Columns()},
    )
    trainer.fit(epochs=1)
    found = trainer.predict(rows).max(0)
    np.testing.assert_allclose(trainer.registry.get("training.most"), found, rtol=1e-6)
