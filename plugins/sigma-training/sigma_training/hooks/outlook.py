"""Check hooks before the first iteration: whether one would fail, reads an unknown address, or has ended training."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from copy import deepcopy
from functools import cached_property
from typing import Any

from attrs import field, frozen

from sigma_kernel.clock import Moment
from sigma_kernel.contracts import Hook, Metric
from sigma_kernel.criteria import Lookup
from sigma_kernel.errors import FIRST, Mistakes, SigmaConfigError, component_name, error_text, suggest_name
from sigma_kernel.graph.node import Spec
from sigma_kernel.plugins.resolver import resolve_components
from sigma_kernel.registry.addresses import literal, matches
from sigma_step.graphs import evaluation_step
from sigma_step.model import COSTS, EPOCH, GRADIENTS, OPTIMISERS, Model
from sigma_step.weights import check_weights
from sigma_training.hooks.directions import find_direction, published_directions
from sigma_training.hooks.order import (
    OBSERVED,
    ROWS,
    HookOrder,
    Memory,
    inner,
    matching_writes,
    meet,
    other_trainers,
    reads,
    within_shard,
)

# how addresses begin that are known only with a traced model
ELSEWHERE = ("network.", *OPTIMISERS, "phases.", f"training.{COSTS}", EPOCH, *OBSERVED)


# -- what would fail ---------------------------------------------------------------------------------------------------
@frozen
class ModelPreview:
    """What hooks can check of a model before training."""

    model: Model
    hooks: Collection[Hook] = ()

    @cached_property
    def directions(self) -> Mapping[str, str]:
        """Return which values of metrics are better, by the address, or pattern, at which they are published."""
        return published_directions(self.hooks, self.model)

    def direction(self, address: str) -> str:
        """Return which values at an address are better."""
        return find_direction(address, self.directions)

    def ends(self, layer: str = "", section: str = "") -> tuple[Spec, Spec]:
        """Return the specs of one sample of an input section, and of one row of a layer's output."""
        return self.model.ends(layer, section)

    def measure(self, metrics: Mapping[str, Metric]) -> None:
        """Trace metrics on a batch of two, so that they raise what they would raise in training."""
        if metrics:
            chosen = resolve_components(self.model.resolve, "metrics", Metric, metrics)
            evaluation_step(self.model, 2, self.model.per_output(chosen).items())


@frozen
class _Listing(ModelPreview):
    """An outlook that notes the metrics which hooks would measure."""

    found: dict[str, Metric] = field(factory=dict)

    def measure(self, metrics: Mapping[str, Metric]) -> None:
        """Note metrics by the names under which they are published."""
        self.found.update(metrics)


def list_metrics(hooks: Collection[Hook], model: Model) -> dict[str, Metric]:
    """Return the metrics that a trainer and its hooks measure, as they are set, by the names that are published."""
    outlook = _Listing(model, hooks)
    for hook in hooks:
        hook.check(outlook)
    return {**model.metrics, **outlook.found}


def check_hooks(
    where: str, hooks: Mapping[str, Hook], model: Model, mistakes: Mistakes = FIRST, others: Collection[Hook] = ()
) -> None:
    """Raise SigmaConfigError for a hook that would fail on this model; ``others`` are those of the same trainer."""
    preview = ModelPreview(model, (*others, *hooks.values()))
    for name, hook in hooks.items():
        with mistakes.locate("hooks", name):
            check_one(f"{where}.{name}", hook.check, preview)
            _check_falling(f"{where}.{name}", hook, preview)
            if hook.weights:
                check_weights(f"{where}.{name}.weights", hook.weights, model.slot_names())


def _check_falling(where: str, hook: Hook, preview: ModelPreview) -> None:
    """Raise SigmaConfigError for a criterion that takes a metric whose higher values are better to fall."""
    for address in () if hook.when is None else hook.when.falling():
        if preview.direction(address) == "higher":
            raise SigmaConfigError(f"{where}.when: {address} improves: means that it falls. Write 'improves upwards'.")


def check_one(where: str, check: Callable[[Any], None], subject: Any) -> None:
    """Run a plugin's check; whatever it raises becomes a SigmaConfigError with its place."""
    try:
        check(subject)
    except Exception as error:
        raise SigmaConfigError(f"{where}: {error_text(error)}") from error


def _is_of_shards(address: str, model: Model) -> bool:
    """Return whether shards of batches have something at an address: gradients, and the numbers of their rows."""
    own = within_shard(address)
    return own in ("rows", "**") or any(name.startswith(GRADIENTS) for name in model.observable([own] if own else []))


# -- what nobody publishes ---------------------------------------------------------------------------------------------
def check_reads(
    trainer: str, hooks: Mapping[str, Hook], model: Model | None, there: Collection[str], mistakes: Mistakes = FIRST,
    others: Collection[str] = (),
) -> None:  # fmt: skip
    """Raise SigmaConfigError for a hook that reads an address never published; ``there`` are known addresses.

    Without a model, all addresses that a model could provide are taken to exist.
    """
    there = {ROWS, *there}
    written = {address for hook in hooks.values() if hook.scope == "global" for address in hook.writes}
    plain = {*there, *written, *(a[:at] for a in there if hooks for at, letter in enumerate(a) if letter == ".")}
    heads = {address.partition(".")[0] for address in written}
    wide = [h for h in hooks.values() if h.scope == "local" or {"*", "<"}.intersection("".join(h.writes))]
    for name, hook in hooks.items():
        for address in dict.fromkeys(reads(hook)):
            with mistakes.locate("hooks", name, *(() if address in hook.reads else ("when",))):
                exists = address in plain or (not literal(address) and any(matches(address, a) for a in there))
                shard = address.startswith("workers.") and meet(inner(address), "training.loss")
                writers = wide if literal(address) else hooks.values()
                exists = exists or shard or any(matching_writes([address], hook.scope, other) for other in writers)
                elsewhere = (f"{other}.{address.partition('.')[2]}" for other in others)
                exists = exists or any(other in others for other, _ in other_trainers([address], heads))
                exists = exists or (hook.scope == "global" and model is not None and _is_of_shards(address, model))
                if not exists and not (address.startswith(ELSEWHERE) if model is None else model.observable([address])):
                    raise SigmaConfigError(
                        f"{trainer}.hooks.{name}: reads {address!r}, which nothing here publishes. Add the hook that "
                        f"does, such as evaluate, or correct the address.{suggest_name(address, {*plain, *elsewhere})}"
                    )


# -- what ends, and what has ended -------------------------------------------------------------------------------------
def check_end(trainer: str, epochs: float | None, hooks: Mapping[str, Hook]) -> None:
    """Raise SigmaConfigError for training that neither a number of epochs nor a hook ends."""
    if epochs is None and not any(hook.ends or hook.stops for hook in hooks.values()):
        own = [name for name, hook in hooks.items() if ":" not in component_name(hook)]  # those of plugins declare it
        silent = f" If {' or '.join(own)} ends it, declare `ends = True` in its class." if own else ""
        raise SigmaConfigError(
            f"{trainer}: nothing ends its training. Set `epochs = 30`, or inf to train until it is stopped, or add a "
            f"hook that ends it, such as stop, early_stop or time_limit.{silent}"
        )


def renew(order: HookOrder, memory: Memory) -> None:
    """Clear the memory of every hook that has ended training, so that it watches anew."""
    for name in order.active(memory):
        if order.hooks[name].has_ended(memory[name]["hook"]):
            memory[name]["hook"].clear()


def end_reason(order: HookOrder, memory: Memory, lookup: Lookup, now: Moment) -> str | None:
    """Return why training would end before it begins: a hook that ends training is due, or its criterion holds."""
    for name in order.active(memory):
        hook = order.hooks[name]
        if hook.has_ended(memory[name]["hook"]):
            return f"hook {name!r} has ended it already; detach it, or ask for more: fit(epochs=n), resume --epochs N"
        if hook.stops and _holds(hook, memory[name]["criterion"], now, lookup):
            why, what = (f"{hook.when} holds", "when") if hook.when is not None else (f"{hook.every} is over", "every")
            return f"{why} already, at which hook {name!r} ends it; set another {what!r} for the hook, or detach it"
    return None


def _holds(hook: Hook, asked: Mapping[str, Any], now: Moment, lookup: Lookup) -> bool:
    if hook.when is None:
        return hook.every.next_due(now.count(hook.every.scale)) is None
    if now.count(hook.every.scale) < hook.every.first:
        return False
    memory = deepcopy(asked.get("", {}))
    return bool(hook.when.ask(lookup, memory, now)) and _steady(memory)


def _steady(memory: dict[str, Any]) -> bool:
    """Return whether a criterion gives the same answer when asked twice: it compares with no earlier value."""
    return "asked" in memory or all(isinstance(inner, dict) and _steady(inner) for inner in memory.values())
