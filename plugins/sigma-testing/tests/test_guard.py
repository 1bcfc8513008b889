"""What a component changes of its process is a failure of every suite, and is put back."""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from attrs import define

from sigma_kernel import Hook, HookContext, TimeStep, every
from sigma_testing import HookSuite
from sigma_testing.guard import guard

from .faults import failed

CHANGES: dict[str, tuple[Callable[[], Any], str]] = {
    "the directory": (lambda: os.chdir("/"), "it changes the working directory of the process. Write with full paths"),
    "errors of floats": (lambda: np.seterr(all="raise"), "it changes np.seterr() of the process"),
    "a seed of NumPy": (lambda: np.random.seed(0), "it changes NumPy's global random numbers"),
    "a draw of NumPy": (np.random.random, "it changes NumPy's global random numbers"),
    "a seed of Python": (lambda: random.seed(0), "it changes Python's global random numbers"),
    "a new variable": (lambda: os.environ.update(ACME="1"), "it changes the environment variables"),
    "a variable less": (lambda: os.environ.pop("PATH"), "it changes the environment variables"),
    "a signal": (lambda: signal.signal(signal.SIGTERM, signal.SIG_IGN), "it changes the signal handlers"),
    "output": (lambda: print("Welcome!"), "it prints 'Welcome!'. Return what there is to say, or log it; what a ref"),
    "a thread": (
        lambda: threading.Thread(target=time.sleep, args=(30,), name="acme", daemon=True).start(),
        "it leaves threads that run on: acme. Join them before it returns"),
}  # fmt: skip


def state() -> Any:
    words = np.random.get_state()
    return os.getcwd(), np.geterr(), words[1].tobytes(), random.getstate(), dict(os.environ), signal.getsignal(15)


@pytest.mark.parametrize("name", CHANGES)
def test_a_change_of_the_process_is_named_and_put_back(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sigma_testing.guard.PATIENCE", 0.05)
    act, message = CHANGES[name]
    before = state()
    with pytest.raises(AssertionError) as caught, guard():
        act()
    assert str(caught.value).startswith(message)
    assert state() == before


def test_what_changes_nothing_passes_and_threads_may_end_a_little_later() -> None:
    with guard():
        np.random.default_rng(0).normal()
        threading.Thread(target=time.sleep, args=(0.05,)).start()


def test_a_module_that_is_imported_may_draw_and_add_variables_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("ACME", "1")
    monkeypatch.delenv("ACME_CACHE", raising=False)
    adds, changes = "random.random(); os.environ['ACME_CACHE'] = '2'", "os.environ['ACME'] = '2'"
    for name, line in ("acme_adds", adds), ("acme_changes", changes):
        (tmp_path / f"{name}.py").write_text(f"import os, random\n{line}\n", encoding="utf-8")
    drawn = random.getstate()
    with guard():
        import_module("acme_adds")
    assert random.getstate() == drawn
    assert os.environ["ACME_CACHE"] == "2"
    with pytest.raises(AssertionError, match="it changes the environment variables"), guard():
        import_module("acme_changes")
    assert os.environ["ACME"] == "1"
    monkeypatch.delenv("ACME_CACHE")
    with pytest.raises(AssertionError, match="it changes the environment variables"), guard():
        os.environ["ACME_CACHE"] = "2"
    assert "ACME_CACHE" not in os.environ


def test_a_thread_that_is_about_to_start_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    thread, listed = threading.Thread(target=time.sleep, args=(0.01,)), threading.enumerate
    start = threading.Timer(0.05, thread.start)  # as when its start was interrupted by the other thread
    with guard():
        start.start()
        monkeypatch.setattr(threading, "enumerate", lambda: [*listed(), thread])
    assert thread.ident is not None
    assert not thread.is_alive()


def test_output_is_allowed_for_components_that_print(capsys: pytest.CaptureFixture[str]) -> None:
    with guard(prints=True):
        print("a table")
    assert capsys.readouterr().out == "a table\n"


def test_what_does_not_end_fails_after_its_time() -> None:
    before = signal.getsignal(signal.SIGALRM)
    with pytest.raises(pytest.fail.Exception, match="has not ended after 0.1 seconds"), guard(seconds=0.1):
        _loop()
    assert signal.getsignal(signal.SIGALRM) is before


def test_an_error_inside_is_not_hidden_by_the_guard() -> None:
    with pytest.raises(ValueError, match="own"), guard():
        _seed_and_raise()


def _loop() -> None:
    while True:
        pass


def _seed_and_raise() -> None:
    np.random.seed(0)
    raise ValueError("own")


@define(eq=False, kw_only=True)
class Moves(Hook):
    """A hook that changes the working directory."""

    every: TimeStep = every(1, "epoch")

    @property
    def reads(self) -> Sequence[str]:
        return ["training.loss"]

    def fire(self, context: HookContext) -> None:
        os.chdir("/")


def test_every_test_of_a_suite_that_uses_the_component_is_guarded() -> None:
    class Suite(HookSuite):
        def make(self) -> Hook:
            return Moves()

    before = os.getcwd()
    assert failed(Suite()) >= {"test_it_can_be_made_and_used", "test_it_keeps_nothing_on_itself"}
    assert os.getcwd() == before
