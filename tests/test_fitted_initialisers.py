"""Initialisers that are fitted to rows of the data: LSUV, in a run."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from attrs import define

from sigma_initialisers import LSUV, Orthogonal
from sigma_kernel import Context, CostLayer, Environment, functions as f
from sigma_kernel.contracts import Parameter
from sigma_kernel.errors import SigmaComponentError, SigmaConfigError, SigmaDataError
from sigma_kernel.graph import Node, Spec
from sigma_kernel.graph.random import Draw
from sigma_layers import Dense, Input
from sigma_run.config.examination import examine

pytestmark = pytest.mark.rooms
ROWS = 5.0 * np.random.default_rng(0).normal(size=(70, 6)) + 1.0
DEEP = " + ".join(["input(6)", *["dense(12, 'tanh')"] * 4, "output(2)", "squared_difference()"])


def prepared(
    network: Any = DEEP, folder: Path | None = None, rows: np.ndarray = ROWS, prepares: bool = True, **settings: Any
) -> Environment:
    sigma = Environment("fitted", seed=3, precision="float64", folder=folder)
    rule = ("**.weights", LSUV(rows=50, tolerance=1e-3))
    sigma.create_trainer(
        data=(rows, rows[:, :2]), network=network, optimiser="gradient_descent", batch_size=10,
        **{"initialisers": {"all": rule}, "backend": "numpy", **settings},
    )  # fmt: skip
    if prepares:
        sigma.prepare()
    return sigma


def arrays(sigma: Environment) -> dict[str, np.ndarray]:
    session = sigma.trainer("trainer").session
    return {name: session.host(name) for name in session.state.arrays if name.startswith("network.")}


def test_two_linear_layers_are_those_of_the_formula() -> None:
    with prepared("input(6) + dense(5) + output(2) + squared_difference()") as sigma:
        found, outputs = arrays(sigma), ROWS[:50]
        streams = sigma.trainer("trainer").session.setup.model.shapes.streams
        for name, shape in (("1-dense", (6, 5)), ("2-output", (5, 2))):
            drawn = Orthogonal().values("", Parameter(shape), Draw(3, streams.number(f"initial.{name}.weights")))
            wanted = drawn / (outputs @ drawn).std()
            np.testing.assert_allclose(found[f"network.layers.{name}.weights"], wanted, rtol=1e-10)
            outputs = outputs @ wanted


def test_every_layer_has_outputs_of_unit_deviation() -> None:
    with prepared(rows=0.01 * ROWS) as sigma:
        found, outputs = arrays(sigma), 0.01 * ROWS[:50]
        for number in range(1, 5):
            weights, biases = (found[f"network.layers.{number}-dense.{part}"] for part in ("weights", "biases"))
            outputs = np.tanh(outputs @ weights + biases)
            assert 0.5 < outputs.std() <= 1.001  # tanh stays below 1, which ten divisions approach
        last = outputs @ found["network.layers.5-output.weights"]
        assert last.std() == pytest.approx(1.0, rel=1e-3)


@pytest.mark.parametrize("backend", ["numpy", "numba"])
def test_the_same_seed_and_rows_give_the_same_values_on_every_backend(backend: str) -> None:
    with prepared() as one, prepared(backend=backend) as other:
        assert {n: x.tolist() for n, x in arrays(one).items()} == {n: x.tolist() for n, x in arrays(other).items()}


def test_rows_are_prepared_and_those_after_the_first_do_not_count() -> None:
    later = np.concatenate([ROWS[:50], 9.0 * ROWS[50:]])
    with prepared() as one, prepared(rows=later) as other:
        assert {n: x.tolist() for n, x in arrays(one).items()} == {n: x.tolist() for n, x in arrays(other).items()}
    scaled = {"preprocessors": {"normalise": {"type": "normalise", "section": "inputs"}}}
    with prepared(**scaled) as one, prepared(rows=2.0 * ROWS, **scaled) as other:
        for name, value in arrays(one).items():
            np.testing.assert_allclose(arrays(other)[name], value, rtol=1e-9, err_msg=name)


def test_a_run_keeps_the_values_for_resume_replay_and_reset(tmp_path: Path) -> None:
    with prepared(folder=tmp_path, epochs=2) as sigma:
        first = arrays(sigma)
        sigma.run(progress=False)
        run = sigma.run_folder
        sigma.trainer("trainer").fit(epochs=1, progress=False)
        sigma.send("reset")
        assert {n: x.tolist() for n, x in arrays(sigma).items()} == {n: x.tolist() for n, x in first.items()}
    assert run is not None
    with prepared(epochs=2, prepares=False) as again:
        assert again.replay(run)[1] == {}
        kept = again.trainer("trainer").session.initial.kept
        assert {*kept} == {*(f"{n}-dense.weights" for n in (1, 2, 3, 4)), "5-output.weights"}


def test_rows_without_differences_are_refused_with_the_address() -> None:
    with pytest.raises(SigmaDataError, match=r"1-dense\.weights: the outputs of its layer do not differ over 50 rows"):
        prepared(rows=np.zeros((70, 6)))


def test_a_parameter_that_is_used_several_times_is_fitted_too() -> None:
    with prepared("input(6) + repeat(3, dense(6) + dense(6), shared=true) + output(2) + squared_difference()") as sigma:
        first, second = (x for name, x in arrays(sigma).items() if name.endswith("weights") and x.shape == (6, 6))
        outputs = ROWS[:50]
        for _ in range(3):
            outputs = outputs @ first @ second
    assert outputs.std() == pytest.approx(1.0, rel=1e-3)


@define(eq=False)
class Scaled(CostLayer):
    """A cost with a parameter that is called as those of layers."""

    def parameters(self, *inputs: Spec) -> Mapping[str, Parameter]:
        return {"weights": Parameter((2, 2))}

    def forward(self, context: Context, output: Node, targets: Node, weights: Node | None = None) -> Node:
        return f.mean(f.square(output @ context.parameters["weights"] - targets))


def test_a_parameter_of_a_cost_is_refused() -> None:
    with pytest.raises(SigmaConfigError, match=r"cannot fit .*weights, as its layer is a cost, which has no output"):
        prepared(Input(6) + Dense(2) + Scaled())


def test_a_check_that_reads_no_rows_has_nothing_against_it() -> None:
    with prepared(prepares=False, epochs=1) as sigma:
        assert examine(sigma.trainer("trainer")) == []


class Wrong(LSUV):
    """It returns another shape."""

    def fit(self, *given: Any) -> np.ndarray:
        return np.ones(3)


def test_values_of_another_shape_are_refused() -> None:
    with pytest.raises(SigmaComponentError, match=r"fit\(\) must return finite numbers of shape \(6, 12\)"):
        prepared(initialisers={"all": ("**.weights", Wrong())})
