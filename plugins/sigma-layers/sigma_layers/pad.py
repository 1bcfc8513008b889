"""Padding of the sides of samples."""

from __future__ import annotations

import numpy as np
from attrs import define, field

from sigma_kernel import functions as f
from sigma_kernel.contracts import Context, Layer
from sigma_kernel.errors import SigmaNetworkError
from sigma_kernel.graph import Node
from sigma_kernel.settings import in_
from sigma_layers.margins import Margins, margins, pairs
from sigma_layers.settings import number

_INDICES = {"reflect": "reflect", "replicate": "edge", "circular": "wrap"}  # modes of numpy.pad


@define(eq=False)
class Pad(Layer):
    """Add elements before and after the sides of samples: ``Pad(1)``, ``Pad([1, (0, 2)], mode="reflect")``.

    They are a ``value`` (``"constant"``), the mirror image without the outermost element (``"reflect"``), copies of the
    outermost element (``"replicate"``, elsewhere edge), or elements of the other end (``"circular"``, elsewhere wrap).

    Shapes: ``(batch, channels, *spatial)`` -> ``(batch, channels, *spatial')``, each n becoming ``before + n + after``.

    Same as ``torch.nn.functional.pad``.

    Args:
        width: Number of elements: for all sides, or for each one number or a pair ``(before, after)``.
        mode: What they are.
        value: Their value, if they are constant.
    """

    width: Margins = field(validator=margins)
    mode: str = field(default="constant", validator=in_(["constant", *_INDICES]))
    value: float = field(default=0.0, validator=number)

    def forward(self, context: Context, x: Node) -> Node:
        """Return the longer samples; raises SigmaNetworkError for other sides, or too few elements to copy."""
        widths = pairs("pad", x.shape[1:], self.width)
        if self.mode == "constant":
            low, high = ((0, 0, *side) for side in zip(*widths, strict=True))
            return f.pad(x, low, high, value=self.value)
        for axis, pair in enumerate(widths, 2):
            self._check(x.shape, x.shape[axis], max(pair))
            if any(pair):
                indices = np.pad(np.arange(x.shape[axis], dtype=np.int32), pair, mode=_INDICES[self.mode])  # type: ignore[call-overload]
                x = f.take(x, indices, axis)
        return x

    def _check(self, shape: tuple[int, ...], n: int, most: int) -> None:
        there = {"reflect": n - 1, "circular": n}.get(self.mode, most)
        if most > there:
            raise SigmaNetworkError(
                f"pad({shape[1:]}): mode {self.mode!r} has {there} elements of a side of {n} to copy, not {most}. "
                "Use less padding, or another mode."
            )
