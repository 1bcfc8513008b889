"""Separate processes: answers, errors and the end of the process."""

from __future__ import annotations

import io
import os
import pickle
import signal
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from sigma_bench import memory
from sigma_bench.remote import Process, Remote
from sigma_bench.worker import serve
from sigma_kernel.errors import SigmaConfigError, SigmaTrainingError
from sigma_run.config import read

SIGMA = "sigma_bench.contestants.sigma:make_contestant"


def test_a_contestant_runs_in_its_own_process(small: Path) -> None:
    with closing(Remote("sigma", SIGMA, read(small), "", True)) as remote:
        assert (remote.name, remote.unit) == ("numpy", 1)
        assert remote.process.ask("epoch") == (42, 5)
        assert remote.seconds(3) > 0
        remote.run(4)
        assert len(remote.losses) == 7
        assert remote.peak_bytes > 10_000_000
        assert remote.started_s > 0


def test_an_error_in_the_process_is_raised_here(small: Path) -> None:
    with pytest.raises(SigmaConfigError, match="backend 'nmpy': no plugin offers it"):
        Remote("sigma", SIGMA, read(small), "nmpy", True)


def test_a_killed_process_is_reported_with_its_exit_status() -> None:
    process = Process("numbers", "numpy.random:default_rng", 0)
    process._process.send_signal(signal.SIGKILL)
    with pytest.raises(SigmaTrainingError, match="the process of 'numbers' ended with -9"):
        process.ask("random")
    process.close()


def test_output_printed_by_the_process_does_not_disturb_its_answers(capfd: pytest.CaptureFixture[str]) -> None:
    with closing(Process("printer", "io:StringIO", "text")) as process:
        assert process.ask("read") == "text"
    with closing(Process("shell", "pathlib:Path", "/")) as process:
        process.ask("__class__")
    assert capfd.readouterr().out == ""


def served(*questions: tuple[str, tuple[Any, ...]]) -> list[tuple[bool, Any]]:
    """Return the other side's answers, without another process."""
    asked, told = io.BytesIO(b"".join(map(pickle.dumps, questions))), io.BytesIO()
    serve(io.BufferedReader(asked), told)  # type: ignore[arg-type]
    told.seek(0)
    return [pickle.load(told) for _ in questions]


def test_members_are_read_and_methods_are_called() -> None:
    answers = served(("fractions:Fraction", (1, 3)), ("denominator", ()), ("limit_denominator", (2,)))
    assert [good for good, _ in answers] == [True, True, True]
    assert [float(value) for _, value in answers[1:]] == [3, 0.5]


def test_any_other_error_is_reported_with_its_class_and_text(capsys: pytest.CaptureFixture[str]) -> None:
    [_, (good, error)] = served(("fractions:Fraction", (1, 3)), ("__floordiv__", (0,)))
    assert not good
    assert isinstance(error, SigmaTrainingError)
    assert str(error).startswith("ZeroDivisionError: ")
    assert "Traceback" in capsys.readouterr().err


GROWING = """
import numpy as np
from sigma_bench import memory
memory.forget()
found = [memory.peak_bytes()]
block = np.ones(20_000_000, np.uint8)
found.append(memory.peak_bytes())
del block
found.append(memory.peak_bytes())
memory.forget()
print(*found, memory.peak_bytes())
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs /proc/self/status")
def test_the_peak_memory_is_that_of_the_process_and_can_be_reset() -> None:
    done = subprocess.run([sys.executable, "-c", GROWING], capture_output=True, text=True, check=True)  # frees nothing
    before, grown, kept, reset = map(int, done.stdout.split())
    assert grown - before > 15_000_000
    assert kept > grown - 1_000_000  # the system counts in batches of pages
    assert reset < grown - 10_000_000


def test_peak_memory_has_a_fallback_if_the_system_does_not_report_it(tmp_path: Path) -> None:
    assert memory.peak_bytes(tmp_path / "none") > 10_000_000 or os.name == "nt"
    (tmp_path / "status").write_text("Name: python\n")
    assert memory.peak_bytes(tmp_path / "status") == 0
