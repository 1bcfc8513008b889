"""Import a plugin in a process of its own, and print what that changed as JSON.

``python -m sigma_run.published.probe DISTRIBUTION [MODULE...]`` imports the modules first, which a plugin would
otherwise begin itself: their own state then belongs to nobody.
"""

from __future__ import annotations

import json
import logging
import os
import random
import signal
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import metadata
from typing import Any

from sigma_kernel import Component, hookimpl, lazy_exports
from sigma_kernel.plugins.discovery import normal
from sigma_kernel.plugins.specs import GROUP

LIGHT = (Component, hookimpl, lazy_exports)  # what every plugin imports has been imported
HANDLERS = signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}


def read_state() -> dict[str, Any]:
    """Return what an import must leave as it is, by the words for it."""
    root, numpy = logging.getLogger(), sys.modules.get("numpy")
    state: dict[str, Any] = {
        **{f"the handler of {signal.Signals(n).name}": signal.getsignal(n) for n in HANDLERS if n in {*signal.Signals}},
        "Python's random numbers": random.getstate(),
        "the logging of all libraries": (root.level, [*root.handlers], logging.root.manager.disable),
        "the filters of warnings": [*warnings.filters],
        "the working directory": os.getcwd(),
        "the environment variables": dict(os.environ),
        "the encoding of stdout": (sys.stdout.encoding, sys.stdout.errors),
        "sys.excepthook": sys.excepthook,
        "the limit of recursion": sys.getrecursionlimit(),
    }
    if numpy is not None:
        state["np.seterr"] = numpy.geterr()
        kind, keys, *rest = numpy.random.get_state(legacy=True)
        state["NumPy's random numbers"] = kind, keys.tobytes(), rest
    return state


@contextmanager
def capture_output() -> Iterator[Callable[[], str]]:
    """Send both output streams to a file, also what libraries of C write; the function yielded returns their text."""
    before = os.dup(1), os.dup(2)
    with tempfile.TemporaryFile() as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)

        def read() -> str:
            sys.stdout.flush()
            sys.stderr.flush()
            file.seek(0)
            return file.read(10_000).decode(errors="replace")

        try:
            yield read
        finally:
            for number, saved in enumerate(before, 1):
                os.dup2(saved, number)


def probe_import(distribution: str) -> dict[str, Any]:
    """Import the modules that the entry points of a distribution name; return what that took, printed and changed."""
    entries = [
        e for e in metadata.entry_points(group=GROUP) if e.dist and normal(e.dist.metadata["Name"]) == distribution
    ]
    before, modules, threads = read_state(), {*sys.modules}, threading.active_count()
    with capture_output() as read:
        start, error = time.perf_counter(), ""
        try:
            for entry in entries:
                entry.load()
        except BaseException as raised:  # discovery tells of it; also SystemExit
            error = type(raised).__name__
        seconds, output = time.perf_counter() - start, read()
    after = read_state()
    changed = [name for name, value in before.items() if after.get(name) != value]
    return {
        "seconds": seconds,
        "error": error,
        "output": output,
        "changed": changed + (["the number of threads"] if threading.active_count() > threads else []),
        "modules": sorted(set(_list_libraries({*sys.modules} - modules))),
        "own": sorted({entry.value.partition(":")[0].partition(".")[0] for entry in entries}),
    }


def _list_libraries(modules: set[str]) -> Iterator[str]:
    """Yield the top-level names of modules beyond the standard library, which an import system has found."""
    for top in (name.partition(".")[0] for name in modules):
        if top not in sys.stdlib_module_names and getattr(sys.modules.get(top), "__spec__", None) is not None:
            yield top


if __name__ == "__main__":
    report = os.dup(1)
    os.dup2(2, 1)  # also for what a plugin prints when the process ends
    for name in sys.argv[2:]:
        metadata.EntryPoint(name, name, GROUP).load()
    os.write(report, json.dumps(probe_import(sys.argv[1])).encode())
