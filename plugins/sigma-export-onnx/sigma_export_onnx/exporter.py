"""The exporter: a trained network as an ONNX model."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from attrs import field, frozen
from onnx import helper

import sigma_kernel
from sigma_export_onnx.graphs import KEPT, graph
from sigma_export_onnx.preprocessing import build_raw_step, samples
from sigma_export_onnx.reading import initialisers
from sigma_export_onnx.sizes import for_any_rows
from sigma_export_onnx.writer import tensors
from sigma_kernel import Exporter, Inference
from sigma_kernel.graph import rewrite
from sigma_kernel.settings import ge, instance_of, le

OPSET, IR = 20, 9  # of 2023: read by ONNX 1.15, ONNX Runtime 1.17 and later
LAYERS = "network.layers."
LARGEST = 2_000_000_000  # bytes of parameters in the model itself: Protocol Buffers end at 2 GiB


@frozen
class Onnx(Exporter):
    """Write the graph that predicts as an ONNX model, for any number of rows.

    Its inputs are the input sections, its outputs the output layers; parameters and layer state are initialisers named
    by their address below ``network.layers``.  Inputs take what ``predict`` takes: samples as they are in the training
    data, in their type there if that is one of integers or bool, else in the precision of the network.  The metadata
    are ``architecture``, ``classes`` and ``preprocessors``, which are JSON lists, ``targets``, a JSON object with the
    names of the columns that an output predicts, ``run``, and ``sigma``, the version.

    Args:
        external: Bytes of parameters from which on they are written to a file beside the model, with ``.data`` added
            to its name; at most 2,000,000,000, since a model itself holds less than 2 GiB.
        preprocessing: Whether the model preprocesses its inputs, and returns outputs in the units of the raw targets;
            otherwise inputs are those of the first layer, and outputs those of the last one.
    """

    external: int = field(default=1_500_000_000, validator=[ge(0), le(LARGEST)], kw_only=True)
    preprocessing: bool = field(default=True, validator=instance_of(bool, "true or false"), kw_only=True)

    def export(self, network: Inference, path: Path) -> None:
        """Write the file; raises SigmaConfigError, naming it, for what ONNX cannot express."""
        model, arrays = self._write_model(network)
        if sum(values.nbytes for values in arrays.values()) >= self.external:
            with path.with_name(f"{path.name}.data").open("wb") as beside:
                model.graph.initializer.extend(tensors(arrays, beside))
        else:
            model.graph.initializer.extend(tensors(arrays))
        path.write_bytes(model.SerializeToString())

    def arrays(self, path: Path) -> Mapping[str, np.ndarray]:
        """Return the initialisers of a model by name; raises SigmaDataError if it cannot be read."""
        return initialisers(path)

    def model(self, network: Inference) -> Any:
        """Return the network as a model of the package ``onnx``, which has all of its parameters in itself."""
        model, arrays = self._write_model(network)
        model.graph.initializer.extend(tensors(arrays))
        return model

    def _write_model(self, network: Inference) -> tuple[Any, dict[str, np.ndarray]]:
        """Return the model without initialisers, and these by name."""
        trace = partial(build_raw_step, network) if self.preprocessing else network.step
        step = trace(1)
        types = {name: dtype for name, (_, dtype) in samples(network).items()} if self.preprocessing else {}
        merged = for_any_rows(lambda rows: rewrite(trace(rows).graph, KEPT))
        names = [*(name.removeprefix(LAYERS) for name in step.state), *step.data, *step.steer]
        dtypes = {name: x.dtype for name, x in zip(names, step.graph.inputs, strict=True)}
        live = {name: np.asarray(value, dtypes[name]) for name, value in network.live.items() if name in dtypes}
        proto, arrays = graph(merged, names, step.ring, {**network.arrays, **live}, types)
        model = helper.make_model(
            proto, producer_name="Sigma", producer_version=sigma_kernel.__version__, ir_version=IR,
            opset_imports=[helper.make_opsetid("", OPSET)], doc_string=network.architecture,
        )  # fmt: skip
        helper.set_model_props(model, self._metadata(network))
        return model, arrays

    def _metadata(self, network: Inference) -> dict[str, str]:
        """Return the metadata."""
        return {
            "architecture": network.architecture,
            "classes": json.dumps(network.classes),
            "preprocessors": json.dumps([*network.preprocessors] if self.preprocessing else []),
            "run": network.origin,
            "targets": json.dumps({name: [*names] for name, names in network.targets.items()}),
            "sigma": sigma_kernel.__version__,
        }
