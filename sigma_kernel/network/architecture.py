"""The algebra of architectures: ``a + b``, ``n * a``, ``a.link(b)``, and its text form.

:func:`place` returns the layers of architectures in order, with names and sources; :func:`write` returns the text form,
which a trainer parses. The contract of layers is in :mod:`sigma_kernel.contracts`.
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from inspect import Parameter as Argument
from itertools import groupby, pairwise
from textwrap import shorten
from typing import Any, Self, TypeVar

import attrs
from attrs import define, field, frozen

from sigma_kernel.errors import SigmaNetworkError
from sigma_kernel.graph.reprs import brief
from sigma_kernel.scanning import OWN
from sigma_kernel.settings import Settled, is_whole, signature

A = TypeVar("A", bound="Architecture")
MOST = 10_000  # layers in a network


# -- the algebra -------------------------------------------------------------------------------------------------------
@define(eq=False)
class Architecture(Settled):
    """A layer, or a chain of layers.

    ``a + b`` connects the end of a to the start of b, ``n * a`` is a chain of n copies, ``str(a)`` is the text form.
    A layer object that is in two chains is one layer. Copies are separate layers, with the same settings and the same
    branches, but without links.
    """

    _called: str = field(default="", init=False, repr=False)  # name of the component in the text it was parsed from
    _links: list[Architecture] = field(factory=list, init=False, repr=False)  # layers that its end is linked to
    _linked: list[Architecture] = field(factory=list, init=False, repr=False)  # architectures linked to its start

    def __new__(cls, *given: Any, **settings: Any) -> Self:
        """Set the defaults of a class whose own ``__init__`` may not call that of its base."""
        architecture = super().__new__(cls)
        for attribute in () if "__attrs_attrs__" in vars(cls) else attrs.fields(cls):
            if attribute.default is not attrs.NOTHING:
                object.__setattr__(architecture, attribute.name, _default(architecture, attribute.default))
        return architecture

    def __add__(self, other: Architecture) -> Architecture:
        return Chain((*layers_of(self), *layers_of(other))) if isinstance(other, Architecture) else NotImplemented

    def __rmul__(self, n: float) -> Architecture:
        if not is_whole(n, 1):
            rule = "the number of copies must be a whole number of at least 1"
            raise SigmaNetworkError(f"{n!r} * {label(layers_of(self)[0])}: {rule}. Leave the layers out for none.")
        check_size(int(n) * size(self))
        return Chain(tuple(_copy(layer) for _ in range(n) for layer in layers_of(self)))

    def link(self, other: A) -> A:
        """Connect the end of this to the start of another, as an additional input; return the other."""
        start = layers_of(other)[0]
        layers_of(self)[-1]._links.append(start)
        start._linked.append(self)
        return other

    def summary(self) -> Any:
        """Return a table of the layers that lead to its end, with the shapes and counts that follow from inputs."""
        return layers_of(self)[0]._outline(self)

    def __str__(self) -> str:
        return write([self])

    def __repr__(self) -> str:
        return shorten(str(self), 400, placeholder=" ...")

    def _repr_html_(self) -> str:
        return str(self.summary()._repr_html_())


@define(eq=False, repr=False)
class Chain(Architecture):
    """A sequence of layers, each connected to the next."""

    layers: tuple[Any, ...]


def layers_of(architecture: Architecture) -> tuple[Any, ...]:
    """Return the layers of a chain; a layer is a chain of one."""
    return architecture.layers if isinstance(architecture, Chain) else (architecture,)


def size(architecture: Architecture) -> int:
    """Return the number of layers in a chain, including those that its layers own, which may run several times."""
    owned = ((layer, f) for layer in layers_of(architecture) for f in attrs.fields(type(layer)))
    inner = ((getattr(layer, f.metadata.get("times", ""), 1), getattr(layer, f.name)) for layer, f in owned)
    return len(layers_of(architecture)) + sum(n * size(part) for n, part in inner if isinstance(part, Architecture))


def check_size(layers: int) -> None:
    """Raise SigmaNetworkError for too many layers."""
    if layers > MOST:
        raise SigmaNetworkError(f"a network can have {MOST:,} layers at most (got {layers:,}). Make fewer copies.")


def component_name(made: object) -> str:
    """Return the name of a class, or of an object's, in snake case: ``squared_difference`` for SquaredDifference."""
    name = (made if isinstance(made, type) else type(made)).__name__
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()


def label(layer: Any) -> str:
    """Return the name of a layer, without an index."""
    return str(layer.name or component_name(layer))


def _copy(layer: Any) -> Any:
    positional, named = arguments(layer)
    copy = type(layer)(*positional, **named)
    copy._called = layer._called
    return copy


def arguments(made: Any) -> tuple[list[Any], dict[str, Any]]:
    """Return the arguments to make an equal attrs object, the first by position; defaults are omitted."""
    fields = {f.alias: f for f in attrs.fields(type(made))}
    positional: list[Any] = []
    named: dict[str, Any] = {}
    for i, p in enumerate(signature(type(made)).parameters.values()):
        name = fields[p.name].name if p.name in fields else p.name
        if not hasattr(made, name):
            which = f"{type(made).__name__}: its setting {p.name!r} is not an attribute"
            raise SigmaNetworkError(f"{which}. Decorate the class with attrs' `define(eq=False)`: fields are settings.")
        value = getattr(made, name)
        if p.kind is Argument.VAR_POSITIONAL:
            positional += value
        elif not _is_default(made, value, p.default, fields.get(p.name)):
            first = i == 0 and p.kind is not Argument.KEYWORD_ONLY
            positional, named = ([value], named) if first else (positional, {**named, p.name: value})
    return positional, named


def _is_default(made: Any, value: Any, default: Any, declared: attrs.Attribute[Any] | None) -> bool:
    if declared is not None and default in (attrs.NOTHING, Argument.empty):
        default = declared.default
    default = _default(made, default)
    return type(value) is type(default) and bool(value == default)


def _default(made: Any, default: Any) -> Any:
    """Return the value of a default, which may be a factory."""
    if isinstance(default, attrs.Factory):  # type: ignore[arg-type]  # a function in the stubs of attrs
        return default.factory(made) if default.takes_self else default.factory()
    return default


# -- wiring ------------------------------------------------------------------------------------------------------------
@frozen(eq=False, repr=False)
class Wired:
    """A layer and its sources, by identity: the previous layer in its chain, branches, and all others."""

    layer: Any
    before: tuple[int, ...]
    branches: tuple[int, ...]
    others: tuple[int, ...]

    @property
    def sources(self) -> tuple[int, ...]:
        """Return all sources in the order of its inputs."""
        return self.before + self.branches + self.others


def wire(ends: Sequence[Architecture]) -> dict[int, Wired]:
    """Return the layers that lead to these ends by identity, sources first; raises SigmaNetworkError for a cycle."""
    wiring, wired = _wire_layers(ends), dict[int, Wired]()
    path: dict[int, None] = {}  # from an end to the layer that is visited
    waiting = [(key, False) for key in reversed(_last_layers(ends))]
    while waiting:
        key, sources_done = waiting.pop()
        if sources_done:
            wired[key] = wiring[key]
            path.popitem()
        elif key in path:
            names = [label(wiring[layer].layer) for layer in path]
            cycle = " -> ".join(reversed([*names[list(path).index(key) :], label(wiring[key].layer)]))
            remedy = "Use a copy (2 * layer), with share={'weights': '1-dense.weights'} for the same, or remove a link"
            raise SigmaNetworkError(f"architecture: {cycle} is a cycle. {remedy}.")
        elif key not in wired:
            path[key] = None
            waiting += [(key, True), *((source, False) for source in reversed(wiring[key].sources))]
    return wired


def _last_layers(architectures: Iterable[Architecture]) -> tuple[int, ...]:
    """Return the identities of the last layers of chains."""
    return tuple(id(layers_of(architecture)[-1]) for architecture in architectures)


def _wire_layers(ends: Sequence[Architecture]) -> dict[int, Wired]:
    """Return all layers of these chains, and those that branches and links add, by identity."""
    layers: dict[int, Any] = {}
    before = defaultdict[int, dict[int, None]](dict)
    waiting = list(ends)
    for architecture in waiting:  # grows during the loop
        chain = layers_of(architecture)
        for layer in chain:
            if id(layer) not in layers:
                layers[id(layer)] = layer
                waiting += [*_branches(layer), *layer._linked]
        for first, second in pairwise(chain):
            before[id(second)][id(first)] = None
    wiring = {}
    for key, layer in layers.items():
        previous = tuple(before[key])
        wiring[key] = Wired(
            layer, previous[:1], _last_layers(_branches(layer)), previous[1:] + _last_layers(layer._linked)
        )
    return wiring


def _branches(layer: Any) -> tuple[Architecture, ...]:
    return tuple(getattr(layer, "branches", ()))


@frozen
class Placed:
    """A layer with its name in the network, and the names of its sources."""

    name: str
    layer: Any
    sources: tuple[str, ...] = ()

    __repr__ = brief

    @property
    def kind(self) -> str:
        """Return the name of the layer's class, such as ``dense``, which is its tag in the registry."""
        return component_name(self.layer)

    @property
    def declared_shape(self) -> tuple[int, ...] | None:
        """Return the shape of one sample that an input layer declares; None to take the data's."""
        shape = getattr(self.layer, "shape", None)
        return None if shape is None or None in (shape or (None,)) else tuple(shape)


def place(ends: Sequence[Architecture]) -> tuple[Placed, ...]:
    """Return the layers that lead to these ends with their names, sources first.

    Raises SigmaNetworkError for cycles, duplicate names, and names that cannot be addresses.
    """
    wired, names = wire(ends), dict[int, str]()
    for index, (key, w) in enumerate(wired.items()):
        given = f"#-{component_name(w.layer)}" if w.layer.name is None else str(w.layer.name)
        names[key] = given.replace("#", str(index))
    for name, times in Counter(names.values()).items():
        if times > 1:
            raise SigmaNetworkError(f"network: {times} layers are called {name!r}. '#' in a name becomes the index.")
        if not re.fullmatch(r"[\w-]++", name):
            raise SigmaNetworkError(f"network: {name!r} cannot name a layer. Use letters, digits, - and _.")
    return tuple(Placed(names[key], w.layer, tuple(names[x] for x in w.sources)) for key, w in wired.items())


# -- text --------------------------------------------------------------------------------------------------------------
class Own(str):
    """The path ``package.module:Object`` of a layer of one's own code, in place of the name of a component."""

    __slots__ = ()


def name_of(kind: str, component: Any) -> str:
    """Return the name of a component, which is a layer or a name itself."""
    return component if isinstance(component, str) else component._called or component_name(component)


def write(
    ends: Sequence[Architecture], called: Callable[[str, Any], str] = name_of, plain: Callable[[Any], Any] | None = None
) -> str:
    """Return the text form of architectures.

    ``called`` returns the name to write for a component of a kind: for a layer, and for the name in a setting whose
    field has a kind, ``field(metadata={"kind": "activation"})``.  ``plain`` converts other objects among the settings;
    without it, functions and arrays have no text form that can be parsed.
    """
    writer = _Writer(called, plain)
    unnamed = writer.expressions(ends)
    return "\n".join([*writer.statements, *unnamed])


@define(eq=False, repr=False)
class _Writer:
    """Write each layer once: one with several uses gets a name, in a statement before its first use."""

    called: Callable[[str, Any], str]
    plain: Callable[[Any], Any] | None
    statements: list[str] = field(factory=list)
    branches: dict[int, str] = field(factory=dict)  # the text of each branch, by identity
    _names: int = 0

    def expressions(self, ends: Sequence[Architecture]) -> list[str]:
        """Return one expression for each end."""
        wired = wire(ends)
        last = dict.fromkeys(_last_layers(ends))
        uses = Counter([*last, *(source for w in wired.values() for source in w.sources)])
        terms: dict[int, list[str]] = {}  # of each layer, with those before it in its chain
        for key, w in wired.items():
            ours = not w.before or uses[w.before[0]] > 1
            mine = [term for source in w.before for term in terms[source]] if ours else terms[w.before[0]]
            mine.append(self._layer(w, terms))
            terms[key] = [self._define(_sum(mine))] if uses[key] > 1 else mine
        return [_sum(terms[key]) for key in last]

    def _define(self, text: str) -> str:
        self._names += 1
        self.statements.append(f"x{self._names} = {text}")
        return f"x{self._names}"

    def _layer(self, w: Wired, terms: Mapping[int, Sequence[str]]) -> str:
        self.branches |= {id(a): _sum(terms[key]) for a, key in zip(_branches(w.layer), w.branches, strict=True)}
        text = self._call(w.layer, *arguments(w.layer))
        if w.others:
            text = self._define(text)
            self.statements += [f"{_sum(terms[key])} -> {text}" for key in w.others]
        return text

    def _call(self, layer: Any, positional: Sequence[Any], named: Mapping[str, Any]) -> str:
        first = next(iter(signature(type(layer)).parameters), "")
        kinds = {f.alias: f.metadata["kind"] for f in attrs.fields(type(layer)) if "kind" in f.metadata}
        settings = [self._value(x, kinds.get(first)) for x in positional]
        settings += [f"{name}={self._value(x, kinds.get(name))}" for name, x in named.items()]
        name = self.called("layer", layer)
        name, settings = (OWN, [json.dumps(name), *settings]) if isinstance(name, Own) else (name, settings)
        return f"{name}({', '.join(settings)})"

    def _value(self, value: Any, kind: str | None = None) -> str:
        match value:
            case str() if kind:
                return json.dumps(self.called(kind, value))
            case Architecture():
                return self.branches.get(id(value)) or self.expressions([value])[0]
            case None:
                return "none"
            case bool() | str():
                return json.dumps(value)
            case int() | float():
                return repr(float(value) if isinstance(value, float) else int(value))
            case Mapping():
                return "{" + ", ".join(f"{json.dumps(str(key))}: {self._value(x)}" for key, x in value.items()) + "}"
            case list():
                return f"[{', '.join(map(self._value, value))}]"
            case tuple():
                return f"({', '.join(map(self._value, value))}{',' if len(value) == 1 else ''})"
        if self.plain is not None:
            return self._value(self.plain(value))
        if attrs.has(type(value)):
            return self._value(_table(value))
        return f"<{getattr(value, '__qualname__', repr(value))}>"


def _sum(terms: Sequence[str]) -> str:
    """Join the terms of a chain; equal consecutive ones become copies."""
    groups = [(term, len(list(group))) for term, group in groupby(terms)]
    return " + ".join(f"{n} * {term}" if n > 1 else term for term, n in groups)


def _table(component: Any) -> dict[str, Any]:
    """Return a component that is not a layer as a table of its name and settings."""
    positional, named = arguments(component)
    names = list(signature(type(component)).parameters)
    return {"type": component_name(component), **dict(zip(names, positional, strict=False)), **named}
