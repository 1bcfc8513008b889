"""Programs on disk as object code: a second process finds them compiled.

The folder belongs to the user alone (what lies in it is run).  A program is found by its text, the text of what
compiles it, the version of LLVM, and the processor; a file that is damaged is made anew.  Where there is no such
folder, every process compiles for itself.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import logging
import math
import os
import stat
import tempfile
import threading
from functools import cache
from pathlib import Path

from sigma_backend_numba.compiler import words
from sigma_backend_numba.compiler.machine import Burst, compiled, loaded, processor

ROUGHLY = "# roughly"  # the first line of programs whose exponentials, logarithms and tangents may be approximations
VARIABLE = "SIGMA_NUMBA_CACHE"
KEPT = 256  # programs; the oldest go
DIGEST = 32  # bytes before the code, by which damage is seen
_log = logging.getLogger("sigma.numba")
_loaded: dict[str, Burst] = {}
_lock = threading.RLock()


def folder() -> Path:
    """Return where programs are kept: ``$SIGMA_NUMBA_CACHE``, or a folder among the user's caches."""
    if VARIABLE in os.environ:
        return Path(os.environ[VARIABLE])
    if os.name == "nt":
        return Path(os.environ.get("LOCALAPPDATA", Path.home())) / "sigma" / "numba"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "sigma" / "numba"


def load(text: str) -> Burst:
    """Return the burst of a program's text, compiled at most once in this process."""
    name = key(text)
    with _lock:
        if name not in _loaded:
            _loaded[name] = loaded(_from_disk(name, text) or _compiled(text))
        return _loaded[name]


def key(text: str) -> str:
    """Return the name of a program."""
    parts = (text, _compiler(), *processor())
    return "sigma_" + hashlib.sha256("\0".join(parts).encode()).hexdigest()[:32]


@cache
def _compiler() -> str:
    """Return what machine code depends on beside its text: the text of the compiler, and the version of LLVM's."""
    here = Path(__file__).parent
    files = (path for part in ("runtime", "compiler") for path in sorted((here / part).glob("*.py")))
    return "\0".join([importlib.metadata.version("llvmlite"), *(path.read_text("utf-8") for path in files)])


def _compiled(text: str) -> bytes:
    from sigma_backend_numba import runtime  # not needed where the code is known already

    names = {**vars(words), **vars(runtime), "inf": math.inf, "nan": math.nan}
    return compiled(text, names | runtime.ROUGH if text.startswith(ROUGHLY) else names)


def _from_disk(name: str, text: str) -> bytes | None:
    """Return code that is kept on disk, or put it there; None where that cannot be."""
    try:
        path = _private(folder()) / f"{name}.o"
        if path.exists() and (code := _undamaged(path.read_bytes())):
            return code
        code = _compiled(text)
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
