"""Adaptive softmax against its formula in NumPy, and a language model that learns with it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from sigma_kernel import Environment
from sigma_kernel.errors import SigmaConfigError, SigmaDataError, SigmaError, SigmaNetworkError
from sigma_kernel.graph import Spec
from sigma_layers import AdaptiveSoftmax, Dense, Input, Output
from sigma_testing import CostSuite
from sigma_testing.layers import trace_prediction

from .costing import cost, it, slopes, totals

DRAW = np.random.default_rng(4)
CLASSES, CUTOFFS = 11, ([3], [1, 4], [2, 5, 10])
X, LABELS = DRAW.normal(size=(2, 11, 8)), np.stack([np.arange(11), DRAW.permutation(11)]).astype(np.int32)


class TestRows(CostSuite):
    inputs = (Spec((8,)), Spec((), "int32"))

    def make(self):
        return AdaptiveSoftmax(7, [2, 4], 2.0)

    def arrays(self, batch):
        return super().arrays(batch)[0], (np.arange(batch) * 3 % 7).astype(np.int32)


class TestSequences(CostSuite):
    inputs = (Spec((4, 8)), Spec((4,), "int32"))

    def make(self):
        return AdaptiveSoftmax(7, [1, 6], 2.0, bias=True, ignore_index=2)

    def arrays(self, batch):
        return super().arrays(batch)[0], (np.arange(4 * batch).reshape(batch, 4) * 3 % 7).astype(np.int32)


def log_softmax(x):
    apart = x - x.max(-1, keepdims=True)
    return apart - np.log(np.exp(apart).sum(-1, keepdims=True))


def by_hand(layer, x, p):
    """Return the logarithms of the probabilities of all classes, cluster by cluster."""
    head = log_softmax(x @ p["0-it.head.weights"] + p.get("0-it.head.biases", 0.0))
    first = layer.cutoffs[0]
    tails = [
        head[..., first + i, None] + log_softmax(x @ p[f"0-it.tail-{i}.projection"] @ p[f"0-it.tail-{i}.weights"])
        for i in range(len(layer.cutoffs))
    ]
    return np.concatenate([head[..., :first], *tails], axis=-1)


def of_labels(layer, x, labels):
    """Return the logarithms for labels, of the same parameters as the traced cost."""
    traced, given = it(layer, x, labels)
    p = dict(zip(traced.names, traced.values(given), strict=True))
    return np.take_along_axis(by_hand(layer, x, p), np.maximum(labels, 0)[..., None], -1)[..., 0]


def predicted(layer, x, labels):
    traced = trace_prediction(layer, [Spec(x.shape, str(x.dtype)), Spec(labels.shape, "int32")])
    cost, given = it(layer, x, labels)
    p = dict(zip(cost.names, cost.values(given), strict=True))
    return np.asarray(traced.run([x, *(p[name] for name in traced.names[1:])])[0])


# -- the formula -------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("cutoffs", CUTOFFS)
@pytest.mark.parametrize("bias", [False, True])
def test_the_loss_and_the_probabilities_are_those_of_the_head_and_the_tails(cutoffs, bias):
    layer = AdaptiveSoftmax(CLASSES, cutoffs, 2.0, bias=bias)
    logs = of_labels(layer, X, LABELS)
    assert cost(layer, X, LABELS) == pytest.approx(-logs.mean(), rel=1e-13)
    assert cost(layer, X, LABELS[..., None].astype(float)) == pytest.approx(-logs.mean(), rel=1e-13)
    shares = predicted(layer, X, LABELS)
    assert shares.shape == (2, 11, CLASSES)
    np.testing.assert_allclose(shares.sum(-1), 1.0, rtol=1e-14)
    np.testing.assert_allclose(np.take_along_axis(shares, LABELS[..., None], -1)[..., 0], np.exp(logs), rtol=1e-12)


@pytest.mark.parametrize("size", [1e3, 1e300])
def test_logits_of_any_size_do_not_overflow(size):
    layer, x = AdaptiveSoftmax(CLASSES, [2, 5], 2.0), X * size
    assert cost(layer, x, LABELS) == pytest.approx(-of_labels(layer, x, LABELS).mean(), rel=1e-11)
    assert np.isfinite(slopes(layer, x, LABELS)).all()
    np.testing.assert_allclose(predicted(layer, x, LABELS).sum(-1), 1.0, rtol=1e-14)


def test_each_tail_is_narrower_than_the_one_before():
    declared = AdaptiveSoftmax(1000, [10, 100, 500]).parameters(Spec((64,)))
    assert {name: p.shape for name, p in declared.items()} == {
        "head.weights": (64, 13),
        "tail-0.projection": (64, 16), "tail-0.weights": (16, 90),
        "tail-1.projection": (64, 4), "tail-1.weights": (4, 400),
        "tail-2.projection": (64, 1), "tail-2.weights": (1, 500),
    }  # fmt: skip
    assert AdaptiveSoftmax(20, [10], bias=True).parameters(Spec((8,)))["head.biases"].shape == (11,)
    widths = [AdaptiveSoftmax(20, [10], d).parameters(Spec((10,)))["tail-0.weights"].shape[0] for d in (1.0, 2.5, 3.0)]
    assert widths == [10, 4, 3]


def test_weights_of_rows_and_ignored_labels_count_as_in_softmax_cross_entropy():
    layer, rows = AdaptiveSoftmax(CLASSES, [2, 5], 2.0, ignore_index=-1), np.array([0.5, 3.0])
    labels = np.where(LABELS % 3 == 0, -1, LABELS)
    each = np.where(labels < 0, 0.0, rows[:, None])
    wanted = -(each * of_labels(layer, X, labels)).sum(), each.sum()
    assert totals(layer, X, labels, weights=rows) == pytest.approx(wanted, rel=1e-13)
    plain = AdaptiveSoftmax(CLASSES, [2, 5], 2.0)
    wanted = -(rows[:, None] * of_labels(plain, X, LABELS)).sum(), 11 * rows.sum()
    assert totals(plain, X, LABELS, weights=rows) == pytest.approx(wanted, rel=1e-13)
    assert it(plain, X, LABELS)[0].totals == ()
    np.testing.assert_array_equal(slopes(layer, X, labels)[labels < 0], 0.0)
    nothing = np.full((2, 11), -1, np.int32)
    np.testing.assert_array_equal(slopes(layer, X, nothing), np.zeros_like(X))


# -- mistakes ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("wrong", [[], 3, [0, 2], [2, 2], [4, 2], [1.5], [True], "ab"])
def test_cutoffs_that_do_not_rise_are_refused(wrong):
    with pytest.raises(SigmaNetworkError, match=r"AdaptiveSoftmax.cutoffs: must be whole numbers of at least 1, each"):
        AdaptiveSoftmax(9, wrong)


@pytest.mark.parametrize("cutoffs", [[9], [2, 12]])
def test_cutoffs_beyond_the_classes_are_refused(cutoffs):
    with pytest.raises(SigmaNetworkError, match=rf"{cutoffs[-1]} is not one of 9 classes.* give cutoffs below 9\."):
        AdaptiveSoftmax(9, cutoffs)
    AdaptiveSoftmax(9, [8])


def test_other_settings_that_make_no_sense_are_refused():
    for wrong in (0, -1, 2.5, "x"):
        with pytest.raises(SigmaNetworkError, match=r"AdaptiveSoftmax.classes: must be a whole number of at least 1"):
            AdaptiveSoftmax(wrong, [1])
    for wrong in (0.5, "x", float("nan"), float("inf")):
        with pytest.raises(SigmaConfigError, match=r"AdaptiveSoftmax.divisor: must be"):
            AdaptiveSoftmax(9, [2], wrong)
    with pytest.raises(SigmaConfigError, match=r"AdaptiveSoftmax.ignore_index: must be a whole number"):
        AdaptiveSoftmax(9, [2], ignore_index=1.5)


def test_features_too_few_for_all_tails_are_refused():
    said = (
        r"adaptive_softmax\(\(15,\)\): 15 features, divided 2 times by 4, leave no width for the classes from 4\. Give"
    )
    with pytest.raises(SigmaNetworkError, match=said):
        AdaptiveSoftmax(9, [2, 4]).parameters(Spec((15,)))
    AdaptiveSoftmax(9, [2, 4]).parameters(Spec((16,)))
    with pytest.raises(SigmaNetworkError, match="0 features, divided 1 times"):
        AdaptiveSoftmax(9, [2]).parameters(Spec(()))


def test_targets_that_are_no_labels_are_refused():
    layer = AdaptiveSoftmax(CLASSES, [2], 2.0)
    with pytest.raises(
        SigmaNetworkError, match=r"softmax\(\(11, 8\), \(2,\)\): rows of section 'targets' must be labels"
    ):
        cost(layer, X, LABELS[:, :2])
    with pytest.raises(SigmaDataError, match=r"has rows of shape \(2,\); expected \(11,\) \(labels\)\."):
        layer.check(LABELS[:, :2], Spec((11, 8)))
    with pytest.raises(
        SigmaDataError, match=r"label 11 is not one of 11 classes.*; AdaptiveSoftmax\(11, \.\.\.\) says how"
    ):
        layer.check(np.array([3, 11]), Spec((8,)))
    AdaptiveSoftmax(CLASSES, [2], ignore_index=-100).check(np.array([3, -100]), Spec((8,)))


@pytest.mark.rooms
def test_an_output_without_units_before_it_is_refused():
    trainer = Environment("output").create_trainer(data=(X[0], LABELS[0]), backend="numpy", batch_size=11)
    trainer.network = Input(8) + Output() + AdaptiveSoftmax(CLASSES, [2])
    with pytest.raises(SigmaError, match=r"adaptive_softmax: is an output layer itself.* Leave out the Output\(\)"):
        trainer.fit(epochs=1)


# -- a language model --------------------------------------------------------------------------------------------------
CORPUS = """
the sun rises and the wind falls . the moon rises and the tide falls . when the sun rises the birds sing , and when the
moon rises the owls call . the old miller hears the birds sing , the young miller hears the owls call . the wheel turns
when the wind falls , the mill sleeps when the tide falls . the sun , the moon , the wind and the tide turn the wheel .
"""
WORDS = CORPUS.split()
FREQUENT = sorted({*WORDS}, key=lambda word: (-WORDS.count(word), word))
CODES = np.array([FREQUENT.index(word) for word in WORDS], np.int32)


def windows(length=6):
    starts = range(len(CODES) - length)
    return tuple(np.stack([CODES[i + off : i + off + length] for i in starts]) for off in (0, 1))


@pytest.mark.rooms
@pytest.mark.parametrize("backend", ["numpy", "numba"])
def test_a_language_model_falls_below_the_entropy_of_words(backend, tmp_path: Path):
    classes, (inputs, targets) = len(FREQUENT), windows()
    shares = np.bincount(CODES) / len(CODES)
    entropy = -(shares * np.log(shares)).sum()
    sigma = Environment("words", seed=0, folder=tmp_path)
    trainer = sigma.create_trainer(data=(inputs, targets), backend=backend, batch_size=20)
    trainer.network = f"""
    input(6, dtype="int32") + embedding({classes}, 16) + lstm(32, sequence=true)
    + adaptive_softmax({classes}, [6, 16], 2.0)
    """
    trainer.optimiser = {"type": "adam", "learning_rate": 0.02}
    before = trainer.evaluate("training")["loss"]
    trainer.fit(epochs=15, progress=False)
    found = trainer.evaluate("training", {"perplexity": "perplexity", "accuracy": "accuracy"})
    assert found["loss"] < 0.5 * entropy < entropy < before
    assert found["perplexity"] == pytest.approx(np.exp(found["loss"]), rel=1e-5)
    predictions = trainer.predict(inputs)
    assert found["accuracy"] == pytest.approx((predictions.argmax(-1) == targets).mean())
    p = np.take_along_axis(predictions, targets[..., None], -1)
    assert found["loss"] == pytest.approx(-np.log(p.astype(np.float64)).mean(), rel=1e-4)


@pytest.mark.rooms
def test_words_are_the_names_of_its_classes():
    words = np.array(["ash", "birch", "cedar", "fir"])[X[0, :, :4].argmax(1)]
    trainer = Environment("trees", seed=0).create_trainer(data=(X[0], words), backend="numpy", batch_size=11)
    trainer.network, trainer.optimiser = Input(8) + Dense(8) + AdaptiveSoftmax(4, [2], 2.0), "adam"
    trainer.fit(epochs=1, progress=False)
    assert trainer.session.setup.evaluator.classes == tuple(sorted({*words}))


def test_its_parameters_are_an_eighth_of_those_of_an_output_layer():
    """50,000 words behind 512 features."""
    given = Spec((512,))
    own, output = AdaptiveSoftmax(50_000, [2_000, 10_000]).parameters(given), Output(50_000).parameters(given)
    sizes = [sum(int(np.prod(p.shape)) for p in one.values()) for one in (own, output)]
    assert sizes[0] == 512 * 2_002 + 128 * (512 + 8_000) + 32 * (512 + 40_000)
    assert 7 < sizes[1] / sizes[0] < 8
