"""A process that trains members of a study, one after the other: ``python -m sigma_run.study.worker STUDY``.

Each line of its input is a member, each line of its output the results of one.  It ends with its input: if the process
that started it is gone, it saves a checkpoint first.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import warnings
from collections.abc import Iterable
from pathlib import Path
from queue import SimpleQueue
from typing import Any, TextIO

from sigma_kernel.environment import Environment
from sigma_kernel.errors import error_text
from sigma_kernel.plain import strict
from sigma_kernel.plugins.catalogue import catalogue
from sigma_kernel.signals import EARLY, ENDING, terminate
from sigma_run.config.building import hush
from sigma_run.config.document import read
from sigma_run.config.reading import load_configuration
from sigma_run.config.stores import BASE
from sigma_run.study.members import MemberOpener
from sigma_run.study.plan import Member
from sigma_store.folders import WrittenFolder


def train_members(path: Path, lines: TextIO, answers: TextIO) -> None:
    """Train the member of each line, and answer with a line of results."""
    base = read(path / BASE, regular=True)
    opener = MemberOpener(WrittenFolder(path), base, lambda document: load_configuration(document, catalogue()), _say)
    queue = SimpleQueue[str]()
    threading.Thread(target=_forward, args=(lines, queue), daemon=True).start()
    while line := queue.get():
        values = json.loads(line)
        results = _train(opener, Member(folder=values["folder"], overrides=tuple(values["overrides"])))
        answers.write(json.dumps(strict(results)) + "\n")
        answers.flush()
        if results["status"] == "interrupted":
            return


def _forward(lines: Iterable[str], queue: SimpleQueue[str]) -> None:
    """Queue the lines of the input; at its end, end training after a checkpoint."""
    for line in lines:
        queue.put(line)
    queue.put("")
    os.kill(os.getpid(), signal.SIGTERM)


def _train(opener: MemberOpener, member: Member) -> dict[str, Any]:
    """Train a member; return its results as JSON values."""
    try:
        with opener.open(member) as environment:
            return _run(environment)
    except KeyboardInterrupt:
        return {"status": "interrupted"}
    except Exception as error:
        return {"status": "interrupted"} if EARLY else {"status": "failed", "why": error_text(error)}


def _run(environment: Environment) -> dict[str, Any]:
    """Train; return the summary, also of an aborted run."""
    hush(environment)
    try:
        return environment.run(progress=False).to_dict()
    except KeyboardInterrupt:
        return environment.summary().to_dict()


def _say(text: str) -> None:
    print(text, file=sys.stderr)


def main() -> None:
    """Train until the input ends; what members print goes to the messages."""
    warnings.showwarning = lambda message, *place: _say(f"warning: {message}")
    for number in ENDING:
        signal.signal(number, terminate)
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    try:
        train_members(Path(sys.argv[1]), sys.stdin, answers)
    except KeyboardInterrupt:
        os._exit(128 + signal.SIGTERM)  # another signal finds nothing to interrupt, such as exit callbacks
    os._exit(0)  # nobody waits for programs that are still being compiled


if __name__ == "__main__":
    main()
