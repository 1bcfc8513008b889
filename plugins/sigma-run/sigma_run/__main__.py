"""The ``sigma`` script, and ``python -m sigma_run``, which works wherever the script does."""

import atexit
import os
import signal
import sys
import threading
from contextlib import suppress
from typing import Any

HEEDED = signal.getsignal(signal.SIGINT) is signal.default_int_handler  # a job in the background ignores Ctrl-C
if HEEDED:
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # nothing to finish yet: no traceback out of the imports
from sigma_kernel.signals import ENDING, terminate  # noqa: E402
from sigma_kernel.threads import COMPILING  # noqa: E402
from sigma_run.launcher import main  # noqa: E402


def start() -> None:
    """Run the ``sigma`` command and leave with its exit code."""
    sys.unraisablehook = unraisable
    try:
        for number in ENDING:
            if signal.getsignal(number) is signal.SIG_DFL:
                signal.signal(number, terminate)
        code = main()
    except KeyboardInterrupt as error:  # beside what main() catches
        code = 128 + int((*error.args, signal.SIGINT)[0])
    with suppress(OSError):  # main() has told of output that cannot be written
        sys.stdout.flush()
    os.dup2(2, 1)  # all results are out: what plugins print at the exit is none
    leave(code)


def leave(code: int) -> None:
    """End the process; at once, if a thread still compiles for iterations that do not come."""
    if any(thread.name.startswith(COMPILING) for thread in threading.enumerate()):
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    sys.exit(code)


def unraisable(problem: Any) -> None:
    """Print an error that Python cannot raise, as in a destructor, but no interruption: a signal is remembered."""
    if not isinstance(problem.exc_value, KeyboardInterrupt):
        sys.__unraisablehook__(problem)


if __name__ == "__main__":
    start()
