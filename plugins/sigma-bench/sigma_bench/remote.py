"""Proxy of a contestant in a separate process."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import time
from contextlib import suppress
from typing import Any

import numpy as np

from sigma_bench.contest import Contestant
from sigma_kernel.errors import SigmaTrainingError

PATIENCE = 5.0  # seconds that a process has to exit
REST = 0.01  # seconds between turns, in which idle threads of the previous contestant stop spinning


class Process:
    """An object in a separate process, created by calling ``path`` with ``arguments``.

    A SigmaError there is raised here; any other error, or the end of the process, raises SigmaTrainingError.
    """

    def __init__(self, label: str, path: str, *arguments: Any) -> None:
        self.label = label
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "sigma_bench.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        )
        try:
            self.ask(path, *arguments)
        except BaseException:
            self.close()
            raise

    def ask(self, name: str, *arguments: Any) -> Any:
        """Return a member of the object, or the result of calling it with the arguments."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            pickle.dump((name, arguments), self._process.stdin, protocol=5)
            self._process.stdin.flush()
            good, value = pickle.load(self._process.stdout)
        except (EOFError, BrokenPipeError):
            raise SigmaTrainingError(
                f"bench: the process of {self.label!r} ended with {self._process.wait()}. See its output above; a "
                "negative number is a signal, and -9 most often means that memory ran out."
            ) from None
        if good:
            return value
        raise SigmaTrainingError(f"{self.label}: {value}") if type(value) is SigmaTrainingError else value

    def close(self) -> None:
        """End the process, by force if needed."""
        self._process.stdout.close()  # type: ignore[union-attr]  # it is a pipe
        with suppress(BrokenPipeError):  # it has exited already
            self._process.stdin.close()  # type: ignore[union-attr]
        try:
            self._process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


class Remote(Contestant):
    """A contestant in a separate process."""

    def __init__(self, label: str, path: str, *arguments: Any) -> None:
        began = time.perf_counter()
        self.process = Process(label, path, *arguments)
        self.started_s = time.perf_counter() - began
        self.name, self.unit = self.process.ask("name"), self.process.ask("unit")

    def run(self, iterations: int) -> None:
        """Train for this many more iterations."""
        self.seconds(iterations)

    def seconds(self, iterations: int) -> float:
        """Train for this many more iterations; return the seconds taken in that process."""
        time.sleep(REST)
        return float(self.process.ask("seconds", iterations))

    @property
    def losses(self) -> np.ndarray:
        """Return the losses of the first iterations."""
        return np.asarray(self.process.ask("losses"))

    @property
    def peak_bytes(self) -> int:
        """Return the peak memory of the process, in bytes."""
        return int(self.process.ask("peak_bytes"))

    def close(self) -> None:
        """End the process."""
        self.process.close()
