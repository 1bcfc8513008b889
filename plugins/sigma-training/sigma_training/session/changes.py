"""Record changes: how the components of a run differ from those of its settings, as plain JSON.

``hooks`` holds, in order, pairs of a name and the table of the hook that was attached, or None for one that was
detached; ``times`` holds the times and criteria that were set, by hook; ``optimiser``, ``backend`` and ``iterator``
hold the components that were swapped in, as does ``optimisers.<name>``; ``frozen`` holds the parameters that were
frozen or released, by address; ``epochs`` holds the total number of epochs that was set, and the number of the start
of training then; ``workers`` is their number in a group, ``every`` the iterations between means of replicas;
``batch_size`` and ``edits``, by split, act from the next epoch on.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from copy import copy
from typing import Any

from attrs import field, frozen

from sigma_kernel.contracts import Backend, Dataset, Hook, Iterator, Optimisation
from sigma_kernel.criteria import Criterion
from sigma_kernel.errors import SigmaConfigError, component_name, suggest_name
from sigma_kernel.network.tracing import Resolve
from sigma_kernel.plugins.components import display_name
from sigma_kernel.registry.addresses import literal
from sigma_training.components import TIMES as TIMES, hooks as resolved_hooks, optimisation

Changes = Mapping[str, Any]
CONTRACTS: dict[str, type] = {"backend": Backend, "iterator": Iterator}


@frozen(eq=False)
class Parts:
    """The components of a session that commands can change."""

    hooks: Mapping[str, Hook]
    optimisers: Mapping[str, Optimisation]  # by head of their addresses
    backend: Backend
    iterator: Iterator
    frozen: Mapping[str, bool] = field(factory=dict)  # by commands


@frozen(eq=False)
class Factory:
    """Make the components of a run from those of its settings, with changes applied."""

    name: str
    base: Parts
    resolve: Resolve
    splits: Mapping[str, Dataset]

    def backend_name(self, changes: Changes) -> str:
        """Return the display name of the backend."""
        chosen = changes.get("backend", self.base.backend)
        full = component_name(chosen)
        return full.rpartition(":")[2] if ":" in full else display_name(chosen).removesuffix("_backend")

    def with_hook(self, changes: Changes, name: str, hook: Any) -> Changes:
        """Return changes with one more hook; raise SigmaConfigError for a name that is taken, or another kind."""
        if name in self.hook_names(changes):
            raise SigmaConfigError(f"attach: there is a hook {name!r} already. Detach it first.")
        self._hook(name, hook)
        return update_changes(changes, hooks={**_attached_hooks(changes), name: hook})

    def without_hook(self, changes: Changes, name: str) -> Changes:
        """Return changes without a hook; raise SigmaConfigError for an unknown one."""
        there, hooks = self.hook_names(changes), _attached_hooks(changes)
        if name not in there:
            raise SigmaConfigError(f"detach: there is no hook {name!r}.{suggest_name(name, there, 'There are:')}")
        hooks.pop(name, None)
        times = {other: set_ for other, set_ in changes.get("times", {}).items() if other != name}
        return update_changes(changes, hooks=hooks | ({name: None} if name in self.base.hooks else {}), times=times)

    def with_part(self, changes: Changes, slot: str, component: Any) -> Changes:
        """Return changes with another component in a slot; raise SigmaConfigError for one of the wrong kind."""
        self.component(slot, component)
        return update_changes(changes, **{slot: component})

    def hook_names(self, changes: Changes) -> list[str]:
        """Return the names of all hooks."""
        hooks = {**dict.fromkeys(self.base.hooks, True), **_attached_hooks(changes)}
        return [name for name, hook in hooks.items() if hook is not None]

    # -- components ----------------------------------------------------------------------------------------------
    def make_parts(self, now: Parts, then: Changes, wanted: Changes) -> Parts:
        """Return the wanted components; reuse the present ones where ``wanted`` equals the changes ``then``."""
        hooks = {name: self._make_hook(name, now, then, wanted) for name in self.hook_names(wanted)}
        optimisers = {head: self._part(head, now.optimisers.get(head), then, wanted) for head in self.heads}
        return Parts(
            hooks,
            {head: part for head, part in optimisers.items() if part is not None},
            self._part("backend", now.backend, then, wanted),
            self._part("iterator", now.iterator, then, wanted),
            wanted.get("frozen", {}),
        )

    @property
    def heads(self) -> list[str]:
        """Return the slots of optimisers."""
        return [*self.base.optimisers] or ["optimiser"]

    def _part(self, slot: str, now: Any, then: Changes, wanted: Changes) -> Any:
        if wanted.get(slot) == then.get(slot):
            return now
        base = self.base.optimisers.get(slot) if slot in self.heads else getattr(self.base, slot)
        return self.component(slot, wanted[slot]) if slot in wanted else base

    def component(self, slot: str, chosen: Any) -> Any:
        """Resolve the component of a slot; raise SigmaConfigError for an optimiser that is not there."""
        where = f"{self.name}.{slot}"
        if slot in CONTRACTS:
            return self.resolve(CONTRACTS[slot], chosen, where)
        if slot not in self.heads:
            hint = suggest_name(slot, self.heads, "There are:")
            raise SigmaConfigError(f"{where}: there is no such optimiser.{hint}")
        return optimisation(self.resolve, where, chosen, self.base.optimisers.get(slot))

    def _make_hook(self, name: str, now: Parts, then: Changes, wanted: Changes) -> Hook:
        if name in now.hooks and _hook_changes(then, name) == _hook_changes(wanted, name):
            return now.hooks[name]
        table, times = _hook_changes(wanted, name)
        hook = self._hook(name, table) if table is not None else self.base.hooks[name]
        if times:
            hook = copy(hook)  # leave the settings' object unchanged
        for what, text in (times or {}).items():
            time = read_time(f"{self.name}.hooks.{name}.{what}", what, text)
            setattr(hook, what, time.bound(self.resolve) if isinstance(time, Criterion) else time)
        return hook

    def _hook(self, name: str, table: Any) -> Hook:
        if not name or "." in name or not literal(name):
            raise SigmaConfigError(f"attach: {name!r} is not a name. Use one level of an address, without dots.")
        return resolved_hooks(self.resolve, f"{self.name}.hooks", {name: table}, self.splits)[name]


def with_time(changes: Changes, name: str, what: str, text: str) -> Changes:
    """Return changes with a new time or criterion of a hook."""
    times = changes.get("times", {})
    return update_changes(changes, times={**times, name: {**times.get(name, {}), what: text}})


def froze(changes: Changes, parameters: Iterable[str], frozen: bool) -> Changes:
    """Return changes with parameters frozen or released."""
    return update_changes(changes, frozen={**changes.get("frozen", {}), **dict.fromkeys(parameters, frozen)})


def read_time(where: str, what: str, text: Any) -> Any:
    """Parse a time (``every``) or a criterion (``when``); raise SigmaConfigError if it is invalid."""
    if not isinstance(text, str):
        raise SigmaConfigError(f"{where}: must be a string (got {text!r}). Write '2 epochs' or 'epoch reaches 3'.")
    try:
        return None if what == "when" and not text else TIMES[what][0](text)
    except SigmaConfigError as error:
        raise SigmaConfigError(f"{where}: {error}") from error


def _attached_hooks(changes: Changes) -> dict[str, Any]:
    """Return the tables of attached hooks by name, and None for detached ones."""
    return dict(changes.get("hooks", ()))


def _hook_changes(changes: Changes, name: str) -> tuple[Any, Any]:
    """Return the table and the times of a hook, where they differ from the settings."""
    return _attached_hooks(changes).get(name), changes.get("times", {}).get(name)


def update_changes(changes: Changes, **new: Any) -> Changes:
    """Return updated changes, without empty ones."""
    hooks = {"hooks": [[name, hook] for name, hook in new["hooks"].items()]} if "hooks" in new else {}
    return {name: value for name, value in {**changes, **new, **hooks}.items() if value not in ({}, [], None)}
