"""The tables of graph functions and of ops, from ``sigma_kernel.functions`` and the table of ops."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Callable

from sigma_kernel import functions
from sigma_kernel.graph import ELEMENTWISE, OPS, Op, ops

DESCRIBED = {  # rows of the table of ops that are functions as they are
    "abs(x)": "the magnitude",
    "add(x, y)": "the sum, as `x + y`",
    "cos(x)": "the cosine",
    "div(x, y)": "the quotient, as `x / y`",
    "dropout(x, rate, *key, stream=)": "x with each element zeroed with probability `rate`, the others divided by"
    " `1 - rate`; layers use `context.key.dropout`",
    "equal(x, y)": "bool, whether the operands are equal, as `x == y` of arrays",
    "erf(x)": "the error function",
    "exp(x)": "the exponential",
    "expm1(x)": "`exp(x) - 1`, exact near 0",
    "floor(x)": "the greatest whole number that is not above x",
    "gelu(x)": "x times the normal distribution function of x (Hendrycks and Gimpel, arXiv:1606.08415)",
    "greater(x, y)": "bool, as `x > y`",
    "greater_equal(x, y)": "bool, as `x >= y`",
    "is_finite(x)": "bool, false for NaN and infinities",
    "log(x)": "the natural logarithm",
    "log1p(x)": "`log(1 + x)`, exact near 0",
    "logical_and(x, y)": "bool, whether both hold",
    "logical_not(x)": "bool, whether x does not hold",
    "logical_or(x, y)": "bool, whether one of them holds",
    "matmul(x, y)": "the matrix product of the last two axes, as `x @ y`; leading axes broadcast",
    "maximum(x, y)": "the greater operand",
    "minimum(x, y)": "the lesser operand",
    "mod(x, y)": "the remainder with the sign of y, as `x % y` of arrays",
    "mul(x, y)": "the product, as `x * y`",
    "neg(x)": "the negative, as `-x`",
    "pow(x, y)": "the power, as `x ** y`",
    "random_bits(*key, shape=, stream=)": "uint32 bits of Philox 4x32-10; see [](random.md)",
    "relu(x)": "`maximum(x, 0)`, with slope 0 at 0",
    "sigmoid(x)": "`1 / (1 + exp(-x))`, without overflow",
    "sign(x)": "-1, 0 or 1",
    "silu(x)": "`x * sigmoid(x)` (Elfwing, Uchibe and Doya, arXiv:1702.03118)",
    "sin(x)": "the sine",
    "softmax_cross_entropy(scores, labels)": "the cross-entropy of the softmax over the last axis, for each label",
    "softplus(x)": "`log(1 + exp(x))`, without overflow",
    "sqrt(x)": "the square root",
    "stop(x)": "x, as a constant to the gradient",
    "sub(x, y)": "the difference, as `x - y`",
    "tanh(x)": "the hyperbolic tangent",
    "where(condition, x, y)": "x where the condition holds, else y",
}


def described() -> dict[str, tuple[str, str]]:
    """Return the signature and a description of every op that has no function of its own, by name."""
    return {call.partition("(")[0]: (call, words) for call, words in DESCRIBED.items()}


def public() -> dict[str, Callable[..., object]]:
    """Return the graph functions by name: those written in their module, elementwise ops, and what it exports."""
    tree = ast.parse(inspect.getsource(functions))
    exported = {
        name.name for node in tree.body if isinstance(node, ast.ImportFrom) for name in node.names if name.asname
    }
    written = {node.name for node in tree.body if isinstance(node, ast.FunctionDef) and not node.name.startswith("_")}
    rows = {row.name for row in ops.without_attributes()}
    found = {name: getattr(functions, name) for name in sorted(exported | written | rows)}
    return {name: one for name, one in found.items() if isinstance(one, Op) or inspect.isfunction(one)}


def text(_: str = "") -> str:
    """Return a table of every graph function, as MyST."""
    rows = [_row(name, one) for name, one in public().items()]
    return "\n".join(["| function | returns |", "|---|---|", *rows])


def _row(name: str, one: Callable[..., object]) -> str:
    if isinstance(one, Op):
        call, words = described().get(name, (f"{name}(...)", f"`{one.standard or name}` of the array API standard"))
        return f"| `{call}` | {words} |"
    arguments = ", ".join(_argument(parameter) for parameter in inspect.signature(one).parameters.values())
    sentence = re.split(r"(?<=\.)\s", inspect.getdoc(one) or "")[0].rstrip(".")
    words = re.sub(r":\w++:`([^`]++)`", r"`\1`", sentence.removeprefix("Return ").replace("\n", " "))
    call = f"`{name}({arguments})`"
    if one.__module__ == functions.__name__:
        call = f"{{py:func}}`{name}({arguments}) <{one.__module__}.{name}>`"
    return f"| {call} | {words} |"


def _argument(parameter: inspect.Parameter) -> str:
    star = {parameter.VAR_POSITIONAL: "*", parameter.VAR_KEYWORD: "**"}.get(parameter.kind, "")
    default = "" if parameter.default is parameter.empty else f"={parameter.default!r}"
    return f"{star}{parameter.name}{default}"


def table_of_ops(_: str = "") -> str:
    """Return the table of ops: what kind of op each is, its dtypes, and where its gradient comes from."""
    rows = [f"| `{row.name}` | {_kind(row)} | {_gradient(row)} |" for row in OPS.values() if ":" not in row.name]
    return "\n".join(["| op | kind | gradient |", "|---|---|---|", *rows])


def _kind(row: Op) -> str:
    words = ["elementwise"] if row.shape in ELEMENTWISE else []
    return ", ".join([*words, "composite" if row.expansion else "primitive"])


def _gradient(row: Op) -> str:
    if row.gradient:
        return "a rule"
    return "of its expansion" if row.expansion else "zero"
