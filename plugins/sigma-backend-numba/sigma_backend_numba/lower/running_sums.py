"""Take running sums over the batch out of scans that could then be cut: their terms are stacked, and added up later.

The gradient of a bias that acts inside a body is such a sum: nothing reads it before the last step.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from attrs import evolve, frozen

from sigma_backend_numba.lower.batch_chunks import cut
from sigma_kernel.graph import Graph, Node, map_nodes, with_inputs


@frozen(eq=False)
class Apart:
    """A scan without some of its carries, the value that each of these ends with, and where its other results are."""

    scan: Node
    sums: Mapping[int, Node]
    places: Mapping[int, int]

    def result(self, part: Node) -> Node:
        """Return a result of the former scan."""
        index = part.attrs["index"]
        if index in self.sums:
            return self.sums[index]
        return evolve(part, inputs=(self.scan,), attrs={**part.attrs, "index": self.places[index]})


def summed_later(graph: Graph) -> Graph:
    """Return a graph whose scans do not sum over the batch, if threads can then share them."""
    if all(node.op != "scan" for node in graph):
        return graph
    read: dict[int, set[int]] = {}
    for node in graph:
        if node.op == "part":
            read.setdefault(id(node.inputs[0].attrs["body"]), set()).add(node.attrs["index"])
    stacks: dict[Node, Apart] = {}

    def change(node: Node, inputs: tuple[Node, ...]) -> Node:
        if node.op == "part" and inputs[0] in stacks:
            return stacks[inputs[0]].result(node)
        image = with_inputs(node, inputs)
        terms = _terms(image.attrs["body"], image.attrs["carries"]) if image.op == "scan" else {}
        stacked = {i - len(image.attrs["body"].outputs) for i in read.get(id(image.attrs.get("body")), ())}
        if terms and not stacked & terms.keys():
            split = _stack_terms(image, terms)
            if split.scan.attrs["length"] and cut(split.scan) is not split.scan:
                stacks[image] = split
        return image

    return map_nodes(graph, change, lambda body: body)


def _terms(body: Graph, carries: int) -> dict[int, list[Node]]:
    """Return for each carry that is only added to: its term, a sum of rows that may be reshaped, outermost first."""
    used = Counter([x for node in body for x in node.inputs] + [*body.outputs])
    chains = {}
    for i, (total, now) in enumerate(zip(body.inputs[:carries], body.outputs, strict=False)):
        if now.op == "add" and total in {*now.inputs} and used[total] == used[now] == 1:
            (term,) = (x for x in now.inputs if x is not total)
            chain = [term]
            while chain[-1].op in ("reshape", "sum") and not _sums_rows(chain[-1]):
                chain.append(chain[-1].inputs[0])
            if _sums_rows(chain[-1]):
                chains[i] = chain
    return chains


def _sums_rows(node: Node) -> bool:
    return node.op == "sum" and 0 in node.attrs["axis"] and node.inputs[0].shape[0] > 1


def _stack_terms(scan: Node, terms: Mapping[int, list[Node]]) -> Apart:
    """Return the scan that stacks the terms."""
    body, carries = scan.attrs["body"], scan.attrs["carries"]
    left = [i for i in range(carries) if i not in terms]
    kept = [*left, *range(carries, len(body.inputs))]
    wanted = [body.outputs[i] for i in (*left, *range(carries, len(body.outputs)))]
    stacked = {*wanted[len(left) :]}
    wanted += dict.fromkeys(x for chain in terms.values() if (x := chain[-1].inputs[0]) not in stacked)
    first = {x: place for place, x in reversed([*enumerate(wanted)][len(left) :])}
    inner = Graph(tuple(body.inputs[i] for i in kept), tuple(wanted))
    attrs = {**scan.attrs, "body": inner, "carries": len(left)}
    image = evolve(scan, inputs=tuple(scan.inputs[i] for i in kept), attrs=attrs)
    sums = {}
    for i, chain in terms.items():
        total = _total(image, first[chain[-1].inputs[0]], chain)
        sums[i] = evolve(body.outputs[i], inputs=(scan.inputs[i], total))  # it may be wider
    moved = {i: place for place, i in enumerate([*left, *range(carries, len(body.outputs))])}
    moved |= {len(body.outputs) + i: len(wanted) + place for place, i in enumerate(left)}
    return Apart(image, sums, moved)


def _total(scan: Node, place: int, chain: list[Node]) -> Node:
    """Return the sum of the terms of all steps, given where the values are stacked that they add up."""
    *rest, first = chain
    (rows,), axis = first.inputs, tuple(k + 1 for k in first.attrs["axis"])
    stack = Node("part", (scan,), {"index": place}, (scan.attrs["length"], *rows.shape), rows.dtype)
    total = Node("sum", (stack,), {"axis": (0, *axis)}, (1, *first.shape), first.dtype)
    total = Node("reshape", (total,), {"shape": first.shape}, first.shape, first.dtype)
    for node in reversed(rest):
        total = evolve(node, inputs=(total,))
    return total
