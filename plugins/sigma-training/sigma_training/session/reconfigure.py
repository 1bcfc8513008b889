"""Replace components of a running session: hooks, the optimiser, the backend, the iterator.

Everything is built and checked before anything is replaced.  Parameters stay; a new optimiser starts with new slots and
with its configured live values.  Freezing a parameter changes neither it nor its slots.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from attrs import evolve

from sigma_kernel.contracts import Hook
from sigma_kernel.registry.addresses import matches
from sigma_step.model import OPTIMISERS
from sigma_step.rules import assign_optimisers
from sigma_step.steps import Programs
from sigma_training.components import check_precision
from sigma_training.data.feed import check_rows_kept, placing
from sigma_training.hooks.order import inner
from sigma_training.names import KEPT
from sigma_training.session.bindings import check_declared
from sigma_training.session.changes import Parts
from sigma_training.session.epochal import fed
from sigma_training.session.state import Present, RunState, Setup


def with_components(run: Present, state: RunState) -> Present:
    """Return a run in another state, with the components that this state asks for, and the state adapted to them.

    Raises a SigmaError for components that do not fit.
    """
    setup, now = run.setup, run.state
    new = setup if state.data == now.data else fed(setup, state.data)
    if state.changes != now.changes:
        new = _build_setup(new, setup.factory.make_parts(setup.parts, now.changes, state.changes), now.moment.iteration)
        check_declared(new, setup.order.hooks)
        state = _move_state(state, setup, new)
    return evolve(run, setup=new, state=state)


# -- the setup ---------------------------------------------------------------------------------------------------------
def _build_setup(setup: Setup, parts: Parts, iteration: int) -> Setup:
    programs, feed = _programs(setup, parts, iteration), setup.feed
    if parts.iterator is not setup.parts.iterator:
        check_rows_kept(setup.name, setup.model.shapes, parts.iterator, feed.lanes)
    if parts.iterator is not setup.parts.iterator or parts.backend is not setup.parts.backend:
        feed = evolve(feed, iterator=parts.iterator, **placing(parts.backend, feed.dataset))
    return evolve(
        setup,
        parts=parts,
        programs=programs,
        feed=feed,
        evaluator=setup.evaluator if programs is setup.programs else evolve(setup.evaluator, programs=programs),
    )


def _programs(setup: Setup, parts: Parts, iteration: int) -> Programs:
    """Return the programs, with the training step of an iteration compiled: if that fails, the command is refused."""
    model = setup.model
    if (parts.optimisers, parts.frozen) != (setup.parts.optimisers, setup.parts.frozen):
        order = [head.removeprefix(OPTIMISERS[1]) for head in model.heads] if model.ordered else ()
        model = assign_optimisers(setup.name, model, parts.optimisers, order, parts.frozen)
    elif parts.backend is setup.parts.backend:
        return setup.programs
    check_precision(setup.name, model.precision, parts.backend)
    programs = Programs(model, parts.backend)
    if model.optimisers:
        programs.select_tier(iteration).compile(setup.feed.batch_size, setup.operator.shards)
    return programs


def _orphans(old: Setup, new: Setup, published: Iterable[str]) -> set[str]:
    """Return the published or settable addresses of former hooks that no hook has any more."""
    were, left = _declared_addresses(old.order.hooks.values()), _declared_addresses(new.order.hooks.values())
    measured = [f"training.{name}" for name in old.model.measured_names()]
    addresses = {*published, *were}
    return {a for a in addresses if inner(a) not in measured and _is_in(inner(a), were) and not _is_in(inner(a), left)}


def _declared_addresses(hooks: Iterable[Hook]) -> list[str]:
    return [pattern for hook in hooks for pattern in (*hook.writes, *hook.settable)]


def _is_in(address: str, patterns: Iterable[str]) -> bool:
    return any(matches(pattern, address) for pattern in patterns)


# -- the state ---------------------------------------------------------------------------------------------------------
def _move_state(state: RunState, old: Setup, new: Setup) -> RunState:
    gone = _orphans(old, new, state.published)
    left = tuple(f"{KEPT}{name}." for name in old.parts.hooks if name not in new.parts.hooks)
    live = {name: base for name, base in state.live.base.items() if not name.startswith(_swapped_heads(old, new))}
    return evolve(
        state,
        arrays=_arrays(state, old, new),
        kept={name: value for name, value in state.kept.items() if not name.startswith(left)},
        live=state.live if new.model is old.model else new.live.with_base(live),
        memory=new.order.blank() | _memory(state, old, new),
        published={address: value for address, value in state.published.items() if address not in gone},
    )


def _arrays(state: RunState, old: Setup, new: Setup) -> Mapping[str, Any]:
    """Return the arrays on the backend of the new setup, with the slots of its optimiser."""
    arrays = dict(state.arrays)
    if new.parts.backend is not old.parts.backend:
        arrays = {name: new.to_device(old.to_host(value)) for name, value in arrays.items()}
    if new.model is not old.model:
        names, swapped = {*new.model.slot_names()}, _swapped_heads(old, new)
        own = {n: n in names and not n.startswith(swapped) for n in arrays if n.startswith(OPTIMISERS)}
        arrays = {name: value for name, value in arrays.items() if own.get(name, True)}
        first = new.model.first_slots(lambda name: new.to_host(arrays[name]), {*arrays})
        arrays |= {name: new.to_device(value) for name, value in first.items()}
    return arrays


def _swapped_heads(old: Setup, new: Setup) -> tuple[str, ...]:
    """Return what the names of the settings and slots of new optimisers begin with."""
    before, after = old.parts.optimisers, new.parts.optimisers
    return tuple(f"{head}." for head in {**before, **after} if before.get(head) is not after.get(head))


def _memory(state: RunState, old: Setup, new: Setup) -> dict[str, dict[str, Any]]:
    """Return the memory of the remaining hooks; reset that of a changed criterion."""
    memories = {}
    for name, memory in state.memory.items():
        before, after = old.parts.hooks.get(name), new.parts.hooks.get(name)
        if after is not None:
            changed = before is not None and str(before.when) != str(after.when)
            memories[name] = {**memory, "criterion": {}} if changed else memory
    return memories
