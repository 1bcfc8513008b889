"""Elementwise ops, reductions and normalisations in ONNX."""

from __future__ import annotations

from collections.abc import Callable

from sigma_export_onnx.sizes import AnyNode
from sigma_export_onnx.writer import GraphWriter
from sigma_kernel.graph import FLOATS

Express = Callable[..., str]  # of the writer, the node and the names of its operands: the name of its value


def _op(kind: str) -> Express:
    """Return an op that ONNX has under this name."""
    return lambda w, node, *x: w.add(kind, *x)


def _integer_too(kind: str) -> Express:
    """Return an op of floats in ONNX, which does nothing to integers."""
    return lambda w, node, x: w.add(kind, x) if node.dtype in FLOATS else x


def _expm1(w: GraphWriter, node: AnyNode, x: str) -> str:
    """Compute tanh(x / 2) * (exp(x) + 1), which is precise near 0 as well."""
    half = w.add("Tanh", w.add("Mul", x, w.number(0.5, node)))
    return w.add("Mul", half, w.add("Add", w.add("Exp", x), w.number(1.0, node)))


def _log1p(w: GraphWriter, node: AnyNode, x: str) -> str:
    """Compute log(u) * x / (u - 1) for u = 1 + x, rounded, and x if that is 1 (Goldberg, 1991, theorem 4)."""
    unit, few = w.number(1.0, node), w.add("Min", x, w.number(1e30, node))
    near = w.add("Add", few, unit)
    ratio = w.add("Div", few, w.add("Sub", near, unit))
    precise = w.add("Mul", w.add("Log", w.add("Add", x, unit)), ratio)
    return w.add("Where", w.add("Equal", near, unit), x, precise)


def _mod(w: GraphWriter, node: AnyNode, x: str, y: str) -> str:
    """Compute the remainder with the sign of the divisor; that of floats in ONNX has the sign of the dividend."""
    if node.dtype not in FLOATS:
        return w.add("Mod", x, y)
    rest, zero = w.add("Mod", x, y, fmod=1), w.number(0.0, node)
    other = w.add("Less", w.add("Mul", w.add("Sign", rest), w.add("Sign", y)), zero)
    return w.add("Where", other, w.add("Add", rest, y), rest)


def _select(w: GraphWriter, node: AnyNode, condition: str, x: str, y: str) -> str:
    if node.dtype != "bool":
        return w.add("Where", condition, x, y)
    others = w.add("And", w.add("Not", condition), y)
    return w.add("Or", w.add("And", condition, x), others)


def _is_finite(w: GraphWriter, node: AnyNode, x: str) -> str:
    return w.add("Not", w.add("Or", w.add("IsNaN", x), w.add("IsInf", x)))


def _relu(w: GraphWriter, node: AnyNode, x: str) -> str:
    return w.add("Relu", x) if node.dtype in FLOATS else w.add("Max", x, w.number(0, node))


def _reduce(kind: str) -> Express:
    return lambda w, node, x: w.add(kind, x, w.array(node.attrs["axis"]), keepdims=1) if node.attrs["axis"] else x


def _argmax(w: GraphWriter, node: AnyNode, x: str) -> str:
    return w.cast(w.add("ArgMax", x, axis=node.attrs["axis"], keepdims=1), "int32")


def _cumsum(w: GraphWriter, node: AnyNode, x: str) -> str:
    return w.add("CumSum", x, w.array(node.attrs["axis"]), reverse=int(node.attrs["reverse"]))


def _argsort(w: GraphWriter, node: AnyNode, x: str) -> str:
    """Return the places of as many entries as there are; of equal ones, the first comes first in ONNX, too."""
    axis = node.attrs["axis"]
    how = {"axis": axis, "largest": int(node.attrs["descending"]), "sorted": 1}
    names = [w.name("TopK"), w.name("places")]
    return w.cast(w.add_node("TopK", [x, w.vector((node.shape[axis],))], names, **how)[1], "int32")


def _round_to_dtype(w: GraphWriter, node: AnyNode, x: str) -> str:
    return w.cast(w.cast(x, node.attrs["dtype"]), node.dtype)


def _express_along_axis(kind: str) -> Express:
    return lambda w, node, x: w.add(kind, x, axis=node.attrs["axis"])


def _layer_norm(w: GraphWriter, node: AnyNode, *x: str) -> str:
    return w.add("LayerNormalization", *x, axis=-1, epsilon=node.attrs["epsilon"])


TABLE: dict[str, Express] = {
    "add": _op("Add"), "sub": _op("Sub"), "mul": _op("Mul"), "div": _op("Div"), "pow": _op("Pow"),
    "mod": _mod, "maximum": _op("Max"), "minimum": _op("Min"), "neg": _op("Neg"), "abs": _op("Abs"),
    "sign": _op("Sign"), "floor": _integer_too("Floor"), "exp": _op("Exp"), "expm1": _expm1, "log": _op("Log"),
    "log1p": _log1p, "sqrt": _op("Sqrt"), "sin": _op("Sin"), "cos": _op("Cos"), "tanh": _op("Tanh"),
    "erf": _op("Erf"), "equal": _op("Equal"), "greater": _op("Greater"),
    "greater_equal": _op("GreaterOrEqual"), "logical_and": _op("And"), "logical_or": _op("Or"),
    "logical_not": _op("Not"), "is_finite": _is_finite, "where": _select, "stop": lambda w, node, x: x,
    "barrier": lambda w, node, x, gate: x, "cast": lambda w, node, x: w.cast(x, node.dtype),
    "reduce_precision": _round_to_dtype, "sum": _reduce("ReduceSum"), "max": _reduce("ReduceMax"),
    "prod": _reduce("ReduceProd"), "cumsum": _cumsum, "argsort": _argsort,
    "argmax": _argmax, "relu": _relu, "sigmoid": _op("Sigmoid"),
    "gelu": _op("Gelu"), "softplus": _op("Softplus"), "softmax": _express_along_axis("Softmax"),
    "log_softmax": _express_along_axis("LogSoftmax"), "layer_norm": _layer_norm,
}  # fmt: skip
