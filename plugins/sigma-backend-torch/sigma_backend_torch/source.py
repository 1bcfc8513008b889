"""A graph as one Python function without branches: a line for each op, with constants computed beforehand.

Calling PyTorch's functions by name, with attributes bound beforehand, takes a third of the time of interpreting.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import torch

from sigma_backend_torch.loops import Run, WrittenScan, stacks
from sigma_backend_torch.namespace import DIRECT, aten
from sigma_kernel.contracts import Array
from sigma_kernel.graph import ELEMENTWISE, OPS, Graph, Namespace, Node, meaning_of, topological_order

OPENS = ("input", "constant")
ATTRIBUTES: dict[str, Callable[..., Any]] = {"torch:addcmul": torch.addcmul, "torch:addcdiv": torch.addcdiv}
NEW = {  # ops whose results have their own storage; any other may return a part of an operand
    *(
        name
        for name, row in OPS.items()
        if row.shape in ELEMENTWISE and ":" not in name and not row.view and name != "cast"
    ),
    *("matmul", "softmax", "log_softmax", "convolution", "convolution_kernel", "random_bits", "sigmoid", "relu"),
    *("torch:addmm", "torch:addcmul", "torch:addcdiv", "torch:kept", "torch:rectified", "torch:total"),
    *("torch:tanh_slope", "torch:logistic_slope"),
}
INTO = {  # ops of which each entry of the result depends on the same entries of operands, and the name of ``out``
    **dict.fromkeys(("add", "sub", "mul", "div", "maximum", "minimum", "neg", "abs", "exp", "log", "sqrt"), "out"),
    **dict.fromkeys(("tanh", "sigmoid", *ATTRIBUTES), "out"),
    **dict.fromkeys(("torch:tanh_slope", "torch:logistic_slope"), "grad_input"),
}
ELSEWHERE = {**INTO, **dict.fromkeys(("matmul", "torch:addmm", "concat"), "out")}  # ops that write into other storage
WRITING: dict[str, Callable[..., Any]] = {  # in place of those in DIRECT
    "torch:tanh_slope": aten.tanh_backward.grad_input,
    "torch:logistic_slope": aten.sigmoid_backward.grad_input,
}


def function(
    graph: Graph, ns: Namespace, replaced: Mapping[int, int] | None = None, written: Sequence[Node] = ()
) -> Run:
    """Return a function from input arrays to output arrays.

    ``replaced`` maps outputs to inputs that are not used any more: where possible, results are written into these.
    Without it, nothing is written into anything. ``written`` are nodes whose storage the function takes as its last
    arguments.
    """
    place = graph.places()
    fixed = dict(_compute_constants(graph, ns))
    order, into = _schedule(graph, fixed, replaced)
    targets = {node: f"v{place[x]}" for node, x in into.items()} | {node: f"o{place[node]}" for node in written}
    names: dict[str, Any] = {f"v{place[node]}": value for node, value in fixed.items()}
    lines = [*_lines(order, graph, place, targets, fixed, ns, names, replaced is not None)]
    arguments = ", ".join([*(f"v{place[x]}" for x in graph.inputs), *(targets[x] for x in written)])
    results = "".join(f"v{place[x]}, " for x in graph.outputs)
    text = "\n    ".join([f"def run({arguments}):", *lines, f"return ({results})"])
    exec(compile(text, "<step>", "exec"), names)
    run: Run = names["run"]
    return run


def _compute_constants(graph: Graph, ns: Namespace) -> Iterator[tuple[Node, Array]]:
    """Yield what depends on no input, and its value."""
    values: dict[Node, Array] = {}
    for node in graph:
        if node.op == "constant":
            values[node] = ns.array(node.attrs["value"], node.dtype)
        elif node.op not in ("input", "scan", "part") and all(x in values for x in node.inputs):
            values[node] = meaning_of(node, ns)(*(values[x] for x in node.inputs))
    yield from values.items()


# -- order -------------------------------------------------------------------------------------------------------------
def _schedule(
    graph: Graph, fixed: Mapping[Node, Array], replaced: Mapping[int, int] | None
) -> tuple[list[Node], dict[Node, Node]]:
    """Return nodes in the order of their computation, and the values that results are written into.

    Those of the last outputs come first: of a step, the gradients of the last layers, which then keep nothing.
    Updates come last, so that nothing reads an input that has been overwritten. Other results are written into
    operands that nothing reads any more.
    """
    nodes = [x for x in topological_order(graph.outputs[::-1]) if x.op not in OPENS and x not in fixed]
    if replaced is None:
        return nodes, {}
    wanted = {graph.outputs[out]: graph.inputs[into] for out, into in replaced.items() if _is_single_output(graph, out)}
    late: set[Node] = set()
    for node in nodes:
        if node in wanted or not late.isdisjoint(node.inputs):
            late.add(node)
    order = [*(x for x in nodes if x not in late), *(x for x in nodes if x in late)]
    shared = _find_storage(graph, order)
    last = {origin: i for i, node in enumerate(order) for x in node.inputs for origin in shared[x]}
    last |= {origin: len(order) for x in graph.outputs for origin in shared[x]}
    into: dict[Node, Node] = {}
    for i, node in enumerate(order):
        free = (x for x in node.inputs if x.op in NEW and x not in fixed)
        places = (x for x in (wanted.get(node), *free) if x is not None and last.get(x, -1) <= i)
        if (place := next((x for x in places if _fits(node, x, shared)), None)) is not None:
            into[node] = place
    return order, into


def _is_single_output(graph: Graph, out: int) -> bool:
    return sum(x is graph.outputs[out] for x in graph.outputs) == 1


def _fits(node: Node, into: Node, shared: Mapping[Node, frozenset[Node]]) -> bool:
    """Return whether a result may be written into a value: no operand is a part of it, in another order."""
    alike = node.op in INTO and node.shape == into.shape and node.dtype == into.dtype != "uint32"
    return alike and all(x is into or into not in shared[x] for x in node.inputs)


def _find_storage(graph: Graph, order: Sequence[Node]) -> dict[Node, frozenset[Node]]:
    """Return the values whose storage each value may share: inputs, and results with their own storage."""
    shared = {x: frozenset((x,) if x.op == "input" or x.op in NEW else ()) for x in graph}
    shared |= {x: frozenset((x,)) for x in graph.inputs}
    for node in order:
        if node.op not in NEW:
            shared[node] = frozenset().union(*(shared[x] for x in node.inputs))
    return shared


def new(graph: Graph) -> list[bool]:
    """Return for each output whether it has its own storage, which no other output shares."""
    return [x.op in NEW and _is_single_output(graph, out) for out, x in enumerate(graph.outputs)]


# -- lines -------------------------------------------------------------------------------------------------------------
def _lines(
    order: Sequence[Node], graph: Graph, place: Mapping[Node, int], targets: Mapping[Node, str],
    fixed: Mapping[Node, Array], ns: Namespace, names: dict[str, Any], writes: bool,
) -> Iterator[str]:  # fmt: skip
    """Yield a line for each node, and one that deletes values after their last use; name the functions."""
    kept = {*graph.outputs, *graph.inputs, *fixed}
    last = {x: i for i, node in enumerate(order) for x in node.inputs if x not in kept}
    parts: dict[Node, dict[int, Node]] = {}
    for x in order:
        if x.op == "part":
            parts.setdefault(x.inputs[0], {})[x.attrs["index"]] = x
    for i, node in enumerate(order):
        number = place[node]
        if node.op == "scan":
            names[f"f{number}"] = _build_scan(node, ns, parts.get(node, {}), writes)
        else:
            names[f"f{number}"] = (node in targets and WRITING.get(node.op)) or _find_function(node, ns)
        target = f", {ELSEWHERE[node.op]}={targets[node]}" if node in targets else ""
        cut = _cut(node) if node.op == "slice" else None
        called = f"f{number}({_operands(node, place)}{target})"
        yield f"v{number} = " + (f"v{place[node.inputs[0]]}.narrow{cut}" if cut else called)
        done = sorted(f"v{place[x]}" for x in {*node.inputs} if last.get(x) == i)
        if done:
            yield f"del {', '.join(done)}"


def _operands(node: Node, place: Mapping[Node, int]) -> str:
    """Return the operands of a call, and attributes that PyTorch's function takes as they are."""
    listed = ", ".join(f"v{place[x]}" for x in node.inputs)
    if node.op == "concat" and node.dtype != "uint32":
        return f"({listed},), {node.attrs['axis']}"
    return f"{listed}, value={node.attrs['value']}" if node.op in ATTRIBUTES else listed


def _build_scan(node: Node, ns: Namespace, wanted: Mapping[int, Node], writes: bool) -> Callable[..., Any]:
    """Return the function of a scan, which writes its stacks row by row."""
    how = {name: x for name, x in node.attrs.items() if name != "body"}
    body: Graph = node.attrs["body"]
    if not writes or not how["length"]:
        run = function(body, ns)
        return lambda *operands: ns.own["scan"](ns, *operands, run=run, wanted=wanted, **how)
    arrays, fixed = stacks(body.outputs, how["carries"], wanted, ns.dtype), dict(_compute_constants(body, ns))
    able = {x for x in body.outputs if _writes(x) and x not in fixed}
    first = {body.outputs[x.out]: x for x in reversed(arrays) if body.outputs[x.out] in able}
    written = tuple(x for x in arrays if x in first.values())
    copied = tuple(x for x in arrays if x not in written)
    loop = WrittenScan(**how, outputs=body.outputs, written=written, copied=copied, wanted=frozenset(wanted))
    return partial(loop.run, function(body, ns, {}, [body.outputs[x.out] for x in written]))


def _writes(node: Node) -> bool:
    """Return whether a node's result is written into given storage."""
    return node.op in ELSEWHERE and node.dtype != "uint32" and (node.op != "torch:addmm" or len(node.shape) == 2)


def _find_function(node: Node, ns: Namespace) -> Callable[..., Any]:
    """Return the function that computes a node."""
    if node.dtype != "uint32" and node.op in DIRECT:
        return DIRECT[node.op]
    if node.op in ATTRIBUTES:
        return ATTRIBUTES[node.op]
    return _find_direct(node) or meaning_of(node, ns)


def _find_direct(node: Node) -> Callable[..., Any] | None:
    """Return a function of PyTorch's with the attributes in the order in which it takes them."""
    if node.op == "permute" and tuple(node.attrs["axes"]) == (1, 0):
        return DIRECT["torch:swap"]
    if node.op == "concat" and node.dtype != "uint32":
        return torch.cat  # type: ignore[no-any-return]
    return torch.addmm if node.op == "torch:addmm" and len(node.shape) == 2 else None


def _cut(node: Node) -> tuple[int, int, int] | None:
    """Return axis, start and length of a slice along one axis; None if it is another."""
    cuts = [*zip(node.attrs["start"], node.attrs["stop"], node.attrs["step"], node.inputs[0].shape, strict=True)]
    axes = [axis for axis, (start, stop, step, side) in enumerate(cuts) if (start, stop, step) != (0, side, 1)]
    if len(axes) != 1 or cuts[axes[0]][2] != 1:
        return None
    start, stop = cuts[axes[0]][:2]
    return axes[0], start, stop - start
