"""The table of backends.md: what each backend can do, as the conformance suite finds it.

``python -m figures.capabilities`` in the folder ``docs`` examines the installed backends that can compute here, or
those that are named, and writes their columns to ``capabilities.json`` and the table to the page. Other columns
stay, so that a backend whose device is elsewhere is examined there.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping
from typing import Any
from unittest.mock import patch

import attrs
import numpy as np

from figures import FOLDER
from sigma_kernel import Lowerings, catalogue
from sigma_kernel.contracts import Backend, LoopProgram, Step
from sigma_kernel.graph import OPS, Graph, dtypes, interpret, numpy_namespace, op, ops, shapes, symbol
from sigma_testing import BackendSuite, Sample, samples

PAGE, KEPT = FOLDER.parent / "backends.md", FOLDER / "capabilities.json"
BEGIN, END = "<!-- capabilities: begin -->\n", "<!-- capabilities: end -->\n"
PRECISIONS = ("float32", "float64")
TOLERANCE = {"float32": 2e-5, "float64": 1e-11}  # the suite's
FAMILIES = {
    "arithmetic": "add sub mul div pow mod neg abs sign floor maximum minimum",
    "comparison and selection": "equal greater greater_equal logical_and logical_or logical_not is_finite where",
    "functions": " ".join(
        row.name for row in ops.elementwise()
        if row.shape is shapes.same and row.dtype is dtypes.floating and row.expansion is None
    ),
    "activations": "relu sigmoid silu gelu softplus softmax log_softmax",
    "reductions": "sum max argmax prod",
    "orders and running sums": "cumsum argsort sort",
    "form": "barrier stop cast reshape permute stretch slice pad concat iota array",
    "gathering": "take scatter_add",
    "products": "matmul",
    "linear algebra": "solve cholesky svd",
    "Fourier transforms": "rfft irfft",
    "convolution": "convolution convolution_input convolution_kernel",
    "pooling": "max_pool pool_argmax pool_select pool_scatter sum_pool sum_unpool",
    "costs and norms": "softmax_cross_entropy layer_norm",
    "attention": "attention attention_gradient",
    "random bits and dropout": "random_bits dropout",
    "loops (scan)": "scan part",
    "mixed precision (bfloat16, float16)": "reduce_precision mixed_matmul",
}  # fmt: skip
FEATURES = {  # what tests of the suite stand for
    "infinities, NaN, signed zeros": "edge_inputs_agree_with_the_meaning",
    "denormal numbers, or 0 for them": "denormals_are_kept_or_flushed_to_zero",
    "indices outside are refused": "indices_outside_their_axis_are_refused "
    "a_burst_with_an_index_outside_its_axis_is_refused",
    "derivatives at ties": "derivatives_at_ties_are_the_documented_ones",
    "large arrays": "every_op_agrees_with_its_meaning large_arrays_agree_with_the_meaning scalars_stay_scalars"
    " sums_of_many_terms_are_exact_within_the_bound",
    "strides": "arrays_that_are_not_contiguous_keep_their_values arrays_in_any_layout_give_the_same_results",
    "in-place updates": "a_donated_input_gives_the_same_result a_donated_input_that_is_also_a_result_survives"
    " results_survive_the_next_call arrays_on_the_device_are_copies results_share_no_memory_with_operands"
    " inputs_that_a_step_only_reads_stay_valid",
    "data read where they are": "rows_that_are_shared_train_to_the_same_bits_and_are_not_changed"
    " shared_arrays_are_not_written",
    "bursts": "one_burst_equals_single_steps_bit_for_bit training_steps_agree_with_a_handwritten_numpy_loop"
    " a_live_value_may_be_one_number_or_one_per_step a_burst_ends_after_a_non_finite_loss"
    " estimates_are_seconds_and_a_function_of_the_graph the_first_tier_computes_from_iteration_0"
    " rows_are_taken_in_the_order_of_their_indices",
    "several threads": "many_threads_may_use_one_backend_at_once many_threads_may_call_one_program_at_once",
    "equal bits each time": "equal_runs_give_equal_bits large_results_have_the_same_bits_each_time"
    " orders_of_rows_are_those_of_the_kernel graphs_of_equal_specs_are_compiled_apart",
    "ops of plugins": "ops_of_plugins_are_computed_by_their_meanings_and_expansions",
    "other dtypes are refused": "an_unknown_dtype_is_refused",
}
UNKNOWN = "figures:unknown"
Column = dict[str, str]


def examined(name: str, quick: bool = False) -> Column:
    """Return the column of a backend; a quick one leaves out the tests of the suite, and float64."""
    backend = made(name)
    precisions = PRECISIONS[:1] if quick else PRECISIONS
    column = {family: _agreeing(backend, names.split(), precisions) for family, names in FAMILIES.items()}
    if not quick:
        suite = type("Examined", (BackendSuite,), {"make": lambda self: made(name)})()
        column |= {what: _passes(suite, tests.split()) for what, tests in FEATURES.items()}
    return column | declared(backend)


def made(name: str) -> Backend:
    """Return a backend with its default settings."""
    cls: Any = catalogue().load("backend", name)
    backend: Backend = cls()
    return backend


def declared(backend: Backend) -> Column:
    """Return what a backend declares, and what shows without computing."""
    x, loss = symbol((3, 2)), symbol((), "float32")
    step = Step(Graph((x, loss), (x * 2.0, loss + 1.0)), ("x", "loss"), (), (), ("x",), ("loss",))
    program = backend.compile(step)
    fields = {one.name for one in attrs.fields(type(backend))}
    return {
        "dtypes": ", ".join(sorted(backend.dtypes)),
        "a burst is": "a call per iteration" if isinstance(program, LoopProgram) else "one call",
        "working memory is known": _yes(program.peak_bytes > 0),
        "kernels of plugins (`lowering`)": _yes(_asks_for_kernels(backend)),
        "a device by name": _yes("device" in fields),
    }


def _yes(holds: bool) -> str:
    return "yes" if holds else "no"


def _agreeing(backend: Backend, ops: Iterable[str], precisions: Iterable[str]) -> str:
    """Return the precisions in which all samples of some ops agree with their meanings."""
    every = [sample for name in ops for sample in samples()[name]]
    return ", ".join(precision for precision in precisions if _agrees(backend, every, precision)) or "no"


def _agrees(backend: Backend, every: list[Sample], precision: str) -> bool:
    graphs = [sample.graph(precision) for sample in every]
    whole = Graph(*(tuple(x for g in graphs for x in getattr(g, end)) for end in ("inputs", "outputs")))
    arrays = [x for sample in every for x in sample.operands(precision)]
    with np.errstate(all="ignore"):
        wanted = interpret(whole, numpy_namespace())(*arrays)
    try:
        found = [backend.to_host(x) for x in backend.lower(whole, {})(*map(backend.to_device, arrays))]
    except Exception:  # of any library: it does not compute them
        return False
    how = TOLERANCE[precision]
    return all(np.allclose(a, b, how, how, equal_nan=True) for a, b in zip(found, wanted, strict=True))


def _passes(suite: BackendSuite, tests: Iterable[str]) -> str:
    """Return whether tests of the suite pass."""
    try:
        for test in tests:
            getattr(suite, f"test_{test}")()
    except AssertionError:
        return "no"
    return "yes"


def _asks_for_kernels(backend: Backend) -> bool:
    """Return whether a backend looks for a plugin's kernel of an op that it has no code for."""
    unknown, x = op(UNKNOWN, shapes.same, dtypes.floating, expansion=lambda x: x + 1.0), symbol((3,))
    try:
        with patch.object(Lowerings, "get", autospec=True, return_value=None) as asked:
            backend.lower(Graph((x,), (unknown(x),)), {})
        return UNKNOWN in [name for call in asked.call_args_list for name in call.args]
    finally:
        OPS.pop(UNKNOWN)


def table(columns: Mapping[str, Column]) -> str:
    """Return the table as Markdown."""
    rows = dict.fromkeys(row for column in columns.values() for row in column)
    head = ["", *(f"`{name}`" for name in columns)]
    body = [[row, *(_cell(column.get(row, "not measured")) for column in columns.values())] for row in rows]
    return "".join(f"| {' | '.join(row)} |\n" for row in (head, ["---"] * len(head), *body))


def _cell(said: str) -> str:
    return "yes" if said == ", ".join(PRECISIONS) else said


def read() -> dict[str, Column]:
    """Return the columns that are kept."""
    found: dict[str, Column] = json.loads(KEPT.read_text("utf-8"))
    return found


def insert(page: str, columns: Mapping[str, Column]) -> str:
    """Return the page with this table between its marks."""
    before, _, rest = page.partition(BEGIN)
    return f"{before}{BEGIN}\n{table(columns)}\n{END}{rest.partition(END)[2]}"


if __name__ == "__main__":
    from sigma_bench.installed import installed_backends  # this room is not needed to read the table

    columns = read() if KEPT.exists() else {}
    for name in sys.argv[1:] or installed_backends(print):
        columns[name] = examined(name)
        print(name, columns[name], flush=True)
        KEPT.write_text(json.dumps(columns, indent=2) + "\n", encoding="utf-8")
    PAGE.write_text(insert(PAGE.read_text("utf-8"), columns), encoding="utf-8")
