"""Checks of settings, the same for every layer here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from attrs import Attribute

from sigma_kernel.errors import SigmaError, SigmaNetworkError
from sigma_kernel.graph.node import Node

Result = TypeVar("Result")
ACTIVATION = {"kind": "activation"}  # marks a setting that may be the name of such a component


def count(layer: Any, attribute: Attribute[Any], value: Any) -> None:
    """Raise SigmaNetworkError unless a setting is 1, 2, 3 ..."""
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise SigmaNetworkError(f"{named(layer, attribute)}: must be 1, 2, 3 ... (got {value!r}).")


def counts(layer: Any, attribute: Attribute[Any], value: tuple[Any, ...]) -> None:
    """Raise SigmaNetworkError unless every number of a setting is 1, 2, 3 ..."""
    for side in value:
        count(layer, attribute, side)


def activation(layer: Any, attribute: Attribute[Any], value: Any) -> None:
    """Raise SigmaNetworkError unless a setting is the name of an activation, or a function."""
    if not isinstance(value, str) and not callable(value):
        raise SigmaNetworkError(f"{named(layer, attribute)}: must be a name or a function (got {value!r}).")


def function(layer: Any, attribute: Attribute[Any], value: Any) -> None:
    """Raise SigmaNetworkError unless a setting is a function."""
    if not callable(value):
        raise SigmaNetworkError(f"{named(layer, attribute)}: must be a function of nodes (got {value!r}).")


def applied(function: Callable[..., Result], *nodes: Node) -> Result:
    """Return what a function of a user's own makes of nodes; whatever it raises is told with what it takes."""
    try:
        return function(*nodes)
    except SigmaError:
        raise
    except Exception as error:
        given = "a node" if len(nodes) == 1 else f"{len(nodes)} nodes"
        raise SigmaNetworkError(
            f"its function, given {given}, failed: {type(error).__name__}: {str(error).rstrip('.')}. "
            "Make it of operators and of what sigma_kernel.functions has, such as f.tanh."
        ) from error


def named(layer: Any, attribute: Attribute[Any]) -> str:
    """Return a setting as users know it, such as ``Dense.units``."""
    return f"{type(layer).__name__}.{attribute.name}"
