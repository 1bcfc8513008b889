"""The algebra of architectures: ``a + b``, ``n * a``, ``a.link(b)``, and the text that says the same.

What a layer is, is said in :mod:`sigma_kernel.contracts`, which stands to the right of this.  :func:`wire` turns
architectures into a list of layers, each with what leads to it, sources first; :func:`write` turns them into text,
which :func:`sigma_kernel.network.notation.parse` reads.
"""

from __future__ import annotations

import json
import re
from abc import ABC
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from inspect import Parameter as Argument, Signature, signature as inspected
from itertools import groupby, pairwise
from typing import Any, TypeVar

import attrs
from attrs import define, field, frozen

from sigma_kernel.errors import SigmaNetworkError

A = TypeVar("A", bound="Architecture")
MOST = 10_000  # layers of a network
signature: Callable[[Callable[..., Any]], Signature] = lru_cache(1024)(inspected)  # of many layers, few classes


# -- the algebra -------------------------------------------------------------------------------------------------------
@define(eq=False)
class Architecture(ABC):  # noqa: B024  its children are abstract
    """A layer, or a chain of layers.

    ``a + b`` leads a's end to b's start, ``n * a`` is a chain of n copies, and ``str(a)`` is the text form.  The same
    layer object in two chains is one layer.  Copies are layers of their own: they have the same settings, and the same
    branches where they merge, but no links.
    """

    _called: str = field(default="", init=False, repr=False)  # its component's name in the text that it was read from
    _links: list[Architecture] = field(factory=list, init=False, repr=False)  # the starts that its end leads to
    _linked: list[Architecture] = field(factory=list, init=False, repr=False)  # the ends that lead to its start

    def __add__(self, other: Architecture) -> Architecture:
        return Chain((*chained(self), *chained(other))) if isinstance(other, Architecture) else NotImplemented

    def __rmul__(self, n: float) -> Architecture:
        if not isinstance(n, int) or isinstance(n, bool) or n < 1:
            raise SigmaNetworkError(f"{n!r} * {label(chained(self)[0])}: the number of copies must be 1, 2, 3 ...")
        check_size(int(n) * size(self))
        return Chain(tuple(_copy(layer) for _ in range(n) for layer in chained(self)))

    def link(self, other: A) -> A:
        """Lead the end of this to the start of another, as one more input of it; return the other."""
        start = chained(other)[0]
        chained(self)[-1]._links.append(start)
        start._linked.append(self)
        return other

    def __str__(self) -> str:
        return write([self])


@define(eq=False)
class Chain(Architecture):
    """Layers, each leading to the next."""

    layers: tuple[Any, ...]


def chained(architecture: Architecture) -> tuple[Any, ...]:
    """Return the layers of a chain; a layer is a chain of one."""
    return architecture.layers if isinstance(architecture, Chain) else (architecture,)


def size(architecture: Architecture) -> int:
    """Return how many layers a chain has, with those inside its layers, and without what leads to it."""
    inner = (getattr(layer, f.name) for layer in chained(architecture) for f in attrs.fields(type(layer)))
    return len(chained(architecture)) + sum(size(one) for one in inner if isinstance(one, Architecture))


def check_size(layers: int) -> None:
    """Raise SigmaNetworkError for more layers than a network can have."""
    if layers > MOST:
        raise SigmaNetworkError(f"a network can have {MOST:,} layers at most (got {layers:,}). Make fewer copies.")


def component_name(made: object) -> str:
    """Return the name of an object's class in snake case: a ``SquaredDifference`` is a ``squared_difference``."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", type(made).__name__).lower()


def label(layer: Any) -> str:
    """Return what a layer is called while it has no number."""
    return str(layer.name or component_name(layer))


def _copy(layer: Any) -> Any:
    positional, named = arguments(layer)
    copy = type(layer)(*positional, **named)
    copy._called = layer._called
    return copy


def arguments(made: Any) -> tuple[list[Any], dict[str, Any]]:
    """Return the arguments that make an attrs object again, the first by position; defaults are left out."""
    fields = {f.alias: f for f in attrs.fields(type(made))}
    positional: list[Any] = []
    named: dict[str, Any] = {}
    for i, p in enumerate(signature(type(made)).parameters.values()):
        value = getattr(made, fields[p.name].name if p.name in fields else p.name)
        if p.kind is Argument.VAR_POSITIONAL:
            positional += value
        elif not _is_default(made, value, p.default, fields.get(p.name)):
            first = i == 0 and p.kind is not Argument.KEYWORD_ONLY
            positional, named = ([value], named) if first else (positional, {**named, p.name: value})
    return positional, named


def _is_default(made: Any, value: Any, default: Any, declared: attrs.Attribute[Any] | None) -> bool:
    if declared is not None and default in (attrs.NOTHING, Argument.empty):
        default = declared.default
    if isinstance(default, attrs.Factory):  # type: ignore[arg-type]  # a function in the stubs of attrs
        default = default.factory(made) if default.takes_self else default.factory()
    return type(value) is type(default) and bool(value == default)


# -- wiring ------------------------------------------------------------------------------------------------------------
@frozen(eq=False, repr=False)
class Wired:
    """A layer, and the places of what leads to it: the one layer before it in its chain, branches, and all others."""

    layer: Any
    before: tuple[int, ...]
    branches: tuple[int, ...]
    others: tuple[int, ...]

    @property
    def sources(self) -> tuple[int, ...]:
        """Return the places of all that leads to it, in the order of its inputs."""
        return self.before + self.branches + self.others

    def at(self, places: Mapping[int, int]) -> Wired:
        """Return the same with other places."""
        groups = (tuple(places[source] for source in group) for group in (self.before, self.branches, self.others))
        return Wired(self.layer, *groups)


def wire(ends: Sequence[Architecture]) -> list[Wired]:
    """Return every layer that leads to these ends, sources first; raises SigmaNetworkError for a cycle."""
    known = _known(ends)
    places: dict[int, int] = {}
    for end in ends:
        for layer in _sources_first(known, id(chained(end)[-1]), places):
            places[layer] = len(places)
    return [known[layer].at(places) for layer in places]


def _known(ends: Sequence[Architecture]) -> dict[int, Wired]:
    """Return all layers of these chains, and all that branches and links bring in, by their identities."""
    layers: dict[int, Any] = {}
    before = defaultdict[int, dict[int, None]](dict)
    waiting = list(ends)
    for architecture in waiting:  # grows while it is walked
        chain = chained(architecture)
        for layer in chain:
            if id(layer) not in layers:
                layers[id(layer)] = layer
                waiting += [*_branches(layer), *layer._linked]
        for first, second in pairwise(chain):
            before[id(second)][id(first)] = None
    return {key: _wired(layer, tuple(before[key])) for key, layer in layers.items()}


def _wired(layer: Any, before: tuple[int, ...]) -> Wired:
    branches, linked = (tuple(id(chained(a)[-1]) for a in ends) for ends in (_branches(layer), layer._linked))
    return Wired(layer, before[:1], branches, before[1:] + linked)


def _branches(layer: Any) -> tuple[Architecture, ...]:
    return tuple(getattr(layer, "branches", ()))


def _sources_first(known: Mapping[int, Wired], end: int, done: Mapping[int, int]) -> Iterator[int]:
    """Yield what leads to a layer and is not done yet, then the layer."""
    path: dict[int, Iterator[int]] = {}
    at = end
    while at not in done:
        path.setdefault(at, iter(known[at].sources))
        following = next((source for source in path[at] if source not in done), None)
        if following in path:
            around = [*list(path)[list(path).index(following) :], following]
            names = " -> ".join(label(known[layer].layer) for layer in reversed(around))
            raise SigmaNetworkError(
                f"architecture: {names} is a cycle. A layer cannot lead to itself: use a copy (2 * layer), or take a "
                "link away."
            )
        if following is None:
            path.pop(at)
            yield at
            following = next(reversed(path), end)
        at = following


@frozen
class Placed:
    """A layer with its name in the network, and the names of the layers that lead to it."""

    name: str
    layer: Any
    sources: tuple[str, ...] = ()

    @property
    def kind(self) -> str:
        """Return the name of the layer's class, ``dense``; registries tag the layer with it."""
        return component_name(self.layer)


def place(wired: Sequence[Wired]) -> tuple[Placed, ...]:
    """Name layers by their order; raises SigmaNetworkError for names that are taken or cannot be addresses."""
    given = [f"#-{component_name(w.layer)}" if w.layer.name is None else str(w.layer.name) for w in wired]
    names = [name.replace("#", str(i)) for i, name in enumerate(given)]
    for name, times in Counter(names).items():
        if times > 1:
            raise SigmaNetworkError(f"network: {times} layers are called {name!r}. '#' in a name becomes the number.")
        if not re.fullmatch(r"[\w-]++", name):
            raise SigmaNetworkError(f"network: {name!r} cannot name a layer. Use letters, digits, - and _.")
    sources = (tuple(names[i] for i in w.sources) for w in wired)
    return tuple(Placed(name, w.layer, leading) for name, w, leading in zip(names, wired, sources, strict=True))


# -- text --------------------------------------------------------------------------------------------------------------
def write(ends: Sequence[Architecture], called: Callable[[str, str], str] = lambda kind, name: name) -> str:
    """Return the text form of architectures; ``called`` replaces a component's name, given its kind.

    Components are layers, and settings whose field says so: ``field(metadata={"kind": "activation"})``.
    """
    writer = _Writer(called)
    unnamed = writer.expressions(ends)
    return "\n".join([*writer.statements, *unnamed])


@define(eq=False, repr=False)
class _Writer:
    """Say each layer once: what leads to several others gets a name, in a statement before its use."""

    called: Callable[[str, str], str]
    statements: list[str] = field(factory=list)
    branches: dict[int, str] = field(factory=dict)  # by the identity of what is written as a branch
    _names: int = 0

    def expressions(self, ends: Sequence[Architecture]) -> list[str]:
        """Return one expression for every end."""
        wired = wire(ends)
        places = {id(w.layer): place for place, w in enumerate(wired)}
        last = dict.fromkeys(places[id(chained(end)[-1])] for end in ends)
        uses = Counter([*last, *(source for w in wired for source in w.sources)])
        terms: list[list[str]] = []  # of each layer, with all before it in its chain
        for place, w in enumerate(wired):
            ours = not w.before or uses[w.before[0]] > 1
            mine = [term for source in w.before for term in terms[source]] if ours else terms[w.before[0]]
            mine.append(self._layer(w, terms))
            terms.append([self._define(_sum(mine))] if uses[place] > 1 else mine)
        return [_sum(terms[place]) for place in last]

    def _define(self, text: str) -> str:
        self._names += 1
        self.statements.append(f"x{self._names} = {text}")
        return f"x{self._names}"

    def _layer(self, w: Wired, terms: Sequence[Sequence[str]]) -> str:
        self.branches |= {id(a): _sum(terms[at]) for a, at in zip(_branches(w.layer), w.branches, strict=True)}
        text = self._call(w.layer, *arguments(w.layer))
        if w.others:
            text = self._define(text)
            self.statements += [f"{_sum(terms[place])} -> {text}" for place in w.others]
        return text

    def _call(self, layer: Any, positional: Sequence[Any], named: Mapping[str, Any]) -> str:
        first = next(iter(signature(type(layer)).parameters), "")
        kinds = {f.alias: f.metadata["kind"] for f in attrs.fields(type(layer)) if "kind" in f.metadata}
        settings = [self._value(x, kinds.get(first)) for x in positional]
        settings += [f"{name}={self._value(x, kinds.get(name))}" for name, x in named.items()]
        return f"{self.called('layer', layer._called or component_name(layer))}({', '.join(settings)})"

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
        if attrs.has(type(value)):
            return self._value(_table(value))
        return f"<{getattr(value, '__qualname__', repr(value))}>"


def _sum(terms: Sequence[str]) -> str:
    """Join the layers of a chain; equal ones in a row are copies."""
    groups = [(term, len(list(group))) for term, group in groupby(terms)]
    return " + ".join(f"{n} * {term}" if n > 1 else term for term, n in groups)


def _table(component: Any) -> dict[str, Any]:
    """Return another kind of component as its name and its settings."""
    positional, named = arguments(component)
    names = list(signature(type(component)).parameters)
    return {"type": component_name(component), **dict(zip(names, positional, strict=False)), **named}
