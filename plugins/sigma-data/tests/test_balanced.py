"""Minibatches in which all classes are equally frequent."""

from __future__ import annotations

import numpy as np
import pytest

from sigma_data import Arrays, Balanced, Stream
from sigma_kernel import Environment, SigmaDataError
from sigma_kernel.errors import SigmaComponentError
from sigma_testing import IteratorSuite

CODES = np.repeat([0, 1, 2], [90, 9, 1]).astype(np.int32)


class TestBalanced(IteratorSuite):
    def make(self):
        return Balanced()


def test_every_class_comes_equally_often_in_every_epoch():
    for epoch in range(4):
        rows = Balanced().draw(7, epoch, 0, CODES)
        assert sorted(np.bincount(CODES[rows])) == [33, 33, 34]
        rare = np.bincount(rows, minlength=100)[90:99]
        assert rare.max() - rare.min() <= 1
        assert np.bincount(rows, minlength=100)[:90].max() == 1


def test_the_class_with_a_row_more_and_the_rows_of_frequent_classes_change():
    draws = [Balanced().draw(7, epoch, 0, CODES) for epoch in range(30)]
    more = {int(np.bincount(CODES[rows]).argmax()) for rows in draws}
    assert more == {0, 1, 2}
    assert {*np.concatenate(draws).tolist()} == {*range(100)}
    assert len({tuple(rows) for rows in draws}) == 30


def test_rows_depend_on_the_arguments_alone():
    first = Balanced().draw(2**63, 5, 1, CODES)
    np.testing.assert_array_equal(Balanced().draw(2**63, 5, 1, CODES), first)
    for other in ((1, 5, 1), (2**63, 6, 1), (2**63, 5, 2)):
        assert not np.array_equal(Balanced().draw(*other, CODES), first)


def test_classes_may_be_words_columns_and_sets_of_labels():
    assert np.bincount(Balanced().draw(0, 0, 0, np.array([0.0] * 9 + [1.0])[:, None]) == 9).tolist() == [5, 5]
    labels = np.array([[1, 1]] * 2 + [[0, 1]] * 6 + [[0, 0]] * 4, np.float32)
    drawn = labels[Balanced().draw(0, 0, 0, labels)]
    assert [*np.unique(drawn, axis=0, return_counts=True)[1]] == [4, 4, 4]
    assert Balanced().draw(0, 0, 0, np.array([4])).tolist() == [0]


def test_numbers_are_refused():
    with pytest.raises(SigmaDataError, match="section 'targets' holds numbers, not classes"):
        Balanced().draw(0, 0, 0, np.array([0.5, 1.0]))


def trainer(data, folder=None, **settings):
    sigma = Environment("balanced", seed=4, **({"folder": folder} if folder else {}))
    return sigma, sigma.create_trainer(
        network="input(2) + output(3) + softmax_cross_entropy()", data=data, optimiser="gradient_descent", batch_size=8,
        iterator="balanced", **settings,
    )  # fmt: skip


def test_training_sees_balanced_rows_and_evaluation_all():
    inputs = np.zeros((100, 2), np.float32)
    sigma, one = trainer(Arrays(inputs=inputs, targets=CODES))
    one.fit(epochs=60)
    assert one.predict(inputs[:1]) == pytest.approx(np.full((1, 3), 1 / 3), abs=0.03)  # the share of each class
    assert one.evaluate("training", {"accuracy": "accuracy"})["accuracy"] in (0.9, 0.09, 0.01)
    sigma.close()


def test_rows_that_are_read_anew_are_refused():
    _, one = trainer(Stream(lambda: iter([(np.zeros((16, 2)), np.arange(16) % 3)]), of="batches", keep="one"))
    with pytest.raises(SigmaDataError, match="rows are read anew for every epoch"):
        one.fit(epochs=1)


@pytest.mark.parametrize("rows", [[0] * 8, [0] * 9 + [9], [-1] * 9, [0.0] * 9])
def test_draws_that_are_no_rows_are_errors_of_the_iterator(rows):
    class Broken(Balanced):
        def draw(self, seed, epoch, block, values):
            return np.array(rows)

    _, one = trainer(Arrays(inputs=np.zeros((9, 2)), targets=np.arange(9) % 3))
    one.iterator = Broken()
    with pytest.raises(SigmaComponentError, match=r"draw\(\) must return 9 numbers of rows"):
        one.fit(epochs=1)


def test_an_unknown_section_is_refused():
    _, one = trainer(Arrays(inputs=np.zeros((9, 2)), targets=np.arange(9) % 3))
    one.iterator = Balanced("label")
    with pytest.raises(SigmaDataError, match="rows are drawn by section 'label', and there is none"):
        one.fit(epochs=1)
