"""The computation graph: immutable nodes, graphs, and the class of ops.

The rules of the ops (shape, dtype, gradient, expansion) are rows of :mod:`sigma_kernel.graph.ops`.
"""

from __future__ import annotations

import hashlib
import math
import re
import reprlib
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from functools import cached_property
from operator import index
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
from attrs import field, frozen

from sigma_kernel.errors import SigmaGraphError, suggest_name
from sigma_kernel.graph.mistakes import explain_mistakes
from sigma_kernel.graph.reprs import brief

Shape = tuple[int, ...]
Axis = int | Sequence[int] | None
Constant = np.ndarray | Sequence[Any] | float  # an array, a nested list, a number
Row = tuple[str, tuple[int, ...], Mapping[str, Any], Shape, str]

FLOATS = ("float16", "bfloat16", "float32", "float64")
NARROW = ("bfloat16", "float16")  # of 16 bits: mixed precision rounds the operands of products to them
INTEGERS = {"int32": range(-(2**31), 2**31), "int64": range(-(2**63), 2**63), "uint32": range(2**32)}
DTYPES = (*FLOATS, *INTEGERS, "bool")
BYTES = {name: 2 if name == "bfloat16" else np.dtype(name).itemsize for name in DTYPES}
REFLECTED = {  # methods for ``array * node`` and the like, which NumPy calls as ufuncs
    np.add: "__radd__", np.subtract: "__rsub__", np.multiply: "__rmul__", np.divide: "__rtruediv__",
    np.power: "__rpow__", np.remainder: "__rmod__", np.matmul: "__rmatmul__", np.greater: "__lt__",
    np.greater_equal: "__le__", np.less: "__gt__", np.less_equal: "__ge__", np.equal: "__eq__", np.not_equal: "__ne__",
    np.bitwise_and: "__rand__", np.bitwise_or: "__ror__",
}  # fmt: skip
INSTEAD = {  # what to write for attributes that arrays have and nodes do not
    "all": "f.min", "any": "f.max", "argmax": "f.argmax", "argmin": "f.argmax of -x", "argsort": "f.argsort",
    "clip": "f.clip", "copy": "x itself", "cumsum": "f.cumsum", "dot": "@", "flatten": "x.reshape(-1)",
    "item": "x[0]", "prod": "f.prod", "ravel": "x.reshape(-1)", "repeat": "f.stretch",
    "round": "f.floor(x + 0.5)", "sort": "f.sort", "squeeze": "f.squeeze", "std": "f.sqrt of f.variance",
    "swapaxes": "f.swap_axes", "take": "f.take", "transpose": "f.permute", "var": "f.variance",
}  # fmt: skip
_HELD = {np.dtype(name).type for name in DTYPES if name != "bfloat16"}  # types of the entries of NumPy's arrays
ALIGNMENT = 64  # bytes; the alignment of arrays: one cache line, and the widest vector register


def _shape(sides: Sequence[int]) -> Shape:
    shape = tuple(map(index, sides))
    if shape and min(shape) < 0:
        raise SigmaGraphError(f"shape {shape}: a side cannot be negative")
    return shape


def check_dtype(name: str) -> str:
    """Return the name of a dtype; raises SigmaGraphError for any other name."""
    if name not in DTYPES:
        raise SigmaGraphError(f"there is no dtype {name!r}, only {', '.join(DTYPES)}.{suggest_name(str(name), DTYPES)}")
    return name


@frozen
class Spec:
    """The shape and the dtype of an array."""

    shape: Shape = field(converter=_shape)
    dtype: str = field(default="float32", converter=check_dtype)

    def __str__(self) -> str:
        return f"{self.dtype}{list(self.shape)}"


@frozen(eq=False, repr=False)
class Values:
    """The entries of a constant array, which never change; its text is unique among arrays of its dtype."""

    array: np.ndarray

    def __len__(self) -> int:
        return len(self.array)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.array(self.array, dtype, copy=copy)

    def __repr__(self) -> str:
        few = self.array.size <= 8
        return f"{self.array.tolist()}" if few else f"sha256:{hashlib.sha256(self.array.tobytes()).hexdigest()}"


class SigmaNodeAttributeError(SigmaGraphError, AttributeError):
    """A node lacks what arrays have; ``hasattr`` is False."""


_origin = ContextVar("origin", default="")
mark = _origin.set  # for nodes made until the end of :func:`originating`


@contextmanager
def originating(what: str) -> Iterator[None]:
    """Mark the nodes made within as belonging to a layer, its gradient, or an optimiser."""
    token = _origin.set(what)
    try:
        yield
    finally:
        _origin.reset(token)


@frozen(eq=False)
class Node:
    """A value in the graph: an op, its operands and its attributes.

    Operators and methods have the names and the meaning of NumPy's: ``==`` compares entries. ``is`` compares the nodes
    themselves, which are hashed by identity. ``origin`` names the layer or the optimiser that made it, only for
    messages: it is not part of a graph's text.
    """

    op: str
    inputs: tuple[Node, ...] = ()
    attrs: Mapping[str, Any] = field(factory=dict)
    shape: Shape = ()
    dtype: str = "float32"
    origin: str = field(factory=_origin.get, kw_only=True)

    @property
    def spec(self) -> Spec:
        """Return shape and dtype."""
        return Spec(self.shape, self.dtype)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *operands: Any, **settings: Any) -> Node:
        """Return the result of an operator with an array on the left and a node.

        Raises SigmaGraphError for other functions of NumPy; it names the graph function that does the same.
        """
        name = REFLECTED.get(ufunc)
        if name and method == "__call__" and not settings and not isinstance(operands[0], Node):
            result: Node = getattr(operands[1], name)(operands[0])
            return result
        function = next((row.name for row in OPS.values() if getattr(np, row.standard, None) is ufunc), ufunc.__name__)
        remedy = f"f.{function}, of" if function in OPS else "operators, and the functions of"
        raise SigmaGraphError(
            f"np.{ufunc.__name__}: NumPy cannot compute with {self!r}, whose value is unknown while the graph is "
            f"built. Use {remedy} sigma_kernel.functions."
        )

    def __repr__(self) -> str:
        return f"{self.op} {self.dtype}{list(self.shape)}"

    # -- operators -----------------------------------------------------------------------------------------------------
    # fmt: off
    def __add__(self, other: Node | Constant) -> Node: return apply("add", self, other)
    def __radd__(self, other: Constant) -> Node: return apply("add", other, self)
    def __sub__(self, other: Node | Constant) -> Node: return apply("sub", self, other)
    def __rsub__(self, other: Constant) -> Node: return apply("sub", other, self)
    def __mul__(self, other: Node | Constant) -> Node: return apply("mul", self, other)
    def __rmul__(self, other: Constant) -> Node: return apply("mul", other, self)
    def __truediv__(self, other: Node | Constant) -> Node: return apply("div", self, other)
    def __rtruediv__(self, other: Constant) -> Node: return apply("div", other, self)
    def __rpow__(self, other: Constant) -> Node: return apply("pow", other, self)
    def __mod__(self, other: Node | Constant) -> Node: return apply("mod", self, other)
    def __rmod__(self, other: Constant) -> Node: return apply("mod", other, self)
    def __matmul__(self, other: Node | Constant) -> Node: return _product(self, other)
    def __rmatmul__(self, other: Constant) -> Node: return _product(other, self)
    def __neg__(self) -> Node: return apply("neg", self)
    def __abs__(self) -> Node: return apply("abs", self)
    def __invert__(self) -> Node: return apply("logical_not", self)
    def __and__(self, other: Node | Constant) -> Node: return apply("logical_and", self, other)
    def __or__(self, other: Node | Constant) -> Node: return apply("logical_or", self, other)
    def __gt__(self, other: Node | Constant) -> Node: return apply("greater", self, other)
    def __ge__(self, other: Node | Constant) -> Node: return apply("greater_equal", self, other)
    def __lt__(self, other: Node | Constant) -> Node: return apply("greater", other, self)
    def __le__(self, other: Node | Constant) -> Node: return apply("greater_equal", other, self)
    def __rand__(self, other: Constant) -> Node: return apply("logical_and", other, self)
    def __ror__(self, other: Constant) -> Node: return apply("logical_or", other, self)
    def __eq__(self, other: Node | Constant) -> Node: return apply("equal", self, other)  # type: ignore[override]
    def __ne__(self, other: Node | Constant) -> Node: return ~(self == other)  # type: ignore[override]
    def __floordiv__(self, _: Any) -> NoReturn: raise self._lacking("x // y", "f.floor(x / y)")
    def __divmod__(self, _: Any) -> NoReturn: raise self._lacking("divmod(x, y)", "f.floor(x / y) and x % y")
    def __xor__(self, _: Any) -> NoReturn: raise self._lacking("x ^ y", "x != y, of truth values")
    def __lshift__(self, _: Any) -> NoReturn: raise self._lacking("x << n", "x * 2**n")
    def __rshift__(self, _: Any) -> NoReturn: raise self._lacking("x >> n", "f.floor(x / 2**n)")
    def __round__(self, _: Any = None) -> NoReturn: raise self._lacking("round(x)", "f.floor(x + 0.5)")
    def __setitem__(self, *_: Any) -> NoReturn: raise self._lacking("x[i] = y", "f.where or f.scatter_add")
    def __contains__(self, _: Any) -> NoReturn: raise self._lacking("y in x", "f.max(x == y)")
    def __float__(self) -> NoReturn: raise self._lacking("float(x)", 'x.astype("float32")')
    def __int__(self) -> NoReturn: raise self._lacking("int(x)", 'x.astype("int32")')
    __index__, __complex__, __rfloordiv__, __rdivmod__ = __int__, __float__, __floordiv__, __divmod__
    __rxor__, __rlshift__, __rrshift__, __hash__ = __xor__, __lshift__, __rshift__, object.__hash__
    # fmt: on

    def _lacking(self, what: str, instead: str) -> SigmaNodeAttributeError:
        return SigmaNodeAttributeError(
            f"{self!r}: its value is unknown while the graph is built, and it has no {what}. Use {instead}; f is "
            "sigma_kernel.functions."
        )

    if not TYPE_CHECKING:  # where any attribute would pass

        def __getattr__(self, name: str) -> NoReturn:
            """Raise an error that names what to use instead of an attribute of arrays."""
            if name.startswith("_") or not hasattr(np.ndarray, name):
                raise AttributeError(f"a node has no {name!r}")
            raise self._lacking(f".{name}", INSTEAD.get(name, "f.evaluate for values, or another function of f"))

    def __pow__(self, other: Node | Constant) -> Node:
        """Return a power; a square is a product."""
        square = not isinstance(other, Node) and np.ndim(other) == 0 and other == 2
        return self * self if square else apply("pow", self, other)

    def __bool__(self) -> NoReturn:
        hint = " In lists, find nodes by `is`: any(x is y for y in nodes)." if self.op == "equal" else ""
        raise SigmaGraphError(
            f"{self!r}: its value is unknown while the graph is built. Use where(condition, x, y) instead of if.{hint}"
        )

    def __array__(self, *_: Any, **__: Any) -> NoReturn:
        raise SigmaGraphError(
            f"{self!r}: its value is unknown while the graph is built, so NumPy cannot compute with it. Use the "
            "functions of sigma_kernel.functions; f.evaluate(function, *arrays) computes a function of nodes."
        )

    # -- entries -------------------------------------------------------------------------------------------------------
    def __len__(self) -> int:
        if not self.shape:
            raise SigmaGraphError(f"{self!r}: a single number has no length.")
        return self.shape[0]

    def __iter__(self) -> Iterator[Node]:
        """Yield the entries along the first axis."""
        return (self[i] for i in range(len(self)))

    def __getitem__(self, key: Any) -> Node:
        """Return the entries that indices select, as in NumPy; a node of them selects along one axis, as ``take`` does.

        Raises SigmaGraphError for what NumPy refuses, and for masks that are nodes.
        """
        parts = key if isinstance(key, tuple) else (key,)
        if any(isinstance(part, Node) for part in parts):
            return self._take(parts)
        try:
            shape = np.broadcast_to(0, self.shape)[key].shape
        except (IndexError, TypeError, ValueError) as error:
            raise SigmaGraphError(f"{self!r}[{reprlib.repr(key)}]: {error}.") from None
        listed = any(np.ndim(part) or isinstance(part, bool) for part in parts if part is not ...)
        spans = [] if listed else _spans(parts, self.shape)
        if listed or any(span.step < 0 for span in spans):
            places = np.arange(math.prod(self.shape)).reshape(self.shape)[key]
            return apply("take", self.reshape(-1), places, axis=0)
        start, step = [span.start for span in spans], [span.step for span in spans]
        stop = [max(span.start, span.stop) for span in spans]
        return apply("slice", self, start=start, stop=stop, step=step).reshape(shape)

    def _take(self, parts: Sequence[Any]) -> Node:
        """Select by a node, beside which all axes are whole."""
        at = next(at for at, part in enumerate(parts) if isinstance(part, Node))
        places = parts[at]
        if places.dtype == "bool":
            raise SigmaGraphError(
                f"{self!r}[{places!r}]: how many entries a mask selects is unknown here. Use where(mask, x, y)."
            )
        if not all(part is ... or _is_whole(part) for i, part in enumerate(parts) if i != at):
            raise SigmaGraphError(f"{self!r}[{places!r}]: a node selects along one axis. Slice the others before.")
        return apply("take", self, places, axis=place(self.shape, at - len(parts) if ... in parts[:at] else at))

    # -- form ----------------------------------------------------------------------------------------------------------
    @property
    def ndim(self) -> int:
        """Return the number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """Return the number of entries."""
        return math.prod(self.shape)

    @property
    def T(self) -> Node:  # noqa: N802
        """Return the transpose: all axes in reverse order."""
        return apply("permute", self, axes=range(self.ndim)[::-1])

    def reshape(self, *shape: Any) -> Node:
        """Return the entries in another shape; a side of -1 is inferred."""
        sides = [index(side) for side in (shape[0] if len(shape) == 1 and np.ndim(shape[0]) else shape)]
        if -1 in sides:
            rest = math.prod(side for side in sides if side != -1)
            sides[sides.index(-1)] = math.prod(self.shape) // rest if rest else 0
        return apply("reshape", self, shape=tuple(sides))

    def astype(self, dtype: Any) -> Node:
        """Return the entries in another dtype; see :func:`sigma_kernel.functions.cast`."""
        return apply("cast", self, dtype=dtype if isinstance(dtype, str) else np.dtype(dtype).name)

    # -- reductions ----------------------------------------------------------------------------------------------------
    @explain_mistakes
    def sum(self, axis: Axis = None, keepdims: bool = False) -> Node:
        """Return the sum over axes, all by default."""
        return self._reduce("sum", axis, keepdims)

    @explain_mistakes
    def max(self, axis: Axis = None, keepdims: bool = False) -> Node:
        """Return the maximum over axes, all by default; equal maxima share the gradient evenly."""
        result = self._reduce("max", axis, keepdims)
        return result.astype("bool") if self.dtype == "bool" else result

    @explain_mistakes
    def min(self, axis: Axis = None, keepdims: bool = False) -> Node:
        """Return the minimum over axes, all by default; equal minima share the gradient evenly."""
        result = -(-self).max(axis, keepdims)
        return result.astype("bool") if self.dtype == "bool" else result

    @explain_mistakes
    def mean(self, axis: Axis = None, keepdims: bool = False) -> Node:
        """Return the mean over axes, all by default."""
        return self.sum(axis, keepdims) / float(math.prod(self.shape[a] for a in axes(self.shape, axis)))

    def _reduce(self, op: str, axis: Axis, keepdims: bool) -> Node:
        gone = axes(self.shape, axis)
        kept = apply(op, self, axis=gone)
        return kept if keepdims else kept.reshape([side for i, side in enumerate(self.shape) if i not in gone])


def _product(x: Any, y: Any) -> Node:
    """Return a matrix product; a vector is a row on the left, and a column on the right."""
    x, y = (value if hasattr(value, "shape") else np.asarray(value) for value in (x, y))
    row, column = len(x.shape) == 1, len(y.shape) == 1
    result = apply("matmul", x[None] if row else x, y[:, None] if column else y)
    result = result[..., 0] if column else result
    return result[..., 0, :] if row and not column else result[..., 0] if row else result


def _is_whole(part: Any) -> bool:
    """Return whether a part of an index is ``:``."""
    return isinstance(part, slice) and (part.start, part.stop, part.step) == (None, None, None)


def _spans(parts: Sequence[Any], shape: Shape) -> list[range]:
    """Return which entries of each axis integers and slices select; axes that are not named are whole."""
    named = [part for part in parts if part is not None]
    gap = next((at for at, part in enumerate(named) if part is ...), len(named))
    whole = [slice(None)] * (len(shape) - len(named) + (gap < len(named)))
    each = zip((*named[:gap], *whole, *named[gap + 1 :]), map(range, shape), strict=True)
    return [span[part] if isinstance(part, slice) else range(span[part], span[part] + 1) for part, span in each]


def place(shape: Shape, axis: int, extra: int = 0) -> int:
    """Return an axis counted from the front; ``extra`` is 1 if it is a place between axes."""
    rank = len(shape) + extra
    if not -rank <= axis < rank:
        raise SigmaGraphError(f"axis {axis} of shape {shape}: the rank is {len(shape)}")
    return axis % rank


def axes(shape: Shape, axis: Axis) -> Shape:
    """Return sorted axes counted from the front; None means all."""
    if axis is None:
        return tuple(range(len(shape)))
    return tuple(sorted({place(shape, a) for a in ([axis] if isinstance(axis, int) else axis)}))


@frozen(eq=False, repr=False)
class Graph:
    """A pure function as data: input nodes and output nodes. Graphs are equal if their structure is equal."""

    inputs: tuple[Node, ...]
    outputs: tuple[Node, ...]

    __repr__ = brief

    def __iter__(self) -> Iterator[Node]:
        """Yield every node that the outputs depend on once, operands first."""
        return iter(self._order)

    @cached_property
    def _order(self) -> tuple[Node, ...]:
        return tuple(topological_order(self.outputs))

    def places(self) -> dict[Node, int]:
        """Return the number of each node: first the inputs, then every node after its operands."""
        return {node: i for i, node in enumerate(dict.fromkeys((*self.inputs, *self)))}

    def rows(self) -> tuple[Row, ...]:
        """Return ``(op, operands, attributes, shape, dtype)`` for each node; operands are numbers of nodes."""
        places = self.places()
        return tuple((n.op, tuple(places[x] for x in n.inputs), n.attrs, n.shape, n.dtype) for n in places)

    def __eq__(self, other: object) -> bool:
        return self._key() == other._key() if isinstance(other, Graph) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._key())

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (self.rows(), *self._ends())

    def __str__(self) -> str:
        lines = [line for place, row in enumerate(self.rows()) for line in _lines(place, row)]
        return "\n".join([*lines, f"return {', '.join(f'%{place}' for place in self._ends()[1])}"])

    def _ends(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        places = self.places()
        return tuple(places[node] for node in self.inputs), tuple(places[node] for node in self.outputs)

    def _key(self) -> tuple[Any, ...]:
        rows = tuple((op, operands, frozen_attrs(attrs), *spec) for op, operands, attrs, *spec in self.rows())
        return rows, self._ends()


def topological_order(outputs: Sequence[Node], border: Container[Node] = ()) -> Iterator[Node]:
    """Yield every node that the outputs depend on once, operands first; nodes at the border are not expanded."""
    seen: set[Node] = set()
    stack: list[Node | None] = [*reversed(outputs)]
    while stack:
        node = stack.pop()
        if node is None:  # the operands of the node below are done
            yield stack.pop()  # type: ignore[misc]  # it is one
        elif node not in seen:
            seen.add(node)
            waiting = () if node in border else [x for x in reversed(node.inputs) if x not in seen]
            if waiting:
                stack += (node, None, *waiting)
            else:
                yield node


def frozen_attrs(attrs: Mapping[str, Any]) -> tuple[tuple[str, Any], ...]:
    """Return attributes as a hashable key: 0.0 differs from -0.0, and 1 from 1.0 and True; NaN equals NaN."""
    return tuple([(name, x if isinstance(x, Graph) else repr(x)) for name, x in sorted(attrs.items())]) if attrs else ()


def _lines(place: int, row: Row) -> Iterator[str]:
    """Yield the text of one row; the body of a scan follows, indented."""
    op, operands, attrs, shape, dtype = row
    bodies = {name: x for name, x in attrs.items() if isinstance(x, Graph)}
    settings = (f"{name}={x!r}" for name, x in attrs.items() if name not in bodies)
    yield f"%{place} = {op}({', '.join([*(f'%{i}' for i in operands), *settings])}) : {dtype}{list(shape)}"
    for name, body in bodies.items():
        yield from (f"    {line}" for line in f"{name}:\n{body}".splitlines())


def _rebuild(rows: Sequence[Row], inputs: Sequence[int], outputs: Sequence[int]) -> Graph:
    """Make a graph from its rows."""
    nodes: list[Node] = []
    for op, operands, attrs, shape, dtype in rows:
        nodes.append(Node(op, tuple(nodes[i] for i in operands), attrs, shape, dtype))
    return Graph(tuple(nodes[i] for i in inputs), tuple(nodes[i] for i in outputs))


# -- the table ---------------------------------------------------------------------------------------------------------
@frozen(eq=False)
class Rules:
    """The rules of one row of the op table.

    The rules ``shape`` and ``dtype`` compute those of the result from those of the operands, and the attributes.
    ``gradient`` takes the gradient of the result, the result, the operands and the attributes, and returns one node (or
    None) for each operand; it need not undo broadcasting. ``expansion`` builds the same value from other ops, so that
    the op works on every backend.

    The others are facts, with the values that they have for most ops:

    - ``entries``: the places of the operands' entries in the result. They stay ``apart``, at their place (elementwise,
      or broadcast), are ``moved`` to one other place, ``gathered`` to any number of places, ``folded`` along axes, meet
      others ``along`` the axis of their attribute ``axis`` or as ``pooled`` windows, or are ``mixed``.
    - ``view``: whether the result may share the operand's memory.
    - ``linear``: whether gradients have no factor but constants: "whole" for a linear map, "pieces" for one in pieces.
    - ``rounding``: "exact", "once", or that of a "function", whose last place differs among libraries.
    - ``signed``: whether the sign of a zero is defined.
    - ``domain``: "any", or "positive" where others give NaN or have no derivative.
    - ``indexed``: whether it takes indices, and fails if one is outside its axis.
    - ``standard``: its function in the array API standard.
    - ``operations``: counts those in floating point, of the result, the operands and the attributes.
    - ``fold``: the function of Python's numbers with the same value; ``neutral``: an operand that changes nothing.
    """

    name: str
    shape: Callable[..., Shape]
    dtype: Callable[..., str]
    gradient: Callable[..., Node | tuple[Node | None, ...] | None] | None = None
    expansion: Callable[..., Node] | None = None
    entries: str = "mixed"
    view: bool = False
    linear: str = ""
    rounding: str = "once"
    signed: bool = False
    domain: str = "any"
    indexed: bool = False
    standard: str = ""
    operations: Callable[..., int] | None = None
    fold: Callable[..., Any] | None = None
    neutral: float | None = None

    def __call__(self, *inputs: Node | Constant, **attrs: Any) -> Node:
        """Make a node of this op; a number, or a constant array, gets the dtype of the other operands."""
        try:
            attrs = {name: tuple(x) if isinstance(x, list | range) else x for name, x in attrs.items()}
            nodes = tuple([x for x in inputs if isinstance(x, Node)])
            return self._make_node(nodes, attrs) if len(nodes) == len(inputs) else self._make_typed_node(inputs, attrs)
        except (SigmaGraphError, TypeError) as error:  # TypeError: wrong attributes, or a wrong number of operands
            operands = ", ".join(str(x.shape) if hasattr(x, "shape") else repr(x) for x in inputs)
            reason = re.sub(r"^[\w.<>]++\(\)( missing)?", lambda rule: "it is missing" if rule[1] else "it", str(error))
            raise SigmaGraphError(f"{self.name}({operands}): {reason}") from error

    def _make_node(self, nodes: tuple[Node, ...], attrs: Mapping[str, Any]) -> Node:
        shape = self.shape(*[x.shape for x in nodes], **attrs)
        try:
            return Node(self.name, nodes, attrs, shape, self.dtype(*[x.dtype for x in nodes], **attrs))
        except SigmaGraphError:
            if "body" not in attrs and (numbers := _as_numbers(nodes)):
                with suppress(SigmaGraphError):  # the first error names the dtypes as given
                    return self._make_node(numbers, attrs)
            raise

    def _make_typed_node(self, inputs: Sequence[Node | Constant], attrs: Mapping[str, Any]) -> Node:
        """Make a node of operands among which there are numbers or arrays.

        Arrays of integers and truth values keep their dtype where the op takes it, as indices, labels and masks do.
        """
        given: list[Any] = [x if type(x) in (Node, bool, int, float) else array_of(x) for x in inputs]
        beside = Node in map(type, inputs)
        weak = [not isinstance(x, Node | np.ndarray) or (beside and not x.shape) for x in given]
        for number, array in (choices := _choices(given, weak)):
            try:
                nodes = (_as_node(x, number if w else array, number) for x, w in zip(given, weak, strict=True))
                return self._make_node(tuple(nodes), attrs)
            except SigmaGraphError:
                if (number, array) == choices[-1]:
                    raise
        raise AssertionError("there is always a choice")


OPS: dict[str, Rules] = {}
FACTS: dict[str, tuple[str, ...]] = {  # the columns that are facts, with their words
    "entries": ("apart", "moved", "gathered", "folded", "along", "pooled", "mixed"),
    "linear": ("", "whole", "pieces"),
    "rounding": ("exact", "once", "function"),
    "domain": ("any", "positive"),
    **dict.fromkeys(("view", "signed", "indexed", "standard", "operations", "fold", "neutral"), ()),
}
MEANINGS: dict[str, Callable[..., Any]] = {}  # of primitives, by name; see :mod:`sigma_kernel.graph.meaning`


def apply(name: str, *inputs: Node | Constant, **attrs: Any) -> Node:
    """Make a node by the name of its op."""
    if name not in OPS:
        raise SigmaGraphError(f"there is no op {name!r}.{suggest_name(name, OPS)}")
    return OPS[name](*inputs, **attrs)


def expand_node(node: Node, inputs: Sequence[Node]) -> Node | None:
    """Return a composite of these inputs, written with other ops; None if its op has no expansion."""
    row = OPS.get(node.op)
    return row.expansion(*inputs, **node.attrs) if row and row.expansion else None


def symbol(shape: Sequence[int], dtype: str = "float32", name: str = "") -> Node:
    """Return a graph input."""
    return Node("input", attrs={"name": name}, shape=_shape(shape), dtype=check_dtype(dtype))


def constant(value: Any, dtype: str = "float32") -> Node:
    """Return a number, or an array, as a constant; raises SigmaGraphError if the dtype does not hold it exactly."""
    held = in_dtype(given := array_of(value), check_dtype(dtype))
    held.setflags(write=False)
    if held.shape:
        return Node("array", attrs={"value": Values(held), "dtype": dtype}, shape=held.shape, dtype=dtype)
    return Node("constant", attrs={"value": float(given) if dtype in FLOATS else held.item()}, dtype=dtype)


def trace(function: Callable[..., Node | Sequence[Node]], *specs: Spec | Sequence[int]) -> Graph:
    """Return the graph of a Python function, which is called with symbolic inputs.

    Raises SigmaGraphError if the function uses inputs of another graph.
    """
    graph = trace_open(function, *specs)
    own = set(graph.inputs)
    strangers = [node for node in graph if node.op == "input" and node not in own]
    if strangers:
        raise SigmaGraphError(
            f"trace: the function uses {strangers[0]!r} {strangers[0].attrs['name']!r} from outside. "
            "Pass it as an argument."
        )
    return graph


def trace_open(function: Callable[..., Node | Sequence[Node]], *specs: Spec | Sequence[int]) -> Graph:
    """Return the graph of a function as :func:`trace` does, even if it uses nodes from outside."""
    wanted = [spec if isinstance(spec, Spec) else Spec(spec) for spec in specs]
    inputs = tuple(symbol(spec.shape, spec.dtype) for spec in wanted)
    result = function(*inputs)
    outputs = tuple(result) if isinstance(result, Sequence) else (result,)
    if not all(isinstance(node, Node) for node in outputs):
        raise SigmaGraphError(f"trace: the function must return nodes, not {result!r}.")
    return Graph(inputs, outputs)


def _as_numbers(nodes: tuple[Node, ...]) -> tuple[Node, ...]:
    """Return operands with truth values as numbers of the others' dtype; none if there are none, or several dtypes.

    Truth values among themselves stay as they are: in NumPy, their sum is ``or``.
    """
    kinds = {x.dtype for x in nodes}
    if "bool" not in kinds or len(kinds) > 2 or (len(kinds) == 1 and len(nodes) > 1):
        return ()
    dtype = next(iter(kinds - {"bool"}), None) or _comparison_dtype(nodes)
    return tuple(apply("cast", x, dtype=dtype) if x.dtype == "bool" else x for x in nodes)


def _comparison_dtype(nodes: Sequence[Node]) -> str:
    """Return the dtype of the nearest floats that truth values come from, else float32: that of their arithmetic."""
    near, seen = [*nodes], set(nodes)
    for node in near:  # which grows
        if node.dtype in FLOATS:
            return node.dtype
        fresh = [x for x in dict.fromkeys(node.inputs) if x not in seen]
        near += fresh
        seen.update(fresh)
    return "float32"


def _choices(given: Sequence[Node | np.ndarray], weak: Sequence[bool]) -> list[tuple[str, str]]:
    """Return the dtypes to try for numbers and for arrays, where "" is their own: what nodes have, else as in NumPy."""
    nodes = [x.dtype for x in given if isinstance(x, Node)]
    arrays = [x for x, number in zip(given, weak, strict=True) if isinstance(x, np.ndarray) and not number]
    number = next((dtype for dtype in nodes if dtype != "bool"), "")
    if nodes and not number:  # truth values: numbers combined with them are floats
        true = all(np.asarray(x).dtype == bool for x in given if not isinstance(x, Node))
        return [("bool" if true else _comparison_dtype([x for x in given if isinstance(x, Node)]), "")]
    if nodes or not arrays:
        return [(number or "?", ""), *([(number, number)] if number and arrays else [])]
    floats, shared = [x for x in arrays if x.dtype.kind == "f"], np.result_type(*arrays).name
    number = np.result_type(*floats).name if floats else "float64" if shared == "bool" else shared
    return [(number, ""), (shared, shared), ("float64", "float64")]


def _as_node(given: Node | np.ndarray, dtype: str, number: str) -> Node:
    """Return an operand as a node; an array of floats gets the dtype of numbers, if that is one of floats."""
    if isinstance(given, Node):
        return given
    if dtype == "?":
        raise SigmaGraphError("the dtype of a number is unknown here. Write constant(number, dtype).")
    return constant(given, dtype or (number if given.dtype.kind == "f" and number in FLOATS else given.dtype.name))


def array_of(given: Any) -> np.ndarray:
    """Return a copy of an array, a nested list or a number, in a dtype that graphs have.

    Raises SigmaGraphError for anything but real numbers and truth values.
    """
    if isinstance(given, list | tuple) and any(isinstance(x, Node) for x in given):
        raise SigmaGraphError("a list of nodes is not an operand. Make one node of them: f.stack(*nodes).")
    try:
        array = np.array(given)
    except ValueError:
        raise SigmaGraphError("a list with rows of different lengths cannot be a constant of a graph.") from None
    if array.dtype.type in _HELD:
        return array
    if array.dtype.kind in "iu":
        return in_dtype(array, "int32" if array.dtype.itemsize < 4 else "int64")
    what = f"an array of {array.dtype}" if array.shape else f"a {type(given).__name__}"
    raise SigmaGraphError(f"{what} cannot be a constant of a graph. Use real numbers.")


def in_dtype(array: np.ndarray, dtype: str) -> np.ndarray:
    """Return an array in another dtype; raises SigmaGraphError for one of integers, or bool, that does not hold it."""
    allowed = INTEGERS.get(dtype, range(2))
    if dtype not in FLOATS and array.size:
        wrong = [x for x in (array.min(), array.max()) if array.dtype.kind == "f" or int(x) not in allowed]
        if wrong:
            raise SigmaGraphError(
                f"{wrong[0]} is not a valid {dtype}. Cast the other operand, or write another number."
            )
    return array.astype("float32" if dtype == "bfloat16" else dtype)
