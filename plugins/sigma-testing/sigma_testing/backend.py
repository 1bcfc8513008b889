"""Conformance suites for backends and for lowerings (a plugin's kernels for an op), to inherit in a plugin's tests.

::

    class TestMyBackend(BackendSuite):
        def make(self) -> Backend:
            return MyBackend()
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import partial
from itertools import islice, product
from timeit import repeat
from typing import Any

import numpy as np
import pytest
from attrs import evolve

from sigma_kernel import functions as f
from sigma_kernel.arrays import read_only
from sigma_kernel.contracts import Backend, Burst, Step
from sigma_kernel.errors import SigmaError, SigmaGraphError, SigmaTrainingError
from sigma_kernel.graph import dtypes, shapes
from sigma_kernel.graph.differentiation import gradient
from sigma_kernel.graph.meaning import interpret
from sigma_kernel.graph.namespace import numpy_namespace
from sigma_kernel.graph.node import MEANINGS, OPS, Graph, Node, symbol
from sigma_kernel.graph.ops import op
from sigma_kernel.graph.random import permutation
from sigma_kernel.plugins.catalogue import Lowerings
from sigma_kernel.plugins.rooms import reference
from sigma_testing.cases import Sample, samples
from sigma_testing.determinism import DeterministicSuite
from sigma_testing.edges import FLOATS, GUARDED, TIES, denormals, edges, out_of_range
from sigma_testing.suite import alike

TOLERANCE = {"float32": 2e-5, "float64": 1e-11}
STATE = ("weights", "iteration")
LENGTHS = (1, 2, 7, 1025)
AT_ONCE = 32  # samples per graph
RATE = np.float32(0.5)


def training_step(batch: int = 5) -> Step:
    """Return a step of logistic regression on three features: state, data, a live rate, a loss."""
    weights, iteration = symbol((3, 1)), symbol((), "uint32")
    x, y, rate = symbol((batch, 3)), symbol((batch, 1)), symbol(())
    loss = f.mean(f.softplus(x @ weights) - y * (x @ weights))
    (slope,) = gradient(loss, [weights])
    outputs = (weights - rate * slope, iteration + 1, loss)
    graph = Graph((weights, iteration, x, y, rate), outputs)
    return Step(graph, STATE, ("inputs", "targets"), ("rate",), STATE, ("loss",))


def _meant(sample: Sample, precision: str) -> list[np.ndarray]:
    """Return the reference results of a single op."""
    with np.errstate(all="ignore"):
        return [*map(np.asarray, interpret(sample.graph(precision), numpy_namespace())(*sample.operands(precision)))]


def _alike(found: np.ndarray, wanted: np.ndarray, precision: str, text: str) -> None:
    """Compare a result with the reference: integers exactly, floats within the tolerance."""
    assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape), text
    tolerance = TOLERANCE[precision] if wanted.dtype.kind == "f" else 0.0
    np.testing.assert_allclose(found, wanted, rtol=tolerance, atol=tolerance, err_msg=text)


LARGE = ((2048, 5), (2048, 5), (65, 769), (769, 33), (50_003,))


def large_results(x: Node, y: Node, a: Node, b: Node, z: Node) -> list[Node]:
    """Return results of every kind of loop on operands of the shapes in LARGE."""
    mixed = f.tanh(x * 1.5 + y) - f.exp(-f.square(x))
    return [
        mixed, f.sum(mixed, axis=0), f.sum(mixed, axis=1), f.max(y, axis=0), f.mean(mixed), f.softmax(a), a @ b,
        a.T, f.where(f.greater(z, 0.0), z * 3.0, f.abs(z) + 1.0), f.sum(f.square(z)), f.concat(x, y, axis=1),
    ]  # fmt: skip


MANY = 1 << 18
SUMS = {
    (MANY,): (0,),
    (MANY, 3): (0,),
    (3, MANY): (1,),
    (2, MANY, 2): (1,),
    (512, 512, 3): (0, 1),
    (64, 2, 4096): (0, 2),
}
ROUNDINGS = 1 << 12  # as docs/numbers.md says


@contextmanager
def unknown_ops() -> Iterator[dict[str, tuple[Callable[[Node], Node], Callable[[np.ndarray], np.ndarray]]]]:
    """Add ops to the table that no backend knows, each with the function that computes it; remove them again."""
    rules: dict[str, tuple[Any, ...]] = {
        "unknown:wave": (shapes.same, dtypes.floating, lambda g, z, x: g * f.cos(x), None, lambda ns, x: ns.xp.sin(x)),
        "unknown:bump": (shapes.same, dtypes.floating, None, lambda x: x / (f.square(x) + 1.0)),
        "unknown:first": (lambda x: x[1:], dtypes.same, None, lambda x: f.sum(x, axis=0) * 2.0),
        "unknown:power": (
            lambda x, times: x, lambda x, times: x, lambda g, z, x, times: g * times * x ** (times - 1.0), None,
            lambda ns, x, times: x**times,
        ),
    }  # fmt: skip
    ops = {name: op(name, *rule) for name, rule in rules.items()}
    pairs: dict[str, Any] = {
        "unknown:wave": (ops["unknown:wave"], np.sin),
        "unknown:bump": (ops["unknown:bump"], lambda x: x / (x * x + 1)),
        "unknown:first": (ops["unknown:first"], lambda x: x.sum(0) * 2),
        "unknown:power": (lambda x: ops["unknown:power"](x, times=2), np.square),
    }
    try:
        yield pairs
    finally:
        for name in ops:
            OPS.pop(name)
            MEANINGS.pop(name, None)


class BackendSuite(DeterministicSuite):
    """Conformance tests of a backend: inherit, and override :meth:`make`."""

    precisions: Sequence[str] = ("float32", "float64")
    keeps_state: bool = False  # whether a refused burst leaves the state as it was

    @abstractmethod
    def make(self) -> Backend:
        """Return the backend under test."""

    def use(self) -> None:
        """Make it, and use it once."""
        self.make().to_host(self.make().to_device(np.ones(3, np.float32)))

    def results(self) -> Mapping[str, Any]:
        """Return large results, and the state and the losses of a burst."""
        arrays = [np.random.default_rng(1).normal(size=shape).astype(np.float32) for shape in LARGE]
        inputs, backend = [symbol(x.shape) for x in arrays], self.make()
        large = backend.lower(Graph(tuple(inputs), tuple(large_results(*inputs))), {})
        (burst,) = self._run(backend, [8])
        return {
            "large results": [backend.to_host(x) for x in large(*map(backend.to_device, arrays))],
            "state": {name: backend.to_host(x) for name, x in burst.state.items()},
            "losses": np.asarray(burst.ring["loss"]),
        }

    # -- graphs --------------------------------------------------------------------------------------------------------
    def test_every_op_agrees_with_its_meaning(self) -> None:
        """Correct the op's kernel: sigma_kernel.graph.meaning defines each op."""
        every = [sample for group in samples().values() for sample in group]
        for precision in self.precisions:
            for sample, results in self._run_samples(every, precision):
                for result, wanted in zip(results, _meant(sample, precision), strict=True):
                    _alike(result, wanted, precision, str(sample))

    def test_edge_inputs_agree_with_the_meaning(self) -> None:
        """Treat infinities, NaN, signed zeros and empty arrays as docs/numbers.md says."""
        for precision in self.precisions:
            for sample, (result,) in self._run_samples(list(edges()), precision):
                (wanted,) = _meant(sample, precision)
                _alike(result, wanted, precision, str(sample))
                if OPS[sample.op].signed:
                    signs = [np.signbit(np.where(x == 0.0, x, 1.0)) for x in (result, wanted)]
                    np.testing.assert_array_equal(signs[0], signs[1], err_msg=f"the sign of a zero: {sample}")

    def test_denormals_are_kept_or_flushed_to_zero(self) -> None:
        """Compute numbers close to zero as they are, or as zero."""
        for precision in self.precisions:
            pairs = list(denormals(precision))
            results = self._run_samples([sample for sample, _ in pairs], precision)
            for (sample, (result,)), (_, flushed) in zip(results, pairs, strict=True):
                wanted = [_meant(x, precision)[0] for x in (sample, flushed)]
                how = TOLERANCE[precision], np.finfo(precision).tiny
                near = [np.isclose(result, x, *how, equal_nan=True) for x in wanted]
                assert np.logical_or(*near).all(), f"{sample}: {result} is neither of {wanted}"

    def test_indices_outside_their_axis_are_refused(self) -> None:
        """Raise a SigmaError that names the indices."""
        for sample in out_of_range():
            with pytest.raises(SigmaError, match=r"\b(place|indices)"):
                list(self._run_samples([sample], "float32"))

    def test_derivatives_at_ties_are_the_documented_ones(self) -> None:
        """Choose the slopes that sigma_kernel.functions documents, and none of operands that where does not select."""
        ties = {**TIES, **GUARDED}
        for precision in self.precisions:
            arrays = [tie.at.astype(precision) for tie in ties.values()]
            results = self._run_as_one([tie.graph(precision) for tie in ties.values()], arrays)
            for name, tie, slope, curvature in zip(ties, ties.values(), results[::2], results[1::2], strict=True):
                np.testing.assert_allclose(slope, tie.slope, 1e-6, err_msg=name)
                np.testing.assert_allclose(curvature, np.broadcast_to(tie.curvature, slope.shape), 1e-6, err_msg=name)

    def _run_samples(self, every: Sequence[Sample], precision: str) -> Iterator[tuple[Sample, list[np.ndarray]]]:
        """Yield samples with the backend's results, computed many per graph, as compilation is slow."""
        for some in (every[i : i + AT_ONCE] for i in range(0, len(every), AT_ONCE)):
            arrays = [x for sample in some for x in sample.operands(precision)]
            graphs = [sample.graph(precision) for sample in some]
            results = iter(self._run_as_one(graphs, arrays))
            yield from ((x, [*islice(results, len(g.outputs))]) for x, g in zip(some, graphs, strict=True))

    def _run_as_one(self, graphs: Sequence[Graph], arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Return the outputs of several graphs, compiled as one."""
        backend = self.make()
        whole = Graph(tuple(x for g in graphs for x in g.inputs), tuple(x for g in graphs for x in g.outputs))
        return [backend.to_host(x) for x in backend.lower(whole, {})(*map(backend.to_device, arrays))]

    def test_a_donated_input_gives_the_same_result(self) -> None:
        """Overwrite a donated input after it was read for the last time, also by a result that was reshaped."""
        backend, x, y, z = self.make(), symbol((7, 3)), symbol((7, 3)), symbol((7,))
        graph = Graph((x, y, z), (x * 2.0 + y, f.sum(x, axis=0), f.reshape(x[:, :1] * y[:, 1:2], (7,))))
        arrays = [np.arange(21, dtype=np.float32).reshape(7, 3), np.ones((7, 3), np.float32), np.ones(7, np.float32)]
        kept = backend.lower(graph, {})(*map(backend.to_device, arrays))
        given = backend.lower(graph, {0: 0, 2: 2})(*map(backend.to_device, arrays))
        for a, b in zip(kept, given, strict=True):
            np.testing.assert_array_equal(backend.to_host(a), backend.to_host(b))

    def test_a_donated_input_that_is_also_a_result_survives(self) -> None:
        """Copy an input that is returned."""
        backend = self.make()
        x = symbol((5,))
        doubled, same = backend.lower(Graph((x,), (x * 2.0, x)), {0: 0})(backend.to_device(np.ones(5, np.float32)))
        np.testing.assert_array_equal(backend.to_host(same), np.ones(5))
        np.testing.assert_array_equal(backend.to_host(doubled), np.full(5, 2.0))

    def test_results_survive_the_next_call(self) -> None:
        """Return new arrays, not buffers of the program."""
        backend = self.make()
        x = symbol((5,))
        call = backend.lower(Graph((x,), (x + 1.0, x)), {})
        first = call(backend.to_device(np.zeros(5, np.float32)))
        call(backend.to_device(np.full(5, 9.0, np.float32)))
        np.testing.assert_array_equal(backend.to_host(first[0]), np.ones(5))
        np.testing.assert_array_equal(backend.to_host(first[1]), np.zeros(5))

    def test_arrays_on_the_device_are_copies(self) -> None:
        """Copy in to_device() and in to_host()."""
        backend = self.make()
        host = np.ones(4, np.float32)
        device = backend.to_device(host)
        host[:] = 5.0
        back = backend.to_host(device)
        back[:] = 7.0
        np.testing.assert_array_equal(backend.to_host(device), np.ones(4))

    def test_arrays_that_are_not_contiguous_keep_their_values(self) -> None:
        """Respect strides in to_device() and in share()."""
        backend = self.make()
        host = np.arange(24, dtype=np.float32).reshape(4, 6)
        for view in (host, host.T, host[::2, 1::2], host[:, ::-1]):
            np.testing.assert_array_equal(backend.to_host(backend.to_device(view)), view)
            np.testing.assert_array_equal(backend.to_host(backend.share(view)), view)

    def test_large_arrays_agree_with_the_meaning(self) -> None:
        """Compute on arrays of 2,000 to 50,000 elements, where backends use threads and vectors."""
        for precision in self.precisions:
            draw = np.random.default_rng(0)
            arrays = [draw.normal(size=shape).astype(precision) for shape in LARGE]
            inputs = [symbol(x.shape, precision) for x in arrays]
            graph = Graph(tuple(inputs), tuple(large_results(*inputs)))
            wanted = interpret(graph, numpy_namespace())(*arrays)
            for place, (result, other) in enumerate(zip(self._run_as_one([graph], arrays), wanted, strict=True)):
                scale = 1.0 + float(np.abs(other).max())
                slack = TOLERANCE[precision] * scale * 20
                np.testing.assert_allclose(result, other, rtol=slack, atol=slack, err_msg=f"large result {place}")

    def test_sums_of_many_terms_are_exact_within_the_bound(self) -> None:
        """Add in blocks, in pairs or in a wider dtype, along every axis: docs/numbers.md states the bound."""
        for precision in self.precisions:
            arrays = [np.full(shape, 0.1, precision) for shape in SUMS]
            inputs = [symbol(x.shape, precision) for x in arrays]
            sums = tuple(f.sum(x, axis=axis) for x, axis in zip(inputs, SUMS.values(), strict=True))
            exact = math.fsum(float(x) for x in arrays[0])
            slack = ROUNDINGS * float(np.finfo(precision).eps) / 2 * exact
            graphs = [Graph(tuple(inputs), (*sums, f.sum(inputs[1]) / 3.0))]
            for place, total in enumerate(self._run_as_one(graphs, arrays)):
                np.testing.assert_allclose(total, exact, rtol=0.0, atol=slack, err_msg=f"sum {place}")

    def test_large_results_have_the_same_bits_each_time(self) -> None:
        """Sum in an order that depends on shapes alone."""
        arrays = [np.random.default_rng(1).normal(size=shape).astype(np.float32) for shape in LARGE]
        inputs = [symbol(x.shape) for x in arrays]
        backend = self.make()
        call = backend.lower(Graph(tuple(inputs), tuple(large_results(*inputs))), {})
        placed = [backend.to_device(x) for x in arrays]
        results = [b"".join(backend.to_host(x).tobytes() for x in call(*placed)) for _ in range(8)]
        assert len({*results}) == 1

    def test_arrays_in_any_layout_give_the_same_results(self) -> None:
        """Respect the strides of operands."""
        backend, x, y = self.make(), symbol((6, 4)), symbol((4,))
        call = backend.lower(Graph((x, y), (x @ f.reshape(y, (4, 1)), f.exp(x) + y, f.sum(x, axis=0), x.T)), {})
        host = np.random.default_rng(0).normal(size=(12, 8)).astype(np.float32)
        row = np.arange(4, dtype=np.float32)
        plain = [backend.to_host(x) for x in call(backend.to_device(host[::2, ::2].copy()), backend.to_device(row))]
        turned = np.ascontiguousarray(host[::2, ::2].T).T
        for layout, rows in ((host[::2, ::2], row), (turned, row), (host[::2, ::2], row[::-1][::-1])):
            results = [backend.to_host(x) for x in call(backend.to_device(layout), backend.to_device(rows))]
            for result, other in zip(results, plain, strict=True):
                np.testing.assert_allclose(result, other, rtol=1e-6, atol=1e-6)

    def test_results_share_no_memory_with_operands(self) -> None:
        """Copy an operand that is a result."""
        backend, x = self.make(), symbol((3, 4))
        call = backend.lower(Graph((x,), (x, f.reshape(x, (4, 3)), x.T, f.stop(x))), {})
        given = backend.to_device(np.ones((3, 4), np.float32))
        for result in call(given):
            host = backend.to_host(result)
            host[...] = 7.0
            np.testing.assert_array_equal(backend.to_host(result), np.ones(host.shape))
            if isinstance(result, np.ndarray) and result.flags.writeable:
                result[...] = 5.0
            np.testing.assert_array_equal(backend.to_host(given), np.ones((3, 4)))

    def test_ops_of_plugins_are_computed_by_their_meanings_and_expansions(self) -> None:
        """Compute ops that no backend has code for, and their gradients."""
        x = np.random.default_rng(0).normal(size=(5, 7))
        for precision in self.precisions:
            values = x.astype(precision)
            with unknown_ops() as ops:
                for name, (compute, wanted) in ops.items():
                    node = symbol(values.shape, precision)
                    results = [compute(node)]
                    results += gradient(f.sum(results[0]), [node])
                    outputs = self._run_as_one([Graph((node,), tuple(results))], [values])
                    _alike(outputs[0], np.asarray(wanted(values), precision), precision, name)

    def test_scalars_stay_scalars(self) -> None:
        """Return arrays of shape () for results without axes."""
        backend = self.make()
        assert backend.to_host(backend.to_device(np.array(3, np.int32))).shape == ()

    # -- programs ------------------------------------------------------------------------------------------------------
    def _start(self, backend: Backend) -> tuple[dict[str, Any], dict[str, Any], np.ndarray]:
        draw = np.random.default_rng(0)
        x = draw.normal(size=(40, 3)).astype(np.float32)
        block = {"inputs": backend.to_device(x), "targets": backend.to_device((x[:, :1] > 0).astype(np.float32))}
        state = {
            "weights": backend.to_device(np.zeros((3, 1), np.float32)),
            "iteration": backend.to_device(np.array(0, np.uint32)),
        }
        return state, block, draw.permutation(40).astype(np.int32).reshape(8, 5)

    def _run(self, backend: Backend, parts: Sequence[int], rate: Any = RATE) -> list[Burst]:
        state, block, rows = self._start(backend)
        program, bursts, done = backend.compile(training_step()), [], 0
        for n in parts:
            live = rate[done : done + n] if np.ndim(rate) else rate
            bursts.append(program.run(state, block, rows[done : done + n], {"rate": live}, n))
            state, done = dict(bursts[-1].state), done + n
        return bursts

    def test_estimates_are_seconds_and_a_function_of_the_graph(self) -> None:
        """Estimate how long a graph is compiled and computed, alike in every call; 0 is not known."""
        graph = training_step().graph
        estimates = self.make().estimate(graph), self.make().estimate(graph)
        assert estimates[0] == estimates[1]
        assert all(np.isfinite(seconds) and seconds >= 0 for seconds in estimates[0])

    def test_the_first_tier_computes_from_iteration_0(self) -> None:
        """Give each iteration a backend that computes it."""
        assert min(self.make().tiers) == 0

    def test_one_burst_equals_single_steps_bit_for_bit(self) -> None:
        """Compute an iteration of a burst exactly as a single one."""
        backend = self.make()
        (whole,), singles = self._run(backend, [8]), self._run(backend, [1] * 8)
        for name in STATE:
            a, b = (backend.to_host(burst.state[name]) for burst in (whole, singles[-1]))
            assert alike(a.tobytes(), b.tobytes()), name
        assert alike(whole.ring["loss"].tobytes(), b"".join(burst.ring["loss"].tobytes() for burst in singles))
        assert whole.done == 8
        assert int(backend.to_host(whole.state["iteration"])) == 8

    def test_training_steps_agree_with_a_handwritten_numpy_loop(self) -> None:
        """Pass each row of `rows` to the step, and its results to the next one."""
        backend = self.make()
        _, block, rows = self._start(backend)
        x, y, w = backend.to_host(block["inputs"]), backend.to_host(block["targets"]), np.zeros((3, 1))
        for chosen in rows:
            p = 1.0 / (1.0 + np.exp(-(x[chosen].astype(np.float64) @ w)))
            w -= 0.5 * x[chosen].T @ (p - y[chosen]) / 5
        (burst,) = self._run(backend, [8])
        np.testing.assert_allclose(backend.to_host(burst.state["weights"]), w, rtol=1e-5, atol=1e-6)

    def test_rows_that_are_shared_train_to_the_same_bits_and_are_not_changed(self) -> None:
        """Only read what share() returns: it may be the memory of the user's array."""
        backend = self.make()
        state, block, rows = self._start(backend)
        host = {name: backend.to_host(values) for name, values in block.items()}
        before = {name: values.tobytes() for name, values in host.items()}
        for values in host.values():
            values.flags.writeable = False
        shared = {name: backend.share(values) for name, values in host.items()}
        burst = backend.compile(training_step()).run(state, shared, rows, {"rate": np.float32(0.5)}, 8)
        (wanted,) = self._run(backend, [8])
        assert alike(*(backend.to_host(outcome.state["weights"]).tobytes() for outcome in (burst, wanted)))
        assert {name: values.tobytes() for name, values in host.items()} == before

    def test_a_live_value_may_be_one_number_or_one_per_step(self) -> None:
        """Take entry i of a live value with an axis in iteration i."""
        backend = self.make()
        scalar, many = (self._run(backend, [8], rate)[0] for rate in (np.float32(0.5), np.full(8, 0.5, np.float32)))
        assert alike(*(backend.to_host(burst.state["weights"]).tobytes() for burst in (scalar, many)))
        rates = np.linspace(1.0, 0.1, 8, dtype=np.float32)
        falling, single = (self._run(backend, parts, rates)[-1] for parts in ([8], [1] * 8))
        assert backend.to_host(falling.state["weights"]).tobytes() != backend.to_host(many.state["weights"]).tobytes()
        assert alike(*(backend.to_host(burst.state["weights"]).tobytes() for burst in (falling, single)))

    def test_a_burst_ends_after_a_non_finite_loss(self) -> None:
        """Stop after the iteration whose loss is not finite, and count it in `done`; or raise SigmaTrainingError."""
        backend = self.make()
        state, block, rows = self._start(backend)
        spoilt = backend.to_host(block["inputs"])
        spoilt[rows[3][0]] = np.nan
        block["inputs"] = backend.to_device(spoilt)
        try:
            burst = backend.compile(training_step()).run(state, block, rows, {"rate": np.float32(0.5)}, 8)
        except SigmaTrainingError:  # which says where the number comes from
            return
        assert burst.done == 4
        assert np.isfinite(burst.ring["loss"][:3]).all()
        assert np.isnan(burst.ring["loss"][3])

    def test_a_burst_with_an_index_outside_its_axis_is_refused(self) -> None:
        """Raise SigmaGraphError for an index outside its axis, also in the middle of a burst."""
        backend, table, places = self.make(), symbol((4,)), symbol((2,), "int32")
        loss = f.sum(f.take(table, places, axis=0))
        (slope,) = gradient(loss, [table])
        step = Step(Graph((table, places), (table - slope, loss)), ("table",), ("places",), (), ("table",), ("loss",))
        program = backend.compile(step)
        state: dict[str, Any] = {}
        for last in (4, -1, 3):
            if not (state and self.keeps_state):
                state = {"table": backend.to_device(np.ones(4, np.float32))}
            block = {"places": backend.to_device(np.array([0, last, 0], np.int32))}
            if last == 3:
                burst = program.run(state, block, np.array([[0, 1]]), {}, 1)
                np.testing.assert_array_equal(backend.to_host(burst.state["table"]), [0, 1, 1, 0])
            else:
                with pytest.raises(SigmaGraphError, match=r"\b(index|indices)\b"):
                    program.run(state, block, np.array([[0, 0], [0, 1]]), {}, 2)

    def test_inputs_that_a_step_only_reads_stay_valid(self) -> None:
        """Overwrite donated inputs only."""
        backend = self.make()
        state, block, rows = self._start(backend)
        full = training_step()
        graph = Graph(full.graph.inputs, (full.graph.outputs[2],))
        step = Step(graph, full.state, full.data, full.steer, (), ("loss",))
        program = backend.compile(step)
        losses = [program.run(state, block, rows, {"rate": np.float32(0)}, 8).ring["loss"] for _ in range(2)]
        assert alike(losses[0].tobytes(), losses[1].tobytes())
        np.testing.assert_array_equal(backend.to_host(state["weights"]), np.zeros((3, 1)))

    def test_many_threads_may_use_one_backend_at_once(self) -> None:
        """Protect what the backend shares between programs."""
        backend = self.make()
        with ThreadPoolExecutor(8) as pool:
            results = list(
                pool.map(lambda _: backend.to_host(self._run(backend, [3, 5])[-1].state["weights"]), range(16))
            )
        assert len({weights.tobytes() for weights in results}) == 1

    def test_many_threads_may_call_one_program_at_once(self) -> None:
        """Give each call buffers of its own."""
        backend = self.make()
        x = symbol((64, 64))
        call = backend.lower(Graph((x,), (f.tanh(x @ x) + x,)), {})
        inputs = [np.full((64, 64), i / 100, np.float32) for i in range(16)]
        alone = [backend.to_host(call(backend.to_device(v))[0]).tobytes() for v in inputs]
        with ThreadPoolExecutor(8) as pool:
            together = list(pool.map(lambda v: backend.to_host(call(backend.to_device(v))[0]).tobytes(), inputs))
        assert alike(alone, together)

    def test_equal_runs_give_equal_bits(self) -> None:
        """Compute in an order that depends on shapes alone."""
        backend = self.make()
        first, second = (backend.to_host(self._run(backend, [8])[0].state["weights"]).tobytes() for _ in range(2))
        assert alike(first, second)

    def test_orders_of_rows_are_those_of_the_kernel(self) -> None:
        """Sort the rows by the random bits that sigma_kernel.graph.permutation draws: resumed runs rely on them."""
        for at in product((0, 2**64 - 1), (0, 3), (0, 1000), (1, 4097, 100_000)):
            np.testing.assert_array_equal(self.make().permutation(*at), permutation(*at), err_msg=str(at))

    def test_graphs_of_equal_specs_are_compiled_apart(self) -> None:
        """Let whatever is kept of a graph depend on all of its nodes, and their attributes."""
        backend, x = self.make(), symbol((4, 4))
        insides = [f.tanh(x), f.relu(x), x * 2.0, x * 3.0, f.sum(f.square(x), axis=0), f.sum(f.square(x), axis=1)]
        graphs = [Graph((x,), (inside + 1.0,)) for inside in insides]
        calls = [backend.lower(graph, {}) for graph in graphs]
        values = np.linspace(-2.0, 2.0, 16, dtype=np.float32).reshape(4, 4)
        for graph, call in zip(graphs[::-1], calls[::-1], strict=True):
            (wanted,) = interpret(graph, numpy_namespace())(values)
            result = backend.to_host(call(backend.to_device(values))[0])
            _alike(result, np.asarray(wanted), "float32", f"{graph}: computes another graph of equal specs")

    def test_rows_are_taken_in_the_order_of_their_indices(self) -> None:
        """Return one row for each index from take(), also for indices that repeat."""
        backend, values, rows = self.make(), np.arange(15, dtype=np.float32).reshape(5, 3), np.array([3, 0, 0, 2])
        taken = backend.to_host(backend.take(backend.to_device(values), rows))
        np.testing.assert_array_equal(taken, values[rows])

    def test_shared_arrays_are_not_written(self) -> None:
        """Only read the host array in share()."""
        backend, values = self.make(), np.arange(15, dtype=np.float32).reshape(5, 3)
        np.testing.assert_array_equal(backend.to_host(backend.share(read_only(values))), values)

    def test_an_unknown_dtype_is_refused(self) -> None:
        """Raise a SigmaError that names a dtype that is not among `dtypes`."""
        unknown = sorted({"float16", "bfloat16"} - self.make().dtypes)
        if unknown:
            x: Node = symbol((2,), unknown[0])
            with pytest.raises(SigmaError, match=unknown[0]):
                self.make().lower(Graph((x,), (x + 1.0,)), {})


class LoweringSuite(DeterministicSuite):
    """Conformance tests of an op's kernel on one backend.

    Inherit, set ``name`` to the backend's, and override two methods::

        class TestSoftsignOnNumba(LoweringSuite):
            name = "numba"

            def make(self) -> Backend:
                return NumbaBackend()

            def samples(self) -> list[Sample]:
                return [Sample("acme-sigma:softsign", (np.linspace(-3.0, 3.0, 35).reshape(5, 7),))]

    Choose floats at which the op is differentiable.
    """

    name: str

    @abstractmethod
    def make(self) -> Backend:
        """Return the backend that uses the kernel under test."""

    @abstractmethod
    def samples(self) -> Sequence[Sample]:
        """Return samples of the op's operands and attributes; the speed of the last one is reported."""

    def _run(self, graph: Graph, *arrays: np.ndarray) -> list[np.ndarray]:
        backend = self.make()
        return [backend.to_host(x) for x in backend.lower(graph, {})(*map(backend.to_device, arrays))]

    def use(self) -> None:
        """Make it, and use it once."""
        for sample in self.samples():
            self._run(sample.graph(), *sample.arrays)

    def results(self) -> Mapping[str, Any]:
        """Return the values of the samples."""
        return {"values": [self._run(sample.graph(), *sample.arrays) for sample in self.samples()]}

    def test_the_backend_finds_the_kernel(self) -> None:
        """Add a record of the kind lowering, named op.backend, and install the project."""
        for sample in self.samples():
            assert sample.op in Lowerings(self.name), f"no plugin offers {sample.op}.{self.name}"

    def test_values_shapes_and_dtypes_agree_with_the_op(self) -> None:
        """Correct the kernel, or the expansion: they are the same function."""
        self._agree(self.samples())

    def test_edge_values_agree_with_the_op(self) -> None:
        """Treat infinities, NaN and signed zeros as the op does, and numbers of its domain."""
        for sample in self.samples():
            first, *others = sample.arrays
            edges = FLOATS[~(FLOATS <= 0.0)] if OPS[sample.op].domain == "positive" else FLOATS
            self._agree([evolve(sample, arrays=(np.resize(edges, first.shape), *others))])

    def test_rows_of_any_length_agree_with_the_op(self) -> None:
        """Fill the whole result, of 1, 2, an odd number and more than 1,024 entries, in both precisions."""
        self._agree([*self._of_lengths(LENGTHS)])

    def _of_lengths(self, lengths: Sequence[int]) -> Iterator[Sample]:
        """Yield the first rows of the samples with other last axes, where the op takes these."""
        for sample, length in product(self.samples(), lengths):
            rows = [x[:3] if x.ndim > 1 else x for x in sample.arrays]
            sized = [x[..., np.arange(length) % x.shape[-1]] if x.ndim and x.size else x for x in rows]
            with suppress(SigmaError):
                (other := evolve(sample, arrays=tuple(sized))).graph()
                yield other

    def test_numbers_of_every_size_agree_with_the_op(self) -> None:
        """Compute an elementwise op everywhere alike: look at dense numbers around 0, and at small and large ones."""
        sizes = np.logspace(-8.0, 6.0, 2001)
        numbers = np.concatenate([np.linspace(-4.0, 4.0, 80_001), sizes, -sizes])
        for sample in (sample for sample in self.samples() if OPS[sample.op].entries == "apart"):
            given = np.abs(numbers) + 1e-9 if OPS[sample.op].domain == "positive" else numbers
            flat = [np.resize(x, given.size) for x in sample.arrays]
            places = [i for i, x in enumerate(flat) if x.dtype == np.float64]
            self._agree(
                [evolve(sample, arrays=tuple(given if i == at else x for i, x in enumerate(flat))) for at in places]
            )

    def test_its_operands_are_unchanged(self) -> None:
        """Write to the result alone: other ops read the same operands."""
        for sample in self.samples():
            inputs = sample.graph().inputs
            doubled = [x * 2.0 if "float" in x.dtype else x for x in inputs]
            node = OPS[sample.op](*doubled, **sample.attrs)
            floats = [x for x in doubled if "float" in x.dtype]
            later = [x + (node if x.shape == node.shape else 1.0) for x in floats]  # computed after the op
            graph = Graph(inputs, (node, *later))
            results, wanted = self._run(graph, *sample.arrays), interpret(graph, numpy_namespace())(*sample.arrays)
            for operand, result, meant in zip(floats, results[1:], wanted[1:], strict=True):
                added = np.asarray(meant) + (results[0] - wanted[0] if operand.shape == node.shape else 0.0)
                _alike(result, added, "float64", f"{sample}: it writes to its operands")

    def test_a_kernel_of_arrays_returns_a_new_array(self) -> None:
        """Return no operand, also of one number, from a kernel for NumPy, and write to none."""
        numbers = [evolve(x, arrays=tuple(x[(slice(1),) * x.ndim] for x in x.arrays)) for x in self.samples()]
        for sample in (*self.samples(), *numbers) if self.name == reference() else ():
            given = [read_only(x) for x in sample.arrays]
            result = Lowerings(self.name).get(sample.op)(*given, **sample.attrs)
            assert not any(np.shares_memory(result, x) for x in given), f"{sample}: the result is an operand"

    def _agree(self, samples: Sequence[Sample]) -> None:
        for sample, precision in product(samples, TOLERANCE):
            (result,), (wanted,) = (
                self._run(sample.graph(precision), *sample.operands(precision)),
                _meant(sample, precision),
            )
            _alike(result, wanted, precision, str(sample))

    def test_the_gradient_agrees_with_finite_differences(self) -> None:
        """Correct the op's gradient rule, or the kernel."""
        for sample in self.samples():
            graph, draw, arrays = sample.graph(), np.random.default_rng(0), sample.arrays
            loss = f.sum(f.sin(graph.outputs[0] * 1.3 + 0.5))
            places = [i for i, x in enumerate(arrays) if x.dtype == np.float64]
            whole = Graph(graph.inputs, (loss, *gradient(loss, [graph.inputs[i] for i in places])))
            along = [draw.normal(size=x.shape) * (i in places) for i, x in enumerate(arrays)]
            high, low = (self._run(whole, *map(lambda x, v: x + h * v, arrays, along))[0] for h in (1e-5, -1e-5))
            slope = sum(np.sum(v * along[i]) for i, v in zip(places, self._run(whole, *arrays)[1:], strict=True))
            np.testing.assert_allclose(slope, (high - low) / 2e-5, rtol=1e-6, atol=1e-7, err_msg=str(sample))

    def test_equal_operands_give_equal_bits_in_any_row(self) -> None:
        """Compute each row as all others, also the last ones of an array."""
        for sample in self.samples():
            graph, rank = sample.graph(), len(sample.graph().outputs[0].shape)
            turned = [x[::-1] if x.ndim == rank > 1 else x for x in sample.arrays]
            first, again, other = (self._run(graph, *arrays)[0] for arrays in (sample.arrays, sample.arrays, turned))
            assert len({x.tobytes() for x in (first, again, other[::-1] if rank > 1 else other)}) == 1, str(sample)

    def test_its_speed_is_reported(self, record_property: Callable[[str, object], None]) -> None:
        """Report the seconds of the last sample, by the kernel and by the expansion, without asserting anything."""
        sample, backend = self.samples()[-1], self.make()
        graph, expand = sample.graph("float32"), OPS[sample.op].expansion
        arrays = [*map(backend.to_device, sample.operands("float32"))]
        wanted = {"kernel": graph.outputs[0]} | ({"expansion": expand(*graph.inputs, **sample.attrs)} if expand else {})
        for what, node in wanted.items():
            call = partial(backend.lower(Graph(graph.inputs, (node,)), {}), *arrays)
            record_property(f"{sample.op}.{self.name}: {what}", min(repeat(call, number=1, repeat=20)))
