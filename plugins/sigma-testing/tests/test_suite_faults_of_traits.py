"""Components from the literature pass the suites once they declare what they are; those that do so wrongly fail."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest
from attrs import define, frozen

from sigma_kernel import CostLayer, Layer, Node, Outputs, Parameter, Preprocessor, functions as f, live
from sigma_kernel.graph import Spec
from sigma_testing import CostSuite, LayerSuite, PreprocessorSuite

from .faults import check_caught
from .test_suite_faults_of_layers import GRADIENTS

DECLARED = "test_it_is_what_it_declares"
MEAN = "test_random_numbers_keep_the_mean_of_evaluation"
REPEATED = "test_a_batch_repeated_twice_gives_every_output_twice"
SHARD = "test_a_shard_draws_what_the_whole_batch_does"


@define(eq=False)
class Noise(Layer):
    """Add normal noise during training, as docs/random.md does."""

    deviation: float = live(0.1, low=0.0)

    def forward(self, context: Any, *inputs: Any, **_: Any) -> Node:
        x = inputs[0]
        if not context.training or context.key is None:
            return x
        return x + context.key.normal(x.shape, deviation=context.live["deviation"], dtype=x.dtype)


class Wider(Noise):
    """Noise that is wider in float32."""

    def forward(self, context: Any, *inputs: Any, **_: Any) -> Node:
        y = super().forward(context, *inputs)
        return inputs[0] + (y - inputs[0]) * (1.5 if y.dtype == "float32" else 1.0)


class PerBatch(Noise):
    """One random number for each feature of the whole batch."""

    def forward(self, context: Any, *inputs: Any, **_: Any) -> Node:
        x = inputs[0]
        return x + context.key.normal((1, *x.shape[1:]), dtype=x.dtype) if context.training else x


@define(eq=False)
class Quantise(Layer):
    """Round with a straight-through gradient; Bengio et al., 2013."""

    surrogate = True

    def forward(self, context: Any, *inputs: Any, **_: Any) -> Node:
        x = inputs[0]
        return x + f.stop(f.floor(x * 4.0 + 0.5) / 4.0 - x)


class Undeclared(Quantise):
    surrogate = False


class Infinite(Quantise):
    """A surrogate whose gradient is infinite at 0."""

    def forward(self, context: Any, *inputs: Any, **_: Any) -> Node:
        return super().forward(context, inputs[0]) + f.sqrt(f.relu(inputs[0]) * 0.0)


@define(eq=False)
class Reverse(Layer):
    """Gradient reversal; Ganin and Lempitsky, 2015."""

    surrogate = True

    def forward(self, context: Any, *inputs: Any, **_: Any) -> Node:
        return f.stop(2.0 * inputs[0]) - inputs[0]


@define(eq=False)
class Mix(Layer):
    """Mix each row with the next one; Zhang et al., mixup, 2018."""

    couples_rows = True
    augments = True

    def forward(self, context: Any, *inputs: Any, **_: Any) -> Node:
        x = inputs[0]
        if not context.training or context.key is None:
            return x
        share = context.key.uniform((x.shape[0], 1), 0.0, 1.0, dtype=x.dtype)
        return share * x + (1.0 - share) * f.concat(x[1:], x[:1], axis=0)


@define(eq=False)
class Gumbel(Layer):
    """Gumbel-softmax; Jang et al., 2017."""

    augments = True

    def forward(self, context: Any, *inputs: Any, **_: Any) -> Node:
        x = inputs[0]
        if not context.training or context.key is None:
            return f.softmax(x, axis=-1)
        u = context.key.uniform(x.shape, 1e-6, 1.0 - 1e-6, dtype=x.dtype)
        return f.softmax(x - f.log(-f.log(u)), axis=-1)


class Keeping(Gumbel):
    augments = False


@define(eq=False)
class Centred(Layer):
    """Subtract, in training, half of the next row."""

    couples_rows = True

    def forward(self, context: Any, *inputs: Any, **_: Any) -> Outputs | Node:
        x = inputs[0]
        last = f.mean(f.concat(x[1:], x[:1], axis=0), axis=0) * 0.1
        return Outputs(x - last, {"mean": last}) if context.training else x - context.state["mean"]

    def state(self, *inputs: Any, **_: Any) -> Mapping[str, Parameter]:
        return {"mean": Parameter(inputs[0].shape)}


@define(eq=False)
class Double(Layer):
    def forward(self, context: Any, *inputs: Any, **_: Any) -> Node:
        return inputs[0] * 2.0


def declaring(**traits: bool) -> Callable[[], Layer]:
    return lambda: type("Declaring", (Double,), traits)()  # type: ignore[no-any-return]


@define(eq=False)
class Fixed(Layer):
    """Multiply by 2 in training alone."""

    def forward(self, context: Any, *inputs: Any, **_: Any) -> Node:
        return inputs[0] * 2.0 if context.training else inputs[0]


@define(eq=False)
class Spaced(Layer):
    """A parameter whose name no pattern can have."""

    def parameters(self, *inputs: Any, **_: Any) -> Mapping[str, Parameter]:
        return {"my weights": Parameter(inputs[0].shape, 1.0)}

    def forward(self, context: Any, *inputs: Any, **_: Any) -> Node:
        return inputs[0] * context.parameters["my weights"]


@define(eq=False)
class OfTheBatch(Layer):
    """Another output without a row for each sample."""

    def forward(self, context: Any, *inputs: Any, **_: Any) -> Outputs:
        return Outputs(inputs[0], others={"m": f.mean(inputs[0])})


LAYERS: dict[str, tuple[Callable[[], Layer], str]] = {
    "noise": (Noise, ""),
    "straight-through": (Quantise, ""),
    "gradient reversal": (Reverse, ""),
    "mixup": (Mix, ""),
    "Gumbel-softmax": (Gumbel, ""),
    "rounding that does not say so": (Undeclared, GRADIENTS),
    "a surrogate that is infinite": (Infinite, GRADIENTS),
    "another mean in training": (Keeping, MEAN),
    "wider noise in float32": (Wider, "test_it_computes_in_the_requested_precision"),
    "noise of the batch": (PerBatch, SHARD),
    "a surrogate that is none": (declaring(surrogate=True), DECLARED),
    "rows that are not coupled": (declaring(couples_rows=True), DECLARED),
    "an augmentation that draws nothing": (declaring(augments=True), DECLARED),
    "another factor in training": (
        Fixed, "test_evaluation_computes_what_training_does_unless_it_draws_or_has_state"),
    "a name with a blank": (Spaced, "test_the_names_of_what_it_declares_are_levels_of_addresses"),
    "another output without rows": (OfTheBatch, "test_it_can_be_made_and_used"),
}  # fmt: skip


@pytest.mark.parametrize("name", LAYERS)
def test_a_layer_is_held_to_what_it_declares(name: str) -> None:
    class Suite(LayerSuite):
        def make(self) -> Layer:
            return LAYERS[name][0]()

    check_caught(Suite(), LAYERS[name][1])


# -- sequences in pieces -----------------------------------------------------------------------------------------------
@define(eq=False)
class Total(Layer):
    """Add the entries of a sequence up to each."""

    factor: float = 1.0

    def forward(self, context: Any, *inputs: Any, **_: Any) -> Outputs:
        x = inputs[0]
        shape = (x.shape[0], 1, x.shape[2])
        before = f.zeros(shape, x.dtype) if context.continuation is None else context.recall("total", shape)
        step = lambda total, now: ([total + now], [total + now])  # noqa: E731
        (total,), (sums,) = f.scan(step, [before[:, 0] * self.factor], [f.swap_axes(x, 0, 1)])
        return Outputs(f.swap_axes(sums, 0, 1), memory={"total": f.expand(total, 1)})


@pytest.mark.parametrize("factor", [1.0, 0.5])
def test_a_layer_that_recalls_something_else_is_caught(factor: float) -> None:
    class Suite(LayerSuite):
        inputs = (Spec((6, 4)),)

        def make(self) -> Layer:
            return Total(factor)

    check_caught(Suite(), "" if factor == 1.0 else "test_a_sequence_in_pieces_is_the_whole_sequence")


# -- costs -------------------------------------------------------------------------------------------------------------
@define(eq=False, kw_only=True)
class InBatch(CostLayer):
    """In-batch negatives; van den Oord et al., 2018."""

    couples_rows = True

    def forward(self, context: Any, *inputs: Any, **_: Any) -> Node:
        scores = f.matmul(inputs[0], f.swap_axes(inputs[1], 0, 1))
        return f.mean(f.softmax_cross_entropy(scores, f.iota((scores.shape[0],))))


class Alone(InBatch):
    couples_rows = False


@define(eq=False, kw_only=True)
class Squares(CostLayer):
    def forward(self, context: Any, *inputs: Any, **_: Any) -> Node:
        return f.mean(f.square(inputs[0] - inputs[1]))


class Coupled(Squares):
    couples_rows = True


class Columns(Squares):
    def prediction(self, output: Node) -> Node:
        return f.softmax(output, axis=0)


class Zeroes(Squares):
    def check(self, targets: np.ndarray, output: Spec) -> None:
        targets[...] = 0


class Logits(Squares):
    chooses = True


COSTS: dict[str, tuple[type[CostLayer], str]] = {
    "in-batch negatives": (InBatch, ""),
    "in-batch negatives that do not say so": (Alone, "test_the_mean_does_not_depend_on_the_batches"),
    "rows that are not coupled": (Coupled, DECLARED),
    "a prediction from other rows": (Columns, "test_its_prediction_has_a_row_for_each_sample"),
    "targets that are overwritten": (Zeroes, "test_it_accepts_the_targets_that_it_computes_with"),
    "logits as probabilities": (Logits, "test_its_predictions_are_probabilities_if_it_chooses_or_decides"),
}


@pytest.mark.parametrize("name", COSTS)
def test_a_cost_is_held_to_what_it_declares(name: str) -> None:
    class Suite(CostSuite):
        inputs = (Spec((4,)), Spec((4,)))

        def make(self) -> CostLayer:
            return COSTS[name][0]()

    check_caught(Suite(), COSTS[name][1])


# -- preprocessors -----------------------------------------------------------------------------------------------------
@frozen
class Axes(Preprocessor):
    """Project on fitted axes, as PCA does: a graph adds the products in another order."""

    section: str = "inputs"
    factor: float = 1.0
    approximate_graph = True

    def fit(self, blocks: Any) -> dict[str, np.ndarray]:
        size = max(float(np.abs(block).max()) for block in blocks)
        return {"axes": np.random.default_rng(0).normal(size=(60, 3)).astype(np.float32) / size}

    def apply(self, values: np.ndarray, state: Mapping[str, np.ndarray]) -> np.ndarray:
        return np.stack([(values * axis).sum(1) for axis in state["axes"].T], axis=1).astype(values.dtype)

    def graph(self, values: Node, state: Mapping[str, np.ndarray]) -> Node:
        return f.matmul(values, f.constant(state["axes"], values.dtype)) * self.factor


class Exact(Axes):
    approximate_graph = False


class Slashes(Axes):
    def fit(self, blocks: Any) -> dict[str, np.ndarray]:
        return {**super().fit(blocks), "of/axes": np.zeros(1)}


PREPROCESSORS: dict[str, tuple[Callable[[], Preprocessor], str]] = {
    "axes": (Axes, ""),
    "a graph that does not say so": (Exact, "test_its_graph_computes_the_same"),
    "a graph off by a thousandth": (lambda: Axes(factor=1.001), "test_its_graph_computes_the_same"),
    "a name with a slash": (Slashes, "test_the_fitted_values_are_arrays_and_sufficient_to_apply"),
}


@pytest.mark.parametrize("name", PREPROCESSORS)
def test_a_preprocessor_is_held_to_what_it_declares(name: str) -> None:
    class Suite(PreprocessorSuite):
        def make(self) -> Preprocessor:
            return PREPROCESSORS[name][0]()

        def values(self) -> np.ndarray:
            return np.random.default_rng(1).normal(size=(12, 60)).astype(np.float32)

    check_caught(Suite(), PREPROCESSORS[name][1])
