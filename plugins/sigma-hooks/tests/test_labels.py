"""Labels of class metrics: ignored ones, those of binary outputs, of sequences and pictures, and what is no class."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

from sigma_hooks import (
    AUC,
    F1,
    AccuracyMetric,
    AUCMetric,
    ConfusionMatrix,
    ConfusionMatrixMetric,
    F1Metric,
    IntersectionOverUnionMetric,
    PerplexityMetric,
    Precision,
    PrecisionMetric,
    Recall,
    RecallMetric,
)
from sigma_kernel import Environment, Metric
from sigma_kernel.errors import SigmaConfigError, SigmaDataError, SigmaNetworkError
from sigma_kernel.graph import Spec, interpret, numpy_namespace, trace
from sigma_testing import MetricSuite

DRAW = np.random.default_rng(3)
TEXTS = DRAW.dirichlet(np.ones(3), (8, 5)).astype(np.float32)
PADDED = np.where(np.arange(5) < DRAW.integers(1, 6, (8, 1)), DRAW.integers(0, 3, (8, 5)), -100).astype(np.int32)
KEPT = PADDED != -100

COUNTING: list[Callable[..., Metric]] = [
    F1Metric, PrecisionMetric, RecallMetric, AUCMetric, ConfusionMatrixMetric, IntersectionOverUnionMetric,
]  # fmt: skip
PROBABLE: list[Callable[..., Metric]] = [PerplexityMetric]
OF_CLASSES = [AccuracyMetric, *COUNTING, *PROBABLE]


def measured(metric: Metric, prediction: np.ndarray, targets: np.ndarray, parts: int = 1) -> Any:
    """Return a metric of rows, which come in several batches."""
    totals = []
    for batch in zip(np.array_split(prediction, parts), np.array_split(targets, parts), strict=True):
        specs = [Spec(x.shape, str(x.dtype)) for x in batch]
        totals.append(np.asarray(interpret(trace(metric.totals, *specs), numpy_namespace())(*batch)[0]))
    return metric.value(metric.merge_all(totals), len(prediction))


def counts(said: np.ndarray, right: np.ndarray, classes: int) -> np.ndarray:
    """Count pairs one by one: true classes by predicted classes."""
    found = np.zeros((classes, classes), int)
    for a, b in zip(right.tolist(), said.tolist(), strict=True):
        found[a, b] += 1
    return found


# -- suites ------------------------------------------------------------------------------------------------------------
class _OfPaddedTexts(MetricSuite):
    def batch(self) -> tuple[np.ndarray, np.ndarray]:
        return TEXTS, PADDED

    def counts(self, scores: np.ndarray, labels: np.ndarray) -> np.ndarray:
        kept = labels != -100
        return counts(scores.argmax(-1)[kept], labels[kept], 3)


class TestConfusionMatrixOfTexts(_OfPaddedTexts):
    def make(self) -> Metric:
        return ConfusionMatrixMetric(ignore_index=-100)

    def expected(self, prediction: np.ndarray, targets: np.ndarray) -> Any:
        return self.counts(prediction, targets)


class TestF1OfTexts(_OfPaddedTexts):
    def make(self) -> Metric:
        return F1Metric(ignore_index=-100)

    def expected(self, prediction: np.ndarray, targets: np.ndarray) -> Any:
        found = self.counts(prediction, targets)
        return np.mean(2 * np.diag(found) / (found.sum(0) + found.sum(1)))


class TestPrecisionOfTexts(_OfPaddedTexts):
    def make(self) -> Metric:
        return PrecisionMetric("each", -100)

    def expected(self, prediction: np.ndarray, targets: np.ndarray) -> Any:
        found = self.counts(prediction, targets)
        return np.diag(found) / found.sum(0)


class TestRecallOfTexts(_OfPaddedTexts):
    def make(self) -> Metric:
        return RecallMetric("micro", -100)

    def expected(self, prediction: np.ndarray, targets: np.ndarray) -> Any:
        found = self.counts(prediction, targets)
        return np.trace(found) / found.sum()


class TestAUCOfTexts(_OfPaddedTexts):
    def make(self) -> Metric:
        return AUCMetric(ignore_index=-100)

    def expected(self, prediction: np.ndarray, targets: np.ndarray) -> Any:
        kept, areas = targets != -100, []
        for c in range(3):
            own, others = prediction[kept & (targets == c)][:, c], prediction[kept & (targets != c)][:, c]
            areas.append(np.mean([(a > b) + (a == b) / 2 for a, b in product(own, others)]))
        return np.mean(areas)


# -- ignored labels ----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("metric", OF_CLASSES)
def test_ignored_labels_are_as_if_they_were_not_there(metric: Callable[..., Metric]) -> None:
    some = metric(ignore_index=-100)
    wanted = measured(metric(), TEXTS[KEPT], PADDED[KEPT])
    for labels in (PADDED, PADDED[..., None], PADDED.astype(np.float32)):
        assert_allclose(measured(some, TEXTS, labels, parts=3), wanted, rtol=1e-6)
    assert_allclose(measured(some, TEXTS.reshape(-1, 3), PADDED.ravel()), wanted, rtol=1e-6)
    assert_allclose(measured(some, TEXTS.reshape(8, 5, 1, 3), PADDED[..., None]), wanted, rtol=1e-6)


def test_a_binary_label_can_be_ignored() -> None:
    found, right = np.array([0.9, 0.2, 0.8, 0.4, 0.7], np.float32), np.array([1, 0, -1, 1, 0], np.int32)
    for scores in (found, found[:, None]):
        assert measured(ConfusionMatrixMetric(ignore_index=-1), scores, right) == [[1, 1], [1, 1]]
        assert measured(PrecisionMetric(ignore_index=-1), scores, right) == 0.5
        assert measured(AUCMetric(ignore_index=-1), scores, right) == 0.75  # 0.9 above both, 0.4 above one of two
        assert measured(AccuracyMetric(ignore_index=-1), scores, right) == 0.5


def test_scores_of_ignored_labels_may_be_no_numbers() -> None:
    broken = np.where(KEPT[..., None], TEXTS, np.nan)
    for metric in OF_CLASSES:
        wanted = measured(metric(), TEXTS[KEPT], PADDED[KEPT])
        assert_allclose(measured(metric(ignore_index=-100), broken, PADDED), wanted, rtol=1e-6)


@pytest.mark.parametrize("hook", [F1, Precision, Recall, AUC, ConfusionMatrix])
def test_hooks_ignore_the_label_that_their_metric_does(hook: Any) -> None:
    (metric,) = hook(on="validation", ignore_index=-100).named_metrics().values()
    assert metric.ignore_index == -100
    with pytest.raises(SigmaConfigError, match="ignore_index: must be a whole number"):
        hook(on="validation", ignore_index=0.5)


# -- what is no class --------------------------------------------------------------------------------------------------
NO_CLASSES = "the targets are not classes. Give indices below the number of classes.*ignore_index"


@pytest.mark.parametrize("wrong", [-100, -1, 3, 0.5, np.nan])
@pytest.mark.parametrize("metric", OF_CLASSES)
def test_labels_that_are_no_classes_are_refused(metric: Callable[..., Metric], wrong: float) -> None:
    labels = np.where(KEPT, PADDED, 0).astype(np.float32)
    labels[2, 1] = wrong
    for some in (metric(), metric(ignore_index=7)):
        with pytest.raises(SigmaDataError, match=f"^[a-z_0-9]+: {NO_CLASSES}"):
            measured(some, TEXTS, labels, parts=2)


@pytest.mark.parametrize("metric", [m for m in OF_CLASSES if m is not IntersectionOverUnionMetric])
def test_rows_that_are_not_one_hot_are_refused(metric: Callable[..., Metric]) -> None:
    labels = np.where(KEPT, PADDED, 0)
    rows = np.eye(3, dtype=np.float32)[labels]
    assert_allclose(measured(metric(), TEXTS, rows), measured(metric(), TEXTS, labels), rtol=1e-6)
    rows[2, 1] = [1, 1, 0]  # several labels in a row
    with pytest.raises(SigmaDataError, match="several labels in a row, use threshold_accuracy"):
        measured(metric(), TEXTS, rows)


@pytest.mark.parametrize("metric", [AccuracyMetric, *COUNTING])
@pytest.mark.parametrize("wrong", [-2, 2, 0.3])
def test_a_single_output_takes_yes_and_no(metric: Callable[..., Metric], wrong: float) -> None:
    found, right = np.array([[0.9], [0.2], [0.8]], np.float32), np.array([1.0, 0.0, wrong], np.float32)
    with pytest.raises(SigmaDataError, match=NO_CLASSES):
        measured(metric(), found, right)


# -- binary outputs ----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("metric", [AccuracyMetric, *COUNTING])
@pytest.mark.parametrize("shape", [(40,), (40, 1), (10, 4, 1)])
def test_minus_one_means_no_for_a_single_output(metric: Callable[..., Metric], shape: tuple[int, ...]) -> None:
    found, right = DRAW.random(shape).astype(np.float32), DRAW.integers(0, 2, shape).astype(np.float32)
    wanted = measured(metric(), found, right)
    assert measured(metric(), found, 2 * right - 1) == wanted
    assert measured(metric(), found, (2 * right - 1).astype(np.int32)) == wanted


def test_the_confusion_matrix_of_signs_counts_all_rows() -> None:
    said = np.repeat([0.1, 0.9, 0.2, 0.8], [9, 5, 10, 16]).astype(np.float32)
    right = np.repeat([-1, -1, 1, 1], [9, 5, 10, 16])
    assert measured(ConfusionMatrixMetric(), said[:, None], right, parts=3) == [[9, 5], [10, 16]]


# -- shapes ------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("metric", COUNTING)
@pytest.mark.parametrize("places", [(20,), (5, 4), (2, 5, 2)])
def test_places_of_sequences_and_pictures_count_like_rows(
    metric: Callable[..., Metric], places: tuple[int, ...]
) -> None:
    scores, labels = DRAW.dirichlet(np.ones(4), (6, 20)), DRAW.integers(0, 4, (6, 20)).astype(np.int32)
    wanted = measured(metric(), scores.reshape(-1, 4), labels.ravel())
    found = measured(metric(), scores.reshape(6, *places, 4), labels.reshape(6, *places), parts=2)
    assert_allclose(found, wanted, rtol=1e-12)


@pytest.mark.parametrize("metric", [AccuracyMetric, F1Metric, PrecisionMetric, RecallMetric, AUCMetric,
                                    ConfusionMatrixMetric, PerplexityMetric])  # fmt: skip
def test_labels_of_rows_do_not_fit_sequences(metric: Callable[..., Metric]) -> None:
    said = r"^[a-z_0-9]+: predictions have shape \(8, 5, 3\) and targets \(8,\); expected \(8, 5\), one label"
    with pytest.raises(SigmaNetworkError, match=said + ".* Put flatten"):
        measured(metric(), TEXTS, PADDED[:, 0])


@pytest.mark.parametrize("shape", [(4,), (4, 1), (4, 3, 1)])
def test_perplexity_of_single_numbers_is_refused(shape: tuple[int, ...]) -> None:
    sizes = ", *".join(map(str, shape))
    said = rf"perplexity: predictions have shape \({sizes},?\), one number for each label; expected"
    with pytest.raises(SigmaNetworkError, match=said + ".*softmax_cross_entropy.*regression metric"):
        measured(PerplexityMetric(), np.full(shape, 0.5, np.float32), np.ones(shape, np.float32))


# -- in a run ----------------------------------------------------------------------------------------------------------
@pytest.mark.rooms
@pytest.mark.parametrize("backend", ["numpy", "numba"])
def test_scores_of_padded_sequences_are_published(backend: str) -> None:
    with Environment("padded", seed=1) as sigma:
        trainer = sigma.create_trainer("trainer", data=(TEXTS, PADDED), batch_size=3, backend=backend)
        trainer.network = "input(5, 3) + dense(3) + softmax_cross_entropy(ignore_index=-100)"
        trainer.optimiser, settings = "adam", {"on": "training", "ignore_index": -100}
        trainer.metrics = {"now": F1Metric(ignore_index=-100)}
        trainer.hooks = {name: {"type": name, **settings} for name in ("f1", "recall", "confusion_matrix", "auc")}
        history = trainer.fit(epochs=1)
        said = trainer.predict(TEXTS).argmax(-1)[KEPT]
        matrix, recall = (sigma.get(f"trainer.training.{name}") for name in ("confusion_matrix", "recall"))
        assert 0.0 < sigma.get("trainer.training.auc") < 1.0
        with pytest.raises(SigmaDataError, match=f"f1: {NO_CLASSES}"):
            trainer.evaluate("training", {"f1": "f1"})
    wanted = counts(said, PADDED[KEPT], 3)
    assert matrix == wanted.tolist()
    assert recall == pytest.approx(np.mean(np.diag(wanted) / wanted.sum(1)))
    assert len(history["training.now"]) == 3


@pytest.mark.rooms
@pytest.mark.parametrize("name", ["perplexity", "bits_per_character"])
@pytest.mark.parametrize("cost", ["binary_cross_entropy", "squared_difference"])
def test_perplexity_without_classes_is_refused_before_training(name: str, cost: str) -> None:
    rows = DRAW.normal(size=(6, 2)).astype(np.float32)
    with Environment("numbers", seed=1) as sigma:
        trainer = sigma.create_trainer("trainer", data=(rows, rows[:, 0] > 0), batch_size=3)
        trainer.network, trainer.optimiser = f"input(2) + output(1) + {cost}()", "adam"
        trainer.hooks = {"doubt": {"type": name, "on": "training"}}
        with pytest.raises(SigmaConfigError, match=rf"hooks\.doubt: {name}: predictions have shape \(2, 1\)"):
            trainer.fit(epochs=1)
