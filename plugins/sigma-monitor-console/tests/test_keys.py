"""Keyboard of a terminal, which is given back whatever happens."""

from __future__ import annotations

import codecs
import fcntl
import os
import pty
import re
import select
import signal
import struct
import sys
import termios
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from sigma_monitor_console import keys
from sigma_monitor_console.keys import LINES, Keyboard, terminal, trains_in_thread

SCRIPT = """
import sys
from sigma_kernel import Environment

sigma = Environment("terminal", seed=0, folder=sys.argv[1])
trainer = sigma.create_trainer(
    data="iris",
    network="input(4) + dense(4) + output(3) + softmax_cross_entropy()",
    optimiser={"type": "gradient_descent", "learning_rate": 0.001},
    hooks={"accuracy": {"type": "accuracy", "on": "validation"}},
    epochs=float("inf"),
)
try:
    print(sigma.run(progress=True).status)
finally:
    print("over")
"""
PRESSED = [
    ("p", "paused"), ("s", "step 1 iteration applied"), ("e", "step 1 epoch applied"), ("w", "save applied"),
    ("?", "p pause"), ("?", "save applied"), ("p", "go applied"),
]  # fmt: skip


@pytest.fixture
def slave(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[int, int]]:
    monkeypatch.setattr(keys.os, "tcgetpgrp", lambda number: os.getpgrp())
    ends = os.openpty()
    yield ends
    for end in ends:
        os.close(end)


def test_keys_are_read_without_a_line_and_ctrl_c_still_works(slave: tuple[int, int]) -> None:
    mine, its = slave
    before = termios.tcgetattr(its)
    with Keyboard(its) as found:
        assert found.read() == ""
        now = termios.tcgetattr(its)[3]
        assert not now & LINES
        assert now & termios.ISIG
        os.write(mine, b"pw")
        select.select([its], [], [], 10)
        assert found.read() == "pw"
        os.write(mine, b"\x1b[A")
        select.select([its], [], [], 10)
        assert found.read() == ""
    assert termios.tcgetattr(its) == before


def test_an_error_gives_the_terminal_back(slave: tuple[int, int]) -> None:
    before = termios.tcgetattr(slave[1])
    with pytest.raises(ZeroDivisionError), Keyboard(slave[1]) as found:
        print(len(found.read()) // 0)
    assert termios.tcgetattr(slave[1]) == before


def test_a_process_in_the_background_leaves_the_terminal_alone(
    slave: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keys.os, "tcgetpgrp", lambda number: os.getpgrp() + 1)
    before = termios.tcgetattr(slave[1])
    with Keyboard(slave[1]) as found:
        os.write(slave[0], b"q\n")
        select.select([slave[1]], [], [], 10)
        assert found.read() == ""
        assert not found.heard
        assert termios.tcgetattr(slave[1]) == before


def test_the_terminal_is_taken_again_after_a_shell_had_it(slave: tuple[int, int]) -> None:
    before = termios.tcgetattr(slave[1])
    with Keyboard(slave[1]) as found:
        found.read()
        termios.tcsetattr(slave[1], termios.TCSANOW, before)  # as a shell does after Ctrl-Z
        found.read()
        assert not termios.tcgetattr(slave[1])[3] & LINES
    assert termios.tcgetattr(slave[1]) == before


def test_somebody_else_who_reads_gets_the_terminal_back(slave: tuple[int, int]) -> None:
    before, reads = termios.tcgetattr(slave[1]), [False]
    with Keyboard(slave[1], lambda: reads[0]) as found:
        found.read()
        reads[0] = True
        assert found.read() == ""
        assert termios.tcgetattr(slave[1]) == before


def test_without_a_terminal_there_are_no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    with open(os.devnull) as nothing:
        for stdin in (None, nothing):
            monkeypatch.setattr(sys, "stdin", stdin)
            assert terminal() is None
    assert terminal() is None  # it is closed
    with Keyboard(None) as found:
        assert found.read() == ""
        assert not found.heard
    assert not trains_in_thread("nothing of this name")


def test_an_interactive_interpreter_keeps_its_terminal(monkeypatch: pytest.MonkeyPatch, slave: tuple[int, int]) -> None:
    with os.fdopen(os.dup(slave[1])) as stdin:
        monkeypatch.setattr(sys, "stdin", stdin)
        assert terminal() == stdin.fileno()
        monkeypatch.setattr(sys, "ps1", ">>> ", raising=False)
        assert terminal() is None


class Shell:
    """A process with a terminal of its own."""

    def __init__(self, width: int, folder: Path) -> None:
        self.process, self.end = pty.fork()
        if not self.process:
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 24, width, 0, 0))  # before anything is drawn
            known = {**os.environ, "TERM": "xterm", "SIGMA_BACKEND": "numpy", "NO_COLOR": "1"}
            given = {
                name: known[name] for name in known if name not in ("COLUMNS", "LINES")
            }  # which the width would be
            os.execve(sys.executable, [sys.executable, "-c", SCRIPT, str(folder)], given)  # readline sets them, too
        self.before, self.seen = termios.tcgetattr(self.end), ""
        self.decoder = codecs.getincrementaldecoder("utf-8")("ignore")

    def until(self, text: str) -> None:
        """Read until a text is shown after all that was awaited before."""
        end = time.monotonic() + 120
        while text not in self.seen:
            assert select.select([self.end], [], [], max(0.0, end - time.monotonic()))[0], self.seen[-2000:]
            more = self.decoder.decode(os.read(self.end, 4096))
            self.seen = re.sub(r"\x1b\[[0-9;?]*+[A-Za-z]", "", self.seen + more)  # a read may end amid a sequence
        self.frames = self.seen.replace("\r", "\n").splitlines()[:-1]
        self.seen = self.seen[self.seen.index(text) + len(text) :]

    def press(self, key: str) -> None:
        os.write(self.end, key.encode())


@pytest.mark.parametrize(("width", "ending"), [(40, "q"), (80, "\x03"), (120, signal.SIGTERM)])
def test_keys_steer_a_run_and_the_terminal_is_as_before(
    tmp_path: Path, width: int, ending: str | signal.Signals
) -> None:
    shell = Shell(width, tmp_path)
    shell.until("it/s")
    assert not termios.tcgetattr(shell.end)[3] & LINES
    for key, shown in PRESSED:
        shell.press(key)
        shell.until(shown)
        assert max(map(len, shell.frames)) <= width
    if isinstance(ending, str):
        shell.press(ending)
    else:
        os.kill(shell.process, ending)
    shell.until("stopped" if ending == "q" else "interrupted")
    shell.until("over")
    assert termios.tcgetattr(shell.end) == shell.before
    os.close(shell.end)
    os.waitpid(shell.process, 0)
