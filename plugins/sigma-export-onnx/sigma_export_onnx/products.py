"""Matrix products, convolutions and pooling in ONNX."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from sigma_export_onnx.elementwise import Express
from sigma_export_onnx.sizes import AnyNode
from sigma_export_onnx.writer import GraphWriter


def _pads(padding: Sequence[tuple[int, int]]) -> list[int]:
    """Return padding as ONNX has it: all beginnings, then all ends."""
    return [low for low, _ in padding] + [high for _, high in padding]


def _window_attributes(node: AnyNode) -> dict[str, Any]:
    return {
        "strides": node.attrs["stride"],
        "dilations": node.attrs["dilation"],
        "group": node.attrs["groups"],
    }


def _convolution(w: GraphWriter, node: AnyNode, x: str, kernels: str) -> str:
    return w.add("Conv", x, kernels, pads=_pads(node.attrs["padding"]), **_window_attributes(node))


def _transpose_convolution(w: GraphWriter, node: AnyNode, g: str, kernels: str) -> str:
    """Return a transposed convolution; sides that its windows do not reach are padded with zeros."""
    sides = zip(
        node.inputs[0].shape[2:],
        node.inputs[1].shape[2:],
        node.shape[2:],
        *(node.attrs[name] for name in ("stride", "dilation", "padding")),
        strict=True,
    )
    beyond = [(n - 1) * step + (k - 1) * by + 1 - low - side for n, k, side, step, by, (low, _) in sides]
    pads = [(low, max(cut, 0)) for (low, _), cut in zip(node.attrs["padding"], beyond, strict=True)]
    missing = [max(-cut, 0) for cut in beyond]
    return w.add("ConvTranspose", g, kernels, pads=_pads(pads), output_padding=missing, **_window_attributes(node))


def _windows(node: AnyNode) -> dict[str, Any]:
    padding = _pads(node.attrs["padding"])
    return {"kernel_shape": node.attrs["window"], "strides": node.attrs["stride"], "pads": padding}


def _sum_pool(w: GraphWriter, node: AnyNode, x: str) -> str:
    mean = w.add("AveragePool", x, count_include_pad=1, **_windows(node))
    return w.add("Mul", mean, w.number(prod(node.attrs["window"]), node))


TABLE: dict[str, Express] = {
    "matmul": lambda w, node, x, y: w.add("MatMul", x, y),
    "convolution": _convolution,
    "convolution_input": _transpose_convolution,
    "max_pool": lambda w, node, x: w.add("MaxPool", x, **_windows(node)),
    "sum_pool": _sum_pool,
}
