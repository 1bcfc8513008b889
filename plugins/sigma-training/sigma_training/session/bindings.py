"""Bind the addresses of a session: how each value is read, and what it can be set to.

``network.layers.<address>``, ``optimiser.<setting>`` (the group's, which fans out), ``optimiser.<address>.<setting>``
(``optimisers.<name>`` in place of ``optimiser``, if there are several), ``optimiser.<address>.frozen``,
``iteration``, ``epoch``, ``second``, ``goal``, ``epochs``, ``batch_size``, ``phases.burst`` ..., ``training.loss``,
``operator.workers``, ``operator.every``, ``operator.staleness``, ``group.<number>.rate`` ..., ``system.<reading>``,
``hooks.<name>.every`` and ``hooks.<name>.when``, and whatever hooks declare in ``writes`` and ``settable``.  What is in
force is at ``data.batch_size``, ``data.<split>.rows``, ``data.<split>.excluded`` and ``data.<split>.relabelled``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from math import inf
from types import MappingProxyType
from typing import Any, Protocol

import numpy as np
from attrs import evolve, field, frozen

from sigma_kernel.clock import COUNTED, TimeScale
from sigma_kernel.contracts import Hook
from sigma_kernel.errors import SigmaConfigError
from sigma_kernel.graph.node import Spec
from sigma_kernel.network.tracing import live_settings
from sigma_kernel.registry.addresses import literal
from sigma_kernel.registry.registry import NOTHING, Kind
from sigma_step.live import Elements, number_kind
from sigma_step.model import EPOCH, GOOD, LAYERS, RISE, SCALE, SCALES, SKIPS
from sigma_training.hooks.outlook import check_hooks, check_reads
from sigma_training.session.changes import TIMES, froze, read_time, update_changes, with_time
from sigma_training.session.state import RunState, Setup

SECONDS = Kind(float, 0, doc="The time that training took, without pauses.", unit="seconds")
COUNTS = {
    scale: SECONDS if scale is TimeScale.SECOND else Kind(int, 0, doc=f"The {scale.value}s done.") for scale in COUNTED
}
OF = {"training.": Kind(doc="Of the last iteration."), EPOCH: Kind(doc="Mean of the epoch so far.")}  # measured values
OPERATOR, WORKERS = "operator.", "operator.workers"
_WORKERS = Kind(int, 1, doc="Workers that compute the shards of batches; the number changes no bits.")
_OF_MODES = {
    "averaging": {"every": Kind(int, 1, doc="Iterations after which replicas are averaged.")},
    "asynchronous": {"staleness": Kind(int, 1, 15, doc="Updates that a gradient lacks at most.")},
}
WORKER = {  # what is shown of a worker, at group.<number>.<name>, where hooks cannot read it
    "rate": Kind(float, 0, doc="Rows of batches that the worker computes.", unit="per second"),
    "shards": Kind(int, 0, doc="The shards of a batch that the worker computes."),
    "generation": Kind(int, 0, doc="The generation of the group that the worker has joined."),
    "seen": Kind(float, 0, doc="The time since the operator has heard of the worker.", unit="seconds"),
}
SYSTEM = "system."  # of what monitors have measured of the machine, which hooks cannot read
PHASES: tuple[str, ...] = ("burst", "data", "hooks", "evaluation")  # whose seconds are counted; hooks evaluate


class Readable(Protocol):
    """The run as bindings read it."""

    phases: dict[str, float]
    workers: Mapping[int, Any]
    readings: dict[str, float]

    @property
    def setup(self) -> Setup:
        """Return the setup."""

    @property
    def state(self) -> RunState:
        """Return the state."""

    def goal(self) -> int | None:
        """Return the iteration at which training ends at the latest, if it is known."""

    @property
    def epochs(self) -> float | None:
        """Return the total number of epochs, if there is one."""

    def ask(self, question: Callable[[], Any]) -> Any:
        """Evaluate a function of the state between bursts, and return its result."""

    def host(self, name: str) -> np.ndarray:
        """Return a copy of an array of the state."""


@frozen
class Time(Kind):
    """When a hook fires, as a string: a time or a criterion."""

    what: str = field(kw_only=True)

    def check(self, address: str, value: Any) -> Any:
        """Return the string; raise SigmaConfigError if it cannot be parsed."""
        read_time(address, self.what, value)
        return value


@frozen
class Binding:
    """How the value at an address is read, and its kind: if it can be set, and else for those that look at it."""

    read: Callable[[Readable, str], Any] = field(eq=False)  # takes the address, which determines it
    kind: Kind | None = None
    shown: Kind = Kind()


# -- the table ---------------------------------------------------------------------------------------------------------
def bindings(setup: Setup, published: Iterable[str] = ()) -> dict[str, Binding]:
    """Return the bindings of all addresses, including those ``published`` under a hook's pattern."""
    hooks = setup.order.hooks.values()
    written = [a for hook in hooks if hook.scope == "global" for a in hook.writes if literal(a)]
    numbers = {address: Binding(_published_value, Kind(float)) for address in settable(setup)}
    return {**published_bindings(published), **fixed_bindings(setup), **published_bindings(written), **numbers}


def fixed_bindings(setup: Setup) -> dict[str, Binding]:
    """Return the bindings of all addresses that no hook declares."""
    model, number = setup.model, partial(number_kind, dtype=setup.model.precision)
    groups = {f"{h}.{n}": x for h, own in model.optimisers.items() for n, x in live_settings(own.type).items()}
    flags = [f"{head}.frozen" for head in model.optimisers] + [f"{h}.{a}.frozen" for a, h in model.owners.items()]
    times = [(hook, what) for hook in setup.parts.hooks for what in TIMES]
    return {
        **dict.fromkeys((f"phases.{phase}" for phase in PHASES), Binding(_phase, None, SECONDS)),
        **{scale.value: Binding(_count, None, count) for scale, count in COUNTS.items()},
        "goal": Binding(_goal, None, Kind(int, 0, doc="The iteration at which training ends at the latest.")),
        "epochs": Binding(_epochs, Kind(int, 1, doc="The total number of epochs.")),
        "batch_size": Binding(_batch_size, Kind(int, 1, doc="Rows of a batch, from the next epoch on.")),
        **{OPERATOR + name: Binding(_operator_setting, kind) for name, kind in _operator_kinds(setup).items()},
        "data.batch_size": Binding(_used_size, None, Kind(int, 1, doc="Rows of a batch, in force.")),
        **dict.fromkeys(_counts(setup), Binding(_data_count, None, Kind(int, 0))),
        **{name: Binding(_array, Elements(spec=spec)) for name, spec in model.layer_specs().items()},
        **{name: _SCALING[name.rpartition(".")[2]] for name in model.scales()},
        **{name: Binding(_base, number(setting=x.setting)) for name, x in setup.live.values.items()},
        **{name: Binding(_group, number(setting=setting)) for name, setting in groups.items()},
        **dict.fromkeys(flags, Binding(_is_frozen, Kind(bool))),
        **{f"hooks.{hook}.{what}": Binding(_time, Time(what=what)) for hook, what in times},
        **{head + n: Binding(_published_value, None, of) for head, of in OF.items() for n in model.measured_names()},
    }


def settable(setup: Setup) -> dict[str, float]:
    """Return the numbers that hooks declare as settable, with their initial values."""
    return {address: number for hook in setup.order.hooks.values() for address, number in hook.settable.items()}


def published_bindings(addresses: Iterable[str]) -> dict[str, Binding]:
    """Return the bindings of published values."""
    return dict.fromkeys(addresses, Binding(_published_value))


def worker_bindings(workers: Iterable[int]) -> dict[str, Binding]:
    """Return the bindings of what is shown of the workers of a group."""
    kinds = {f"group.{number}.{name}": kind for number in workers for name, kind in WORKER.items()}
    return {address: Binding(_worker, None, kind) for address, kind in kinds.items()}


def reading_bindings(units: Mapping[str, str]) -> dict[str, Binding]:
    """Return the bindings of what monitors have measured of the machine, by address, with the units."""
    doc = "Measured by a monitor, of the machine or of the time; no part of the state."
    return {address: Binding(_reading, None, Kind(float, doc=doc, unit=unit)) for address, unit in units.items()}


def numbers(session: Readable) -> dict[str, float]:
    """Return the numbers that can be set; parameters are arrays, and are not among them."""
    setup, epochs = session.setup, session.epochs
    groups = {f"{head}.{name}" for head, own in setup.model.optimisers.items() for name in live_settings(own.type)}
    return {
        **session.state.live.base,
        **{name: _group(session, name) for name in groups},
        **{name: session.state.published.get(name, first) for name, first in settable(setup).items()},
        **({} if epochs is None or epochs == inf else {"epochs": epochs}),
        "batch_size": _batch_size(session, ""),
    }


def check_declared(setup: Setup, checked: Mapping[str, Hook] = MappingProxyType({})) -> None:
    """Raise SigmaConfigError for the first mistake in what hooks declare, or for a hook that would fail on the model.

    Whether those that were ``checked`` before would fail is not asked again.
    """
    hooks = setup.order.hooks
    _check_settable(setup)
    _check_observers(setup)
    _check_carried(setup)
    check_reads(setup.name, hooks, setup.model, bindings(setup), others=setup.others)
    new = {n: h for n, h in hooks.items() if checked.get(n) is not h}
    check_hooks(f"{setup.name}.hooks", new, setup.model, others=hooks.values())


def _check_observers(setup: Setup) -> None:
    """Raise SigmaConfigError for a hook that observes iterations if each replica has iterations of its own."""
    for name in setup.order.observers if setup.operator.mode == "averaging" else ():
        raise SigmaConfigError(
            f"{setup.name}.hooks.{name}: observes an iteration, such as its gradients, and in the mode 'averaging' each"
            " replica has its own. Leave out the hook, or set mode = 'synchronous'."
        )


def _check_carried(setup: Setup) -> None:
    """Raise SigmaConfigError for layers that carry state from batch to batch, where gradients may lack updates."""
    if not setup.is_reproducible and (carried := [*setup.model.fresh_state()]):
        raise SigmaConfigError(
            f"{setup.name}.operator: {carried[0].removeprefix(LAYERS)} is carried from each batch to the next one,"
            " which the mode 'asynchronous' may compute before it. Leave out `carried`, or set mode = 'synchronous'."
        )


def _check_settable(setup: Setup) -> None:
    hooks = setup.order.hooks.values()
    numbers = [address for hook in hooks for address in hook.settable]
    addresses = {*fixed_bindings(setup), *(address for hook in hooks for address in hook.writes)} if numbers else set()
    for address in numbers:
        if address in addresses:
            raise SigmaConfigError(f"{setup.name}.hooks: {address!r} exists already. Give the number another name.")
        addresses.add(address)


# -- reading -----------------------------------------------------------------------------------------------------------
def _published_value(session: Readable, address: str) -> Any:
    published = session.state.published
    return published[address] if address in published else settable(session.setup).get(address, NOTHING)


def _phase(session: Readable, address: str) -> float:
    return session.phases[address.removeprefix("phases.")]


def _worker(session: Readable, address: str) -> Any:
    _, number, name = address.split(".")
    return getattr(session.workers.get(int(number)), "silence" if name == "seen" else name, NOTHING)


def _reading(session: Readable, address: str) -> float:
    return session.readings[address]


def _goal(session: Readable, _: str) -> int | None:
    return session.goal()


def _epochs(session: Readable, _: str) -> float | None:
    return session.epochs


def _counts(setup: Setup) -> list[str]:
    """Return the addresses of the counts of each split whose name can be part of one."""
    splits = [split for split in setup.factory.splits if literal(split) and split != "batch_size"]
    return [f"data.{split}.{what}" for split in splits for what in ("rows", "excluded", "relabelled")]


def _data_count(session: Readable, address: str) -> int:
    split, _, what = address.removeprefix("data.").rpartition(".")
    return session.setup.counts(split)[what]


def _batch_size(session: Readable, _: str) -> int:
    size: int = session.state.changes.get("batch_size", session.setup.evaluator.batch_size)
    return size


def _operator_kinds(setup: Setup) -> dict[str, Kind]:
    """Return the kinds of the operator's settings that can be set live."""
    workers = {"workers": _WORKERS} if hasattr(setup.operator, "workers") else {}
    return workers | _OF_MODES.get(setup.operator.mode, {})


def _operator_setting(session: Readable, address: str) -> int:
    return session.state.operator_settings(session.setup)[address.removeprefix(OPERATOR)]


def _used_size(session: Readable, _: str) -> int:
    return session.setup.feed.batch_size


def _count(session: Readable, scale: str) -> float:
    count: float = getattr(session.state.moment, scale)
    return count


def _array(session: Readable, name: str) -> Any:
    return session.ask(partial(session.host, name))


def _number(session: Readable, name: str) -> float:
    number: float = _array(session, name).item()
    return number


_SCALING = {  # the factor of a loss, which can be set, and counts
    SCALE: Binding(
        _number, Kind(float, *SCALES, doc="The factor of the loss whose gradients are computed in float16.")
    ),
    GOOD: Binding(_number, None, Kind(int, 0, doc=f"Updates since the loss scale changed; after {RISE:,} it doubles.")),
    SKIPS: Binding(_number, None, Kind(int, 0, doc="Updates that were skipped, as a gradient overflowed float16.")),
}


def _base(session: Readable, name: str) -> float:
    return session.state.live.base[name]


def _group(session: Readable, name: str) -> float:
    """Return a group's value: that of the first parameter, which all share unless rules or commands differ."""
    if names := session.setup.group(name):
        return session.state.live.base[names[0]]
    head, _, setting = name.rpartition(".")
    return live_settings(session.setup.model.optimisers[head].type)[setting].value


def _is_frozen(session: Readable, name: str) -> bool:
    return session.setup.model.frozen.issuperset(session.setup.frozen_by(name))


def _time(session: Readable, name: str) -> str:
    hook, _, what = name.removeprefix("hooks.").rpartition(".")
    time = getattr(session.setup.parts.hooks[hook], what)
    return "" if time is None else str(time)


# -- writing -----------------------------------------------------------------------------------------------------------
def write_values(state: RunState, setup: Setup, new: Mapping[str, Any]) -> RunState:
    """Return the state with new values, already checked by their kinds, at settable addresses of no hook.

    The times and criteria of hooks, frozen parameters, the number of epochs and the batch size are part of ``changes``:
    the setup has to be reconfigured.
    """
    arrays, live, changes, specs = dict(state.arrays), dict[str, float](), state.changes, setup.model.layer_specs()
    specs |= {name: Spec((), first.dtype.name) for name, first in setup.model.scales().items()}
    for address, value in new.items():
        if address in arrays:
            values = np.full(specs[address].shape, value, specs[address].dtype)
            declared = setup.model.shapes.parameters.get(address.removeprefix(LAYERS))
            values = declared.fix_rows(values) if declared else values
            copies = setup.model.copying_slots(address.removeprefix(LAYERS), values) if declared else {}
            arrays |= {name: setup.to_device(array) for name, array in {address: values, **copies}.items()}
            state = state.without_last()
        elif parameters := setup.frozen_by(address):
            changes = froze(changes, [p for p in parameters if (p in setup.model.frozen) != value], value)
        elif address == "batch_size":
            changes = update_changes(changes, batch_size=value)
        elif address.startswith(OPERATOR):
            changes = update_changes(changes, **{address.removeprefix(OPERATOR): value})
        elif address == "epochs":
            changes = update_changes(changes, epochs={"total": value, "start": state.moment.start})
        elif address.startswith("hooks."):
            name, _, what = address.removeprefix("hooks.").rpartition(".")
            changes = with_time(changes, name, what, value)
        else:
            live |= dict.fromkeys(setup.group(address), value)
    return evolve(state, arrays=arrays, live=state.live.with_base({**state.live.base, **live}), changes=changes)
