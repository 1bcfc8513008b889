"""Conformance suites for layers and costs.

Inherit one in a plugin's tests, override ``make``, and set the specs of the inputs::

    class TestDense(LayerSuite):
        inputs = (Spec((4,)),)

        def make(self):
            return Dense(3, activation="tanh")
"""

from __future__ import annotations

import pickle
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from inspect import signature
from itertools import product
from typing import Any, ClassVar

import numpy as np
from attrs import frozen

from sigma_kernel.contracts import CostLayer, Layer
from sigma_kernel.graph.meaning import interpret
from sigma_kernel.graph.namespace import numpy_namespace
from sigma_kernel.graph.node import FLOATS, Graph, Node, Spec, symbol
from sigma_kernel.graph.random import Draw, Key
from sigma_kernel.network.architecture import arguments, write
from sigma_kernel.network.tracing import Resolve, Shapes, Trace
from sigma_kernel.plugins.catalogue import catalogue
from sigma_kernel.plugins.resolver import Resolver
from sigma_testing.gradients import SCALES, Slopes
from sigma_testing.held import attributes, changed_attributes
from sigma_testing.suite import Suite, alike

Arrays = Sequence[np.ndarray]
WORDS = (((2,), "key"), ((), "iteration"), ((), "row"), ((), "scan"))
MANY = 4000  # rows for a mean


def by_name(kind: str, chosen: Any) -> Any:
    """Load a component of any installed plugin."""
    return catalogue().load(kind, str(chosen))


@frozen(eq=False)
class TracedLayer:
    """A layer traced alone, as ``0-it``: its graph takes ``names``, and returns the output, then new state."""

    graph: Graph
    names: tuple[str, ...]
    shapes: Shapes
    count: int  # of inputs, which come first
    totals: tuple[Node, ...] = ()  # of a cost with weighted rows: the weighted sum, and the sum of the weights
    changes: tuple[str, ...] = ()  # names of the new state

    @property
    def output(self) -> Node:
        """Return the node of the output."""
        return self.graph.outputs[0]

    @property
    def random(self) -> bool:
        """Return whether the layer draws random numbers."""
        return any(name in self.names for _, name in WORDS)

    def values(self, arrays: Arrays, seed: int = 1) -> list[np.ndarray]:
        """Return an array for every input of the graph: the given ones, then parameters and state drawn by seed."""
        random = np.random.default_rng(seed)
        values = list(arrays)
        for name, node in zip(self.names[self.count :], self.graph.inputs[self.count :], strict=True):
            if name in self.shapes.live:
                values.append(np.asarray(self.shapes.live[name].value, node.dtype))
            elif node.dtype == "uint32":
                values.append(np.full(node.shape, 7 * seed, np.uint32))
            else:
                values.append(random.uniform(0.25, 1.0, node.shape).astype(node.dtype))
        return values

    def run(self, values: Arrays) -> tuple[np.ndarray, ...]:
        """Return the output and the new state, computed in NumPy."""
        return interpret(self.graph, numpy_namespace())(*values)


def trace_layer(
    layer: Layer, specs: Sequence[Spec], *, training: bool, precision: str = "float64", resolve: Resolve = by_name,
    weighted: bool = False,
) -> TracedLayer:  # fmt: skip
    """Trace a layer on inputs of these shapes, the batch included; the last one may be the sample weights of a cost."""
    inputs = [symbol(spec.shape, spec.dtype, f"input {i}") for i, spec in enumerate(specs)]
    words = [symbol(shape, "uint32", name) for shape, name in WORDS]
    shapes = Shapes()
    key = Key(words[0], words[1], words[2], words[3], shapes.streams)
    trace = Trace(resolve, training, key, precision, shapes=shapes)
    named = {"weights": inputs[-1]} if weighted else {}
    value = trace.run("0-it", "0-it", layer, inputs[:-1] if weighted else inputs, **named)
    outputs = (value, *trace.state.values())
    given = {*inputs}
    rest = [node for node in Graph((), outputs) if node.op == "input" and node not in given]
    nodes = (*inputs, *rest)
    names = tuple(str(node.attrs["name"]) for node in nodes)
    totals = tuple(node for cost in trace.totals.values() for node in (cost.total, cost.weight))
    return TracedLayer(Graph(nodes, outputs), names, shapes, len(inputs), totals, tuple(trace.state))


class LayerSuite(Suite):
    """Conformance tests of a layer; ``inputs`` are the specs of one sample, with floats in the test's precision."""

    inputs: ClassVar[Sequence[Spec]] = (Spec((4,)),)
    scales: ClassVar[Sequence[float]] = SCALES  # of inputs at which results and gradients are checked
    scaled: ClassVar[slice] = slice(None)  # inputs that may have any scale

    @abstractmethod
    def make(self) -> Layer:
        """Return the layer under test."""

    def arrays(self, batch: int) -> Arrays:
        """Return a batch of inputs: normal numbers, or 0, 1 and 2 for integers."""
        random = np.random.default_rng(0)
        wholes = [random.integers(0, 3, (batch, *spec.shape)) for spec in self.inputs]
        floats = [random.normal(size=(batch, *spec.shape)) for spec in self.inputs]
        pairs = zip(self.inputs, floats, wholes, strict=True)
        return [x if spec.dtype in FLOATS else whole.astype(spec.dtype) for spec, x, whole in pairs]

    def trace(self, batch: int = 3, *, training: bool = True, precision: str = "float64") -> tuple[TracedLayer, Arrays]:
        """Return the traced layer and a batch for it."""
        arrays = [x.astype(precision) if x.dtype.kind == "f" else x for x in self.arrays(batch)]
        specs = [Spec(x.shape, str(x.dtype)) for x in arrays]
        return trace_layer(self.make(), specs, training=training, precision=precision), arrays

    def run(self, batch: int = 3, *, training: bool = True, precision: str = "float64") -> tuple[np.ndarray, ...]:
        """Run the layer on a batch; return the output, then new state."""
        it, arrays = self.trace(batch, training=training, precision=precision)
        return it.run(it.values(arrays))

    def expected_shape(self, batch: int, output: tuple[int, ...]) -> tuple[int, ...]:
        """Return the expected output shape for a batch of another size, given the shape for a batch of 3."""
        return (batch, *output[1:])

    def use(self) -> None:
        """Make it, and use it once."""
        for training in (True, False):
            self.run(training=training)

    def test_it_runs_in_training_and_evaluation_and_for_a_batch_of_one(self) -> None:
        """Compare the shapes of outputs with each other and with those of the graph."""
        shape = self.run()[0].shape
        assert shape == self.expected_shape(3, shape)
        for training in (True, False):
            for batch in (1, 3, 5):
                it, _ = self.trace(batch, training=training)
                assert (
                    it.output.shape == self.run(batch, training=training)[0].shape == self.expected_shape(batch, shape)
                )

    def test_it_computes_in_the_requested_precision(self) -> None:
        """Run in two precisions and compare."""
        for training in (True, False):
            double, single = (self.run(training=training, precision=p) for p in ("float64", "float32"))
            for x, y in zip(double, single, strict=True):
                assert x.dtype == np.float64
                assert y.dtype == np.float32
                np.testing.assert_allclose(y, x, rtol=2e-4, atol=2e-5)

    def test_declared_parameters_do_not_depend_on_the_batch_and_are_used(self) -> None:
        """Trace batches of two sizes; check that the training graph reads every parameter and live setting."""
        single, five = (self.trace(batch)[0] for batch in (1, 5))
        assert single.shapes == five.shapes
        unread = {*single.shapes.parameters, *single.shapes.live} - {*single.names, "0-it.weight"}
        assert not unread, f"declared and not used: {', '.join(sorted(unread))}"

    def _slopes(self, batch: int) -> tuple[Slopes, list[np.ndarray], list[int]]:
        """Return the gradients for a batch, values to compute them at, and the places of inputs of any scale."""
        it, arrays = self.trace(batch)
        free = [it.names[i] not in it.shapes.live and node.dtype in FLOATS for i, node in enumerate(it.graph.inputs)]
        places = [i for i, flag in enumerate(free) if flag]
        scaled = [i for i in range(it.count)[self.scaled] if i in places]
        return Slopes(it.graph.inputs, it.output, places), it.values(arrays), scaled

    def test_gradients_agree_with_finite_differences(self) -> None:
        """Compare along random directions, in every float input, for a batch and for a single sample."""
        for batch in (3, 1):
            slopes, values, _ = self._slopes(batch)
            slopes.check(values)

    def test_gradients_of_small_and_large_inputs_agree_too(self) -> None:
        """Scale the inputs."""
        slopes, values, scaled = self._slopes(3)
        for scale in self.scales:
            slopes.check([x * scale if i in scaled else x for i, x in enumerate(values)], scale)

    def test_inputs_of_every_scale_have_finite_results(self) -> None:
        """Scale the inputs, also to the other side of zero, in float32, in training and in evaluation."""
        for training, sign, scale in product((True, False), (1.0, -1.0), self.scales):
            it, arrays = self.trace(3, training=training, precision="float32")
            free = [i in range(it.count)[self.scaled] and x.dtype.kind == "f" for i, x in enumerate(arrays)]
            given = [x * np.float32(sign * scale) if flag else x for x, flag in zip(arrays, free, strict=True)]
            with np.errstate(all="ignore"):
                results = it.run(it.values(given))
            assert all(np.isfinite(x).all() for x in results), f"inputs of scale {sign * scale:g} give {results[0]}"

    def test_gradients_at_kinks_lie_between_the_slopes_beside_them(self) -> None:
        """Set the inputs to zero, where many functions have a kink."""
        slopes, values, scaled = self._slopes(2)
        slopes.check_kinks([x * 0.0 if i in scaled else x for i, x in enumerate(values)])

    def test_the_same_key_gives_the_same_bits(self) -> None:
        """Trace and run twice, also with a pickled copy of the graph."""
        it, arrays = self.trace()
        again = pickle.loads(pickle.dumps(it.graph))
        assert again == it.graph == self.trace()[0].graph
        values = it.values(arrays)
        first, second = (interpret(graph, numpy_namespace())(*values) for graph in (it.graph, again))
        assert alike(*([x.tobytes() for x in outputs] for outputs in (first, second)))

    def test_it_holds_no_arrays(self) -> None:
        """Look into its fields, other attributes and those of its class, before and after it runs."""
        layer = self.make()
        for _ in range(2):
            held = {**vars(type(layer)), **attributes(layer)}
            names = [name for name, value in held.items() if [*_arrays(value)]]
            assert not names, f"a layer holds no arrays (got {', '.join(names)}). Make them in forward()."
            trace_layer(layer, self._specs(2), training=True)

    def test_its_settings_stay_as_they_are(self) -> None:
        """Compare its fields before and after it runs, in training and in evaluation."""
        layer = self.make()
        before = deepcopy(attributes(layer))
        for training in (True, False):
            trace_layer(layer, self._specs(2), training=training)
            other = changed_attributes(before, attributes(layer))
            assert not other, f"forward() changes self.{', self.'.join(other)}. A layer's memory is its state."

    def _specs(self, batch: int) -> list[Spec]:
        return [Spec(x.shape, str(x.dtype)) for x in self.arrays(batch)]

    def test_what_it_declares_can_be_initialised(self) -> None:
        """Draw the initial values of its parameters and its state."""
        shapes, resolve = self.trace()[0].shapes, Resolver(catalogue())
        for address, parameter in {**shapes.parameters, **shapes.state}.items():
            if not isinstance(parameter.initialiser, int | float):
                values = resolve("initialiser", parameter.initialiser).values(address, parameter, Draw(0, 1))
                assert values.shape == parameter.shape, address
                assert np.isfinite(values).all(), address

    def test_evaluation_changes_no_state(self) -> None:
        """Compare the state after a batch in evaluation with the state before."""
        it, arrays = self.trace(training=False)
        values = it.values(arrays)
        for name, new in zip(it.changes, it.run(values)[1:], strict=True):
            assert name in it.names, f"{name}: is overwritten in evaluation"
            np.testing.assert_array_equal(new, values[it.names.index(name)], err_msg=name)

    def test_random_numbers_keep_the_mean_of_evaluation(self) -> None:
        """Compare the mean of many runs in training with evaluation, if training is random."""
        it, arrays = self.trace(1)
        if it.random and it.output.shape:
            rows = [np.repeat(x, MANY, axis=0) for x in arrays]
            many = trace_layer(self.make(), [Spec(x.shape, str(x.dtype)) for x in rows], training=True)
            result = many.run(many.values(rows))[0]
            error = 6.0 * result.std(axis=0) / MANY**0.5 + 1e-9
            assert (np.abs(result.mean(axis=0) - self.run(1, training=False)[0][0]) <= error).all()

    def test_its_text_form_round_trips(self) -> None:
        """Print, construct from the settings that were printed, and print again."""
        layer = self.make()
        positional, named = arguments(layer)
        assert write([type(layer)(*positional, **named)]) == write([layer])

    def test_a_sample_does_not_depend_on_the_others_in_its_batch(self) -> None:
        """Run a batch, and its first sample alone, in evaluation."""
        it, arrays = self.trace(3, training=False)
        alone = trace_layer(self.make(), [Spec((1, *x.shape[1:]), str(x.dtype)) for x in arrays], training=False)
        whole = it.run(it.values(arrays))[0]
        first = alone.run(alone.values([x[:1] for x in arrays]))[0]
        np.testing.assert_allclose(first, whole[:1], rtol=1e-12, atol=1e-12)

    def test_a_batch_repeated_twice_gives_every_output_twice(self) -> None:
        """Run a batch in training, and twice the batch at once, unless training is random."""
        it, arrays = self.trace(3)
        if not it.random:
            twice = [np.concatenate([x, x]) for x in arrays]
            double = trace_layer(self.make(), [Spec(x.shape, str(x.dtype)) for x in twice], training=True)
            once = it.run(it.values(arrays))[0]
            np.testing.assert_allclose(double.run(double.values(twice))[0], np.concatenate([once, once]), rtol=1e-9)


def _arrays(value: Any) -> Iterator[Any]:
    """Yield the arrays and nodes in a value, also those in containers."""
    if isinstance(value, np.ndarray | Node):
        yield value
    elif isinstance(value, Mapping | list | tuple | set | frozenset):
        for part in value.values() if isinstance(value, Mapping) else value:
            yield from _arrays(part)


class CostSuite(LayerSuite):
    """Conformance tests of a cost; ``inputs`` are the specs of what leads to it and of the targets, if it reads any."""

    scaled = slice(1)  # the prediction

    @abstractmethod
    def make(self) -> CostLayer:
        """Return the cost under test."""

    def expected_shape(self, batch: int, output: tuple[int, ...]) -> tuple[int, ...]:
        """Return the shape of a scalar."""
        return ()

    def test_its_prediction_has_a_row_for_each_sample(self) -> None:
        """Check the prediction that a user sees."""
        output = symbol((3, *self.inputs[0].shape))
        assert self.make().prediction(output).shape[:1] == (3,)

    def test_it_accepts_the_targets_that_it_computes_with(self) -> None:
        """Check targets as a run does."""
        arrays, layer = self.arrays(5), self.make()
        if layer.targets:
            layer.check(arrays[-1], Spec(arrays[0].shape[1:]))

    def test_it_is_a_mean_over_the_batch(self) -> None:
        """Run a batch, and the same batch repeated twice."""
        it, arrays = self.trace(3)
        twice = [np.concatenate([x, x]) for x in arrays]
        double = trace_layer(self.make(), [Spec(x.shape, str(x.dtype)) for x in twice], training=True)
        once = it.run(it.values(arrays))[0]
        np.testing.assert_allclose(double.run(double.values(twice))[0], once, rtol=1e-12)

    def test_the_mean_does_not_depend_on_the_batches(self) -> None:
        """Sum the costs of parts of a batch, weighted by their rows or by the cost's own weights."""
        it, arrays = self.trace(5)
        parts = [self._totals([x[rows] for x in arrays]) for rows in (slice(0, 1), slice(1, 3), slice(3, 5))]
        total, weight = np.sum(parts, axis=0)
        np.testing.assert_allclose(total / weight, it.run(it.values(arrays))[0], rtol=1e-12)

    def test_sample_weights_act_as_numbers_of_copies(self) -> None:
        """Weigh rows by 1, 2 and 0; compare with the first and twice the second, if the cost takes weights."""
        if "weights" not in signature(self.make().forward).parameters:
            return
        arrays = self.arrays(3)
        weighted = [*arrays, np.array([1.0, 2.0, 0.0])]
        it = trace_layer(self.make(), [Spec(x.shape, str(x.dtype)) for x in weighted], training=True, weighted=True)
        total, weight = self._totals([x[[0, 1, 1]] for x in arrays])
        np.testing.assert_allclose(it.run(it.values(weighted))[0], total / weight, rtol=1e-12)

    def _totals(self, arrays: Arrays) -> tuple[np.ndarray, ...]:
        it = trace_layer(self.make(), [Spec(x.shape, str(x.dtype)) for x in arrays], training=True)
        if it.totals:
            return interpret(Graph(it.graph.inputs, it.totals), numpy_namespace())(*it.values(arrays))
        rows = np.asarray(len(arrays[0]), np.float64)
        return it.run(it.values(arrays))[0] * rows, rows

    def test_the_order_of_rows_does_not_matter(self) -> None:
        """Run a batch forwards and backwards."""
        it, arrays = self.trace(4)
        turned = [x[::-1] for x in arrays]
        np.testing.assert_allclose(it.run(it.values(turned))[0], it.run(it.values(arrays))[0], rtol=1e-12)

    # one number per batch
    test_a_sample_does_not_depend_on_the_others_in_its_batch = None  # type: ignore[assignment]
    test_a_batch_repeated_twice_gives_every_output_twice = None  # type: ignore[assignment]
