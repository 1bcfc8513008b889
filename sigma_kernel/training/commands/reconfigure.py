"""A session that goes on with other components: hooks, the optimiser, the backend, the order of the rows."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from attrs import evolve

from sigma_kernel.contracts import Hook, Optimiser
from sigma_kernel.registry.addresses import matches
from sigma_kernel.training import checking as beginning
from sigma_kernel.training.commands.changes import Changes, Parts
from sigma_kernel.training.hooks.order import inner, ordered
from sigma_kernel.training.session import bindings as addresses
from sigma_kernel.training.session.loop import Session
from sigma_kernel.training.step.live import Live, check_matches, frozen_parameters, live_values, patterns
from sigma_kernel.training.step.model import LAYERS, Model
from sigma_kernel.training.step.programs import Programs


def remake(session: Session, wanted: Changes) -> None:
    """Give a session the components of its settings but for these changes; where that cannot be, nothing changes.

    Parameters stay.  Another optimiser begins with new slots, and its live values as they are configured.
    """
    if wanted == session.makeup.changes:
        return
    parts = session.makeup.workshop.made(session.makeup.parts, session.makeup.changes, wanted)
    programs = _compiled(session, parts)
    gone = _orphans(session, parts.hooks.values())
    _check(session, parts, programs.model, gone)
    arrays = _placed(session, programs)
    session.runner.take(parts.hooks)
    _forget(session, parts, gone)
    if programs is not session.programs:
        _compute_with(session, programs)
    if parts.order is not session.makeup.parts.order or parts.backend is not session.makeup.parts.backend:
        session.feed.close()
        session.feed = evolve(session.feed, order=parts.order, place=parts.backend.to_device)  # from the cursor on
    session.arrays, session.makeup.parts, session.makeup.changes = arrays, parts, dict(wanted)
    addresses.refresh(session, gone)


# -- checked before anything changes -----------------------------------------------------------------------------------
def _compiled(session: Session, parts: Parts) -> Programs:
    """Return the programs, whose step is compiled: what cannot be is refused here."""
    model = session.model
    if parts.optimiser is not session.makeup.parts.optimiser:
        model = optimised(session.name, model, parts.optimiser)
    elif parts.backend is session.makeup.parts.backend:
        return session.programs
    beginning.check_precision(session.name, model.precision, parts.backend)
    programs = Programs(model, parts.backend)
    if model.optimiser is not None:
        programs.get(Model.training, session.feed.batch_size)
    return programs


def optimised(trainer: str, model: Model, optimiser: Optimiser | None) -> Model:
    """Return a model with this optimiser, whose rules say what is frozen; SigmaConfigError if one fits nobody."""
    model = evolve(model, optimiser=optimiser, frozen=frozenset())
    model = evolve(model, frozen=frozen_parameters(model))
    check_matches(trainer, dict(patterns(optimiser)), model)
    return model


def _orphans(session: Session, hooks: Iterable[Hook]) -> list[str]:
    """Return the addresses that were published by hooks, or settable, and will be no more."""
    left = [pattern for hook in hooks for pattern in (*hook.writes, *hook.settable)]
    were = [pattern for hook in session.runner.hooks.values() for pattern in (*hook.writes, *hook.settable)]
    measured = ("training.loss", *(f"training.{metric}" for metric in session.model.metrics))
    known = {**dict.fromkeys(session.makeup.shown), **session.published}
    return [a for a in known if inner(a) not in measured and _among(inner(a), were) and not _among(inner(a), left)]


def _among(address: str, patterns: Iterable[str]) -> bool:
    return any(matches(pattern, address) for pattern in patterns)


def _check(session: Session, parts: Parts, model: Model, gone: Iterable[str]) -> None:
    """Refuse hooks that cannot be in an order, read what nobody publishes, or would fail."""
    hooks = parts.hooks
    ordered(hooks)
    optimised = dict.fromkeys(addresses.of_optimiser(model.optimiser, live_values(model)))
    there = [a for a in session.registry.addresses() if a not in gone and not a.startswith("optimiser.")]
    beginning.check_reads(session.name, hooks, model, [*there, *optimised])
    new = {name: hook for name, hook in hooks.items() if session.runner.hooks.get(name) is not hook}
    beginning.check_hooks(f"{session.name}.hooks", new, model)
    addresses.check_settable(session.name, hooks, {*there, *optimised} - session.makeup.shown)


# -- and changed -------------------------------------------------------------------------------------------------------
def _placed(session: Session, programs: Programs) -> dict[str, Any]:
    """Return the arrays of the state: on the backend of these programs, with the slots of their model."""
    arrays, old, new = dict(session.arrays), session.programs.backend, programs.backend
    if new is not old:
        arrays = {name: new.to_device(old.to_host(value)) for name, value in arrays.items()}
    if programs.model is not session.model:
        arrays = {name: value for name, value in arrays.items() if not name.startswith("optimiser.")}
        arrays |= {name: new.to_device(value) for name, value in beginning.slots(programs.model).items()}
    return arrays


def _compute_with(session: Session, programs: Programs) -> None:
    """Let everything that computes go over to other programs, and to another optimiser where there is one."""
    if programs.model is not session.model:
        live = Live(live_values(programs.model), session.live.dtype)
        live.restore({name: base for name, base in session.live.base.items() if name.startswith(LAYERS)})
        session.live = live
    session.programs = programs
    session.evaluator.close()
    session.evaluator = evolve(session.evaluator, programs=programs)
    with session.background.evaluator.alone:  # not while somebody evaluates there
        session.background.evaluator.close()
    session.background.evaluator = evolve(session.evaluator)


def _forget(session: Session, parts: Parts, gone: Iterable[str]) -> None:
    """Drop what hooks leave behind that are no longer there, and what a criterion remembers that has changed."""
    for address in gone:
        session.published.pop(address, None)
    names = [name for name in session.makeup.parts.hooks if name not in parts.hooks]
    heads = tuple(f"kept.{name}." for name in names)
    session.kept = {name: value for name, value in session.kept.items() if not name.startswith(heads)}
    for name, memory in session.runner.memory.items():
        before = session.makeup.parts.hooks.get(name)
        if before is not None and str(before.when) != str(parts.hooks[name].when):
            session.runner.memory[name] = {**memory, "criterion": {}}
