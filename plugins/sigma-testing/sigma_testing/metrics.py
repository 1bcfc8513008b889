"""Conformance suites for metrics and mergers, to inherit in a plugin's tests.

::

    class TestAccuracy(MetricSuite):
        def make(self) -> Metric:
            return Accuracy()

        def batch(self) -> tuple[np.ndarray, np.ndarray]:
            return scores, labels

        def expected(self, prediction: np.ndarray, targets: np.ndarray) -> float:
            return float(np.mean(prediction.argmax(1) == targets))
"""

from __future__ import annotations

import json
import pickle
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
import pytest

from sigma_kernel.arrays import protect
from sigma_kernel.contracts import Merger, Metric
from sigma_kernel.graph.meaning import interpret
from sigma_kernel.graph.namespace import numpy_namespace
from sigma_kernel.graph.node import Node, Spec, trace
from sigma_step.measuring import merge_totals
from sigma_step.model import METRICS
from sigma_step.totals import add_exactly, is_additive, record_totals
from sigma_testing.determinism import DeterministicSuite
from sigma_testing.suite import alike

Rows = tuple[np.ndarray, np.ndarray]
Recorder = Callable[..., Callable[..., Sequence[Any]]]  # specs of predictions and targets -> the records of a step
BATCHINGS = 50
RECORD = METRICS + "metric"


def _recorder(metric: Metric, *specs: Spec) -> Callable[..., Sequence[Any]]:
    """Return a function that computes a step's records of a batch in NumPy."""

    def record(*rows: Node) -> Node:
        return record_totals(metric, metric.totals(*rows), specs[0].shape[0])

    return interpret(trace(record, *specs), numpy_namespace())


class MetricSuite(DeterministicSuite):
    """Conformance tests of a metric: inherit, and override the three abstract methods.

    Results are compared with ``expected`` to ``tolerance``, relative to the greatest.
    """

    tolerance: ClassVar[float] = 1e-5

    @abstractmethod
    def make(self) -> Metric:
        """Return the metric under test."""

    @abstractmethod
    def batch(self) -> Rows:
        """Return predictions and targets of at least 6 rows, which are not all equally good."""

    @abstractmethod
    def expected(self, prediction: np.ndarray, targets: np.ndarray) -> Any:
        """Return the metric of these rows, computed without Sigma: by another library, or by hand."""

    def perfect(self) -> np.ndarray:
        """Return predictions that fit the targets of the batch: the targets, or 1 for each label's class, else 0."""
        prediction, targets = self.batch()
        if prediction.ndim == targets.ndim:
            return targets.astype(prediction.dtype)
        hot: np.ndarray = targets[..., None] == np.arange(prediction.shape[-1])
        return hot.astype(prediction.dtype)

    def totals(self, metric: Metric, rows: Rows) -> np.ndarray:
        """Return the totals over rows, computed in NumPy."""
        specs = [Spec(values.shape, values.dtype.name) for values in rows]
        (totals,) = interpret(trace(metric.totals, *specs), numpy_namespace())(*rows)
        return np.asarray(totals)

    def evaluate(self, metric: Metric, sizes: Sequence[int], rows: Rows, record: Recorder | None = None) -> Any:
        """Return the metric of batches of these sizes, merged from left to right as an evaluation does."""
        parts = [tuple(x[a:b] for x in rows) for a, b in pairwise(np.cumsum([0, *sizes]))]
        record, totals = record or partial(_recorder, metric), dict[str, Any]()
        for part in parts:
            (total,) = record(*(Spec(x.shape, x.dtype.name) for x in part))(*part)
            totals = merge_totals(totals, {RECORD: np.asarray(total)[None]}, {"metric": metric})
        total = add_exactly(totals[RECORD]) if is_additive(metric) else totals[RECORD]
        return metric.value(protect(total), len(rows[0]))

    def alike(self, found: Any, wanted: Any) -> None:
        """Assert that two results are equal within the tolerance."""
        scale = np.max(np.abs(np.asarray(wanted, float)), initial=1e-12)
        np.testing.assert_allclose(found, wanted, rtol=0, atol=self.tolerance * scale)

    def use(self) -> None:
        """Make it, and use it once."""
        rows = self.batch()
        self.evaluate(self.make(), [len(rows[0])], rows)

    def results(self) -> Mapping[str, Any]:
        """Return the metric of the batch."""
        rows = self.batch()
        return {"values": self.evaluate(self.make(), [len(rows[0])], rows)}

    def test_it_is_what_others_compute(self) -> None:
        """Compare totals() and value() with expected()."""
        rows = self.batch()
        assert len(rows[0]) == len(rows[1]) >= 6
        self.alike(self.evaluate(self.make(), [len(rows[0])], rows), self.expected(*rows))

    @pytest.mark.parametrize("precision", ["float32", "float64"])
    def test_both_precisions_give_the_same(self, precision: str) -> None:
        """Count in a dtype that holds the sums."""
        rows = tuple(x.astype(precision) if x.dtype.kind == "f" else x for x in self.batch())
        self.alike(self.evaluate(self.make(), [len(rows[0])], (rows[0], rows[1])), self.expected(*self.batch()))

    def test_batches_of_any_size_give_the_metric_of_all_rows(self) -> None:
        """Return sums from totals(), and divide in value()."""
        rows, metric = self.batch(), self.make()
        count = len(rows[0])
        for sizes in ([1] * count, [count - 1, 1], [1, count - 1], [count // 2, count - count // 2]):
            self.alike(self.evaluate(metric, sizes, rows), self.expected(*rows))

    def test_twice_the_rows_give_the_metric_of_all_of_them(self) -> None:
        """Divide by the number of rows that value() is given."""
        prediction, targets = (np.concatenate([x, x]) for x in self.batch())
        self.alike(
            self.evaluate(self.make(), [len(targets)], (prediction, targets)), self.expected(prediction, targets)
        )

    def test_the_order_of_rows_does_not_matter(self) -> None:
        """Return sums over rows from totals()."""
        rows = self.batch()
        order = np.random.default_rng(0).permutation(len(rows[0]))
        self.alike(
            self.evaluate(self.make(), [2, len(order) - 2], (rows[0][order], rows[1][order])), self.expected(*rows)
        )

    def test_any_batches_shards_and_order_give_the_same_bits(self) -> None:
        """End totals of floats in sums over the rows, before which each row is computed alone.

        Totals that cannot, such as those of ranks, keep their rows; value() then sums by math.fsum, or sorts them.
        """
        rows, metric = self.batch(), self.make()
        count, draw, record = len(rows[0]), np.random.default_rng(0), cache(partial(_recorder, metric))
        wanted = self.evaluate(metric, [count], rows, record)
        for _ in range(BATCHINGS):
            order = draw.permutation(count)
            edges = np.sort(draw.choice(np.arange(1, count), draw.integers(count), replace=False))
            sizes = np.diff([0, *edges, count]).tolist()
            value = self.evaluate(metric, sizes, (rows[0][order], rows[1][order]), record)
            assert repr(value) == repr(wanted), f"{value!r} of batches of {sizes} rows, {wanted!r} of all at once"

    def test_merging_is_the_same_in_any_order_and_changes_no_operand(self) -> None:
        """Add totals to a new array in merge()."""
        rows, metric = self.batch(), self.make()
        a, b, c = (self.totals(metric, (rows[0][at], rows[1][at])) for at in (slice(2), slice(2, 3), slice(3, None)))
        before = [x.copy() for x in (a, b, c)]
        wanted, merge = metric.value(metric.merge_all([a, b, c]), len(rows[0])), metric.merge
        for total in (merge(merge(a, b), c), merge(a, merge(b, c)), merge(c, merge(b, a))):
            self.alike(metric.value(total, len(rows[0])), wanted)
        for now, then in zip((a, b, c), before, strict=True):
            np.testing.assert_array_equal(now, then)

    def test_totals_have_the_same_shape_for_any_number_of_rows(self) -> None:
        """Sum over the rows in totals(), or declare ``keeps_rows`` and return one for each."""
        rows, metric = self.batch(), self.make()
        counts = range(1, len(rows[0]) + 1)
        shapes = [self.totals(metric, (rows[0][:n], rows[1][:n])).shape for n in counts]
        if metric.keeps_rows:
            assert [shape[:1] for shape in shapes] == [(n,) for n in counts], "totals must have a row for each row"
            shapes = [shape[1:] for shape in shapes]
        assert len({*shapes}) == 1, f"totals have shapes {shapes}: they must be sums over rows"

    def test_the_value_can_be_published(self) -> None:
        """Return a float, or lists of floats, from value()."""
        rows = self.batch()
        value = self.evaluate(self.make(), [len(rows[0])], rows)
        assert json.loads(json.dumps(value)) == value, "a metric's value must be a number or a list of numbers"

    def test_predictions_that_are_not_finite_do_not_pass_as_the_best(self) -> None:
        """Let NaN through, or count it as wrong."""
        rows, metric = self.batch(), self.make()
        bad = (np.full_like(rows[0], np.nan), rows[1])
        value = np.asarray(self.evaluate(metric, [len(rows[0])], bad), float)
        best = np.asarray(self.expected(*rows), float)
        alike = np.allclose(value, best, rtol=0, atol=self.tolerance * np.max(np.abs(best), initial=1e-12))
        assert not alike, "predictions of NaN are as good as those of the batch"

    def test_better_says_which_values_are_better(self) -> None:
        """Declare ``better``: "higher", "lower" or "neither"; a perfect prediction is better than the batch's."""
        rows, metric = self.batch(), self.make()
        assert metric.better in ("higher", "lower", "neither"), "better must be 'higher', 'lower' or 'neither'"
        best, other = (
            float(np.nanmean(np.asarray(self.evaluate(metric, [len(rows[1])], (prediction, rows[1])), float)))
            for prediction in (self.perfect(), rows[0])
        )
        message = f"better is {metric.better!r}, and a perfect prediction has {best:.4g}, the batch's {other:.4g}"
        assert {"higher": best > other, "lower": best < other}.get(metric.better, True), message

    def test_it_has_no_memory(self) -> None:
        """Keep nothing on the metric."""
        rows, used = self.batch(), self.make()
        before = pickle.dumps(used)
        self.evaluate(used, [1, len(rows[0]) - 1], rows)
        assert pickle.dumps(used) == before, "a metric keeps nothing: totals hold all that it counts"


class MergerSuite(DeterministicSuite):
    """Conformance tests of a merger: inherit, and override :meth:`make`."""

    @abstractmethod
    def make(self) -> Merger:
        """Return the merger under test."""

    def use(self) -> None:
        """Make it, and use it once."""
        self.merge([np.ones((3, 5)), np.ones((3, 5))], [0.5, 0.5])

    def merge(self, parts: Sequence[np.ndarray], weights: Sequence[float]) -> Any:
        """Merge the gradients of a parameter."""
        return self.make().merge(parts, weights, "dense.weights")

    def results(self) -> Mapping[str, Any]:
        """Return merged gradients."""
        parts = [np.random.default_rng(seed).normal(size=(7, 5)) for seed in range(2)]
        return {"gradients": self.merge(parts, [0.25, 0.75])}

    @pytest.mark.parametrize("dtype", ["float32", "float64"])
    @pytest.mark.parametrize("shape", [(), (1,), (3, 5), (0, 4)])
    def test_a_result_has_the_shape_and_dtype_of_its_operands(self, shape: tuple[int, ...], dtype: str) -> None:
        """Compute in the dtype of the operands."""
        draw = np.random.default_rng(0)
        a, b = (draw.normal(size=shape).astype(dtype) for _ in range(2))
        result = np.asarray(self.merge([a, b], [0.5, 0.5]))
        assert (result.shape, result.dtype) == (a.shape, a.dtype)

    @pytest.mark.parametrize("count", [1, 2])
    def test_operands_are_not_part_of_the_result(self, count: int) -> None:
        """Return a new array, also of one shard."""
        parts = [np.arange(6.0).reshape(2, 3) for _ in range(count)]
        result = self.merge(parts, [1 / count] * count)
        assert not any(np.shares_memory(result, part) for part in parts)

    def test_operands_are_unchanged(self) -> None:
        """Write to no operand."""
        a, b = np.arange(6.0).reshape(2, 3), np.ones((2, 3))
        before = a.copy(), b.copy()
        self.merge([a, b], [0.25, 0.75])
        np.testing.assert_array_equal((a, b), before)

    def test_equal_operands_give_equal_bits(self) -> None:
        """Draw no random numbers, and keep no state."""
        a, b = (np.random.default_rng(i).normal(size=(7, 5)).astype(np.float32) for i in range(2))
        assert alike(*(self.merge([a, b], [0.5, 0.5]).tobytes() for _ in range(2)))

    def test_equal_shards_give_what_one_of_them_would(self) -> None:
        """Divide by the weights, or add the parts, which are weighted already."""
        values = np.random.default_rng(0).normal(size=(4, 3))
        np.testing.assert_allclose(self.merge([0.25 * values, 0.75 * values], [0.25, 0.75]), values, rtol=1e-12)

    def test_a_value_that_is_not_finite_is_not_hidden(self) -> None:
        """Let NaN and infinities through, so that training stops."""
        result = self.merge([np.array([np.nan, 1.0, np.inf]), np.array([1.0, np.nan, 1.0])], [0.5, 0.5])
        assert not np.isfinite(result).any()
