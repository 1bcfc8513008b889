"""Read values by address pattern, and format file names from them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from string import Formatter
from typing import Any

from sigma_kernel import COUNTED, TimeScale
from sigma_kernel.contracts import HookContext
from sigma_kernel.errors import SigmaConfigError

CLOCK = tuple(scale.value for scale in COUNTED)


def read_all(context: HookContext, pattern: str) -> dict[str, Any]:
    """Return the values that match a pattern by address, short addresses first; missing ones are left out."""
    answer = context.read(pattern)
    values = answer if isinstance(answer, Mapping) else {pattern: answer}
    return {a: values[a] for a in sorted(values, key=lambda a: a.count(".")) if values[a] is not None}


def placeholders(name: str) -> tuple[str, ...]:
    """Return the addresses in braces in the name of a file, such as ``epoch-{epoch}-{validation.accuracy:.3f}``.

    Raises SigmaConfigError for unbalanced braces.
    """
    try:
        return tuple(field for _, field, _, _ in Formatter().parse(name) if field is not None)
    except ValueError as error:
        raise SigmaConfigError(f"{name!r}: not a file name: {error}. Write an address in braces.") from error


def file_name(name: str, context: HookContext, own: Mapping[str, Any]) -> str:
    """Return the name of a file with every address in braces replaced by its value; ``own`` are additional names."""
    parts = []
    for text, field, form, _ in Formatter().parse(name):
        parts += [text] if field is None else [text, format(_value(field, context, own), form or "")]
    return re.sub(r"[^\w.+-]", "_", "".join(parts)).lstrip(".") or "_"  # a single path component for all values


def _value(field: str, context: HookContext, own: Mapping[str, Any]) -> Any:
    if field in own:
        return own[field]
    return context.moment.count(TimeScale(field)) if field in CLOCK else context.read(field)
