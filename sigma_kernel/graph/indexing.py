"""Read the indices of ``node[...]`` as in NumPy: integers, slices, ``...``, ``None``, and one list of integers."""

from __future__ import annotations

from collections.abc import Iterator
from operator import index
from typing import Any

import numpy as np
from attrs import frozen

from sigma_kernel.errors import SigmaGraphError

Shape = tuple[int, ...]
Span = tuple[int, int, int]


@frozen
class Selection:
    """What indices select: a slice, then entries along some axes, then another shape."""

    spans: list[Span]  # (start, stop, step) by axis
    taken: dict[int, Any]  # by axis: an array or node of indices, or None for all backwards
    shape: list[int | None]  # None: where the shape of the array or node goes


def selection(key: Any, sides: Shape) -> Selection:
    """Return what indices select from an array with these sides; raises SigmaGraphError for what they cannot select."""
    spans, taken, shape = list[Span](), dict[int, Any](), list[int | None]()
    for part in _parts(key if isinstance(key, tuple) else (key,), len(sides)):
        axis, side = len(spans), (*sides, 1)[len(spans)]
        if part is None:
            shape.append(1)
        elif isinstance(part, slice):
            places = range(*part.indices(side))
            low, high = sorted((places[0], places[-1])) if places else (0, -1)
            taken |= {axis: None} if places.step < 0 else {}
            spans.append((low, high + 1, abs(places.step)))
            shape.append(len(places))
        elif (place := _integer(part, axis, side)) is not None:
            spans.append((place, place + 1, 1))
        else:
            taken[axis] = _within(part, side)
            spans.append((0, side, 1))
            shape.append(None)
    if shape.count(None) > 1 or (None in shape and len(shape) < len(sides)):
        raise SigmaGraphError("a list of indices can be combined with slices only. Index twice: x[0][:, [1, 2]].")
    return Selection(spans, taken, shape)


def _parts(parts: tuple[Any, ...], rank: int) -> Iterator[Any]:
    """Yield an index for each axis, and None for each new one; axes that are not named are whole."""
    gaps = [at for at, part in enumerate(parts) if part is ...]
    named = sum(part is not None and part is not ... for part in parts)
    if named > rank or len(gaps) > 1:
        raise SigmaGraphError(f"{len(gaps)} '...' and {named} indices for {rank} axes. Index each axis once at most.")
    cut = gaps[0] if gaps else len(parts)
    yield from (*parts[:cut], *[slice(None)] * (rank - named), *parts[cut + 1 :])


def _integer(part: Any, axis: int, side: int) -> int | None:
    """Return an index that is one integer, counted from 0, or None; truth values are refused."""
    part = np.asarray(part) if isinstance(part, list | bool) else part
    if str(getattr(part, "dtype", "")) == "bool":
        raise SigmaGraphError("a mask selects a number of entries that is unknown here. Use where(mask, x, y).")
    if not hasattr(part, "__index__") or np.ndim(part):
        return None
    if not -side <= index(part) < side:
        raise SigmaGraphError(f"index {part} is outside of axis {axis}, which has a side of {side}.")
    return index(part) % side


def _within(part: Any, side: int) -> Any:
    """Return indices that count from 0, if they are known: from the end, negative ones do."""
    if hasattr(part, "op"):
        return part
    places = np.asarray(part)
    if places.dtype.kind not in "iu" and places.size:
        raise SigmaGraphError(f"cannot index by {part!r}. Use integers, slices, '...', None, or lists of integers.")
    if places.size and not (places.min() >= -side and places.max() < side):
        raise SigmaGraphError(f"indices {places.min()} to {places.max()} are outside of a side of {side}.")
    return places.astype(np.int32) % np.int32(side or 1)
