"""The lock of a run folder: one process writes to it, and nobody who may only read it can keep that process out."""

from __future__ import annotations

import fcntl
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from sigma_kernel.errors import SigmaStateError
from sigma_store.folders import LOCK, WrittenFolder, is_locked
from sigma_store.run_folder import create, lock
from sigma_testing.steering import steered_environment


@contextmanager
def locked_by_a_reader(path: Path, kind: int = fcntl.LOCK_EX) -> Iterator[None]:
    """Lock a folder or a file that was opened for reading, as every user who may read it can."""
    handle = os.open(path, os.O_RDONLY)
    try:
        fcntl.flock(handle, kind | fcntl.LOCK_NB)
        yield
    finally:
        os.close(handle)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize("kind", [fcntl.LOCK_EX, fcntl.LOCK_SH])
def test_a_reader_who_locks_the_folder_does_not_hinder_a_run(tmp_path: Path, kind: int) -> None:
    with steered_environment(last=4) as sigma:
        sigma.folder = tmp_path
        sigma.run()
    run = sigma.run_folder
    assert run is not None
    with locked_by_a_reader(run, kind), steered_environment(last=6) as again:
        again.resume(run)
        assert again.run().iterations == 6


def test_only_the_owner_can_open_the_lock_file_of_a_new_run(tmp_path: Path) -> None:
    run = create(tmp_path, "run").path
    assert mode(run / LOCK) == 0o600
    with locked_by_a_reader(run), lock(WrittenFolder(run)):
        assert is_locked(run)
    assert not is_locked(run)


def test_a_lock_file_that_lost_its_mode_is_closed_to_others_again(tmp_path: Path) -> None:
    (tmp_path / LOCK).touch()
    (tmp_path / LOCK).chmod(0o644)
    lock(WrittenFolder(tmp_path)).close()
    assert mode(tmp_path / LOCK) == 0o600


@pytest.mark.parametrize("old", [False, True])
def test_a_run_folder_is_written_by_one_process(tmp_path: Path, old: bool) -> None:
    """A version without lock files locks the folder; no file says that it is new."""
    first = locked_by_a_reader(tmp_path) if old else lock(WrittenFolder(tmp_path))
    with first:
        assert is_locked(tmp_path)
        for _ in range(2):  # a refusal must not look like a new version to the next one
            with pytest.raises(SigmaStateError, match="another run writes to it. Wait for its end"):
                lock(WrittenFolder(tmp_path))
    lock(WrittenFolder(tmp_path)).close()


def test_a_version_without_lock_files_stays_out_of_a_run_of_this_one(tmp_path: Path) -> None:
    handle = os.open(tmp_path, os.O_RDONLY)
    with lock(WrittenFolder(tmp_path)), pytest.raises(BlockingIOError):
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    os.close(handle)


def test_whoever_cannot_open_the_lock_file_sees_by_the_folder_that_a_run_goes_on(tmp_path: Path) -> None:
    (tmp_path / LOCK).symlink_to("somewhere")  # cannot be opened either
    with locked_by_a_reader(tmp_path):
        assert is_locked(tmp_path)
    assert not is_locked(tmp_path)


STRANGE: dict[str, Callable[[Path], Any]] = {
    "link": lambda path: path.symlink_to(path.with_name("outside")),
    "pipe": os.mkfifo,
    "directory": Path.mkdir,
}


@pytest.mark.parametrize("what", list(STRANGE))
def test_a_lock_file_that_is_no_file_is_refused_without_following_it(tmp_path: Path, what: str) -> None:
    STRANGE[what](tmp_path / LOCK)
    with pytest.raises(SigmaStateError, match=r"\.lock: cannot be opened to lock the run: .*, remove this file\."):
        lock(WrittenFolder(tmp_path))
    assert not (tmp_path / "outside").exists()
