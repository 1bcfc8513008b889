"""The description of a network for peers, and the networks that they do not support."""

from __future__ import annotations

import pickle
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from sigma_bench.contestants.sigma import Sigma
from sigma_bench.translation import to_workload
from sigma_bench.work import Workload
from sigma_kernel import Dataset, Environment, SigmaConfigError
from sigma_kernel.graph import Spec
from sigma_layers import Dense, Input, Output, SoftmaxCrossEntropy
from sigma_optimisers import Adagrad, GradientDescent
from sigma_run.config import load

HEAD, TAIL = "network.architecture=input(3, 3) + ", " + output(3) + softmax_cross_entropy()"
IMAGES = ["data.shape=[2, 6, 5]"]
REFUSED = {
    "RMSProp": ["trainer.optimiser=rmsprop"],
    "schedules": ["trainer.optimiser.schedules.learning_rate=constant"],
    "settings": ["trainer.optimiser.settings.none={ match = '**', frozen = false }"],
    "transforms": ["trainer.optimiser.transforms.clip=clip_value"],
    "the layer Reshape": [f"{HEAD}reshape(9){TAIL}"],
    "2-global_average_pool: they do not support sides that are kept": [
        *IMAGES,
        f"network.architecture=input(2, 6, 5) + conv2d(4) + global_average_pool(keepdims=true) + flatten(){TAIL}",
    ],
    "1-batch_norm: they do not support features along another axis": [
        f"{HEAD}batch_norm(axis=2) + flatten(){TAIL}",
    ],
    "1-residual.body.0-reshape: they do not support the layer Reshape": [
        f"{HEAD}residual(reshape(9) + reshape(3, 3)) + flatten(){TAIL}",
    ],
    "1-max_pool: they do not support dilation": [
        *IMAGES,
        f"network.architecture=input(2, 6, 5) + max_pool(2, dilation=2) + flatten(){TAIL}",
    ],
    "padding that does not count": [
        *IMAGES,
        f"network.architecture=input(2, 6, 5) + average_pool(2, padding=1, count_padding=false) + flatten(){TAIL}",
    ],
    "1-average_pool: they do not support padding": [
        *IMAGES,
        f"network.architecture=input(2, 6, 5) + average_pool(3, stride=2, ceil_mode=true) + flatten(){TAIL}",
    ],
    "directions, lengths": ["network.architecture=input(3, 3) + lstm(4, direction='reverse')" + TAIL],
    "cells with other activations": ["network.architecture=input(3, 3) + simple_rnn(4, activation='relu')" + TAIL],
    "reset_after = false": ["network.architecture=input(3, 3) + gru(4, reset_after=false)" + TAIL],
    "weights of classes": [f"{HEAD}flatten() + output(3) + softmax_cross_entropy(class_weights=[1, 2, 3])"],
    "weights of classes or costs": [f"{HEAD}flatten() + output(3) + softmax_cross_entropy(weight=0.5)"],
    "one label for each sample": ["data.preprocessors.hot={ type = 'one_hot', section = 'targets', classes = 3 }"],
    "the cost SquaredDifference": [
        "data.preprocessors.hot={ type = 'one_hot', section = 'targets', classes = 3 }",
        f"{HEAD}flatten() + output(3) + squared_difference()",
    ],
    "networks without parameters": ["data.shape=[3]", "network.architecture=input(3) + softmax_cross_entropy()"],
    "shared parameters": [
        "data.shape=[3]",
        "network.architecture=input(3) + dense(3) + dense(3, share={'weights': '1-dense.weights'})" + TAIL,
    ],
}


def work(path: Path, *overrides: str) -> Workload:
    return to_workload(Sigma(load(path, overrides)).trainer)


@pytest.mark.parametrize(("what", "overrides"), REFUSED.items(), ids=REFUSED)
def test_networks_that_no_peer_supports_are_refused_with_a_reason(small: Path, what: str, overrides: list[str]) -> None:
    with pytest.raises(SigmaConfigError, match="peers: .*they do not support .*Leave --peers out") as refused:
        work(small, *overrides)
    assert what.lower() in str(refused.value).lower()


def test_every_layer_is_translated_to_parts_in_order(small: Path) -> None:
    found = work(
        small, *IMAGES,
        "network.architecture=input(2, 6, 5) + conv2d(4, 3, padding='same', activation='tanh') + max_pool(2)"
        " + average_pool(2, stride=1) + activation('relu') + flatten() + dropout(0.25) + output(3)"
        " + softmax_cross_entropy()",
    )  # fmt: skip
    assert [(part.kind, part.shape) for part in found.parts] == [
        ("convolution", (2, 6, 5)), ("activation", (4, 6, 5)), ("max_pool", (4, 6, 5)), ("average_pool", (4, 3, 2)),
        ("activation", (4, 2, 1)), ("flatten", (4, 2, 1)), ("dropout", (8,)), ("affine", (8,)),
    ]  # fmt: skip
    assert found.parts[0].settings["padding"] == ((1, 1), (1, 1))
    assert {name: x.shape for name, x in found.parameters.items()} == {
        "1-conv2d.weights": (4, 2, 3, 3), "1-conv2d.biases": (4,), "7-output.weights": (8, 3), "7-output.biases": (3,),
    }  # fmt: skip
    assert found.drops
    assert not found.without_dropout().drops
    assert len(found.without_dropout().parts) == 7


def test_parts_of_a_residual_connection_have_the_shapes_and_addresses_of_its_layers(small: Path) -> None:
    found = work(
        small, *IMAGES,
        "network.architecture=input(2, 6, 5) + residual(conv2d(4, 3, stride=2, padding=1) + dropout(0.5)"
        " + residual(conv2d(4, 1, activation='relu')), projection=conv2d(4, 1, stride=2)) + global_average_pool()"
        " + output(3) + softmax_cross_entropy()",
    )  # fmt: skip
    outer = found.parts[0]
    assert [(part.kind, part.layer, part.shape) for part in outer.inner["body"]] == [
        ("convolution", "1-residual.body.0-conv2d", (2, 6, 5)), ("dropout", "1-residual.body.1-dropout", (4, 3, 3)),
        ("residual", "1-residual.body.2-residual", (4, 3, 3)),
    ]  # fmt: skip
    assert [part.layer for part in outer.inner["projection"]] == ["1-residual.projection"]
    assert found.parts[1].shape == (4, 3, 3)
    inner = outer.inner["body"][2].inner["body"]
    assert [part.layer for part in inner] == ["1-residual.body.2-residual.body"] * 2
    assert {f"{part.layer}.weights" for part in (outer.inner["body"][0], inner[0])} < set(found.parameters)
    assert found.drops
    assert [part.kind for part in found.without_dropout().parts[0].inner["body"]] == ["convolution", "residual"]


def test_peers_see_sigmas_row_orders_which_then_repeat(small: Path) -> None:
    found = work(small)
    assert found.per_epoch == 5
    epochs = found.epochs()
    assert len(epochs) * 5 >= 64
    assert [len(rows) for rows in epochs[0]] == [10, 10, 10, 10, 2]
    assert all(sorted(np.concatenate(epoch)) == list(range(42)) for epoch in epochs)
    assert not np.array_equal(epochs[0][0], epochs[1][0])
    batches = found.batches()
    seen = [next(batches) for _ in range(5 * len(epochs) + 1)]
    np.testing.assert_array_equal(seen[-1], seen[0])


def test_peers_drop_smaller_batches_if_sigma_does(small: Path) -> None:
    found = work(small, "data.last_batch=drop")
    assert [len(rows) for rows in found.epochs()[0]] == [10, 10, 10, 10]


def test_a_task_unpickles_without_the_rest_of_sigma(small: Path, tmp_path: Path) -> None:
    path = tmp_path / "work"
    path.write_bytes(pickle.dumps(work(small)))
    code = (
        f"import pickle, sys; pickle.load(open({str(path)!r}, 'rb'));"
        "assert not {'sigma_kernel.network', 'sigma_training', 'sigma_layers'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-W", "ignore", "-c", code], check=True)


class Halves(Dataset):
    """Six rows in two blocks."""

    blocks = 2

    @property
    def sections(self) -> dict[str, Spec]:
        return {"inputs": Spec((2,), "float32"), "targets": Spec((), "int32")}

    def rows(self, block: int) -> int:
        return 3

    def block(self, block: int) -> dict[str, np.ndarray]:
        return {"inputs": np.ones((3, 2), np.float32), "targets": np.arange(3, dtype=np.int32)}


class One(Halves):
    """Three rows in one block."""

    blocks = 1


@pytest.fixture
def environment() -> Iterator[Environment]:
    with Environment("two") as environment:
        yield environment


def test_data_in_several_blocks_is_refused(environment: Environment) -> None:
    trainer = environment.create_trainer(data=Halves(), optimiser=Adagrad(), batch_size=3)
    trainer.network = Input(2) + Output(3) + SoftmaxCrossEntropy()
    with pytest.raises(SigmaConfigError, match="2 blocks"):
        to_workload(trainer)


def test_branches_are_refused(environment: Environment) -> None:
    trainer = environment.create_trainer(data=One(), optimiser=GradientDescent(), batch_size=3)
    start = Input(2)
    trainer.network = [start + Output(3) + SoftmaxCrossEntropy(), start + Dense(3) + SoftmaxCrossEntropy()]
    with pytest.raises(SigmaConfigError, match="branches"):
        to_workload(trainer)


def test_several_optimisers_are_refused(environment: Environment) -> None:
    trainer = environment.create_trainer(data=One(), batch_size=3)
    trainer.network = Input(2) + Output(3) + SoftmaxCrossEntropy()
    trainer.optimisers = {"one": {"type": "adam", "match": "**.weights"}, "two": {"type": "adam", "match": "**.biases"}}
    with pytest.raises(SigmaConfigError, match="peers: optimisers: they do not support several optimisers"):
        to_workload(trainer)


def test_a_custom_activation_is_refused_by_peers(environment: Environment) -> None:
    trainer = environment.create_trainer(data=One(), optimiser=GradientDescent(), batch_size=3)
    trainer.network = Input(2) + Output(3, activation=lambda x: x * 2.0) + SoftmaxCrossEntropy()
    with pytest.raises(SigmaConfigError, match="1-output: they do not support the activation"):
        to_workload(trainer)
