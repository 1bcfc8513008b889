"""Every layer, activation and cost against PyTorch in float64: value, gradients, and 100 steps from the same values.

The cases are in modules of their own, one for each family; ``CASES`` has those of all.
"""

from __future__ import annotations

from copy import deepcopy

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from sigma_kernel import Network  # noqa: E402
from sigma_layers import (  # noqa: E402
    BinaryCrossEntropy,
    Dense,
    Dropout,
    Flatten,
    Function,
    GaussianNoise,
    Input,
    Output,
    Reshape,
    SoftmaxCrossEntropy,
    SpatialDropout,
    SquaredDifference,
)
from sigma_layers.plugin import ACTIVATIONS, LAYERS  # noqa: E402

from . import attention_cases, cost_cases, layer_cases, nested_cases, recurrent_cases, single_layer_cases  # noqa: E402
from .comparison import RATE, TOLERANCE, Trained, affine, agree, in_torch  # noqa: E402
from .layer_cases import BATCH, IN_TORCH, PROBABILITIES, X, Y, first, squared  # noqa: E402

F = torch.nn.functional
STEPS = 100
CASES = {
    **attention_cases.CASES,
    **cost_cases.CASES,
    **layer_cases.CASES,
    **nested_cases.CASES,
    **recurrent_cases.CASES,
}


def test_every_component_of_the_room_has_a_case_here():
    assert set(IN_TORCH) == set(ACTIVATIONS)
    built = [placed.kind for architecture, _, _ in CASES.values() for placed in Network.build(architecture).layers]
    alone = {type(case.layer).__name__ for case in single_layer_cases.CASES}
    alone = {name for name, (made, _) in LAYERS.items() if made in alone}
    assert {*built, *alone, "dropout", "spatial_dropout", "gaussian_noise"} == set(LAYERS)


@pytest.mark.parametrize("case", CASES)
def test_value_and_gradients_agree(case):
    architecture, data, function = CASES[case]
    trained = Trained(architecture, data)
    loss, _, gradients = trained.computed()
    expected, by_torch = in_torch(function, trained.values)
    assert loss == pytest.approx(expected, rel=TOLERANCE, abs=TOLERANCE)
    agree(gradients, by_torch)


@pytest.mark.parametrize("case", CASES)
def test_a_hundred_training_steps_agree(case):
    architecture, data, function = CASES[case]
    trained = Trained(architecture, data)
    values = dict(trained.values)
    for _ in range(STEPS):
        trained.step()
        gradients = in_torch(function, values)[1]
        values = {name: x - RATE * gradients[name] for name, x in values.items()}
    agree(trained.values, values)
    start = Trained(architecture, data).values  # biases of keys move no score relative to another
    assert not any(np.array_equal(x, start[n]) for n, x in values.items() if np.abs(gradients[n]).max() > 1e-12)


@pytest.mark.parametrize(
    ("layer", "combine", "drawn"),
    [
        (Dropout(0.4), torch.mul, {0.0, 1 / (1 - 0.4)}),
        (SpatialDropout(0.4), torch.mul, {0.0, 1 / (1 - 0.4)}),
        (GaussianNoise(0.3), torch.add, None),
    ],
)
def test_a_hundred_steps_with_random_numbers_agree_given_the_same_ones(layer, combine, drawn):
    head = Input(4) + Dense(8, name="a") + Reshape(4, 2)
    trained = Trained(head + layer + Flatten() + Dense(4, name="b") + SquaredDifference(), {"inputs": X, "targets": Y})
    zeros = np.zeros((BATCH, 4, 2))
    random = Trained(
        Input(4, 2) + Function(lambda x: x, name="a") + deepcopy(layer) + SquaredDifference(),
        {"inputs": zeros + (combine is torch.mul), "targets": zeros},
    )
    values = dict(trained.values)
    for step in range(STEPS):
        trained.step()
        random.iteration = step
        numbers = torch.tensor(random.computed()[1])
        gradients = in_torch(
            lambda p, m=numbers: squared(affine(p, "b", combine(first(p).reshape(-1, 4, 2), m).flatten(1))), values
        )[1]
        values = {name: x - RATE * gradients[name] for name, x in values.items()}
    assert drawn is None or set(np.unique(numbers)) == drawn
    assert (numbers[:, :, 0] == numbers[:, :, 1]).all() == isinstance(layer, SpatialDropout)
    agree(trained.values, values)


@pytest.mark.parametrize(
    ("layer", "function"),
    [(SoftmaxCrossEntropy(), lambda x: F.softmax(x, -1)), (BinaryCrossEntropy(), torch.sigmoid)],
)
def test_predictions_agree(layer, function):
    trained = Trained(Input(4) + Output(3, name="a") + layer, {"inputs": X, "targets": PROBABILITIES})
    expected = function(affine({name: torch.tensor(x) for name, x in trained.values.items()}, "a", torch.tensor(X)))
    np.testing.assert_allclose(trained.computed()[1], expected.numpy(), rtol=TOLERANCE, atol=TOLERANCE)


@pytest.mark.parametrize("precision", ["float64", "float32"])
@pytest.mark.parametrize("case", [name for name in CASES if name.startswith("adaptive softmax of")])
def test_predictions_of_an_adaptive_softmax_agree(case, precision):
    architecture, data, _ = CASES[case]
    trained = Trained(architecture, data, precision)
    p = {name: torch.tensor(x.astype(np.float64)) for name, x in trained.values.items()}
    cost = trained.network.layers[-1].layer
    module, given = cost_cases.adaptive(list(cost.cutoffs), p, div_value=cost.divisor, head_bias=cost.bias)
    module.load_state_dict(given)
    features = affine(p, "a", torch.tensor(data["inputs"].astype(precision).astype(np.float64))).flatten(0, 1)
    expected = module.log_prob(features).exp().reshape(cost_cases.ROWS, 5, 9).detach().numpy()
    bound = TOLERANCE if precision == "float64" else 1e-5
    np.testing.assert_allclose(trained.computed()[1], expected, rtol=bound, atol=bound)
