"""Hooks of a trainer: which are due, in which order, and what happens when one fails.

The order is computed from what hooks declare: who writes an address goes before who reads it, ``requires`` goes first;
where that leaves it open, the greater priority, then the name.  Hooks that are equal in all but their name are refused.
One that takes longer than its budget three times in a row is muted, or moved to the background.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from time import perf_counter
from typing import Any

from attrs import define, field

from sigma_kernel.clock import Moment
from sigma_kernel.contracts import Hook, HookContext
from sigma_kernel.errors import SigmaTrainingError, said
from sigma_kernel.training.hooks.order import OBSERVED, REPEATED, _and_readers, by_the_clock, meet, ordered, reads

STRIKES = 3  # in a row


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
