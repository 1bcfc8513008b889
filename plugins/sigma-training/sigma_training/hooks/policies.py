"""What decides whether a hook runs, and what follows: criteria, error policies, and budgets.

A hook that exceeds its budget three times in a row is muted, or moved to the background.
"""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter
from typing import Any

from attrs import define, field

from sigma_kernel.contracts import Hook, HookContext
from sigma_kernel.errors import SigmaTrainingError, component_name, error_text
from sigma_training.hooks.order import HookOrder, Memory

STRIKES = 3  # in a row

Log = Callable[[str], None]


def holds(hook: Hook, memory: dict[str, Any], context: HookContext, scope: str = "") -> bool:
    """Return whether a hook's criterion holds in a scope; a hook without a criterion always runs."""
    asked = memory["criterion"].setdefault(scope, {})
    return hook.when is None or bool(hook.when.ask(context.read, asked, context.moment))


def fail(name: str, hook: Hook, memory: dict[str, Any], log: Log, error: BaseException | str) -> None:
    """Apply a hook's error policy to what it raised, and keep the error in its memory."""
    cause = error if isinstance(error, BaseException) else None
    if isinstance(error, SigmaTrainingError) and hook.on_error == "fail":  # its message has the remedy
        raise type(error)(f"hook {name!r}: {error}") from error
    text = f"hook {name!r} ({component_name(hook)}) failed: {error_text(cause) if cause else error}".rstrip(".: ")
    memory["error"] = text
    if hook.on_error == "fail":
        raise SigmaTrainingError(f"{text}. Set on_error = 'mute' or 'ignore' to train on.") from cause
    memory["muted"] = hook.on_error == "mute"
    log(f"{text}; it is {'muted' if memory['muted'] else 'ignored'}")


def limit(name: str, hook: Hook, memory: dict[str, Any], log: Log, then: str) -> None:
    """Mute a hook that exceeds its budget, or move it to the background."""
    text = f"hook {name!r} took longer than its budget of {hook.budget:.3g} s {STRIKES} times in a row"
    memory["muted" if then == "muted" else "background"] = True
    memory["error"] = text
    log(f"{text}; it is {'muted' if then == 'muted' else 'moved to the background'}")


@define(eq=False)
class Budgets:
    """Time the runs of hooks, and count how often each exceeded its budget in a row."""

    _strikes: dict[str, int] = field(factory=dict, init=False)

    def run(self, name: str, hook: Hook, context: HookContext) -> None:
        """Run a hook, and time it."""
        began = perf_counter()
        try:
            hook.fire(context)
        finally:
            self.took(name, hook, perf_counter() - began)

    def took(self, name: str, hook: Hook, seconds: float) -> None:
        """Count one run of a hook against its budget."""
        if hook.budget is not None:
            self._strikes[name] = self._strikes.get(name, 0) + 1 if seconds > hook.budget else 0

    def spent(self, order: HookOrder, memory: Memory) -> dict[str, str]:
        """Return the hooks that exceeded their budgets too often, each with its consequence; reset the counts."""
        if not self._strikes:  # as at nearly all boundaries
            return {}
        over = [name for name, strikes in self._strikes.items() if strikes >= STRIKES]
        for name in over:
            del self._strikes[name]
        active = order.active(memory) if over else ()
        moved = {name: order.hooks[name].over_budget == "background" for name in over if name in active}
        already = {name for name in moved if moved[name] and order.in_background(name, memory)}
        return {n: "background" if to else "muted" for n, to in moved.items() if n not in already}
