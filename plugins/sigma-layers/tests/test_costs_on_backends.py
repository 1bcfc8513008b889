"""One network under all costs trains alike on the reference and on the compiled backend."""

from __future__ import annotations

import numpy as np
import pytest

from sigma_kernel import Environment

pytestmark = pytest.mark.rooms

TEXT = """
trunk = input(4) + dense(3, activation="tanh", name="trunk")
trunk + softmax_cross_entropy(class_weights=[0.5, 2.0, 1.0], label_smoothing=0.1, ignore_index=1, name="smooth")
trunk + adaptive_softmax(3, [1, 2], 1.5, bias=true, ignore_index=1, targets="labels", name="adaptive")
trunk + multi_class_hinge(targets="labels", name="classes")
trunk + multi_class_hinge(0.5, power=2, over="worst", targets="labels", name="worst")
trunk + hinge(targets="answers", power=2, name="binary")
trunk + absolute_difference(targets="numbers", name="l1")
trunk + huber(0.5, targets="numbers", name="huber")
trunk + poisson(targets="answers", name="counts")
trunk + kullback_leibler(targets="shares", name="shares")
trunk + cosine_distance(targets="numbers", name="angle")
"""


def test_all_costs_train_alike_on_both_backends():
    draw = np.random.default_rng(0)
    numbers, labels = draw.normal(size=(18, 3)), draw.integers(0, 3, 18).astype(np.int32)
    data = {
        "inputs": draw.normal(size=(18, 4)), "targets": labels, "labels": labels, "numbers": numbers,
        "answers": (numbers > 0).astype(np.float64), "shares": draw.dirichlet(np.ones(3), 18),
        "weights": draw.uniform(0, 2, 18),
    }  # fmt: skip

    def trained(backend):
        with Environment("costs", seed=2, precision="float64") as sigma:
            trainer = sigma.create_trainer("trainer", data=data, batch_size=9, backend=backend)
            trainer.network, trainer.optimiser = TEXT, {"type": "gradient_descent", "learning_rate": 0.05}
            trainer.fit(epochs=5)
            return trainer.session.host("network.layers.trunk.weights"), trainer.evaluate("training")

    (ours, costs), (reference, wanted) = trained("numba"), trained("numpy")
    assert len(costs) == 11
    np.testing.assert_allclose(ours, reference, rtol=1e-11)
    assert costs == pytest.approx(wanted, rel=1e-11)
