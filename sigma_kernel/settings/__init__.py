"""Validators of settings, for the fields of attrs classes; each raises SigmaConfigError with one sentence.

Those with the name of a validator in :mod:`attrs.validators` do the same; :func:`must` makes others.
"""

from __future__ import annotations

import re
from abc import ABC
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from functools import cache, lru_cache, wraps
from inspect import Signature, cleandoc, signature as inspected
from math import inf, isfinite
from numbers import Integral, Real
from os import PathLike
from pathlib import Path
from typing import Any, ClassVar, Literal, TypeGuard, get_args

from attrs import Attribute, field, fields, frozen, validators
from attrs.validators import and_ as and_, optional as optional

from sigma_kernel.errors import SigmaConfigError, SigmaError, refuse_unknown
from sigma_kernel.graph.reprs import brief as brief
from sigma_kernel.scanning import OWN

Check = Callable[[Any, "Attribute[Any]", Any], Any]

_FIELD: Any = type(field())
_LIMITS = {"low": "at least", "above": "more than", "high": "at most", "below": "less than"}
_COMPARED = {">=": "at least", "<=": "at most", ">": "more than", "<": "less than"}
_DOCUMENTED = re.compile(r"^ {4}(\w++): ?((?:.*+)(?:\n {5,}+.*+)*+)", re.MULTILINE)  # one setting in a docstring
_BOUND = re.compile(r"(Length of )?'\w++' must be (>=|<=|>|<) ([^:]*+): (.*+)")


@frozen(eq=False)
class Requirement:
    """A validator that can be described: by ``words``, by the ``limits`` of a number, by ``choices`` of a closed set.

    Limits have the names ``low``, ``high``, ``above`` and ``below``, as in :func:`sigma_kernel.contracts.live`.
    """

    check: Check
    words: str = ""
    limits: Mapping[str, float] = field(factory=dict)
    choices: tuple[Any, ...] = ()

    def __call__(self, owner: Any, attribute: Attribute[Any], value: Any) -> None:
        """Raise an error unless a value fits."""
        self.check(owner, attribute, value)


def describe_limits(limits: Mapping[str, float]) -> str:
    """Return limits of a number in words: ``at least 0 and less than 1``."""
    phrases = {word: limits[name] for name, word in _LIMITS.items() if name in limits}
    return " and ".join(f"{word} {limit:{',' if isinstance(limit, int) else 'g'}}" for word, limit in phrases.items())


def requirements(validator: Any) -> Iterator[Requirement]:
    """Yield the requirements that make up a validator; validators of other kinds have none."""
    if isinstance(validator, Requirement):
        yield validator
    for inner in (*getattr(validator, "_validators", ()), getattr(validator, "validator", None)):  # of attrs
        yield from requirements(inner) if inner is not None else ()


def require(check: Check, kind: str, words: str = "", choices: Iterable[Any] = (), **limits: float) -> Requirement:
    """Return a validator that raises SigmaConfigError if an attrs validator raises ValueError or TypeError.

    ``kind`` describes the checkable values: others raise TypeError. The rest is for descriptions.
    """

    def validator(owner: Any, attribute: Attribute[Any], value: Any) -> None:
        where = f"{type(owner).__name__}.{attribute.alias}"
        try:
            check(owner, attribute, value)
        except ValueError as error:
            raise SigmaConfigError(f"{where}: {phrase(error)}.") from None
        except TypeError:
            raise SigmaConfigError(f"{where}: must be {kind} (got {value!r}).") from None

    return Requirement(validator, words, limits, tuple(choices))


def phrase(error: Exception) -> str:
    """Return the message of an error without its period; messages of attrs' own validators become plain English."""
    text = str(error.args[0]) if error.args else str(error)
    if match := _BOUND.fullmatch(text):
        length, sign, limit, got = match.groups()
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


def ge(limit: float) -> Requirement:
    """Require a number of at least ``limit``."""
    return require(validators.ge(limit), "a number", low=limit)


def gt(limit: float) -> Requirement:
    """Require a number above ``limit``."""
    return require(validators.gt(limit), "a number", above=limit)


def le(limit: float) -> Requirement:
    """Require a number of at most ``limit``."""
    return require(validators.le(limit), "a number", high=limit)


def lt(limit: float) -> Requirement:
    """Require a number below ``limit``."""
    return require(validators.lt(limit), "a number", below=limit)


def in_(options: Container[Any]) -> Requirement:
    """Require one of several values."""
    choices = options if isinstance(options, Iterable) else ()
    return require(validators.in_(options), "one of several values", choices=choices)


def min_len(length: int) -> Requirement:
    """Require at least this length."""
    return require(validators.min_len(length), "a list", f"of length {length} or more")


def deep_iterable(member: Check) -> Requirement:
    """Require a list whose values all satisfy a validator; it is described as the values are."""
    each = [*requirements(member)]
    words = ", ".join(text for part in each for text in (part.words, describe_limits(part.limits)) if text)
    choices = (choice for part in each for choice in part.choices)
    return require(validators.deep_iterable(member), "a list", words and f"each {words}", choices)


def instance_of(type_: type, words: str) -> Requirement:
    """Require an instance of a class, which ``words`` describe."""
    return must(lambda value: isinstance(value, type_), words)


def must(hold: Callable[[Any], Any], words: str, error: type[SigmaError] = SigmaConfigError) -> Requirement:
    """Require that a condition holds; ``words`` describe the values for which it does."""

    def check(owner: Any, attribute: Attribute[Any], value: Any) -> None:
        if not hold(value):
            raise error(f"{type(owner).__name__}.{attribute.alias}: must be {words} (got {value!r}).")

    return Requirement(check, words)


def matches_re(pattern: str, words: str) -> Requirement:
    """Require a string that matches a pattern in full; ``words`` describe the pattern."""
    return must(lambda value: isinstance(value, str) and re.fullmatch(pattern, value), words)


@cache
def read_docs(made: Any) -> Mapping[str, str]:
    """Return the documentation of a class's settings by name, inherited ones included.

    It is in the docstring, below a line ``Args:``, as ``name: text`` with four spaces in front; further lines of a text
    have more.
    """
    texts: dict[str, str] = {}
    for cls in reversed(made.__mro__):
        _, _, section = cleandoc(cls.__doc__ or "").partition("\nArgs:\n")
        texts |= {name: " ".join(text.split()) for name, text in _DOCUMENTED.findall(section.partition("\n\n")[0])}
    return texts


signature: Callable[[Callable[..., Any]], Signature] = lru_cache(1024)(inspected)  # cached: many layers, few classes


def check_call(where: str, made: Any, given: Any, settings: Any, kind: type[SigmaError] = SigmaConfigError) -> None:
    """Raise an error if a class or a function cannot be called with these settings, positional and by name."""
    parameters = signature(made).parameters
    several = {n: "Give it by position, without its name." for n, p in parameters.items() if p.kind is p.VAR_POSITIONAL}
    if all(p.kind is not p.VAR_KEYWORD for p in parameters.values()):
        refuse_unknown(where, settings, [name for name in parameters if name not in several], kind, several)
    try:
        there = signature(made).bind_partial(*given, **settings).arguments
    except TypeError as error:
        raise kind(f"{where}: {error}. It has {', '.join(parameters)}.") from error
    for name, p in parameters.items():
        if p.default is p.empty and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD) and name not in there:
            bare = any(name in vars(cls).get("_assigned", ()) for cls in getattr(made, "__mro__", ()))
            typed = f"The class sets it without its annotation. Write `{name}: {p.annotation} = ...`."
            raise kind(f"{where}.{name}: is missing. {typed if bare else 'It has ' + ', '.join(parameters) + '.'}")


class Settled(ABC):
    """The base of attrs classes with settings: refuse unknown ones, and other values where ``int`` is declared."""

    __slots__ = ()
    _assigned: ClassVar[frozenset[str]]  # what the body of the class sets; attrs leaves out what it has no type for

    def __init_subclass__(cls, **given: Any) -> None:
        super().__init_subclass__(**given)
        if "_assigned" not in vars(cls):  # a class of attrs has those of the one that it replaces
            own = vars(cls).items()
            cls._assigned = frozenset(n for n, x in own if not (hasattr(x, "__get__") or type(x) is _FIELD))

    @classmethod
    def __attrs_init_subclass__(cls) -> None:
        init: Any = cls.__init__
        whole = [f.name for f in fields(cls) if f.init and f.type in (int, "int")]  # type: ignore[arg-type]

        @wraps(init)
        def check_init(self: Any, *given: Any, **settings: Any) -> None:
            try:
                init(self, *given, **settings)
            except TypeError:
                check_call(type(self).__name__, type(self), given, settings)
                raise
            for name in whole:
                if isinstance(value := getattr(self, name), float | str):
                    rule = f"must be a whole number (got {value!r}). Use // or int()."
                    raise SigmaConfigError(f"{type(self).__name__}.{name.lstrip('_')}: {rule}")

        cls.__init__ = check_init  # type: ignore[method-assign]


def is_finite(value: Any) -> bool:
    """Return whether a value is a finite number in the range of a float."""
    try:
        return isinstance(value, Real) and not isinstance(value, bool) and isfinite(value)
    except OverflowError:  # a whole number of more than 300 digits
        return False


def is_whole(value: Any, least: int) -> TypeGuard[int]:
    """Return whether a value is a whole number, and at least so great; a truth value is none."""
    return isinstance(value, Integral) and not isinstance(value, bool) and int(value) >= least


def is_total(value: Any) -> bool:
    """Return whether a value is a total number of epochs: whole and positive, or infinite."""
    return value == inf or is_whole(value, 1)


whole = must(lambda value: isinstance(value, int) and not isinstance(value, bool), "a whole number")
epochs = must(is_total, "a whole number of at least 1, or inf")
finite = must(is_finite, "a finite number")


def seed(value: Any) -> int:
    """Convert a seed to an int; raises SigmaConfigError unless it is a whole number from 0 to 2**64 - 1."""
    if not is_whole(value, 0) or int(value) >= 2**64:
        raise SigmaConfigError(f"seed: must be a whole number from 0 to 2**64 - 1 (got {value!r}).")
    return int(value)


def folder(value: Any) -> Path | None:
    """Convert the path of a folder, or None; raises SigmaConfigError for anything else."""
    if value is not None and not isinstance(value, str | PathLike):
        raise SigmaConfigError(f"folder: must be a path (got {value!r}).")
    return None if value is None else Path(value)


def is_table(value: Any) -> bool:
    """Return whether a value is a table of a component: its ``type``, or its path in own code, and its settings."""
    return isinstance(value, Mapping) and any(isinstance(value.get(key), str) for key in ("type", OWN))


Precision = Literal["float32", "float64", "mixed", "mixed_bfloat16", "mixed_float16", "float16", "bfloat16"]
OWNED = {"owned": True}  # metadata of a field that is no setting: the owner of the object sets it
PRECISIONS: tuple[str, ...] = get_args(Precision)
MIXED = {"mixed_bfloat16": "bfloat16", "mixed_float16": "float16"}  # what products read; all else is float32


def precision(name: Any) -> Any:
    """Return the full name of a precision: ``mixed`` stands for ``mixed_bfloat16``."""
    return "mixed_bfloat16" if name == "mixed" else name


NAME = matches_re(r"[A-Za-z0-9][A-Za-z0-9_+-]*+", "a name of letters, digits, - and _")
SHAPE = and_(min_len(1), deep_iterable(ge(1)))
