"""Interrupt runs at random times in three ways, resume them, and compare with uninterrupted runs.

::

    python tests/reliability/resumed.py 50 [SEED]

Runs that many rounds for each optimiser and backend, in turn: a stop by command at a random iteration, Ctrl-C at a
random time, SIGKILL at a random time; if the run had ended before, once more.  All bytes of the state tree and all
metrics are compared; then the journal, with the interruption, is replayed and compared as well.  Every run is a
separate process.  Prints one JSON document; exits with an error at the first difference.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import time
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from course import HOOKS, OPTIMISERS, SAVES, continued, differing, environment, measured, tree
from forked import alone, begun

BACKENDS = ("numpy", "numba")
WAYS = ("stop", "interrupt", "kill")


def trained(optimiser: str, backend: str, folder: Path, stop_at: int | None = None) -> dict[str, Any]:
    """Train in a folder and return the results."""
    with environment(optimiser, backend, folder, stop_at, hooks={**HOOKS, **SAVES}) as sigma:
        began = time.monotonic()
        summary = sigma.run()
        trainer = sigma.trainer("trainer")
        found = {"tree": tree(trainer), "measured": measured(trainer), "seconds": time.monotonic() - began}
        return {**found, "status": summary.status, "iterations": summary.iterations}


def resumed(optimiser: str, backend: str, run: Path) -> dict[str, Any]:
    """Resume a run and return the results."""
    with environment(optimiser, backend, hooks={**HOOKS, **SAVES}) as sigma:
        sigma.resume(run)
        summary = sigma.run()
        said = [text for _, text in sigma.messages.entries_after(0) if "differ" in text or "ALARM" in text]
        assert not said, said
        return {"tree": tree(sigma.trainer("trainer")), "measured": measured(sigma.trainer("trainer")),
                "status": summary.status}  # fmt: skip


def replayed(optimiser: str, backend: str, run: Path) -> dict[str, Any]:
    """Replay a run and return the results."""
    with environment(optimiser, backend, hooks={**HOOKS, **SAVES}) as sigma:
        _, differs = sigma.replay(run)
        return {"tree": tree(sigma.trainer("trainer")), "differs": differs}


def interrupted(way: str, delay: float, *about: Any) -> dict[str, Any] | None:
    """Train, and be interrupted this many seconds after the first checkpoint."""
    process, folder = begun(trained, *about), about[2]
    while not any(folder.glob("*/checkpoints/trainer/[0-9]*")):
        time.sleep(0.001)
    time.sleep(delay)
    os.kill(process.number, signal.SIGINT if way == "interrupt" else signal.SIGKILL)
    return process.answer()  # type: ignore[no-any-return]


def compare(whole: dict[str, Any], late: dict[str, Any], early: dict[str, str]) -> None:
    """Compare the state tree and the metrics; the metrics of a killed process are lost."""
    both = {name: early.get(name, "") + late["measured"].get(name, "") for name in {**early, **late["measured"]}}
    assert not continued(whole["measured"], both), continued(whole["measured"], both)
    assert not early or not differing(whole["measured"], both), differing(whole["measured"], both)
    assert not differing(whole["tree"], late["tree"]), differing(whole["tree"], late["tree"])


def round_of(way: str, draw: random.Random, whole: dict[str, Any], optimiser: str, backend: str, folder: Path) -> str:
    """Interrupt once, resume and replay; return the kind of interruption, or that the run had ended before."""
    if way == "stop":
        at = draw.randrange(1, whole["iterations"])
        first = alone(trained, optimiser, backend, folder, at)
        assert (first["status"], first["iterations"]) == ("stopped", at), first["status"]
    else:
        first = interrupted(way, draw.uniform(0, 0.6 * whole["seconds"]), optimiser, backend, folder)
    (run,) = folder.iterdir()
    late = alone(resumed, optimiser, backend, run)
    too_late = json.loads(late["tree"]["clock"])["start"] > 1  # it had ended, and resuming it was a new start
    if not too_late:
        compare(whole, late, {} if first is None else first["measured"])
    again = alone(replayed, optimiser, backend, run)
    assert not again["differs"], again["differs"]
    assert not differing(late["tree"], again["tree"]), differing(late["tree"], again["tree"])
    return "too late" if too_late else way


def main(rounds: int, seed: int = 0) -> None:
    """Run that many rounds and print the results."""
    print(f"drawn from seed {seed}", file=sys.stderr)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background ignores it
    draw, ways = random.Random(seed), Counter[str]()
    for backend in BACKENDS:
        for optimiser in OPTIMISERS:
            with TemporaryDirectory() as parent:
                alone(trained, optimiser, backend, Path(parent) / "warm")
                whole = alone(trained, optimiser, backend, Path(parent) / "whole")
                before = ways.total() - ways["too late"]
                while ways.total() - ways["too late"] - before < rounds:
                    way, folder = WAYS[ways.total() % len(WAYS)], Path(parent) / str(ways.total())
                    ways[round_of(way, draw, whole, optimiser, backend, folder)] += 1
            print(f"{backend} {optimiser}: {rounds} rounds of {whole['seconds']:.2f} s", file=sys.stderr)
    print(json.dumps({"too late": 0, **ways, "different": 0}))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
