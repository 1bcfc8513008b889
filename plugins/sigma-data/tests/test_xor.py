from __future__ import annotations

from sigma_data import Xor


def test_training_and_validation_are_the_same_four_samples():
    xor = Xor()
    assert list(xor) == ["training", "validation"]
    assert xor.classes == (0, 1)
    for part in xor.values():
        assert part.block(0)["inputs"].tolist() == [[0, 0], [0, 1], [1, 0], [1, 1]]
        assert part.block(0)["targets"].tolist() == [0, 1, 1, 0]
