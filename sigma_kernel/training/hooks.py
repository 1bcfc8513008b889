"""Hooks of a trainer: which are due, in which order, and what happens when one fails.

The order is computed from what hooks declare: who writes an address goes before who reads it, ``requires`` goes first;
where that leaves it open, the greater priority, then the name.  Hooks that are equal in all but their name are refused.
One that takes longer than its budget three times in a row is muted, or moved to the background.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from heapq import heappop, heappush
from itertools import combinations
from time import perf_counter
from typing import Any

import attrs
from attrs import define, field, frozen

from sigma_kernel.clock import Moment, TimeScale
from sigma_kernel.contracts import Hook, HookContext
from sigma_kernel.errors import SigmaConfigError, SigmaStateError, SigmaTrainingError, said
from sigma_kernel.registry import literal, matches

OBSERVED = ("gradients.", "updates.", "activations.")
REPEATED = "repeated"  # beside the addresses that observers read: the whole iteration
STRIKES = 3  # in a row
_SECONDS = ("second", "seconds")


@frozen
class Reason:
    """Why one hook runs before another."""

    first: str
    then: str
    why: str

    def __str__(self) -> str:
        return f"{self.first} before {self.then}: {self.why}"


def reads(hook: Hook) -> tuple[str, ...]:
    """Return all addresses that a hook reads, its criterion's included."""
    asked = hook.when.addresses() if hook.when is not None else ()
    return (*hook.reads, *asked)


def taken(asked: Sequence[str], scope: str, writer: Hook) -> list[str]:
    """Return what a hook publishes of what another of this scope asks for; others find what is local at each worker."""
    if writer.scope == "local":
        asked = [inner(a) for a in asked if scope == "local" or a.startswith(("workers.", "*"))]
    return [address for address in writer.writes for pattern in asked if meet(pattern, address)]


def inner(address: str) -> str:
    """Return an address without the worker that it belongs to."""
    return re.sub(r"^workers\.[^.]++\.", "", address)


def check_read(name: str, hook: Hook, address: str) -> None:
    """Raise SigmaStateError for an address that a hook did not declare in ``reads``."""
    if not any(pattern == address or matches(pattern, address) for pattern in reads(hook)):
        raise SigmaStateError(f"hook {name!r}: reads {address!r} without declaring it. Add it to reads.")


def check_write(name: str, hook: Hook, address: str) -> None:
    """Raise SigmaStateError for an address that a hook did not declare in ``writes``."""
    if not any(matches(pattern, address) for pattern in hook.writes):
        raise SigmaStateError(f"hook {name!r}: publishes {address!r} without declaring it. Add it to writes.")


def seen(known: Mapping[str, Any], address: str, scope: str = "") -> Any:
    """Return what is known under an address, or None, local values first; under a pattern, all that matches by name."""
    if literal(address):
        return next((known[name] for name in (scope + address, address) if name in known), None)
    return {name: value for name, value in known.items() if matches(address, name)}


def by_the_clock(hooks: Mapping[str, Hook]) -> frozenset[str]:
    """Return the hooks whose doings depend on the wall clock, or on what such a hook publishes."""
    return _and_readers(hooks, {name for name, hook in hooks.items() if _timed(hook)})


def _and_readers(hooks: Mapping[str, Hook], found: set[str]) -> frozenset[str]:
    while True:
        more = {name for name, hook in hooks.items() if any(taken(reads(hook), hook.scope, hooks[w]) for w in found)}
        if more <= found:
            return frozenset(found)
        found |= more


def _timed(hook: Hook) -> bool:
    asks = hook.when is not None and re.search(r"\bseconds?\b", str(hook.when)) is not None
    looks = any(address in _SECONDS or address.startswith("phases.") for address in reads(hook))
    return hook.timed or asks or looks or hook.every.scale is TimeScale.SECOND


def ends(hook: Hook, per_epoch: int) -> list[float]:
    """Return the iterations at which a hook that ends training will do so at the latest, as far as that is known."""
    units = {TimeScale.ITERATION: 1, TimeScale.EPOCH: per_epoch}
    if hook.when is None:
        return [(hook.every.next(0) or 0) * unit for scale, unit in units.items() if scale is hook.every.scale]
    return [goal * unit for scale, unit in units.items() if (goal := hook.when.goal(scale)) is not None]


def check_distinct(hooks: Mapping[str, Hook]) -> None:
    """Raise SigmaConfigError, naming both, for two hooks that are equal in all but their names."""
    for (one, hook), (other, twin) in combinations(hooks.items(), 2):
        if equal(hook, twin):
            raise SigmaConfigError(f"hooks.{other}: is the same as hooks.{one}. Leave one out, or let them differ.")


def equal(a: Hook, b: Hook) -> bool:
    """Return whether two hooks are the same in all but their names."""
    if type(a) is not type(b) or not attrs.has(type(a)):
        return a is b
    return all(_same(getattr(a, f.name), getattr(b, f.name)) for f in attrs.fields(type(a)))


def _same(a: Any, b: Any) -> bool:
    try:
        return a is b or bool(a == b)
    except ValueError:  # arrays: too many answers
        return False


def reasons(hooks: Mapping[str, Hook]) -> list[Reason]:
    """Return everything that the hooks' declarations say about their order."""
    found = [reason for name, hook in hooks.items() for reason in _required(name, hook, hooks)]
    writers: dict[str, set[str]] = {}  # by what they write; under "" those of patterns, and local ones
    for writer, hook in hooks.items():
        for address in hook.writes:
            writers.setdefault(address if literal(address) and hook.scope == "global" else "", set()).add(writer)
    places = {name: place for place, name in enumerate(hooks)}
    for reader, hook in hooks.items():
        wanted = reads(hook)
        near = [writers.get(a, set()) for a in (*wanted, "")] if all(map(literal, wanted)) else [*writers.values()]
        for writer in sorted(set[str]().union(*near) - {reader}, key=places.__getitem__):
            shared = taken(wanted, hook.scope, hooks[writer])
            if shared:
                found.append(Reason(writer, reader, f"{reader} reads {shared[0]}, which {writer} writes"))
    return found


def meet(a: str, b: str) -> bool:
    """Return whether one of two addresses, patterns allowed, lies within the other."""
    return a == b or matches(a, b) or matches(b, a)


def _required(name: str, hook: Hook, hooks: Mapping[str, Hook]) -> list[Reason]:
    found = []
    for wanted in hook.requires:
        firsts = [other for other, h in hooks.items() if wanted in (other, type(h).__name__) and other != name]
        if not firsts:
            raise SigmaConfigError(f"hooks.{name}: requires {wanted!r}, which is not among the hooks. Add it.")
        found += [Reason(first, name, f"{name} requires {wanted}") for first in firsts]
    return found


def ordered(hooks: Mapping[str, Hook]) -> list[str]:
    """Return the names in the order in which hooks that are due together run.

    Raises SigmaConfigError for hooks that are equal, naming the cycle where the declarations contradict each other, and
    for a hook in the background that has to act at once.
    """
    check_distinct(hooks)
    for name, hook in hooks.items():
        if hook.guards and (hook.background or (hook.budget is not None and hook.over_budget == "background")):
            raise SigmaConfigError(f"hooks.{name}: a guard must act at once. It cannot run in the background.")
    sorter = TopologicalSorter[str](dict.fromkeys(hooks, ()))
    for reason in reasons(hooks):
        sorter.add(reason.then, reason.first)
    try:
        sorter.prepare()
    except CycleError as error:
        cycle = " -> ".join(error.args[1])
        raise SigmaConfigError(f"hooks: they wait for each other: {cycle}. Change what one reads.") from error
    order, ready = list[str](), list[tuple[float, str]]()
    while sorter.is_active():
        for name in sorter.get_ready():
            heappush(ready, (-hooks[name].priority, name))
        order.append(heappop(ready)[1])
        sorter.done(order[-1])
    return order


@define(eq=False)
class Runner:
    """The hooks of one session, in their order, with their memory."""

    hooks: Mapping[str, Hook]
    tell: Callable[[str], None]
    memory: dict[str, dict[str, Any]] = field(factory=dict)
    order: list[str] = field(init=False)
    observers: dict[str, tuple[str, ...]] = field(init=False)  # who wants to see what only an observing program tells
    judged: frozenset[str] = field(init=False)  # who goes by the wall clock
    timed: frozenset[str] = field(init=False)  # these, and who depends on when the background is done
    _strikes: dict[str, int] = field(factory=dict, init=False)

    def __attrs_post_init__(self) -> None:
        """Compute the order."""
        self.take(self.hooks)

    def take(self, hooks: Mapping[str, Hook]) -> None:
        """Have these hooks; those that were there already keep their memory.

        Raises SigmaConfigError, and changes nothing, where they cannot be in an order.
        """
        memory = self.memory
        self.order = ordered(hooks)
        self.hooks = hooks
        watched = {name: tuple(a for a in reads(hooks[name]) if a.startswith(OBSERVED)) for name in self.order}
        watched |= {name: (*watched[name], REPEATED) for name in self.order if hooks[name].repeats}
        self.observers = {name: addresses for name, addresses in watched.items() if addresses}
        self.judged = by_the_clock(self.hooks)
        self.timed = _and_readers(
            self.hooks, {n for n, hook in self.hooks.items() if hook.background or n in self.judged}
        )
        self.forget()
        self.memory |= {name: old for name, old in memory.items() if name in hooks}

    def aside(self, address: str) -> bool:
        """Return whether a published value depends on the wall clock, or on how many workers there are."""
        written = (pattern for name in self.timed for pattern in self.hooks[name].writes)
        return address.startswith("workers.") or any(meet(address, pattern) for pattern in written)

    def forget(self) -> None:
        """Give every hook an empty memory."""
        self.memory = {name: {"hook": {}, "criterion": {}, "disabled": False} for name in self.order}

    def active(self) -> list[Hook]:
        """Return the hooks that were not disabled."""
        return [self.hooks[name] for name in self.order if not self.memory[name]["disabled"]]

    def due(self, before: Moment, now: Moment) -> list[str]:
        """Return the names of the hooks that are due between two moments, in their order."""
        return [n for n in self.order if self.hooks[n].every.due(before, now) and not self.memory[n]["disabled"]]

    def guards(self) -> list[str]:
        """Return the hooks to run when the loss is not finite."""
        return [name for name in self.order if self.hooks[name].guards and not self.memory[name]["disabled"]]

    def holds(self, name: str, context: HookContext, scope: str = "") -> bool:
        """Return whether a hook's criterion holds in a scope; one without a criterion always runs."""
        hook, memory = self.hooks[name], self.memory[name]["criterion"]
        return hook.when is None or hook.when.ask(context.read, memory.setdefault(scope, {}), context.moment)

    def run(self, name: str, context: HookContext) -> None:
        """Run a hook, and take into account how long that took."""
        began = perf_counter()
        try:
            self.hooks[name].run(context)
        finally:
            self.took(name, perf_counter() - began)

    def attempt(self, name: str, act: Callable[[], None]) -> None:
        """Do something for a hook; whatever is raised on the way, the hook's error policy says what becomes of it."""
        hook = self.hooks[name]
        try:
            act()
        except (Exception, SystemExit) as error:  # whatever a plugin's code raises; it must not end the process
            if isinstance(error, SigmaTrainingError) and hook.on_error == "fail":  # says itself what to do
                raise SigmaTrainingError(f"hook {name!r}: {error}") from error
            self.failed(name, hook, said(error), error)

    def failed(self, name: str, hook: Hook, what: str, cause: BaseException | None = None) -> None:
        """Do what the error policy of a hook says, and keep the error in its memory, if it is still there."""
        policy, text = hook.on_error, f"hook {name!r} failed: {what}".rstrip(".: ")
        memory = self.memory[name] if self.hooks.get(name) is hook else {}
        memory["error"] = text
        if policy == "fail":
            raise SigmaTrainingError(f"{text}. Set on_error = 'disable' or 'ignore' to train on.") from cause
        memory["disabled"] = policy == "disable"
        self.tell(f"{text}; it is {'disabled' if policy == 'disable' else 'ignored'}")

    def wants(self, name: str, hook: Hook) -> bool:
        """Return whether this hook is still there, and was not disabled."""
        return self.hooks.get(name) is hook and not self.memory[name]["disabled"]

    # -- budgets -------------------------------------------------------------------------------------------------------
    def behind(self, name: str) -> bool:
        """Return whether a hook runs in the background."""
        return self.hooks[name].background or bool(self.memory[name].get("background"))

    def took(self, name: str, seconds: float) -> None:
        """Take into account how long a hook ran."""
        hook = self.hooks.get(name)  # none, if it has just detached itself
        if hook is not None and hook.budget is not None:
            self._strikes[name] = self._strikes.get(name, 0) + 1 if seconds > hook.budget else 0

    def spent(self) -> dict[str, str]:
        """Return which hooks have exceeded their budgets too often, and what becomes of each; count anew for them."""
        if not self._strikes:
            return {}
        over = [name for name, strikes in self._strikes.items() if strikes >= STRIKES]
        for name in over:
            del self._strikes[name]
        there = [name for name in over if name in self.hooks and self.wants(name, self.hooks[name])]
        moves = {name: self.hooks[name].over_budget == "background" for name in there}
        return {n: "background" if moved else "muted" for n, moved in moves.items() if not (moved and self.behind(n))}

    def limit(self, name: str, then: str) -> None:
        """Mute a hook that takes too long, or move it to the background."""
        hook, memory = self.hooks[name], self.memory[name]
        text = f"hook {name!r} took longer than its budget of {hook.budget:.3g} s {STRIKES} times in a row"
        memory["disabled" if then == "muted" else "background"] = True
        memory["error"] = text
        self.tell(f"{text}; it is {'muted' if then == 'muted' else 'moved to the background'}")
