"""Bookmarks of a journal: a resume reads the lines after the one in its checkpoint, and all of them where it must."""

from __future__ import annotations

import json
import random
import re
import shutil
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pytest

from sigma_kernel.clock import Moment
from sigma_kernel.contracts.storing import Checkpoint
from sigma_kernel.environment import Environment
from sigma_kernel.errors import SigmaCheckpointError
from sigma_store import appending, chain, files, journal as journals
from sigma_store.chain import START, Bookmark
from sigma_store.checkpoints.store import ARRAYS, MANIFEST, SEAL
from sigma_store.curves import rows as metric_rows
from sigma_store.files import digest
from sigma_store.journal import JournalFile, Lines
from sigma_testing.steering import Crash, crash, decisive, steered_environment, train_until_crash
from sigma_training.history import recorder, rewind
from sigma_training.history.recorder import Recorder
from sigma_training.history.replay import Replay, end_of_training, load_fields
from sigma_training.hooks.order import HookOrder

HEAD = {"trainer": "a", "iteration": 1, "epoch": 0, "seconds": 0.5}


def _rate(value: float) -> Callable[[Environment], Any]:
    return lambda sigma: sigma.set("trainer.optimiser.learning_rate", value)


def _save(sigma: Environment) -> None:
    sigma.send("save")


PLAIN = {4: _rate(0.02), 6: _rate(0.2)}
SCRIPT = {**PLAIN, 2: _save, 7: _save, 8: crash}


@pytest.fixture
def everywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """Set a bookmark after every line, and write digests in every epoch."""
    monkeypatch.setattr(journals, "EVERY", 1)
    monkeypatch.setattr(rewind, "SHARE", 1e9)
    monkeypatch.setattr(recorder, "APART", 0.0)


@pytest.fixture
def starts(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return a list of the lines after which journals are read."""
    found, read = list[int](), chain.read

    def reads(*given: Any) -> chain.JournalExcerpt:
        part = read(*given)
        found.append(part.start.lines)
        return part

    monkeypatch.setattr(chain, "read", reads)
    return found


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    """Return the bytes that are read of files, by name."""
    found, opened = dict[str, int](), files.open_regular

    def opens(path: Path, most: int | None = None) -> BinaryIO:
        file: Any = opened(path, most)

        class Counted:
            seek, __enter__ = file.seek, lambda self: self

            def read(self, size: int) -> bytes:
                return self.count(file.read(size))

            def readline(self, size: int) -> bytes:
                return self.count(file.readline(size))

            def count(self, data: bytes) -> bytes:
                found[path.name] = found.get(path.name, 0) + len(data)
                return data

            def __exit__(self, *error: object) -> None:
                file.close()

        return Counted()  # type: ignore[return-value]

    monkeypatch.setattr(files, "open_regular", opens)
    return found


def _ended(script: dict[int, Any] | None = None, last: int = 12, run: Path | None = None) -> Any:
    """Return the state at the end of a run that is resumed, or that was never interrupted."""
    with steered_environment(script, last=last) as sigma:
        if run is not None:
            sigma.resume(run)
        sigma.run()
        return decisive(sigma.trainer("trainer"))


def _replayed(run: Path, last: int = 12) -> dict[str, str]:
    with steered_environment(last=last) as sigma:
        return sigma.replay(run)[1]


# -- reading the end alone ---------------------------------------------------------------------------------------------
@pytest.fixture
def long(tmp_path: Path, everywhere: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Yield the folder of a run of 100 epochs that was stopped."""
    monkeypatch.setattr(journals, "EVERY", 3000)
    with steered_environment({500: lambda sigma: sigma.stop()}, last=10**9) as sigma:
        sigma.folder = tmp_path
        sigma.run()
        assert sigma.run_folder is not None
        yield sigma.run_folder


def test_a_resume_reads_the_end_of_a_long_journal_alone(long: Path, counted: dict[str, int]) -> None:
    size = (long / "journal.jsonl").stat().st_size
    found = _ended(last=520, run=long)
    read, counted["journal.jsonl"] = counted["journal.jsonl"], 0
    assert size > 40_000
    assert read < 5 * 4500 + 2 * 4096  # what follows the bookmark, five times; the first line; the end, to append to it
    assert found == _ended(last=520)
    assert _replayed(long, 520) == {}
    assert counted["journal.jsonl"] > size


def test_lines_before_the_bookmark_are_verified_when_all_are_read(long: Path) -> None:
    path = long / "journal.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*lines[:2], lines[2].replace(b"digest", b"Digest"), *lines[3:]]))
    assert _ended(last=520, run=long) == _ended(last=520)
    with pytest.raises(SigmaCheckpointError, match=r"journal.jsonl:3: does not follow from the lines before it"):
        _replayed(long, 520)


def test_a_large_file_that_is_continued_is_read_at_its_end(tmp_path: Path, counted: dict[str, int]) -> None:
    path = tmp_path / "x.jsonl"
    JournalFile(path).append({"a": "x" * 10**6})
    whole = path.read_bytes()
    for more, read in ((b"", 1 << 12), (b"y" * 5000, (1 << 12) + (1 << 16))):
        path.write_bytes(whole + more)
        counted.clear()
        JournalFile(path)
        assert path.read_bytes() == whole  # without what was incomplete
        assert counted["x.jsonl"] <= read


def test_a_removed_file_is_restored_in_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(appending, "BLOCK", 7)
    written = JournalFile(tmp_path / "journal.jsonl")
    written.append({"a": 0})
    (tmp_path / "journal.jsonl").unlink()
    written.append({"a": 1})
    assert [json.loads(line).get("a") for line in [*chain.read(tmp_path / "journal.jsonl", pytest.fail).lines()]] == [
        None,
        0,
        1,
    ]


# -- bookmarks ---------------------------------------------------------------------------------------------------------
def test_a_bookmark_counts_the_rows_and_sessions_of_each_trainer(everywhere: None, tmp_path: Path) -> None:
    written = JournalFile(tmp_path / "journal.jsonl", configuration="c" * 64)
    for name, event in (("a", "begin"), ("b", "begin"), ("a", "resumed"), ("a", "digest"), ("b", "end")):
        written.append({**HEAD, "trainer": name, "event": event})
    lines = (tmp_path / "journal.jsonl").read_text().splitlines(keepends=True)
    for trainer, place, ends in (("a", 2, 4), ("a", 1, 3), ("b", 1, 5), ("b", 9, 6), ("c", 0, 6)):
        kept = Bookmark.from_document(written.chain(trainer, place)["bookmark"])
        assert (kept.lines, kept.offset) == (ends, len("".join(lines[:ends])))
        assert kept.configuration == "c" * 64
        rows = [json.loads(line) for line in lines[1:ends]]
        assert kept.rows == {name: n for name in "ab" if (n := sum(row["trainer"] == name for row in rows))}
        assert kept.sessions["a"] == sum(row["event"] == "resumed" for row in rows)
        assert [*chain.read(tmp_path / "journal.jsonl", pytest.fail, kept).lines()] == [
            one[:-1] for one in lines[ends:]
        ]
    assert Bookmark.from_document(written.chain("a")["bookmark"]) == START


@pytest.mark.parametrize(
    "document",
    [None, 3, [], {"offset": -1}, {"offset": "1"}, {"rows": {"a": -1}}, {"rows": {"a": "1"}}, {"rows": 3}, {"more": 1}],
)
def test_a_bookmark_of_another_form_stands_for_the_beginning(document: Any) -> None:
    assert Bookmark.from_document(document) == START


def test_a_bookmark_is_set_before_the_stop_or_the_failure_with_which_training_ended() -> None:
    stop, failed = {"command": "stop"}, {"event": "end", "good": 3}
    for rows, place in (
        ([{"event": "begin"}, stop, {"command": "save"}, {"event": "end"}], 1),
        ([stop, {"event": "resumed"}], None),
        ([{"command": "stop", "by": "hook"}], None),
        ([failed, {"command": "set"}], 0),
        *(([failed, {"command": name}], None) for name in ("rewind", "go", "step", "reset")),
    ):
        found: int | None = None
        for number, row in enumerate(rows):
            found = end_of_training(row, number, found)
        assert found == place, rows


def test_a_checkpoint_has_a_bookmark_before_its_save_and_before_the_end_of_training(
    everywhere: None, tmp_path: Path
) -> None:
    written = Recorder("a")
    written.open(JournalFile(tmp_path / "journal.jsonl"), Lines())

    def rows_before(place: int) -> int:
        return Bookmark.from_document(written.chain(place)["bookmark"]).rows.get("a", 0)

    for what in ({"event": "begin"}, {"command": "set"}, {"command": "save"}, {"event": "digest"}):
        written.note(Moment(), what)
    assert rows_before(written.position) == 2  # those of the save follow
    for what in ({"command": "stop"}, {"command": "save"}, {"event": "digest"}):
        written.note(Moment(), what)
    assert rows_before(written.position) == 2  # the stop is the fifth row
    written.note(Moment(), {"event": "resumed"})
    assert rows_before(written.position) == 6
    written.compare(Replay(deque([{"place": 8}])))
    assert rows_before(8) == 0  # where this session began to read


def test_sessions_before_a_bookmark_are_counted(tmp_path: Path) -> None:
    written = Recorder("a")
    written.open(JournalFile(), Lines(tmp_path / "rows.jsonl"))
    since = chain.JournalExcerpt(tmp_path, start=Bookmark(lines=12, rows={"a": 9}, sessions={"a": 3, "b": 7}))
    written.follow([{"event": "resumed"}, {"event": "end"}], since.count_before("a"), 0, 5)
    assert written.position == 11
    written.record_values({"x": np.array([1.0])}, Moment(), Moment(iteration=1))
    written.row(Moment(iteration=1), force=True)
    assert json.loads((tmp_path / "rows.jsonl").read_text().splitlines()[-1])["session"] == 5


# -- runs that go on from a bookmark -----------------------------------------------------------------------------------
def test_a_run_that_is_stopped_killed_and_resumed_ends_in_the_same_bits(
    everywhere: None, tmp_path: Path, starts: list[int]
) -> None:
    with steered_environment({**PLAIN, 2: _save, 5: lambda sigma: sigma.stop()}) as sigma:
        sigma.folder = tmp_path
        sigma.run()
        run = sigma.run_folder
    assert run is not None
    for script in ({6: _rate(0.2), 7: crash}, {9: _save, 10: crash}, {11: crash}):
        with steered_environment(script) as again:
            again.resume(run, log=pytest.fail)
            with pytest.raises(Crash):
                again.run()
    assert _ended(run=run) == _ended(PLAIN)
    assert all(starts)
    assert _replayed(run) == {}
    sessions = [row["session"] for row in metric_rows(run, pytest.fail)]
    assert sorted({*sessions}) == [*range(max(sessions) + 1)]


def test_settings_that_change_on_the_way_are_replayed_from_there(everywhere: None, tmp_path: Path) -> None:
    with steered_environment(SCRIPT) as sigma:
        run = train_until_crash(sigma, tmp_path)
    (run / "checkpoints" / "trainer" / "7").rename(tmp_path / "aside")
    with steered_environment({3: crash}) as again:
        again.resume(run, ["trainer.batch_size=5"])
        with pytest.raises(Crash):
            again.run()
    assert _ended(run=run) == _ended(PLAIN)
    assert _replayed(run) == {}


def test_an_older_checkpoint_is_resumed_with_all_lines_since(
    everywhere: None, tmp_path: Path, starts: list[int]
) -> None:
    with steered_environment(SCRIPT) as sigma:
        run = train_until_crash(sigma, tmp_path)
    (run / "checkpoints" / "trainer" / "7" / ARRAYS).write_bytes(b"")
    said: list[str] = []
    with steered_environment() as again:
        again.resume(run, log=said.append)
        again.run()
        assert decisive(again.trainer("trainer")) == _ended(PLAIN)
    assert [text.count("state.safetensors") for text in said] == [1]
    assert starts[-2] > starts[-1] == 0


@pytest.mark.parametrize("change", [{"offset": 10**9}, {"offset": 10**30}, {"offset": 19}, {"hash": "0" * 16}, None])
def test_a_checkpoint_whose_bookmark_does_not_fit_is_resumed_from_the_whole_journal(
    everywhere: None, tmp_path: Path, starts: list[int], change: dict[str, Any] | None
) -> None:
    with steered_environment(SCRIPT) as sigma:
        run = train_until_crash(sigma, tmp_path)
    path = run / "checkpoints" / "trainer" / "7" / MANIFEST
    manifest = json.loads(path.read_text())
    if change is None:  # as in older versions
        del manifest["chain"]["bookmark"]
    else:
        manifest["chain"]["bookmark"] |= change
    path.write_text(json.dumps(manifest))
    path.with_name(SEAL).write_text(f"{digest(path.read_bytes())}  {MANIFEST}\n")
    assert _ended(run=run) == _ended(PLAIN)
    assert starts[-1] == 0


def test_a_journal_that_is_cut_or_changed_anywhere_is_resumed_rightly_or_refused(
    everywhere: None, tmp_path: Path
) -> None:
    with steered_environment(SCRIPT) as sigma:
        run = train_until_crash(sigma, tmp_path)
    wanted, data, draw, refused = _ended(PLAIN), (run / "journal.jsonl").read_bytes(), random.Random(0), list[str]()
    for number in range(40):
        place = draw.randrange(len(data))
        other = bytes([data[place] ^ 1 << draw.randrange(8)]) + data[place + 1 :] if number % 2 else b""
        copy = Path(shutil.copytree(run, tmp_path / f"copy-{number}"))
        (copy / "journal.jsonl").write_bytes(data[:place] + other)
        try:
            assert _ended(run=copy) == wanted, place
        except SigmaCheckpointError as error:
            refused.append(str(error).removeprefix(f"{copy}/journal.jsonl"))
    assert 0 < len(refused) < 40
    forms = r":\d+: does not follow|: is (cut|empty|missing)|:1: is not the"
    assert not [text for text in refused if not re.match(forms, text)]


# -- what a journal takes ----------------------------------------------------------------------------------------------
def test_the_digests_of_a_long_journal_lie_apart_and_hold_fewer_losses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recorder, "THINNING", 100)
    written = Recorder("a")
    written.open(JournalFile(tmp_path / "journal.jsonl"), Lines())
    empty = Checkpoint(
        {}, {"clock": {"iteration": 0, "epoch": 0}, "cursor": [], "live": {}, "published": {}, "hooks": {}}
    )
    now, apart = [0.0], list[float]()
    monkeypatch.setattr(rewind.time, "perf_counter", lambda: now[0])
    for _ in range(200):
        written.record_values({"training.loss": np.arange(30.0)}, Moment(), Moment())
        written.remember(Moment(), lambda: empty, HookOrder({}), wanted=True)
        apart.append(written.past._next - now[0])
        now[0] = written.past._next
    rows = chain.read(tmp_path / "journal.jsonl", pytest.fail).rows("a")
    losses = [load_fields(row)["losses"] for row in rows]
    assert [len(one) // 8 for one in losses] == [min(30, max(1, 100 // max(1, number))) for number in range(200)]
    assert losses[50] == np.array([28, 29], "<f4").tobytes().hex()  # the newest
    assert apart == pytest.approx([number * 1e-4 for number in range(1, 201)])
