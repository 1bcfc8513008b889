"""Call functions in new threads, with futures for their results."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from threading import Thread
from typing import TypeVar

T = TypeVar("T")
COMPILING = "sigma-compiler"  # begins the names of threads whose results nobody needs when the process ends


def in_thread(act: Callable[[], T], name: str, daemon: bool = True) -> Future[T]:
    """Call a function in a new thread of this name; return the future of its result or exception.

    If not ``daemon``, it finishes even when the interpreter exits; executors cannot start threads then.
    """
    answer: Future[T] = Future()

    def run() -> None:
        try:
            answer.set_result(act())
        except BaseException as error:  # raised by the future's result()
            answer.set_exception(error)

    Thread(target=run, name=name, daemon=daemon).start()
    return answer
