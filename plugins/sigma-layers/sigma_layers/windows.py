"""Window geometry of convolution and pooling: size, stride and padding over samples ``(channels, *spatial)``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from attrs import Attribute

from sigma_kernel.errors import SigmaNetworkError
from sigma_kernel.settings import must
from sigma_layers.settings import count

Sides = int | Sequence[int]  # for all spatial dimensions, or for each
Padding = Sides | str


def _listed(value: Any) -> Sequence[Any]:
    return value if isinstance(value, list | tuple) and value else (value,)


def sides(layer: Any, attribute: Attribute[Any], value: Any) -> None:
    """Require a positive integer, or one for each spatial dimension."""
    for side in _listed(value):
        count(layer, attribute, side)


def _is_padding(value: Any) -> bool:
    numbers = _listed(0 if value == "same" else value)
    return all(isinstance(side, int) and not isinstance(side, bool) and side >= 0 for side in numbers)


padding = must(_is_padding, '0, 1, 2 ..., one for each side, or "same"', SigmaNetworkError)


def window(where: str, shape: Sequence[int], size: Sides, stride: Sides, around: Padding) -> dict[str, Any]:
    """Return window, stride and padding ``(before, after)`` for each spatial dimension of ``(channels, *spatial)``.

    ``"same"`` pads so that n becomes ``ceil(n / stride)``, an odd element going after.  Raises SigmaNetworkError if
    the numbers of dimensions differ, or if a window is larger than the padded input.
    """
    rank, given = len(shape) - 1, {"size": size, "stride": stride, "padding": 0 if around == "same" else around}
    spans, steps, pads = (_each(where, shape, rank, name, value) for name, value in given.items())
    pairs = tuple((side, side) for side in pads)
    if around == "same":
        pairs = tuple(_same(*one) for one in zip(shape[1:], spans, steps, strict=True))
    for n, span, pair in zip(shape[1:], spans, pairs, strict=True):
        if span > n + sum(pair):
            raise SigmaNetworkError(
                f"{where}({tuple(shape)}): a window of {span} does not fit a side of {n} with padding {pair}. "
                "Use a smaller size or more padding; channels come first: (channels, height, width)."
            )
    return {"window": spans, "stride": steps, "padding": pairs}


def _each(where: str, shape: Sequence[int], rank: int, name: str, value: Any) -> tuple[int, ...]:
    entries = (value,) * rank if isinstance(value, int) else tuple(value)
    if len(entries) != rank:
        raise SigmaNetworkError(
            f"{where}({tuple(shape)}): {name} {value!r} has {len(entries)} entries for {rank} side(s). "
            "Give one number for all, or one for each."
        )
    return entries


def _same(side: int, span: int, step: int) -> tuple[int, int]:
    missing = max((-(-side // step) - 1) * step + span - side, 0)
    return missing // 2, missing - missing // 2
