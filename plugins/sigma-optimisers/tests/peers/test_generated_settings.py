"""Optimisers against PyTorch over settings and shapes that hypothesis draws.

``SIGMA_EXAMPLES`` is four times the number of examples of each; ``tox -e long`` draws many.
"""

from __future__ import annotations

import os

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

torch = pytest.importorskip("torch")

import sigma_optimisers as ours  # noqa: E402
from sigma_kernel import functions as f  # noqa: E402
from sigma_testing import Trial  # noqa: E402

STEPS, TOLERANCE, SINGLE = 30, 1e-9, 1e-3
EXAMPLES = max(int(os.environ.get("SIGMA_EXAMPLES", "20")) // 4, 1)
optim = torch.optim
rates, momenta = st.sampled_from([0.0, 1e-4, 0.01, 0.1]), st.sampled_from([0.0, 0.5, 0.9, 0.99])
betas, epsilons = st.sampled_from([0.0, 0.3, 0.9, 0.999]), st.sampled_from([1e-8, 1e-4, 0.1])
longer = st.sampled_from([0.6, 0.9, 0.999])
decays = st.sampled_from([0.0, 0.01, 0.3])
SHAPES = st.lists(st.integers(1, 5), max_size=4).map(tuple)
BETAS = {"learning_rate": ("lr", rates), "beta1": ("betas", betas), "beta2": ("betas", longer)}
ADAM = {**BETAS, "epsilon": ("eps", epsilons), "amsgrad": ("amsgrad", st.booleans())}
RATE = {"learning_rate": ("lr", rates)}
SETTINGS = {  # ours, theirs, and what is set: PyTorch's name for it, and its values
    "gradient_descent": (ours.GradientDescent, optim.SGD, RATE),
    "momentum": (ours.Momentum, optim.SGD, {**RATE, "momentum": ("momentum", momenta)}),
    "nesterov": (ours.Nesterov, optim.SGD, {**RATE, "momentum": ("momentum", momenta.filter(bool))}),
    "adagrad": (ours.Adagrad, optim.Adagrad, {
        **RATE, "epsilon": ("eps", epsilons),
        "initial_accumulator": ("initial_accumulator_value", st.sampled_from([0.0, 0.5])),
    }),
    "adadelta": (ours.Adadelta, optim.Adadelta, {**RATE, "decay": ("rho", longer), "epsilon": ("eps", epsilons)}),
    "rmsprop": (ours.RMSprop, optim.RMSprop, {**RATE, "decay": ("alpha", longer), "epsilon": ("eps", epsilons)}),
    "adam": (ours.Adam, optim.Adam, ADAM),
    "adamw": (ours.AdamW, optim.AdamW, {**ADAM, "weight_decay": ("weight_decay", decays)}),
    "adamax": (ours.Adamax, optim.Adamax, {**BETAS, "epsilon": ("eps", epsilons)}),
    "nadam": (ours.NAdam, optim.NAdam, {
        **BETAS, "epsilon": ("eps", epsilons), "momentum_decay": ("momentum_decay", st.sampled_from([0.0, 4e-3, 0.3])),
    }),
    "radam": (ours.RAdam, optim.RAdam, {**BETAS, "epsilon": ("eps", epsilons)}),
    "adafactor": (ours.Adafactor, optim.Adafactor, {
        **RATE, "power": ("beta2_decay", st.sampled_from([0.3, 0.8])), "epsilon": ("eps", st.sampled_from([1e-3, 0.5])),
        "clip": ("d", st.sampled_from([1.0, 3.0])), "weight_decay": ("weight_decay", decays),
    }),
}  # fmt: skip


def theirs(name, chosen):
    """Return PyTorch's settings."""
    found = {}
    for setting, value in chosen.items():
        known = SETTINGS[name][2][setting][0]
        found[known] = (*found.get(known, ()), value) if known == "betas" else value
    if name == "adafactor":
        found |= {"beta2_decay": -found["beta2_decay"], "eps": (None, found["eps"])}
    return found | ({"nesterov": True} if name == "nesterov" else {})


def slope(parameters, downhill, tanh, total):
    """Return a loss that is curved, and has no minimum: there, rounding of a small gradient may turn a step round."""
    pairs = zip(parameters, downhill, strict=True)
    return sum(total(x * side + 0.1 * tanh(x) ** 2) for x, side in pairs)


@pytest.fixture(autouse=True)
def _double():
    """Let PyTorch keep its own counts in float64: NAdam multiplies them up."""
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


def compare(name, chosen, start, dtype, bound):
    make, torched, _ = SETTINGS[name]
    downhill = [np.where(x > 0.2, 0.7, -1.2).astype(dtype) for x in start.values()]
    trial = Trial(make(**chosen), lambda p: slope(p.values(), downhill, f.tanh, f.sum), start, dtype=dtype)
    values = [torch.tensor(x, dtype=getattr(torch, dtype), requires_grad=True) for x in start.values()]
    optimiser = torched(values, **theirs(name, chosen))
    losses = []
    for _ in range(STEPS):
        optimiser.zero_grad()
        loss = slope(values, map(torch.tensor, downhill), torch.tanh, torch.sum)
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    np.testing.assert_allclose(trial.run(STEPS), losses, rtol=bound, atol=bound)
    for address, value in zip(start, values, strict=True):
        np.testing.assert_allclose(trial.values[address], value.detach().numpy(), rtol=bound, atol=bound)


@pytest.mark.parametrize("name", SETTINGS)
@settings(max_examples=EXAMPLES, suppress_health_check=[*HealthCheck])
@given(data=st.data())
def test_an_optimiser_agrees(name, data):
    chosen = {setting: data.draw(values) for setting, (_, values) in SETTINGS[name][2].items()}
    random = np.random.default_rng(data.draw(st.integers(0, 99)))
    shapes = data.draw(st.lists(SHAPES, min_size=1, max_size=3))
    start = {f"{i}.x": np.asarray(random.normal(size=shape)) for i, shape in enumerate(shapes)}
    compare(name, chosen, start, "float64", TOLERANCE)
    compare(name, chosen, start, "float32", SINGLE)
