"""Label smoothing and ignored labels of softmax cross-entropy, against sums written out."""

from __future__ import annotations

import numpy as np
import pytest

from sigma_kernel import Environment
from sigma_kernel.contracts import Totals
from sigma_kernel.errors import SigmaConfigError, SigmaDataError, SigmaNetworkError
from sigma_kernel.graph import Spec
from sigma_layers import Input, Output, SoftmaxCrossEntropy
from sigma_testing import CostSuite

from .costing import cost, it, slopes, totals

CLASS_WEIGHTS = (0.5, 2.0, 1.25)
DRAW = np.random.default_rng(3)
SCORES, LABELS = DRAW.normal(size=(2, 4, 3)), np.array([[0, 2, -1, 1], [-1, -1, 2, 2]], np.int32)
LOGS = SCORES - np.log(np.exp(SCORES).sum(-1, keepdims=True))
ROWS = np.array([0.5, 3.0])


def by_hand(smoothing=0.0, classes=(1.0, 1.0, 1.0), rows=(1.0, 1.0), ignored=-1):
    """Return the weighted sum and the sum of weights, label by label."""
    total = weight = 0.0
    for i, j in np.ndindex(LABELS.shape):
        if (label := LABELS[i, j]) != ignored:
            even = sum(smoothing / 3 * classes[c] * LOGS[i, j, c] for c in range(3))
            total -= rows[i] * ((1 - smoothing) * classes[label] * LOGS[i, j, label] + even)
            weight += rows[i] * classes[label]
    return total, weight


class TestIgnoredLabels(CostSuite):
    inputs = (Spec((4, 3)), Spec((4,), "int32"))

    def make(self):
        return SoftmaxCrossEntropy(ignore_index=2)


class TestSmoothedProbabilities(CostSuite):
    inputs = (Spec((3,)), Spec((3,)))

    def make(self):
        return SoftmaxCrossEntropy(class_weights=CLASS_WEIGHTS, label_smoothing=0.3)

    def arrays(self, batch):
        scores, targets = super().arrays(batch)
        return scores, np.exp(targets) / np.exp(targets).sum(-1, keepdims=True)


class TestEverythingAtOnce(CostSuite):
    inputs = (Spec((4, 3)), Spec((4,), "int32"))

    def make(self):
        return SoftmaxCrossEntropy(CLASS_WEIGHTS, label_smoothing=0.2, ignore_index=0)


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 1.0])
@pytest.mark.parametrize("classes", [None, CLASS_WEIGHTS])
@pytest.mark.parametrize("rows", [None, ROWS])
def test_the_mean_is_over_the_labels_that_count(smoothing, classes, rows):
    layer = SoftmaxCrossEntropy(classes, label_smoothing=smoothing, ignore_index=-1)
    given = {} if classes is None else {"classes": classes}
    wanted = by_hand(smoothing, **given, **({} if rows is None else {"rows": rows}))
    assert totals(layer, SCORES, LABELS, weights=rows) == pytest.approx(wanted, rel=1e-13)
    assert cost(layer, SCORES, LABELS, weights=rows) == pytest.approx(wanted[0] / wanted[1], rel=1e-13)


def test_a_smoothed_label_is_a_smoothed_one_hot_row():
    labels = np.where(LABELS < 0, 0, LABELS)
    layer = SoftmaxCrossEntropy(label_smoothing=0.2)
    assert cost(layer, SCORES, labels) == pytest.approx(cost(layer, SCORES, np.eye(3)[labels]), rel=1e-13)
    spread = np.eye(3)[labels] * 0.8 + 0.2 / 3
    assert cost(layer, SCORES, labels) == pytest.approx(cost(SoftmaxCrossEntropy(), SCORES, spread), rel=1e-13)


def test_without_ignored_labels_the_cost_is_a_plain_mean():
    found, _ = it(SoftmaxCrossEntropy(label_smoothing=0.1), SCORES, np.abs(LABELS))
    assert found.totals == ()


@pytest.mark.parametrize("ignored", [-100, -1, 0])
def test_an_ignored_label_changes_nothing_even_where_its_score_is_infinite(ignored):
    layer = SoftmaxCrossEntropy(ignore_index=ignored)
    scores, labels = SCORES.reshape(8, 3).copy(), np.arange(8, dtype=np.int32) % 2 + 1
    labels[3] = ignored
    scores[3] = -1e300, 1e300, 1e300
    found = slopes(layer, scores, labels)
    np.testing.assert_array_equal(found[3], 0.0)
    rest = np.arange(8) != 3
    np.testing.assert_allclose(found[rest], slopes(layer, scores[rest], labels[rest]), rtol=1e-14)
    assert cost(layer, scores, labels) == pytest.approx(cost(layer, scores[rest], labels[rest]), rel=1e-14)


def test_a_batch_of_ignored_labels_costs_nothing():
    labels = np.full((2, 4), -1, np.int32)
    layer = SoftmaxCrossEntropy(ignore_index=-1)
    assert cost(layer, SCORES, labels) == 0.0
    np.testing.assert_array_equal(slopes(layer, SCORES, labels), np.zeros_like(SCORES))


@pytest.mark.parametrize("dtype", [np.float64, np.int64])
def test_ignored_labels_may_be_of_any_type_of_number(dtype):
    layer = SoftmaxCrossEntropy(ignore_index=-1)
    assert cost(layer, SCORES, LABELS.astype(dtype)) == cost(layer, SCORES, LABELS)
    assert cost(layer, SCORES, LABELS[..., None].astype(dtype)) == cost(layer, SCORES, LABELS)


def test_only_the_ignored_label_may_be_out_of_range():
    SoftmaxCrossEntropy(ignore_index=255).check(np.array([0, 255, 2]), Spec((3,)))
    with pytest.raises(SigmaDataError, match=r"row 2: label -1 is not one of 3 classes.* go from -1 to 0\."):
        SoftmaxCrossEntropy(ignore_index=255).check(np.array([0, 255, -1]), Spec((3,)))


def test_probabilities_have_no_label_to_ignore():
    with pytest.raises(SigmaNetworkError, match="ignore_index = 1 is a label, and section 'targets' holds prob"):
        cost(SoftmaxCrossEntropy(ignore_index=1), SCORES[:, 0], np.eye(3)[:2])


def test_settings_that_make_no_sense_are_refused():
    for wrong in (-0.1, 1.1, "x", float("nan")):
        with pytest.raises(SigmaConfigError, match="SoftmaxCrossEntropy.label_smoothing: must be"):
            SoftmaxCrossEntropy(label_smoothing=wrong)
    for wrong in (1.5, "pad", True):
        with pytest.raises(SigmaConfigError, match="SoftmaxCrossEntropy.ignore_index: must be a whole number"):
            SoftmaxCrossEntropy(ignore_index=wrong)


def test_a_cost_with_ignored_labels_returns_totals():
    found, _ = it(SoftmaxCrossEntropy(ignore_index=-1), SCORES, LABELS)
    assert Totals(*found.totals).weight.shape == ()


@pytest.mark.rooms
@pytest.mark.parametrize("shards", [1, 3])
def test_shards_and_batches_of_any_size_give_the_mean_over_the_labels_that_count(shards):
    x = DRAW.normal(size=(22, 4))
    labels = np.where(DRAW.random(22) < 0.4, -1, DRAW.integers(0, 3, 22)).astype(np.int32)

    def trained(rows, shards, batch):
        with Environment("ignored", precision="float64", seed=3) as sigma:
            trainer = sigma.create_trainer("trainer", data=(x[rows], labels[rows]), batch_size=batch)
            trainer.network = Input(4) + Output(3, bias=False) + SoftmaxCrossEntropy(ignore_index=-1)
            trainer.optimiser = {"type": "gradient_descent", "learning_rate": 0.3}
            trainer.operator = {"type": "local", "shards": shards}
            trainer.iterator = "sequential"
            trainer.fit(epochs=3)
            return trainer.session.host("network.layers.1-output.weights"), trainer.evaluate("training")["loss"]

    every, known = np.arange(22), np.flatnonzero(labels >= 0)
    found, loss = trained(every, shards, 22)
    wanted, alone = trained(known, 1, len(known))
    np.testing.assert_allclose(found, wanted, rtol=1e-12)
    assert loss == pytest.approx(alone, rel=1e-12)
    weights, loss = trained(every, shards, 5)
    assert loss == pytest.approx(cost(SoftmaxCrossEntropy(), x[known] @ weights, labels[known]), rel=1e-12)
