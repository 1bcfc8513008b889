"""Processes that run one function, return its result, and can be interrupted or killed."""

from __future__ import annotations

import json
import os
import signal
import sys
import traceback
from collections.abc import Callable
from typing import Any

from attrs import define


@define
class Forked:
    """A process that calls a function, and the pipe for its result."""

    number: int
    answers: int

    def answer(self) -> Any:
        """Return the function's result, or None if the process was interrupted before it could send one."""
        with os.fdopen(self.answers) as pipe:
            text = pipe.read()
        _, status = os.waitpid(self.number, 0)
        if os.WIFSIGNALED(status):
            assert os.WTERMSIG(status) == signal.SIGKILL, f"ended by signal {os.WTERMSIG(status)}"
            return None
        assert text, "a process failed; see above"
        return json.loads(text)


def begun(act: Callable[..., Any], *given: Any) -> Forked:
    """Start a process that calls a function; the result must be JSON."""
    answers, told = os.pipe()
    child = os.fork()
    if child:
        os.close(told)
        return Forked(child, answers)
    os.close(answers)
    try:
        with os.fdopen(told, "w") as pipe:
            pipe.write(json.dumps(_unless_interrupted(act, *given)))
    except BaseException:
        traceback.print_exc()
    sys.stderr.flush()
    os._exit(0)


def _unless_interrupted(act: Callable[..., Any], *given: Any) -> Any:
    try:
        found = act(*given)
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # while the result is sent
    except KeyboardInterrupt:  # it arrived after training had ended
        return None
    return found


def alone(act: Callable[..., Any], *given: Any) -> Any:
    """Return a function's result, computed in a separate process."""
    return begun(act, *given).answer()
