"""Graphs in ONNX: every op by the table of its kind, loops as Scan."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from onnx import helper

from sigma_export_onnx import elementwise, forms, products, spectra
from sigma_export_onnx.sizes import AnyNode, AnyRows
from sigma_export_onnx.writer import GraphWriter, SharedNames, declare_value
from sigma_kernel import SigmaConfigError

TABLE = {**elementwise.TABLE, **forms.TABLE, **products.TABLE, **spectra.TABLE}
KEPT = {
    "prod",
    "relu",
    "sigmoid",
    "gelu",
    "softplus",
    "softmax",
    "log_softmax",
    "layer_norm",
}  # composites that ONNX has
REFUSED = {
    "random_bits": "ONNX has no generator that draws the same numbers. Leave out layers that draw while they predict.",
    **dict.fromkeys(
        ("pool_argmax", "pool_select", "pool_scatter", "sum_unpool", "convolution_kernel"),
        "ONNX has no such op: it belongs to gradients. Predict without them.",
    ),
    **dict.fromkeys(
        ("solve", "cholesky", "svd"),
        "ONNX has no linear algebra beyond products. Use it in a cost or an optimiser, not in what predicts.",
    ),
}


def graph(
    merged: AnyRows,
    names: Sequence[str],
    outputs: Sequence[str],
    arrays: Mapping[str, np.ndarray],
    types: Mapping[str, str],
) -> tuple[Any, dict[str, np.ndarray]]:
    """Return a graph in ONNX, and its initialisers to add; ``names`` are the names of its inputs.

    The inputs in ``arrays`` are initialisers. Others may have types that graphs of Sigma lack, such as uint8. An output
    with a taken name is renamed.
    """
    node_names: dict[Any, str] = dict(zip(merged.inputs, names, strict=True))
    given = {node_names[x]: x for x in merged.inputs if node_names[x] not in arrays}
    writer = GraphWriter(SharedNames(next(iter(given)), {*names}))
    outputs = [writer.shared.name(name) for name in outputs]
    node_names |= {x: writer.cast(n, x.dtype) for n, x in given.items() if types.get(n, x.dtype) != x.dtype}
    _write_outputs(writer, merged.outputs, outputs, node_names)
    read = {name for node in writer.nodes for name in _read(node)}
    initial = {name: values for name, values in arrays.items() if name in read} | writer.shared.arrays
    proto = helper.make_graph(
        [*writer.shared.heads, *writer.nodes],
        "network",
        [declare_value(name, x.shape, types.get(name, x.dtype)) for name, x in given.items()],
        [declare_value(name, x.shape, x.dtype) for name, x in zip(outputs, merged.outputs, strict=True)],
    )
    return proto, initial


def _read(node: Any) -> Iterator[str]:
    """Yield the names that a node reads, also in the body of a loop."""
    yield from node.input
    for attribute in node.attribute:
        for inner in attribute.g.node:
            yield from _read(inner)


def _write_outputs(
    w: GraphWriter, values: Sequence[AnyNode], outputs: Sequence[str], node_names: dict[Any, str]
) -> None:
    """Write the nodes of values, and give these the names of outputs."""
    there = [*_order_values(values, node_names)]
    for value in there:
        w.origin = value.origin
        if value.op == "scan":
            parts = sorted({x.attrs["index"] for x in there if x.op == "part" and x.inputs[0] is value})
            node_names |= {(value, part): name for part, name in _write_scan(w, value, node_names, parts).items()}
        elif value.op == "part":
            node_names[value] = node_names[value.inputs[0], value.attrs["index"]]
        elif value.op in TABLE:
            node_names[value] = TABLE[value.op](w, value, *(node_names[x] for x in value.inputs))
        else:
            why = REFUSED.get(value.op, "ONNX has no such op. Give the op an expansion.")
            raise SigmaConfigError(f"{value.origin or 'the network'}: {value.op!r} cannot be exported. {why}")
    for value, name in zip(values, outputs, strict=True):
        w.add("Identity", node_names[value], name=name)


def _order_values(values: Sequence[AnyNode], known: Container[Any]) -> Iterator[AnyNode]:
    """Yield every value that others depend on once, operands first, except for known ones."""
    seen = set[AnyNode]()
    stack = [(value, False) for value in reversed(values)]
    while stack:
        value, ready = stack.pop()
        if ready:
            yield value
        elif value not in seen and value not in known:
            seen.add(value)
            stack += [(value, True), *((operand, False) for operand in reversed(value.inputs))]


def _write_scan(w: GraphWriter, node: AnyNode, known: Mapping[Any, str], wanted: Sequence[int]) -> dict[int, str]:
    """Write a loop as Scan, and return the names of its last carries and of the stacks that are wanted."""
    body, carries, sequences = (node.attrs[name] for name in ("body", "carries", "sequences"))
    given, stacks = [known[x] for x in node.inputs], [part for part in wanted if part >= carries]
    own = [w.name("carry" if i < carries else "step") for i in range(carries + sequences)]
    results = (*body.outputs, *body.inputs[:carries])
    values = [*body.outputs[:carries], *(results[part] for part in stacks)]
    inner, outputs = GraphWriter(w.shared), [w.name("result") for _ in values]
    _write_outputs(inner, values, outputs, dict(zip(body.inputs, [*own, *given[carries + sequences :]], strict=True)))
    inputs = [declare_value(name, x.shape, x.dtype) for name, x in zip(own, body.inputs, strict=False)]
    read = given[: carries + sequences]
    if not sequences:  # Scan counts steps by a sequence
        inputs.append(declare_value(w.name("step"), (), "bool"))
        read.append(w.add("Expand", w.array(False, "bool"), w.vector((node.attrs["length"],))))
    described = [declare_value(name, x.shape, x.dtype) for name, x in zip(outputs, values, strict=True)]
    ways = {"scan_input_directions": [1] * (sequences or 1), "scan_output_directions": [1] * len(stacks)}
    backwards = {name: each for name, each in ways.items() if each and node.attrs["reverse"]}
    names = [w.name("Scan") for _ in values]
    w.add_node(
        "Scan", read, names, body=helper.make_graph(inner.nodes, w.name("body"), inputs, described),
        num_scan_inputs=sequences or 1, **backwards,
    )  # fmt: skip
    return dict(zip([*range(carries), *stacks], names, strict=True))
