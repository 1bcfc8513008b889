"""Margins of samples: elements before and after each side, as one number, one for each side, or pairs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sigma_kernel.errors import SigmaNetworkError
from sigma_kernel.settings import must

Margins = int | Sequence[int | Sequence[int]]


def _is_number(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _is_side(value: Any) -> bool:
    pair = isinstance(value, list | tuple) and len(value) == 2
    return all(map(_is_number, value)) if pair else _is_number(value)


def _are_margins(value: Any) -> bool:
    return all(map(_is_side, value)) and bool(value) if isinstance(value, list | tuple) else _is_number(value)


margins = must(
    _are_margins,
    "whole numbers of at least 0, one for all sides, or for each one or a pair (before, after)",
    SigmaNetworkError,
)


def pairs(where: str, shape: Sequence[int], value: Margins) -> list[tuple[int, int]]:
    """Return ``(before, after)`` for each side of ``(channels, *spatial)``; SigmaNetworkError for other numbers."""
    rank = len(shape) - 1
    if rank < 1:
        raise SigmaNetworkError(
            f"{where}({tuple(shape)}): a sample must have channels and sides. Put a Reshape before it."
        )
    sides = [value] * rank if isinstance(value, int) else list(value)
    if len(sides) != rank:
        raise SigmaNetworkError(
            f"{where}({tuple(shape)}): {value!r} has {len(sides)} entries for {rank} side(s). "
            "Give one number for all, or for each side one or a pair (before, after)."
        )
    return [(side, side) if isinstance(side, int) else (side[0], side[1]) for side in sides]
