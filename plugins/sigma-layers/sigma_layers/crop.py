"""Cropping of the sides of samples."""

from __future__ import annotations

from attrs import define, field

from sigma_kernel import functions as f
from sigma_kernel.contracts import Context, Layer
from sigma_kernel.errors import SigmaNetworkError
from sigma_kernel.graph import Node
from sigma_layers.margins import Margins, margins, pairs


@define(eq=False)
class Crop(Layer):
    """Cut elements off before and after the sides of samples: ``Crop(1)``, ``Crop([1, (0, 2)])``.

    Shapes: ``(batch, channels, *spatial)`` -> ``(batch, channels, *spatial')``, each n becoming ``n - before - after``.

    Same as ``keras.layers.Cropping2D`` with channels first, for any number of sides.

    Args:
        width: Number of elements: for all sides, or for each one number or a pair ``(before, after)``.
    """

    width: Margins = field(validator=margins)

    def forward(self, context: Context, x: Node) -> Node:
        """Return the shorter samples; raises SigmaNetworkError for other sides, or if nothing is left of one."""
        widths = pairs("crop", x.shape[1:], self.width)
        for n, pair in zip(x.shape[2:], widths, strict=True):
            if sum(pair) >= n:
                raise SigmaNetworkError(f"crop({x.shape[1:]}): {pair} leaves nothing of a side of {n}. Cut off less.")
        ends = [n - after for n, (_, after) in zip(x.shape[2:], widths, strict=True)]
        return f.slice(x, (0, 0, *(before for before, _ in widths)), (*x.shape[:2], *ends))
