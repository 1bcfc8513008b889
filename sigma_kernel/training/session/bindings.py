"""The addresses of a session: parameters, live values, the clock and all that is published, in its registry.

``network.layers.<address>``, ``optimiser.<setting>`` (the group's, which fans out), ``optimiser.<address>.<setting>``,
``iteration``, ``epoch``, ``second``, ``goal``, ``phases.burst`` ..., ``training.loss``, ``hooks.<name>.every`` and
``hooks.<name>.when``, and whatever hooks declare in ``writes`` and ``settable``.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping
from functools import partial
from typing import Any

import numpy as np
from attrs import field, frozen

from sigma_kernel.clock import COUNTED
from sigma_kernel.contracts import Hook, Optimiser
from sigma_kernel.errors import SigmaConfigError
from sigma_kernel.graph.node import Spec
from sigma_kernel.network.tracing import LiveSetting, live_settings
from sigma_kernel.registry.addresses import literal
from sigma_kernel.registry.registry import Kind
from sigma_kernel.training.commands.changes import read
from sigma_kernel.training.commands.types import Set
from sigma_kernel.training.commands.undo import carry_out, check_free
from sigma_kernel.training.components import TIMES
from sigma_kernel.training.session.loop import Session
from sigma_kernel.training.step.live import Elements, Number
from sigma_kernel.training.step.model import LAYERS


@frozen
class Time(Kind):
    """When a hook fires, as a text: a time, or a criterion."""

    what: str = field(kw_only=True)

    def check(self, address: str, value: Any) -> Any:
        """Return the text; SigmaConfigError for one that says nothing of the kind."""
        read(address, self.what, value)
        return value


def register(session: Session) -> None:
    """Bind everything that a session knows under its address."""
    _clock(session)
    _network(session)
    for name in ("training.loss", *(f"training.{metric}" for metric in session.model.metrics)):
        session.show(name)
    session.makeup.shown.clear()  # these come with no hook
    check_settable(session.name, session.runner.hooks, session.registry)
    refresh(session)


def refresh(session: Session, gone: Iterable[str] = ()) -> None:
    """Bind what comes with hooks and the optimiser, after these were changed; take away what went with them."""
    known = {*_live(session), *_times(session)}
    for hook in session.runner.hooks.values():
        _hook(session, hook)
    known |= session.makeup.shown
    old = [a for a in session.registry.addresses() if a.startswith(("optimiser.", "hooks."))]
    for address in [a for a in old if a not in known] + [a for a in gone if a in session.makeup.shown]:
        session.registry.remove(address)
    session.makeup.shown -= {*gone}


def check_settable(trainer: str, hooks: Mapping[str, Hook], there: Container[str]) -> None:
    """Raise SigmaConfigError for a number that a hook lets people set where something else is already."""
    known = {address for hook in hooks.values() for address in hook.writes}
    for address in (address for hook in hooks.values() for address in hook.settable):
        if address in known or address in there:
            raise SigmaConfigError(f"{trainer}.hooks: {address!r} is there already. Give the number another name.")
        known.add(address)


def _hook(session: Session, hook: Hook) -> None:
    """Bind what a hook publishes, other than by a pattern, and what it lets people set."""
    for address in filter(literal, hook.writes if hook.scope == "global" else ()):  # others when they are published
        session.show(address)
    for address, initial in hook.settable.items():
        _choice(session, address, initial)


def _choice(session: Session, address: str, initial: float) -> None:
    """Bind a number that means nothing but what criteria and hooks make of it."""
    if address in session.makeup.shown:  # since before the hooks were changed
        return
    session.makeup.shown.add(address)
    put = partial(session.publish, address)
    _bind(session, address, lambda: session.published.get(address, initial), put, Kind(float))


def _clock(session: Session) -> None:
    for phase in session.phases:
        session.registry.bind(f"phases.{phase}", lambda phase=phase: session.phases[phase])  # type: ignore[misc]
    for scale in COUNTED:
        session.registry.bind(scale.value, lambda scale=scale: session.clock.moment.on(scale))  # type: ignore[misc]
    session.registry.bind("goal", session.goal)


def _network(session: Session) -> None:
    for placed in session.model.network.layers:
        session.registry.branch(f"{LAYERS}{placed.name}", placed.kind)
    for address, spec in {**session.model.parameters(), **session.model.layer_state()}.items():
        name = LAYERS + address
        put = partial(_write, session, name, spec)
        _bind(session, name, partial(_read, session, name), put, Elements(spec=spec))


def _read(session: Session, name: str) -> np.ndarray:
    values: np.ndarray = session.control.ask(partial(session.host, name))
    return values


def _write(session: Session, name: str, spec: Spec, value: Any) -> None:
    """Replace a parameter; a single number fills it."""
    session.arrays[name] = session.programs.backend.to_device(np.full(spec.shape, value, spec.dtype))


def _bind(session: Session, address: str, get: Callable[[], Any], put: Callable[[Any], Any], kind: Kind) -> None:
    """Bind what can be set: at a boundary, and written to the journal as the command that makes it again."""

    def change(value: Any) -> None:
        kept = (lambda: None) if session.makeup.changing else session.control.kept  # or a part of another command
        if not session.makeup.changing:
            check_free(session)
        session.control.ask(partial(carry_out, session, Set(address, value), partial(put, value)), kept)

    session.registry.bind(address, get, change, kind)


def _times(session: Session) -> list[str]:
    """Bind when each hook fires."""
    found = []
    for name in session.makeup.parts.hooks:
        for what in TIMES:
            found.append(f"hooks.{name}.{what}")
            put = partial(_set_time, session, name, what)
            _bind(session, found[-1], partial(_time, session, name, what), put, Time(what=what))
    return found


def _time(session: Session, name: str, what: str) -> str:
    found = getattr(session.makeup.parts.hooks[name], what)
    return "" if found is None else str(found)


def _set_time(session: Session, name: str, what: str, text: str) -> None:
    session.remake(session, session.makeup.workshop.timed(session.makeup.changes, name, what, text))


def of_optimiser(optimiser: Optimiser | None, values: Iterable[str]) -> list[str]:
    """Return the addresses of an optimiser's settings, given the names of all live values."""
    names = [name for name in values if name.startswith("optimiser.")]
    groups = live_settings(optimiser).values() if optimiser is not None else ()
    return [*names, *(f"optimiser.{setting.name}" for setting in groups)]


def _live(session: Session) -> list[str]:
    for name, value in session.live.values.items():
        _settable(session, name, value.setting, [name], lambda name=name: session.live.base[name])  # type: ignore[misc]
    optimiser = session.model.optimiser
    for setting in live_settings(optimiser).values() if optimiser is not None else ():
        names = [f"optimiser.{address}.{setting.name}" for address in session.model.trainable()]
        _settable(session, f"optimiser.{setting.name}", setting, names, partial(_group, session, names, setting.value))
    return of_optimiser(optimiser, session.live.values)


def _settable(session: Session, address: str, setting: LiveSetting, names: list[str], get: Callable[[], float]) -> None:
    """Bind a live value, or a group of them, that is set all at once."""
    _bind(session, address, get, partial(session.live.set, names), Number(setting=setting, dtype=session.live.dtype))


def _group(session: Session, names: list[str], default: float) -> float:
    """Return a group's value: that of the first parameter, which all share unless rules or edits say otherwise."""
    return session.live.base[names[0]] if names else default
