"""Window geometry of convolution and pooling: size, stride, padding and dilation over ``(channels, *spatial)``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from attrs import Attribute

from sigma_kernel.errors import SigmaNetworkError
from sigma_kernel.settings import must
from sigma_layers.settings import count

Sides = int | Sequence[int]  # for all spatial dimensions, or for each
Padding = Sides | str


def _as_sequence(value: Any) -> Sequence[Any]:
    return value if isinstance(value, list | tuple) and value else (value,)


def sides(layer: Any, attribute: Attribute[Any], value: Any) -> None:
    """Require a positive integer, or one for each spatial dimension."""
    for side in _as_sequence(value):
        count(layer, attribute, side)


def _is_padding(value: Any) -> bool:
    numbers = _as_sequence(0 if value == "same" else value)
    return all(isinstance(side, int) and not isinstance(side, bool) and side >= 0 for side in numbers)


def _is_width(value: Any) -> bool:
    return value != "same" and _is_padding(value)


widths = must(_is_width, "whole numbers of at least 0, one for all sides or one for each", SigmaNetworkError)
padding = must(
    _is_padding, 'whole numbers of at least 0, one for all sides or one for each, or "same"', SigmaNetworkError
)


def window(
    where: str, shape: Sequence[int], size: Sides, stride: Sides, around: Padding, dilation: Sides = 1,
    ceil_mode: bool = False,
) -> dict[str, Any]:  # fmt: skip
    """Return window, stride, padding ``(before, after)`` and dilation for each side of ``(channels, *spatial)``.

    ``"same"`` pads so that n becomes ``ceil(n / stride)``, an odd element going after; ``ceil_mode`` pads further for a
    last window that the padded input holds in part. Raises SigmaNetworkError if the numbers of dimensions differ, or if
    a window is larger than the padded input.
    """
    sides = shape[1:]
    given = {"size": size, "stride": stride, "dilation": dilation, "padding": 0 if around == "same" else around}
    spans, steps, gaps, pads = (values_per_side(where, shape, name, value) for name, value in given.items())
    reaches = [reach(*axis) for axis in zip(spans, gaps, strict=True)]
    pairs = tuple((side, side) for side in pads)
    if around == "same":
        pairs = tuple(_same_padding(*axis) for axis in zip(sides, reaches, steps, strict=True))
    elif ceil_mode:
        pairs = tuple(_extend_padding(*axis) for axis in zip(sides, reaches, steps, pairs, strict=True))
    for n, covered, pair in zip(sides, reaches, pairs, strict=True):
        if covered > n + sum(pair):
            raise SigmaNetworkError(
                f"{where}({tuple(shape)}): a window of {covered} does not fit a side of {n} with padding {pair}. "
                "Use a smaller size or more padding; channels come first: (channels, height, width)."
            )
    return {"window": spans, "stride": steps, "padding": pairs, "dilation": gaps}


def values_per_side(where: str, shape: Sequence[int], name: str, value: Any) -> tuple[int, ...]:
    """Return a setting for each side of ``(channels, *spatial)``; raises SigmaNetworkError if their numbers differ."""
    rank = len(shape) - 1
    entries = (value,) * rank if isinstance(value, int) else tuple(value)
    if len(entries) != rank:
        raise SigmaNetworkError(
            f"{where}({tuple(shape)}): {name} {value!r} has {len(entries)} entries for {rank} side(s). "
            "Give one number for all, or one for each."
        )
    return entries


def reach(span: int, gap: int) -> int:
    """Return how many elements of a side a window of ``span`` elements covers, ``gap`` apart."""
    return (span - 1) * gap + 1


def _same_padding(side: int, covered: int, step: int) -> tuple[int, int]:
    missing = max((-(-side // step) - 1) * step + covered - side, 0)
    return missing // 2, missing - missing // 2


def _extend_padding(side: int, covered: int, step: int, pair: tuple[int, int]) -> tuple[int, int]:
    """Return padding for one more window, unless it would begin in the padding after the side."""
    before, after = pair
    room = side + before + after
    last = -(-(room - covered) // step) * step  # where the last window begins, if distances are rounded up
    last -= step if last >= side + before else 0
    return (before, max(after, last + covered - side - before)) if last >= 0 else pair
