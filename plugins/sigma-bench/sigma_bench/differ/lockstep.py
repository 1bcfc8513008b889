"""One configuration on several backends, an iteration at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing

import numpy as np
from attrs import define, field, frozen

from sigma_bench.contestants.sigma import SoleTrainer
from sigma_bench.differ.engines import Engine, Tracing
from sigma_bench.differ.isolated import FEW, MANY, Isolated, OpDeviation, magnitude
from sigma_hooks.agreement import Difference, deviations, distances
from sigma_hooks.locating import Locator, nearest
from sigma_hooks.reference import Reference
from sigma_kernel import TimeStep, every
from sigma_kernel.contracts import Backend, Hook, HookContext, Repeatable
from sigma_run.config import Configuration

Records = Mapping[str, np.ndarray]
WHOLE = "whole step"


@frozen
class Deviation:
    """How far a backend is from the reference: an op of a layer in one step, or a result of the whole step.

    ``absolute`` belongs to the element with the greatest share of the tolerance, ``relative`` is the same divided by
    the array's greatest element.
    """

    backend: str
    step: int
    op: str
    layer: str
    share: float
    absolute: float
    relative: float
    text: str
    order: tuple[int, ...]


@frozen
class Compared:
    """The comparison of one step.

    ``apart`` holds, by backend, how far its own run is from that of the reference; ``rounding`` is that of the
    reference with perturbed roundings.
    """

    step: int
    ops: Sequence[Deviation]
    results: Sequence[Deviation]
    apart: Mapping[str, float]
    rounding: float

    @property
    def first_deviation(self) -> Deviation | None:
        """Return the first deviation beyond tolerance: of an op, or of the step if all its ops are right."""
        for group in (self.ops, self.results):
            if wrong := [deviation for deviation in group if deviation.share > 1]:
                return min(wrong, key=lambda deviation: deviation.order)
        return None


@define(eq=False, kw_only=True)
class Probe(Hook):
    """Pass each iteration on."""

    every: TimeStep = every(1, "iteration")
    seen: Callable[[Repeatable], None]

    repeats = True

    def fire(self, context: HookContext) -> None:
        """Pass it on."""
        assert context.iteration is not None
        self.seen(context.iteration)


@define(eq=False)
class Lockstep:
    """Trainers of one configuration: on the reference, on the reference with perturbed roundings, on each backend."""

    configuration: Configuration
    backends: Mapping[str, str | Backend]  # by the name that is reported: as in configurations, or itself
    tolerance: float
    _isolated: Isolated = field(init=False)
    _iterations: list[Repeatable] = field(factory=list, init=False)

    def __attrs_post_init__(self) -> None:
        """Prepare the comparison."""
        self._isolated = Isolated(self.tolerance)

    def steps(self, count: int) -> Iterator[Compared]:
        """Yield the comparison of each of the first steps."""
        with ExitStack() as stack:

            def begin_trainer(backend: str | Backend, hooks: Mapping[str, Hook]) -> SoleTrainer:
                return stack.enter_context(closing(SoleTrainer(self.configuration, backend, lambda _: hooks)))

            exact = begin_trainer(Reference(), {"probe": Probe(seen=self._iterations.append)})
            moved = begin_trainer(Reference(1), {})
            own = {name: begin_trainer(backend, {}) for name, backend in self.backends.items()}
            engines = {name: Engine(trainer.backend) for name, trainer in own.items()}
            for step in range(1, count + 1):
                for trainer in (exact, moved, *own.values()):
                    trainer.fit(1)
                wanted = exact.arrays
                apart = {name: distance(trainer.arrays, wanted) for name, trainer in own.items()}
                ops, results = self._compare_step(step, self._iterations.pop(), engines)
                yield Compared(step, ops, results, apart, distance(moved.arrays, wanted))

    def _compare_step(
        self, step: int, iteration: Repeatable, engines: Mapping[str, Engine]
    ) -> tuple[list[Deviation], list[Deviation]]:
        """Return the deviations of each op, and of the step's results."""
        traced = Tracing()
        wanted, ops = iteration.repeat(traced), list[Deviation]()
        for place, (graph, values) in enumerate(traced.calls):
            per_backend = self._isolated.compare_ops(graph, values, list(engines.values()))
            for number, (name, every_) in enumerate(zip(engines, per_backend, strict=True)):
                for deviation in every_:
                    ops.append(
                        _of_op(step, name, deviation, nearest(graph, deviation.node), (place, deviation.index, number))
                    )
        results = []
        for number, (name, engine) in enumerate(engines.items()):
            found_ = self._compare_results(iteration, wanted, engine)
            located = (
                self._locate_fault(iteration, engine) if any(difference.share > 1 for difference in found_) else ""
            )
            sizes = {difference.address: magnitude(wanted[difference.address]) for difference in found_}
            results += [
                _of_step(step, name, difference, sizes[difference.address], located, number) for difference in found_
            ]
        return ops, results

    def _compare_results(self, iteration: Repeatable, wanted: Records, engine: Engine) -> list[Difference]:
        """Return how far the results of the step, compiled as a whole, are from the reference."""
        results = iteration.repeat(engine)
        for seeds in (FEW, MANY):
            moved = [iteration.repeat(Reference(seed, engine.function_error)) for seed in seeds]
            all_ = deviations(results, wanted, moved, self.tolerance)
            if max((difference.share for difference in all_), default=0.0) <= 1:
                break
        return all_

    def _locate_fault(self, iteration: Repeatable, engine: Engine) -> str:
        """Return the op at which a step goes wrong, as text, if it does so with all intermediate values kept."""
        locator = Locator(own=engine.own, tolerance=self.tolerance)
        iteration.repeat(locator)
        return str(min(locator.faults, key=lambda fault: fault.order)) if locator.faults else ""


def distance(found: Records, wanted: Records) -> float:
    """Return the greatest deviation of any array, relative to its greatest element; infinity if only one is finite."""
    floats = [name for name, x in wanted.items() if x.dtype.kind == "f" and x.size]
    greatest = {name: float(np.max(distances(found[name], wanted[name]))) for name in floats}
    return max((off / (magnitude(wanted[name]) or 1.0) for name, off in greatest.items()), default=0.0)


def _of_op(step: int, backend: str, one: OpDeviation, near: Sequence[str], order: tuple[int, ...]) -> Deviation:
    node, worst = one.node, one.difference
    op = node.inputs[0].op if node.op == "part" else node.op
    operands = node.inputs[0].inputs if node.op == "part" else node.inputs
    kinds = ", ".join(f"{x.dtype}{list(x.shape)}" for x in operands)
    where = f"near {', '.join(near)}, " if near else ""
    text = f"{op}({kinds}), {where}of operands that agree: {worst}"
    return Deviation(
        backend,
        step,
        op,
        node.origin or "the step",
        worst.share,
        worst.distance,
        worst.distance / (one.size or 1.0),
        text,
        order,
    )


def _of_step(step: int, backend: str, one: Difference, size: float, located: str, number: int) -> Deviation:
    text = (
        f"{one}. Each op alone is right, so the fault is in how the backend computes the whole step. {located}".rstrip()
    )
    return Deviation(
        backend, step, WHOLE, one.address, one.share, one.distance, one.distance / (size or 1.0), text, (number,)
    )
