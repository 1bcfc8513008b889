"""The backend of runs that name none: one that starts at once, and one that compiles meanwhile and then takes over."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import ceil
from typing import Any

import numpy as np
from attrs import evolve, field, frozen

from sigma_kernel.contracts import Backend, Program, Step
from sigma_kernel.errors import SigmaConfigError
from sigma_kernel.graph import Graph, permutation
from sigma_kernel.settings import ge, optional

AIR = 2.0  # times the estimated seconds of compilation that the first tier computes
MANY = 2**17  # rows that are drawn faster in compiled code, the compilation included


FACT = "tiers"  # the iteration from which the second tier computes, among what a run has learned


def has_open_tiers(backend: Backend) -> bool:
    """Return whether a backend is tiered, and the start of its second tier is still to be estimated."""
    return isinstance(backend, Tiered) and backend.start is None


def settle_tiers(backend: Backend, graph: Graph) -> Backend:
    """Return a backend for a run that repeats a graph: if it is tiered, with the start of its second tier."""
    if not isinstance(backend, Tiered) or backend.start is not None:
        return backend
    once, compiling = backend.first.estimate(graph)[1], backend.then.estimate(graph)[0]
    return evolve(backend, start=ceil(AIR * compiling / once) if once else 0)


def restore_tiers(backend: Backend, learned: Mapping[str, Any]) -> Backend:
    """Return a backend for a run that goes on, with the start of the second tier that it began with."""
    if not isinstance(backend, Tiered) or backend.start is not None or FACT not in learned:
        return backend
    return evolve(backend, start=int(learned[FACT]))


def known_tiers(backend: Backend) -> dict[str, int]:
    """Return what a run saves of a backend's tiers, for those that go on from it."""
    return {FACT: backend.start} if isinstance(backend, Tiered) and backend.start is not None else {}


@frozen
class Tiered(Backend):
    """Compute the first iterations on a backend that compiles nothing, and those after them on one that compiles.

    The second backend compiles in another thread meanwhile, if training gets that far.  The iteration from which it
    computes is fixed beforehand, so that results do not depend on how long compilation takes, or on a program cache.
    Both backends hold arrays in the memory of the host.

    Args:
        first: Backend of the first iterations.
        then: Backend of all others.
        start: Iteration from which ``then`` computes; by default, as many as ``first`` needs, by the estimates of both
            backends, for twice the seconds of compiling the step of the run.
    """

    first: Backend
    then: Backend
    start: int | None = field(default=None, validator=optional(ge(0)))

    def __attrs_post_init__(self) -> None:
        for name, backend in (("first", self.first), ("then", self.then)):
            if not isinstance(backend.to_device(np.zeros(1, np.float32)), np.ndarray):
                raise SigmaConfigError(f"tiered: {name} holds arrays on a device. Name this backend alone.")

    @property
    def runtime(self) -> Mapping[str, str]:
        """Return what the results of both backends depend on."""
        return {**self.first.runtime, **self.then.runtime}

    @property
    def function_error(self) -> float:
        """Return the greater relative error of functions."""
        return max(self.first.function_error, self.then.function_error)

    @property
    def tiers(self) -> Mapping[int, Backend]:
        """Return both backends, by the iteration from which each computes."""
        return {0: self.first, self.start: self.then} if self.start else {0: self.then}

    def lower(self, graph: Graph, donate: Mapping[int, int]) -> Callable[..., Sequence[Any]]:
        """Return a graph as a function of the second backend."""
        return self.then.lower(graph, donate)

    def compile(self, step: Step, in_place: bool = True) -> Program:
        """Return a step as a program of the second backend."""
        return self.then.compile(step, in_place)

    def to_device(self, host: np.ndarray) -> Any:
        """Return a copy, as the second backend holds it."""
        return self.then.to_device(host)

    def share(self, host: np.ndarray) -> Any:
        """Return a host array, which is only read, as the second backend holds it."""
        return self.then.share(host)

    def to_host(self, array: Any) -> np.ndarray:
        """Return a copy."""
        return self.then.to_host(array)

    def take(self, array: Any, rows: np.ndarray) -> Any:
        """Return copies of rows."""
        return self.then.take(array, rows)

    def permutation(self, seed: int, stream: int, epoch: int, rows: int) -> np.ndarray:
        """Return the order of rows in an epoch, which is the same on all backends."""
        draw = permutation if rows < MANY else self.then.permutation
        return draw(seed, stream, epoch, rows)
