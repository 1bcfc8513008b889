"""The hash chain of a journal: changes are detected, and missing lines are named or restored from a checkpoint."""

from __future__ import annotations

import json
import math
import os
import random
from collections.abc import Callable
from pathlib import Path
from threading import Event, Thread, current_thread
from typing import Any

import numpy as np
import pytest

from sigma_kernel.errors import SigmaCheckpointError
from sigma_kernel.plugins.catalogue import catalogue
from sigma_kernel.plugins.resolver import Resolver
from sigma_store import appending, chain, journal as journals
from sigma_store.checkpoints import store
from sigma_store.checkpoints.store import list_checkpoints, read_manifest
from sigma_store.journal import JournalFile, Lines
from sigma_testing.journals import read_journal
from sigma_testing.steering import Crash, crash, decisive, steered_environment, train_until_crash
from sigma_training.history import recorder, rewind
from sigma_training.history.replay import check_commands

HEAD = {"trainer": "a", "iteration": 1, "epoch": 0, "seconds": 0.5}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Return a journal with a few rows."""
    written = JournalFile(tmp_path / "journal.jsonl", configuration="0" * 64)
    for number in range(6):
        written.append({**HEAD, "command": "set", "pattern": f"rate.{number}", "value": number / 7})
    return tmp_path / "journal.jsonl"


# -- detection ---------------------------------------------------------------------------------------------------------
def test_every_changed_byte_is_detected(path: Path) -> None:
    good, draw = path.read_bytes(), random.Random(0)
    lines = [*chain.read(path, pytest.fail).lines()]
    for place in range(len(good)):
        data = bytearray(good)
        data[place] = draw.choice([byte for byte in range(256) if byte != good[place]])
        path.write_bytes(data)
        told: list[str] = []
        try:
            found = [*chain.read(path, told.append).lines()]
        except SigmaCheckpointError:
            continue
        assert place == len(good) - 1  # the end of the last line, which is then dropped
        assert found == lines[:-1]
        assert told == [f"{path}:7: incomplete, as after a crash: this last line is dropped"]


Change = Callable[[list[bytes]], list[bytes]]


@pytest.mark.parametrize(
    ("change", "line"),
    [
        (lambda rows: [*rows[:2], rows[3], rows[2], *rows[4:]], 3),
        (lambda rows: [*rows[:2], *rows[3:]], 3),
        (lambda rows: [*rows[:4], rows[3], *rows[4:]], 5),
        (lambda rows: [*rows, rows[-1]], 8),
        (lambda rows: [*rows[:-1], bytes(200) + b"\n"], 7),
        (lambda rows: [*rows[:3], rows[3].replace(b"0.2", b"0.3"), *rows[4:]], 4),
        (lambda rows: [rows[0].replace(b"000", b"001", 1), *rows[1:]], 1),
    ],
    ids=["exchanged", "missing", "twice", "last twice", "zeros", "digit", "configuration"],
)  # fmt: skip
def test_the_first_line_that_breaks_the_chain_is_reported_with_a_remedy(path: Path, change: Change, line: int) -> None:
    path.write_bytes(b"".join(change(path.read_bytes().splitlines(keepends=True))))
    with pytest.raises(
        SigmaCheckpointError, match=rf":{line}: does not follow from the lines before it: .* move it away"
    ):
        chain.read(path, pytest.fail)


def test_a_journal_with_a_line_that_does_not_end_is_refused_without_reading_it(path: Path) -> None:
    os.truncate(path, 1 << 40)  # a file with a hole: a tebibyte, and none of it on the disk
    with pytest.raises(SigmaCheckpointError, match=r"has a line of more than 268,435,456 bytes\. Restore it"):
        chain.read(path, pytest.fail)


@pytest.mark.parametrize("more", [b"{", b'{"trainer": "a", "it', bytes(500), b"\xff\xfe"])
def test_an_incomplete_last_line_is_dropped_and_reported(path: Path, more: bytes) -> None:
    lines = [*chain.read(path, pytest.fail).lines()]
    path.write_bytes(path.read_bytes() + more)
    told: list[str] = []
    assert [*chain.read(path, told.append).lines()] == lines
    assert told == [f"{path}:8: incomplete, as after a crash: this last line is dropped"]
    JournalFile(path).append({"a": 1})
    assert len([*chain.read(path, pytest.fail).lines()]) == 8


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "journal.jsonl: is empty. Restore the file from a copy, or move it away"),
        ('{"format', "is empty"),
        ('{"format": 1}\n{"trainer": "a"}\n', "has format 1, not 3 as this version reads. Use the sigma-kernel that"),
        ('{"format": 4}\n', "has format 4, not 3"),
        ("[]\n", "journal.jsonl:1: is not the first line of a journal"),
        ('{"format": 3, "lost": 3}\n', "journal.jsonl:1: is not the first line of a journal"),
        ('{"format": 3, "lost": {"a": [1]}}\n', "journal.jsonl:1: is not the first line of a journal"),
    ],
)
def test_a_journal_of_another_version_is_refused_in_one_sentence(path: Path, text: str, said: str) -> None:
    path.write_text(text)
    with pytest.raises(SigmaCheckpointError, match=said):
        chain.read(path, pytest.fail)


def test_concurrent_trainers_write_one_journal_chain(tmp_path: Path) -> None:
    shared = JournalFile(tmp_path / "journal.jsonl")

    def write(name: str) -> None:
        for number in range(200):
            shared.append({**HEAD, "trainer": name, "iteration": number, "command": "pause"})

    threads = [Thread(target=write, args=[name]) for name in "abc"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert shared.durable() is None
    part = chain.read(tmp_path / "journal.jsonl", pytest.fail)
    for name in "abc":
        rows = part.rows(name)
        assert [row["iteration"] for row in rows] == [row["place"] for row in rows] == [*range(200)]


# -- values ------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "value",
    [math.nan, math.inf, -math.inf, -0.0, 5e-324, 2**70, np.float32(0.1), np.int64(-3), [1.0, math.nan],
     np.array([[np.nan, -np.inf], [0.5, -0.0]], np.float32), {"a": [math.inf, {"b": "nan"}]}, True, None, "nan"],
    ids=repr,
)  # fmt: skip
def test_journal_rows_round_trip_and_are_strict_json(tmp_path: Path, value: Any) -> None:
    def refuse(text: str) -> Any:
        raise ValueError(text)

    path = tmp_path / "journal.jsonl"
    JournalFile(path).append({**HEAD, "command": "set", "pattern": "x", "value": value})
    (row,) = chain.read(path, pytest.fail).rows("a")
    np.testing.assert_equal(row["value"], value.item() if isinstance(value, np.generic) else value)
    if isinstance(value, np.ndarray):
        assert row["value"].tobytes() == value.tobytes()
    for line in path.read_text().splitlines():
        json.loads(line, parse_constant=refuse)


# -- checkpoints -------------------------------------------------------------------------------------------------------
def test_a_command_of_a_plugin_that_is_missing_leaves_the_journal_readable(path: Path) -> None:
    JournalFile(path).append({**HEAD, "command": "prune", "share": 0.5})
    rows = chain.read(path, pytest.fail).rows("a")
    assert rows[-1]["command"] == "prune"
    find = Resolver(catalogue())
    why = r"journal\.jsonl: iteration .*: command 'prune': no plugin offers it.*Install the plugin that offered this"
    with pytest.raises(SigmaCheckpointError, match=why):
        check_commands(rows, str(path), find)
    check_commands([{**row, "by": "hook"} for row in rows], str(path), find)  # these are compared, not applied


def _rate(value: float) -> Callable[[Any], Any]:
    return lambda sigma: sigma.set("trainer.optimiser.learning_rate", value)


PLAIN = {4: _rate(0.02), 6: _rate(0.2), 9: _rate(0.1)}
SCRIPT = {**PLAIN, 2: lambda s: s.send("save"), 7: lambda s: s.send("save")}


@pytest.mark.parametrize("lines", range(1, 6))
def test_lost_journal_lines_are_restored_from_a_checkpoint(tmp_path: Path, lines: int) -> None:
    with steered_environment({**SCRIPT, 8: crash}) as sigma:
        run = train_until_crash(sigma, tmp_path)
    path, wanted = run / "journal.jsonl", read_journal(run)
    head = read_manifest(list_checkpoints(run, "trainer")[-1])["chain"]["head"]
    there = path.read_text().splitlines(keepends=True)
    end = next(number for number, line in enumerate(there, 1) if head in line)
    path.write_text("".join(there[: end - lines]))
    said: list[str] = []
    with steered_environment({9: _rate(0.1)}) as again, steered_environment(PLAIN) as plain:
        again.resume(run, log=said.append)
        assert said == [f"{path}: has lost its last {lines} lines, which a checkpoint still holds: they are restored"]
        assert read_journal(run)[: end - 1] == wanted[: end - 1]
        again.run()
        plain.run()
        assert decisive(again.trainer("trainer")) == decisive(plain.trainer("trainer"))
    with steered_environment() as last:
        assert last.replay(run)[1] == {}


def test_a_journal_truncated_before_its_checkpoints_is_refused(tmp_path: Path) -> None:
    with steered_environment({**SCRIPT, 8: crash}) as sigma:
        run = train_until_crash(sigma, tmp_path)
    path = run / "journal.jsonl"
    for folder in list_checkpoints(run, "trainer")[:-1]:
        folder.rename(folder.with_name(f"{folder.name}.aside"))
    path.write_text("".join(path.read_text().splitlines(keepends=True)[:2]))
    before = path.read_bytes()
    for act in (lambda s: s.resume(run), lambda s: s.replay(run)):
        with (
            steered_environment() as again,
            pytest.raises(SigmaCheckpointError, match="is cut: it ends at line 2, and a checkpoint"),
        ):
            act(again)
    assert path.read_bytes() == before


def test_a_checkpoint_holds_only_the_journal_lines_since_the_previous_one(tmp_path: Path) -> None:
    with steered_environment({n: lambda s: s.send("save") for n in range(2, 11)}) as sigma:
        sigma.folder = tmp_path
        sigma.run()
        run = sigma.run_folder
    assert run is not None
    held = [read_manifest(folder)["chain"]["rows"] for folder in list_checkpoints(run, "trainer")]
    assert all(0 < len(rows) < 8 for rows in held[1:])


def test_written_journal_lines_are_kept_in_memory_up_to_a_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journals, "MOST_BYTES", 400)
    written = JournalFile(tmp_path / "journal.jsonl")
    for number in range(50):
        written.append({"a": number})
        assert written.durable() is None
    rows = written.chain("a")["rows"]
    assert [json.loads(row)["a"] for row in rows] == [*range(50 - len(rows), 50)]
    assert 2 < len(rows) < 12

    def full(handle: int, data: bytes) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(appending, "_add", full)
    for number in range(50, 100):
        written.append({"a": number})
    assert [json.loads(row)["a"] for row in written.chain("a")["rows"]][-50:] == [*range(50, 100)]


def test_a_thread_syncs_the_journal_of_a_run_that_nobody_saves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journals, "MOST_LATE", (400, 1e9))
    monkeypatch.setattr(journals, "MOST_BYTES", 400)
    monkeypatch.setattr(journals, "in_thread", lambda act, *_, **__: act())  # at once, so that the test need not wait
    written = JournalFile(tmp_path / "journal.jsonl")
    for number in range(500):
        written.append({"a": number})
    rows = written.chain("a")["rows"]
    assert sum(map(len, rows)) < 1000
    assert [json.loads(row)["a"] for row in rows] == [*range(500 - len(rows), 500)]


def test_the_journal_is_synced_by_a_thread_of_its_own_within_a_second(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done, synced = Event(), list[Thread]()
    monkeypatch.setattr(journals, "MOST_LATE", (1 << 20, 0.0))
    written = JournalFile(tmp_path / "journal.jsonl")
    monkeypatch.setattr(journals.os, "fsync", lambda handle: (synced.append(current_thread()), done.set()))
    written.append({"a": 0})
    assert done.wait(60)
    assert [thread.name for thread in synced] == ["sigma-journal"]


def test_a_manifest_holds_a_limited_end_of_a_journal_that_the_disk_does_not_take(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(handle: int, data: bytes) -> None:
        raise OSError(28, "No space left on device")

    written = JournalFile(tmp_path / "journal.jsonl")
    monkeypatch.setattr(journals, "LONGEST", 400)
    monkeypatch.setattr(appending, "_add", full)
    for number in range(100):
        written.append({"a": number})
    rows = written.chain("a")["rows"]
    assert [json.loads(row)["a"] for row in rows] == [*range(100 - len(rows), 100)]
    assert 300 < sum(map(len, rows)) <= 400


def test_a_run_whose_journal_outgrows_a_manifest_is_saved_resumed_and_replayed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "LARGEST", 9000)
    monkeypatch.setattr(rewind, "SHARE", 1e9)  # a digest each epoch, however fast it is
    monkeypatch.setattr(recorder, "APART", 0.0)
    monkeypatch.setattr(journals, "MOST_LATE", (3000, 1e9))
    monkeypatch.setattr(journals, "MOST_BYTES", 3000)
    with steered_environment({220: lambda sigma: sigma.stop()}, last=10**9) as sigma:
        sigma.folder = tmp_path
        sigma.run()
        run = sigma.run_folder
    assert run is not None
    assert (run / "journal.jsonl").stat().st_size > 2 * 9000
    assert "lacks" not in read_manifest(list_checkpoints(run, "trainer")[-1])["values"]
    with steered_environment(last=230) as again, steered_environment(last=230) as plain:
        again.resume(run, log=pytest.fail)
        again.run()
        plain.run()
        assert decisive(again.trainer("trainer")) == decisive(plain.trainer("trainer"))
    with steered_environment(last=230) as last:
        assert last.replay(run)[1] == {}


def test_a_run_with_a_deleted_journal_resumes_twice_and_loses_nothing_more(tmp_path: Path) -> None:
    with steered_environment({**SCRIPT, 8: crash}) as sigma:
        run = train_until_crash(sigma, tmp_path)
    (run / "journal.jsonl").unlink()
    said: list[str] = []
    with steered_environment({9: _rate(0.1), 10: crash}) as again:
        again.resume(run, log=said.append)
        with pytest.raises(Crash):
            again.run()
    assert said == [f"{run / 'journal.jsonl'}: is missing: everything after the last checkpoint is lost"]
    with steered_environment() as last, steered_environment(PLAIN) as plain:
        last.resume(run, log=pytest.fail)
        last.run()
        plain.run()
        assert decisive(last.trainer("trainer")) == decisive(plain.trainer("trainer"))
    with (
        steered_environment() as replayed,
        pytest.raises(SigmaCheckpointError, match="begins at iteration 7: the journal before it"),
    ):
        replayed.replay(run)


# -- on disk -----------------------------------------------------------------------------------------------------------
def test_simultaneous_journal_rows_share_one_flush(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begun, on, synced = Event(), Event(), list[Thread]()

    def fsync(handle: int) -> None:
        synced.append(current_thread())
        begun.set()
        assert on.wait(60)

    written = JournalFile(tmp_path / "journal.jsonl")
    assert written.durable() is None
    monkeypatch.setattr(journals.os, "fsync", fsync)
    threads = [Thread(target=written.durable) for _ in range(9)]
    written.append({"a": 0})
    threads[0].start()
    assert begun.wait(60)
    for number, thread in enumerate(threads[1:], 1):
        written.append({"a": number})  # nobody waits for the disk here
        thread.start()
    on.set()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
    assert 2 <= len(synced) <= 3
    assert current_thread() not in synced


def test_a_late_disk_error_is_reported_and_the_rows_are_written_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(handle: int) -> None:
        raise OSError(5, "Input/output error")

    told: list[str] = []
    path = tmp_path / "journal.jsonl"
    written = JournalFile(path, told.append)
    with monkeypatch.context() as patch:
        patch.setattr(journals.os, "fsync", refuse)
        for _ in range(3):
            written.append({"a": 1})
            assert "rows cannot be written, and would be lost in a crash, though applied: Input/output error." in str(
                written.durable()
            )
    assert told == [f"ALARM: {path}: cannot be written: Input/output error. Free disk space. Training continues."]
    inode = path.stat().st_ino
    assert written.durable() is None
    assert path.stat().st_ino != inode  # nobody knows what became of the former one
    assert len([*chain.read(path, pytest.fail).lines()]) == 4
    assert "can be written again" in told[-1]


# -- removed while it is written ---------------------------------------------------------------------------------------
@pytest.mark.parametrize("make", [JournalFile, Lines])
@pytest.mark.parametrize("how", ["removed", "replaced", "renamed"])
def test_a_removed_journal_is_restored(tmp_path: Path, make: type[Lines], how: str) -> None:
    told: list[str] = []
    path = tmp_path / "x.jsonl"
    lines = make(path, told.append)
    lines.append({"a": 0})
    whole = path.read_bytes()
    if how == "renamed":
        path.rename(tmp_path / "elsewhere")
    else:
        path.unlink()
    if how == "replaced":
        path.write_text("something else\n")
    lines.append({"a": 1})
    assert path.read_bytes().startswith(whole)
    assert [json.loads(line)["a"] for line in path.read_text().splitlines()[1:]] == [0, 1]
    assert told == [f"ALARM: {path}: was removed or replaced while the run was writing it. It is restored."]
