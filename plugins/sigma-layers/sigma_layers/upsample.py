"""Upsampling of the sides of samples."""

from __future__ import annotations

import numpy as np
from attrs import define, field
from attrs.validators import optional

from sigma_kernel import functions as f
from sigma_kernel.contracts import Context, Layer
from sigma_kernel.errors import SigmaNetworkError
from sigma_kernel.graph import Node
from sigma_kernel.settings import in_
from sigma_layers.settings import flag
from sigma_layers.windows import Sides, sides, values_per_side


@define(eq=False)
class Upsample(Layer):
    """Make the sides of samples longer: ``Upsample(2)``, ``Upsample(2, mode="linear")``, ``Upsample(size=32)``.

    With ``"nearest"``, entry i of a side that grows from n to m is entry ``floor(i * n / m)``. With ``"linear"``
    (bilinear for images, trilinear for volumes), it lies at ``(i + 0.5) * n / m - 0.5``, not below 0 nor above
    ``n - 1``; with ``align_corners`` at ``i * (n - 1) / (m - 1)``, so that the outermost entries stay where they are.

    Shapes: ``(batch, channels, *spatial)`` -> ``(batch, channels, *spatial')``, each n becoming ``factor * n``, or
    ``size``.

    Same as ``torch.nn.Upsample``.

    Args:
        factor: How many times as long the sides become: one number for all, or one for each.
        mode: How entries in between are found.
        align_corners: Whether the outermost entries of a side stay the outermost ones; for ``"linear"`` only.
        size: Sides of the output, instead of a factor: one number for all, or one for each; it may be smaller.
    """

    factor: Sides = field(default=2, validator=sides)
    mode: str = field(default="nearest", validator=in_(["nearest", "linear"]))
    align_corners: bool = field(default=False, validator=flag)
    size: Sides | None = field(default=None, validator=optional(sides))

    def __attrs_post_init__(self) -> None:
        """Raise SigmaNetworkError for settings that exclude each other."""
        if self.align_corners and self.mode == "nearest":
            raise SigmaNetworkError('Upsample.align_corners: has no effect with mode "nearest". Use mode "linear".')
        if self.size is not None and self.factor != 2:
            raise SigmaNetworkError(f"Upsample.size: excludes a factor (got {self.factor!r}). Leave one of them out.")

    def forward(self, context: Context, x: Node) -> Node:
        """Return the longer samples; raises SigmaNetworkError if they have other sides."""
        for axis, m in enumerate(self._sides(x.shape[1:]), 2):
            if x.shape[axis] != m:
                x = self._nearest(x, axis, m) if self.mode == "nearest" else self._linear(x, axis, m)
        return x

    def _sides(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        if len(shape) < 2:
            raise SigmaNetworkError(
                f"upsample({shape}): a sample must have channels and sides. Put a Reshape before it."
            )
        if self.size is not None:
            return values_per_side("upsample", shape, "size", self.size)
        factors = values_per_side("upsample", shape, "factor", self.factor)
        return tuple(n * factor for n, factor in zip(shape[1:], factors, strict=True))

    def _nearest(self, x: Node, axis: int, m: int) -> Node:
        before, n, after = x.shape[:axis], x.shape[axis], x.shape[axis + 1 :]
        if m % n:
            return f.take(x, (np.arange(m) * n // m).astype(np.int32), axis)
        wide = f.stretch(f.expand(x, axis + 1), (*before, n, m // n, *after))
        return f.reshape(wide, (*before, m, *after))

    def _linear(self, x: Node, axis: int, m: int) -> Node:
        n, i = x.shape[axis], np.arange(m)
        at = i * (n - 1) / max(m - 1, 1) if self.align_corners else np.clip((i + 0.5) * n / m - 0.5, 0, n - 1)
        low = at.astype(np.int32)
        share = (at - low).reshape(-1, *(1,) * (len(x.shape) - axis - 1))
        return f.take(x, low, axis) * (1.0 - share) + f.take(x, np.minimum(low + 1, n - 1), axis) * share
