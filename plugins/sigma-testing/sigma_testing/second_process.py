"""A second process of tests, with another seed of hashes, in which sets of texts have another order."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import reduce
from hashlib import sha256
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any

import numpy as np
import pytest
from attrs import define, field

SEED = "PYTHONHASHSEED"
PATIENCE = 10.0  # seconds in which it ends once it is asked to
CODE = "import sys; sys.path[:] = {path!r}; from sigma_testing.second_process import serve; serve()"


class ProcessEndedError(Exception):
    """The second process has ended instead of answering."""


def digest_results(results: Mapping[str, Any]) -> dict[str, str]:
    """Return a digest of each result: of arrays, numbers, texts, bytes, None, and lists and mappings of these.

    Mappings are equal in any order.

    Raises:
        TypeError: For anything else, which has no bits to compare.
    """
    return {name: sha256(_encode(value)).hexdigest() for name, value in results.items()}


def _encode(value: Any) -> bytes:
    """Return bytes that are equal for equal results in every process."""
    if isinstance(value, Mapping):
        return b"{%b}" % b"".join(sorted(_encode([*item]) for item in value.items()))
    if isinstance(value, np.ndarray | np.generic) and value.dtype.kind != "O":
        return _join(repr((value.dtype.str, value.shape)).encode(), value.tobytes())
    if isinstance(value, Sequence | np.ndarray) and not isinstance(value, str | bytes):
        return b"[%b]" % _join(*map(_encode, value))
    if not isinstance(value, str | bytes | int | float | None):
        raise TypeError(f"{type(value).__name__}: is no result to compare. Return arrays, numbers and texts.")
    return repr(value).encode()


def _join(*parts: bytes) -> bytes:
    return b"".join(b"%d:%b" % (len(part), part) for part in parts)


@define(eq=False)
class SecondProcess:
    """A process that computes the results of suites, asked for one class after the other; it starts when first asked.

    It ends with :meth:`close`, or with the process that asks.
    """

    process: subprocess.Popen[str] | None = field(default=None, init=False)
    errors: IO[bytes] | None = field(default=None, init=False)

    def ask(self, suite: type) -> None:
        """Ask for the results of a suite; the process computes them beside this one."""
        if self.process is None:
            self._start()
        assert self.process is not None
        assert self.process.stdin is not None
        module, file = suite.__module__, getattr(sys.modules[suite.__module__], "__file__", None)
        with suppress(OSError):  # it has ended, as answer() says
            self.process.stdin.write(json.dumps([module, file, suite.__qualname__]) + "\n")
            self.process.stdin.flush()

    def answer(self) -> dict[str, dict[str, str]]:
        """Return ``{"results": digests}``, or ``{"errors": {why: text}}`` where they cannot be computed.

        Raises:
            ProcessEndedError: If the process has ended meanwhile; it is started again for the next suite.
        """
        assert self.process is not None
        assert self.process.stdout is not None
        try:
            line = self.process.stdout.readline()
        except BaseException:  # such as that of a time limit: a later suite would read the answer to this one
            self.close()
            raise
        if not line:
            end = self._describe_end()
            self.close()
            raise ProcessEndedError(end)
        answer: dict[str, dict[str, str]] = json.loads(line)
        return answer

    def _start(self) -> None:
        seed = "1" if os.environ.get(SEED) != "1" else "2"
        self.errors = TemporaryFile()  # noqa: SIM115  # closed with the process
        self.process = subprocess.Popen(
            [sys.executable, "-c", CODE.format(path=[*map(os.path.abspath, sys.path)])],
            env=os.environ | {SEED: seed}, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.errors, text=True,
        )  # fmt: skip

    def _describe_end(self) -> str:
        assert self.process is not None
        assert self.errors is not None
        self.process.wait(PATIENCE)
        self.errors.seek(0)
        lines = self.errors.read().decode(errors="replace").split("\n")
        last = next((line.strip() for line in reversed(lines) if line.strip()), "")
        return f"exit code {self.process.returncode}" + (f": {last}" if last else "")

    def close(self) -> None:
        """End the process, if there is one."""
        process, errors, self.process, self.errors = self.process, self.errors, None, None
        if process is None:
            return
        with suppress(OSError), process:
            assert process.stdin
            process.stdin.close()
            try:
                process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                process.kill()
        if errors:
            errors.close()


KEY = pytest.StashKey[SecondProcess]()


def second_process(config: pytest.Config) -> SecondProcess:
    """Return the second process of a session of pytest, which ends with it."""
    if KEY not in config.stash:
        config.stash[KEY] = process = SecondProcess()
        config.add_cleanup(process.close)
    return config.stash[KEY]


# -- in the second process ---------------------------------------------------------------------------------------------
def serve() -> None:
    """Read names of suites from standard input until it ends, and write digests of their results."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # it ends with the first process
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what components print is no answer
    for line in sys.stdin:
        answers.write(json.dumps(_compute(*json.loads(line))) + "\n")
        answers.flush()


def _compute(module: str, file: str | None, name: str) -> dict[str, dict[str, str]]:
    try:
        suite: Any = reduce(getattr, name.split("."), import_test_module(module, file))
        return {"results": digest_results(suite().results())}
    except (Exception, pytest.fail.Exception, pytest.skip.Exception) as error:
        return {"errors": {type(error).__name__: str(error)}}


def import_test_module(name: str, file: str | None) -> Any:
    """Import a module of tests by the name that it has in the first process, which need not lead to its file.

    With its import mode importlib, pytest names a file by its path from the root, as ``plugins.zoo.tests.test_zoo``.
    """
    *packages, last = name.split(".")
    if file and Path(file).stem == last and [*Path(file).parts[-len(packages) - 1 : -1]] == packages:
        root = str(Path(file).parents[len(packages)])
        sys.path += [] if root in sys.path else [root]
    module = import_module(name)
    if file and not Path(file).samefile(str(module.__file__)):
        raise ImportError(f"{name}: is {module.__file__} there, instead of {file}")
    return module
