"""Steer runs on a disk that fills and empties, kill them, resume and replay them: is every acknowledged command there?

::

    unshare --map-root-user --mount sh -c 'mount -t tmpfs -o size=256k none DIR && python crowded.py DIR 200 [SEED]'

In each round, a process trains and saves continuously while two threads set the learning rate as fast as they are
answered; the disk is filled and emptied at random times, and the process is killed at another, often while the disk is
full.  Then space is freed, and the run is resumed.  Every acknowledged command must be in its journal, and the replay
must have the same bits.  Prints one JSON document; exits with an error at the first lost command.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import sys
import threading
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any

from attrs import define
from forked import alone

from sigma_kernel.clock import TimeStep, every
from sigma_kernel.contracts import Hook, HookContext
from sigma_kernel.environment import Environment
from sigma_kernel.errors import SigmaError
from sigma_testing.journals import read_journal
from sigma_testing.steering import Slow, Sweep, small_environment

RATE = "trainer.optimiser.learning_rate"


@define(eq=False, kw_only=True)
class Saves(Hook):
    """Save, keep the last two, and stop at the end."""

    every: TimeStep = every(4, "iteration")
    last: int = 0

    @property
    def retains(self) -> dict[str, Any]:
        """Return the retention policy."""
        return {"last": 2}

    def fire(self, context: HookContext) -> None:
        """Save, or stop."""
        context.command("stop" if 0 < self.last <= context.moment.iteration else "save")


def made(folder: Path | None = None, last: int = 0) -> Environment:
    """Return a run that saves continuously."""
    sigma = small_environment(Sweep(), hooks={"slow": Slow(), "saves": Saves(last=last)})
    sigma.folder = folder
    return sigma


def train(folder: Path, pipe: int) -> None:
    """Train forever while threads set unique numbers; report acknowledgements through a pipe."""
    sigma = made(folder)
    sigma.prepare()

    def steer(person: int) -> None:
        number = 0
        while True:
            number += 1
            value = 0.01 + person / 1000 + number / 10**8
            with suppress(SigmaError):
                sigma.set(RATE, value)
                os.write(pipe, f"{value!r}\n".encode())
            time.sleep(0.002)

    for person in range(2):
        threading.Thread(target=steer, args=[person], daemon=True).start()
    sigma.run()


def resumed(run: Path) -> list[float]:
    """Resume a run, train a little, and return the numbers set according to its journal."""
    last = 8 + max([0, *(row["iteration"] for row in rows_of(run))])
    with made(last=last) as sigma:
        sigma.resume(run, log=lambda text: None)
        sigma.run()
        assert not [text for _, text in sigma.messages.entries_after(0) if "differs" in text]
    with made(last=last) as again:
        _, differs = again.replay(run)
        assert not differs, differs
    return [row["value"] for row in read_journal(run) if row.get("command") == "set"]


def rows_of(run: Path) -> list[dict[str, Any]]:
    """Return the rows of a journal, whose last line may be incomplete, and those in checkpoints."""
    lines = (run / "journal.jsonl").read_text().split("\n")[1:-1]
    for manifest in run.glob("checkpoints/trainer/[0-9]*/manifest.json"):
        lines += [line for line in json.loads(manifest.read_text())["chain"]["rows"] if '"trainer"' in line]
    return [json.loads(line) for line in lines]


def fill(disk: Path) -> None:
    """Fill the disk."""
    with suppress(OSError), (disk / "filler").open("wb", buffering=0) as file:
        while file.write(bytes(4096)):
            pass


def round_of(disk: Path, draw: random.Random) -> Counter[str]:
    """Kill one run on a disk that fills and empties, and resume it."""
    reads, writes = os.pipe()
    child = os.fork()
    if not child:
        os.close(reads)
        with suppress(BaseException):
            train(disk / "runs", writes)
        os._exit(1)
    os.close(writes)
    while not [*disk.glob("runs/*/checkpoints/trainer/[0-9]*")]:
        time.sleep(0.001)
    for _ in range(draw.randrange(1, 5)):
        fill(disk)
        time.sleep(draw.uniform(0, 0.15))
        full = draw.random() < 0.3
        if full:
            break
        (disk / "filler").unlink()
        time.sleep(draw.uniform(0, 0.08))
    os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status), "a process failed"
    (disk / "filler").unlink(missing_ok=True)
    with os.fdopen(reads) as pipe:
        answered = [float(line) for line in pipe.read().split("\n")[:-1]]
    (run,) = (disk / "runs").iterdir()
    end = (run / "journal.jsonl").read_text()
    held = alone(resumed, run)
    lost = [value for value in answered if value not in held]
    assert not lost, f"{len(lost)} of {len(answered)} commands that were answered are lost: {lost[:5]}"
    found = {"answered": len(answered), "killed_while_full": full, "put_back": _put_back(end, run)}
    shutil.rmtree(run)
    return Counter(found)


def _put_back(before: str, run: Path) -> bool:
    """Return whether a checkpoint restored lines that the journal had lost."""
    now = (run / "journal.jsonl").read_text()
    more = now[before.rfind("\n") + 1 :].split("\n")
    return bool(more) and '"resumed"' not in more[0]


def main(disk: Path, rounds: int, seed: int = 0) -> None:
    """Run that many rounds and print the results."""
    print(f"drawn from seed {seed}", file=sys.stderr)
    done = Counter[str]()
    for number in range(rounds):
        try:
            done += round_of(disk, random.Random(f"{seed}.{number}"))
        except BaseException:
            print(f"round {number} of seed {seed}", file=sys.stderr)
            raise
    print(json.dumps({"runs": rounds, "lost": 0, "seed": seed, **done}))


if __name__ == "__main__":
    main(Path(sys.argv[1]), *map(int, sys.argv[2:]))
