"""Input layer: a section of the data, with the shape of a sample."""

from __future__ import annotations

from typing import ClassVar

from attrs import define, field

from sigma_kernel import functions as f
from sigma_kernel.contracts import Context, Layer
from sigma_kernel.errors import SigmaNetworkError
from sigma_kernel.graph import Node
from sigma_kernel.settings import and_, deep_iterable, optional
from sigma_layers.settings import check_separate_sides, count


@define(eq=False, init=False)
class Input(Layer):
    """Take a section of the data as input: ``Input()``, ``Input(28, 28)``, ``Input(4, section="left")``.

    ``Input()`` takes samples of any shape. A side of None is that of the data: ``Input(None, None)`` takes images of
    any size. Booleans raise SigmaNetworkError unless ``dtype`` is given.

    Shapes: section ``(batch, *shape)`` -> ``(batch, *shape)``.

    Args:
        shape: Shape of one sample, without the batch; a side of None, or the whole of none, is taken from the data.
        section: Section of the data to read.
        dtype: Dtype to cast values to, such as ``"int32"`` for indices; by default the precision of the network.
    """

    shape: tuple[int | None, ...] = field(validator=and_(check_separate_sides, deep_iterable(optional(count))))
    section: str = "inputs"
    dtype: str | None = None

    role: ClassVar[str] = "input"

    def __init__(
        self, *shape: int | None, section: str = "inputs", dtype: str | None = None, name: str | None = None
    ) -> None:
        self.__attrs_init__(shape, section, dtype, name=name)

    @property
    def takes_size(self) -> bool:
        """Return whether a side is taken from the data."""
        return None in (self.shape or (None,))

    def forward(self, context: Context, x: Node) -> Node:
        """Return the section in the network's precision.

        Raises SigmaNetworkError if its samples have another shape, or are booleans.
        """
        shape = x.shape[1:]
        if not self._takes(shape, context.continuation is not None):
            sides = ", ".join(map(str, shape))
            raise SigmaNetworkError(
                f"input{self.shape}: the samples of section {self.section!r} have shape {shape}. Write Input({sides})."
            )
        if x.dtype == "bool" and self.dtype is None:
            raise SigmaNetworkError(
                f"input{self.shape}: section {self.section!r} holds booleans, not numbers. To count them as 0 and 1, "
                f"give x.astype(float), or add the preprocessor cast with section = {self.section!r}."
            )
        dtype = self.dtype or context.precision
        return x if x.dtype == dtype else f.cast(x, dtype)

    def _takes(self, found: tuple[int, ...], continued: bool) -> bool:
        """Return whether samples have the declared shape, if any; pieces of a continued sequence have any length."""
        if not self.shape:
            return True
        wanted = (None, *self.shape[1:]) if continued else self.shape
        pairs = zip(wanted, found, strict=False)
        return len(found) == len(wanted) and all(side in (None, other) for side, other in pairs)
