"""Folders that slow a reader down or exhaust it: other runs are shown all the same; nothing is left behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from sigma_kernel.errors import SigmaStateError
from sigma_monitor_web import listing, readers
from sigma_monitor_web.keys import BOTH
from sigma_monitor_web.readers import Limits, RunLister, RunReaders
from sigma_monitor_web.shelf import Shelf
from sigma_monitor_web.talk import Talk

PATIENCE = 60.0
LIMITS = Limits(1.5, 1 << 29)


def until(holds: Callable[[], Any]) -> Any:
    end = time.monotonic() + PATIENCE
    while not (found := holds()):
        assert time.monotonic() < end, "waited too long"
        time.sleep(0.01)
    return found


@pytest.fixture
def shelf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Shelf]:
    """Return a directory with one run that can be read, and little patience for others."""
    run(tmp_path / "good")
    monkeypatch.setattr(listing, "PROMPT", PATIENCE)
    made = Shelf(tmp_path)
    made.list.lister, made.readers = RunLister(LIMITS), RunReaders(limits=LIMITS)
    yield made
    made.end()


def run(folder: Path) -> Path:
    folder.mkdir()
    (folder / "config.toml").write_text(f'format = 1\n[run]\nname = "{folder.name}"\n')
    (folder / "summary.json").write_text('{"format": 1, "status": "finished", "epochs": 3}')
    return folder


def slow(folder: Path) -> Path:
    """Write a configuration that takes a minute to read."""
    with (run(folder) / "config.toml").open("a") as file:
        file.write("a=[" + "1," * 480_000 + "]\n")
    return folder


def asked(talk: Talk, **document: Any) -> Any:
    lines = talk.receive(json.dumps({"id": 1, **document}))
    while not lines:
        lines += talk.answers()
    answer = json.loads(lines[-1])
    return answer.get("result", answer.get("error"))


def test_a_folder_that_takes_too_long_keeps_nothing_else_from_being_shown(
    shelf: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert [one["status"] for one in shelf.list.runs().result()] == ["finished"]
    slow(shelf.folder / "slow")
    monkeypatch.setattr(listing, "PROMPT", 0.1)
    listed = {one["name"]: one for one in shelf.list.runs().result()}
    assert (listed["good"]["status"], listed["good"]["epochs"]) == ("finished", 3)
    assert (listed["slow"]["status"], listed["slow"]["why"].endswith("is being read.")) == ("unreadable", True)
    talk = shelf.talk("good", BOTH)  # meanwhile
    assert asked(talk, do="hello")["name"] == "good"
    talk.close()
    until(lambda: shelf.list._reading is not None and shelf.list._reading.done())
    assert shelf.list.runs().result()[1]["why"] == (
        f"{shelf.folder / 'slow'}: cannot be read: reading it takes longer than 1.5 seconds. Look at its files, or "
        "move the folder elsewhere."
    )


def test_a_page_of_a_run_that_ends_its_reader_says_why(shelf: Shelf) -> None:
    talk = shelf.talk(slow(shelf.folder / "slow").name, BOTH)
    with pytest.raises(ConnectionError):
        asked(talk, do="hello")
    talk.close()
    until(lambda: shelf.readers._readers[shelf.folder / "slow"].has_failed)
    told = asked(shelf.talk("slow", BOTH), do="status")
    assert (told["status"], "takes longer than 1.5 seconds" in told["why"]) == ("interrupted", True)
    assert asked(shelf.talk("slow", BOTH), do="delete", run="slow")


def test_a_reader_that_was_killed_is_begun_anew(shelf: Shelf) -> None:
    lister = shelf.list.lister
    lister.begin()
    assert lister._process is not None
    os.kill(lister._process.pid or 0, signal.SIGKILL)
    lister._process.join(PATIENCE)
    assert lister.ask("describe", shelf.folder / "good")["epochs"] == 3


def test_a_run_that_needs_too_much_memory_is_named(shelf: Shelf) -> None:
    slow(shelf.folder / "large")
    shelf.list.lister = RunLister(Limits(PATIENCE, 1 << 22))
    (found,) = [one for one in shelf.list.runs().result() if one["name"] == "large"]
    assert "reading it needs more than 0.00391 GiB of memory" in found["why"]


def test_an_answer_that_is_too_long_keeps_no_other_run_from_being_read(
    shelf: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    lister = shelf.list.lister
    with monkeypatch.context() as short:
        short.setattr(readers, "LARGEST", 8)
        short.setattr(readers, "GRACE", 0.1)
        with pytest.raises(SigmaStateError, match="take more than"):
            lister.ask("describe", shelf.folder / "good")
    assert lister.ask("describe", shelf.folder / "good")["epochs"] == 3


def test_a_run_that_could_not_be_read_is_read_again_after_a_while(
    shelf: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as broken:
        broken.setattr(RunLister, "ask", lambda *about: fail_to_read())
        assert [one["status"] for one in shelf.list.runs().result()] == ["unreadable"]
    assert [one["status"] for one in shelf.list.runs().result()] == ["unreadable"]
    monkeypatch.setattr(listing, "AGAIN", 0.0)
    assert [one["status"] for one in shelf.list.runs().result()] == ["finished"]


def fail_to_read() -> None:
    raise SigmaStateError("it took too long.")


def test_a_reader_that_cannot_begin_is_no_error_of_the_code(shelf: Shelf, monkeypatch: pytest.MonkeyPatch) -> None:
    def start_process(*about: Any) -> None:
        raise OSError(24, "Too many open files")

    monkeypatch.setattr(readers, "start_process", start_process)
    with pytest.raises(OSError, match="Too many open files"):
        shelf.readers.connect(shelf.folder / "good")


SERVER = """
import sys, time
from sigma_monitor_web.readers import RunLister, RunReaders
from pathlib import Path
if __name__ == "__main__":
    lister, readers = RunLister(), RunReaders()
    lister.begin()
    client = readers.connect(Path(sys.argv[1]))
    print(lister._process.pid, *(one.process.pid for one in readers._readers.values()), flush=True)
    lister.ask("describe", Path(sys.argv[2]))
"""


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_no_process_is_left_behind_however_the_server_ends(tmp_path: Path, how: signal.Signals) -> None:
    (tmp_path / "server.py").write_text(SERVER)
    command = [sys.executable, str(tmp_path / "server.py"), str(run(tmp_path / "good")), str(slow(tmp_path / "slow"))]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as server:
        assert server.stdout is not None
        processes = [int(word) for word in server.stdout.readline().split()]
        assert len([*filter(is_there, processes)]) == 2
        server.send_signal(how)
    until(lambda: not any(map(is_there, processes)))


def is_there(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True
