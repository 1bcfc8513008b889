"""Describe a trainer as plain values: layers, parameters and matching rules, hooks, memory, bursts."""

from __future__ import annotations

from typing import Any

import attrs

from sigma_kernel.contracts import Dataset, Initialiser, Program, Step
from sigma_kernel.plugins.components import display_name
from sigma_step.graphs import recomputed_layers, training_step
from sigma_step.initial import Initial
from sigma_step.model import Model
from sigma_step.rules import setting_rule
from sigma_step.work import operations, traffic
from sigma_training.hooks.order import explain_order
from sigma_training.session.session import Session
from sigma_training.trainer import NetworkTrainer


def explain_trainer(trainer: NetworkTrainer) -> dict[str, Any]:
    """Return all that is known about a trainer before training; compiles its step to learn the memory it needs."""
    session = trainer.session
    return {
        "backend": session.backend_name,
        "tiers": _tiers(session),
        "about": dict(session.setup.programs.backend.runtime),
        "precision": trainer.precision,
        "layers": [
            {"name": row.name, "after": list(row.sources), "shape": list(row.shape or ()), "parameters": row.parameters}
            for row in trainer.summary().rows
        ],
        "parameters": _parameters(session.initial, session),
        "optimisers": _optimisers(session.setup.model),
        "ordered": session.setup.model.ordered,
        "augmentations": {name: type(step).__name__ for name, step in session.setup.settings.augmentations.items()},
        "rewritings": {name: type(step).__name__ for name, step in session.setup.settings.rewritings.items()},
        "blocks": _blocks(session.setup.feed.dataset),
        "operator": _operator(session),
        "hooks": [_hook(session, name) for name in session.setup.order.names],
        "reasons": [str(reason) for reason in explain_order(session.setup.order.hooks, session.setup.order.names)],
        "memory": _memory(trainer, session),
        "work": _work(session),
        "bursts": _bursts(session),
    }


def _operator(session: Session) -> dict[str, Any]:
    """Return what drives training, how many workers compute, how many shards a batch has, and how often replicas meet.

    ``every`` is 0 if there are no replicas, and ``staleness`` if no gradient lacks an update.
    """
    operator = session.setup.operator
    return {
        "name": display_name(operator).removesuffix("_operator"),
        "shards": operator.shards,
        **session.state.operator_settings(session.setup),
    }


def _blocks(rows: Dataset) -> dict[str, int]:
    """Return how many blocks of how many rows the training split has, of how many rows are drawn, and the lanes."""
    together = min(rows.blocks, max(rows.open_blocks, rows.lanes))
    return {"count": rows.blocks, "rows": rows.rows(0), "together": together, "lanes": rows.lanes}


def _parameters(initial: Initial, session: Session) -> list[dict[str, Any]]:
    return [
        {
            "address": address,
            "shape": list(parameter.shape),
            "initialiser": words(initial.initialiser(address, parameter)),
            "rule": initial.rule(address),
            "settings": _settings(session, address),
            "frozen": address in session.setup.model.frozen,
            "optimiser": _name(session.setup.model.owners.get(address)),
        }
        for address, parameter in session.setup.model.shapes.parameters.items()
    ]


def _optimisers(model: Model) -> list[dict[str, Any]]:
    """Return the optimisers, in the order of their updates if they are ordered, and what each of them minimises."""
    costs = [cost.name for cost in model.network.costs]
    return [
        {"name": _name(head), "type": type(o.type).__name__, "match": o.match, "minimises": o.minimises or costs}
        for head, o in model.optimisers.items()
    ]


def _name(head: str | None) -> str | None:
    return head and head.rpartition(".")[2]


def _settings(session: Session, address: str) -> dict[str, Any]:
    """Return the optimiser's settings for one parameter, each with the rule that set it."""
    model, live = session.setup.model, session.state.live.base
    head = f"{model.owners.get(address)}.{address}."
    values = {name.removeprefix(head): value for name, value in live.items() if name.startswith(head)}
    return {name: {"value": v, "rule": setting_rule(model, address, name)} for name, v in values.items()}


def words(initialiser: Any) -> str:
    """Format an initialiser: ``0.0``, ``he_normal``, ``Gaussian(deviation=0.1, mean=0.0)``."""
    if not isinstance(initialiser, Initialiser):
        return str(initialiser)
    cls: Any = type(initialiser)
    fields = attrs.fields(cls) if attrs.has(cls) else ()
    return f"{cls.__name__}({', '.join(f'{f.name}={getattr(initialiser, f.name)!r}' for f in fields)})"


def _hook(session: Session, name: str) -> dict[str, Any]:
    hook = session.setup.order.hooks[name]
    return {
        "name": name,
        "type": type(hook).__name__,
        "every": str(hook.every),
        "when": None if hook.when is None else str(hook.when),
        "reads": list(hook.reads) + list(hook.when.addresses() if hook.when is not None else ()),
        "writes": list(hook.writes),
        "background": hook.background,
        "budget": hook.budget,
        "over_budget": hook.over_budget,
    }


def _tiers(session: Session) -> dict[str, str]:
    """Return the name of each backend that computes, by the iteration from which it does."""
    setup = session.setup
    return {str(i): setup.backend_name(session.state.changes, i) for i in setup.programs.backend.tiers}


def _memory(trainer: NetworkTrainer, session: Session) -> dict[str, Any]:
    """Return the bytes of the state and of a step, the layers that it recomputes, and its bytes if none were."""
    _, program = _compile_step(session)
    state = sum(session.host(name).nbytes for name in session.state.arrays)
    layers = recomputed_layers(session.setup.model, session.setup.feed.batch_size)
    kept = _compile_step(session, False)[1] if layers else program
    peaks = {"peak_bytes": int(program.peak_bytes), "peak_bytes_without": int(kept.peak_bytes)}
    return {"state_bytes": state, **peaks, "recomputed": layers}


def _work(session: Session) -> dict[str, int]:
    """Return the floating-point operations of a step, and the bytes that it must read and write."""
    step, _ = _compile_step(session)
    return {"batch": session.setup.feed.batch_size, "flops": operations(step.graph), "bytes": traffic(step.graph)}


def _compile_step(session: Session, *recomputes: bool) -> tuple[Step, Program]:
    """Return the training step, and its program on the backend of the next iteration."""
    programs = session.setup.programs.select_tier(session.moment.iteration)
    return programs.get(training_step, session.setup.feed.batch_size, *recomputes)


def _bursts(session: Session) -> dict[str, Any]:
    """Return the maximal length of the first burst in iterations, and what ends it."""
    per_epoch, first = session.setup.feed.iterations_per_epoch, session.loop.distance()
    now = session.moment
    then = attrs.evolve(now, iteration=now.iteration + first, epoch=now.epoch + (first >= per_epoch))
    return {
        "iterations_per_epoch": per_epoch,
        "first": first,
        "ended_by": session.setup.order.due(session.state.memory, now, then),
    }
