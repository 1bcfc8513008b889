"""Show a network: a table of its layers with shapes and counts of parameters, and their connections."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from math import prod
from typing import Any

from attrs import frozen

from sigma_kernel.errors import SigmaConfigError
from sigma_kernel.graph.node import Node, Spec, symbol
from sigma_kernel.network.architecture import Placed
from sigma_kernel.network.drawing import drawing, is_chain, lanes
from sigma_kernel.network.tracing import Shapes, Trace
from sigma_kernel.tables import align_rows, html

HEAD = ("LAYER", "SHAPE", "PARAMETERS", "INPUTS")
MOST = 60  # layers that are shown; of more, the first and the last ones


@frozen
class Row:
    """A layer: the shape of its output for one sample, and the number of its parameters, None if unknown."""

    name: str
    sources: tuple[str, ...]
    shape: tuple[int, ...] | None = None
    parameters: int | None = None

    def cells(self) -> list[str]:
        """Return the row as text, in the order of ``HEAD``."""
        shape = "?" if self.shape is None else " x ".join(map(str, self.shape)) or "()"
        return [self.name, shape, format_count(self.parameters), ", ".join(self.sources)]


@frozen(repr=False)
class Outline:
    """The layers of a network. ``str()`` is a table; a notebook shows it with a drawing, if there are branches."""

    rows: tuple[Row, ...]

    @property
    def parameters(self) -> int | None:
        """Return the number of all parameters; None if that of a layer is unknown."""
        counts = [row.parameters for row in self.rows]
        return None if None in counts else sum(filter(None, counts))

    @property
    def sources(self) -> dict[str, tuple[str, ...]]:
        """Return the sources of each layer."""
        return {row.name: row.sources for row in self.rows}

    def drawing(self) -> str:
        """Return layers and connections as SVG."""
        return drawing(self.sources, {row.name: " ".join(row.cells()[:2]) for row in self.rows})

    def cells(self, drawn: bool = False) -> list[list[str]]:
        """Return the table as text, with the total at the end; the middle of a large network is left out.

        Lanes before the names show connections, if they are ``drawn``.
        """
        lines = [row.cells() for row in self.rows]
        if drawn:
            lines = [[f"{lane} {name}", *rest] for lane, (name, *rest) in zip(lanes(self.sources), lines, strict=True)]
        if len(lines) > MOST:
            lines[MOST // 2 : -MOST // 2] = [["...", "", "", f"{len(lines) - MOST:,} more layers"]]
        return [*lines, ["total", "", format_count(self.parameters), ""]]

    def __str__(self) -> str:
        return "\n".join(align_rows([HEAD, *self.cells(not is_chain(self.sources))]))

    def __repr__(self) -> str:
        return f"Outline({len(self.rows):,} layers, {format_count(self.parameters)} parameters)"

    def _repr_html_(self) -> str:
        plain = is_chain(self.sources) or len(self.rows) > MOST
        return html(HEAD, self.cells()) + ("" if plain else self.drawing())


def format_count(parameters: int | None) -> str:
    """Return a number of parameters as text."""
    return "?" if parameters is None else f"{parameters:,}"


# -- what is known -----------------------------------------------------------------------------------------------------
def outline(layers: Sequence[Placed], shapes: Shapes | None = None, settled: bool = False) -> Outline:
    """Return the outline of layers in order; without ``shapes``, those that follow from the shapes of inputs.

    An output that takes its size from targets has none that is known, unless all sizes are ``settled``.
    """
    outputs, network_shapes = (shapes.outputs, shapes) if shapes else _infer_shapes(layers, settled)
    counts = Counter(dict.fromkeys(outputs, 0))
    for address, parameter in network_shapes.parameters.items():
        counts[address.partition(".")[0]] += prod(parameter.shape)
    rows = (Row(x.name, x.sources, getattr(outputs.get(x.name), "shape", None), counts.get(x.name)) for x in layers)
    return Outline(tuple(rows))


def _infer_shapes(layers: Sequence[Placed], settled: bool) -> tuple[dict[str, Spec], Shapes]:
    """Trace layers as far as shapes are known; failures are left unknown, and reported when training is prepared."""
    trace = Trace(_stand_in, training=False, key=None, precision="float32")
    outputs: dict[str, Spec] = {}
    judged = {x.sources[0] for x in layers if x.layer.role == "cost" and x.layer.targets and not settled}
    for placed in layers:
        name, given = placed.name, list[Node]()
        if name in judged and placed.layer.takes_size:
            continue
        if placed.layer.role == "input" and placed.declared_shape is not None:
            given = [symbol((2, *placed.declared_shape), placed.layer.dtype or trace.precision, name)]
        if placed.layer.role == "cost":
            outputs[name] = Spec((), trace.precision)
        elif given or (placed.sources and all(source in trace.values for source in placed.sources)):
            try:
                value = trace.run(name, name, placed.layer, given or trace.read(placed))
            except Exception:  # any exception of a layer's code
                continue
            outputs[name] = Spec(value.shape[1:], value.dtype)
    return outputs, trace.shapes


def _stand_in(kind: str, chosen: Any) -> Callable[[Node], Node]:
    """Return a placeholder for a component of a layer: activations do not change shapes."""
    if kind != "activation":
        raise SigmaConfigError(f"{kind} {chosen!r}: is unknown before preparation. Prepare the trainer.")
    return lambda x: x
