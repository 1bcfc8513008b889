"""Let three people steer a run at random, kill it amid that, resume and steer on, then replay all of it and compare.

::

    python tests/reliability/steered.py 10 [SEED]

So many times on each backend.  They pause, go, step, save, rewind, and set learning and dropout rates, in threads of
their own, while hooks that go by the wall clock change the learning rate as well.  The run must end otherwise than one
that nobody steered, and the replay must have the same bits.  Prints one JSON document; ends with an error at the first
difference.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import threading
import time
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from course import CLOCKWORK, HOOKS, SAVES, Halting, differing, environment, tree
from forked import alone, begun

from sigma_kernel.environment import Environment
from sigma_kernel.errors import SigmaStateError

EVERYTHING = {**HOOKS, **CLOCKWORK, **SAVES}
RATES = ("optimiser.learning_rate", "network.layers.*dropout.rate")


def steer(sigma: Environment, seed: int, done: Counter[str], over: threading.Event) -> None:
    """Give one command after the other until the run is over."""
    draw = random.Random(seed)
    while not sigma.trainer("trainer").session.control.busy:
        time.sleep(0.001)
    while not over.wait(draw.uniform(0.0, 0.02)):
        command, arguments = wish(draw, sigma.trainer("trainer").session.clock.moment.iteration)
        try:
            sigma.send(command, trainer="trainer", **arguments)
            done[command] += 1
        except SigmaStateError:  # to go on while nothing is paused, for instance
            done["refused"] += 1


def wish(draw: random.Random, now: int) -> tuple[str, dict[str, Any]]:
    """Return a command that might make sense."""
    match draw.choice(["pause", "go", "go", "go", "step", "save", "rewind", "set", "set"]):
        case "step":
            return "step", {"count": draw.randrange(1, 5)}
        case "rewind":
            return "rewind", {"to": max(0, now - draw.randrange(10))}
        case "set":
            return "set", {"pattern": draw.choice(RATES), "value": draw.uniform(0.001, 0.1)}
        case other:
            return other, {}


def steered(backend: str, parent: Path | None, run: Path | None, seed: int) -> dict[str, Any]:
    """Train, or resume, while three people steer; return what came of it."""
    with environment("adam", backend, parent, hooks=EVERYTHING, operator=Halting()) as sigma:
        sigma.prepare()
        if run is not None:
            sigma.resume(run)
        done, over = Counter[str](), threading.Event()
        people = [threading.Thread(target=steer, args=[sigma, seed + n, done, over], daemon=True) for n in range(3)]
        going = threading.Thread(target=keep_going, args=[sigma, over], daemon=True)
        for person in (*people, going):
            person.start()
        sigma.run()
        over.set()
        for person in (*people, going):
            person.join()  # what is sent after the end acts, too
        said = [text for _, text in sigma.messages.after(0) if "differs" in text or "ALARM" in text]
        assert not said, said
        return {"tree": untimed(tree(sigma.trainer("trainer"))), "done": done}


def untimed(found: dict[str, Any]) -> dict[str, Any]:
    """Return a tree without what hooks that go by the wall clock remember and publish: how long things took."""
    hooks = {name: memory for name, memory in json.loads(found["hooks"]).items() if name not in CLOCKWORK}
    published = json.loads(found["published"]).items()
    rest = {address: value for address, value in published if not address.startswith(("running_time", "phase_time"))}
    return {**found, "hooks": json.dumps(hooks), "published": json.dumps(rest)}


def keep_going(sigma: Environment, over: threading.Event) -> None:
    """See to it that the run ends, whatever the others do."""
    end = time.monotonic() + 5
    while not over.wait(0.05):
        if time.monotonic() > end:
            sigma.stop()
            return


def replayed(backend: str, run: Path) -> dict[str, Any]:
    """Replay a run and return what came of it."""
    with environment("adam", backend, hooks=EVERYTHING) as sigma:
        _, differs = sigma.replay(run)
        return {"tree": untimed(tree(sigma.trainer("trainer"))), "differs": differs}


def round_of(backend: str, folder: Path, draw: random.Random, plain: dict[str, Any]) -> Counter[str]:
    """Steer one run, kill it, resume it, steer on, and replay it."""
    first = begun(steered, backend, folder, None, draw.randrange(10**6))
    while not any(folder.glob("*/checkpoints/trainer/[0-9]*")):
        time.sleep(0.001)
    time.sleep(draw.uniform(0, 1.0))
    os.kill(first.number, signal.SIGKILL)
    first.answer()
    (run,) = folder.iterdir()
    late = alone(steered, backend, None, run, draw.randrange(10**6))
    again = alone(replayed, backend, run)
    assert not again["differs"], again["differs"]
    assert not differing(late["tree"], again["tree"]), differing(late["tree"], again["tree"])
    weights = "network.layers.4-output.weights"
    assert late["tree"][weights] != plain["tree"][weights], "steering changed nothing"
    return Counter(late["done"])


def main(rounds: int, seed: int = 0) -> None:
    """Steer so many runs on each backend and print what came of it."""
    print(f"drawn from seed {seed}", file=sys.stderr)
    draw, done = random.Random(seed), Counter[str]()
    for backend in ("numpy", "numba"):
        with TemporaryDirectory() as parent:
            plain = alone(unsteered, backend)
            for number in range(rounds):
                done += round_of(backend, Path(parent) / str(number), draw, plain)
        print(f"{backend}: {rounds} rounds", file=sys.stderr)
    print(json.dumps({"runs": 2 * rounds, "different": 0, **done}))


def unsteered(backend: str) -> dict[str, Any]:
    """Train alone and return what came of it."""
    with environment("adam", backend) as sigma:
        sigma.run()
        return {"tree": untimed(tree(sigma.trainer("trainer")))}


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
