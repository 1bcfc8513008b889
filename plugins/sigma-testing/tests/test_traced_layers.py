"""Layers that are traced alone have the numbers of their inputs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from attrs import define

from sigma_kernel import functions as f
from sigma_kernel.contracts import Context, CostLayer, Layer, Parameter
from sigma_kernel.errors import SigmaGraphError
from sigma_kernel.graph.node import Node, Spec
from sigma_testing import trace_layer
from sigma_testing.layers import trace_prediction


@define(eq=False)
class Scaled(Layer):
    """A product with its parameter."""

    def parameters(self, *inputs: Spec, **_: Any) -> dict[str, Parameter]:
        return {"factor": Parameter(inputs[0].shape, 0.5)}

    def forward(self, context: Context, *inputs: Node, **_: Any) -> Node:
        return inputs[0] * context.parameters["factor"]


@define(eq=False, kw_only=True)
class ScaledCost(CostLayer):
    """A cost with a parameter that its prediction uses."""

    def parameters(self, *inputs: Spec, **_: Any) -> dict[str, Parameter]:
        return {"factor": Parameter(inputs[0].shape, 0.5)}

    def forward(self, context: Context, *inputs: Node, **_: Any) -> Node:
        return f.mean(f.square(inputs[0] * context.parameters["factor"] - inputs[1]))

    def predict(self, context: Context, output: Node) -> Node:
        return output * context.parameters["factor"]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_layer_has_the_precision_of_the_specs_of_its_inputs(dtype: str) -> None:
    traced = trace_layer(Scaled(), [Spec((2, 3), dtype)], training=True)
    values = traced.values([np.ones((2, 3), dtype)])
    assert [value.dtype.name for value in values] == [dtype] * 2
    result = traced.run(values)[0]
    assert result.dtype == dtype
    np.testing.assert_array_equal(result, np.broadcast_to(values[1], (2, 3)))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_prediction_has_the_precision_of_the_output(dtype: str) -> None:
    specs = [Spec((2, 3), dtype), Spec((2, 3), dtype)]
    assert trace_prediction(ScaledCost(), specs).output.dtype == dtype


def test_a_layer_of_integers_has_float64_unless_another_precision_is_given() -> None:
    @define(eq=False)
    class Table(Scaled):
        def parameters(self, *inputs: Spec, **_: Any) -> dict[str, Parameter]:
            return {"factor": Parameter((3, 2), 0.5)}

        def forward(self, context: Context, *inputs: Node, **_: Any) -> Node:
            return f.take(context.parameters["factor"], inputs[0], axis=0)

    assert trace_layer(Table(), [Spec((4,), "int32")], training=True).output.dtype == "float64"
    assert trace_layer(Table(), [Spec((4,), "int32")], training=True, precision="float32").output.dtype == "float32"


@pytest.mark.parametrize(
    ("dtypes", "precision", "got"),
    [
        (["float32"], "float64", "the floats of its inputs are float32, and its numbers float64."),
        (
            ["float32", "int32", "float64"],
            None,
            "the floats of its inputs are float32 and float64, and its numbers float32.",
        ),
    ],
)
def test_floats_of_another_dtype_are_refused(dtypes: list[str], precision: str | None, got: str) -> None:
    with pytest.raises(SigmaGraphError) as error:
        trace_layer(Scaled(), [Spec((2, 3), dtype) for dtype in dtypes], training=True, precision=precision)
    assert str(error.value) == f"trace_layer: {got} Pass specs of one dtype, and no other precision."
