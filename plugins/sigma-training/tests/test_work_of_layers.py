"""What layers and optimisers take of a step: operations against closed forms, bytes against the arrays themselves."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from sigma_kernel.contracts import WorkEntry
from sigma_kernel.environment import Environment
from sigma_step.graphs import training_step
from sigma_step.work import operations

ROWS, INPUTS, HIDDEN, CLASSES = 8, 5, 7, 3
CHAIN = f'input({INPUTS}) + dense({HIDDEN}, activation="relu") + output({CLASSES}) + softmax_cross_entropy()'
SHARED = f"""
x = input({INPUTS}) + dense({INPUTS}, name="first")
x + dense({INPUTS}, share={{"weights": "first.weights"}}) + output({CLASSES}) + softmax_cross_entropy(name="left")
x + output({CLASSES}) + softmax_cross_entropy(name="right", weight=0.5)
"""


def prepared(architecture: str, **settings: Any) -> Any:
    """Return a prepared trainer of the architecture."""
    trainer = Environment("work", seed=0).create_trainer("trainer", backend="numpy")
    trainer.network = architecture
    trainer.data = {"inputs": np.zeros((ROWS, INPUTS), np.float32), "targets": np.arange(ROWS) % CLASSES}
    for name, value in {"optimiser": "gradient_descent", "batch_size": ROWS, "epochs": 1, **settings}.items():
        setattr(trainer, name, value)
    trainer.prepare()
    return trainer


def worked(trainer: Any) -> dict[str, WorkEntry]:
    return {entry.name: entry for entry in trainer.view.work()}


def test_the_products_of_a_dense_layer_are_counted_forwards_and_backwards() -> None:
    work = worked(prepared(CHAIN))
    forward, weights, inputs = 2 * ROWS * HIDDEN * CLASSES, 2 * ROWS * HIDDEN * CLASSES, 2 * ROWS * HIDDEN * CLASSES
    products = forward + weights + inputs  # and the biases, which are added, and whose gradients are sums
    assert work["2-output"].operations == products + ROWS * CLASSES + ROWS * CLASSES
    first = 2 * 2 * ROWS * INPUTS * HIDDEN  # nothing asks for the gradient of the data
    assert first < (work["1-dense"].operations or 0) <= first + 5 * ROWS * HIDDEN


def test_all_operations_of_a_step_belong_to_somebody() -> None:
    trainer = prepared(CHAIN)
    whole = operations(training_step(trainer.session.setup.model, ROWS).graph)
    assert sum(entry.operations or 0 for entry in trainer.view.work()) == pytest.approx(whole, rel=0.02)


def test_bytes_are_those_of_the_arrays() -> None:
    trainer = prepared(CHAIN, optimiser="adam")
    work, arrays = worked(trainer), trainer.session.state.arrays

    def held(head: str) -> int:
        return sum(trainer.session.host(name).nbytes for name in arrays if name.startswith(head))

    for layer in ("1-dense", "2-output"):
        assert work[layer].sizes["parameters"] == held(f"network.layers.{layer}.")
        assert work[layer].sizes["slots"] == held(f"optimiser.slots.{layer}.")
    assert work["1-dense"].sizes["kept"] == 4 * ROWS * HIDDEN  # of relu: the next product's gradient reads it
    assert work["0-input"].sizes == {"parameters": 0, "slots": 0, "kept": 0}


def test_optimisers_name_the_layers_that_they_update_and_their_costs() -> None:
    optimisers = {
        "one": {"type": "adam", "match": "first.*", "minimises": ["left"]},
        "rest": {"type": "gradient_descent", "match": "*-*.*"},
    }
    work = worked(prepared(SHARED, optimiser=None, optimisers=optimisers))
    one, rest = work["optimisers.one"], work["optimisers.rest"]
    assert (one.component, one.updates, one.minimises) == ("adam", ("first",), ("left",))
    assert (rest.component, rest.minimises) == ("gradient_descent", ("left", "right"))
    assert "first" not in rest.updates
    assert {"3-output", "5-output"} < {*rest.updates}


def test_a_layer_names_the_parameters_of_others_that_it_uses() -> None:
    trainer = prepared(SHARED)
    layers = {layer.name: layer for layer in trainer.view.network()}
    (borrower,) = (layer for layer in layers.values() if layer.shared)
    assert borrower.shared == {"weights": "trainer.network.layers.first.weights"}
    assert f"trainer.network.layers.{borrower.name}.weights" not in borrower.parameters


def test_a_step_that_is_cut_into_shards_is_traced_whole() -> None:
    plain, cut = (worked(prepared(CHAIN, operator={"type": "local", "shards": shards})) for shards in (1, 4))
    assert {name: entry.operations for name, entry in plain.items()} == {
        name: entry.operations for name, entry in cut.items()
    }
