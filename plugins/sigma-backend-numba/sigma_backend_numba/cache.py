"""Source to machine code, kept on disk: a second process finds it compiled.

The folder belongs to the user alone (what lies in it is run), and a program is found by its text, the text of the
runtime, and the versions of what compiled it.  Where there is no such folder, programs are compiled anew.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import importlib.util
import linecache
import logging
import os
import stat
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

Burst = Callable[[int, int, int, int], int]

VARIABLE = "SIGMA_NUMBA_CACHE"
KEPT = 256  # programs; the oldest go
PACKAGES = ("numba", "llvmlite", "numpy", "scipy-openblas32")
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
            _loaded[name] = _from_disk(name, text) or _run(name, text, f"<{name}>", cached=False).burst
        return _loaded[name]


def key(text: str) -> str:
    """Return the name of a program."""
    parts = [text, *(path.read_text("utf-8") for path in sorted((Path(__file__).parent / "runtime").glob("*.py")))]
    parts += [f"{package} {importlib.metadata.version(package)}" for package in PACKAGES]
    return "sigma_" + hashlib.sha256("\0".join([*parts, sys.version]).encode()).hexdigest()[:32]


def _from_disk(name: str, text: str) -> Burst | None:
    """Return a program that is kept on disk, or put it there; None where that cannot be."""
    try:
        path = _private(folder()) / f"{name}.py"
        if not path.exists():
            _write(path, text)
            _prune(path.parent)
        burst: Burst = _run(name, path.read_text("utf-8"), str(path), cached=True).burst
    except Exception as error:  # whatever is wrong with what lies there, the text can be compiled without it
        _log.warning("numba: the cache %s cannot be used (%s); this program is compiled without it.", folder(), error)
        return None
    return burst


def _private(path: Path) -> Path:
    """Return a folder that nobody else can write to, or raise."""
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    found = path.stat()
    foreign = hasattr(os, "getuid") and found.st_uid != os.getuid()
    if foreign or (os.name == "posix" and stat.S_IMODE(found.st_mode) & 0o077):
        raise PermissionError(f"{path} is open to others; make it your own with mode 700")
    return path


def _write(path: Path, text: str) -> None:
    """Write a file whole, unless another process was faster: one that is there is never changed."""
    descriptor, made = tempfile.mkstemp(dir=path.parent, suffix=".new")
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
        if not path.exists():
            os.replace(made, path)
    finally:
        Path(made).unlink(missing_ok=True)


def _prune(path: Path) -> None:
    """Remove the oldest programs where there are too many."""
    found = sorted(path.glob("sigma_*.py"), key=lambda file: file.stat().st_mtime)
    for old in found[:-KEPT]:
        for compiled in (path / "__pycache__").glob(f"{old.stem}*"):
            compiled.unlink(missing_ok=True)
        old.unlink(missing_ok=True)


def _run(name: str, text: str, path: str, cached: bool) -> ModuleType:
    """Return the module of a program's text, compiled or loaded."""
    module = ModuleType(name)
    module.__file__ = path
    module.__dict__["CACHED"] = cached
    linecache.cache[path] = (len(text), None, text.splitlines(keepends=True), path)
    sys.modules[name] = module
    try:
        exec(compile(text, path, "exec"), module.__dict__)
    except BaseException:
        del sys.modules[name]
        raise
    return module
