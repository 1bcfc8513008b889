"""Metrics of distributions, ranks, places and sequences, against their definitions, pair by pair."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from itertools import groupby, product
from typing import Any, ClassVar

import numpy as np
import pytest
from attrs import define

from sigma_hooks import (
    AUC,
    AUCMetric,
    CharacterErrorRate,
    CharacterErrorRateMetric,
    IntersectionOverUnion,
    IntersectionOverUnionMetric,
    Perplexity,
    PerplexityMetric,
)
from sigma_kernel import Environment, Metric, functions as f
from sigma_kernel.contracts import Context, CostLayer, Hook, Layer, Parameter
from sigma_kernel.errors import SigmaConfigError, SigmaNetworkError
from sigma_kernel.graph import Node, Spec, interpret, numpy_namespace, trace
from sigma_testing import HookSuite, MetricSuite, Sweep, small_environment

DRAW = np.random.default_rng(1)
SCORES = DRAW.dirichlet(np.ones(3), 12).astype(np.float32)
LABELS = np.array([0, 1, 2, 2, 1, 0, 1, 2, 0, 1, 0, 2], np.int32)
PICTURES = DRAW.dirichlet(np.ones(3), (7, 4, 5)).astype(np.float32)
MASKS = DRAW.integers(0, 3, (7, 4, 5)).astype(np.int32)
SPEECH = DRAW.dirichlet(np.ones(3) / 2, (8, 6)).astype(np.float32)
NONE = -1
WORDS = [[1, 2, 1], [1, NONE, NONE], [2, 2, 0], [NONE] * 3, [2, 1, NONE], [1, 1, 1], [2, 0, 0], [1, 2, NONE]]
SAID = np.array(WORDS, np.int32)
TALK = np.eye(3)[[[1, 2, 1, 2, 1, 2, 1]]]
NOISY = np.repeat([[[0, 9, 0], [0, 0, 9], [9, 0, 0], [0, 9, 0], [0, 0, 9], [0, 9, 0]]], 4, axis=0).astype(np.float32)


def measured(metric: Metric, *rows: np.ndarray, parts: int = 1) -> Any:
    """Return a metric of rows, which come in several batches."""
    totals = []
    for batch in zip(*(np.array_split(x, parts) for x in rows), strict=True):
        specs = [Spec(x.shape, str(x.dtype)) for x in batch]
        totals.append(np.asarray(interpret(trace(metric.totals, *specs), numpy_namespace())(*batch)[0]))
    return metric.value(metric.merge_all(totals), len(rows[0]))


# -- definitions -------------------------------------------------------------------------------------------------------
def area(scores: np.ndarray, own: np.ndarray) -> float:
    """Compare all pairs."""
    pairs = [(a > b) + (a == b) / 2 for a, b in product(scores[own], scores[~own])]
    return float(np.mean(pairs)) if pairs else float("nan")


def jaccard(said: np.ndarray, right: np.ndarray, classes: int) -> list[float]:
    """Compare the sets of places of each class."""
    found = []
    for c in range(classes):
        ours, theirs = ({*np.flatnonzero(x == c).tolist()} for x in (said, right))
        found.append(len(ours & theirs) / len(ours | theirs) if ours | theirs else float("nan"))
    return found


def edits(a: tuple[int, ...], b: tuple[int, ...]) -> int:
    """Return the Levenshtein distance by its recursive definition."""

    @cache
    def between(i: int, j: int) -> int:
        if not i or not j:
            return i + j
        return min(between(i - 1, j) + 1, between(i, j - 1) + 1, between(i - 1, j - 1) + (a[i - 1] != b[j - 1]))

    return between(len(a), len(b))


def error_rate(scores: np.ndarray, targets: np.ndarray, blank: int = 0, collapse: bool = True) -> float:
    wrong = length = 0
    for row, labels in zip(scores.argmax(-1), targets, strict=True):
        path = [c for c, _ in groupby(row.tolist())] if collapse else row.tolist()
        wanted = tuple(c for c in labels.tolist() if c >= 0 and c != blank)
        wrong, length = wrong + edits(tuple(c for c in path if c != blank), wanted), length + len(wanted)
    return wrong / length


# -- suites ------------------------------------------------------------------------------------------------------------
class TestPerplexity(MetricSuite):
    def make(self) -> Metric:
        return PerplexityMetric(ignore_index=2)

    def batch(self) -> tuple[np.ndarray, np.ndarray]:
        return PICTURES, MASKS

    def expected(self, prediction: np.ndarray, targets: np.ndarray) -> float:
        shares = np.take_along_axis(prediction.astype(float), targets[..., None], -1)[..., 0]
        return float(np.exp(-np.log(shares[targets != 2]).mean()))


class TestAUC(MetricSuite):
    def make(self) -> Metric:
        return AUCMetric()

    def batch(self) -> tuple[np.ndarray, np.ndarray]:
        return SCORES, LABELS

    def expected(self, prediction: np.ndarray, targets: np.ndarray) -> Any:
        return np.mean([area(prediction[:, c], targets == c) for c in range(3)])


class TestAUCOfTies(MetricSuite):
    def make(self) -> Metric:
        return AUCMetric(average="each")

    def batch(self) -> tuple[np.ndarray, np.ndarray]:
        draw = np.random.default_rng(5)
        return draw.integers(0, 4, (30, 1)).astype(np.float32), draw.integers(0, 2, (30, 1)).astype(np.float32)

    def expected(self, prediction: np.ndarray, targets: np.ndarray) -> Any:
        return [area(prediction[:, 0], targets[:, 0] == 1)]


class TestIntersectionOverUnion(MetricSuite):
    def make(self) -> Metric:
        return IntersectionOverUnionMetric()

    def batch(self) -> tuple[np.ndarray, np.ndarray]:
        return PICTURES, MASKS

    def expected(self, prediction: np.ndarray, targets: np.ndarray) -> Any:
        return np.mean(jaccard(prediction.argmax(-1), targets, 3))


class TestCharacterErrorRate(MetricSuite):
    def make(self) -> Metric:
        return CharacterErrorRateMetric()

    def batch(self) -> tuple[np.ndarray, np.ndarray]:
        return SPEECH, SAID

    def expected(self, prediction: np.ndarray, targets: np.ndarray) -> Any:
        return error_rate(prediction, targets)


# -- hooks -------------------------------------------------------------------------------------------------------------
@define(eq=False)
class _Input(Layer):
    section: str = "inputs"
    role: ClassVar[str] = "input"

    def forward(self, context: Context, x: Node) -> Node:
        return x


@define(eq=False)
class _Steps(Layer):
    def parameters(self, x: Spec) -> Mapping[str, Parameter]:
        return {"weights": Parameter(x.shape, 1.0)}

    def forward(self, context: Context, x: Node) -> Node:
        return x * context.parameters["weights"]


@define(eq=False, kw_only=True)
class _Size(CostLayer):
    def forward(self, context: Context, output: Node, targets: Node) -> Node:
        return f.mean(f.square(output))


class TestAUCHook(HookSuite):
    def make(self) -> Hook:
        return AUC()


class TestPerplexityHook(HookSuite):
    def make(self) -> Hook:
        return Perplexity()


class TestIntersectionOverUnionHook(HookSuite):
    def make(self) -> Hook:
        return IntersectionOverUnion(average="micro")


class TestCharacterErrorRateHook(HookSuite):
    def make(self) -> Hook:
        return CharacterErrorRate()

    def environment(self, hooks: Mapping[str, Hook]) -> Environment:
        environment = small_environment(Sweep(), hooks=hooks)
        trainer, data = environment.trainer("trainer"), {"inputs": SPEECH, "targets": SAID}
        trainer.data = {"training": data, "validation": data}
        trainer.network, trainer.batch_size = _Input() + _Steps() + _Size(), 4
        return environment


# -- edges -------------------------------------------------------------------------------------------------------------
def test_perplexity_of_guessing_is_the_number_of_classes() -> None:
    even = np.full((5, 2, 4), 0.25)
    labels = DRAW.integers(0, 4, (5, 2))
    for targets in (labels, labels[..., None], labels.astype(float), np.eye(4)[labels]):
        assert measured(PerplexityMetric(), even, targets) == pytest.approx(4.0, rel=1e-14)
    sure = np.eye(4)[labels]
    assert measured(PerplexityMetric(), sure, labels) == 1.0
    assert measured(PerplexityMetric(), sure, sure) == 1.0
    assert measured(PerplexityMetric(), sure, (labels + 1) % 4) == np.inf
    assert measured(PerplexityMetric(), np.full((5, 2), 1e-300), np.zeros(5, np.int32)) == pytest.approx(1e300)


def test_perplexity_without_a_label_that_counts_is_no_number() -> None:
    assert np.isnan(measured(PerplexityMetric(ignore_index=-1), SCORES, np.full(12, -1)))
    one = np.where(np.arange(12) == 3, LABELS, -1)
    assert measured(PerplexityMetric(-1), SCORES, one) == pytest.approx(1 / SCORES[3, 2], rel=1e-6)


@pytest.mark.parametrize("parts", [1, 4, 12])
@pytest.mark.parametrize("levels", [2, 5, 1000])
def test_auc_is_exact_whatever_the_batches_the_order_and_the_ties(parts: int, levels: int) -> None:
    scores, own = DRAW.integers(0, levels, 60).astype(np.float32) / 7, DRAW.integers(0, 2, 60)
    order = DRAW.permutation(60)
    for targets in (own, own.astype(bool), own.astype(np.float32)):
        assert measured(AUCMetric(), scores[order], targets[order], parts=parts) == pytest.approx(
            area(scores, own == 1), rel=1e-14
        )


def test_auc_knows_perfect_reversed_and_equal_scores() -> None:
    scores, own = np.arange(10.0), np.arange(10) > 3
    assert measured(AUCMetric(), scores, own) == 1.0
    assert measured(AUCMetric(), -scores, own) == 0.0
    assert measured(AUCMetric(), np.zeros(10), own) == 0.5
    assert measured(AUCMetric(), scores, np.array([0, 1] * 5)) == 0.6  # 15 of 25 pairs


def test_a_class_that_is_absent_has_no_area_and_is_left_out_of_the_mean() -> None:
    labels = np.where(LABELS == 2, 0, LABELS)
    each = measured(AUCMetric("each"), SCORES, labels)
    assert np.isnan(each[2])
    assert measured(AUCMetric(), SCORES, labels) == pytest.approx(np.mean(each[:2]), rel=1e-14)
    assert measured(AUCMetric(), SCORES, np.eye(3)[labels]) == measured(AUCMetric(), SCORES, labels)
    assert np.isnan(measured(AUCMetric(), SCORES, np.zeros(12, np.int32)))
    assert np.isnan(measured(AUCMetric(), SCORES[:, :1], np.ones(12)))


def test_a_score_that_is_no_number_spoils_the_area() -> None:
    broken = SCORES.copy()
    broken[3, 1] = np.nan
    assert np.isnan(measured(AUCMetric(), broken, LABELS))
    assert np.isnan(measured(AUCMetric("each"), broken, LABELS)).tolist() == [False, True, False]


def test_each_and_pooled_intersections_over_unions() -> None:
    labels = np.where(MASKS == 2, 0, MASKS)
    scores = PICTURES.copy()
    scores[..., 2] = 0.0
    first, second, none = jaccard(scores.argmax(-1), labels, 3)
    assert np.isnan(none)
    assert measured(IntersectionOverUnionMetric("each"), scores, labels) == pytest.approx([first, second, 0.0])
    assert measured(IntersectionOverUnionMetric(), scores, labels) == pytest.approx((first + second) / 2)
    right = np.sum(PICTURES.argmax(-1) == MASKS)
    pooled = measured(IntersectionOverUnionMetric("micro"), PICTURES, MASKS, parts=3)
    assert pooled == pytest.approx(right / (2 * MASKS.size - right))


@pytest.mark.parametrize("shape", [(7, 4, 5), (7, 4, 5, 1), (140,)])
def test_binary_intersection_over_union_is_that_of_class_1(shape: tuple[int, ...]) -> None:
    scores, right = PICTURES[..., 0], MASKS == 1
    wanted = jaccard((scores > 0.5).ravel(), right.ravel(), 2)[1]
    assert measured(IntersectionOverUnionMetric(), scores.reshape(shape), right.reshape(shape)) == pytest.approx(wanted)
    assert measured(IntersectionOverUnionMetric(), np.zeros((3, 4)), np.zeros((3, 4))) == 0.0


def test_ignored_places_are_in_no_union() -> None:
    unknown = DRAW.random(MASKS.shape) < 0.4
    labels = np.where(unknown, 255, MASKS)
    wanted = np.mean(jaccard(PICTURES.argmax(-1)[~unknown], MASKS[~unknown], 3))
    assert measured(IntersectionOverUnionMetric(ignore_index=255), PICTURES, labels) == pytest.approx(wanted)


def test_counts_of_many_pixels_are_held_in_64_bits() -> None:
    counts = np.array([[2**31 - 1] * 2] * 3 + [[0, 0]], np.int32)
    metric = IntersectionOverUnionMetric()
    assert metric.value(metric.merge_all([counts] * 4), 4) == 1.0


def test_a_pixel_without_a_number_has_no_class() -> None:
    scores = np.array([[np.nan, 0.2], [0.2, 0.8]])
    assert measured(IntersectionOverUnionMetric("each"), scores, np.array([0, 1])) == [0.0, 1.0]


@pytest.mark.parametrize(("blank", "collapse"), [(0, True), (2, True), (0, False)])
@pytest.mark.parametrize("parts", [1, 3])
def test_the_character_error_rate_counts_the_fewest_edits(blank: int, collapse: bool, parts: int) -> None:
    scores = DRAW.dirichlet(np.ones(4) / 3, (40, 7))
    targets = np.sort(DRAW.integers(-1, 4, (40, 5)), axis=1)[:, ::-1]  # padding is last, if the blank is
    targets = np.where(targets == blank, (blank + 1) % 4, targets).astype(np.int32)
    metric = CharacterErrorRateMetric(blank, collapse)
    wanted = error_rate(scores, targets, blank, collapse)
    assert measured(metric, scores, targets, parts=parts) == pytest.approx(wanted, rel=1e-13)
    order = DRAW.permutation(40)
    assert measured(metric, scores[order], targets[order]) == pytest.approx(wanted, rel=1e-13)


def test_the_character_error_rate_of_right_wrong_and_no_words() -> None:
    spoken = np.eye(3)[[[1, 1, 0, 1, 2, 2]]]
    for labels, wanted in (([1, 1, 2], 0.0), ([1, 2, -1], 0.5), ([2, 2, 2], 2 / 3), ([1, -1, -1], 2.0)):
        assert measured(CharacterErrorRateMetric(), spoken, np.array([labels])) == pytest.approx(wanted)
    assert np.isnan(measured(CharacterErrorRateMetric(), spoken, np.array([[-1, -1]])))
    assert measured(CharacterErrorRateMetric(), np.eye(3)[[[0, 0]]], np.array([[1, 2]])) == 1.0
    long = np.eye(3)[[[1, 0] * 20]]
    assert measured(CharacterErrorRateMetric(), long, np.full((1, 3), 1)) == pytest.approx(17 / 3)


@pytest.mark.parametrize("kind", ["int32", "float32"])
def test_steps_beyond_the_length_of_their_row_say_nothing(kind: str) -> None:
    scores = DRAW.dirichlet(np.ones(4) / 3, (30, 7))
    counts, labels = DRAW.integers(0, 8, 30), DRAW.integers(1, 4, (30, 3))
    alone = [error_rate(scores[[i], :n], labels[[i]]) for i, n in enumerate(counts)]
    scores[np.arange(7) >= counts[:, None]] = np.nan
    metric = CharacterErrorRateMetric(lengths="steps")
    for lengths in (counts.astype(kind), counts[:, None].astype(kind)):
        assert measured(metric, scores, labels, lengths, parts=4) == pytest.approx(np.mean(alone), rel=1e-13)


def test_a_length_that_no_row_can_have_gives_no_rate() -> None:
    metric, label = CharacterErrorRateMetric(lengths="steps"), np.array([[1]])
    assert measured(metric, TALK, label, np.array([7])) == 6.0
    assert measured(metric, TALK, label, np.array([1])) == 0.0
    assert measured(metric, TALK, label, np.array([0])) == 1.0
    for wrong in (-1, 8):
        assert np.isnan(measured(metric, TALK, label, np.array([wrong])))
    with pytest.raises(SigmaNetworkError, match=r"character_error_rate: section 'steps' has shape \(1, 7\); expected"):
        measured(metric, TALK, label, np.ones((1, 7)))


def test_shapes_and_settings_that_do_not_fit_are_refused() -> None:
    with pytest.raises(SigmaNetworkError, match=r"perplexity: predictions have shape \(12, 3\) and targets \(12, 2\)"):
        measured(PerplexityMetric(), SCORES, np.zeros((12, 2)))
    with pytest.raises(
        SigmaNetworkError, match=r"auc: predictions have shape \(7, 4, 5, 3\) and targets \(7,\); .*flatten"
    ):
        measured(AUCMetric(), PICTURES, MASKS[:, 0, 0])
    with pytest.raises(SigmaNetworkError, match=r"character_error_rate: predictions have shape \(12, 3\) and targets"):
        measured(CharacterErrorRateMetric(), SCORES, SAID)
    with pytest.raises(SigmaConfigError, match="AUCMetric.average: must be 'macro' or 'each'"):
        AUCMetric("micro")
    with pytest.raises(SigmaConfigError, match="CharacterErrorRateMetric.blank: must be"):
        CharacterErrorRateMetric(-1)


# -- in a run ----------------------------------------------------------------------------------------------------------
@pytest.mark.rooms
@pytest.mark.parametrize("shards", [1, 3])
def test_they_are_measured_over_a_whole_split_and_at_each_step(shards: int) -> None:
    x, own = DRAW.normal(size=(50, 4)).astype(np.float32), DRAW.integers(0, 3, 50).astype(np.int32)
    with Environment("metrics", seed=1) as sigma:
        trainer = sigma.create_trainer("trainer", data=(x, own), batch_size=20, backend="numpy")
        trainer.network = "input(4) + output(3) + softmax_cross_entropy()"
        trainer.optimiser, trainer.metrics = "adam", {"rank": AUCMetric(), "doubt": "perplexity"}
        trainer.operator = {"type": "local", "shards": shards}
        trainer.hooks = {
            "ranks": AUC(on="training", average="each"),
            "rest": Perplexity(on="training", metrics={"iou": IntersectionOverUnionMetric(), "auc": AUCMetric()}),
        }
        history = trainer.fit(epochs=2)
        shares = trainer.predict(x)
        found = trainer.evaluate(
            "training", {"auc": "auc", "perplexity": "perplexity", "iou": "intersection_over_union"}
        )
    each = [area(shares[:, c], own == c) for c in range(3)]
    assert found["auc"] == pytest.approx(np.mean(each), rel=1e-12)
    assert found["perplexity"] == pytest.approx(np.exp(found["loss"]), rel=1e-5)
    assert found["iou"] == pytest.approx(np.mean(jaccard(shares.argmax(1), own, 3)))
    assert history["training.rank"].shape == history["training.doubt"].shape == (6,)
    assert ((history["training.rank"] > 0) & (history["training.rank"] < 1)).all()
    assert (history["training.doubt"] > 1).all()
    assert history["training.auc"][-1] == pytest.approx(found["auc"], rel=1e-12)


@pytest.mark.rooms
@pytest.mark.parametrize("backend", ["numpy", "numba"])
def test_the_character_error_rate_is_measured_beside_ctc(backend: str) -> None:
    data = {"inputs": SPEECH, "targets": SAID}
    with Environment("speech", seed=1) as sigma:
        trainer = sigma.create_trainer("trainer", data=data, batch_size=3, backend=backend)
        trainer.network, trainer.optimiser = "input(6, 3) + dense(3) + ctc(zero_infinity=true)", "adam"
        trainer.hooks = {"errors": CharacterErrorRate(on="training")}
        trainer.fit(epochs=1)
        assert sigma.get("trainer.training.character_error_rate") == pytest.approx(
            error_rate(trainer.predict(SPEECH), SAID), rel=1e-6
        )


@pytest.mark.rooms
@pytest.mark.parametrize("backend", ["numpy", "numba"])
def test_padding_after_the_lengths_that_ctc_reads_does_not_count(backend: str) -> None:
    words = np.array([[1, 2, NONE]] * 4, np.int32)
    data = {"inputs": NOISY, "len": np.full(4, 3, np.int32), "targets": words}
    with Environment("speech", seed=1) as sigma:
        trainer = sigma.create_trainer("trainer", data=data, batch_size=3, backend=backend)
        trainer.network = "l = input(section='len', dtype='int32')\ninput(6, 3) + output() + ctc(l)"
        rate = {"type": "character_error_rate"}
        found = trainer.evaluate("training", {"some": {**rate, "lengths": "len"}, "all": rate})
        with pytest.raises(SigmaConfigError, match="metric 'rate': the network reads no section 'lem'. Did you mean"):
            trainer.evaluate("training", {"rate": {**rate, "lengths": "lem"}})
    assert found["some"] == 0.0
    assert found["all"] == error_rate(NOISY, words) == 1.5


@pytest.mark.rooms
def test_the_hooks_of_a_segmentation_publish_its_scores() -> None:
    with Environment("pixels", seed=1) as sigma:
        trainer = sigma.create_trainer("trainer", data={"inputs": PICTURES, "targets": MASKS}, batch_size=3)
        trainer.network, trainer.optimiser = "input(4, 5, 3) + dense(3) + softmax_cross_entropy()", "adam"
        trainer.hooks = {"parts": IntersectionOverUnion(on="training", average="each", ignore_index=2)}
        trainer.fit(epochs=1)
        found = sigma.get("trainer.training.intersection_over_union_each")
        kept = MASKS != 2
        wanted = jaccard(trainer.predict(PICTURES).argmax(-1)[kept], MASKS[kept], 3)
        assert found == pytest.approx(wanted)
