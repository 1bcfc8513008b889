"""Dtype rules: pure functions from the operands' dtypes and the attributes to the dtype of the result."""

from __future__ import annotations

from typing import Any

from sigma_kernel.errors import SigmaGraphError
from sigma_kernel.graph.node import DTYPES, FLOATS, INTEGERS, Shape


def same(*dtypes: str, **_: Any) -> str:
    """Keep the dtype that all operands share."""
    if any(dtype not in DTYPES for dtype in dtypes):
        raise SigmaGraphError("a scan has several results. Read one of them with part.")
    if len(set(dtypes)) > 1:
        raise SigmaGraphError(f"dtypes {' and '.join(dict.fromkeys(dtypes))} do not mix. Cast one of them.")
    return dtypes[0]


def number(*dtypes: str, **_: Any) -> str:
    """Keep the dtype, which is not bool."""
    if same(*dtypes) == "bool":
        raise SigmaGraphError("it takes numbers, not bool. Cast first.")
    return dtypes[0]


def floating(*dtypes: str, **_: Any) -> str:
    """Keep the dtype, which is a float."""
    if same(*dtypes) not in FLOATS:
        raise SigmaGraphError(f"it takes floats, not {dtypes[0]}. Cast first.")
    return dtypes[0]


def logical(*dtypes: str, **_: Any) -> str:
    """Keep bool."""
    if same(*dtypes) != "bool":
        raise SigmaGraphError(f"it takes bool, not {dtypes[0]}. Compare first.")
    return "bool"


def compared(*dtypes: str) -> str:
    """Compare operands of one dtype."""
    same(*dtypes)
    return "bool"


def ordered(*dtypes: str) -> str:
    """Compare numbers of one dtype."""
    number(*dtypes)
    return "bool"


def tested(x: str) -> str:
    """Ask something of a float."""
    floating(x)
    return "bool"


def selected(condition: str, x: str, y: str) -> str:
    """Choose between two operands of one dtype."""
    logical(condition)
    return same(x, y)


def wanted(*_: str, dtype: str, **__: Any) -> str:
    """Take the dtype that an attribute names."""
    if dtype not in DTYPES:
        raise SigmaGraphError(f"there is no dtype {dtype!r}, only {', '.join(DTYPES)}")
    return dtype


def cast(x: str, *, dtype: str) -> str:
    """Take the wanted dtype."""
    same(x)
    return wanted(dtype=dtype)


def place(x: str, **_: Any) -> str:
    """Return a place among numbers."""
    number(x)
    return "int32"


def taken(x: str, indices: str, **_: Any) -> str:
    """Keep the dtype of what is read at integer places."""
    if indices not in ("int32", "int64"):
        raise SigmaGraphError(f"places are int32 or int64, not {indices}. Cast them.")
    return same(x)


def scattered(x: str, indices: str, updates: str, **_: Any) -> str:
    """Keep the dtype that the operand and its updates share."""
    taken(x, indices)
    return number(x, updates)


def counted(*, shape: Shape, axis: int, dtype: str) -> str:
    """Count in a dtype of numbers."""
    return number(wanted(dtype=dtype))


def random(*dtypes: str, **_: Any) -> str:
    """Make uint32 of uint32."""
    if set(dtypes) != {"uint32"}:
        raise SigmaGraphError("key, iteration, row and scan index are uint32")
    return "uint32"


def looped(*dtypes: str, body: Any, carries: int, **_: Any) -> str:
    """Check the operands of a scan against its body."""
    for i, (dtype, inner) in enumerate(zip(dtypes, body.inputs, strict=True)):
        if dtype != inner.dtype:
            raise SigmaGraphError(f"operand {i} must be {inner.dtype} for this body, not {dtype}")
    for i, (before, after) in enumerate(zip(dtypes[:carries], body.outputs[:carries], strict=True)):
        if before != after.dtype:
            raise SigmaGraphError(f"carry {i} is {before} before a step and {after.dtype} after it")
    return "tuple"


def part(scan: str, *, index: int, shape: Shape, dtype: str) -> str:
    """Take the dtype of one result."""
    if scan != "tuple":
        raise SigmaGraphError("only a scan has parts")
    return wanted(dtype=dtype)


def classified(logits: str, labels: str) -> str:
    """Keep the dtype of scores judged by integer labels."""
    if labels not in INTEGERS:
        raise SigmaGraphError(f"labels are integers, not {labels}. Cast them.")
    return floating(logits)


def dropped(x: str, rate: str, *key: str, stream: int) -> str:
    """Keep the dtype of what is thinned out by random bits."""
    random(*key)
    return floating(x, rate)
