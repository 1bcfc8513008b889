"""Networks for tests, and what ONNX Runtime makes of their models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
import onnxruntime

from sigma_export_onnx import Onnx
from sigma_kernel import Inference, Layer
from sigma_kernel.contracts import Step
from sigma_kernel.graph import Graph, Spec, interpret, numpy_namespace
from sigma_testing import trace_layer

LAYERS, ALONE = "network.layers.", "0-it."
TOLERANCE = 1e-5


def checked(model: Any) -> Any:
    """Return a model that ONNX's checker accepts."""
    onnx.checker.check_model(model, full_check=True)
    return model


def session(model: Any) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.log_severity_level, options.intra_op_num_threads = 3, 1
    return onnxruntime.InferenceSession(checked(model).SerializeToString(), options, ["CPUExecutionProvider"])


def results(model: Any, samples: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return the outputs of a model for samples."""
    return outputs(session(model), samples)


def outputs(running: onnxruntime.InferenceSession, samples: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    names = [one.name for one in running.get_outputs()]
    return dict(zip(names, running.run(names, dict(samples)), strict=True))


def close(found: np.ndarray, wanted: np.ndarray, what: str = "") -> None:
    """Compare to 1e-5, relative and absolute, after the shape and the type."""
    assert (found.shape, found.dtype) == (wanted.shape, wanted.dtype), what
    np.testing.assert_allclose(found, wanted, TOLERANCE, TOLERANCE, err_msg=what)


def alone(layer: Layer, specs: Sequence[Spec], precision: str = "float32") -> Inference:
    """Return a network of one layer, with random parameters and state."""

    def it(rows: int) -> Any:
        return trace_layer(layer, [Spec((rows, *x.shape), x.dtype) for x in specs], training=False, precision=precision)

    def step(rows: int) -> Step:
        made = it(rows)
        state = [name for name in made.names[made.count :] if name not in made.shapes.live]
        given = dict(zip(made.names, made.graph.inputs, strict=True))
        data, live = made.names[: made.count], [*made.shapes.live]
        live = [name for name in live if name in given]
        graph = Graph(tuple(given[name] for name in (*state, *data, *live)), made.graph.outputs[:1])
        return Step(graph, tuple(LAYERS + name for name in state), data, tuple(live), (), ("it",))

    made = it(2)
    values = dict(zip(made.names, made.values([np.empty(0)] * made.count), strict=True))
    live = {name: float(x) for name, x in values.items() if name in made.shapes.live}
    arrays = {name: values[name] for name in made.names[made.count :] if name not in live}
    return Inference("alone", (), arrays, step, live)


def reference(network: Inference, samples: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return what Sigma's reference computes."""
    step = network.step(len(next(iter(samples.values()))))
    state = [network.arrays[name.removeprefix(LAYERS)] for name in step.state]
    live = [np.float32(network.live[name]) for name in step.steer]
    found = interpret(step.graph, numpy_namespace())(*state, *(samples[name] for name in step.data), *live)
    return dict(zip(step.ring, map(np.asarray, found), strict=True))


def drawn(step: Step, rows: int, seed: int = 0) -> dict[str, np.ndarray]:
    """Return random samples: normal numbers, or 0, 1 and 2 for integers."""
    random = np.random.default_rng(seed)
    inputs = dict(zip((*step.state, *step.data), step.graph.inputs, strict=False))
    shapes = {name: (inputs[name].shape[1:], inputs[name].dtype) for name in step.data}
    return {
        name: random.normal(size=(rows, *shape)).astype(dtype) if dtype.startswith("float")
        else random.integers(0, 2 if dtype == "bool" else 3, (rows, *shape)).astype(dtype)
        for name, (shape, dtype) in shapes.items()
    }  # fmt: skip


def agrees(network: Inference, what: str = "", seed: int = 0) -> Any:
    """Compare the model of a network with the reference, for two numbers of rows; return the model."""
    model = Onnx().model(network)
    running = session(model)
    for rows in (1, 5):
        samples = drawn(network.step(rows), rows, seed)
        found, wanted = outputs(running, samples), reference(network, samples)
        assert found.keys() == wanted.keys()
        for name, values in wanted.items():
            close(found[name], values, what)
    return model
