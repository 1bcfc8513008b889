"""The addresses of a session: parameters, live values, the clock and all that is published, in its registry.

``network.layers.<address>``, ``optimiser.<setting>`` (the group's, which fans out), ``optimiser.<address>.<setting>``,
``iteration``, ``epoch``, ``second``, ``goal``, ``phases.burst`` ..., ``training.loss``, and whatever hooks declare in
``writes`` and ``settable``.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from sigma_kernel.clock import COUNTED
from sigma_kernel.contracts import Hook
from sigma_kernel.errors import SigmaAddressError, SigmaConfigError
from sigma_kernel.network import LiveSetting, live_settings
from sigma_kernel.registry import Kind, literal
from sigma_kernel.training.commands import Set
from sigma_kernel.training.session import Session
from sigma_kernel.training.step import LAYERS


def register(session: Session) -> None:
    """Bind everything that a session knows under its address."""
    _clock(session)
    _network(session)
    _live(session)
    for name in ("training.loss", *(f"training.{metric}" for metric in session.model.metrics)):
        session.show(name)
    for hook in session.runner.hooks.values():
        _hook(session, hook)


def _hook(session: Session, hook: Hook) -> None:
    """Bind what a hook publishes, other than by a pattern, and what it lets people set."""
    for address in filter(literal, hook.writes):
        session.show(address)
    for address, initial in hook.settable.items():
        _choice(session, address, initial)


def _choice(session: Session, address: str, initial: float) -> None:
    """Bind a number that means nothing but what criteria and hooks make of it."""

    def put(value: float) -> None:
        _change(session, address, value, partial(session.publish, address, value))

    if address in session.registry:
        raise SigmaConfigError(f"{session.name}.hooks: {address!r} is there already. Give the number another name.")
    session.registry.bind(address, lambda: session.published.get(address, initial), put, Kind(float))


def _clock(session: Session) -> None:
    for phase in session.phases:
        session.registry.bind(f"phases.{phase}", lambda phase=phase: session.phases[phase])  # type: ignore[misc]
    for scale in COUNTED:
        session.registry.bind(scale.value, lambda scale=scale: session.clock.moment.on(scale))  # type: ignore[misc]
    session.registry.bind("goal", session.goal)


def _network(session: Session) -> None:
    for placed in session.model.network.layers:
        session.registry.branch(f"{LAYERS}{placed.name}", placed.kind)
    for address in (*session.model.shapes.parameters, *session.model.shapes.state):
        name = LAYERS + address
        session.registry.bind(name, partial(_read, session, name), partial(_write, session, name))


def _read(session: Session, name: str) -> np.ndarray:
    values: np.ndarray = session.control.ask(partial(session.host, name))
    return values


def _write(session: Session, name: str, value: Any) -> None:
    """Replace a parameter at a boundary; a single number fills it."""
    old = session.control.ask(partial(session.host, name))
    new = np.asarray(value)
    if new.dtype.kind not in "fiu" or new.shape not in ((), old.shape):
        shape = f"{new.dtype} of shape {new.shape}"
        raise SigmaAddressError(f"{session.name}.{name}: holds {old.dtype} of shape {old.shape} (got {shape}).")
    placed = session.programs.backend.to_device(np.full(old.shape, new, old.dtype))
    _change(session, name, value, partial(session.arrays.__setitem__, name, placed))


def _change(session: Session, address: str, value: Any, act: Callable[[], Any]) -> None:
    """Let a change act at a boundary, and write it to the journal as the command that makes it again."""

    def change() -> None:
        act()
        session.note(Set(address, value).to_dict())

    session.control.ask(change)


def _live(session: Session) -> None:
    for name, value in session.live.values.items():
        _settable(session, name, value.setting, [name], lambda name=name: session.live.base[name])  # type: ignore[misc]
    optimiser = session.model.optimiser
    for setting in live_settings(optimiser).values() if optimiser is not None else ():
        names = [f"optimiser.{address}.{setting.name}" for address in session.model.trainable()]
        _settable(session, f"optimiser.{setting.name}", setting, names, partial(_group, session, names, setting.value))


def _settable(session: Session, address: str, setting: LiveSetting, names: list[str], get: Callable[[], float]) -> None:
    """Bind a live value, or a group of them, that is set all at once."""
    kind = Kind(float, low=setting.low, high=setting.high, above=setting.above, below=setting.below)

    def put(value: float) -> None:
        _change(session, address, value, partial(session.live.set, names, value))

    session.registry.bind(address, get, put, kind)


def _group(session: Session, names: list[str], default: float) -> float:
    """Return a group's value: that of the first parameter, which all share unless rules or edits say otherwise."""
    return session.live.base[names[0]] if names else default
