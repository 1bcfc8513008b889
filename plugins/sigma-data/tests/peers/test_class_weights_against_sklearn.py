"""Weights of classes agree with scikit-learn's, of single classes and of several labels."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.utils.class_weight import compute_class_weight, compute_sample_weight

from sigma_data import Arrays
from sigma_data.class_weights import ClassWeighted


def weighed(targets, rule):
    return ClassWeighted(Arrays(inputs=np.zeros((len(targets), 1)), targets=targets), rule).block(0)["weights"]


@pytest.mark.parametrize("seed", range(5))
def test_balanced_weights_of_classes(seed):
    draws = np.random.default_rng(seed)
    targets = draws.choice(5, 200, p=[0.6, 0.3, 0.06, 0.03, 0.01])
    there = np.unique(targets)
    weights = dict(zip(there, compute_class_weight("balanced", classes=there, y=targets), strict=True))
    assert weighed(targets, "balanced") == pytest.approx([weights[name] for name in targets], rel=1e-7)
    words = np.array(["a", "b", "c", "d", "e"])[targets]
    assert weighed(words, "balanced") == pytest.approx(compute_sample_weight("balanced", words), rel=1e-7)
    named = {"a": 0.5, "d": 4.0}
    wanted = compute_sample_weight({"a": 0.5, "b": 1, "c": 1, "d": 4.0, "e": 1}, words)
    assert weighed(words, {name: named[name] for name in named if name in words}) == pytest.approx(wanted, rel=1e-7)


@pytest.mark.parametrize("seed", range(5))
def test_balanced_weights_of_one_hot_targets(seed):
    classes = np.random.default_rng(seed).choice(6, 100, p=[0.5, 0.3, 0.1, 0.06, 0.04, 0.0])
    assert weighed(np.eye(6)[classes], "balanced") == pytest.approx(
        compute_sample_weight("balanced", classes), rel=1e-6
    )


@pytest.mark.parametrize("seed", range(5))
def test_balanced_weights_of_several_labels(seed):
    labels = (np.random.default_rng(seed).random((200, 4)) < [0.1, 0.5, 0.8, 0.02]).astype(int)
    assert weighed(labels, "balanced") == pytest.approx(compute_sample_weight("balanced", labels), rel=1e-6)
