"""Validators shared by layers, and error handling for calls of users' functions."""

from __future__ import annotations

from collections.abc import Callable
from inspect import signature
from typing import Any, TypeVar

from attrs import Attribute

from sigma_kernel.contracts import Architecture
from sigma_kernel.errors import SigmaError, SigmaNetworkError
from sigma_kernel.graph import Node
from sigma_kernel.settings import is_finite, must

Result = TypeVar("Result")
ACTIVATION = {"kind": "activation"}  # marks a setting that may be the name of such a component


def is_count(value: Any) -> bool:
    """Return whether a value is a whole number of at least 1."""
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1


def _is_positive(value: Any) -> bool:
    return is_finite(value) and value > 0


count = must(is_count, "a whole number of at least 1", SigmaNetworkError)
whole = must(lambda value: isinstance(value, int) and not isinstance(value, bool), "a whole number", SigmaNetworkError)
positive = must(_is_positive, "a positive number", SigmaNetworkError)
number = must(is_finite, "a finite number", SigmaNetworkError)
flag = must(lambda value: isinstance(value, bool), "true or false", SigmaNetworkError)
activation = must(lambda value: isinstance(value, str) or callable(value), "a name or a function", SigmaNetworkError)
architecture = must(lambda value: isinstance(value, Architecture), "a layer or a chain of layers", SigmaNetworkError)
function = must(callable, "a function of nodes", SigmaNetworkError)


def check_separate_sides(owner: Any, attribute: Attribute[Any], value: Any) -> None:
    """Raise SigmaNetworkError for a shape passed as one tuple instead of separate sides."""
    if value and isinstance(value[0], tuple | list):
        name, sides = type(owner).__name__, ", ".join(map(str, value[0]))
        raise SigmaNetworkError(f"{name}: pass sides as separate arguments (got {value[0]!r}). Write {name}({sides}).")


def check_takes(function: Callable[..., Any], *given: str) -> None:
    """Raise SigmaNetworkError unless a user's function accepts these arguments, in this order."""
    try:
        signature(function).bind(*given)
    except TypeError as error:
        weighted = ", as the data has sample weights: take them, or leave their section out" if len(given) > 2 else ""
        raise SigmaNetworkError(
            f"its function receives {len(given)} arguments{weighted} ({error}). "
            f"Write it as a function of ({', '.join(given)})."
        ) from None


def call_function(function: Callable[..., Result], *nodes: Node) -> Result:
    """Call a user's function on nodes; its exceptions become SigmaNetworkErrors that state its required arguments."""
    try:
        return function(*nodes)
    except SigmaError:
        raise
    except Exception as error:
        given = "a node" if len(nodes) == 1 else f"{len(nodes)} nodes"
        raise SigmaNetworkError(
            f"its function, given {given}, failed: {type(error).__name__}: {str(error).rstrip('.')}. "
            "Write it with operators and sigma_kernel.functions, such as f.tanh."
        ) from error
