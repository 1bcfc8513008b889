"""Named values in nested registries: typed, tagged, observable, and found by address.

A registry holds values and further registries by name. A value is *bound*: read and written through functions of its
owner. Addresses are relative to the registry on which a method is called. All methods are thread-safe; the functions of
values and observers are called without the lock, so they may use the registry.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from enum import Enum
from functools import partial
from numbers import Integral, Real
from threading import RLock
from typing import Any

from attrs import define, field, frozen

from sigma_kernel.errors import SigmaAddressError, suggest_name
from sigma_kernel.registry.addresses import levels, literal, matches
from sigma_kernel.settings import describe_limits

_Matches = dict[str, "_Leaf | Registry"]  # by address, in the order of the tree
Get = Callable[[], Any]
Put = Callable[[Any], Any]
Observer = Callable[[str, Any, Any], Any]  # address, old value, new value
_Watch = tuple["Registry", str, Observer]  # the observer of a pattern, relative to a registry


class Mark(Enum):
    """A placeholder for a value."""

    NOTHING = "nothing"  # no value; also returned by the read function of an unpublished one
    BOUND = "bound"  # passed to observers when a value is bound or removed, without reading it


NOTHING = Mark.NOTHING
_ABSTRACT: dict[type, type] = {bool: bool, int: Integral, float: Real, str: str}  # which include NumPy scalars
_HOLDS = {"low": operator.ge, "above": operator.gt, "high": operator.le, "below": operator.lt}
_WORDS = {bool: "true or false", int: "a whole number", float: "a number", str: "a string", object: ""}


@frozen
class Kind:
    """The type and range of a value; ``object`` allows anything."""

    type: type = object
    low: float | None = None  # at least
    high: float | None = None  # at most
    above: float | None = None  # more than
    below: float | None = None  # less than
    doc: str = ""
    unit: str = ""

    @property
    def shape(self) -> tuple[int, ...] | None:
        """Return the shape of an array; None for other values."""
        return None

    def check(self, address: str, value: Any) -> Any:
        """Return the value converted to the type; raises SigmaAddressError if it does not fit."""
        if not self.holds(value):
            raise SigmaAddressError(f"{address}: must be {self} (got {value!r}).")
        try:
            return self.type(value) if self.type in (int, float) else value
        except OverflowError:
            raise SigmaAddressError(f"{address}: must be {self} (got {value!r}, which is too large).") from None

    def holds(self, value: Any) -> bool:
        """Return whether a value fits."""
        typed = isinstance(value, _ABSTRACT.get(self.type, self.type))
        if not typed or (isinstance(value, bool) and self.type in (int, float)):
            return False
        return all(_HOLDS[name](value, limit) for name, limit in self._limits().items())

    def _limits(self) -> dict[str, float]:
        return {name: limit for name in _HOLDS if (limit := getattr(self, name)) is not None}

    def __str__(self) -> str:
        parts = (_WORDS.get(self.type, f"a {self.type.__name__}"), describe_limits(self._limits()))
        return ", ".join(filter(None, parts)) or "anything"


@frozen(eq=False, repr=False)
class _Leaf:
    """One value."""

    kind: Kind
    get: Get
    put: Put | None  # None: read-only
    remote: bool = False  # setting it sends a request that ends in another set(), which notifies observers

    def check(self, address: str, value: Any) -> Any:
        if self.put is None:
            raise SigmaAddressError(f"{address}: is read-only.")
        return self.kind.check(address, value)


@define(eq=False, repr=False)
class Registry:
    """A tree of names: leaves are values, branches are registries with tags."""

    path: str = ""
    _lock: Any = field(factory=RLock)
    _tags: set[str] = field(factory=set)
    _items: dict[str, _Leaf | Registry] = field(factory=dict)
    _watches: dict[object, _Watch] = field(factory=dict)  # of the whole tree, in order of registration
    _found: dict[tuple[str, str], _Matches] = field(factory=dict)  # cached by path and pattern, for the whole tree

    # -- values --------------------------------------------------------------------------------------------------------
    def get(self, address: str) -> Any:
        """Return the value or registry at a plain address; raises SigmaAddressError if there is none."""
        entry = self._find_entry(address)
        value = entry.get() if isinstance(entry, _Leaf) else entry
        if value is NOTHING:
            raise SigmaAddressError(f"{self._full(address)}: is not published yet.")
        return value

    def find(self, pattern: str) -> list[tuple[str, Any]]:
        """Return the address and value of every match that has a value, in the order of binding."""
        read = [(address, leaf.get()) for address, leaf in self._leaves(pattern).items()]
        return [(address, value) for address, value in read if value is not NOTHING]

    def addresses(self, pattern: str = "**") -> list[str]:
        """Return the addresses of all matches, including those without a value yet."""
        return list(self._leaves(pattern))

    def tags(self, address: str = "") -> frozenset[str]:
        """Return the tags of this registry, or of the one at an address; values have none."""
        entry = self._entry(address) if address else self
        return frozenset(entry._tags) if isinstance(entry, Registry) else frozenset()

    def kind(self, address: str) -> Kind:
        """Return the kind of the value at a plain address."""
        entry = self._find_entry(address)
        return entry.kind if isinstance(entry, _Leaf) else Kind()

    def kinds(self, pattern: str = "**") -> dict[str, tuple[Kind, bool]]:
        """Return the kind of every match, and whether it can be set, by address."""
        return {address: (leaf.kind, leaf.put is not None) for address, leaf in self._leaves(pattern).items()}

    def set(self, pattern: str, value: Any) -> list[str]:
        """Set all values that a pattern matches, each by its own function; return their addresses.

        All are checked first; observers are called last. Raises SigmaAddressError if nothing matches or the value does
        not fit.
        """
        checked, leaves = self.check(pattern, value), self._leaves(pattern)
        with self.observing([address for address, leaf in leaves.items() if not leaf.remote], checked):
            for address, leaf in leaves.items():
                leaf.put(checked[address])  # type: ignore[misc]  # check() refuses None
        return list(leaves)

    def check(self, pattern: str, value: Any) -> dict[str, Any]:
        """Return the value to set at each match, by address; raise SigmaAddressError as :meth:`set` does."""
        leaves = self._leaves(pattern)
        if not leaves:
            raise self.unmatched_error(pattern)
        return {address: leaf.check(self._full(address), value) for address, leaf in leaves.items()}

    @contextmanager
    def observing(self, addresses: Iterable[str], values: Mapping[str, Any]) -> Iterator[None]:
        """Call the observers of addresses after the block, which puts new values there."""
        observers = {address: listeners for address in addresses if (listeners := self._listeners(address))}
        old = {address: self._leaves(address)[address].get() for address in observers}  # reading may be costly
        yield
        for address, listeners in observers.items():
            for callback, seen in listeners:
                callback(seen, old[address], values[address])

    def __getitem__(self, address: str) -> Any:
        return self.get(address)

    def __setitem__(self, address: str, value: Any) -> None:
        self.set(address, value)

    def __contains__(self, address: object) -> bool:
        return isinstance(address, str) and bool(self._search(address))

    # -- structure -----------------------------------------------------------------------------------------------------
    def branch(self, address: str, *tags: str) -> Registry:
        """Return the registry at an address, created if necessary, with these tags added."""
        with self._lock:
            here = self._descend(_split_address(address))
            here._tags.update(tags)
            self._found.clear()
            return here

    def bind(
        self, address: str, get: Get, put: Put | None = None, kind: Kind | None = None, remote: bool = False
    ) -> None:
        """Bind a value to an address, through functions that read and set it; without ``put``, it is read-only.

        It replaces a value already bound there. The ``put`` of a ``remote`` value sends a request that ends in a call
        of :meth:`set` with another function.
        """
        *path, name = _split_address(address)
        leaf = _Leaf(kind or Kind(), get, put, remote)
        with self._lock:
            parent = self._descend(path)
            old = parent._items.get(name)
            if isinstance(old, Registry):
                raise SigmaAddressError(f"{self._full(address)}: is a registry, which cannot be replaced by a value.")
            parent._items[name] = leaf
            self._found.clear()
        self._tell(address, NOTHING if old is None else Mark.BOUND, Mark.BOUND)

    def put(self, address: str, value: Any, kind: Kind | None = None) -> None:
        """Put a plain value at an address, which can be set and observed; it keeps its type, or is of another kind.

        Training does not read it. Raises SigmaAddressError below a trainer, whose numbers a hook such as ``switch``
        declares: those are set at a boundary, recorded and saved.
        """
        if "trainer" in self.tags() | self.tags(_split_address(address)[0]):
            raise SigmaAddressError(f"{self._full(address)}: belongs to the trainer. Add a `switch` hook for a number.")
        wanted = kind or Kind(next((cls for cls in _ABSTRACT if type(value) is cls), object))
        held = {address: wanted.check(address, value)}
        self.bind(address, partial(held.__getitem__, address), partial(held.__setitem__, address), wanted)

    def remove(self, address: str) -> None:
        """Remove a value, or a registry with its contents."""
        *path, name = address.split(".")
        with self._lock:
            entry = self._find_entry(address)
            gone = [address] if isinstance(entry, _Leaf) else [f"{address}.{inner}" for inner in entry.addresses()]
            del self._descend(path)._items[name]
            self._found.clear()
        for each in gone:
            self._tell(each, Mark.BOUND, NOTHING)

    def _descend(self, names: list[str]) -> Registry:
        here = self
        for name in names:
            if name not in here._items:
                here._items[name] = Registry(here._full(name), self._lock, watches=self._watches, found=self._found)
            entry = here._items[name]
            if isinstance(entry, _Leaf):
                raise SigmaAddressError(f"{here._full(name)}: is a value, not a registry.")
            here = entry
        return here

    # -- observers -----------------------------------------------------------------------------------------------------
    def observe(self, callback: Observer, pattern: str = "**") -> Callable[[], None]:
        """Call ``callback(address, old, new)`` for each change of a matching value; return a function to end this.

        ``old`` is ``NOTHING`` for a new value, ``new`` for a removed one. The thread that makes a change calls back
        once, after the change; with several threads, the last call need not belong to the last change.
        """
        levels(pattern)
        key = object()
        with self._lock:
            self._watches[key] = self, pattern, callback

        def end() -> None:
            with self._lock:
                self._watches.pop(key, None)

        return end

    def _tell(self, address: str, old: Any, new: Any) -> None:
        for callback, seen in self._listeners(address) if self._watches else ():
            callback(seen, old, new)

    def _listeners(self, address: str) -> list[tuple[Observer, str]]:
        """Return the observers to notify of a change, each with the address relative to its registry."""
        full = self._full(address)
        with self._lock:
            watches = list(self._watches.values())
        seen = [(*watch, full.removeprefix(head)) for watch in watches if full.startswith(head := watch[0]._full(""))]
        return [(callback, name) for home, pattern, callback, name in seen if matches(pattern, name, home.tags)]

    # -- lookup --------------------------------------------------------------------------------------------------------
    def _full(self, address: str) -> str:
        return f"{self.path}.{address}" if self.path else address

    def _find_entry(self, address: str) -> _Leaf | Registry:
        here: Any = self
        for name in _split_address(address):
            if isinstance(here, _Leaf):
                raise SigmaAddressError(f"{self._full(address)}: goes beyond a value, which has no further levels.")
            if name not in here._items:
                raise here._unknown(name)
            here = here._items[name]
        return here  # type: ignore[no-any-return]

    def _unknown(self, name: str) -> SigmaAddressError:
        names, place = list(self._items), f"in {self.path!r}" if self.path else "here"
        listed = f" There is: {', '.join(names[:12])}." if names else " It is empty."
        return SigmaAddressError(f"no {name!r} {place}.{suggest_name(name, names) or listed}")

    def _leaves(self, pattern: str) -> dict[str, _Leaf]:
        return {address: entry for address, entry in self._search(pattern).items() if isinstance(entry, _Leaf)}

    def _search(self, pattern: str) -> dict[str, _Leaf | Registry]:
        """Return all matching values and registries by address, in the order of the tree; do not modify the result."""
        if literal(pattern):
            entry = self._entry(pattern)
            return {} if entry is None else {pattern: entry}
        with self._lock:
            key = self.path, pattern
            if key not in self._found:
                if len(self._found) >= 1000:  # so many patterns are unlikely to be repeated
                    self._found.clear()
                every = pattern == "**"
                self._found[key] = {a: e for a, e in self._everything("") if every or matches(pattern, a, self.tags)}
            return self._found[key]

    def _everything(self, head: str) -> Iterator[tuple[str, _Leaf | Registry]]:
        for name, entry in self._items.items():
            yield head + name, entry
            if isinstance(entry, Registry):
                yield from entry._everything(f"{head}{name}.")

    def _entry(self, address: str) -> _Leaf | Registry | None:
        here: Any = self
        for name in address.split("."):
            here = here._items.get(name) if isinstance(here, Registry) else None
        return here  # type: ignore[no-any-return]

    def unmatched_error(self, pattern: str) -> SigmaAddressError:
        """Return the error of a pattern that matches no value."""
        if literal(pattern):
            self._find_entry(pattern)
            return SigmaAddressError(f"{self._full(pattern)}: is a registry. Give the address of a value in it.")
        names = {name for address in self._search("**") for name in address.split(".")}
        asked = [level.name for level in levels(pattern) if "*" not in level.name and level.name not in names]
        hint = f" Nothing is called {asked[0]!r}.{suggest_name(asked[0], names)}" if asked else ""
        return SigmaAddressError(f"{self._full(pattern)}: matches no value.{hint}")


def _split_address(address: str) -> list[str]:
    if not literal(address):
        raise SigmaAddressError(f"{address!r}: is a pattern. Use a plain address, or find() for its matches.")
    return address.split(".")
