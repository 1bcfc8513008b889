"""Connectionist temporal classification, against sums over all alignments."""

from __future__ import annotations

from itertools import groupby, product

import numpy as np
import pytest

from sigma_kernel import Environment
from sigma_kernel.errors import SigmaConfigError, SigmaDataError, SigmaNetworkError
from sigma_kernel.graph import Spec
from sigma_layers import CTC, Dense, Input
from sigma_testing import CostSuite

from .costing import cost, predicted, slopes, totals

DRAW = np.random.default_rng(0)
SCORES = DRAW.normal(size=(5, 4, 3)) * 2
LABELS = np.array([[1, 2, 1], [1, 1, -1], [2, 0, 0], [-1, -1, -7], [2, 1, -1]])
LENGTHS, COUNTS = np.array([4, 4, 2, 3, 3]), np.array([3, 2, 1, 0, 2])
ROWS = np.array([1.0, 0.0, 2.5, 0.25, 1.0])


class TestCTC(CostSuite):
    inputs = (Spec((4, 3)), Spec((2,), "int32"))

    def make(self):
        return CTC(blank=2)

    def arrays(self, batch):
        scores, labels = super().arrays(batch)
        return scores, np.where([True, False], labels % 2, -1).astype(np.int32)


class TestCTCWithLengths(TestCTC):
    inputs = (Spec((4, 3)), Spec((), "int32"), Spec((2,), "int32"))
    test_its_text_form_round_trips = None  # an input of the network is no setting

    def make(self):
        return CTC(Input(section="lengths"), per_label=False)

    def arrays(self, batch):
        scores, lengths, labels = CostSuite.arrays(self, batch)
        return scores, lengths % 2 + 3, np.where([True, False], labels % 2 + 1, 0).astype(np.int32)


def by_hand(scores, labels, steps, blank):
    """Return the loss of one row: sum the probabilities of all alignments."""
    shares = np.exp(scores[:steps]) / np.exp(scores[:steps]).sum(-1, keepdims=True)
    found = 0.0
    for path in product(range(scores.shape[1]), repeat=steps):
        if [c for c, _ in groupby(path) if c != blank] == labels:
            found += np.prod([share[c] for share, c in zip(shares, path, strict=True)])
    with np.errstate(divide="ignore"):
        return -np.log(found)


def losses(lengths, blank=0):
    rows = zip(SCORES, LABELS, COUNTS, lengths, strict=True)
    return np.array([by_hand(x, labels[:n].tolist(), steps, blank) for x, labels, n, steps in rows])


def test_a_loss_is_the_likelihood_of_all_alignments():
    wanted = losses([4] * 5)
    assert np.isfinite(wanted).all()
    assert cost(CTC(per_label=False), SCORES, LABELS) == pytest.approx(wanted.mean(), rel=1e-12)
    assert cost(CTC(), SCORES, LABELS) == pytest.approx((wanted / np.maximum(COUNTS, 1)).mean(), rel=1e-12)
    found = totals(CTC(per_label=False), SCORES, LABELS, weights=ROWS)
    assert found == pytest.approx((wanted @ ROWS, ROWS.sum()), rel=1e-12)


@pytest.mark.parametrize("shape", [(5,), (5, 1)])
def test_only_the_steps_of_a_row_count(shape):
    layer, wanted = CTC(Input(section="lengths"), per_label=False), losses(LENGTHS)
    assert cost(layer, SCORES, LENGTHS.reshape(shape), LABELS) == pytest.approx(wanted.mean(), rel=1e-12)
    found = slopes(layer, SCORES, LENGTHS, LABELS)
    for row, steps in enumerate(LENGTHS):
        assert not found[row, steps:].any()
        assert np.abs(found[row, :steps]).min() > 0


@pytest.mark.parametrize("blank", [0, 1, 2])
def test_any_class_can_be_the_blank(blank):
    labels = np.array([[0 if blank else 1, -1]])
    wanted = by_hand(SCORES[0], [int(labels[0, 0])], 4, blank)
    assert cost(CTC(blank=blank), SCORES[:1], labels) == pytest.approx(wanted, rel=1e-12)


def test_padding_changes_nothing():
    more = np.concatenate([LABELS, np.full((5, 3), -1)], axis=1)
    assert cost(CTC(), SCORES, more) == pytest.approx(cost(CTC(), SCORES, LABELS), rel=1e-13)
    zeros = np.where(LABELS < 0, 0, LABELS)
    assert cost(CTC(), SCORES, zeros) == cost(CTC(), SCORES, LABELS) == cost(CTC(), SCORES, LABELS.astype(float))


def test_labels_that_do_not_fit_have_an_infinite_loss_or_none():
    labels, lengths = np.array([[1, 1], [1, 2]]), np.array([2, 2])  # equal labels need a blank in between
    layer = CTC(Input(section="lengths"))
    assert cost(layer, SCORES[:2], lengths, labels) == np.inf
    assert np.isfinite(slopes(layer, SCORES[:2], lengths, labels)).all()
    left = CTC(Input(section="lengths"), zero_infinity=True)
    rest = by_hand(SCORES[1], [1, 2], 2, 0) / 2
    assert cost(left, SCORES[:2], lengths, labels) == pytest.approx(rest / 2, rel=1e-12)
    found = slopes(left, SCORES[:2], lengths, labels)
    assert not found[0].any()
    assert found[1, :2].all()


@pytest.mark.parametrize("length", [-1, 5])
def test_a_length_beyond_the_steps_is_no_number(length):
    layer = CTC(Input(section="lengths"), zero_infinity=True)
    assert np.isnan(cost(layer, SCORES[:1], np.array([length]), LABELS[:1]))
    assert cost(layer, SCORES[3:4], np.array([0]), LABELS[3:4]) == 0.0  # nothing is said in no time


@pytest.mark.parametrize("precision", ["float32", "float64"])
def test_long_sequences_do_not_underflow(precision):
    scores, labels = np.zeros((1, 400, 30), precision), np.arange(150)[None] % 29 + 1
    found = cost(CTC(per_label=False), scores, labels)
    assert np.isfinite(found)
    assert 500 < found < 400 * np.log(30)
    assert np.isfinite(slopes(CTC(), scores, labels)).all()


def test_shapes_and_a_blank_that_do_not_fit_are_refused():
    for arrays in ((SCORES[:, 0], LABELS), (SCORES, LABELS[:, 0]), (SCORES, SCORES[:, 0], LABELS)):
        with pytest.raises(SigmaNetworkError, match=r"ctc\(.*the output must have shape \(time, classes\)"):
            cost(CTC(Input()), *arrays)
    with pytest.raises(SigmaNetworkError, match="ctc: blank = 3, but the output has 3 classes"):
        cost(CTC(blank=3), SCORES, LABELS)
    for wrong in (-1, 0.5):
        with pytest.raises(SigmaConfigError, match="CTC.blank: must be"):
            CTC(blank=wrong)
    with pytest.raises(SigmaConfigError, match="CTC.zero_infinity: must be False or True"):
        CTC(zero_infinity="yes")


def test_labels_that_are_no_classes_or_follow_padding_are_refused_with_their_row():
    CTC().check(LABELS, Spec((4, 3)))
    for wrong in (3, 0.5, np.nan):
        with pytest.raises(SigmaDataError, match=r"row 1: label .* is not one of 3 classes.* without the blank, 0"):
            CTC().check(np.array([[1, 2], [wrong, -1]]), Spec((4, 3)))
    for late in ([-1, 2], [0, 2]):
        with pytest.raises(SigmaDataError, match="row 1: label 2 follows padding, a number below 0 or the blank, 0"):
            CTC().check(np.array([[1, 2], late]), Spec((4, 3)))
    with pytest.raises(SigmaDataError, match=r"rows of shape \(\), not \(labels,\)"):
        CTC().check(np.array([1, 2]), Spec((4, 3)))


def test_predictions_are_the_probabilities_of_each_step():
    np.testing.assert_allclose(predicted(CTC(), SCORES).sum(-1), 1.0, rtol=1e-13)


@pytest.mark.rooms
@pytest.mark.parametrize("backend", ["numpy", "numba"])
def test_a_network_learns_to_say_labels_without_their_times(backend):
    draw = np.random.default_rng(4)
    labels = draw.integers(1, 4, (24, 2)).astype(np.int32)
    labels[labels[:, 0] == labels[:, 1], 1] = -1
    sounds = np.zeros((24, 6, 4), np.float32)
    for row, said in enumerate(labels):
        for place, label in zip((draw.integers(0, 3), draw.integers(3, 6)), said, strict=True):
            sounds[row, place, max(label, 0)] = 1.0
    lengths = np.full(24, 6, np.int32)
    with Environment("ctc", seed=1) as sigma:
        data = {"inputs": sounds, "targets": labels, "lengths": lengths}
        trainer = sigma.create_trainer("trainer", data=data, batch_size=12, backend=backend)
        trainer.network = Input(6, 4) + Dense(4) + CTC(Input(section="lengths"))
        trainer.optimiser = {"type": "adam", "learning_rate": 0.1}
        history = trainer.fit(epochs=40)
        assert history["training.loss"][-1] < 0.1 * history["training.loss"][0]
        said = trainer.predict(sounds).argmax(-1)
    decoded = [[int(c) for c, _ in groupby(path) if c] for path in said]
    assert decoded == [[int(c) for c in row if c > 0] for row in labels]
