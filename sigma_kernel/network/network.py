"""The network: named layers in execution order, their shapes, and the forward pass as a graph.

:meth:`Network.build` orders and names layers; :meth:`Network.declare` traces them once to infer shapes, parameters,
layer state and live settings by address; :meth:`Network.forward` traces them on given nodes. Addresses are relative to
``network.layers``: ``2-dense.weights``, ``3-residual.body.0-dense.weights``.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import cached_property
from inspect import ismethod
from textwrap import shorten
from typing import Any

import numpy as np
from attrs import evolve, field, frozen

from sigma_kernel import functions as f
from sigma_kernel.errors import SigmaNetworkError, suggest_name
from sigma_kernel.graph.node import Node, Spec, symbol, topological_order
from sigma_kernel.graph.random import Key, Streams
from sigma_kernel.graph.regions import RecomputedRegion
from sigma_kernel.network.architecture import Architecture, Placed, check_size, label, place, size, write
from sigma_kernel.network.outline import Outline, outline
from sigma_kernel.network.tracing import WEIGHTS, Nodes, Resolve, Shapes, Totals, Trace, live_settings
from sigma_kernel.settings import signature

LAYERS = "network.layers."  # the prefix of parameters' addresses
_BATCH = 2  # rows in the trace that infers shapes; with 1, broadcasting could hide a superfluous axis


@frozen(eq=False, repr=False)
class Forward:
    """A network traced on a batch: values by layer, predictions by output, weighted costs, new state.

    ``totals`` are those of costs whose rows have unequal weights; ``regions`` are recomputed in the backward pass.
    ``loss`` is the sum of the costs, None without costs.
    """

    values: dict[str, Node]
    predictions: dict[str, Node]
    costs: dict[str, Node]
    state: dict[str, Node]
    totals: dict[str, Totals] = field(factory=dict)
    regions: Sequence[RecomputedRegion] = ()

    @cached_property
    def loss(self) -> Node | None:
        """Return the sum of the costs; None without any."""
        first, *rest = self.costs.values() or (None,)
        return first if first is None else sum(rest, start=first)

    @property
    def prediction(self) -> Node:
        """Return the prediction of the first output."""
        return next(iter(self.predictions.values()))

    def loss_or_fail(self) -> Node:
        """Return the sum of the costs; raises SigmaNetworkError if there are none."""
        if self.loss is None:
            raise SigmaNetworkError("network: there is no cost to minimise. Add one, such as SquaredDifference().")
        return self.loss


@frozen(eq=False, repr=False)
class Network:
    """Layers in execution order; immutable. Use :meth:`build` to make one."""

    layers: tuple[Placed, ...]
    ends: Sequence[Architecture] = field(repr=False)
    sizes: Mapping[str, tuple[int, ...]] | None = None  # by layer, those taken from the data; None: not yet

    @classmethod
    def build(cls, ends: Architecture | Sequence[Architecture]) -> Network:
        """Build the network of all layers that lead to one or several ends.

        Raises SigmaNetworkError for cycles, links to layers outside the network, duplicate names, and layers that do
        not accept their number of inputs.
        """
        every: list[Any] = list(ends) if isinstance(ends, list | tuple) else [ends]
        if not every:
            raise SigmaNetworkError("network: there is no layer. Begin with an Input(...).")
        for end in every:
            if not isinstance(end, Architecture):
                raise SigmaNetworkError(f"network: {end!r} is not an architecture. Set one, such as Input(4).")
        layers = place(every)
        check_size(sum(size(placed.layer) for placed in layers))
        _check_links(layers)
        by_name = {placed.name: placed.layer for placed in layers}
        for placed in layers:
            _check_place(placed, [by_name[source] for source in placed.sources])
        return cls(layers, every)

    @property
    def takes_sizes(self) -> bool:
        """Return whether an input or an output takes its size from the data, and has not done so yet."""
        return self.sizes is None and any(placed.layer.takes_size for placed in (*self.inputs, *self.outputs))

    def with_sizes(self, sizes: Mapping[str, Sequence[int]]) -> Network:
        """Return the network with these sizes, by layer, of inputs and outputs that take them from the data."""
        sides = {name: tuple(size) for name, size in sizes.items()}
        grown = {x.name: x.layer.with_size(sides[x.name]) for x in self.outputs if x.name in sides}
        layers = (evolve(x, layer=grown[x.name]) if x.name in grown else x for x in self.layers)
        return evolve(self, layers=tuple(layers), sizes=sides)

    def __getitem__(self, name: str) -> Placed:
        return next(placed for placed in self.layers if placed.name == name)

    def __str__(self) -> str:
        return write(self.ends)

    def __repr__(self) -> str:
        return f"Network({shorten(str(self), 400, placeholder=' ...')})"

    def summary(self) -> Outline:
        """Return a table of the layers, with the shapes and counts that follow from inputs."""
        return outline(self.layers, settled=self.sizes is not None)

    def _repr_html_(self) -> str:
        return self.summary()._repr_html_()

    def _role(self, role: str) -> tuple[Placed, ...]:
        return tuple(placed for placed in self.layers if placed.layer.role == role)

    @cached_property
    def inputs(self) -> tuple[Placed, ...]:
        """Return the layers that read sections of the data."""
        return self._role("input")

    @cached_property
    def costs(self) -> tuple[Placed, ...]:
        """Return the layers whose output is minimised."""
        return self._role("cost")

    @cached_property
    def targeted_costs(self) -> tuple[Placed, ...]:
        """Return the costs that read targets; others compare their inputs with each other."""
        return tuple(placed for placed in self.costs if placed.layer.targets)

    @cached_property
    def outputs(self) -> tuple[Placed, ...]:
        """Return the layers marked as outputs; by default, the inputs of costs, or else the last layer."""
        judged = dict.fromkeys(cost.sources[0] for cost in self.costs)
        return self._role("output") or tuple(self[name] for name in judged) or self.layers[-1:]

    @cached_property
    def _leading(self) -> set[str]:
        """Return the names of the layers that lead to outputs, and of the outputs."""
        names = {placed.name for placed in self.outputs}
        for placed in reversed(self.layers):  # sources come first
            names |= {*placed.sources} if placed.name in names else set()
        return names

    @property
    def samples(self) -> tuple[str, ...]:
        """Return the sections of the data that a prediction reads: those of inputs that lead to outputs."""
        return tuple(dict.fromkeys(placed.layer.section for placed in self.inputs if placed.name in self._leading))

    def sections(self, costs: bool = True, there: Collection[str] = ()) -> tuple[str, ...]:
        """Return the sections of the data that are read by inputs and, unless excluded, by costs.

        Sample weights are among them if they are ``there``, or named by a cost.
        """
        read = [placed.layer.section for placed in self.inputs]
        read += [placed.layer.targets for placed in self.targeted_costs if costs]
        weights = [placed.layer.weights for placed in self.costs if costs]
        return tuple(dict.fromkeys(read + [name for name in weights if name in there or name != WEIGHTS]))

    def weights(self, there: Collection[str]) -> tuple[str, ...]:
        """Return the sections of sample weights in the data; the default one, unless an input reads it."""
        read = {*self.sections(False), *(placed.layer.targets for placed in self.targeted_costs)}
        names = dict.fromkeys(placed.layer.weights for placed in self.costs)
        return tuple(name for name in names if name in there and (name != WEIGHTS or name not in read))

    def targets(self, output: str = "") -> str:
        """Return the section with the targets of an output, by default the first.

        Raises SigmaNetworkError if there is no cost with targets.
        """
        if not self.targeted_costs:
            raise SigmaNetworkError("network: there is no cost with targets. Add one, such as SquaredDifference().")
        cost = self._judge(self[output] if output else self.outputs[0], self.targeted_costs)
        if cost is None and output:
            raise SigmaNetworkError(f"{output}: no cost compares this output with targets. Add one, or leave it out.")
        return str((cost or self.targeted_costs[0]).layer.targets)

    def _judge(self, output: Placed, costs: Sequence[Placed] | None = None) -> Placed | None:
        """Return the first cost that an output leads to, of all or of some."""
        return next((x for x in (self.costs if costs is None else costs) if x.sources[0] == output.name), None)

    def estimated_section(self, output: str = "") -> str:
        """Return the section whose numbers an output, by default the first, estimates; "" for classes and others."""
        ends = [self[output] if output else self.outputs[0]]
        for placed in self.layers:  # sources come first
            ends += [placed] if placed.layer.reshapes and placed.sources[0] in [end.name for end in ends] else []
        judge = next((cost for end in ends if (cost := self._judge(end))), None)
        if judge is None or judge.layer.chooses or judge.layer.decides or not judge.layer.estimates:
            return ""
        return str(judge.layer.targets)

    def choosing(self) -> tuple[str, ...]:
        """Return the outputs whose predictions are class probabilities."""
        judges = {output.name: self._judge(output) for output in self.outputs}
        return tuple(name for name, judge in judges.items() if judge and judge.layer.chooses)

    def classify(self, output: str, predictions: np.ndarray) -> tuple[np.ndarray, int] | None:
        """Return the index of the most probable class in each row, and the number of classes; None for no classes.

        Of equal ones, it is the lowest.  The rows are predictions, finite or not, or targets like them.
        """
        judge = self._judge(self[output])
        if judge is not None and judge.layer.chooses:
            return predictions.argmax(axis=-1), predictions.shape[-1]
        if judge is not None and judge.layer.decides and predictions.shape[1:] in ((), (1,)):
            return (predictions.reshape(-1) > 0.5).astype(np.int64), 2
        return None

    # -- tracing -------------------------------------------------------------------------------------------------------
    def declare(self, sections: Mapping[str, Spec], precision: str, resolve: Resolve) -> Shapes:
        """Trace the network once to infer its requirements; ``sections`` are specs of one sample.

        Raises SigmaNetworkError with the layer's name for incompatible shapes.
        """
        words = [symbol((2,), "uint32", "key"), *(symbol((), "uint32", name) for name in ("iteration", "row", "scan"))]
        key = Key(*words, Streams())  # type: ignore[arg-type,call-arg]  # mypy does not count unpacked arguments
        trace = Trace(resolve, True, key, precision, shapes=Shapes(streams=key.streams))
        data = {name: symbol((_BATCH, *spec.shape), spec.dtype, name) for name, spec in sections.items()}
        forward = self.forward(trace, data)
        trace.check_shares()
        trace.check_loops(forward.values, [*words, *data.values()])
        trace.shapes.outputs.update({name: Spec(x.shape[1:], x.dtype) for name, x in forward.values.items()})
        trace.shapes.predictions.update({n: Spec(x.shape[1:], x.dtype) for n, x in forward.predictions.items()})
        return trace.shapes

    def forward(self, trace: Trace, sections: Nodes) -> Forward:
        """Trace the network on a batch; layers that lead to costs alone are omitted if their sections are missing."""
        values: dict[str, Node] = {}
        costs: dict[str, Node] = {}
        totals: dict[str, Totals] = {}
        weight_sections = self.weights(sections)
        weighted = {placed.name for placed in self.costs if placed.layer.weights in weight_sections}
        for placed in self.layers:
            here = all(source in values for source in placed.sources) and _section(placed) in ("", *sections)
            if not here and placed.name not in self._leading:
                continue
            inputs = trace.read(placed) + _sections(placed, sections)
            weights = _weights(placed, sections) if placed.name in weighted else {}
            values[placed.name] = trace.run(placed.name, placed.name, placed.layer, inputs, **weights)
            _check_value(placed, values[placed.name], inputs)
            if placed.layer.role == "cost":
                rows = {"targets": inputs[-1]} if placed in self.targeted_costs else {}
                _check_pairs(placed, values[placed.name], {**rows, **weights}, inputs)
                weight = trace.setting(f"{placed.name}.weight", live_settings(placed.layer)["weight"])
                costs[placed.name] = values[placed.name] * weight
                if (apart := trace.totals.get(placed.name)) is not None:
                    totals[placed.name] = Totals(apart.total * weight, apart.weight)
        predictions = {output.name: self._prediction(trace, output, values[output.name]) for output in self.outputs}
        return Forward(values, predictions, costs, trace.state, totals, trace.regions)

    def _prediction(self, trace: Trace, output: Placed, value: Node) -> Node:
        judge = self._judge(output)
        return value if judge is None else trace.predict(judge.name, judge.layer, value)


def _section(placed: Placed) -> str:
    """Return the section of the data that a layer reads; "" for none."""
    name = {"input": "section", "cost": "targets"}.get(placed.layer.role)
    return getattr(placed.layer, name) if name else ""


def _sections(placed: Placed, data: Nodes) -> list[Node]:
    """Return the node of the section that a layer reads, if any."""
    if not (section := _section(placed)):
        return []
    if section not in data:
        raise SigmaNetworkError(
            f"{placed.name}: the data has no section {section!r}.{suggest_name(section, data, 'It has')}"
        )
    return [data[section]]


def _weights(cost: Placed, data: Nodes) -> dict[str, Node]:
    """Return the sample weights for a cost, as its keyword; raises SigmaNetworkError if it takes none."""
    name, node = cost.layer.weights, data[cost.layer.weights]
    if node.shape[1:] not in ((), (1,)):
        mismatch = f"section {name!r} has shape {node.shape[1:]}"
        raise SigmaNetworkError(f"{cost.name}: {mismatch}. Give one weight per sample.")
    if "weights" not in signature(cost.layer.forward).parameters:
        raise SigmaNetworkError(
            f"{cost.name}: takes no sample weights, and the data has section {name!r}. Leave it out, or use a cost "
            "whose forward has the keyword weights, such as softmax_cross_entropy."
        )
    return {"weights": f.reshape(node, node.shape[:1])}


def _check_links(layers: Sequence[Placed]) -> None:
    here = {id(placed.layer) for placed in layers}
    for placed in layers:
        for target in placed.layer._links:
            if id(target) not in here:
                link = f"{label(placed.layer)} is linked to {label(target)}"
                raise SigmaNetworkError(f"network: {link}, which leads to none of the ends. Pass its end, too: [a, b].")


def _check_place(placed: Placed, sources: Sequence[Any]) -> None:
    """Raise SigmaNetworkError if a layer cannot have these sources."""
    role = placed.layer.role
    leading = ", ".join(placed.sources)
    if role == "input" and sources:
        raise SigmaNetworkError(f"{placed.name}: {leading} leads to it, but an input begins a chain.")
    if role != "input" and not sources:
        raise SigmaNetworkError(f"{placed.name}: nothing leads to it. Write Input(4) + Dense(3), or link to it.")
    for name, source in zip(placed.sources, sources, strict=True):
        if source.role == "cost":
            raise SigmaNetworkError(f"{placed.name}: {name} leads to it, but a cost ends a chain.")
    forward = placed.layer.forward
    run, owner = (forward.__func__, [None]) if ismethod(forward) else (forward, [])
    try:
        signature(run).bind(*owner, None, *sources, *([None] if _section(placed) else []))
    except TypeError:
        refused = f"{placed.name}: {leading} lead to it, but it does not take {len(sources)} inputs."
        raise SigmaNetworkError(f"{refused} Merge them first, as with Concat(a, b) or Add(a, b).") from None


def _check_value(placed: Placed, value: Node, inputs: Sequence[Node]) -> None:
    """Raise SigmaNetworkError unless a cost is a scalar, and any other value has one row per sample."""
    if placed.layer.role == "cost" and value.shape:
        raise SigmaNetworkError(f"{placed.name}: a cost must be a scalar (got shape {value.shape}). Return a mean.")
    if placed.layer.role != "cost" and value.shape[:1] != inputs[0].shape[:1]:
        call = f"{placed.name}({', '.join(str(x.shape) for x in inputs)})"
        raise SigmaNetworkError(f"{call}: axis 0 of the output must be the batch (got shape {value.shape}).")


def _check_pairs(cost: Placed, value: Node, rows: Nodes, inputs: Sequence[Node]) -> None:
    """Raise SigmaNetworkError if targets or weights ``(batch,)`` are combined with a column ``(batch, 1)``.

    Broadcasting would pair every row with every other one. To do so on purpose, make the column from a row.
    """
    flat = {node: name for name, node in rows.items() if len(node.shape) == 1}
    for node in topological_order([value], border=set(inputs)) if flat else ():
        name = next((flat[_uncast(x)] for x in node.inputs if _uncast(x) in flat), "")
        columns = [x for x in map(_uncast, node.inputs) if x.shape == (*node.shape[:1], 1) and _is_own(x)]
        if name and columns and node.shape == 2 * node.shape[:1]:
            raise SigmaNetworkError(
                f"{cost.name}: {node.op} of shapes (batch, 1) and (batch,) would pair every row with all rows; "
                f"{name} have shape (batch,). Write {name}[:, None], or give them a second axis in the data."
            )


def _uncast(node: Node) -> Node:
    return _uncast(node.inputs[0]) if node.op == "cast" else node


def _is_own(column: Node) -> bool:
    """Return whether a column is unintended: neither a constant nor made from a row."""
    return column.op != "array" and not (column.op == "reshape" and len(column.inputs[0].shape) == 1)
