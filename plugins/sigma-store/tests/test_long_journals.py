"""Journals that are larger than the memory for them: lines are read one by one, and payloads when they are compared."""

from __future__ import annotations

import hashlib
import json
import random
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from sigma_kernel.environment import Environment
from sigma_kernel.errors import SigmaCheckpointError
from sigma_store import chain, journal as journals
from sigma_store.journal import JournalFile
from sigma_testing.steering import steered_environment
from sigma_training.history import recorder, rewind
from sigma_training.history.replay import load_fields

HEAD = {"trainer": "a", "iteration": 1, "epoch": 0, "seconds": 0.5}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Return a journal of two trainers."""
    path = tmp_path / "journal.jsonl"
    written = JournalFile(path, configuration="0" * 64)
    for name, event in (
        ("a", "begin"),
        ("b", "begin"),
        ("a", "digest"),
        ("b", "digest"),
        ("a", "end"),
        ("a", "digest"),
    ):
        fields = {"epochs": None, "iterations": None, "state": {"x": "0" * 16}, "losses": "3f800000" * 5}
        written.append({**HEAD, "trainer": name, "event": event, **fields})
    return path


def test_a_journal_of_any_size_is_read_in_the_memory_of_a_few_lines(tmp_path: Path) -> None:
    path, losses = tmp_path / "journal.jsonl", "3f800000" * 2**14
    written = JournalFile(path)
    for number in range(100):
        written.append({**HEAD, "iteration": number, "event": "digest", "state": {"x": "0" * 16}, "losses": losses})
    del written
    tracemalloc.start()
    try:
        rows = chain.read(path, pytest.fail).rows("a")
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert (len(rows), path.stat().st_size > 12 << 20) == (100, True)
    assert most < 2 << 20
    assert [load_fields(row)["losses"] == losses for row in rows[::33]] == [True] * 4


def test_rows_are_those_of_the_file(path: Path) -> None:
    lines = [json.loads(line) for line in path.read_text().splitlines()[1:]]
    for name in "ab":
        wanted = [{key: row[key] for key in row if key != "hash"} for row in lines if row["trainer"] == name]
        rows = [dict(load_fields(row)) for row in chain.read(path, pytest.fail).rows(name)]
        places = [(row.pop("place"), row.pop("stored", None))[0] for row in rows]
        assert (rows, places) == (wanted, [*range(len(wanted))])


def _reference(data: bytes) -> int:
    """Return the number of the first line that does not follow, else minus the number of complete lines."""
    before = ""
    for number, line in enumerate(data.split(b"\n")[:-1], 1):
        end = b', "hash": "' + hashlib.sha256(before.encode() + line[:-29] + b"}").hexdigest()[:16].encode() + b'"}'
        if not line.endswith(end):
            return number
        before = end[-18:-2].decode()
    return -data.count(b"\n")


def test_random_truncations_and_flips_are_found_at_their_line(path: Path) -> None:
    data, draw, found = path.read_bytes(), random.Random(0), set[int]()
    head = data.index(b"\n") + 1  # other sentences say what is wrong with the first line
    for number in range(300):
        place = draw.randrange(head, len(data))
        other = bytes([data[place] ^ 1 << draw.randrange(8)]) + data[place + 1 :] if number % 2 else b""
        path.write_bytes(data[:place] + other)
        wanted = _reference(path.read_bytes())
        found.add(wanted)
        if wanted < 0:
            assert chain.read(path, lambda text: None).count == -wanted
            continue
        with pytest.raises(SigmaCheckpointError, match=rf"jsonl:{wanted}: does not follow from the lines before it"):
            chain.read(path, lambda text: None)
    assert len(found) == 12  # each line after the first is cut away, and changed


def test_lines_that_are_changed_between_two_readings_are_refused(path: Path) -> None:
    part = chain.read(path, pytest.fail)
    rows = part.rows("a")
    path.write_bytes(path.read_bytes().replace(b"3f800000", b"3f800001"))
    with pytest.raises(SigmaCheckpointError, match=r"journal.jsonl: was changed while it was replayed. Restore"):
        load_fields(rows[-1])
    with pytest.raises(SigmaCheckpointError, match=r"journal.jsonl:2: does not follow from the lines before it"):
        part.rows("a")


# -- runs --------------------------------------------------------------------------------------------------------------
@pytest.fixture
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Set a bookmark after every line, and write digests in every epoch."""
    monkeypatch.setattr(journals, "EVERY", 1)
    monkeypatch.setattr(rewind, "SHARE", 1e9)
    monkeypatch.setattr(recorder, "APART", 0.0)


def _trained(folder: Path, script: dict[int, Any]) -> Path:
    with steered_environment(script) as sigma:
        sigma.folder = folder
        sigma.run()
        assert sigma.run_folder is not None
        return sigma.run_folder


def test_a_journal_that_is_changed_while_it_is_replayed_differs(often: None, tmp_path: Path) -> None:
    run = _trained(tmp_path, {})
    lines = (run / "journal.jsonl").read_text().splitlines(keepends=True)
    last = max(number for number, line in enumerate(lines) if '"digest"' in line)
    changed = "".join(lines[:last]) + lines[last].replace('"losses": "', '"losses": "0')

    def change(sigma: Environment) -> None:
        (run / "journal.jsonl").write_text(changed)

    with steered_environment({9: change}) as again:
        differs = again.replay(run)[1]["trainer"]
    assert differs == f"{run}/journal.jsonl: was changed while it was replayed. Restore the file from a copy."
