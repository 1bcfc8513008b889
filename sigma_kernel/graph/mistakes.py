"""Sentences for mistakes in calls of graph functions: names, arguments and operands that do not exist or do not fit."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import wraps
from numbers import Integral
from typing import Any, TypeVar

from sigma_kernel.errors import SigmaError, SigmaGraphError, suggest_name

F = TypeVar("F", bound=Callable[..., Any])
OWN = ("sigma_kernel.functions", "sigma_kernel.graph")  # the modules whose errors are explained
INSTEAD = {  # functions of other libraries, and what to write
    "absolute": "f.abs", "amax": "f.max", "amin": "f.min", "arange": "f.iota", "argmin": "f.argmax of -x",
    "bmm": "f.matmul", "broadcast_to": "f.stretch", "cat": "f.concat", "concatenate": "f.concat", "cond": "f.where",
    "conv1d": "f.convolution", "conv2d": "f.convolution", "conv3d": "f.convolution",
    "cross_entropy": "f.softmax_cross_entropy", "detach": "f.stop", "divide": "f.div", "dot": "f.matmul",
    "expand_dims": "f.expand", "fft": "f.rfft", "gather": "f.take", "grad": "f.gradient", "identity": "f.eye",
    "ifft": "f.irfft", "index_select": "f.take", "inv": "f.solve of x and f.eye", "isfinite": "f.is_finite",
    "logsumexp": "f.log_sum_exp", "moveaxis": "f.permute", "multiply": "f.mul", "negative": "f.neg",
    "ones_like": "f.ones of x.shape", "power": "f.pow", "ravel": "x.reshape(-1)", "reduce_max": "f.max",
    "reduce_mean": "f.mean", "reduce_sum": "f.sum", "remainder": "f.mod", "repeat": "f.stretch",
    "round": "f.floor(x + 0.5)", "select": "f.where", "std": "f.sqrt of f.variance", "stop_gradient": "f.stop",
    "subtract": "f.sub", "svdvals": "f.svd(x)[1]", "swapaxes": "f.swap_axes", "tile": "f.stretch", "topk": "f.top_k",
    "transpose": "f.permute", "unsqueeze": "f.expand", "var": "f.variance", "view": "f.reshape",
    "while_loop": "f.scan", "zeros_like": "f.zeros of x.shape",
}  # fmt: skip

ARGUMENTS = {"dim": "axis", "dims": "axis", "keepdim": "keepdims", "dimension": "axis"}  # likewise


class SigmaFunctionNameError(SigmaGraphError, AttributeError):
    """There is no graph function of this name; ``hasattr`` is False."""


class SigmaCallError(SigmaGraphError, TypeError):
    """The arguments of a call do not fit the graph function."""


def unknown_function(name: str, names: Iterable[str]) -> AttributeError:
    """Return the error for a graph function that does not exist, with one that is similar or does the same."""
    if name.startswith("_"):
        return AttributeError(f"module 'sigma_kernel.functions' has no attribute {name!r}")
    remedy = f" Use {INSTEAD[name]}." if name in INSTEAD else suggest_name(name, names)
    return SigmaFunctionNameError(f"f.{name}: there is no such graph function.{remedy}")


def explain_mistakes(function: F) -> F:
    """Return the function with a SigmaGraphError in place of a bare error of Python for a wrong call.

    Errors that another module raises, such as the body of a loop, pass unchanged.
    """

    @wraps(function)
    def call(*arguments: Any, **settings: Any) -> Any:
        try:
            return function(*arguments, **settings)
        except (TypeError, AttributeError, ValueError, SigmaCallError) as error:
            inner = isinstance(error, SigmaError)  # of a function that this one calls
            if (inner and not isinstance(error, SigmaCallError)) or not _is_raised_here(error):
                raise
            wrong = _find_mistake(function, arguments, settings)
            if inner and not wrong:
                raise
            reason = wrong or f"{str(error).rstrip('.')}."
            raise SigmaCallError(f"{function.__name__}: {reason} The call is {_usage(function)}.") from error

    return call  # type: ignore[return-value]


def _is_raised_here(error: BaseException) -> bool:
    """Return whether an error passed through the modules of graph functions alone."""
    trace = error.__traceback__
    while trace is not None:
        if not trace.tb_frame.f_globals.get("__name__", "").startswith(OWN):
            return False
        trace = trace.tb_next
    return True


def _usage(function: Callable[..., Any]) -> str:
    """Return how a function, or a method of nodes, is called."""
    parameters = inspect.signature(function).parameters
    texts = [str(x.replace(annotation=x.empty)).replace(" = ", "=") for x in parameters.values() if x.name != "self"]
    return f"{'x' if 'self' in parameters else 'f'}.{function.__name__}({', '.join(texts)})"


def _find_mistake(function: Callable[..., Any], arguments: Sequence[Any], settings: Mapping[str, Any]) -> str:
    """Return what is wrong with the arguments of a call, as a sentence; an empty text if nothing is."""
    signature = inspect.signature(function)
    names = [name for name in signature.parameters if name != "self"]
    for name in settings:
        if name not in names:
            return f"there is no argument {name!r}.{suggest_name(ARGUMENTS.get(name, name), names)}"
    try:
        bound = signature.bind(*arguments, **settings).arguments
    except TypeError as error:
        return f"{error}."
    for name, value in bound.items():
        parameter = signature.parameters[name]
        several = parameter.kind is parameter.VAR_POSITIONAL
        for operand in value if several else [value]:
            if wrong := _judge(name, operand, str(parameter.annotation), several):
                return wrong
    return ""


def _judge(name: str, value: Any, annotation: str, several: bool) -> str:
    """Return why a value does not fit its annotation, as a sentence; an empty text if it does."""
    if annotation == "Array" and not _is_array(value):
        if isinstance(value, list | tuple) and any(map(_is_array, value)):
            return f"{name} is a list. {'Pass its entries one by one' if several else 'Make one operand of it'}: " + (
                f"*{name}." if several else "f.stack(*nodes)."
            )
        remedy = " Make it an array: np.array(...)." if isinstance(value, list | tuple | float | int) else ""
        return f"{name} is {_describe(value)}, and must be a node or an array.{remedy}"
    fits, words = _KINDS.get(annotation, (lambda _: True, ""))
    return "" if fits(value) else f"{name} is {_describe(value)}, and must be {words}."


def _describe(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 40 and not _is_array(value) else f"a {type(value).__name__}"


def _is_array(value: Any) -> bool:
    return hasattr(value, "shape") and hasattr(value, "dtype") and not isinstance(value, type)


def _is_whole(value: Any) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool)


def _is_list(value: Any) -> bool:
    return not isinstance(value, str) and isinstance(value, Iterable) and all(map(_is_whole, value))


_KINDS: dict[str, tuple[Callable[[Any], bool], str]] = {  # by annotation: whether a value fits, and what does
    "int": (_is_whole, "a whole number"),
    "int | None": (lambda value: value is None or _is_whole(value), "a whole number, or None"),
    "Sequence[int]": (_is_list, "a list of whole numbers"),
    "Sequence[int] | None": (lambda value: value is None or _is_list(value), "a list of whole numbers, or None"),
    "Sides": (lambda value: _is_whole(value) or _is_list(value), "a whole number, or a list of them"),
    "Axis": (
        lambda value: value is None or _is_whole(value) or _is_list(value),
        "a whole number, a list of them, or None",
    ),
    "str": (lambda value: isinstance(value, str), "a text"),
    "bool": (lambda value: isinstance(value, bool), "true or false"),
}
