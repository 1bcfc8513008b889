"""Ops of Fourier transforms of real arrays; a last axis of two holds real and imaginary parts.

A signal with an entry that is not finite has NaN everywhere in its transform.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod

from sigma_kernel.graph import dtypes, shapes
from sigma_kernel.graph.namespace import Array, Namespace
from sigma_kernel.graph.node import Node, Shape, constant
from sigma_kernel.graph.ops import Op, equal, iota, logical_or, op, where


# -- meanings ----------------------------------------------------------------------------------------------------------
def _rfft(ns: Namespace, x: Array) -> Array:
    def run(x: Array) -> Array:
        spectrum = ns.xp.fft.rfft(x)
        return ns.xp.stack([ns.xp.real(spectrum), ns.xp.imag(spectrum)], axis=-1)

    return _keep_finite(ns, run, x, x.shape[:-1], (x.shape[-1] // 2 + 1, 2))


def _irfft(ns: Namespace, y: Array, *, n: int) -> Array:
    def run(y: Array) -> Array:
        kind = ns.xp.complex64 if y.dtype == ns.dtype("float32") else ns.xp.complex128
        real, imaginary = (ns.xp.astype(y[..., part], kind) for part in (0, 1))
        return ns.xp.fft.irfft(real + imaginary * 1j, n=n)

    return _keep_finite(ns, run, y, y.shape[:-2], (n,))


def _keep_finite(ns: Namespace, run: Callable[[Array], Array], x: Array, lead: Shape, sides: Shape) -> Array:
    """Return the transforms of signals, of these sides; NaN for those with an entry that is not finite."""
    if not prod(lead):
        return ns.full((*lead, *sides), 0.0, x)
    fine = ns.xp.all(ns.xp.isfinite(x), axis=tuple(range(len(lead), x.ndim)))
    before, after = (ns.xp.reshape(fine, (*lead, *(1,) * count)) for count in (x.ndim - len(lead), len(sides)))
    result = run(ns.xp.where(before, x, ns.full(x.shape, 0.0, x)))
    return ns.xp.where(after, result, ns.full((*lead, *sides), float("nan"), x))


# -- gradients: each is the transpose of the other, but for the weights of frequencies that have no mirror image -------
def _rfft_flow(g: Node, z: Node, x: Node) -> Node:
    n = x.shape[-1]
    return irfft(g * _weights(g, n, 0.5), n=n) * float(n)


def _irfft_flow(g: Node, z: Node, y: Node, *, n: int) -> Node:
    return rfft(g) * (_weights(y, n, 2.0) / float(n))


def _weights(spectrum: Node, n: int, inside: float) -> Node:
    """Return 1 for frequency 0, and for the highest one of an even number of entries; else the weight inside."""
    count = spectrum.shape[-2]
    place = iota(shape=(count, 1), axis=0, dtype="int32")
    edge = equal(place, 0) if n % 2 else logical_or(equal(place, 0), equal(place, count - 1))
    return where(edge, constant(1.0, spectrum.dtype), constant(inside, spectrum.dtype))


# -- rows --------------------------------------------------------------------------------------------------------------
def _count_operations(z: Node, x: Node, **_: int) -> int:
    """Count 2.5 n log2(n) for each signal, as is usual for transforms of real arrays."""
    signal = max(z.shape[-1], x.shape[-1], 2)
    return int(2.5 * max(z.size, x.size) * signal.bit_length())


# fmt: off
rfft: Op = op("rfft", shapes.spectrum, dtypes.wide, _rfft_flow,
              linear="whole", meaning=_rfft, operations=_count_operations)
irfft: Op = op("irfft", shapes.signal, dtypes.wide, _irfft_flow,
               linear="whole", meaning=_irfft, operations=_count_operations)
