"""Cosine and triplet costs, against loops over their formulas, and trained in networks with several inputs."""

from __future__ import annotations

import numpy as np
import pytest

from sigma_kernel import Environment
from sigma_kernel.errors import SigmaConfigError, SigmaDataError, SigmaNetworkError
from sigma_kernel.graph import Spec
from sigma_layers import CosineDistance, Dense, Input, SquaredDifference, Triplet
from sigma_testing import CostSuite

from .costing import cost, predicted, slopes, totals

DRAW = np.random.default_rng(0)
A, P, N = DRAW.normal(size=(3, 6, 4))
ANSWERS = np.array([1, -1, 0, 1, -1, 1])
ROWS = np.array([1.0, 0.0, 2.5, 0.25, 1.0, 2.0])
PAIRS = np.array([x @ y / np.linalg.norm(x) / np.linalg.norm(y) for x, y in zip(A, P, strict=True)])


class TestCosine(CostSuite):
    inputs = (Spec((2, 4)), Spec((2, 4)))
    test_gradients_at_kinks_lie_between_the_slopes_beside_them = None  # 0 has no direction

    def make(self):
        return CosineDistance()


class TestCosineOfPairs(TestCosine):
    inputs = (Spec((4,)), Spec((4,)), Spec((), "int32"))

    def make(self):
        return CosineDistance(Input(4), margin=0.2)

    def arrays(self, batch):
        x, y, answers = super().arrays(batch)
        return x, y, answers - 1

    test_its_text_form_round_trips = None  # an input of the network is no setting


class TestTriplet(CostSuite):
    inputs = (Spec((2, 4)), Spec((2, 4)), Spec((2, 4)))

    def make(self):
        return Triplet()


class TestTripletWithAnotherNorm(CostSuite):
    inputs = (Spec((4,)), Spec((4,)), Spec((4,)))

    def make(self):
        return Triplet(margin=0.5, norm=3)


# -- cosine ------------------------------------------------------------------------------------------------------------
def test_cosine_is_one_minus_the_cosine_to_the_targets():
    assert cost(CosineDistance(), A, P) == pytest.approx(1 - PAIRS.mean(), rel=1e-11)
    assert totals(CosineDistance(), A, P, weights=ROWS) == pytest.approx(((1 - PAIRS) @ ROWS, ROWS.sum()), rel=1e-11)
    assert cost(CosineDistance(), A, 7 * A) == pytest.approx(0.0, abs=1e-11)
    assert cost(CosineDistance(), A, -A) == pytest.approx(2.0, rel=1e-11)


@pytest.mark.parametrize("margin", [-0.5, 0.0, 0.3])
def test_pairs_that_differ_cost_what_their_cosine_exceeds_the_margin(margin):
    losses = np.where(ANSWERS == 1, 1 - PAIRS, np.maximum(0, PAIRS - margin))
    layer = CosineDistance(Input(4), margin=margin)
    assert cost(layer, A, P, ANSWERS) == pytest.approx(losses.mean(), rel=1e-11)
    assert cost(layer, A, P, ANSWERS[:, None].astype(float)) == pytest.approx(losses.mean(), rel=1e-11)
    assert totals(layer, A, P, ANSWERS, weights=ROWS) == pytest.approx((losses @ ROWS, ROWS.sum()), rel=1e-11)


def test_an_embedding_of_zeros_has_a_finite_slope():
    found = slopes(CosineDistance(), np.zeros((1, 4)), A[:1])
    assert np.isfinite(found).all()
    assert cost(CosineDistance(), np.zeros((1, 4)), A[:1]) == 1.0


def test_embeddings_and_answers_that_do_not_fit_are_refused():
    with pytest.raises(SigmaNetworkError, match=r"\(\(4,\), \(3,\), \(\)\): two embeddings of one shape"):
        cost(CosineDistance(Input(4)), A, P[:, :3], ANSWERS)
    with pytest.raises(SigmaNetworkError, match=r"cosine_distance\(\(4,\), \(3,\)\): section 'targets' must have"):
        cost(CosineDistance(), A, P[:, :3])
    CosineDistance(Input(4)).check(ANSWERS, Spec((4,)))
    with pytest.raises(SigmaDataError, match="row 1: 2 is neither yes nor no"):
        CosineDistance(Input(4)).check(np.array([1, 2]), Spec((4,)))
    with pytest.raises(SigmaDataError, match=r"rows of shape \(4,\); expected \(\)"):
        CosineDistance(Input(4)).check(P, Spec((4,)))
    with pytest.raises(SigmaDataError, match=r"rows of shape \(\); expected \(4,\)"):
        CosineDistance().check(ANSWERS, Spec((4,)))
    with pytest.raises(SigmaConfigError, match="CosineDistance.margin: must be at most 1"):
        CosineDistance(margin=2.0)


# -- triplets ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("norm", [1, 1.5, 2, 4, np.inf])
@pytest.mark.parametrize("margin", [0.0, 1.0])
def test_a_triplet_costs_what_its_distances_lack_of_the_margin(norm, margin):
    near, far = (np.linalg.norm(A - x + 1e-6, norm, axis=1) for x in (P, N))
    losses, layer = np.maximum(0, near - far + margin), Triplet(margin=margin, norm=norm)
    assert cost(layer, A, P, N) == pytest.approx(losses.mean(), rel=1e-12)
    assert totals(layer, A, P, N, weights=ROWS) == pytest.approx((losses @ ROWS, ROWS.sum()), rel=1e-12)


@pytest.mark.parametrize("norm", [1, 1.5, 2, np.inf])
def test_equal_embeddings_have_finite_slopes(norm):
    for apart in (0.0, 1e-6):  # the latter is a distance of exactly 0
        found = slopes(Triplet(norm=norm), np.zeros((1, 4)), np.full((1, 4), apart), np.zeros((1, 4)))
        assert np.isfinite(found).all()


def test_a_triplet_needs_three_embeddings_of_one_shape():
    with pytest.raises(SigmaNetworkError, match=r"triplet\(\(4,\), \(4,\)\): it compares three embeddings"):
        cost(Triplet(), A, P)
    with pytest.raises(SigmaNetworkError, match=r"triplet\(\(4,\), \(4,\), \(3,\)\): it compares three"):
        cost(Triplet(), A, P, N[:, :3])
    for wrong in (0.5, "two"):
        with pytest.raises(SigmaConfigError, match="Triplet.norm: must be"):
            Triplet(norm=wrong)


def test_predictions_are_embeddings():
    np.testing.assert_array_equal(predicted(Triplet(), A), A)
    np.testing.assert_array_equal(predicted(CosineDistance(), A), A)


TEXT = """
anchor = input(4, section="anchor") + dense(2, name="net")
near = input(4, section="near") + dense(2, name="near", share={"weights": "net.weights", "biases": "net.biases"})
far = input(4, section="far") + dense(2, name="far", share={"weights": "net.weights", "biases": "net.biases"})
anchor + triplet(near, far, margin=2.0)
"""


def triplets():
    """Return points of two groups, which only the first coordinate tells apart."""
    first = np.sign(DRAW.normal(size=60))
    anchor, near, far = (DRAW.normal(size=(60, 4)) * 2 for _ in range(3))
    anchor[:, 0], near[:, 0], far[:, 0] = first, first, -first
    return {"anchor": anchor, "near": near, "far": far}


@pytest.mark.rooms
@pytest.mark.parametrize("backend", ["numpy", "numba"])
def test_triplets_train_a_shared_network_without_targets(backend):
    with Environment("triplets", seed=1) as sigma:
        data = triplets()
        trainer = sigma.create_trainer("trainer", data=data, batch_size=20, backend=backend)
        trainer.network, trainer.optimiser = TEXT, {"type": "adam", "learning_rate": 0.05}
        history = trainer.fit(epochs=20)
        assert list(trainer.session.setup.model.shapes.parameters) == ["net.weights", "net.biases"]
        assert history["training.loss"][-1] < 0.5 * history["training.loss"][0]
        assert trainer.predict(data["anchor"]).shape == (60, 2)  # other sections lead to the cost alone
        assert trainer.evaluate("training")["loss"] < 1.0
        worst = trainer.view.losses("training", 3)
        assert worst.targets is None
        assert worst.losses.tolist() == sorted(worst.losses.tolist(), reverse=True)
        with pytest.raises(SigmaNetworkError, match="there is no cost with targets. Add one"):
            trainer.evaluate("training", {"accuracy": "accuracy"})


@pytest.mark.rooms
def test_the_text_of_a_network_of_triplets_is_the_one_that_is_parsed():
    def written(text):
        with Environment("text", seed=1) as sigma:
            trainer = sigma.create_trainer("trainer", data=triplets(), batch_size=20, optimiser="adam")
            trainer.network = text
            trainer.prepare()
            return str(trainer.session.setup.model.network)

    text = written(TEXT)
    assert "triplet(" in text
    assert written(text) == text


@pytest.mark.rooms
def test_a_cost_without_targets_trains_beside_one_with_targets():
    data = {**triplets(), "targets": DRAW.normal(size=(60, 1))}
    anchor = Input(4, section="anchor") + Dense(2, name="net")
    same = {"weights": "net.weights", "biases": "net.biases"}
    near, far = (Input(4, section=name) + Dense(2, name=name, share=same) for name in ("near", "far"))
    with Environment("both", seed=1) as sigma:
        trainer = sigma.create_trainer("trainer", data=data, batch_size=20)
        trainer.network = [anchor + Triplet(near, far, name="apart"), anchor + Dense(1) + SquaredDifference(name="fit")]
        trainer.optimiser = "adam"
        history = trainer.fit(epochs=2)
        assert {"training.cost.apart", "training.cost.fit"} <= set(history)
        found = trainer.view.losses("training")
        assert found.targets is None  # the first output is an embedding
        assert trainer.predict(data["anchor"]).keys() == {"net", trainer.session.setup.model.network.outputs[1].name}
