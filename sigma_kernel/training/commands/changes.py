"""Components that are changed while a run goes on, in words that can be saved: how a session differs from its settings.

Changes are plain JSON.  ``hooks`` holds, in their order, pairs of a name and what was attached, or None for what was
detached; ``times`` holds the times and criteria that were set, by hook; ``optimiser``, ``backend`` and ``order`` hold
what was swapped in.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from typing import Any

from attrs import define, evolve, field, frozen

from sigma_kernel.contracts import Backend, Dataset, Hook, Optimiser, Order
from sigma_kernel.errors import SigmaConfigError, near
from sigma_kernel.network.tracing import Resolve
from sigma_kernel.registry.addresses import literal
from sigma_kernel.training import components as choices
from sigma_kernel.training.commands.types import SLOTS

Changes = Mapping[str, Any]
FORMER = "undo."  # how arrays are called that are kept to undo commands
CONTRACTS: dict[str, type] = {"optimiser": Optimiser, "backend": Backend, "order": Order}


@frozen(eq=False)
class Parts:
    """The components of a session that can be changed."""

    hooks: Mapping[str, Hook]
    optimiser: Optimiser | None
    backend: Backend
    order: Order


@frozen(eq=False)
class Workshop:
    """What components are made with: those of the settings, and how others come about."""

    name: str
    base: Parts
    resolve: Resolve
    splits: Mapping[str, Dataset]

    # -- what is wanted ------------------------------------------------------------------------------------------------
    def attached(self, changes: Changes, name: str, hook: Any) -> Changes:
        """Return changes with a hook more; SigmaConfigError if it is none, or there is one of that name."""
        if name in self.named(changes):
            raise SigmaConfigError(f"attach: there is a hook {name!r} already. Detach it first.")
        self._hook(name, hook)
        return _with(changes, hooks={**_attached(changes), name: hook})

    def detached(self, changes: Changes, name: str) -> Changes:
        """Return changes with a hook less; SigmaConfigError if there is none of that name."""
        there = self.named(changes)
        if name not in there:
            known = near(name, there) or f" There are: {', '.join(there) or 'none'}."
            raise SigmaConfigError(f"detach: there is no hook {name!r}.{known}")
        hooks = {other: hook for other, hook in _attached(changes).items() if other != name}
        times = {other: set_ for other, set_ in changes.get("times", {}).items() if other != name}
        return _with(changes, hooks=hooks | ({name: None} if name in self.base.hooks else {}), times=times)

    def swapped(self, changes: Changes, slot: str, component: Any) -> Changes:
        """Return changes with another component in a slot; SigmaConfigError if it is none for it."""
        self.component(slot, component)
        return _with(changes, **{slot: component})

    def timed(self, changes: Changes, name: str, what: str, text: str) -> Changes:
        """Return changes with another time, or another criterion, of a hook."""
        times = changes.get("times", {})
        return _with(changes, times={**times, name: {**times.get(name, {}), what: text}})

    def named(self, changes: Changes) -> list[str]:
        """Return the names of all hooks."""
        hooks = {**dict.fromkeys(self.base.hooks, True), **_attached(changes)}
        return [name for name, hook in hooks.items() if hook is not None]

    # -- and what that is ----------------------------------------------------------------------------------------------
    def made(self, now: Parts, then: Changes, wanted: Changes) -> Parts:
        """Return the components that are wanted; what is wanted as it was ``then`` is what there is now."""
        parts = evolve(now, hooks={name: self._wanted(name, now, then, wanted) for name in self.named(wanted)})
        for slot in SLOTS:
            if wanted.get(slot) != then.get(slot):
                part = self.component(slot, wanted[slot]) if slot in wanted else getattr(self.base, slot)
                parts = evolve(parts, **{slot: part})
        return parts

    def component(self, slot: str, chosen: Any) -> Any:
        """Return the component that a slot is to hold."""
        where = f"{self.name}.{slot}"
        return choices.one(self.resolve, where, SLOTS[slot], CONTRACTS[slot], chosen)

    def _wanted(self, name: str, now: Parts, then: Changes, wanted: Changes) -> Hook:
        if name in now.hooks and _of(then, name) == _of(wanted, name):
            return now.hooks[name]
        table, times = _of(wanted, name)
        hook = self._hook(name, table) if table is not None else self.base.hooks[name]
        if times:
            hook = copy(hook)  # that of the settings stays what it is
        for what, text in (times or {}).items():
            setattr(hook, what, read(f"{self.name}.hooks.{name}.{what}", what, text))
        return hook

    def _hook(self, name: str, table: Any) -> Hook:
        if not name or "." in name or not literal(name):
            raise SigmaConfigError(f"attach: {name!r} is no name. Use one level of an address, without dots.")
        return choices.hooks(self.resolve, f"{self.name}.hooks", {name: table}, self.splits)[name]


@define(eq=False)
class Makeup:
    """What a session is made of at present, and how that came about."""

    workshop: Workshop
    parts: Parts = field(init=False)
    changes: Changes = field(factory=dict, init=False)  # how the parts differ from those of the settings
    undone: list[dict[str, Any]] = field(factory=list, init=False)  # what it takes to undo the last commands
    shown: set[str] = field(factory=set, init=False)  # addresses that came with hooks
    changing: bool = field(default=False, init=False)  # a command acts

    def __attrs_post_init__(self) -> None:
        """Begin with what the settings say."""
        self.parts = self.workshop.base


def read(where: str, what: str, text: Any) -> Any:
    """Return the time or the criterion that a text says; SigmaConfigError if it says none."""
    if not isinstance(text, str):
        raise SigmaConfigError(f"{where}: must be a text (got {text!r}). Write '2 epochs' or 'epoch reaches 3'.")
    try:
        return None if what == "when" and not text else choices.TIMES[what][0](text)
    except SigmaConfigError as error:
        raise SigmaConfigError(f"{where}: {error}") from error


def _attached(changes: Changes) -> dict[str, Any]:
    """Return what was attached and detached, by name, in its order."""
    return dict(changes.get("hooks", ()))  # pairs; older checkpoints have a mapping


def _of(changes: Changes, name: str) -> tuple[Any, Any]:
    """Return what is said of a hook: what it is, if not what the settings say, and its times."""
    return _attached(changes).get(name), changes.get("times", {}).get(name)


def _with(changes: Changes, **new: Any) -> Changes:
    """Return changes with others; nothing is said of what is as the settings have it."""
    hooks = {"hooks": [[name, hook] for name, hook in new["hooks"].items()]} if "hooks" in new else {}
    return {name: value for name, value in {**changes, **new, **hooks}.items() if value not in ({}, [], None)}
