"""What a trainer is about to do, as plain data: for ``sigma explain``, and for tests and notebooks."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import Any

import numpy as np
from attrs import asdict, frozen

from sigma_kernel.network import live_settings
from sigma_kernel.training.hooks import reads, reasons
from sigma_kernel.training.live import setting_rule
from sigma_kernel.training.session import Session
from sigma_kernel.training.trainer import Trainer, initialiser_rules


@frozen
class Explanation:
    """Lists and tables of plain values, each in the order in which people ask.

    ``layers``: name, kind, what leads to it, output shape without the batch, parameters.  ``parameters``: by address,
    shape, count, the rule that draws its first values (or the layer's own initialiser), whether it is frozen, and its
    optimiser settings.  ``hooks``: in the order in which they run.  ``reasons``: why.  ``memory``: in bytes.
    """

    layers: list[dict[str, Any]]
    parameters: list[dict[str, Any]]
    hooks: list[dict[str, Any]]
    reasons: list[str]
    memory: dict[str, int]
    bursts: dict[str, int | None]

    def to_dict(self) -> dict[str, Any]:
        """Return all of it as one document."""
        return asdict(self)


def explain(trainer: Trainer) -> Explanation:
    """Return what a trainer is about to do; prepares it, and compiles its step to know its memory."""
    session = trainer.session
    _, program = session.program("training", session.feed.batch_size)
    return Explanation(
        layers=_layers(session),
        parameters=_parameters(trainer),
        hooks=_hooks(session),
        reasons=[str(reason) for reason in reasons(session.runner.hooks)],
        memory={
            "state": _bytes(session.snapshot().arrays),
            "data": _bytes(session.feed.next(1).block),
            "working": program.peak_bytes,
        },
        bursts={
            "iterations_per_epoch": session.feed.iterations_per_epoch,
            "iterations_to_first_due": session.distance(),
            "goal": session.goal(),
        },
    )


def _layers(session: Session) -> list[dict[str, Any]]:
    shapes = session.model.shapes
    return [
        {
            "name": placed.name,
            "kind": placed.kind,
            "from": list(placed.sources),
            "shape": list(shapes.outputs[placed.name].shape),
            "parameters": shapes.counts[placed.name],
        }
        for placed in session.model.network.layers
    ]


def _parameters(trainer: Trainer) -> list[dict[str, Any]]:
    model = trainer.session.model
    rules = initialiser_rules(trainer, list(model.shapes.parameters))
    return [
        {
            "address": address,
            "shape": list(parameter.shape),
            "count": prod(parameter.shape),
            "initialiser": rules[address] or f"the layer's own: {parameter.initialiser}",
            "frozen": address in model.frozen,
            "settings": _settings(trainer, address),
        }
        for address, parameter in model.shapes.parameters.items()
    ]


def _settings(trainer: Trainer, address: str) -> dict[str, dict[str, Any]]:
    model, live = trainer.session.model, trainer.session.live
    if model.optimiser is None or address in model.frozen:
        return {}
    return {
        name: {"value": live.base[f"optimiser.{address}.{name}"], "rule": setting_rule(model.optimiser, address, name)}
        for name in live_settings(model.optimiser)
    }


def _hooks(session: Session) -> list[dict[str, Any]]:
    hooks = session.runner.hooks
    return [
        {
            "name": name,
            "kind": type(hooks[name]).__name__,
            "every": str(hooks[name].every),
            "when": None if hooks[name].when is None else str(hooks[name].when),
            "reads": list(reads(hooks[name])),
            "writes": list(hooks[name].writes),
        }
        for name in session.runner.order
    ]


def _bytes(arrays: Mapping[str, Any]) -> int:
    return sum(int(np.asarray(value).nbytes) for value in arrays.values())
