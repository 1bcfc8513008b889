"""A second copy of a run that goes to one of its moments: ``python -m sigma_run.moments.replica``.

Its input is a line of JSON, the fields of a :class:`Wish`. Each line of its output is the iteration that it has
reached, the last one what became of it. It runs at the lowest priority, and ends with its input.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TextIO

from attrs import define, evolve, frozen

from sigma_kernel.contracts.storing import Checkpoint, Log, StoredRun
from sigma_kernel.environment import Environment
from sigma_kernel.errors import SigmaConfigError, SigmaError, error_text
from sigma_run.config.building import prepare
from sigma_run.config.stored import open_stored
from sigma_run.config.stores import open_run
from sigma_run.config.trained import select_trainer
from sigma_store.run_folder import replace_network
from sigma_training.lifecycle import recall_moment
from sigma_training.runs.moments import RunMoment
from sigma_training.trainer import NetworkTrainer

LOWEST = 19  # priority: what trains comes first
INTERVAL = 0.2  # seconds between two reports


@frozen
class Wish:
    """What is to be recalled: a moment of a trainer of a run, and where its state is to be written."""

    run: str
    at: int
    branch: int | None = None
    trainer: str | None = None
    data: str | None = None
    trust: Sequence[str] = ()
    place: str = ""


@define(eq=False)
class RunCopy:
    """A second copy of one trainer of a stored run; nothing of the run is written."""

    stored: StoredRun
    environment: Environment
    trainer: NetworkTrainer
    moment: RunMoment
    log: Log

    @classmethod
    def open(cls, wish: Wish, log: Log) -> RunCopy:
        """Build and prepare the copy; raise a SigmaError if the run cannot be opened, or its data are others now."""
        run = Path(wish.run).absolute()
        if wish.at < 0:
            raise SigmaConfigError(f"at: must be an iteration from 0 on (got {wish.at}).")
        stored = open_run(run, log)
        configuration, environment = open_stored(run, wish.trust, None if wish.data is None else Path(wish.data))
        trainer = select_trainer(run, environment, wish.trainer)
        environment.begin_from(run)
        prepare(configuration, environment)
        return cls(stored, environment, trainer, RunMoment(wish.at, wish.branch), log)

    @property
    def iteration(self) -> int:
        """Return the iteration that it has reached; left branches on the way are computed as well."""
        return self.trainer.session.moment.iteration

    def state(self) -> Checkpoint:
        """Return its state, with the number of its branch."""
        session = self.trainer.session
        saved = session.snapshot()
        values = {**saved.values, "branch": session.recorder.branch}
        return evolve(saved, values=values, made_with=session.checkpoints.made_with())

    def go(self) -> None:
        """Go to the moment."""
        journal = self.stored.excerpt(self.environment.trainers, self.log)
        recall_moment(self.trainer.lifecycle, self.stored, journal, self.moment, self.log)

    def go_reporting(self, report: Callable[[int], object], interval: float) -> None:
        """Go to the moment, and report meanwhile, from another thread, which iteration is reached."""
        over = threading.Event()

        def watch() -> None:
            while not over.wait(interval):
                report(self.iteration)

        watching = threading.Thread(target=watch, daemon=True)
        watching.start()
        try:
            self.go()
        finally:
            over.set()
            watching.join()


def answer(wish: Wish, say: Callable[[dict[str, Any]], object], log: Log) -> None:
    """Recall a moment, and write its state; say what is reached, and what became of it."""
    try:
        copy = RunCopy.open(wish, log)
        with copy.environment:
            copy.go_reporting(lambda iteration: say({"iteration": iteration}), INTERVAL)
            label, name = str(wish.at), copy.trainer.name
            replace_network(Path(wish.place), lambda run: run.checkpoints(name).write(label, copy.state()))
    except Exception as error:
        kind = type(error) if isinstance(error, SigmaError) else SigmaError
        say({"error": kind.__name__, "why": error_text(error)})
    else:
        say({"done": True})


def _end_with(lines: TextIO) -> None:
    """End the process with its input."""
    lines.read()
    os._exit(1)


def main() -> None:
    """Recall what the first line of the input asks for; whatever is printed goes to the messages."""
    os.nice(LOWEST)
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    warnings.showwarning = lambda message, *place: print(f"warning: {message}", file=sys.stderr)
    wish = Wish(**json.loads(sys.stdin.readline()))
    threading.Thread(target=_end_with, args=(sys.stdin,), daemon=True).start()
    answer(wish, lambda document: answers.write(json.dumps(document) + "\n"), lambda text: None)
    answers.flush()
    os._exit(0)  # nobody waits for programs that are still being compiled


if __name__ == "__main__":
    main()
