"""Metrics of rows that may have several labels."""

from __future__ import annotations

import numpy as np
import pytest

from sigma_hooks import HammingLossMetric, LabelF1Metric, SubsetAccuracyMetric
from sigma_kernel import Environment
from sigma_kernel.errors import SigmaNetworkError
from sigma_kernel.graph import Spec, interpret, numpy_namespace, trace

SAID = np.array([[0.9, 0.2, 0.1], [0.5, 0.8, 0.1], [np.nan, 0.7, 0.2], [0.6, 0.4, 0.0]], np.float32)
TRUE = np.array([[1, 0, 0], [0, 1, 0], [0, 1, 0], [1, 1, 0]], np.float32)


def measure(metric, said=SAID, true=TRUE):
    specs = [Spec(x.shape, str(x.dtype)) for x in (said, true)]
    totals = np.asarray(interpret(trace(metric.totals, *specs), numpy_namespace())(said, true)[0])
    return metric.value(totals, len(said))


def test_a_tie_is_no_and_a_number_that_is_none_is_wrong():
    assert measure(HammingLossMetric()) == pytest.approx(2 / 12)
    assert measure(SubsetAccuracyMetric()) == pytest.approx(2 / 4)
    assert measure(LabelF1Metric("each")) == [pytest.approx(1.0), pytest.approx(4 / 5), 0.0]
    assert measure(LabelF1Metric()) == pytest.approx(3 / 5)
    assert measure(LabelF1Metric("micro")) == pytest.approx(8 / 9)


def test_rows_in_another_order_and_of_another_shape_have_the_same_scores():
    for metric in (HammingLossMetric(), SubsetAccuracyMetric(), LabelF1Metric()):
        assert measure(metric, SAID[::-1], TRUE[::-1]) == measure(metric)
        assert measure(metric, SAID[:, None], TRUE) == measure(metric)
    assert measure(SubsetAccuracyMetric(), SAID[:, 1], TRUE[:, 1]) == 3 / 4


def test_targets_of_another_size_are_refused():
    with pytest.raises(SigmaNetworkError, match="Give as many outputs as targets"):
        measure(HammingLossMetric(), SAID, TRUE[:, :2])


def test_they_are_measured_over_a_split_by_name():
    draws = np.random.default_rng(0)
    inputs = draws.normal(size=(90, 2))
    labels = np.stack([inputs[:, 0] > 0, inputs[:, 1] > 0], axis=1).astype(np.float32)
    trainer = Environment("labels").create_trainer(
        network="input(2) + output(2) + binary_cross_entropy()", data=(inputs, labels), batch_size=7,
        optimiser={"type": "adam", "learning_rate": 0.1},
    )  # fmt: skip
    trainer.fit(epochs=20)
    names = ["hamming_loss", "subset_accuracy", "label_f1"]
    values = trainer.evaluate("training", names)
    said = trainer.predict(inputs) > 0.5
    assert values["hamming_loss"] == pytest.approx(np.mean(said != labels))
    assert values["subset_accuracy"] == pytest.approx(np.mean((said == labels).all(axis=1)))
    assert values["subset_accuracy"] > 0.9
