"""Saving in the background, and retention."""

from __future__ import annotations

import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sigma_kernel.clock import every
from sigma_kernel.contracts import Hook, HookContext
from sigma_kernel.contracts.storing import Checkpoint, Retention
from sigma_kernel.errors import SigmaCheckpointError, SigmaConfigError
from sigma_store.checkpoints import store as checkpoint, writer
from sigma_store.checkpoints.writer import Saver
from sigma_store.run_folder import FolderRun, FolderStore

KEYS = ("clock", "cursor", "live", "hooks", "streams", "published")  # of the values of a state tree


def stored(run: Path) -> FolderRun:
    return FolderStore().open(run, pytest.fail, lambda run: None)


def state(number: int, **about: Any) -> Checkpoint:
    return Checkpoint({"x": np.full(3, number)}, {"number": number}, **about)


def keeping(home: Path, **policy: Any) -> Saver:
    return Saver(home, pytest.fail, retention=Retention(**policy))


def numbers(home: Path) -> list[int]:
    return [int(path.name) for path in checkpoint.numbered_entries(home)]


class Disk:
    """A disk that blocks until it is released, and records writes with their threads."""

    def __init__(self) -> None:
        self.free, self.begun = threading.Event(), threading.Semaphore(0)
        self.wrote: list[int] = []
        self.threads: set[threading.Thread] = set()
        self.failure: Exception | None = None

    def write(self, folder: Path, state: Checkpoint, *given: Any) -> Path:
        self.begun.release()
        assert self.free.wait(30)
        self.threads.add(threading.current_thread())
        if self.failure is not None:
            raise self.failure
        self.wrote.append(int(folder.name))
        return checkpoint.write(folder, state, *given)


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Iterator[Disk]:
    disk = Disk()
    monkeypatch.setattr(writer, "write", disk.write)
    yield disk
    disk.free.set()


# -- in the background -------------------------------------------------------------------------------------------------
def test_saving_does_not_wait_for_the_disk(tmp_path: Path, disk: Disk) -> None:
    saver = Saver(tmp_path, pytest.fail)
    assert saver.save(1, state(1)) == tmp_path / "1"
    assert disk.begun.acquire(timeout=30)
    assert not disk.wrote
    disk.free.set()
    saver.flush()
    assert disk.wrote == [1]
    assert threading.current_thread() not in disk.threads
    assert checkpoint.read(tmp_path / "1").values == {"number": 1}


def test_a_queued_snapshot_is_replaced_by_a_newer_one(tmp_path: Path, disk: Disk) -> None:
    saver = Saver(tmp_path, pytest.fail)
    saver.save(1, state(1))
    assert disk.begun.acquire(timeout=30)
    for number in (2, 3, 4):
        saver.save(number, state(number))
    disk.free.set()
    saver.flush()
    assert disk.wrote == [1, 4]


@pytest.mark.parametrize("about", [{"keep": True}, {"score": 0.9}])
def test_a_queued_snapshot_marked_to_keep_is_written_first(tmp_path: Path, disk: Disk, about: dict[str, Any]) -> None:
    saver = keeping(tmp_path, last=5, best=1)
    saver.save(1, state(1, score=0.5))
    assert disk.begun.acquire(timeout=30)
    saver.save(2, state(2, **about))
    third = threading.Thread(target=saver.save, args=(3, state(3, score=0.1)))
    third.start()
    third.join(0.1)
    assert third.is_alive()  # it waits for its turn
    disk.free.set()
    third.join(30)
    saver.flush()
    assert disk.wrote == [1, 2, 3]


def test_leaving_the_environment_without_waiting_loses_no_checkpoint(tmp_path: Path) -> None:
    script = (
        "import sys, numpy as np; from pathlib import Path\n"
        "from sigma_store.checkpoints.writer import Saver\n"
        "from sigma_kernel.contracts.storing import Checkpoint\n"
        "saver = Saver(Path(sys.argv[1]), sys.exit)\n"
        "for n in range(3): saver.save(n, Checkpoint({'x': np.full(1_000_000, n)}, {'number': n}))\n"
    )
    done = subprocess.run([sys.executable, "-c", script, tmp_path], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    assert checkpoint.read(tmp_path / "2").values == {"number": 2}


def test_waiting_without_pending_work_returns_at_once(tmp_path: Path) -> None:
    Saver(tmp_path, pytest.fail).flush()


# -- errors ------------------------------------------------------------------------------------------------------------
def test_a_full_disk_raises_an_alarm_and_the_next_save_works_once_there_is_space(tmp_path: Path, disk: Disk) -> None:
    told: list[str] = []
    saver = Saver(tmp_path, told.append, retention=Retention(last=1))
    disk.free.set()
    saver.save(1, state(1))
    saver.flush()
    disk.failure = SigmaCheckpointError("2: cannot be written: No space left on device.")
    saver.save(2, state(2))
    with pytest.raises(SigmaCheckpointError, match="No space left on device"):
        saver.flush()
    assert told == [
        "ALARM: checkpoint 2: 2: cannot be written: No space left on device. Training continues; "
        "later failures are counted."
    ]
    assert numbers(tmp_path) == [1]
    disk.failure = None
    saver.save(3, state(3))
    saver.flush()
    assert numbers(tmp_path) == [3]
    assert told[1:] == ["checkpoint 3: written; 1 before it failed."]


def test_an_alarm_that_cannot_be_printed_does_not_hang_training(tmp_path: Path, disk: Disk) -> None:
    def tell(text: str) -> None:
        if "ALARM" in text:
            raise BrokenPipeError("nobody listens")

    saver = Saver(tmp_path, tell)
    disk.free.set()
    disk.failure = MemoryError("no room")
    saver.save(1, state(1))
    with pytest.raises(SigmaCheckpointError, match="no room"):
        saver.flush()
    disk.failure = None
    saver.save(2, state(2))
    saver.flush()
    assert numbers(tmp_path) == [2]


def test_a_checkpoint_that_cannot_be_removed_is_reported_and_saving_continues(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(folder: Path, run: Any) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(writer, "remove", refuse)
    told: list[str] = []
    saver = Saver(tmp_path, told.append, retention=Retention(last=1))
    save_all(saver, [(1, {}), (2, {})])
    assert numbers(tmp_path) == [1, 2]
    assert "checkpoint 1: cannot be removed: [Errno 13] Permission denied" in told[0]


def test_an_error_of_the_thread_that_nobody_expects_is_raised_at_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(home: Path) -> list[Path]:
        raise SigmaCheckpointError(f"{home}: cannot be read: Permission denied. Make it readable.")

    monkeypatch.setattr(writer, "numbered_entries", refuse)
    saver = keeping(tmp_path, last=1)
    saver.save(1, state(1))
    with pytest.raises(SigmaCheckpointError, match="cannot be read: Permission denied"):
        saver.flush()
    assert checkpoint.read(tmp_path / "1").values == {"number": 1}


# -- a branch that is left ---------------------------------------------------------------------------------------------
def test_checkpoints_of_an_abandoned_branch_are_set_aside_intact(tmp_path: Path) -> None:
    saver = Saver(tmp_path, pytest.fail)
    save_all(saver, [(n, {}) for n in (3, 5, 8, 13)])
    saver.set_aside(5, 0)
    assert numbers(tmp_path) == [3, 5]
    assert {path.name for path in tmp_path.iterdir()} == {"3", "5", "8.branch-0", "13.branch-0"}
    assert checkpoint.read(tmp_path / "13.branch-0").values == {"number": 13}
    save_all(saver, [(8, {})])  # on the new branch
    saver.set_aside(5, 1)
    assert {path.name for path in tmp_path.iterdir()} == {"3", "5", "8.branch-0", "13.branch-0", "8.branch-1"}


def test_a_rewind_waits_for_checkpoints_being_written_on_the_abandoned_branch(tmp_path: Path, disk: Disk) -> None:
    saver = Saver(tmp_path, pytest.fail)
    saver.save(8, state(8))
    leaving = threading.Thread(target=saver.set_aside, args=(5, 0))
    leaving.start()
    leaving.join(0.1)
    assert leaving.is_alive()
    disk.free.set()
    leaving.join(30)
    assert [path.name for path in tmp_path.iterdir()] == ["8.branch-0"]


def test_checkpoints_set_aside_are_neither_counted_nor_removed(tmp_path: Path) -> None:
    saver = keeping(tmp_path, last=1, best=1)
    save_all(saver, [(1, {"score": 0.1}), (2, {"score": 0.9})])
    saver.set_aside(1, 0)
    save_all(saver, [(3, {"score": 0.5}), (4, {"score": 0.2})])
    assert {path.name for path in tmp_path.iterdir()} == {"2.branch-0", "3", "4"}


def test_a_checkpoint_that_cannot_be_set_aside_raises_an_alarm_with_a_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: Path, target: Path) -> None:
        raise PermissionError(13, "Permission denied")

    told: list[str] = []
    saver = Saver(tmp_path, told.append)
    save_all(saver, [(1, {}), (2, {}), (3, {})])
    monkeypatch.setattr(Path, "rename", refuse)
    saver.set_aside(1, 0)
    assert [text.partition(":")[0] for text in told] == ["ALARM"] * 2
    assert "checkpoint 2 cannot be set aside: [Errno 13] Permission denied. Remove it by hand" in told[0]
    assert "checkpoint 3 cannot be set aside" in told[1]


# -- retention ---------------------------------------------------------------------------------------------------------
def save_all(saver: Saver, all_of_them: list[tuple[int, dict[str, Any]]]) -> None:
    for number, about in all_of_them:
        saver.save(number, state(number, **about))
        saver.flush()


def test_all_checkpoints_are_kept_by_default(tmp_path: Path) -> None:
    save_all(Saver(tmp_path, pytest.fail), [(n, {}) for n in range(1, 7)])
    assert numbers(tmp_path) == [1, 2, 3, 4, 5, 6]


@pytest.mark.parametrize(
    ("policy", "kept"),
    [
        ({"last": 2}, [5, 6]),
        ({"last": 1, "best": 1}, [2, 6]),  # the earlier of equal ones
        ({"last": 1, "best": 2}, [2, 4, 6]),
        ({"last": 1, "best": 1, "prefer": "least"}, [1, 6]),
        ({"last": 2, "best": 3}, [2, 3, 4, 5, 6]),
    ],
)
def test_the_last_and_the_best_are_kept(tmp_path: Path, policy: dict[str, Any], kept: list[int]) -> None:
    scores = [0.1, 0.9, 0.4, 0.9, float("nan"), None]
    save_all(
        keeping(tmp_path, **policy),
        [(n, {"score": score}) for n, score in enumerate(scores, 1)],
    )
    assert numbers(tmp_path) == kept


def test_checkpoints_marked_to_keep_are_kept(tmp_path: Path) -> None:
    save_all(keeping(tmp_path, last=1), [(1, {"keep": True}), (2, {}), (3, {})])
    assert numbers(tmp_path) == [1, 3]


def test_a_new_writer_knows_the_best_checkpoints_from_the_files(tmp_path: Path) -> None:
    save_all(keeping(tmp_path, last=1, best=1), [(1, {"score": 0.9}), (2, {"score": 0.1})])
    save_all(keeping(tmp_path, last=1, best=1), [(3, {"score": 0.5}), (4, {})])
    assert numbers(tmp_path) == [1, 4]


def test_a_checkpoint_saved_again_has_its_new_score(tmp_path: Path) -> None:
    again = [(1, {"score": 0.9}), (2, {"score": 0.5}), (1, {"score": 0.1}), (3, {})]
    save_all(keeping(tmp_path, last=1, best=1), again)
    assert numbers(tmp_path) == [2, 3]


def test_a_damaged_checkpoint_is_neither_used_nor_counted(tmp_path: Path) -> None:
    save_all(Saver(tmp_path, pytest.fail), [(1, {"score": 0.9}), (2, {"score": 0.8})])
    (tmp_path / "1" / checkpoint.MANIFEST).write_text("{}")
    save_all(keeping(tmp_path, last=1, best=1), [(3, {})])
    assert numbers(tmp_path) == [2, 3]


def test_an_older_checkpoint_is_deleted_only_once_the_newer_one_is_complete(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def remove(folder: Path, run: Any) -> None:
        assert checkpoint.read(folder.with_name("2")).values == {"number": 2}
        gone.append(folder.name)

    gone: list[str] = []
    monkeypatch.setattr(writer, "remove", remove)
    save_all(keeping(tmp_path, last=1), [(1, {}), (2, {})])
    assert gone == ["1"]


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        ({"last": 0}, "Retention.last: must be at least 1 (got 0)."),
        ({"best": -1}, "Retention.best: must be at least 0 (got -1)."),
        ({"prefer": "largest"}, "Retention.prefer: must be 'greatest' or 'least' (got 'largest')."),
    ],
)
def test_an_invalid_retention_policy_is_refused(tmp_path: Path, policy: dict[str, Any], message: str) -> None:
    class Keeps(Hook):
        retains = policy

        def fire(self, context: HookContext) -> None: ...

    with pytest.raises(SigmaConfigError, match=re.escape(message)):
        Saver(tmp_path, pytest.fail).retain([Keeps(every=every(1, "epoch"))], pytest.fail)
