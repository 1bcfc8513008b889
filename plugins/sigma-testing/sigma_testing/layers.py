"""Conformance suites for layers and costs.

Inherit one in a plugin's tests, override ``make``, and set the specs of the inputs::

    class TestDense(LayerSuite):
        inputs = (Spec((4,)),)

        def make(self):
            return Dense(3, activation="tanh")
"""

from __future__ import annotations

import pickle
import re
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from inspect import signature
from itertools import product
from typing import Any, ClassVar

import numpy as np
from attrs import frozen

from sigma_kernel.arrays import read_only
from sigma_kernel.contracts import CostLayer, Layer, Parameter
from sigma_kernel.errors import SigmaError, SigmaGraphError
from sigma_kernel.graph.meaning import interpret
from sigma_kernel.graph.namespace import numpy_namespace
from sigma_kernel.graph.node import FLOATS, Graph, Node, Spec, symbol
from sigma_kernel.graph.random import Draw, Key
from sigma_kernel.network.architecture import arguments, write
from sigma_kernel.network.tracing import Continuation, Resolve, Shapes, Trace
from sigma_kernel.plugins.catalogue import catalogue
from sigma_kernel.plugins.resolver import Resolver
from sigma_testing.determinism import DeterministicSuite
from sigma_testing.gradients import SCALES, Slopes
from sigma_testing.held import attributes, changed_attributes
from sigma_testing.suite import alike

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

    def values(self, arrays: Arrays, seed: int = 1, row: int = 0) -> list[np.ndarray]:
        """Return an array for every input of the graph: the given ones, then parameters and state drawn by seed.

        The first row of the arrays is the one of this number in its batch, as random numbers count them.
        """
        random = np.random.default_rng(seed)
        values = list(arrays)
        for name, node in zip(self.names[self.count :], self.graph.inputs[self.count :], strict=True):
            if name in self.shapes.live:
                values.append(np.asarray(self.shapes.live[name].value, node.dtype))
            elif node.dtype == "uint32":
                values.append(np.full(node.shape, row if name == "row" else 7 * seed, np.uint32))
            else:
                values.append(random.uniform(0.25, 1.0, node.shape).astype(node.dtype))
        return values

    def run(self, values: Arrays) -> tuple[np.ndarray, ...]:
        """Return the output and the new state, computed in NumPy."""
        return interpret(self.graph, numpy_namespace())(*values)


def trace_layer(
    layer: Layer, specs: Sequence[Spec], *, training: bool, precision: str | None = None, resolve: Resolve = by_name,
    weighted: bool = False,
) -> TracedLayer:  # fmt: skip
    """Trace a layer on inputs of these shapes, the batch included; the last one may be the sample weights of a cost.

    Its parameters are of ``precision``, by default that of the floats among the specs, or float64 if there are none.
    Gradients are nodes, too: ``sigma_kernel.graph.gradient(f.sum(traced.output), traced.graph.inputs)``.

    Raises:
        SigmaGraphError: If the specs have floats of another dtype, or of several.
    """
    precision = _precision(specs, precision)
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


def _precision(specs: Sequence[Spec], precision: str | None) -> str:
    """Return the dtype of a layer's numbers, which is that of all floats among the specs of its inputs."""
    dtypes = dict.fromkeys(spec.dtype for spec in specs if spec.dtype in FLOATS)
    dtype = precision or next(iter(dtypes), "float64")
    if {*dtypes} <= {dtype}:
        return dtype
    got = f"the floats of its inputs are {' and '.join(dtypes)}"
    raise SigmaGraphError(
        f"trace_layer: {got}, and its numbers {dtype}. Pass specs of one dtype, and no other precision."
    )


def trace_prediction(cost: CostLayer, specs: Sequence[Spec]) -> TracedLayer:
    """Trace the prediction of a cost, as ``0-it``: its graph takes an output, then the values of the cost."""
    inputs = [symbol(spec.shape, spec.dtype, f"input {i}") for i, spec in enumerate(specs)]
    precision = _precision(specs, None)
    trace, output = Trace(by_name, False, None, precision), symbol(specs[0].shape, specs[0].dtype, "output")
    trace.run("0-it", "0-it", cost, inputs)
    prediction = trace.predict("0-it", cost, output)
    rest = [node for node in Graph((), (prediction,)) if node.op == "input" and node is not output]
    names = tuple(str(node.attrs["name"]) for node in (output, *rest))
    return TracedLayer(Graph((output, *rest), (prediction,)), names, trace.shapes, 1)


class LayerSuite(DeterministicSuite):
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
        return trace_layer(self.make(), _specs(arrays), training=training, precision=precision), arrays

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

    def results(self) -> Mapping[str, Any]:
        """Return the values, the gradients and the first parameters for a batch of two."""
        slopes, values, _ = self._slopes(2)
        modes = {"training": True, "evaluation": False}
        return {
            **{f"values in {name}": self.run(2, training=training) for name, training in modes.items()},
            "gradients": slopes.run(values)[1:-1],
            "initial values": {a: values for a, (_, values) in self._initial_values().items()},
        }

    def _initial_values(self) -> dict[str, tuple[Parameter, np.ndarray]]:
        """Return parameters and state with their drawn values by address, but for those that begin as numbers."""
        shapes, resolve = self.trace()[0].shapes, Resolver(catalogue())
        drawn = {
            address: (parameter, Draw(0, shapes.streams.number(f"initial.{address}")))
            for address, parameter in {**shapes.parameters, **shapes.state}.items()
            if not isinstance(parameter.initialiser, int | float)
        }
        return {
            address: (parameter, resolve("initialiser", parameter.initialiser).values(address, parameter, draws))
            for address, (parameter, draws) in drawn.items()
        }

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
        """Run in two precisions and compare: the values, or else the distributions of what is drawn."""
        for training in (True, False):
            double, single = (self.run(training=training, precision=p) for p in ("float64", "float32"))
            for x, y in zip(double, single, strict=True):
                assert x.dtype == np.float64, f"in float64, it computes {x.dtype}"
                assert y.dtype == np.float32, f"in float32, it computes {y.dtype}"
            close = all(np.allclose(y, x, rtol=2e-4, atol=2e-5) for x, y in zip(double, single, strict=True))
            if not close and self.trace(training=training)[0].random:
                self._compare_draws()
            else:
                for x, y in zip(double, single, strict=True):
                    np.testing.assert_allclose(y, x, rtol=2e-4, atol=2e-5)

    def _compare_draws(self) -> None:
        """Compare the distributions of each entry of many equal samples in both precisions."""
        double, single = (self._draws(precision) for precision in ("float64", "float32"))
        apart = max(map(_distance, double, single))
        rule = "its random numbers have other distributions in float32 and float64"
        assert apart < 3.0 * (2 / MANY) ** 0.5, f"{rule} (distance {apart:.3f})."

    def _draws(self, precision: str = "float64") -> np.ndarray:
        """Return the outputs for many copies of one sample in training: a row for each entry of the output."""
        _, arrays = self.trace(1, precision=precision)
        rows = [np.repeat(x, MANY, axis=0) for x in arrays]
        many = trace_layer(self.make(), _specs(rows), training=True, precision=precision)
        return many.run(many.values(rows))[0].reshape(MANY, -1).T

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
        """Compare along random directions, in every float input, for a batch and for a single sample.

        A layer whose gradients are none of its output, such as that of rounding, declares `surrogate = True`.
        """
        for batch in (3, 1):
            slopes, values, _ = self._slopes(batch)
            self._check(slopes, values)

    def test_gradients_of_small_and_large_inputs_agree_too(self) -> None:
        """Scale the inputs."""
        slopes, values, scaled = self._slopes(3)
        for scale in self.scales:
            self._check(slopes, [x * scale if i in scaled else x for i, x in enumerate(values)], scale)

    def _check(self, slopes: Slopes, values: Arrays, scale: float = 1.0) -> None:
        """Compare gradients with finite differences; those of a surrogate are finite."""
        if not self.make().surrogate:
            slopes.check(values, scale)
        else:
            finite = all(np.isfinite(x).all() for x in slopes.run(values))
            assert finite, f"the surrogate gradient is not finite, for inputs of scale {scale:g}"

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
        zero = [x * 0.0 if i in scaled else x for i, x in enumerate(values)]
        if self.make().surrogate:
            self._check(slopes, zero, 0.0)
        else:
            slopes.check_kinks(zero)

    def test_it_is_what_it_declares(self) -> None:
        """Declare `surrogate`, `couples_rows` or `augments` only where a layer needs it: other tests then ask less."""
        layer = self.make()
        if layer.surrogate:
            assert not self._has_slopes(), "its gradients are those of its output: it is no surrogate"
        if layer.couples_rows:
            assert self._couples(), "each row is computed alone: it does not couple rows"
        if layer.augments:
            assert self.trace()[0].random, "it draws no random numbers in training: it augments nothing"

    def _has_slopes(self) -> bool:
        slopes, values, scaled = self._slopes(3)
        try:
            for scale in self.scales:
                slopes.check([x * scale if i in scaled else x for i, x in enumerate(values)], scale)
        except AssertionError:
            return False
        return True

    def _couples(self) -> bool:
        """Return whether the first row of an output in training is another one, with other rows behind it."""
        it, arrays = self.trace(3)
        others = [np.concatenate([x[:1], x[:0:-1] * 2]) for x in arrays]
        first, again = (it.run(it.values(rows))[0][0] for rows in (arrays, others))
        return not np.array_equal(first, again)

    def test_the_names_of_what_it_declares_are_levels_of_addresses(self) -> None:
        """Write names of letters, digits, _ and -."""
        shapes = self.trace()[0].shapes
        for address in (*shapes.parameters, *shapes.state, *shapes.live):
            assert re.fullmatch(r"[\w.#-]++", address), f"{address.removeprefix('0-it.')!r}: patterns cannot name it"

    def test_evaluation_computes_what_training_does_unless_it_draws_or_has_state(self) -> None:
        """Read `context.training` to draw random numbers, or to use statistics."""
        (it, arrays), (other, _) = self.trace(), self.trace(training=False)
        if not it.random and not it.changes:
            training, evaluation = (x.run(x.values(arrays))[0] for x in (it, other))
            np.testing.assert_allclose(evaluation, training, rtol=1e-12, atol=1e-12)

    def test_a_shard_draws_what_the_whole_batch_does(self) -> None:
        """Draw with axis 0 as the batch, so that each row has random numbers of its own."""
        it, arrays = self.trace(5)
        if not it.random or it.changes or self.make().couples_rows or not it.output.shape:
            return
        part = [x[2:] for x in arrays]
        shard = trace_layer(self.make(), _specs(part), training=True)
        wanted = it.run(it.values(arrays))[0][2:]
        np.testing.assert_allclose(shard.run(shard.values(part, row=2))[0], wanted, rtol=1e-12, atol=1e-12)

    def test_a_sequence_in_pieces_is_the_whole_sequence(self) -> None:
        """Return in `memory` what `context.recall` needs for the next piece, or raise an error for pieces."""
        arrays = self.arrays(2)
        lengths = {x.shape[1] if x.ndim > 1 else 0 for x in arrays}
        if len(lengths) == 1 and (length := lengths.pop()) > 1 and (pieces := self._pieces(arrays, length)):
            it, _ = self.trace(2, training=False)
            whole = it.run(it.values(arrays))[0]
            joined = np.concatenate(pieces, axis=1) if whole.shape[1:2] == (length,) else pieces[-1]
            np.testing.assert_allclose(joined, whole, rtol=1e-9, atol=1e-12)

    def _pieces(self, arrays: Arrays, length: int) -> list[np.ndarray]:
        """Return the outputs for both halves of sequences; none of a layer that recalls nothing, or takes no halves."""
        it, _ = self.trace(2, training=False)
        given = dict(zip(it.names[it.count :], it.values(arrays)[it.count :], strict=True))
        pieces = list[np.ndarray]()
        for begin, end in ((0, length // 2), (length // 2, length)):
            try:
                value, memory = self._piece([x[:, begin:end] for x in arrays], begin, length, given)
            except SigmaError:
                return []
            if not memory:
                return []
            pieces, given = [*pieces, value], {**given, **memory}
        return pieces

    def _piece(
        self, arrays: Arrays, begin: int, length: int, given: Mapping[str, np.ndarray]
    ) -> tuple[np.ndarray, dict[str, np.ndarray]]:
        """Return the output for a piece of sequences that begins somewhere, and what the layer recalls next."""
        inputs = [symbol(x.shape, str(x.dtype)) for x in arrays]
        there = Continuation(symbol((), "int32", "position"), length)
        trace = Trace(by_name, False, None, "float64", continuation=there)
        outputs = (trace.run("0-it", "0-it", self.make(), inputs), *there.after.values())
        if not there.after:
            return np.zeros(0), {}
        rest = [node for node in Graph((), outputs) if node.op == "input" and node not in {*inputs}]
        named = {"position": np.array(begin, np.int32), **given}
        values = [named.get(str(x.attrs["name"]), np.zeros(x.shape, x.dtype)) for x in rest]
        value, *after = interpret(Graph((*inputs, *rest), outputs), numpy_namespace())(*arrays, *values)
        return value, dict(zip(there.after, after, strict=True))

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
            trace_layer(layer, _specs(self.arrays(2)), training=True)

    def test_its_settings_stay_as_they_are(self) -> None:
        """Compare its fields before and after it runs, in training and in evaluation."""
        layer = self.make()
        before = deepcopy(attributes(layer))
        for training in (True, False):
            trace_layer(layer, _specs(self.arrays(2)), training=training)
            other = changed_attributes(before, attributes(layer))
            assert not other, f"forward() changes self.{', self.'.join(other)}. A layer's memory is its state."

    def test_what_it_declares_can_be_initialised(self) -> None:
        """Draw the initial values of its parameters and its state."""
        for address, (parameter, values) in self._initial_values().items():
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
        it, _ = self.trace(1)
        if it.random and it.output.shape and not self.make().augments:
            result, wanted = self._draws(), self.run(1, training=False)[0].ravel()
            error = 6.0 * result.std(axis=1) / MANY**0.5 + 1e-9
            rule = "the mean in training is not that of evaluation. Rescale, or declare `augments = True`."
            assert (np.abs(result.mean(axis=1) - wanted) <= error).all(), rule

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
        """Run a batch in training, and twice the batch at once, unless training is random.

        A layer that computes a row from others in another way declares `couples_rows = True`.
        """
        it, arrays = self.trace(3)
        if not it.random and not self.make().couples_rows:
            twice = [np.concatenate([x, x]) for x in arrays]
            double = trace_layer(self.make(), _specs(twice), training=True)
            once = it.run(it.values(arrays))[0]
            np.testing.assert_allclose(double.run(double.values(twice))[0], np.concatenate([once, once]), rtol=1e-9)


def _specs(arrays: Arrays) -> list[Spec]:
    return [Spec(x.shape, str(x.dtype)) for x in arrays]


def _distance(first: np.ndarray, second: np.ndarray) -> float:
    """Return the Kolmogorov-Smirnov distance of two samples, 0 if all numbers in order are equal but for rounding."""
    x, y = np.sort(first), np.sort(second)
    if np.allclose(x, y, rtol=2e-4, atol=2e-5):
        return 0.0
    every = np.concatenate([x, y])
    shares = (np.searchsorted(values, every, "right") / values.size for values in (x, y))
    return float(np.max(np.abs(next(shares) - next(shares))))


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

    def predict(self, outputs: np.ndarray) -> np.ndarray:
        """Return the predictions for outputs, one row per sample, with drawn values of the cost's own parameters."""
        it = self._trace_prediction(outputs)
        return np.asarray(it.run(it.values([outputs]))[0])

    def _trace_prediction(self, outputs: np.ndarray) -> TracedLayer:
        rows = self.arrays(len(outputs))[1:]
        return trace_prediction(self.make(), _specs([outputs, *rows]))

    def test_its_prediction_reads_its_output_and_its_own_values_alone(self) -> None:
        """Compute the prediction from the output, and the cost's parameters, state and settings; draw nothing."""
        it = self._trace_prediction(self.arrays(3)[0])
        other = [name for name in it.names[1:] if not name.startswith("0-it.")]
        assert not other, f"its prediction reads {', '.join(other)}, which nobody has when it predicts"

    def test_its_prediction_has_a_row_for_each_sample(self) -> None:
        """Compute the prediction of a row, that a user sees, from this row of the output alone."""
        outputs = self.arrays(3)[0]
        whole = self.predict(outputs)
        assert whole.shape[:1] == (3,), f"predictions of 3 samples have the shape {whole.shape}"
        alone = np.concatenate([self.predict(outputs[i : i + 1]) for i in range(3)])
        np.testing.assert_allclose(alone, whole, rtol=1e-12, atol=1e-12, err_msg="a prediction depends on other rows")

    def test_its_predictions_are_probabilities_if_it_chooses_or_decides(self) -> None:
        """Return probabilities from prediction(), such as the softmax of logits, unless it only estimates."""
        cost, values = self.make(), self.predict(self.arrays(3)[0] * 3.0)
        if cost.chooses or cost.decides:
            assert ((values >= 0.0) & (values <= 1.0)).all(), f"its predictions are not from 0 to 1 (got {values[0]})"
        if cost.chooses:
            np.testing.assert_allclose(values.sum(axis=-1), 1.0, rtol=1e-5, err_msg="its probabilities do not add up")

    def test_it_accepts_the_targets_that_it_computes_with(self) -> None:
        """Check targets as a run does."""
        arrays, layer = self.arrays(5), self.make()
        if layer.targets:
            layer.check(read_only(arrays[-1]), Spec(arrays[0].shape[1:]))

    def test_it_is_a_mean_over_the_batch(self) -> None:
        """Run a batch, and the same batch repeated twice.

        A cost that compares the rows of a batch with each other declares `couples_rows = True`.
        """
        if self.make().couples_rows:
            return
        it, arrays = self.trace(3)
        twice = [np.concatenate([x, x]) for x in arrays]
        double = trace_layer(self.make(), _specs(twice), training=True)
        once = it.run(it.values(arrays))[0]
        np.testing.assert_allclose(double.run(double.values(twice))[0], once, rtol=1e-12)

    def test_the_mean_does_not_depend_on_the_batches(self) -> None:
        """Sum the costs of parts of a batch, weighted by their rows or by the cost's own weights."""
        if not self.make().couples_rows:
            self._compare_parts()

    def _couples(self) -> bool:
        try:
            self._compare_parts()
        except AssertionError:
            return True
        return False

    def _compare_parts(self) -> None:
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
        it = trace_layer(self.make(), _specs(weighted), training=True, weighted=True)
        total, weight = self._totals([x[[0, 1, 1]] for x in arrays])
        np.testing.assert_allclose(it.run(it.values(weighted))[0], total / weight, rtol=1e-12)

    def _totals(self, arrays: Arrays) -> tuple[np.ndarray, ...]:
        it = trace_layer(self.make(), _specs(arrays), training=True)
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
