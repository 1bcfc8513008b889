"""Values as JSON: numbers that are not finite, summaries of arrays, records."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from attrs import fields, has

from sigma_kernel.errors import SigmaConfigError
from sigma_monitor_control.protocol.documents import NOT_FINITE, number

LONGEST_TEXT = 10_000  # characters of a value that is no JSON value


def to_json(value: Any) -> Any:
    """Return a value as JSON: a number that is not finite as a string, an array as its summary."""
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, np.ndarray):
        return {"array": summary(value)}
    if isinstance(value, np.generic):
        return to_json(value.item())
    if isinstance(value, int | float):
        return number(value)
    if isinstance(value, Mapping):
        return {str(name): to_json(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [to_json(inner) for inner in value]
    if has(type(value)):
        return {field.name: to_json(getattr(value, field.name)) for field in fields(type(value))}
    return str(value)[:LONGEST_TEXT]


def parse_value(value: Any, type: str) -> Any:
    """Return a value that was sent, for an address of this type; a string may stand for a number that is not finite."""
    return NOT_FINITE.get(value, value) if type == "number" and isinstance(value, str) else value


def column(values: np.ndarray) -> list[float | None]:
    """Return a series as a list; a number that is not finite is None."""
    return [value if value is None or math.isfinite(value) else None for value in values.tolist()]


def summary(array: np.ndarray) -> dict[str, Any]:
    """Return shape and dtype of an array; of numbers the least, the greatest, mean and standard deviation as well.

    These are of the finite elements; ``unusual`` is how many are not finite, if any.
    """
    about = {"shape": list(array.shape), "dtype": str(array.dtype)}
    if array.dtype.kind not in "biuf":
        return about
    values = array.astype(np.float64, copy=False)
    finite = values[np.isfinite(values)]
    unusual = {"unusual": values.size - finite.size} if finite.size < values.size else {}
    if not finite.size:
        return {**about, "low": None, "high": None, "mean": None, "deviation": None, **unusual}
    with np.errstate(over="ignore", invalid="ignore"):  # of float64's largest numbers
        statistics = {"low": finite.min(), "high": finite.max(), "mean": finite.mean(), "deviation": finite.std()}
    return {**about, **{name: number(float(value)) for name, value in statistics.items()}, **unusual}


def numbers(value: Any, what: str) -> np.ndarray:
    """Return a nested list of numbers as an array of float64; raises SigmaConfigError for anything else."""
    try:
        array = np.asarray(value, np.float64)
    except (TypeError, ValueError):
        raise SigmaConfigError(f"{what}: must be a list of numbers, or nested lists of equal length.") from None
    return array
