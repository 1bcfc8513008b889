"""Named values in nested registries: typed, tagged, observable, and found by address.

A registry holds values and further registries by name.  A value is plain, or *bound*: read and written through
functions, which is how parameters and live settings appear under their addresses.  Structure may be changed and values
set from any thread.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from numbers import Integral, Real
from typing import Any

from attrs import define, field, frozen

from sigma_kernel.addresses import (
    Level,
    levels as levels,
    literal as literal,
    matches as matches,
    specificity as specificity,
)
from sigma_kernel.errors import SigmaAddressError, near

Observer = Callable[[str, Any, Any], None]
_NAMES = {bool: "true or false", int: "a whole number", float: "a number", str: "a text"}


class Nothing:
    """What a bound value returns while there is none; it is left out of what is found."""


NOTHING = Nothing()


@frozen
class Kind:
    """What a value must be: a type, and a range or choices; ``object`` is anything."""

    type: type = object
    low: float | None = None  # at least
    high: float | None = None  # at most
    above: float | None = None  # more than
    below: float | None = None  # less than
    choices: tuple[Any, ...] = ()

    def check(self, address: str, value: Any) -> Any:
        """Return the value in its type; raises SigmaAddressError that says what it must be."""
        if not (self._typed(value) and self._ranged(value) and (not self.choices or value in self.choices)):
            raise SigmaAddressError(f"{address}: must be {self} (got {value!r}).")
        return self.type(value) if self.type in (int, float) else value

    def _typed(self, value: Any) -> bool:
        if self.type in (int, float):
            number = Integral if self.type is int else Real
            return isinstance(value, number) and not isinstance(value, bool) and value == value
        return isinstance(value, self.type)

    def _ranged(self, value: Any) -> bool:
        return (
            (self.low is None or value >= self.low)
            and (self.high is None or value <= self.high)
            and (self.above is None or value > self.above)
            and (self.below is None or value < self.below)
        )

    def __str__(self) -> str:
        limits = {"at least": self.low, "more than": self.above, "at most": self.high, "less than": self.below}
        ranged = " and ".join(f"{word} {limit:g}" for word, limit in limits.items() if limit is not None)
        chosen = f"one of {', '.join(map(repr, self.choices))}" if self.choices else ""
        named = _NAMES.get(self.type, "" if self.type is object else f"a {self.type.__name__}")
        return ", ".join(filter(None, (chosen or named, ranged))) or "anything"


@define(eq=False)
class Leaf:
    """One value: kept here, or bound to functions."""

    kind: Kind = Kind()
    value: Any = NOTHING
    get: Callable[[], Any] | None = None
    put: Callable[[Any], Any] | None = None

    def read(self) -> Any:
        """Return the value."""
        return self.value if self.get is None else self.get()

    def write(self, address: str, value: Any) -> None:
        """Replace the value after checking it; raises SigmaAddressError if it does not fit or cannot be set."""
        checked = self.kind.check(address, value)
        if self.get is None:
            self.value = checked
        elif self.put is None:
            raise SigmaAddressError(f"{address}: can be read only.")
        else:
            self.put(checked)


@define
class _Shared:
    """What all registries of one tree share: the lock, who observes, and a number for its present structure."""

    lock: threading.RLock = field(factory=threading.RLock)
    observers: list[tuple[str, Observer]] = field(factory=list)
    version: int = 0


@define(eq=False)
class Registry:
    """A tree of names; leaves are values, branches are registries with tags."""

    tags: frozenset[str] = field(factory=frozenset)
    path: str = field(default="", kw_only=True)
    _items: dict[str, Leaf | Registry] = field(factory=dict, init=False)
    _shared: _Shared = field(factory=_Shared, kw_only=True)
    _found: dict[str, list[str]] = field(factory=dict, init=False)
    _found_at: int = field(default=-1, init=False)

    # -- structure -----------------------------------------------------------------------------------------------------
    def branch(self, address: str, *tags: str) -> Registry:
        """Return the registry at an address, made where there is none, with these tags added."""
        with self._shared.lock:
            here = self._down(address.split("."))
            if not here.tags >= set(tags):
                here.tags |= set(tags)
                self._shared.version += 1
            return here

    def declare(self, address: str, value: Any, kind: Kind | None = None) -> None:
        """Put a value at an address, and say what it must be from now on."""
        checked = kind.check(self._full(address), value) if kind else value
        self._place(address, Leaf(kind or Kind(), checked))

    def bind(
        self, address: str, get: Callable[[], Any], put: Callable[[Any], Any] | None = None, kind: Kind | None = None
    ) -> None:
        """Put a value at an address that is read and written through functions; without ``put`` it can be read only."""
        self._place(address, Leaf(kind or Kind(), get=get, put=put))

    def remove(self, address: str) -> None:
        """Take a value or a registry out of the tree."""
        *path, name = address.split(".")
        with self._shared.lock:
            self._at(address)
            parent = self._at(".".join(path)) if path else self
            assert isinstance(parent, Registry)
            del parent._items[name]
            self._shared.version += 1

    def _place(self, address: str, leaf: Leaf) -> None:
        *path, name = address.split(".")
        if not literal(address):
            raise SigmaAddressError(f"{address!r}: a pattern names no single place. Use a plain address.")
        with self._shared.lock:
            parent = self._down(path)
            if isinstance(parent._items.get(name), Registry):
                raise SigmaAddressError(f"{self._full(address)}: is a registry, and cannot become a value.")
            parent._items[name] = leaf
            self._shared.version += 1
        self._tell(self._full(address), NOTHING, leaf.value)

    def _down(self, path: list[str]) -> Registry:
        here = self
        for name in path:
            if name not in here._items:
                levels(name)
                here._items[name] = Registry(path=here._full(name), shared=self._shared)
                self._shared.version += 1
            found = here._items[name]
            if not isinstance(found, Registry):
                raise SigmaAddressError(f"{here._full(name)}: is a value, and holds nothing further.")
            here = found
        return here

    def _full(self, address: str) -> str:
        return f"{self.path}.{address}" if self.path else address

    # -- reading -------------------------------------------------------------------------------------------------------
    def get(self, address: str) -> Any:
        """Return the value or the registry at a plain address; raises SigmaAddressError that says what is near."""
        found = self._at(address)
        value = found if isinstance(found, Registry) else found.read()
        if value is NOTHING:
            raise SigmaAddressError(f"{self._full(address)}: nothing has been published there yet.")
        return value

    def _at(self, address: str) -> Leaf | Registry:
        here: Leaf | Registry = self
        for name in address.split("."):
            if not isinstance(here, Registry) or name not in here._items:
                raise here._unknown(name) if isinstance(here, Registry) else _no_further(self._full(address))
            here = here._items[name]
        return here

    def _unknown(self, name: str) -> SigmaAddressError:
        if not levels(name)[0].literal:
            return SigmaAddressError(f"{name!r}: is a pattern. Use find() for all that it matches.")
        place = f"in {self.path!r}" if self.path else "here"
        return SigmaAddressError(f"no {name!r} {place}.{near(name, self._items) or self._listed()}")

    def _listed(self) -> str:
        return f" There is: {', '.join(list(self._items)[:12])}." if self._items else " It is empty."

    def find(self, pattern: str) -> list[tuple[str, Any]]:
        """Return the address and the value of every match, in the order in which they were put there."""
        found = [(address, self._at(address)) for address in self.addresses(pattern)]
        read = [(address, entry if isinstance(entry, Registry) else entry.read()) for address, entry in found]
        return [(address, value) for address, value in read if value is not NOTHING]

    def addresses(self, pattern: str) -> list[str]:
        """Return the addresses that match a pattern; remembered until the structure changes."""
        with self._shared.lock:
            if self._found_at != self._shared.version:
                self._found, self._found_at = {}, self._shared.version
            if pattern not in self._found:
                self._found[pattern] = list(dict.fromkeys(self._search(levels(pattern), "")))
            return self._found[pattern]

    def _search(self, wanted: tuple[Level, ...], head: str) -> Iterator[str]:
        first, rest = wanted[0], wanted[1:]
        if first.deep and rest:
            yield from self._search(rest, head)
        for name, entry in self._items.items():
            address = f"{head}{name}"
            tags = entry.tags if isinstance(entry, Registry) else frozenset[str]()
            if (first.deep or first.fits(name, tags)) and not rest:
                yield address
            if isinstance(entry, Registry):
                if first.deep:
                    yield from entry._search(wanted, f"{address}.")
                elif rest and first.fits(name, tags):
                    yield from _beyond(entry, rest, address)

    def walk(self) -> Iterator[tuple[str, Any]]:
        """Yield the address and the value of every leaf, in order."""
        yield from ((address, value) for address, value in self.find("**") if not isinstance(value, Registry))

    def to_dict(self) -> dict[str, Any]:
        """Return all leaves by address."""
        return dict(self.walk())

    # -- writing -------------------------------------------------------------------------------------------------------
    def set(self, pattern: str, value: Any) -> list[str]:
        """Set every value that a pattern matches, and return their addresses.

        All are checked before the first is set.  Raises SigmaAddressError if nothing matches or the value does not fit.
        """
        found = {address: entry for address in self.addresses(pattern) if isinstance(entry := self._at(address), Leaf)}
        if not found:
            self._refuse(pattern)
        for address, leaf in found.items():
            leaf.kind.check(self._full(address), value)
        for address, leaf in found.items():
            old = leaf.read()
            leaf.write(self._full(address), value)
            self._tell(self._full(address), old, leaf.read())
        return list(found)

    def _refuse(self, pattern: str) -> None:
        if literal(pattern) and isinstance(self._at(pattern), Registry):
            raise SigmaAddressError(f"{self._full(pattern)}: is a registry. Name a value in it.")
        raise SigmaAddressError(f"{self._full(pattern)}: matches no value.{near(pattern, self.addresses('**'))}")

    def observe(self, callback: Observer, pattern: str = "**") -> Callable[[], None]:
        """Call back with (address, old, new) after every change under a pattern; return a function that ends it."""
        entry = (self._full(pattern), callback)
        levels(pattern)
        with self._shared.lock:
            self._shared.observers.append(entry)
        return lambda: self._shared.observers.remove(entry)

    def _tell(self, address: str, old: Any, new: Any) -> None:
        for pattern, callback in list(self._shared.observers):
            if matches(pattern, address):
                callback(address, old, new)

    # -- as a mapping --------------------------------------------------------------------------------------------------
    def __getitem__(self, address: str) -> Any:
        return self.get(address)

    def __setitem__(self, address: str, value: Any) -> None:
        if literal(address) and address not in self:
            self.declare(address, value)
        else:
            self.set(address, value)

    def __contains__(self, address: str) -> bool:
        return bool(self.addresses(address))

    def __iter__(self) -> Iterator[str]:
        return iter(list(self._items))

    def __len__(self) -> int:
        return len(self._items)

    def copy(self) -> Registry:
        """Return a registry of its own with the same values, tags and kinds; bound values become plain ones."""
        twin = Registry(self.tags)
        for name, entry in self._items.items():
            if isinstance(entry, Registry):
                _graft(twin, name, entry.copy())
            else:
                twin._items[name] = Leaf(entry.kind, entry.read())
        return twin

    def view(self) -> ReadOnly:
        """Return a view through which nothing can be changed."""
        return ReadOnly(self)


@frozen
class ReadOnly(Mapping[str, Any]):
    """A registry to look at."""

    _registry: Registry

    def __getitem__(self, address: str) -> Any:
        value = self._registry.get(address)
        return value.view() if isinstance(value, Registry) else value

    def __iter__(self) -> Iterator[str]:
        return iter(self._registry)

    def __len__(self) -> int:
        return len(self._registry)

    def find(self, pattern: str) -> list[tuple[str, Any]]:
        """Return the address and the value of every match."""
        return [(a, v.view() if isinstance(v, Registry) else v) for a, v in self._registry.find(pattern)]


def _beyond(entry: Registry, rest: tuple[Level, ...], address: str) -> Iterator[str]:
    if all(level.deep for level in rest):
        yield address
    yield from entry._search(rest, f"{address}.")


def _graft(parent: Registry, name: str, child: Registry) -> None:
    child.path = parent._full(name)
    child._shared = parent._shared
    for below, entry in child._items.items():
        if isinstance(entry, Registry):
            _graft(child, below, entry)
    parent._items[name] = child


def _no_further(address: str) -> SigmaAddressError:
    return SigmaAddressError(f"{address}: goes on behind a value, which holds nothing further.")
