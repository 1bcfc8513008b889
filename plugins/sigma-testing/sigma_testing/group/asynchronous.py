"""Groups that train asynchronously: workers compute iterations ahead of the sums that they have taken.

Bits depend on time here. So each burst that is committed is computed once more, from the ages of its shards alone, by
one loop: it differs if a shard was applied twice, not at all or elsewhere, or if an age is not what was shown.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from attrs import define, evolve, field, frozen

from sigma_kernel.contracts.grouping import Commit, ComputeOrder, Position
from sigma_testing.group.reference import Digest, ReferenceRun, digest, next_state, total
from sigma_testing.group.schedules import draw_schedule
from sigma_testing.group.simulation import GroupSimulation, missing_peers, report
from sigma_testing.group.workers import RunningBurst, SimulatedWorker
from sigma_training.group.asynchronous import SumWindow
from sigma_training.group.group import WorkerGroup
from sigma_training.group.member import GroupMember

FINITE = 23  # one loss of so many is not finite


def is_finite(summed: int) -> bool:
    """Return whether the loss of an iteration is finite."""
    return summed % FINITE != 0


@frozen
class AgedRun(ReferenceRun):
    """The states that follow from the ages of shards, by commit."""

    known: dict[Commit, int] = field(factory=dict, init=False)
    ages: dict[tuple[int, int, int], int] = field(factory=dict, init=False)  # by generation, iteration and shard
    origins: dict[tuple[int, int], Commit] = field(factory=dict, init=False)  # of bursts, by generation and iteration

    def note(self, order: ComputeOrder, worker: int, n: int, age: int) -> None:
        """Note how many updates the shards of a worker lack in an iteration."""
        self.origins[order.generation, n] = order.commit
        self.ages.update({(order.generation, n, shard): age for shard in order.shards[worker]})

    def measure(self, order: ComputeOrder) -> None:
        """Note that a burst leaves the state as it is."""
        self.known[Commit(order.end, order.generation)] = self.known[order.commit]

    def state_of(self, commit: Commit) -> int:
        """Return the state of a commit, which is computed from the one before it."""
        if commit not in self.known:
            self.known[commit] = self._compute(commit.generation, commit.position.iteration)
        return self.known[commit]

    def _compute(self, generation: int, end: int) -> int:
        origin = self.origins[generation, end - 1]
        begin, states = origin.position.iteration, [self.known[origin]]
        rate = self.live(begin)["rate"]
        for n in range(begin, end):
            ages = [self.ages[generation, n, shard] for shard in range(self.schedule.shards)]
            digests = [digest(states[n - begin - age], n, rate, shard).value for shard, age in enumerate(ages)]
            states.append(next_state(states[-1], self.position(n), total(digests)))
        return states[-1]

    def end(self, begin: Position, draw: Random) -> Position:
        """Return the end of a burst, often beyond the window of a worker; some bursts only measure the state."""
        if draw.random() < 0.15:
            return evolve(begin, version=begin.version + 1)
        longest = 8 if self.schedule.workers <= 8 else 3  # of many workers that lose messages, one is lost in the midst
        end = self.position(min(begin.iteration + draw.randint(1, longest), self.schedule.steps))
        return evolve(end, version=begin.version)

    def places(self, most: int) -> Sequence[int]:
        """Return the numbers of iterations, up to one, after which a state is known."""
        return sorted({commit.position.iteration for commit in self.known if commit.position.iteration <= most})

    def go_back(self, commit: Commit) -> int:
        """Return a state after as many iterations, from now on that of this commit."""
        there = (state for other, state in self.known.items() if other.position.iteration == commit.position.iteration)
        return self.known.setdefault(commit, next(there, self.states[0]))


@define(eq=False)
class AheadRun:
    """What a worker has computed of a burst: how far it is, and the shards that it shows in their turn."""

    window: SumWindow
    shown: dict[int, dict[int, Digest]] = field(factory=dict, init=False)  # by iteration
    end: int | None = field(default=None, init=False)  # after a loss that is not finite

    def stop(self, end: int) -> None:
        """End after an iteration whose loss is not finite."""
        self.end = end
        self.window.close()


@define(eq=False)
class AsynchronousSimulation(GroupSimulation):
    """One schedule of a group whose workers compute ahead of the sums that they have taken."""

    staleness: int = 4
    reference: AgedRun = field(init=False)
    ahead: dict[RunningBurst, AheadRun] = field(factory=dict, init=False)

    def _make_reference(self) -> AgedRun:
        return AgedRun(self.schedule)

    def _post(self, worker: SimulatedWorker, run: RunningBurst) -> None:
        """Show the shards of a worker for the iteration whose sum it takes next."""
        fails = run.at == self.schedule.error and worker.number == 0
        if worker.frozen or not worker.alive or worker.run is not run or fails:
            super()._post(worker, run)
            return
        begin = run.order.commit.position.iteration
        if run.order.end.iteration == begin:
            self.reference.measure(run.order)
            super()._post(worker, run)
            return
        if run not in self.ahead:
            self.ahead[run] = AheadRun(SumWindow(run.order.end.iteration - begin, self.staleness))
            self.network.call_soon(self._look_ahead, worker, run)
        if run.at not in self.ahead[run].shown:
            self._compute(worker, run)
        self.network.carry(self._show, worker.number, run.order, run.at, self.ahead[run].shown[run.at])

    def _look_ahead(self, worker: SimulatedWorker, run: RunningBurst) -> None:
        """Compute the next iteration, if it may be; then, later, the one after it."""
        if worker.frozen:
            worker.inbox.append((self._look_ahead, (worker, run)))
        elif worker.alive and worker.run is run:
            if not self.ahead[run].window.waits:
                self._compute(worker, run)
            self.network.call_soon(self._look_ahead, worker, run)

    def _compute(self, worker: SimulatedWorker, run: RunningBurst) -> None:
        ahead, order = self.ahead[run], run.order
        offset, age = ahead.window.compute()
        n = order.commit.position.iteration + offset
        self.checks.expect(0 <= age <= self.staleness, f"worker {worker.number} lacks {age} updates")
        if ahead.end is None:
            self.reference.note(order, worker.number, n, age)
        ahead.shown[n] = {i: digest(run.state, n, order.live["rate"], i) for i in order.shards[worker.number]}

    def _update(self, worker: SimulatedWorker, run: RunningBurst, n: int, summed: int) -> None:
        """Let a worker that sees all shards of an iteration take the sum, and go on with the next one."""
        if worker.frozen:
            worker.inbox.append((self._update, (worker, run, n, summed)))
            return
        if not worker.alive or worker.run is not run or run.at != n or missing_peers(self.network, worker.number, run):
            return
        ahead, run.at = self.ahead[run], n + 1
        ahead.window.take()
        if ahead.end is None:
            run.state = next_state(run.state, self.reference.position(n), summed)
            if not is_finite(summed):
                ahead.stop(run.at)
        if not ahead.window.is_over:
            self.network.call_soon(self._post, worker, run)
            return
        del self.ahead[run]
        end = run.order.end
        if ahead.end is not None:  # the version keeps sums of the burst apart from those of the next one
            end = evolve(self.reference.position(ahead.end), version=run.order.commit.position.version + 1)
        report(self, worker, RunningBurst(evolve(run.order, end=end), run.at, run.state), {})


def simulate_asynchronous_group(seed: int, staleness: int = 4) -> int:
    """Simulate the schedule of a seed, with workers that may be ahead; return the number of events of the group.

    Raises InvariantError, with the last events, if an invariant does not hold.
    """
    schedule = draw_schedule(seed)
    group = WorkerGroup(schedule.shards, schedule.at_least, schedule.lost_after)
    return AsynchronousSimulation(schedule, group, GroupMember, staleness).run()
