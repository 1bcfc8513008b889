"""Layers, activations and costs, for Sigma."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from sigma_layers.plugin import sigma_components

if TYPE_CHECKING:  # the same table again, for type checkers; a test compares the two
    from sigma_layers.activation import Activation as Activation
    from sigma_layers.activations import (
        elu as elu,
        gelu as gelu,
        identity as identity,
        leaky_relu as leaky_relu,
        relu as relu,
        sigmoid as sigmoid,
        silu as silu,
        softmax as softmax,
        softplus as softplus,
        tanh as tanh,
    )
    from sigma_layers.add import Add as Add
    from sigma_layers.average_pool import AveragePool as AveragePool
    from sigma_layers.binary_cross_entropy import BinaryCrossEntropy as BinaryCrossEntropy
    from sigma_layers.concat import Concat as Concat
    from sigma_layers.conv2d import Conv2d as Conv2d
    from sigma_layers.dense import Dense as Dense
    from sigma_layers.dropout import Dropout as Dropout
    from sigma_layers.flatten import Flatten as Flatten
    from sigma_layers.function import Function as Function
    from sigma_layers.function_cost import FunctionCost as FunctionCost
    from sigma_layers.input import Input as Input
    from sigma_layers.max_pool import MaxPool as MaxPool
    from sigma_layers.output import Output as Output
    from sigma_layers.reshape import Reshape as Reshape
    from sigma_layers.softmax_cross_entropy import SoftmaxCrossEntropy as SoftmaxCrossEntropy
    from sigma_layers.squared_difference import SquaredDifference as SquaredDifference

_EXPORTS = {name: module for module, _, name in (component.path.partition(":") for component in sigma_components())}
__all__ = sorted(_EXPORTS)


def __getattr__(name: str) -> Any:
    if name not in _EXPORTS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_EXPORTS[name]), name)


def __dir__() -> list[str]:
    return __all__
