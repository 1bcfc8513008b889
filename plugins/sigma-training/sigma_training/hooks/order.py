"""Compute the callback order: in which order hooks run that are due together, from their declarations.

A hook that writes an address runs before those that read it, and after those that it ``requires``; ties are resolved by
greater priority, then by name.  Hooks that are equal in all but name are refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property, lru_cache
from graphlib import CycleError, TopologicalSorter
from heapq import heappop, heappush
from itertools import pairwise
from typing import Any

import attrs
from attrs import Factory, field, frozen

from sigma_kernel.clock import Moment, TimeScale
from sigma_kernel.contracts import Hook, Media
from sigma_kernel.encoding import pack
from sigma_kernel.errors import SigmaConfigError, SigmaStateError
from sigma_kernel.registry.addresses import literal, matches

SHARDS = "shards."  # what a shard of a batch has: shards.<n>.gradients.<address>, shards.<n>.rows
OBSERVED = ("gradients.", "updates.", "activations.", "batch.", SHARDS)
ROWS = "batch.rows"  # the numbers of the rows of the last batch in their split
_HEADS = "training data network optimiser optimisers hooks phases workers gradients updates activations batch shards"
OWN = frozenset(_HEADS.split())  # how addresses of a trainer begin, not of hooks
REPEATED = "repeated"  # in place of an observed address: the whole iteration
_SECONDS = ("second", "seconds")

Memory = Mapping[str, dict[str, Any]]  # by hook: the memory of the hook and its criterion, and whether it is muted


@frozen
class Reason:
    """Why one hook runs before another."""

    first: str
    then: str
    why: str

    def __str__(self) -> str:
        return f"{self.first} before {self.then}: {self.why}"


def reads(hook: Hook) -> tuple[str, ...]:
    """Return all addresses that a hook and its criterion read."""
    asked = hook.when.addresses() if hook.when is not None else ()
    return (*hook.reads, *asked)


def other_trainers(asked: Iterable[str], written: Iterable[str]) -> list[tuple[str, str]]:
    """Return the addresses that can be those of other trainers, as name and rest: none of the trainer begins so."""
    own = OWN.union(address.partition(".")[0] for address in written)
    parts = (address.partition(".") for address in asked)
    return [(name, rest) for name, _, rest in parts if rest and name not in own]


def matching_writes(asked: Sequence[str], scope: str, writer: Hook) -> list[str]:
    """Return the addresses of a writer that a hook of this scope reads; local values are published once per worker."""
    if writer.scope == "local":
        asked = [inner(a) for a in asked if scope == "local" or a.startswith(("workers.", "*"))]
    return [address for address in writer.writes for pattern in asked if meet(pattern, address)]


def inner(address: str) -> str:
    """Return an address without its ``workers.<n>.`` prefix."""
    return re.sub(r"^workers\.[^.]++\.", "", address)


def within_shard(address: str) -> str:
    """Return an address without its ``shards.<n>.`` prefix; empty if it has none."""
    number, _, rest = address.removeprefix(SHARDS).partition(".")
    return "" if not address.startswith(SHARDS) else "**" if number == "**" and not rest else rest


def check_read(name: str, hook: Hook, address: str) -> None:
    """Raise SigmaStateError for an address that a hook did not declare in ``reads``."""
    if not any(pattern == address or matches(pattern, address) for pattern in reads(hook)):
        raise SigmaStateError(f"hook {name!r}: reads {address!r} without declaring it. Add it to reads.")


def check_write(name: str, hook: Hook, address: str, value: Any) -> None:
    """Raise SigmaStateError for an address that a hook did not declare in ``writes``, or a value of a wrong type."""
    if address not in hook.writes and not _matches_any(address, tuple(hook.writes)):
        raise SigmaStateError(f"hook {name!r}: publishes {address!r} without declaring it. Add it to writes.")
    if type(value) is not float and not isinstance(value, Media):
        pack(value.flat[:0] if hasattr(value, "flat") else value)  # of an array, only its dtype matters


@lru_cache(maxsize=4096)
def _matches_any(address: str, patterns: tuple[str, ...]) -> bool:
    """Return whether a pattern matches an address."""
    return any(matches(pattern, address) for pattern in patterns)


def look_up(known: Mapping[str, Any], address: str, scope: str = "") -> Any:
    """Return the value at an address, local values first, or None; for a pattern, all matches by name.

    Local values have names without the scope.
    """
    if literal(address):
        return next((known[name] for name in (scope + address, address) if name in known), None)
    local = {n.removeprefix(scope): value for n, value in known.items() if n.startswith(scope)} if scope else {}
    return {name: value for name, value in {**known, **local}.items() if matches(address, name)}


def by_the_clock(hooks: Mapping[str, Hook]) -> frozenset[str]:
    """Return the hooks that depend on the wall clock, or on what such a hook publishes."""
    return _and_readers(hooks, {name for name, hook in hooks.items() if _uses_clock(hook)})


def _and_readers(hooks: Mapping[str, Hook], names: set[str]) -> frozenset[str]:
    while True:
        more = {
            name
            for name, hook in hooks.items()
            if any(matching_writes(reads(hook), hook.scope, hooks[w]) for w in names)
        }
        if more <= names:
            return frozenset(names)
        names |= more


def _uses_clock(hook: Hook) -> bool:
    asks = hook.when is not None and re.search(r"\bseconds?\b", str(hook.when)) is not None
    looks = any(address in _SECONDS or address.startswith("phases.") for address in reads(hook))
    return hook.timed or asks or looks or hook.every.scale is TimeScale.SECOND


def ends(hook: Hook, iteration_at: Callable[[float], float]) -> list[float]:
    """Return the iterations at which a hook will end training at the latest, as far as they are known.

    ``iteration_at`` returns the iteration after a number of epochs.
    """
    units: dict[TimeScale, Callable[[float], float]] = {TimeScale.ITERATION: float, TimeScale.EPOCH: iteration_at}
    if hook.when is None:
        return [unit(hook.every.next_due(0) or 0) for scale, unit in units.items() if scale is hook.every.scale]
    return [unit(goal) for scale, unit in units.items() if (goal := hook.when.goal(scale)) is not None]


def check_distinct(hooks: Mapping[str, Hook]) -> None:
    """Raise SigmaConfigError, naming both, for two hooks that are equal in all but their names."""
    alike: dict[Any, list[str]] = {}
    for other, twin in hooks.items():
        before = alike.setdefault(_likeness(twin), [])
        if (first := next((name for name in before if equal(hooks[name], twin)), None)) is not None:
            raise SigmaConfigError(f"hooks.{other}: is the same as hooks.{first}. Leave one out, or let them differ.")
        before.append(other)


def _likeness(hook: Hook) -> Any:
    """Return a value that equal hooks share and few others, so that many hooks are compared in linear time."""
    own = type(hook)
    return (own, *(_key(getattr(hook, f.name)) for f in attrs.fields(own))) if attrs.has(own) else id(hook)


def _key(value: Any) -> Any:
    """Return a hash, the same for equal values; 0 for those that have none, such as arrays."""
    if isinstance(value, list):
        return hash(("list", *map(_key, value)))
    if isinstance(value, Mapping):
        return hash(frozenset((name, _key(entry)) for name, entry in value.items()))
    try:
        return hash(value)
    except TypeError:
        return 0


def equal(a: Hook, b: Hook) -> bool:
    """Return whether two hooks are equal in all but their names."""
    if type(a) is not type(b) or not attrs.has(type(a)):
        return a is b
    return all(_are_equal(getattr(a, f.name), getattr(b, f.name)) for f in attrs.fields(type(a)))


def _are_equal(a: Any, b: Any) -> bool:
    try:
        return a is b or bool(a == b)
    except ValueError:  # arrays compare elementwise
        return False


def reasons(hooks: Mapping[str, Hook]) -> list[Reason]:
    """Return every constraint on the order that follows from the declarations of hooks."""
    result = [reason for name, hook in hooks.items() for reason in _requirements(name, hook, hooks)]
    writers: dict[str, set[str]] = {}  # by the address written; under "" those that write patterns, and local ones
    for writer, hook in hooks.items():
        for address in hook.writes:
            writers.setdefault(address if literal(address) and hook.scope == "global" else "", set()).add(writer)
    places = {name: place for place, name in enumerate(hooks)}
    for reader, hook in hooks.items():
        wanted = reads(hook)
        near = [writers.get(a, set()) for a in (*wanted, "")] if all(map(literal, wanted)) else [*writers.values()]
        for writer in sorted(set[str]().union(*near) - {reader}, key=places.__getitem__):
            shared = matching_writes(wanted, hook.scope, hooks[writer])
            if shared:
                result.append(Reason(writer, reader, f"{reader} reads {shared[0]}, which {writer} writes"))
    return result


def explain_order(hooks: Mapping[str, Hook], names: Sequence[str]) -> list[Reason]:
    """Return the reasons of a callback order: what hooks declare, else what decides between neighbours."""
    result = reasons(hooks)
    declared = {(reason.first, reason.then) for reason in result}
    for first, then in pairwise(names):
        if (first, then) not in declared:
            high, low = hooks[first].priority, hooks[then].priority
            why = f"priority {high} over {low}" if high > low else "by name, as nothing else decides"
            result.append(Reason(first, then, why))
    return result


def meet(a: str, b: str) -> bool:
    """Return whether one of two addresses or patterns covers the other."""
    return a == b or matches(a, b) or matches(b, a)


def _requirements(name: str, hook: Hook, hooks: Mapping[str, Hook]) -> list[Reason]:
    needs = []
    for wanted in hook.requires:
        firsts = [other for other, h in hooks.items() if wanted in (other, type(h).__name__) and other != name]
        if not firsts:
            raise SigmaConfigError(f"hooks.{name}: requires {wanted!r}, which is not among the hooks. Add it.")
        needs += [Reason(first, name, f"{name} requires {wanted}") for first in firsts]
    return needs


def order_hooks(hooks: Mapping[str, Hook]) -> list[str]:
    """Return the names of hooks in callback order.

    Raises SigmaConfigError for equal hooks, for cyclic declarations, naming the cycle, for a background hook that
    has to act at once, and for one of local scope that repeats iterations.
    """
    check_distinct(hooks)
    for name, hook in hooks.items():
        if hook.repeats and hook.scope == "local":
            raise SigmaConfigError(f"hooks.{name}: repeats iterations of whole batches. Set scope = 'global'.")
        if hook.guards and (hook.background or (hook.budget is not None and hook.over_budget == "background")):
            raise SigmaConfigError(f"hooks.{name}: a guard must act at once. It cannot run in the background.")
    sorter = TopologicalSorter[str](dict.fromkeys(hooks, ()))
    for reason in reasons(hooks):
        sorter.add(reason.then, reason.first)
    try:
        sorter.prepare()
    except CycleError as error:
        cycle = " -> ".join(error.args[1])
        raise SigmaConfigError(f"hooks: their order is cyclic: {cycle}. Change what one reads.") from error
    order, ready = list[str](), list[tuple[float, str]]()
    while sorter.is_active():
        for name in sorter.get_ready():
            heappush(ready, (-hooks[name].priority, name))
        order.append(heappop(ready)[1])
        sorter.done(order[-1])
    return order


# -- the hooks of a session --------------------------------------------------------------------------------------------
@frozen(eq=False)
class HookOrder:
    """The hooks of a session in callback order; ``memory`` holds the memory of each of them, by name.

    Raises SigmaConfigError for hooks that cannot be ordered.
    """

    hooks: Mapping[str, Hook]
    names: Sequence[str] = field(default=Factory(lambda order: order_hooks(order.hooks), takes_self=True), init=False)

    @cached_property
    def observers(self) -> Mapping[str, tuple[str, ...]]:
        """Return the addresses that only an observing program computes, by hook."""
        observed = {name: [a for a in reads(self.hooks[name]) if a.startswith(OBSERVED)] for name in self.names}
        by_hook = {n: (*a, REPEATED) if self.hooks[n].repeats else tuple(a) for n, a in observed.items()}
        return {name: addresses for name, addresses in by_hook.items() if addresses}

    @cached_property
    def clock_dependent(self) -> frozenset[str]:
        """Return the hooks that depend on the wall clock."""
        return by_the_clock(self.hooks)

    @cached_property
    def timing_dependent(self) -> frozenset[str]:
        """Return these, and the hooks that depend on when background hooks are done."""
        return _and_readers(
            self.hooks, {n for n, hook in self.hooks.items() if hook.background or n in self.clock_dependent}
        )

    def blank(self) -> dict[str, dict[str, Any]]:
        """Return the initial memory of all hooks."""
        return {name: {"hook": {}, "criterion": {}, "muted": False} for name in self.names}

    def active(self, memory: Memory) -> list[str]:
        """Return the names of the hooks that are not muted, in callback order."""
        return [name for name in self.names if not memory[name]["muted"]]

    def due(self, memory: Memory, before: Moment, now: Moment) -> list[str]:
        """Return the names of the hooks that are due between two moments, in callback order."""
        return [n for n in self.names if self.hooks[n].every.due(before, now) and not memory[n]["muted"]]

    def guards(self, memory: Memory) -> list[str]:
        """Return the hooks to run when the loss is not finite."""
        return [name for name in self.active(memory) if self.hooks[name].guards]

    def in_background(self, name: str, memory: Memory) -> bool:
        """Return whether a hook runs in the background."""
        return self.hooks[name].background or bool(memory[name].get("background"))

    def depends_on_time(self, address: str) -> bool:
        """Return whether a published value depends on the wall clock, or on the number of workers."""
        written = (pattern for name in self.timing_dependent for pattern in self.hooks[name].writes)
        return address.startswith("workers.") or any(meet(address, pattern) for pattern in written)
