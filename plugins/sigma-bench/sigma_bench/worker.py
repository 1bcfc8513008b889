"""Process of a contestant: serves pickled requests from stdin, and answers on stdout.

Each contestant has its own memory, its libraries' threads are idle while others are measured, and libraries' global
settings do not affect each other.
"""

from __future__ import annotations

import os
import pickle
import signal
import sys
import traceback
from importlib import import_module
from typing import Any, BinaryIO

from sigma_bench.memory import forget
from sigma_kernel.errors import SigmaError, SigmaTrainingError


def main() -> None:
    """Serve until the other side closes the connection; printed output goes to stderr."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all processes; the main process ends the others
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    serve(sys.stdin.buffer, answers)


def serve(questions: BinaryIO, answers: BinaryIO) -> None:
    """Create an object from ``(path, arguments)``, then read or call its members ``(name, arguments)``.

    Each answer is ``(True, value)`` or ``(False, error)``.
    """
    held: list[Any] = []
    while questions.peek(1):  # type: ignore[attr-defined]  # every buffered reader has it
        name, arguments = pickle.load(questions)
        pickle.dump(_answer(held, name, arguments), answers, protocol=5)
        answers.flush()


def _answer(held: list[Any], name: str, arguments: Any) -> tuple[bool, Any]:
    try:
        if held:
            member = getattr(held[0], name)
            return True, member(*arguments) if callable(member) else member
        module, _, attribute = name.partition(":")
        held.append(getattr(import_module(module), attribute)(*arguments))
        forget()
        return True, None
    except SigmaError as error:
        return False, error
    except Exception as error:  # any error of a library: the main process reports it, and this one prints the traceback
        traceback.print_exc()
        return False, SigmaTrainingError(f"{type(error).__name__}: {error}")


if __name__ == "__main__":
    main()
