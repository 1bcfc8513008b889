"""Checks before the first iteration: precision, hook declarations, memory."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping
from math import inf, prod
from typing import Any

import numpy as np
from attrs import frozen

from sigma_kernel.contracts import Backend, Hook, Metric
from sigma_kernel.errors import SigmaConfigError, SigmaNetworkError, said
from sigma_kernel.graph.node import Spec
from sigma_kernel.registry.addresses import literal, matches
from sigma_kernel.settings import PRECISIONS
from sigma_kernel.training.components import several
from sigma_kernel.training.hooks.order import inner, meet, reads, taken
from sigma_kernel.training.step.model import SLOTS, Model


# -- what fits together ------------------------------------------------------------------------------------------------
def check_precision(trainer: str, precision: str, backend: Backend) -> None:
    """Raise SigmaConfigError for a precision that a backend does not have."""
    known = sorted(dtype for dtype in backend.dtypes if dtype in PRECISIONS)
    if precision not in known:
        raise SigmaConfigError(f"{trainer}: the backend has no precision {precision!r}. It has {', '.join(known)}.")


def check_reads(trainer: str, hooks: Mapping[str, Hook], model: Model, there: Collection[str]) -> None:
    """Raise SigmaConfigError for a hook that reads what nothing can ever publish; ``there`` are known addresses."""
    written = {address for hook in hooks.values() if hook.scope == "global" for address in hook.writes}
    plain = {*there, *written, *(a[:at] for a in there if hooks for at, letter in enumerate(a) if letter == ".")}
    for name, hook in hooks.items():
        for address in reads(hook):
            known = address in plain or (not literal(address) and any(matches(address, a) for a in there))
            shard = address.startswith("workers.") and meet(inner(address), "training.loss")
            known = known or shard or any(taken([address], hook.scope, other) for other in hooks.values())
            if not known and not model.observable([address]):
                raise SigmaConfigError(
                    f"{trainer}.hooks.{name}: reads {address!r}, which nothing here publishes. "
                    "Add the hook that does, or correct the address."
                )


@frozen
class Prospect:
    """What hooks see of a model that has not trained yet."""

    model: Model

    def ends(self) -> tuple[Spec, Spec]:
        """Return the specs of one sample of the first input, and of one row of the first output."""
        return self.model.ends()

    def measure(self, metrics: Mapping[str, Metric]) -> None:
        """Trace metrics on a batch of two, for whatever they raise."""
        if metrics:
            self.model.evaluation(2, several(self.model.resolve, "metrics", "metric", Metric, metrics).items())


def check_hooks(where: str, hooks: Mapping[str, Hook], model: Model) -> None:
    """Raise SigmaConfigError for a hook that would fail on this model."""
    for name, hook in hooks.items():
        check_one(f"{where}.{name}", hook.check, Prospect(model))


def check_one(where: str, check: Callable[[Any], None], subject: Any) -> None:
    """Let something be checked that a plugin wrote; whatever it raises becomes a SigmaConfigError with a place."""
    try:
        check(subject)
    except Exception as error:
        raise SigmaConfigError(f"{where}: {said(error)}") from error


# -- slots -------------------------------------------------------------------------------------------------------------
def slots(model: Model) -> dict[str, np.ndarray]:
    """Return what an optimiser begins with."""
    found = {f"{SLOTS}{a}.{name}": np.full(s.shape, t.fill, s.dtype) for (a, name), (s, t) in model.slots().items()}
    return {**found, "optimiser.step": np.zeros((), np.int32)}


# -- room --------------------------------------------------------------------------------------------------------------
def check_memory(model: Model) -> None:
    """Raise SigmaNetworkError if the parameters need more bytes than this machine has."""
    sizes: dict[str, int] = {}
    for address, spec in model.parameters().items():
        layer = address.partition(".")[0]
        sizes[layer] = sizes.get(layer, 0) + prod(spec.shape) * np.dtype(spec.dtype).itemsize
    if sum(sizes.values()) > _machine():
        layer = max(sizes, key=lambda name: sizes[name])
        wanted, there = (f"{size / 2**30:,.0f}" for size in (sizes[layer], _machine()))
        raise SigmaNetworkError(
            f"{layer}: its parameters need {wanted} GiB; this machine has {there}. "
            "Choose fewer units, or make what leads to it smaller."
        )


def _machine() -> float:
    """Return the bytes of memory; infinity where the system does not tell."""
    try:
        return float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    except (AttributeError, ValueError, OSError):
        return inf
