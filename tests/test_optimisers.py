"""Every optimiser of the rooms: on both backends, in plain minimisation, resumed, replayed and swapped."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sigma_optimisers
from sigma_backend_numba import NumbaBackend
from sigma_kernel import Environment, functions as f
from sigma_kernel.errors import SigmaStateError
from sigma_kernel.graph import Graph, interpret, numpy_namespace
from sigma_optimisers import AccumulateGradients, Adam, Average, DecoupledDecay, NonNegative, SpectralNorm, UnitNorm
from sigma_optimisers.plugin import OPTIMISERS
from sigma_testing import Trial
from sigma_testing.steering import state_bytes
from sigma_training import minimise

pytestmark = pytest.mark.rooms
DRAW = np.random.default_rng(0)
START = {"a": DRAW.normal(size=(3, 4)), "b": DRAW.normal(size=4), "c": DRAW.normal(size=(2, 3, 2)), "d": np.array(0.5)}


def bowl(p: Any) -> Any:
    """Return a smooth loss of parameters of ranks 0 to 3."""
    return f.mean(f.square(p["a"] + p["b"] - 1.0)) + f.mean(f.square(p["c"] * p["d"])) + f.square(p["d"] - 2.0)


def made(name: str, **settings: Any) -> Any:
    return getattr(sigma_optimisers, OPTIMISERS[name][0])(**settings)


@pytest.mark.parametrize(("dtype", "bound"), [("float64", 1e-9), ("float32", 1e-4)])
def test_backends_agree_on_the_fourth_step_of_every_optimiser(dtype: str, bound: float) -> None:
    trials = {name: Trial(made(name), bowl, START, dtype=dtype) for name in OPTIMISERS}
    trials["changed"] = Trial(
        Adam(
            transforms={"accumulate": AccumulateGradients(2)},
            modifiers={
                "decay": DecoupledDecay(), "positive": NonNegative(match="b"), "even": SpectralNorm(match="a"),
                "one": UnitNorm(match="c"), "average": Average(),
            },
        ), bowl, START, dtype=dtype,
    )  # fmt: skip
    graphs = [trial.graph for trial in trials.values()]
    inputs, outputs = (tuple(x for graph in graphs for x in getattr(graph, end)) for end in ("inputs", "outputs"))
    everything = Graph(inputs, outputs)  # one program: a compiler takes seconds for each
    for trial in trials.values():
        trial.run(3)  # the fourth is compared: every second batch is an update of the last trial
    given = [x for trial in trials.values() for x in trial.inputs()]
    compiled = NumbaBackend().lower(everything, {})(*[x.copy() for x in given])
    for ours, theirs in zip(compiled, interpret(everything, numpy_namespace())(*given), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=bound, atol=bound)


@pytest.mark.parametrize("name", OPTIMISERS)
def test_a_plain_function_is_minimised(name: str) -> None:
    found = minimise(bowl, START, optimiser=made(name), iterations=30, precision="float64", backend="numpy")
    before, after = (float(f.evaluate(bowl, p)) for p in (START, found))
    assert after < before
    assert {key: x.shape for key, x in found.items()} == {key: x.shape for key, x in START.items()}


# -- in runs -----------------------------------------------------------------------------------------------------------
def placed(text: str) -> Path:
    """Write a configuration that trains on four batches an epoch, the last of them smaller."""
    path = Path("small.toml")
    path.write_text(f"""
format = 1
[run]
name = "small"
backend = "numpy"
[data]
dataset = "iris"
batch_size = 40
[network]
architecture = 'input(4) + dense(5, "tanh") + output(3) + softmax_cross_entropy()'
[trainer.optimiser]
{text}
""")
    return path


INPUTS = DRAW.normal(size=(45, 3))


def ran(sigma: Any, *arguments: Any) -> dict[str, Any]:
    code, out, error = sigma(*arguments, "--json", "--quiet")
    assert code == 0, error
    return json.loads(out)  # type: ignore[no-any-return]


RUNS = {
    **{name: f'type = "{name}"' for name in ("nadam", "adafactor", "muon", "l_bfgs", "cma_es", "random_search")},
    "accumulation, in the middle": 'type = "adam"\ntransforms.three = { type = "accumulate", batches = 3 }',
    "an average": 'type = "adam"\nmodifiers.slow = { type = "average", decay = 0.8 }',
    "a spectral norm": 'type = "adam"\nmodifiers.even = { type = "spectral_norm", match = "**.weights" }',
}


@pytest.mark.parametrize("text", RUNS.values(), ids=RUNS)
def test_a_run_resumes_and_replays_to_the_bit(sigma: Any, text: str) -> None:
    path = placed(text)
    whole, part = ran(sigma, "run", path, "--epochs", 3), ran(sigma, "run", path, "--epochs", 1)
    resumed = ran(sigma, "resume", part["folder"], "--epochs", 3)
    assert resumed["parameters_sha256"] == whole["parameters_sha256"] != part["parameters_sha256"]
    assert sigma("replay", part["folder"], "--check")[0] == 0


def test_optimisers_are_swapped_for_those_with_other_slots() -> None:
    data = {"inputs": INPUTS, "targets": INPUTS.sum(1, keepdims=True)}
    network = 'input(3) + dense(4, "tanh") + output(1) + squared_difference()'
    with Environment("swapped") as sigma:
        trainer = sigma.create_trainer(data=data, network=network, optimiser="adam", batch_size=9, backend="numpy")
        trainer.fit(iterations=2)
        for name in OPTIMISERS:
            held = {key: value for key, value in state_bytes(trainer).items() if key.startswith("network.")}
            sigma.swap("optimiser", name)
            after = state_bytes(trainer)
            assert {key: after[key] for key in held} == held
            declared = {f"optimiser.slots.{a}.{slot}" for a, slot in trainer.session.setup.model.slots()}
            assert {key for key in after if key.startswith("optimiser.slots.")} == declared
            trainer.fit(iterations=3)
            assert {key for key, value in held.items() if state_bytes(trainer)[key] == value} == set(), name


@pytest.mark.parametrize("name", ["l_bfgs", "cma_es", "random_search"])
def test_an_optimiser_that_evaluates_the_loss_is_refused_with_shards(name: str) -> None:
    data = {"inputs": INPUTS, "targets": INPUTS.sum(1, keepdims=True)}
    with Environment("shards") as sigma:
        trainer = sigma.create_trainer(
            data=data, network="input(3) + output(1) + squared_difference()", optimiser=name, backend="numpy",
            operator={"type": "local", "shards": 2},
        )  # fmt: skip
        with pytest.raises(SigmaStateError, match="it asks for the loss again, .* Use shards = 1"):
            trainer.fit(epochs=1)


def test_a_loss_with_dropout_is_the_same_function_within_a_step() -> None:
    """L-BFGS evaluates the loss many times in a step: it would find no better point if each had its own noise."""
    data = {"inputs": INPUTS, "targets": INPUTS.sum(1, keepdims=True)}
    network = "input(3) + dropout(0.5) + output(1) + squared_difference()"
    with Environment("noise", precision="float64") as sigma:
        trainer = sigma.create_trainer(data=data, network=network, optimiser="l_bfgs", batch_size=45, backend="numpy")
        for step in range(1, 7):
            trainer.fit(iterations=1)
            moved = trainer.session.host("optimiser.slots.2-output.weights.steps")[-step:]
            assert np.abs(moved).reshape(step, -1).max(axis=1).all()
