"""Conformance suite for transports, which it reaches through their operators, to inherit in a plugin's tests.

::

    class TestProcesses(TransportSuite):
        def make(self) -> GroupOperator:
            return ProcessesOperator()

It trains a few arrays by real workers, and compares the bits with those of one loop without workers.
"""

from __future__ import annotations

import pickle
import signal
import subprocess
import sys
import time
from abc import abstractmethod
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve

from sigma_kernel.contracts import Commit, GroupOperator, Position, Resize
from sigma_testing.suite import Suite
from sigma_testing.transports.driving import ToyRun, same_bits, wait_until_ended
from sigma_testing.transports.toy import Arrays, ToyBlueprint

GONE_WITHIN = 5.0  # seconds after the operator's death


class TransportSuite(Suite):
    """Conformance tests of a transport: inherit, and override :meth:`make`.

    Workers are processes of this machine; where they are not, override :meth:`kill`, :meth:`freeze` and :meth:`thaw`.
    If a process outlives its worker, override :meth:`list_working`; if a command of the engine starts that of the
    operator, :meth:`command` and :meth:`kill_operator`.
    """

    @abstractmethod
    def make(self) -> GroupOperator:
        """Return the operator under test, with any settings; tests set ``workers``, ``shards`` and ``lost_after``."""

    def use(self) -> None:
        """Make the operator, and connect it once."""
        self.make().connect().close()

    def kill(self, run: ToyRun, worker: int) -> None:
        """End a worker without warning."""
        run.signal(worker, signal.SIGKILL)

    def freeze(self, run: ToyRun, worker: int) -> None:
        """Suspend a worker."""
        run.signal(worker, signal.SIGSTOP)

    def thaw(self, run: ToyRun, worker: int) -> None:
        """Let a worker go on that was suspended."""
        run.signal(worker, signal.SIGCONT)

    def list_working(self, run: ToyRun, workers: Sequence[int], seconds: float) -> Sequence[int]:
        """Return those of some workers, or of their processes, that still work after so many seconds."""
        return wait_until_ended([run.blueprint.process(worker) for worker in workers], seconds)

    def command(self, code: str) -> list[str]:
        """Return the command that runs Python code in a process which can be an operator."""
        return [sys.executable, "-c", code]

    def kill_operator(self, process: subprocess.Popen[bytes]) -> None:
        """End the operator that a command has started, without warning."""
        process.kill()

    def begin(self, folder: Path, workers: int, lost_after: float = 5.0, repeats: int = 1, **toy: Any) -> ToyRun:
        """Return a run with so many workers, which a ``with`` block starts and ends."""
        blueprint = ToyBlueprint(str(folder), **toy)
        operator = evolve(self.make(), workers=workers, shards=blueprint.shards, lost_after=lost_after)
        return ToyRun(operator, blueprint, repeats)

    def expect(self, run: ToyRun, train: Callable[[], Arrays]) -> None:
        """Fail unless the committed state is the one that ``train`` returns."""
        state, expected = run.state(), train()
        wrong = [name for name, value in expected.items() if not same_bits({name: value}, {name: state[name]})]
        assert not wrong, f"{', '.join(wrong)} differ from the bits of one loop without workers."

    # -- sums ----------------------------------------------------------------------------------------------------------
    @pytest.mark.parametrize("workers", [1, 2, 3, 4])
    def test_any_number_of_workers_gives_the_same_bits(self, workers: int, tmp_path: Path) -> None:
        """Add the vectors of all shards in the order of merge_in_tree, and pass on notes in the order of shards."""
        with self.begin(tmp_path, workers) as run:
            run.advance(30)
            self.expect(run, lambda: run.blueprint.train(30))

    @pytest.mark.parametrize("shards", [3, 5])
    def test_numbers_of_shards_that_do_not_divide_give_the_same_bits(self, shards: int, tmp_path: Path) -> None:
        """Keep to merge_in_tree, whose last part may have no neighbour."""
        with self.begin(tmp_path, 3, shards=shards, length=100_001) as run:
            run.advance(12)
            self.expect(run, lambda: run.blueprint.train(12))

    @pytest.mark.parametrize("length", [0, 1, 2])
    def test_vectors_may_be_shorter_than_the_number_of_workers(self, length: int, tmp_path: Path) -> None:
        """Add vectors of a few numbers, or of none."""
        with self.begin(tmp_path, 3, length=length) as run:
            run.advance(12)
            self.expect(run, lambda: run.blueprint.train(12))

    @pytest.mark.parametrize("length", [1000, 70_001])
    def test_notes_have_any_length(self, length: int, tmp_path: Path) -> None:
        """Pass on notes of any length as they are, beside vectors of any length."""
        with self.begin(tmp_path, 2, note=300_000, length=length) as run:
            run.advance(6)
            self.expect(run, lambda: run.blueprint.train(6))
        with self.begin(tmp_path, 2, note=0, length=length) as run:
            run.advance(6)
            self.expect(run, lambda: run.blueprint.train(6))

    def test_live_values_act_in_their_burst(self, tmp_path: Path) -> None:
        """Carry the live values of an order."""
        with self.begin(tmp_path, 2) as run:
            run.advance(7)
            run.advance(7, rate=0.5)
            state = run.blueprint.train(7)
            self.expect(run, lambda: run.blueprint.train(7, state, Position(0, 7), rate=0.5))

    # -- messages ------------------------------------------------------------------------------------------------------
    def test_orders_may_be_doubled(self, tmp_path: Path) -> None:
        """Carry repeated orders, and start the worker of a repeated StartOrder once."""
        with self.begin(tmp_path, 3, repeats=3) as run:
            run.advance(21)
            self.expect(run, lambda: run.blueprint.train(21))
            assert not run.count("lost"), "workers were lost."

    def test_an_error_in_a_worker_ends_the_run_with_its_traceback(self, tmp_path: Path) -> None:
        """Carry WorkerFailed, and what came before it."""
        with self.begin(tmp_path, 2, fails_at=9) as run:
            run.advance(9)
            run.begin(3)
            run.turn_until(lambda: bool(run.count("failed")), "failed")
            [failure] = run.count("failed")
            first = int(run.count("generation")[-1].text.split(", ")[0])  # the member that has the first shard
            assert failure.worker == first, "the wrong worker has failed."
            assert "ValueError: iteration 9 is not liked" in failure.text, f"its text is {failure.text!r}."

    # -- states --------------------------------------------------------------------------------------------------------
    def test_large_states_are_sent_and_copied(self, tmp_path: Path) -> None:
        """Carry states of many megabytes to the operator and between workers, without losing workers."""
        with self.begin(tmp_path, 1, length=3_000_000, lost_after=3.0) as run:
            run.advance(2, burst=1)
            self.expect(run, lambda: run.blueprint.train(2))
            run.tell(Resize(2))
            run.wait_for(2)
            run.advance(2, burst=1)
            self.expect(run, lambda: run.blueprint.train(4))

    def test_workers_join_with_the_state_of_others(self, tmp_path: Path) -> None:
        """Start workers while others train, and give them the state of their donor."""
        with self.begin(tmp_path, 1) as run:
            run.advance(10)
            run.tell(Resize(3))
            run.wait_for(3)
            run.advance(10)
            run.tell(Resize(2))
            run.wait_for(2)
            run.advance(10)
            self.expect(run, lambda: run.blueprint.train(30))
            assert {notice.worker for notice in run.count("joined")} == {0, 1, 2}, "others have joined."

    def test_the_operator_may_replace_the_state(self, tmp_path: Path) -> None:
        """Give workers the state that the operator provides."""
        with self.begin(tmp_path, 2) as run:
            run.advance(5)
            other = {name: 2 * value for name, value in run.state().items()}
            run.replace(other)
            run.advance(5)
            self.expect(run, lambda: run.blueprint.train(5, other, Position(0, 5, 1)))

    # -- faults --------------------------------------------------------------------------------------------------------
    @pytest.mark.parametrize("length", [1000, 70_001])
    def test_a_worker_that_is_killed_changes_no_bits(self, length: int, tmp_path: Path) -> None:
        """Report the end of a process at once, and let the others go on from the committed state."""
        with self.begin(tmp_path, 3, seconds=0.005, length=length) as run:
            run.wait_for(3)
            run.advance(10)
            run.begin(20)
            run.turn(0.03)
            self.kill(run, 1)
            began = time.monotonic()
            run.turn_until(lambda: bool(run.count("lost")), "lost")
            assert time.monotonic() - began < 1.0, "the loss is noticed after a second only."
            run.turn_until(lambda: run.group.burst is None, "committed")
            self.expect(run, lambda: run.blueprint.train(30))
            assert [notice.worker for notice in run.count("lost")] == [1], "the wrong worker was lost."

    def test_all_workers_may_be_killed_and_others_started(self, tmp_path: Path) -> None:
        """Go back to the state that the operator holds."""
        with self.begin(tmp_path, 2, seconds=0.005) as run:
            run.wait_for(2)
            run.advance(10)
            run.state()
            run.begin(20)
            for worker in (0, 1):
                self.kill(run, worker)
            run.turn_until(lambda: not run.group.roster, "the loss of all")
            run.tell(Resize(2))
            run.wait_for(2)
            run.advance(30 - run.group.commit.position.iteration)
            self.expect(run, lambda: run.blueprint.train(30))

    @pytest.mark.parametrize("length", [1000, 70_001])
    def test_a_worker_that_was_suspended_and_lost_changes_no_bits(self, length: int, tmp_path: Path) -> None:
        """Lose a worker that is silent; when it goes on, it reaches nobody, and ends."""
        with self.begin(tmp_path, 3, seconds=0.002, length=length, lost_after=0.6) as run:
            run.wait_for(3)
            run.advance(10)
            for worker in (2, 1):
                run.begin(20)
                run.turn(0.01)
                self.freeze(run, worker)
                run.turn_until(lambda: run.group.burst is None, "committed")
                run.begin(60)  # the next generation computes while the other goes on with its burst
                run.turn(0.02)
                self.thaw(run, worker)
                run.turn_until(lambda: run.group.burst is None, "committed")
            self.expect(run, lambda: run.blueprint.train(170))
            assert [notice.worker for notice in run.count("lost")] == [2, 1], "the wrong workers were lost."
            assert not self.list_working(run, (1, 2), GONE_WITHIN), "a worker that was lost goes on."

    def test_closing_ends_all_workers(self, tmp_path: Path) -> None:
        """End workers that compute, and suspended ones; allow a second call."""
        with self.begin(tmp_path, 3, seconds=0.01) as run:
            run.wait_for(3)
            run.begin(10_000)
            self.freeze(run, 0)
        run.transport.close()
        assert not self.list_working(run, range(3), 1.0), "workers run on after close()."

    def test_workers_end_after_the_operator(self, tmp_path: Path) -> None:
        """End all workers within 5 s of the death of the operator's process."""
        run = self.begin(tmp_path, 2, seconds=0.01)
        run.transport.close()
        (tmp_path / "operator").write_bytes(pickle.dumps((run.operator, run.blueprint)))
        code = f"from sigma_testing.transports.driving import drive; drive({str(tmp_path / 'operator')!r})"
        with subprocess.Popen(self.command(code), stdout=subprocess.PIPE) as operator:
            assert operator.stdout is not None
            assert operator.stdout.readline() == b"committed\n", "it does not train in a process of its own."
            self.kill_operator(operator)
        processes = [run.blueprint.process(worker) for worker in range(2)]
        assert not wait_until_ended(processes, GONE_WITHIN), "workers run on without their operator."

    def test_a_commit_that_nobody_holds_is_not_fetched(self, tmp_path: Path) -> None:
        """Let a worker wait for a state that the operator does not provide yet."""
        run = self.begin(tmp_path, 1)
        run.transport.provide(Commit(Position(0, 99)), lambda: pytest.fail("the state of another commit was asked for"))
        with run:
            run.turn_until(lambda: run.group.members == (0,), "a member")
            for _ in range(25):
                run.turn()
            assert not run.group.joined, "a worker has joined with the state of another commit."
            run.transport.provide(run.kept[0], lambda: run.kept[1])
            run.advance(5)
            self.expect(run, lambda: run.blueprint.train(5))
