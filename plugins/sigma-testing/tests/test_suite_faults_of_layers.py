"""The suites of layers, costs, activations, ops and initialisers fail for planted faults."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from itertools import count
from typing import Any, ClassVar

import numpy as np
import pytest
from attrs import define, field

from sigma_kernel import CostLayer, Layer, Node, Outputs, Parameter, functions as f, live
from sigma_kernel.graph import Spec, dtypes, op, shapes
from sigma_kernel.graph.node import MEANINGS, OPS, symbol
from sigma_kernel.graph.ops import Op
from sigma_testing import ActivationSuite, CostSuite, LayerSuite, OpSuite, Sample

from .faults import check_caught

GRADIENTS = "test_gradients_agree_with_finite_differences"
SCALED = "test_gradients_of_small_and_large_inputs_agree_too"
FINITE = "test_inputs_of_every_scale_have_finite_results"
KINKS = "test_gradients_at_kinks_lie_between_the_slopes_beside_them"


def sloped(name: str, slope: Callable[[Node], Node]) -> Callable[[Node], Node]:
    """Return a function that is x * |x|, with a gradient of its own."""
    made = op(f"faults:{name}", shapes.same, dtypes.floating, lambda g, z, x: g * slope(x), lambda x: x * f.abs(x))
    return lambda x: made(x)


right = sloped("right", lambda x: 2.0 * f.abs(x))
wrong = sloped("wrong", lambda x: 1.9 * f.abs(x))
large = sloped("large", lambda x: 2.0 * f.minimum(f.abs(x), 8.0))
small = sloped("small", lambda x: f.where(f.less(f.abs(x), 0.005), f.abs(x), 2.0 * f.abs(x)))
at_zero = sloped("at_zero", lambda x: f.where(f.equal(x, 0.0), 1.0, 2.0 * f.abs(x)))
alone = sloped("alone", lambda x: 2.0 * f.abs(x) * (0.0 if x.shape[0] == 1 else 1.0))


def unit(x: Node) -> Node:
    return x / f.sqrt(f.sum(f.square(x), axis=-1, keepdims=True) + 1e-12)


# -- layers ------------------------------------------------------------------------------------------------------------
@define(eq=False)
class Scale(Layer):
    """Multiply by trained factors, apply a function, and keep a running mean."""

    function: Callable[[Node], Node] = right
    strength: float = live(1.0, low=0.0)
    initialiser: Any = 1.0
    seen: Any = None

    def parameters(self, *inputs: Any, **_: Any) -> Mapping[str, Parameter]:
        return {"w": Parameter(inputs[0].shape, self.initialiser)}

    def state(self, *inputs: Any, **_: Any) -> Mapping[str, Parameter]:
        return {"mean": Parameter(inputs[0].shape)}

    def forward(self, context: Any, *inputs: Any, **_: Any) -> Any:
        y = self.function(inputs[0]) * context.parameters["w"] * context.live["strength"]
        mean = context.state["mean"]
        return Outputs(y, {"mean": 0.9 * mean + 0.1 * f.mean(inputs[0], axis=0)}) if context.training else y


class Counts(Scale):
    def forward(self, context: Any, *inputs: Any, **_: Any) -> Any:
        self.seen = (self.seen or 0) + 1
        return super().forward(context, *inputs)


class Collects(Scale):
    def __init__(self) -> None:
        super().__init__(seen={"shapes": []})

    def forward(self, context: Any, *inputs: Any, **_: Any) -> Any:
        self.seen["shapes"].append(inputs[0].shape)
        return super().forward(context, *inputs)


class KeepsNodes(Scale):
    def forward(self, context: Any, *inputs: Any, **_: Any) -> Any:
        self.last = [inputs[0]]
        return super().forward(context, *inputs)


class HidesArrays(Scale):
    def __init__(self) -> None:
        super().__init__()
        self.mask = {"even": (np.ones(4),)}


class SharesArrays(Scale):
    MASK: ClassVar[np.ndarray] = np.ones(4)


class SharesZeros(Scale):
    OFFSET: ClassVar[np.ndarray] = np.zeros(1)


class HoldsAnArray(Scale):
    def __init__(self) -> None:
        super().__init__()
        self.mask = np.ones(4)


@define(eq=False)
class IgnoresASetting(Scale):
    factor: float = live(1.0)


@define(eq=False)
class DoublesASetting(Scale):
    factor: float = field(default=1.0, converter=lambda factor: 2 * factor)


class PythonRandom(Scale):
    def forward(self, context: Any, *inputs: Any, **_: Any) -> Any:
        return super().forward(context, inputs[0] * random.random())


class RandomSettings(Scale):
    def __init__(self) -> None:
        super().__init__(seen=float(np.random.default_rng().random()))

    def forward(self, context: Any, *inputs: Any, **_: Any) -> Any:
        return super().forward(context, inputs[0] * self.seen)


class ReadsTheBatch(Scale):
    def forward(self, context: Any, *inputs: Any, **_: Any) -> Any:
        by = 1.0 / inputs[0].shape[0] if context.training else 1.0
        return super().forward(context, inputs[0] * by)


class MixesSamples(Scale):
    def forward(self, context: Any, *inputs: Any, **_: Any) -> Any:
        return super().forward(context, inputs[0] - f.mean(inputs[0], axis=0))


class LearnsInEvaluation(Scale):
    def forward(self, context: Any, *inputs: Any, **_: Any) -> Any:
        found = super().forward(context, *inputs)
        return found if context.training else Outputs(found, {"mean": f.mean(inputs[0], axis=0)})


class ForgetsAParameter(Scale):
    def forward(self, context: Any, *inputs: Any, **_: Any) -> Any:
        return self.function(inputs[0]) * context.live["strength"]


class FixedBatch(Scale):
    def parameters(self, *inputs: Any, **_: Any) -> Mapping[str, Parameter]:
        self_shape = (3, *inputs[0].shape)
        return {"w": Parameter(self_shape, 1.0)}


class Single(Scale):
    def forward(self, context: Any, *inputs: Any, **_: Any) -> Any:
        return (
            f.cast(f.cast(inputs[0], "float32"), inputs[0].dtype) * context.parameters["w"] * context.live["strength"]
        )


class Rescales(Scale):
    """Dropout of a half that rescales in training and in evaluation."""

    def forward(self, context: Any, *inputs: Any, **_: Any) -> Any:
        y = super().forward(context, *inputs)
        if not context.training:
            return y * 0.5
        kept = f.cast(f.greater(context.key.uniform(y.value.shape), 0.5), y.value.dtype)
        return Outputs(y.value * kept * 2.0, y.state)


class Drops(Rescales):
    def forward(self, context: Any, *inputs: Any, **_: Any) -> Any:
        return Rescales.forward(self, context, *inputs) * (1.0 if context.training else 2.0)


LAYERS: dict[str, tuple[Callable[[], Layer], str]] = {
    "right": (Scale, ""),
    "fast waves": (lambda: Scale(lambda x: f.sin(x * 30.0)), ""),
    "unit vectors, whose slope at zero is steep": (lambda: Scale(unit), ""),
    "a wrong gradient": (lambda: Scale(wrong), GRADIENTS),
    "a gradient wrong for large inputs": (lambda: Scale(large), SCALED),
    "a gradient wrong near zero": (lambda: Scale(small), SCALED),
    "a gradient wrong at zero": (lambda: Scale(at_zero), KINKS),
    "a gradient wrong for a batch of one": (lambda: Scale(alone), GRADIENTS),
    "a gradient that is stopped": (lambda: Scale(lambda x: right(f.stop(x))), GRADIENTS),
    "a counter of its runs": (Counts, "test_its_settings_stay_as_they_are"),
    "a list of what it saw": (Collects, "test_its_settings_stay_as_they_are"),
    "nodes of a trace": (KeepsNodes, "test_it_holds_no_arrays"),
    "hidden arrays": (HidesArrays, "test_it_holds_no_arrays"),
    "arrays of its class": (SharesArrays, "test_it_holds_no_arrays"),
    "an array as a setting": (lambda: Scale(seen=[np.ones(2)]), "test_it_holds_no_arrays"),
    "a zero of its class": (SharesZeros, "test_it_holds_no_arrays"),
    "an array on itself": (HoldsAnArray, "test_it_holds_no_arrays"),
    "a live setting that is not used": (
        IgnoresASetting, "test_declared_parameters_do_not_depend_on_the_batch_and_are_used"),
    "NaN": (lambda: Scale(lambda x: x * float("nan")), FINITE),
    "a logarithm": (lambda: Scale(f.log), FINITE),
    "a root": (lambda: Scale(f.sqrt), FINITE),
    "a softplus that overflows": (lambda: Scale(lambda x: f.log(f.exp(x) + 1.0)), FINITE),
    "a sigmoid that overflows": (lambda: Scale(lambda x: f.exp(x) / (f.exp(x) + 1.0)), FINITE),
    "Python's random numbers": (PythonRandom, "test_the_same_key_gives_the_same_bits"),
    "random settings": (RandomSettings, "test_the_same_key_gives_the_same_bits"),
    "an unknown initialiser": (lambda: Scale(initialiser="he_norml"), "test_what_it_declares_can_be_initialised"),
    "an initialiser that is none": (lambda: Scale(initialiser=None), "test_what_it_declares_can_be_initialised"),
    "the batch as a constant": (ReadsTheBatch, "test_a_batch_repeated_twice_gives_every_output_twice"),
    "a mean over the batch": (MixesSamples, "test_a_sample_does_not_depend_on_the_others_in_its_batch"),
    "state that changes in evaluation": (LearnsInEvaluation, "test_evaluation_changes_no_state"),
    "a parameter that is not used": (
        ForgetsAParameter, "test_declared_parameters_do_not_depend_on_the_batch_and_are_used"),
    "a parameter for each sample": (FixedBatch, "test_it_runs_in_training_and_evaluation_and_for_a_batch_of_one"),
    "one precision": (Single, GRADIENTS),
    "a setting that is doubled each time": (DoublesASetting, "test_its_text_form_round_trips"),
    "dropout that rescales in evaluation": (Rescales, "test_random_numbers_keep_the_mean_of_evaluation"),
}  # fmt: skip


@pytest.mark.parametrize("name", LAYERS)
def test_a_fault_in_a_layer_is_caught(name: str) -> None:
    class Suite(LayerSuite):
        def make(self) -> Layer:
            return LAYERS[name][0]()

    check_caught(Suite(), LAYERS[name][1])


# -- costs -------------------------------------------------------------------------------------------------------------
@define(eq=False, kw_only=True)
class Square(CostLayer):
    loss: Callable[[Node, Node], Node] = field(default=lambda y, t: f.mean(f.square(y - t)))
    predicts: Callable[[Node], Node] = field(default=lambda output: output)

    def forward(self, context: Any, *inputs: Any, **_: Any) -> Node:
        return self.loss(*inputs)

    def prediction(self, output: Node) -> Node:
        return self.predicts(output)


@define(eq=False, kw_only=True)
class Weighted(Square):
    """A cost with a parameter, by which it predicts what it compares."""

    by: Callable[[Any, Node], Node] = field(default=lambda context, output: output * context.parameters["scale"])

    def parameters(self, *inputs: Any, **_: Any) -> Mapping[str, Parameter]:
        return {"scale": Parameter(inputs[0].shape, initialiser=1.0)}

    def forward(self, context: Any, *inputs: Any, **_: Any) -> Node:
        return f.mean(f.square(inputs[0] * context.parameters["scale"] - inputs[1]))

    def predict(self, context: Any, output: Node) -> Node:
        return self.by(context, output)


class Refuses(Square):
    def check(self, targets: np.ndarray, output: Spec) -> None:
        raise ValueError("no targets are right")


def _naive(output: Node, targets: Node) -> Node:
    return -f.mean(f.log(f.exp(output) / (1.0 + f.exp(output))) * f.square(targets)) + 0.0


COSTS: dict[str, tuple[Callable[[], CostLayer], str]] = {
    "right": (Square, ""),
    "a sum": (lambda: Square(loss=lambda y, t: f.sum(f.square(y - t))), "test_it_is_a_mean_over_the_batch"),
    "a root of the mean": (
        lambda: Square(loss=lambda y, t: f.sqrt(f.mean(f.square(y - t)))),
        "test_the_mean_does_not_depend_on_the_batches"),
    "weights by place": (
        lambda: Square(loss=lambda y, t: f.mean(f.square(y - t)) + f.mean(f.split(y, y.shape[0], axis=0)[0])),
        "test_the_order_of_rows_does_not_matter"),
    "a gradient wrong for large errors": (lambda: Square(loss=lambda y, t: f.mean(large(y - t))), SCALED),
    "a gradient wrong near zero": (lambda: Square(loss=lambda y, t: f.mean(small(y) + f.square(t))), SCALED),
    "a gradient wrong at zero": (lambda: Square(loss=lambda y, t: f.mean(at_zero(y) + f.square(t))), KINKS),
    "an exponential that overflows": (lambda: Square(loss=_naive), "test_inputs_of_every_scale_have_finite_results"),
    "a mean as the prediction": (
        lambda: Square(predicts=lambda y: f.mean(y)), "test_its_prediction_has_a_row_for_each_sample"),
    "right with a parameter": (Weighted, ""),
    "a prediction from targets": (
        lambda: Weighted(by=lambda context, output: output + symbol(output.shape, output.dtype, "targets")),
        "test_its_prediction_reads_its_output_and_its_own_values_alone"),
    "a prediction by a mean of rows": (
        lambda: Weighted(by=lambda context, output: output - f.mean(output, axis=0, keepdims=True)),
        "test_its_prediction_has_a_row_for_each_sample"),
    "no targets are right": (Refuses, "test_it_accepts_the_targets_that_it_computes_with"),
    "a cost for each row": (
        lambda: Square(loss=lambda y, t: f.mean(f.square(y - t), axis=1)),
        "test_it_runs_in_training_and_evaluation_and_for_a_batch_of_one"),
}  # fmt: skip


@pytest.mark.parametrize("name", COSTS)
def test_a_fault_in_a_cost_is_caught(name: str) -> None:
    class Suite(CostSuite):
        inputs = (Spec((3,)), Spec((3,)))

        def make(self) -> CostLayer:
            return COSTS[name][0]()

    check_caught(Suite(), COSTS[name][1])


# -- activations -------------------------------------------------------------------------------------------------------
CALLS = count()  # differs at each call
ACTIVATIONS: dict[str, tuple[Callable[[Node], Node], str]] = {
    "right": (right, ""),
    "other values": (lambda x: right(x) * 1.001, "test_it_is_what_others_compute"),
    "values wrong for large inputs": (lambda x: right(f.minimum(x, 100.0)), "test_it_is_what_others_compute"),
    "a wrong gradient": (wrong, "test_its_gradient_agrees_with_finite_differences"),
    "a gradient wrong for large inputs": (large, "test_its_gradient_agrees_with_finite_differences"),
    "a gradient wrong near zero": (small, "test_its_gradient_agrees_with_finite_differences"),
    "a gradient wrong for a single row": (alone, "test_its_gradient_agrees_with_finite_differences"),
    "a gradient wrong at zero": (at_zero, "test_the_gradient_at_a_kink_lies_between_the_slopes_beside_it"),
    "a gradient that is NaN": (
        lambda x: right(x) + 0.0 * f.log(f.exp(-f.abs(x))), "test_values_and_gradients_of_large_numbers_are_numbers"),
    "a sum over rows": (lambda x: right(x) + f.sum(x, axis=0) * 0.0 + f.mean(x) - f.mean(x) * 0.5,
        "test_a_row_does_not_depend_on_the_others"),
    "a row too many": (lambda x: f.concat(right(x), x, axis=0), "test_shape_and_precision_stay_as_they_are"),
    "one precision": (lambda x: f.cast(right(x), "float32"), "test_shape_and_precision_stay_as_they_are"),
    "a number that changes": (
        lambda x: right(x) * (1.0 + 1e-14 * next(CALLS)), "test_two_calls_give_the_same_graph"),
}  # fmt: skip


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_a_fault_in_an_activation_is_caught(name: str) -> None:
    class Suite(ActivationSuite):
        def make(self) -> Callable[[Node], Node]:
            return ACTIVATIONS[name][0]

        def expected(self, x: np.ndarray) -> np.ndarray:
            return np.asarray(x * np.abs(x))

    check_caught(Suite(), ACTIVATIONS[name][1])


# -- ops ---------------------------------------------------------------------------------------------------------------
def product(name: str, **other: Any) -> Op:
    """Return an op for x * x * y, with one of its rules replaced."""
    rules: dict[str, Any] = {
        "shape": shapes.binary, "dtype": dtypes.floating,
        "gradient": lambda g, z, x, y: (g * 2.0 * x * y, g * f.square(x)),
        "expansion": lambda x, y: f.square(x) * y, "meaning": lambda ns, x, y: x * x * y,
    }  # fmt: skip
    return op(f"faults:{name}", **{**rules, **other})


def _overwrites(ns: Any, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    found = x * x * y
    y *= 1.5
    return found


OF_OPS: dict[str, tuple[dict[str, Any], str]] = {
    "product": ({}, ""),
    "plain product": ({"expansion": None}, ""),
    "short": ({"shape": lambda x, y: x[:-1]}, "test_results_have_the_shape_and_dtype_that_its_rules_say"),
    "single": ({"dtype": lambda *_: "float32"}, "test_results_have_the_shape_and_dtype_that_its_rules_say"),
    "double": ({"expansion": None, "meaning": lambda ns, x, y: (x * x * y).astype("float64")},
        "test_results_have_the_shape_and_dtype_that_its_rules_say"),
    "cube": ({"expansion": lambda x, y: f.square(x) * x * y, "meaning": lambda ns, x, y: x * x * x * y},
        "test_results_are_what_others_compute"),
    "two ways": ({"meaning": lambda ns, x, y: x * x * y + 1e-3}, "test_meaning_and_expansion_agree"),
    "half": ({"gradient": lambda g, z, x, y: (g * x * y, g * f.square(x))},
        "test_its_gradient_agrees_with_finite_differences"),
    "beyond a hundred": ({"gradient": lambda g, z, x, y: (g * 2.0 * f.clip(x, -100.0, 100.0) * y, g * f.square(x))},
        "test_its_gradient_agrees_with_finite_differences"),
    "second": ({"gradient": lambda g, z, x, y: (g * 2.0 * f.stop(x) * y, g * f.square(x))},
        "test_the_gradient_of_its_gradient_agrees_with_finite_differences"),
    "flat": ({"gradient": None, "expansion": None}, "test_its_gradient_agrees_with_finite_differences"),
    "overwrites": ({"expansion": None, "meaning": _overwrites}, "test_operands_are_unchanged"),
    "nothing": ({"expansion": None, "meaning": None},
        "test_it_is_in_the_table_under_the_name_of_its_distribution"),
    "single precision": (
        {"expansion": None, "meaning": lambda ns, x, y: x * x * y if x.dtype == "float64" else x * x * (y + y / 300)},
        "test_both_precisions_compute_the_same"),
    "folded": ({"expansion": lambda x, y: f.square(x) * y + f.max(x) * 1e-3, "meaning": None},
        "test_entries_are_computed_apart_if_its_shape_rule_says_so"),
    "folded by NaN": ({"expansion": lambda x, y: f.square(x) * y + 0.0 * f.sum(x), "meaning": None},
        "test_entries_are_computed_apart_if_its_shape_rule_says_so"),
    "anything": ({"shape": lambda *x, **_: x[0], "dtype": lambda *_, **__: "float64"},
        "test_operands_that_it_cannot_take_are_refused_with_its_name"),
}  # fmt: skip


@pytest.mark.parametrize("name", OF_OPS)
def test_a_fault_in_an_op_is_caught(name: str, request: pytest.FixtureRequest) -> None:
    made = product(name.replace(" ", "_"), **OF_OPS[name][0])
    request.addfinalizer(lambda: (OPS.pop(made.name), MEANINGS.pop(made.name, None)))

    class Suite(OpSuite):
        def make(self) -> Op:
            return made

        def samples(self) -> list[Sample]:
            return [Sample(made.name, (np.linspace(-2.0, 3.1, 15).reshape(3, 5), np.linspace(0.5, 2.0, 5)))]

        def expected(self, *operands: np.ndarray, **attrs: object) -> np.ndarray:
            return np.asarray(operands[0] ** 2 * operands[1])

    check_caught(Suite(), OF_OPS[name][1])
