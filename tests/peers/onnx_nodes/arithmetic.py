"""ONNX's elementwise operators, comparisons and reductions, in functions of the graph."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial, reduce
from typing import Any

import numpy as np

from sigma_kernel import functions as f
from sigma_kernel.graph import Node
from tests.peers.onnx_nodes.reading import NUMPY_TYPES, OutOfScopeError, Table, Value

ELEMENTWISE = Table()
row = ELEMENTWISE.row
UNARY: dict[str, Callable[[Any], Any]] = {
    "Abs": f.abs, "Neg": f.neg, "Sign": f.sign, "Floor": f.floor, "Ceil": lambda x: -f.floor(-x), "Exp": f.exp,
    "Log": f.log, "Sqrt": f.sqrt, "Sin": f.sin, "Cos": f.cos, "Tan": lambda x: f.sin(x) / f.cos(x), "Tanh": f.tanh,
    "Erf": f.erf, "Not": f.logical_not, "Relu": f.relu, "Sigmoid": f.sigmoid, "Softplus": f.softplus,
    "Reciprocal": lambda x: 1.0 / x, "Identity": lambda x: x, "Softsign": lambda x: x / (f.abs(x) + 1.0),
    "Mish": lambda x: x * f.tanh(f.softplus(x)), "HardSwish": lambda x: x * f.clip(x / 6.0 + 0.5, 0.0, 1.0),
    "Sinh": lambda x: (f.exp(x) - f.exp(-x)) * 0.5, "Cosh": lambda x: (f.exp(x) + f.exp(-x)) * 0.5,
    "IsNaN": lambda x: f.not_equal(x, x),
}  # fmt: skip
BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "Add": f.add, "Sub": f.sub, "Mul": f.mul, "Equal": f.equal, "Greater": f.greater, "Less": f.less,
    "GreaterOrEqual": f.greater_equal, "LessOrEqual": f.less_equal, "And": f.logical_and, "Or": f.logical_or,
    "PRelu": lambda x, slope: f.where(x > 0.0, x, x * slope),
    "Xor": lambda x, y: f.logical_and(f.logical_or(x, y), f.logical_not(f.logical_and(x, y))),
}  # fmt: skip
MANY: dict[str, Callable[[Any, Any], Any]] = {"Max": f.maximum, "Min": f.minimum, "Sum": f.add}
REDUCED: dict[str, Callable[..., Any]] = {
    "ReduceSum": f.sum, "ReduceMax": f.max, "ReduceMin": f.min, "ReduceMean": f.mean, "ReduceL2": f.norm,
    "ReduceLogSumExp": f.log_sum_exp, "ReduceL1": lambda x, *how: f.sum(f.abs(x), *how),
    "ReduceSumSquare": lambda x, *how: f.sum(f.square(x), *how),
    "ReduceLogSum": lambda x, *how: f.log(f.sum(x, *how)),
}  # fmt: skip


def _of_many(function: Callable[[Any, Any], Any], *xs: Any) -> Any:
    return reduce(function, xs)


ELEMENTWISE.add(UNARY | BINARY)
ELEMENTWISE.add({name: partial(_of_many, function) for name, function in MANY.items()})


def is_integer(x: Value) -> bool:
    """Return whether an operand holds integers."""
    return np.dtype(str(x.dtype)).kind in "iu"  # type: ignore[union-attr]


# -- arithmetic --------------------------------------------------------------------------------------------------------
@row("Div")
def _div(x: Any, y: Any) -> Any:
    if is_integer(x):
        if isinstance(x, np.ndarray) and isinstance(y, np.ndarray):
            return x // y
        raise OutOfScopeError("arithmetic of integers", "Div")
    return f.div(x, y)


@row("Pow")
def _pow(x: Any, y: Any) -> Any:
    if is_integer(x) or is_integer(y):
        raise OutOfScopeError("arithmetic of integers", "Pow")
    return f.pow(x, y)


@row("Mod")
def _mod(x: Any, y: Any, fmod: int = 0) -> Any:
    if fmod:
        raise OutOfScopeError("a mode of an operator", "Mod with fmod")
    return f.mod(x, y)


@row("Mean")
def _mean(*xs: Any) -> Any:
    return reduce(f.add, xs) / float(len(xs))


@row("Clip")
def _clip(x: Any, low: Any = None, high: Any = None) -> Any:
    if low is None and high is None:
        return x
    if high is None:
        return f.maximum(x, low)
    return f.minimum(x, high) if low is None else f.clip(x, low, high)


@row("IsInf")
def _is_inf(x: Any, detect_negative: int = 1, detect_positive: int = 1) -> Any:
    infinite = f.logical_and(f.logical_not(f.is_finite(x)), f.equal(x, x))
    if not detect_negative or not detect_positive:
        infinite = f.logical_and(infinite, x > 0.0 if detect_positive else x < 0.0)
    return infinite


@row("Cast")
def _cast(x: Any, to: int, saturate: int = 1, round_mode: str = "up") -> Any:
    if to not in NUMPY_TYPES:
        raise OutOfScopeError("a dtype that Sigma does not have", "Cast")
    return f.cast(x, NUMPY_TYPES[to])


@row("CastLike")
def _cast_like(x: Any, like: Any, saturate: int = 1, round_mode: str = "up") -> Any:
    return f.cast(x, str(like.dtype))


@row("Where")
def _where(condition: Any, x: Any, y: Any) -> Any:
    return f.where(condition, x, y)


# -- activations -------------------------------------------------------------------------------------------------------
@row("LeakyRelu")
def _leaky_relu(x: Any, alpha: float = 0.01) -> Any:
    return f.leaky_relu(x, alpha)


@row("Elu")
def _elu(x: Any, alpha: float = 1.0) -> Any:
    return f.elu(x, alpha)


@row("Celu")
def _celu(x: Any, alpha: float = 1.0) -> Any:
    return f.maximum(x, 0.0) + f.minimum(f.expm1(x / alpha) * alpha, 0.0)


@row("Selu")
def _selu(x: Any, alpha: float = 1.67326319217681884765625, gamma: float = 1.05070102214813232421875) -> Any:
    return f.elu(x, alpha) * gamma


@row("ThresholdedRelu")
def _thresholded(x: Any, alpha: float = 1.0) -> Any:
    return f.where(x > alpha, x, 0.0)


@row("HardSigmoid")
def _hard_sigmoid(x: Any, alpha: float = 0.2, beta: float = 0.5) -> Any:
    return f.clip(x * alpha + beta, 0.0, 1.0)


@row("Shrink")
def _shrink(x: Any, bias: float = 0.0, lambd: float = 0.5) -> Any:
    return f.where(x < -lambd, x + bias, f.where(x > lambd, x - bias, 0.0))


@row("Gelu")
def _gelu(x: Any, approximate: str = "none") -> Any:
    if approximate == "tanh":
        return x * (f.tanh((x + x * x * x * 0.044715) * math.sqrt(2.0 / math.pi)) + 1.0) * 0.5
    return f.gelu(x)


@row("Swish")
def _swish(x: Any, alpha: float = 1.0) -> Any:
    return f.silu(x) if alpha == 1.0 else x * f.sigmoid(x * alpha)


@row("SwiGLU")
def _swiglu(x: Any, gate: Any = None, alpha: float = 1.0) -> Any:
    return _swish(x, alpha) * gate


@row("Softmax")
def _softmax(x: Any, axis: int = -1) -> Any:
    return f.softmax(x, axis)


@row("LogSoftmax")
def _log_softmax(x: Any, axis: int = -1) -> Any:
    return f.log_softmax(x, axis)


@row("Hardmax")
def _hardmax(x: Any, axis: int = -1) -> Any:
    best, wide = f.argmax(x, axis, keepdims=True), [1] * len(x.shape)
    wide[axis] = x.shape[axis]
    return f.cast(f.equal(f.iota(wide, axis), best), str(x.dtype))


# -- reductions --------------------------------------------------------------------------------------------------------
def _reduction(function: Callable[..., Any]) -> Callable[..., Any]:
    def reduced(
        x: Node, over: np.ndarray | None = None, axes: Any = None, keepdims: int = 1, noop_with_empty_axes: int = 0
    ) -> Any:
        chosen = axes if over is None else [int(a) for a in over]
        if not chosen:
            if noop_with_empty_axes:
                return function(f.expand(x, 0), 0, False)
            chosen = list(range(len(x.shape)))
        if not math.prod(x.shape) and function in (f.max, f.min, f.log_sum_exp):
            raise OutOfScopeError("a maximum of nothing, which is an error", "ReduceMax, ReduceMin, ReduceLogSumExp")
        if str(x.dtype) == "bool":
            raise OutOfScopeError("arithmetic of bool", "reductions")
        if is_integer(x) and function not in (f.sum, f.max, f.min):
            raise OutOfScopeError("arithmetic of integers", "means and norms")
        return function(x, tuple(chosen), bool(keepdims)) if x.shape else function(f.expand(x, 0), 0, False)

    return reduced


ELEMENTWISE.add({name: _reduction(function) for name, function in REDUCED.items()}, static=(1,))


@row("ArgMax")
def _argmax(x: Any, axis: int = 0, keepdims: int = 1, select_last_index: int = 0) -> Any:
    if select_last_index:
        raise OutOfScopeError("a mode of an operator", "ArgMax with select_last_index")
    return f.cast(f.argmax(x, axis, bool(keepdims)), "int64")


@row("ArgMin")
def _argmin(x: Any, axis: int = 0, keepdims: int = 1, select_last_index: int = 0) -> Any:
    return _argmax(-x, axis, keepdims, select_last_index)
