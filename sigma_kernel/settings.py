"""Validators of settings, for the fields of attrs classes; each raises SigmaConfigError with one sentence.

Those with the name of a validator in :mod:`attrs.validators` do the same; :func:`must` makes others.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterable
from math import inf, isfinite
from numbers import Integral, Real
from typing import Any, Literal, get_args

from attrs import Attribute, validators
from attrs.validators import and_ as and_, optional as optional

from sigma_kernel.errors import SigmaConfigError, SigmaError

Check = Callable[[Any, "Attribute[Any]", Any], Any]

_COMPARED = {">=": "at least", "<=": "at most", ">": "more than", "<": "less than"}
_BOUND = re.compile(r"(Length of )?'\w++' must be (>=|<=|>|<) ([^:]*+): (.*+)")


def checked(check: Check, kind: str) -> Check:
    """Return a validator that raises SigmaConfigError where one of attrs raises ValueError or TypeError.

    ``kind`` describes the values that can be checked at all: others raise TypeError.
    """

    def validator(owner: Any, attribute: Attribute[Any], value: Any) -> None:
        where = f"{type(owner).__name__}.{attribute.alias}"
        try:
            check(owner, attribute, value)
        except ValueError as error:
            raise SigmaConfigError(f"{where}: {phrase(error)}.") from None
        except TypeError:
            raise SigmaConfigError(f"{where}: must be {kind} (got {value!r}).") from None

    return validator


def phrase(error: Exception) -> str:
    """Return the message of an error without its period; messages of attrs' own validators become plain English."""
    text = str(error.args[0]) if error.args else str(error)
    if found := _BOUND.fullmatch(text):
        length, sign, limit, got = found.groups()
        if length and got == "0":
            return "must not be empty"
        return f"must {'have a length of' if length else 'be'} {_COMPARED[sign]} {limit} (got {got})"
    if len(error.args) == 4 and isinstance(error.args[1], Attribute):
        _, _, wanted, value = error.args
        if isinstance(wanted, re.Pattern):
            return f"must have the form {wanted.pattern} (got {value!r})"
        if isinstance(wanted, Iterable):
            return f"must be {' or '.join(map(repr, wanted))} (got {value!r})"
    return text


def ge(limit: float) -> Check:
    """Require a number of at least ``limit``."""
    return checked(validators.ge(limit), "a number")


def gt(limit: float) -> Check:
    """Require a number above ``limit``."""
    return checked(validators.gt(limit), "a number")


def le(limit: float) -> Check:
    """Require a number of at most ``limit``."""
    return checked(validators.le(limit), "a number")


def lt(limit: float) -> Check:
    """Require a number below ``limit``."""
    return checked(validators.lt(limit), "a number")


def in_(options: Container[Any]) -> Check:
    """Require one of several values."""
    return checked(validators.in_(options), "one of several values")


def min_len(length: int) -> Check:
    """Require at least this length."""
    return checked(validators.min_len(length), "a list")


def deep_iterable(member: Check) -> Check:
    """Require a list whose values all satisfy a validator."""
    return checked(validators.deep_iterable(member), "a list")


def instance_of(type_: type, words: str) -> Check:
    """Require an instance of a class, which ``words`` describe."""
    return must(lambda value: isinstance(value, type_), words)


def must(hold: Callable[[Any], Any], words: str, error: type[SigmaError] = SigmaConfigError) -> Check:
    """Require that a condition holds; ``words`` describe the values for which it does."""

    def check(owner: Any, attribute: Attribute[Any], value: Any) -> None:
        if not hold(value):
            raise error(f"{type(owner).__name__}.{attribute.alias}: must be {words} (got {value!r}).")

    return check


def matches_re(pattern: str, words: str) -> Check:
    """Require a string that matches a pattern in full; ``words`` describe the pattern."""
    return must(lambda value: isinstance(value, str) and re.fullmatch(pattern, value), words)


def is_finite(value: Any) -> bool:
    """Return whether a value is a finite number in the range of a float."""
    try:
        return isinstance(value, Real) and not isinstance(value, bool) and isfinite(value)
    except OverflowError:  # a whole number of more than 300 digits
        return False


def is_total(value: Any) -> bool:
    """Return whether a value is a total number of epochs: whole and positive, or infinite."""
    return value == inf or (isinstance(value, Integral) and not isinstance(value, bool) and int(value) >= 1)


whole = must(lambda value: isinstance(value, int) and not isinstance(value, bool), "a whole number")
epochs = must(is_total, "1, 2, 3 ... or inf")
finite = must(is_finite, "a finite number")


def seed(value: Any) -> int:
    """Convert a seed to an int; raises SigmaConfigError unless it is a whole number from 0 to 2**64 - 1."""
    if not isinstance(value, Integral) or isinstance(value, bool) or not 0 <= int(value) < 2**64:
        raise SigmaConfigError(f"seed: must be a whole number from 0 to 2**64 - 1 (got {value!r}).")
    return int(value)


Precision = Literal["float32", "float64", "float16", "bfloat16"]
PRECISIONS: tuple[str, ...] = get_args(Precision)
NAME = matches_re(r"[A-Za-z0-9][A-Za-z0-9_+-]*+", "a name of letters, digits, - and _")
SHAPE = and_(min_len(1), deep_iterable(ge(1)))
