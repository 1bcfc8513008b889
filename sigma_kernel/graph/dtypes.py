"""Dtype rules: functions from the operands' dtypes and the attributes to the dtype of the result."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

from sigma_kernel.errors import SigmaGraphError
from sigma_kernel.graph.node import DTYPES, FLOATS, INTEGERS, NARROW, check_dtype


def same(*dtypes: str, **_: Any) -> str:
    """Return the dtype that all operands share; raises SigmaGraphError if they differ."""
    if "tuple" in dtypes:
        raise SigmaGraphError("a scan has several results. Select one of them with part.")
    if len(set(dtypes)) > 1:
        raise SigmaGraphError(f"dtypes {' and '.join(dict.fromkeys(dtypes))} do not mix. Cast one of them.")
    return dtypes[0]


def _one_of(kinds: Collection[str], what: str, result: str = "") -> Callable[..., str]:
    """Return a rule: operands share one of these dtypes; the result has it, or else the given one."""

    def rule(*dtypes: str, **_: Any) -> str:
        if same(*dtypes) not in kinds:
            raise SigmaGraphError(f"it takes {what}, not {dtypes[0]}. Cast or compare first.")
        return result or dtypes[0]

    return rule


_NUMBERS = (*FLOATS, *INTEGERS)
number = _one_of(_NUMBERS, "numbers")
floating = _one_of(FLOATS, "floats")
logical = _one_of(("bool",), "bool")
words = _one_of(("uint32",), "uint32")
compared = _one_of(DTYPES, "", "bool")
ordered = _one_of(_NUMBERS, "numbers", "bool")
tested = _one_of(FLOATS, "floats", "bool")
place = _one_of(_NUMBERS, "numbers", "int32")
wide = _one_of(("float32", "float64"), "float32 or float64")
_places = _one_of(("int32", "int64"), "places that are int32 or int64")
_labels = _one_of(INTEGERS, "labels that are integers")


def attribute(*operands: str, dtype: str, **_: Any) -> str:
    """Return the dtype given as an attribute."""
    if operands:
        same(*operands)
    return check_dtype(dtype)


def rounding(*operands: str, dtype: str) -> str:
    """Return the dtype of floats that are rounded to the numbers of a narrower dtype, and keep their own."""
    if dtype not in NARROW:
        raise SigmaGraphError(f"it rounds to {' or '.join(NARROW)}, not to {dtype!r}.")
    return wide(*operands)


def part(scan: str, *, dtype: str, **_: Any) -> str:
    """Return the dtype of one result of a scan."""
    if scan != "tuple":
        raise SigmaGraphError("only a scan has parts")
    return attribute(dtype=dtype)


def selection(condition: str, x: str, y: str) -> str:
    """Return the dtype of two operands, of which a bool chooses one."""
    logical(condition)
    return same(x, y)


def indexing(x: str, indices: str, **_: Any) -> str:
    """Return the dtype of an array that is indexed with int32 or int64."""
    _places(indices)
    return same(x)


def scattering(x: str, indices: str, updates: str, **_: Any) -> str:
    """Return the dtype that the operand and its updates share."""
    _places(indices)
    return number(x, updates)


def scan(*dtypes: str, body: Any, carries: int, **_: Any) -> str:
    """Compare the operands of a scan with its body; the results are selected with part."""
    for i, (dtype, inner) in enumerate(zip(dtypes, body.inputs, strict=True)):
        after = body.outputs[i].dtype if i < carries else dtype
        if not dtype == inner.dtype == after:
            raise SigmaGraphError(f"operand {i} is {dtype}; the body takes {inner.dtype} and returns {after}")
    return "tuple"


def classification(scores: str, labels: str) -> str:
    """Return the dtype of scores that are compared with integer labels."""
    _labels(labels)
    return floating(scores)


def first_dtype(x: str, gate: str) -> str:
    """Return the dtype of the first operand."""
    return x


def dropout(x: str, rate: str, *key: str, stream: int) -> str:
    """Return the dtype of the operand of dropout."""
    words(*key)
    return floating(x, rate)


def attention(q: str, k: str, v: str, *mask: str, causal: bool) -> str:
    """Return the dtype of queries, keys and values; a mask is bool."""
    return selection(logical(*mask) if mask else "bool", floating(q, k), v)
