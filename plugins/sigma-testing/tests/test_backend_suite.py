"""The backend suite passes on the null backend, which poisons donated inputs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from attrs import evolve

from sigma_kernel import functions as f
from sigma_kernel.contracts import Backend, Program, Step
from sigma_kernel.graph.meaning import interpret
from sigma_kernel.graph.namespace import numpy_namespace, total
from sigma_kernel.graph.node import Graph, symbol
from sigma_testing.backend import BackendSuite
from sigma_testing.null import NullBackend

from .faults import check_fails


class TestNull(BackendSuite):
    def make(self) -> Backend:
        return NullBackend()


@pytest.mark.parametrize(("dtype", "poison"), [("float32", np.nan), ("int32", 2**31 - 1), ("bool", True)])
def test_a_donated_input_is_poisoned_and_others_are_unchanged(dtype: str, poison: Any) -> None:
    backend, x, y = NullBackend(), symbol((3,), dtype), symbol((3,), dtype)
    given, kept = np.zeros(3, dtype), np.zeros(3, dtype)
    (result,) = backend.lower(Graph((x, y), (f.where(f.equal(x, y), x, y),)), {0: 0})(given, kept)
    np.testing.assert_array_equal(given, np.full(3, poison, dtype))
    np.testing.assert_array_equal(kept, np.zeros(3, dtype))
    np.testing.assert_array_equal(result, np.zeros(3, dtype))


# -- the suite detects faults ------------------------------------------------------------------------------------------
class Faulty(NullBackend):
    """Computes right, with something changed."""

    def __init__(self, change: Callable[..., Any] = lambda values, *_: values) -> None:
        self.change = change

    def lower(self, graph: Graph, donate: Mapping[int, int]) -> Callable[..., Sequence[Any]]:
        run = interpret(graph, numpy_namespace())
        return lambda *arrays: self.change([np.array(x) for x in run(*arrays)], graph, arrays)


class Sharing(NullBackend):
    """Returns the caller's own memory."""

    def to_device(self, host: np.ndarray) -> np.ndarray:
        return host


class BySpecs(Faulty):
    """Keeps what it compiled by the specs of the inputs and the last ops."""

    def __init__(self) -> None:
        super().__init__()
        self.kept: dict[Any, Callable[..., Any]] = {}

    def lower(self, graph: Graph, donate: Mapping[int, int]) -> Callable[..., Sequence[Any]]:
        key = tuple(str(x.spec) for x in graph.inputs), tuple(x.op for x in graph.outputs)
        return self.kept.setdefault(key, super().lower(graph, donate))


class Sorting(NullBackend):
    """Takes rows in another order."""

    def take(self, array: np.ndarray, rows: np.ndarray) -> np.ndarray:
        return array[np.sort(rows)]


class WritesWhatItShares(NullBackend):
    """Writes to the memory of the host."""

    def share(self, host: np.ndarray) -> np.ndarray:
        host[...] = host
        return host


class Exposing(NullBackend):
    """Gives its own memory to the host."""

    def to_host(self, array: Any) -> np.ndarray:
        return np.asarray(array)


class Flat(NullBackend):
    """Reads the memory of an array from its start, whatever its layout."""

    def to_device(self, host: np.ndarray) -> np.ndarray:
        base = host if host.base is None else np.asarray(host.base)
        whole = base.ravel(order="K")
        return np.array(whole[: host.size].reshape(host.shape)) if whole.size >= host.size else np.array(host)


class Forgetful(NullBackend):
    """Overwrites the results of its previous call."""

    def lower(self, graph: Graph, donate: Mapping[int, int]) -> Callable[..., Sequence[Any]]:
        run, results = super().lower(graph, donate), []

        def call(*arrays: Any) -> Sequence[Any]:
            new = run(*arrays)
            if not results:
                results.extend(new)
            for old, value in zip(results, new, strict=True):
                old[...] = value
            return results

        return call


class Views(NullBackend):
    """Returns views of operands."""

    def lower(self, graph: Graph, donate: Mapping[int, int]) -> Callable[..., Sequence[Any]]:
        run = interpret(graph, numpy_namespace())
        return lambda *arrays: [np.asarray(x) for x in run(*arrays)]


class KnowsItsOps(NullBackend):
    """Has no code for an op of a plugin."""

    def lower(self, graph: Graph, donate: Mapping[int, int]) -> Callable[..., Sequence[Any]]:
        for node in graph:
            if ":" in node.op:
                raise KeyError(node.op)
        return super().lower(graph, donate)


class OneByOne(NullBackend):
    """Adds rows one after another, as NumPy does."""

    def lower(self, graph: Graph, donate: Mapping[int, int]) -> Callable[..., Sequence[Any]]:
        run = interpret(graph, evolve(numpy_namespace(), sum=total))
        return lambda *arrays: [np.array(x) for x in run(*arrays)]


class FirstRows(NullBackend):
    """Trains on the first minibatch of a burst again and again."""

    def compile(self, step: Step, in_place: bool = True) -> Program:
        program = super().compile(step, in_place)

        def run(state: Any, block: Any, rows: np.ndarray, steer: Any, n: int) -> Any:
            return program.run(state, block, np.repeat(rows[:1], n, axis=0), steer, n)

        return SimpleNamespace(run=run, peak_bytes=0)  # type: ignore[return-value]


class FirstRate(FirstRows):
    """Uses the first live value of a burst for all of it."""

    def compile(self, step: Step, in_place: bool = True) -> Program:
        program = NullBackend.compile(self, step, in_place)

        def run(state: Any, block: Any, rows: np.ndarray, steer: Any, n: int) -> Any:
            first = {name: np.ravel(value)[0] for name, value in steer.items()}
            return program.run(state, block, rows, first, n)

        return SimpleNamespace(run=run, peak_bytes=0)  # type: ignore[return-value]


class InPlace(Faulty):
    """Adds to its operands."""

    def lower(self, graph: Graph, donate: Mapping[int, int]) -> Callable[..., Sequence[Any]]:
        call = super().lower(graph, donate)

        def run(*arrays: Any) -> Sequence[Any]:
            results = call(*arrays)
            for array in arrays:
                if array.dtype.kind == "f":
                    array += 1.0
            return results

        return run


class Random(NullBackend):
    """Draws orders from a generator of its own."""

    def permutation(self, seed: int, stream: int, epoch: int, rows: int) -> np.ndarray:
        return np.random.default_rng((seed, stream, epoch)).permutation(rows)


def _half(values: list[np.ndarray], *_: Any) -> list[np.ndarray]:
    return [x.astype("float16").astype(x.dtype) if x.dtype.kind == "f" else x for x in values]


def _beyond_2000(values: list[np.ndarray], *_: Any) -> list[np.ndarray]:
    for x in values:
        x.reshape(-1)[2000:] = 0
    return values


def _last_bit(values: list[np.ndarray], *_: Any) -> list[np.ndarray]:
    by = np.float32(1.0 + np.random.default_rng().integers(8) * 2.0**-22)
    return [x * by if x.dtype == np.float32 and x.size > 2000 else x for x in values]


def _no_nan(values: list[np.ndarray], *_: Any) -> list[np.ndarray]:
    return [np.nan_to_num(x) if x.dtype.kind == "f" else x for x in values]


def _no_empty(values: list[np.ndarray], *_: Any) -> list[np.ndarray]:
    return [x if x.size else np.zeros(1, x.dtype) for x in values]


BACKENDS: dict[str, tuple[Callable[[], Backend], str]] = {
    "the caller's memory": (Sharing, "test_arrays_on_the_device_are_copies"),
    "graphs by their specs": (BySpecs, "test_graphs_of_equal_specs_are_compiled_apart"),
    "sorted rows": (Sorting, "test_rows_are_taken_in_the_order_of_their_indices"),
    "memory that it shares": (WritesWhatItShares, "test_shared_arrays_are_not_written"),
    "its own memory": (Exposing, "test_results_share_no_memory_with_operands"),
    "views of operands": (Views, "test_results_share_no_memory_with_operands"),
    "the results of the previous call": (Forgetful, "test_results_survive_the_next_call"),
    "half precision": (lambda: Faulty(_half), "test_every_op_agrees_with_its_meaning"),
    "from 2,000 elements on": (lambda: Faulty(_beyond_2000), "test_large_arrays_agree_with_the_meaning"),
    "one row after another": (OneByOne, "test_sums_of_many_terms_are_exact_within_the_bound"),
    "other bits each time": (lambda: Faulty(_last_bit), "test_large_results_have_the_same_bits_each_time"),
    "no code for a plugin's op": (KnowsItsOps, "test_ops_of_plugins_are_computed_by_their_meanings_and_expansions"),
    "strided arrays": (Flat, "test_arrays_that_are_not_contiguous_keep_their_values"),
    "transposed operands": (Flat, "test_arrays_in_any_layout_give_the_same_results"),
    "no NaN": (lambda: Faulty(_no_nan), "test_edge_inputs_agree_with_the_meaning"),
    "no empty arrays": (lambda: Faulty(_no_empty), "test_edge_inputs_agree_with_the_meaning"),
    "the first rows of a burst": (FirstRows, "test_training_steps_agree_with_a_handwritten_numpy_loop"),
    "the first rate of a burst": (FirstRate, "test_a_live_value_may_be_one_number_or_one_per_step"),
    "its own orders of rows": (Random, "test_orders_of_rows_are_those_of_the_kernel"),
    "operands that change": (InPlace, "test_inputs_that_a_step_only_reads_stay_valid"),
}


@pytest.mark.parametrize("name", BACKENDS)
def test_a_fault_in_a_backend_is_caught(name: str) -> None:
    class Suite(BackendSuite):
        def make(self) -> Backend:
            return BACKENDS[name][0]()

    check_fails(Suite(), BACKENDS[name][1])
