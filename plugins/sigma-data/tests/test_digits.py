from __future__ import annotations

import numpy as np

from sigma_data import Digits
from sigma_kernel.graph import Spec

PER_CLASS = [178, 182, 177, 183, 181, 182, 181, 179, 174, 180]  # as the repository describes the set


def test_the_splits_contain_all_digits():
    digits = Digits()
    assert {name: len(part) for name, part in digits.items()} == {"training": 1438, "validation": 359}
    targets = np.concatenate([part.block(0)["targets"] for part in digits.values()])
    assert np.bincount(targets).tolist() == PER_CLASS
    assert digits.classes == tuple(range(10))


def test_both_splits_contain_every_class_in_proportion():
    validation = Digits()["validation"].block(0)["targets"]
    assert (np.abs(np.bincount(validation) - 0.2 * np.array(PER_CLASS)) < 1).all()


def test_pixels_go_from_0_to_1():
    part = Digits()["training"]
    assert part.sections == {"inputs": Spec((8, 8), "float32"), "targets": Spec((), "int32")}
    inputs = part.block(0)["inputs"]
    assert (inputs.min(), inputs.max()) == (0.0, 1.0)
    np.testing.assert_array_equal(inputs * 16, np.rint(inputs * 16))


def test_the_first_digit_is_a_zero():
    whole, _ = Digits().all_rows()
    block = whole.block(0)
    assert block["targets"][0] == 0
    assert (block["inputs"][0, :3] * 16).tolist() == [[0, 0, 5, 13, 9, 1, 0, 0], [0, 0, 13, 15, 10, 15, 5, 0],
                                                      [0, 3, 15, 2, 0, 11, 8, 0]]  # fmt: skip
