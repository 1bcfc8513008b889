"""Fourier transforms in ONNX, whose op DFT takes complex numbers as pairs, as Sigma does."""

from __future__ import annotations

from sigma_export_onnx.elementwise import Express
from sigma_export_onnx.sizes import AnyNode
from sigma_export_onnx.writer import GraphWriter


def _rfft(w: GraphWriter, node: AnyNode, x: str) -> str:
    return w.add("DFT", w.reshape(x, (*node.inputs[0].shape, 1)), onesided=1)


def _irfft(w: GraphWriter, node: AnyNode, y: str) -> str:
    """Return the real part of the inverse transform of all frequencies: half of them are conjugates of the others."""
    n, axis = node.attrs["n"], w.array([len(node.shape) - 1])
    mirror = w.add("Slice", y, w.array([n - n // 2 - 1]), w.array([0]), axis, w.array([-1]))
    conjugate = w.add("Mul", mirror, w.array([1.0, -1.0], node.dtype))
    whole = w.add("DFT", w.add("Concat", y, conjugate, axis=len(node.shape) - 1), inverse=1)
    real = w.add("Slice", whole, w.array([0]), w.array([1]), w.array([len(node.shape)]))
    return w.reshape(real, node.shape)


TABLE: dict[str, Express] = {"rfft": _rfft, "irfft": _irfft}
