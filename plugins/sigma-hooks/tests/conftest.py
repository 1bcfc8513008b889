"""A small network for these tests: images of 4 by 3 pixels, one layer of weights, two classes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import numpy as np
import pytest
from attrs import define

from sigma_kernel import Environment, functions as f
from sigma_kernel.contracts import Architecture, Context, CostLayer, Layer, Parameter
from sigma_kernel.graph import Node, Spec
from sigma_testing import Sweep, small_environment


@define(eq=False)
class Input(Layer):
    section: str = "inputs"
    role: ClassVar[str] = "input"

    def forward(self, context: Context, x: Node) -> Node:
        return x


@define(eq=False)
class Linear(Layer):
    units: int

    def parameters(self, x: Spec) -> Mapping[str, Parameter]:
        return {"weights": Parameter((int(np.prod(x.shape)), self.units), 0.01)}

    def forward(self, context: Context, x: Node) -> Node:
        return f.flatten(x) @ context.parameters["weights"]


@define(eq=False, kw_only=True)
class CrossEntropy(CostLayer):
    def forward(self, context: Context, output: Node, targets: Node) -> Node:
        return f.mean(f.softmax_cross_entropy(output, targets))

    def prediction(self, output: Node) -> Node:
        return f.softmax(output)


@pytest.fixture
def classifier() -> Callable[..., Environment]:
    """Return a function that makes an environment: 20 images, of class 1 if the upper half is brighter."""

    def make(shape: tuple[int, ...] = (4, 3), **settings: Any) -> Environment:
        images = np.random.default_rng(5).normal(size=(20, 4, 3)).astype(np.float32)
        labels = (images[:, :2].sum((1, 2)) > images[:, 2:].sum((1, 2))).astype(np.int32)
        environment = small_environment(Sweep(), **settings)
        trainer = environment.trainer("trainer")
        data = {"inputs": images.reshape(20, *shape), "targets": labels}
        trainer.data = {"training": data, "validation": data}
        trainer.network = Input() + Linear(2) + CrossEntropy()
        return environment

    return make


@pytest.fixture
def entrance() -> Callable[..., Layer]:
    """Return a function that makes an input layer for a section."""
    return Input


@pytest.fixture
def scores() -> Callable[[], Architecture]:
    """Return a function that makes the weights and the cost of two classes."""
    return lambda: Linear(2) + CrossEntropy()
