"""What each merger makes of the gradients of shards."""

from __future__ import annotations

import numpy as np
import pytest

from sigma_kernel import SigmaConfigError
from sigma_operator_local import Largest, MeanOfShards, MergerRules, Sum, Weighted

OWN = [np.array([1.0, -8.0]), np.array([4.0, 2.0]), np.array([-4.0, 0.5])]  # mean gradients over the rows of each shard
ROWS = [0.5, 0.25, 0.25]
PARTS = [gradient * share for gradient, share in zip(OWN, ROWS, strict=True)]


def test_means_of_shards_are_merged_as_numpy_does() -> None:
    def merge(merger: object) -> np.ndarray:
        return np.asarray(merger.merge(PARTS, ROWS, "dense.bias"))  # type: ignore[attr-defined]

    np.testing.assert_allclose(merge(Sum()), np.average(OWN, axis=0, weights=ROWS))
    np.testing.assert_allclose(merge(MeanOfShards()), np.mean(OWN, axis=0))
    np.testing.assert_allclose(merge(Weighted([1, 2, 5])), np.average(OWN, axis=0, weights=[1, 2, 5]))
    np.testing.assert_allclose(merge(Largest()), [4.0, -8.0])  # of 4 and -4, that of the first shard
    np.testing.assert_allclose(merge(MergerRules({"dense.*": Largest()})), [4.0, -8.0])
    np.testing.assert_allclose(merge(MergerRules({"*.weights": Largest()})), merge(Sum()))


def test_weights_that_do_not_fit_are_refused_with_the_remedy() -> None:
    for wrong in ([0.0, 0.0], [], ["a"], [[1.0]], 3, [-1.0, 2.0], [float("nan")], "12"):
        with pytest.raises(SigmaConfigError, match="must be numbers of at least 0, not all 0"):
            Weighted(wrong)  # type: ignore[arg-type]
    with pytest.raises(SigmaConfigError, match="2 weights are for as many shards.*a batch has 3.*Give one weight"):
        Weighted([1.0, 1.0]).merge(PARTS, ROWS, "dense.bias")
    assert (
        Weighted([1.0, 1.0, 1.0, 7.0]).merge(PARTS, ROWS, "").tolist() == MeanOfShards().merge(PARTS, ROWS, "").tolist()
    )
