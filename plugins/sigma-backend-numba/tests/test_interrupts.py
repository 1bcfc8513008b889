"""Ctrl-C while LLVM compiles: the thread that signals interrupt never calls LLVM."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from sigma_backend_numba.cache import files
from sigma_backend_numba.compiler.workers import Workers

CODE = """
import sys

import numpy as np

from sigma_backend_numba import NumbaBackend
from sigma_backend_numba.compiler.processor import llvm
from sigma_kernel.graph import Graph, symbol

x = symbol((17,))
llvm()  # whose import calls nothing of LLVM that could be interrupted
calls = set()


def note(frame, event, argument):
    if event == "call" and "llvmlite" in frame.f_code.co_filename and "binding" in frame.f_code.co_filename:
        calls.add(frame.f_code.co_name)


sys.setprofile(note)
result = NumbaBackend(threads=1).lower(Graph((x,), (x * x + 1.0,)), {})(np.ones(17, "f4"))[0]
sys.setprofile(None)
print(float(result.sum()), *sorted(calls))
"""
LATE = """
import threading

import numpy as np

from sigma_backend_numba import NumbaBackend
from sigma_kernel.graph import Graph, symbol


def work():
    threading.main_thread().join()
    x = symbol((17,))
    print(float(NumbaBackend(threads=1).lower(Graph((x,), (x * 3.75,)), {})(np.ones(17, "f4"))[0].sum()))


threading.Thread(target=work).start()
"""
POSIX = pytest.mark.skipif(os.name != "posix", reason="needs signals for a thread")


def test_the_thread_that_signals_interrupt_never_calls_llvm(tmp_path: Path) -> None:
    environment = {**os.environ, files.VARIABLE: str(tmp_path / "programs")}
    for _ in ("compiled", "loaded"):
        ran = subprocess.run([sys.executable, "-c", CODE], env=environment, capture_output=True, text=True, timeout=120)
        assert (ran.returncode, ran.stdout) == (0, "34.0\n"), ran.stderr


@POSIX
def test_workers_finish_what_they_began_when_their_caller_is_interrupted_twice() -> None:
    events = list[str]()

    def compile_slowly() -> None:
        for _ in range(2):
            time.sleep(0.2)
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
        time.sleep(0.2)
        events.append("compiled")

    with pytest.raises(KeyboardInterrupt):  # noqa: PT012, SIM117
        with Workers(1) as workers:
            first, second = workers.submit(compile_slowly), workers.submit(events.append, "begun")
            first.result()
    assert events == ["compiled"]
    assert second.cancelled()


def test_an_error_of_a_worker_is_raised_by_its_caller() -> None:
    with pytest.raises(ZeroDivisionError), Workers(2) as workers:
        workers.submit(divmod, 1, 0).result()


def test_a_thread_that_runs_on_when_the_main_thread_has_ended_compiles(tmp_path: Path) -> None:
    environment = {**os.environ, files.VARIABLE: str(tmp_path / "programs")}
    ran = subprocess.run([sys.executable, "-c", LATE], env=environment, capture_output=True, text=True, timeout=120)
    assert (ran.returncode, ran.stdout) == (0, "63.75\n"), ran.stderr
