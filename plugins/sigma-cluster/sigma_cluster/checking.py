"""Check the workers of an operator: start them, ask what they have, and measure how long their sums take."""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import Any

from attrs import define, evolve, field, frozen

from sigma_cluster.planning import count_sent
from sigma_cluster.probe import LENGTH, PATIENCE, ProbeBlueprint, WorkerFacts
from sigma_kernel import catalogue
from sigma_kernel.contracts import (
    Advance,
    Dismiss,
    GroupEvent,
    GroupOperator,
    Notice,
    Position,
    Resize,
    Tick,
    Transport,
)
from sigma_kernel.errors import SigmaConfigError, SigmaTrainingError
from sigma_training.compatibility import differences
from sigma_training.group.group import WorkerGroup

TICK, WAIT = 1.0, 0.02  # seconds
LARGE = 1 << 21  # numbers of the vectors by which bandwidth is measured, 8 MiB
TIMES = 9  # sums of each length; the first is not counted
APART = 1.0  # seconds by which clocks may differ


@frozen
class WorkerReport:
    """What was found of a worker: ``clock`` is ahead of the operator's by so many seconds, within ``accuracy``."""

    number: int
    host: str
    process: int
    cpus: int
    clock: float
    accuracy: float
    plugins: Sequence[str]  # that are missing, or have other versions
    reads_folder: bool

    @property
    def problems(self) -> list[str]:
        """Return what is to be changed before training."""
        here = f"worker {self.number} on {self.host}"
        folder = [] if self.reads_folder else [f"{here}: does not reach the run folder. Put it where all machines do."]
        plugins = [f"{here}: {text}. Install the same versions everywhere." for text in self.plugins]
        ahead = f"{abs(self.clock):.1f} s {'ahead' if self.clock > 0 else 'behind'}"
        late = abs(self.clock) > APART + self.accuracy
        return [*plugins, *folder, *([f"{here}: its clock is {ahead}. Synchronise the clocks."] if late else [])]


@frozen
class ClusterReport:
    """What a check found.

    Args:
        workers: The workers.
        latency: Seconds of a message: half those of a sum of one number, in which two follow each other.
        gradients: Bytes of the gradients of a shard.
        seconds: Seconds of the sum of the gradients of all shards.
        bandwidth: Bytes that a worker sends a second, as :func:`count_sent` counts them, while large vectors of all
            shards are summed. It is None for one worker, which sends nothing.
    """

    workers: Sequence[WorkerReport]
    latency: float
    gradients: int
    seconds: float
    bandwidth: float | None

    @property
    def problems(self) -> list[str]:
        """Return what is to be changed before training."""
        return [text for worker in self.workers for text in worker.problems]


def check_cluster(operator: GroupOperator, numbers: int, folder: Path) -> ClusterReport:
    """Start the workers of an operator, and measure them: sums of gradients of so many numbers, and their facts.

    A file is written below the folder, or where that will be created, and removed. Raises SigmaTrainingError if not
    all workers start, SigmaConfigError if the folder cannot be created.
    """
    with write_mark(folder) as mark, ClusterProbe(operator, ProbeBlueprint(catalogue().versions(), *mark)) as probe:
        workers = probe.describe()
        small, seconds, large = (median(probe.time_sums(length)[1:]) for length in (1, numbers, LARGE))
    sent = count_sent(4 * LARGE, operator.shards, operator.workers)
    return ClusterReport(workers, small / 2, 4 * numbers, seconds, sent / large if sent else None)


@contextmanager
def write_mark(folder: Path) -> Iterator[tuple[str, str]]:
    """Write a file below a folder, or below the first one above it that is there; yield its path and text.

    Raises SigmaConfigError if that cannot be.
    """
    there = next(place for place in (folder.absolute(), *folder.absolute().parents) if place.is_dir())
    text = secrets.token_hex(8)
    try:
        temporary_folder = TemporaryDirectory(prefix=".sigma-check-", dir=there)
    except OSError as error:
        raise SigmaConfigError(f"{folder}: cannot be created: {error.strerror}. Choose another run.folder.") from error
    with temporary_folder as temporary:
        mark = Path(temporary, "mark")
        mark.write_text(text)
        yield str(mark), text


@define(eq=False)
class ClusterProbe:
    """The operator's side of a check: a group that is complete, or fails."""

    operator: GroupOperator
    blueprint: ProbeBlueprint
    _group: WorkerGroup = field(init=False)
    _transport: Transport = field(init=False)
    _notices: list[Notice] = field(factory=list, init=False)
    _ticked: float = field(default=0.0, init=False)

    def __attrs_post_init__(self) -> None:
        self._group = WorkerGroup(self.operator.shards, self.operator.workers, PATIENCE)
        self._transport = self.operator.connect()

    def __enter__(self) -> ClusterProbe:
        try:
            self._transport.start(self.blueprint, self.operator.workers)
            self._tell(Resize(self.operator.workers))
        except BaseException:
            self._transport.close()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        try:
            self._tell(Dismiss())
        finally:
            self._transport.close()

    def describe(self) -> list[WorkerReport]:
        """Return what each worker has; clocks are compared with the middle of the time in which it answers."""
        position = self._group.commit.position
        self._advance(position, {})
        deadline = time.monotonic() + PATIENCE
        while not self._group.computing:
            if time.monotonic() > deadline:
                raise SigmaTrainingError(_describe_missing(len(self._group.joined), self.operator.workers))
            self._turn()
        began = time.time()
        facts = self._await()
        now = time.time()
        return [self._report(*each, began, now) for each in zip(self._group.members, facts, strict=True)]

    def _report(self, number: int, facts: WorkerFacts, began: float, now: float) -> WorkerReport:
        own = self.blueprint.plugins
        missing = [f"{name} is not installed" for name in own if name not in facts.plugins]
        clock, accuracy = facts.clock - (began + now) / 2, (now - began) / 2
        others = [*missing, *differences(own, facts.plugins)]
        return WorkerReport(number, facts.host, facts.process, facts.cpus, clock, accuracy, others, facts.reads_folder)

    def time_sums(self, length: int) -> list[float]:
        """Return the seconds that each of some sums took, by the slowest worker."""
        begin = self._group.commit.position
        self._advance(evolve(begin, iteration=begin.iteration + TIMES), {LENGTH: length})
        return [max(seconds) for seconds in zip(*self._await(), strict=True)]

    # -- the group -----------------------------------------------------------------------------------------------------
    def _advance(self, end: Position, live: dict[str, Any]) -> None:
        begin = self._group.commit.position
        end = evolve(end, version=begin.version + 1) if end == begin else end
        self._tell(Advance(begin, end, live))

    def _await(self) -> Sequence[Any]:
        """Return what the workers report of a burst."""
        while True:
            for notice in self._notices:
                if notice.kind == "committed":
                    self._notices.clear()
                    return notice.records  # type: ignore[no-any-return]
            self._turn()

    def _turn(self) -> None:
        """Tell the group what has arrived, and the time; raise SigmaTrainingError if a worker is lost or has failed."""
        for event in self._transport.events(WAIT):
            self._tell(event)
        if (now := time.monotonic()) > self._ticked + TICK:
            self._ticked = now
            self._tell(Tick(now))
        for notice in self._notices:
            if notice.kind in ("lost", "failed"):
                raise SigmaTrainingError(f"worker {notice.worker}: {notice.text.strip()}")

    def _tell(self, event: GroupEvent) -> None:
        outputs = self._group.on(event)
        self._transport.send([output for output in outputs if not isinstance(output, Notice)])
        self._notices.extend(output for output in outputs if isinstance(output, Notice))


def _describe_missing(started: int, wanted: int) -> str:
    return (
        f"{started} of {wanted} workers have started within {PATIENCE:g} s: start the others, or set fewer as `workers`"
        " of the operator."
    )
