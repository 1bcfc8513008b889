"""The graph that predicts in the units of the data: preprocessors, the network, and the inverse of those of targets."""

from __future__ import annotations

import numpy as np
from attrs import evolve

from sigma_kernel import Inference, SigmaConfigError, functions as f
from sigma_kernel.contracts import Step
from sigma_kernel.graph import DTYPES, Graph, Node, originating, replace_nodes, symbol

PREPARED = "Pass `preprocessing = false`: the model then takes samples that are prepared already."


def samples(network: Inference) -> dict[str, tuple[tuple[int, ...], str]]:
    """Return the shape and the NumPy dtype of a sample of each input; floats have the network's precision."""
    inputs = _inputs(network.step(1))
    wide = any(x.dtype == "float64" for x in inputs.values())
    specs = {name: network.samples.get(name, (x.shape[1:], x.dtype)) for name, x in inputs.items()}
    precision = "float64" if wide else "float32"
    return {n: (shape, dtype if np.dtype(dtype).kind in "iub" else precision) for n, (shape, dtype) in specs.items()}


def build_raw_step(network: Inference, rows: int) -> Step:
    """Return the step that predicts samples which are not preprocessed, in the units of targets that are not, either.

    Raises SigmaConfigError, naming the preprocessor, for one that has no graph.
    """
    step, specs = network.step(rows), samples(network)
    raw = {name: symbol((rows, *shape), _storage_dtype(dtype), name) for name, (shape, dtype) in specs.items()}
    inputs = _inputs(step)
    new = {inputs[name]: _preprocess(network, name, node, inputs[name]) for name, node in raw.items()}
    first = {inputs[name]: node for name, node in raw.items()}
    predicted = zip(step.ring, replace_nodes(step.graph.outputs, new), strict=True)
    outputs = tuple(_restore_units(network, name, node) for name, node in predicted)
    return evolve(step, graph=Graph(tuple(first.get(x, x) for x in step.graph.inputs), outputs))


def _storage_dtype(dtype: str) -> str:
    """Return the dtype of graphs that holds the values of a NumPy dtype."""
    return dtype if dtype in DTYPES else "int64" if dtype == "uint64" else "int32"


def _inputs(step: Step) -> dict[str, Node]:
    """Return the inputs of the data by section."""
    return dict(zip(step.data, step.graph.inputs[len(step.state) :], strict=False))


def _restore_units(network: Inference, output: str, prediction: Node) -> Node:
    """Return a prediction in the units of its targets, if it has any."""
    restored = network.restored(output, prediction)
    return prediction if restored is None else restored


def _preprocess(network: Inference, section: str, values: Node, wanted: Node) -> Node:
    """Return a section after its preprocessors, in the type that the network reads."""
    for name, (step, state) in network.preprocessors.items():
        if step.section == section:
            with originating(name):
                try:
                    values = step.graph(values, state)
                except SigmaConfigError as error:
                    raise SigmaConfigError(f"preprocessor {name!r}: {error} {PREPARED}") from error
    if values.shape != wanted.shape:
        raise SigmaConfigError(
            f"section {section!r}: the shape of its samples before they are preprocessed is unknown; the run is of an "
            f"earlier version of Sigma. Resume it for an epoch. {PREPARED}"
        )
    return values if values.dtype == wanted.dtype else f.cast(values, wanted.dtype)
