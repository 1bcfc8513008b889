"""Programs on disk as object code: a second process finds them planned and compiled.

The folder belongs to the user alone (what lies in it is run).  A program is found by its job (the graph and all that
surrounds it), the text of what plans, writes and compiles it, the version of LLVM, and the processor; a file that is
damaged is made anew.  Where there is no such folder, every process compiles for itself.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import logging
import math
import os
import platform
import stat
import tempfile
import threading
from collections.abc import Callable
from functools import cache
from pathlib import Path

from sigma_backend_numba.compiler import words
from sigma_backend_numba.compiler.machine import Burst, compiled, loaded, processor
from sigma_kernel.graph import node

ROUGHLY = "# roughly"  # the first line of programs whose exponentials, logarithms and tangents may be approximations
Needs = dict[str, int]  # what the caller of a program must prepare
VARIABLE = "SIGMA_NUMBA_CACHE"
KEPT = 256  # programs; the oldest go
DIGEST = 32  # bytes before the code, by which damage is seen
_log = logging.getLogger("sigma.numba")
_loaded: dict[str, tuple[Needs, Burst]] = {}
_lock = threading.RLock()


def folder() -> Path:
    """Return where programs are kept: ``$SIGMA_NUMBA_CACHE``, or a folder among the user's caches."""
    if VARIABLE in os.environ:
        return Path(os.environ[VARIABLE])
    if os.name == "nt":
        return Path(os.environ.get("LOCALAPPDATA", Path.home())) / "sigma" / "numba"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "sigma" / "numba"


def load(job: str, make: Callable[[], tuple[Needs, str]]) -> tuple[Needs, Burst]:
    """Return what the program of a job needs, and its burst; it is planned and compiled at most once in this process.

    ``make`` returns what it needs and its text.  It is not called for a program that is known.
    """
    name = key(job)
    with _lock:
        if name not in _loaded:
            needs, _, code = (_from_disk(name, make) or _made(make)).partition(b"\n")
            _loaded[name] = json.loads(needs), loaded(code)
        return _loaded[name]


def key(job: str) -> str:
    """Return the name of a program."""
    parts = (job, makers(), platform.system(), platform.machine(), *processor())
    return "sigma_" + hashlib.sha256("\0".join(parts).encode()).hexdigest()[:32]


@cache
def makers() -> str:
    """Return what a program depends on beside its job: the text of what makes it, and the version of LLVM.

    Who puts other functions into these modules while they are at work has to say so here.
    """
    folders = (Path(__file__).parent, Path(node.__file__).parent)
    files = (path for folder in folders for path in sorted(folder.rglob("*.py")))
    return "\0".join([importlib.metadata.version("llvmlite"), *(path.read_text("utf-8") for path in files)])


def _made(make: Callable[[], tuple[Needs, str]]) -> bytes:
    """Return what a program needs, in a line, and its code."""
    needs, text = make()
    return json.dumps(needs).encode() + b"\n" + _compiled(text)


def _compiled(text: str) -> bytes:
    from sigma_backend_numba import runtime  # not needed where the code is known already

    names = {**vars(words), **vars(runtime), "inf": math.inf, "nan": math.nan}
    return compiled(text, names | runtime.ROUGH if text.startswith(ROUGHLY) else names)


def _from_disk(name: str, make: Callable[[], tuple[Needs, str]]) -> bytes | None:
    """Return code that is kept on disk, or put it there; None where that cannot be."""
    try:
        path = _private(folder()) / f"{name}.o"
        if path.exists() and (code := _undamaged(path.read_bytes())):
            return code
        code = _made(make)
        _write(path, hashlib.sha256(code).digest() + code)
        _prune(path.parent)
    except OSError as error:
        _log.warning("numba: the cache %s cannot be used (%s); this program is compiled without it.", folder(), error)
        return None
    return code


def _undamaged(content: bytes) -> bytes | None:
    code = content[DIGEST:]
    return code if hashlib.sha256(code).digest() == content[:DIGEST] else None


def _private(path: Path) -> Path:
    """Return a folder that nobody else can write to, or raise."""
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    found = path.stat()
    foreign = hasattr(os, "getuid") and found.st_uid != os.getuid()
    if foreign or (os.name == "posix" and stat.S_IMODE(found.st_mode) & 0o077):
        raise PermissionError(f"{path} is open to others; make it your own with mode 700")
    return path


def _write(path: Path, content: bytes) -> None:
    """Write a file whole: another process sees all of it or none."""
    descriptor, made = tempfile.mkstemp(dir=path.parent, suffix=".new")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
        os.replace(made, path)
    finally:
        Path(made).unlink(missing_ok=True)


def _prune(path: Path) -> None:
    """Remove the oldest programs where there are too many."""
    found = sorted(path.glob("sigma_*.o"), key=lambda file: file.stat().st_mtime)
    for old in found[:-KEPT]:
        old.unlink(missing_ok=True)
