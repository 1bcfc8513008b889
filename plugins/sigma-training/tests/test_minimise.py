"""Minimisation of a function of parameters, without layers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from sigma_kernel import functions as f
from sigma_kernel.clock import Moment
from sigma_kernel.errors import SigmaAddressError, SigmaConfigError, SigmaDataError, SigmaError, SigmaTrainingError
from sigma_kernel.graph.node import Node
from sigma_testing.null import NullBackend
from sigma_testing.steering import Descent, Sweep
from sigma_training import minimise
from sigma_training.data.dataset import Rows

HERE: dict[str, Any] = {"backend": NullBackend(), "operator": Sweep(), "batch_size": 20}


def _line(p: Mapping[str, Node], batch: Mapping[str, Node]) -> Node:
    return f.mean(f.square(batch["x"] * p["slope"] + p["offset"] - batch["y"]))


def _points(rows: int = 100) -> dict[str, np.ndarray]:
    x = np.linspace(-1.0, 1.0, rows)
    return {"x": x, "y": 3.0 * x - 2.0}


START = {"slope": np.float64(0.0), "offset": np.float64(0.0)}


def test_a_small_nonlinear_function_is_fitted_in_ten_lines() -> None:
    def loss(p, batch):  # type: ignore[no-untyped-def]
        hidden = f.tanh(batch["inputs"] @ p["w1"] + p["b1"])
        return f.mean(f.square(hidden @ p["w2"] + p["b2"] - batch["targets"]))

    draw = np.random.default_rng(0)
    x = draw.uniform(-2.0, 2.0, size=(200, 1))
    start = {"w1": draw.normal(size=(1, 12)), "b1": np.zeros(12), "w2": draw.normal(size=(12, 1)), "b2": np.zeros(1)}
    data = {"inputs": x, "targets": np.sin(2.0 * x)}
    found = minimise(loss, start, data, Descent(learning_rate=0.1), epochs=150, **HERE)

    def error(p: Mapping[str, np.ndarray]) -> float:
        fitted = np.tanh(x @ p["w1"] + p["b1"]) @ p["w2"] + p["b2"]
        return float(np.mean((fitted - data["targets"]) ** 2))

    assert error(found) < error(start) / 20


def test_the_answer_has_the_names_shapes_and_values_of_the_closed_form() -> None:
    found = minimise(_line, START, _points(), Descent(learning_rate=0.5), epochs=40, precision="float64", **HERE)
    assert {name: value.shape for name, value in found.items()} == {"slope": (), "offset": ()}
    assert found["slope"] == pytest.approx(3.0, abs=1e-6)
    assert found["offset"] == pytest.approx(-2.0, abs=1e-6)


def test_the_initial_parameters_are_not_modified() -> None:
    start = {"slope": np.zeros(()), "offset": np.zeros(())}
    minimise(_line, start, _points(), Descent(learning_rate=0.5), **HERE)
    assert start == {"slope": 0.0, "offset": 0.0}


def test_a_fit_of_zero_epochs_changes_nothing() -> None:
    found = minimise(_line, {"slope": 1.0, "offset": 2.0}, _points(), Descent(), epochs=0, **HERE)
    assert found == {"slope": 1.0, "offset": 2.0}


def test_the_callback_sees_each_epoch_and_can_end_it() -> None:
    seen: list[tuple[int, int, float]] = []

    def watch(moment: Moment, loss: float) -> bool:
        seen.append((moment.epoch, moment.iteration, loss))
        return moment.epoch == 3

    minimise(_line, START, _points(), Descent(learning_rate=0.1), watch, epochs=10, **HERE)
    assert [(epoch, iteration) for epoch, iteration, _ in seen] == [(1, 5), (2, 10), (3, 15)]
    assert seen[0][2] > seen[1][2] > seen[2][2]


def test_any_data_set_can_be_minimised_over_and_the_seed_determines_its_order() -> None:
    found = [
        minimise(_line, START, Rows(_points()), Descent(learning_rate=0.1), seed=seed, **HERE)["slope"].tobytes()
        for seed in (0, 0, 1)
    ]
    assert found[0] == found[1] != found[2]


@pytest.mark.parametrize(
    ("loss", "message"),
    [
        (lambda p, batch: f.square(batch["x"] - p["slope"]), "the loss must be a scalar (got (20,)). Take the mean"),
        (lambda p, batch: 3.0, "the loss must be a scalar (got float). Take the mean over the batch."),
    ],
)
def test_a_loss_that_is_not_a_scalar_is_refused(loss: Any, message: str) -> None:
    with pytest.raises(SigmaConfigError) as error:
        minimise(loss, START, _points(), Descent(), **HERE)
    assert str(error.value).startswith(f"minimise: {message}")


@pytest.mark.parametrize(
    ("loss", "message"),
    [
        (lambda p, batch: f.mean(batch["xs"]), "minimise: there is no section 'xs'. Did you mean 'x'?"),
        (lambda p, batch: f.mean(batch["inputs"]), "minimise: there is no section 'inputs'. There is x, y."),
        (
            lambda p, batch: f.mean(batch["x"] * p["slop"]),
            "minimise: there is no parameter 'slop'. Did you mean",
        ),
    ],
)
def test_a_missing_parameter_of_the_loss_is_reported_with_the_existing_ones(loss: Any, message: str) -> None:
    with pytest.raises(SigmaAddressError) as error:
        minimise(loss, START, _points(), Descent(), **HERE)
    assert str(error.value).startswith(message)


def test_pairs_and_blocks_can_be_minimised_over() -> None:
    points = _points()
    blocks = [{name: values[i : i + 50] for name, values in points.items()} for i in (0, 50)]
    named = minimise(_line, START, blocks, Descent(learning_rate=0.5), epochs=40, **HERE)
    assert named["slope"] == pytest.approx(3.0, abs=1e-3)

    def paired(p: Mapping[str, Node], batch: Mapping[str, Node]) -> Node:
        return _line(p, {"x": batch["inputs"], "y": batch["targets"]})

    found = minimise(paired, START, (points["x"], points["y"]), Descent(learning_rate=0.5), epochs=40, **HERE)
    assert found["slope"] == pytest.approx(3.0, abs=1e-3)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_diverging_loss_is_reported() -> None:
    with pytest.raises(SigmaTrainingError, match="the loss is (nan|inf) at iteration"):
        minimise(_line, START, _points(), Descent(learning_rate=1e9), epochs=50, **HERE)


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"batch_size": 200}, SigmaDataError, "a batch of 200 is larger than the data, 100 rows"),
        ({"data": {"x": np.ones(50), "y": np.ones(49)}}, SigmaDataError, "sections must have equally many rows"),
        ({"data": {"x": np.full(50, np.nan), "y": np.ones(50)}}, SigmaDataError, "section 'x', row 0"),
        ({"parameters": {"a b": 1.0}}, SigmaAddressError, "is not an address"),
    ],
)
def test_functions_that_cannot_be_minimised_are_refused(
    change: dict[str, Any], error: type[SigmaError], message: str
) -> None:
    settings = {"loss": _line, "parameters": START, "data": _points(), "optimiser": Descent(), **HERE, **change}
    with pytest.raises(error, match=message):
        minimise(**settings)


@pytest.mark.parametrize(
    ("start", "text"),
    [
        ([1.0], r"parameters must be arrays by name: \{'w': .* \(got list\)"),
        ({3: 1.0}, r"the name of a parameter must be a string \(got 3\)"),
        ({"a": {3: 1.0}}, r"the name of a parameter must be a string \(got 3\)"),
        ({"a": {"w": "one"}}, r"parameter 'a.w' must be an array of numbers \(got str\)"),
        ({"a": [np.ones(2), None]}, r"parameter 'a.1' must be an array of numbers \(got NoneType\)"),
        ({"a": "b"}, r"parameter 'a' must be an array of numbers \(got str\)"),
        ({"a": [[1.0], [1.0, 2.0]]}, r"parameter 'a' must be an array of numbers \(got list\)"),
    ],
)
def test_parameters_that_are_not_a_dictionary_of_arrays_are_refused(start: Any, text: str) -> None:
    with pytest.raises(SigmaConfigError, match=f"^minimise: {text}"):
        minimise(_line, start, _points(), Descent(), **HERE)


# -- functions of parameters alone -------------------------------------------------------------------------------------
def _rosenbrock(p: Mapping[str, Any]) -> Any:
    return (1 - p["x"]) ** 2 + 100 * (p["y"] - p["x"] ** 2) ** 2


BY_ITSELF: dict[str, Any] = {"backend": NullBackend(), "operator": Sweep(), "precision": "float64"}


def test_a_function_of_parameters_alone_needs_no_data() -> None:
    slope = {"x": -2 * (1 - -1.0) - 400 * -1.0 * (1.5 - 1.0), "y": 200 * (1.5 - 1.0)}  # the closed form at (-1, 1.5)
    found = minimise(
        _rosenbrock, {"x": -1.0, "y": 1.5}, optimiser=Descent(learning_rate=1e-3), iterations=1, **BY_ITSELF
    )
    assert found["x"] == pytest.approx(-1.0 - 1e-3 * slope["x"], rel=1e-12)
    assert found["y"] == pytest.approx(1.5 - 1e-3 * slope["y"], rel=1e-12)


def test_parameters_nest_in_dictionaries_and_lists_and_keep_their_structure() -> None:
    def loss(p: Mapping[str, Any]) -> Any:
        return f.sum((p["a"]["b"] - 3.0) ** 2) + f.sum(p["c"][0] ** 2) + (p["c"][1]["d"] + 1.0) ** 2

    start = {"a": {"b": [0.0, 1.0]}, "c": [np.ones((2, 2)), {"d": 1.0}]}
    found = minimise(loss, start, optimiser=Descent(learning_rate=0.5), iterations=1, **BY_ITSELF)  # one Newton step
    assert found["a"]["b"].tolist() == [3.0, 3.0]
    assert found["c"][0].tolist() == [[0.0, 0.0], [0.0, 0.0]]
    assert found["c"][1] == {"d": -1.0}
    assert start["a"] == {"b": [0.0, 1.0]}


def test_a_missing_nested_parameter_is_reported_with_a_hint() -> None:
    with pytest.raises(SigmaAddressError, match=r"there is no parameter 'bias'. There is b"):
        minimise(lambda p: p["a"]["bias"], {"a": {"b": 1.0}}, optimiser=Descent(), iterations=1, **BY_ITSELF)


def test_the_callback_may_see_the_parameters_every_so_many_iterations() -> None:
    seen: list[tuple[int, float]] = []

    def watch(moment: Moment, loss: float, parameters: Mapping[str, Any]) -> bool:
        seen.append((moment.iteration, float(parameters["x"])))
        return moment.iteration >= 9

    minimise(
        lambda p: p["x"] ** 2 / 2,
        {"x": 1.0},
        None,
        Descent(learning_rate=0.5),
        watch,
        iterations=20,
        every=3,
        **BY_ITSELF,
    )
    assert seen == [(3, 2.0**-3), (6, 2.0**-6), (9, 2.0**-9)]
    ends: list[int] = []
    minimise(lambda p: p["x"] ** 2, {"x": 1.0}, None, Descent(), lambda m, loss: ends.append(m.iteration),
             iterations=4, every=3, **BY_ITSELF)  # fmt: skip
    assert ends == [3, 4]


def test_iterations_of_data_may_end_within_an_epoch() -> None:
    seen: list[int] = []
    minimise(
        _line, START, _points(), Descent(), lambda moment, loss: seen.append(moment.iteration), iterations=7, **HERE
    )
    assert seen == [1, 2, 3, 4, 5, 6, 7]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"optimiser": Descent()}, "without data, say how long: iterations=2000"),
        ({"optimiser": Descent(), "epochs": 3}, "without data, say how long: iterations=2000"),
        ({"iterations": 3}, r"an optimiser is missing. Pass one: optimiser=Adam\(0.01\)"),
        ({"optimiser": Descent(), "iterations": 2.5}, r"iterations must be a whole number from 0 on \(got 2.5\)"),
        ({"optimiser": Descent(), "iterations": 2, "every": 0}, r"every must be a whole number from 1 on \(got 0\)"),
        ({"data": _points(), "optimiser": Descent(), "epochs": 1, "iterations": 1}, "epochs and iterations exclude"),
    ],
)
def test_a_call_that_does_not_say_how_or_how_long_is_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(SigmaConfigError, match=f"minimise: {message}"):
        minimise(_rosenbrock, {"x": 1.0, "y": 1.0}, **arguments)


@pytest.mark.parametrize("backend", ["numpy", "numba"])
def test_the_minimum_of_rosenbrocks_function_is_found_on_both_backends(backend: str) -> None:
    quick = minimise(_rosenbrock, {"x": -1.0, "y": 1.0}, backend=backend, precision="float64", iterations=2000,
                     optimiser={"type": "adam", "learning_rate": 0.01})  # fmt: skip
    assert (quick["x"], quick["y"]) == pytest.approx((1.0, 1.0), abs=1e-4)


@pytest.mark.parametrize("backend", ["numpy", "numba"])
def test_constant_arrays_indices_and_gradients_work_in_a_compiled_loss(backend: str) -> None:
    target, weights, places = np.arange(6.0).reshape(2, 3), np.array([1.0, 2.0, 4.0]), [2, 0, 0]

    def loss(p: Mapping[str, Any]) -> Any:
        w = p["w"]
        slopes = f.gradient(lambda x: f.sum(x**3))(w[..., ::-1])
        return f.sum(weights * (w - target)[:, places] ** 2) + f.sum(slopes)

    start = np.random.default_rng(0).normal(size=(2, 3))
    found = minimise(loss, {"w": start}, optimiser={"type": "gradient_descent", "learning_rate": 0.01}, iterations=1,
                     backend=backend, precision="float64")  # fmt: skip
    counted = np.array([6.0, 0.0, 1.0])  # the weights that the columns get by their places
    slope = 2 * counted * (start - target) + 6 * start
    assert found["w"] == pytest.approx(start - 0.01 * slope, rel=1e-12)


def test_a_loss_of_another_number_of_arguments_is_refused_with_what_it_takes():
    with pytest.raises(SigmaConfigError, match="without data, the loss takes one argument, the parameters: missing"):
        minimise(lambda p, batch: f.square(p["x"]), {"x": 1.0}, optimiser="adam", iterations=1)
    with pytest.raises(SigmaConfigError, match="with data, the loss takes two arguments, the parameters and a batch"):
        minimise(lambda p: f.square(p["x"]), {"x": 1.0}, {"inputs": np.ones(3)}, "adam")
