"""Steer two trainers by random commands of three threads, kill them, resume, steer again, replay and compare.

::

    python tests/reliability/steered.py 250 [SEED]

Runs that many rounds on each backend; a round is determined by the seed and its number, which are printed if it fails.
The threads pause, continue, step, save, rewind, undo, set learning and dropout rates and batch sizes, leave out and
relabel rows, swap optimisers, and attach and detach every hook of the library that fits the network, in any order and
under any name, duplicates included, while hooks that depend on the wall clock also change the learning rate. Each run
is killed at least once before its end. It must end differently from a run without commands, and its replay must have
the same bits. Prints one JSON document; exits with an error at the first difference.
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
from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp
from typing import Any

from course import CLOCKWORK, HOOKS, SAVES, Halting, differing, environment, tree
from forked import alone, begun

from sigma_kernel.environment import Environment
from sigma_kernel.errors import SigmaError
from sigma_kernel.plugins.catalogue import catalogue
from sigma_store import journal
from sigma_training.trainer import NetworkTrainer

journal.EVERY = 1  # a bookmark after each line, so that each resume reads the end of the journal alone
NAMES = ("a", "b")  # of the trainers
EVERYTHING = {**HOOKS, **CLOCKWORK, **SAVES}
RATES = ("optimiser.learning_rate", "network.layers.*dropout.rate")
OPTIMISERS = ("momentum", "adagrad", "adam")
LOSS = {"value": "training.loss"}
TABLES: tuple[dict[str, Any], ...] = (  # every hook of the library that fits the network
    {"type": "evaluate", "on": "training", "every": "11 iterations"},
    {"type": "evaluate", "on": "training", "every": "5 iterations", "background": True},
    {"type": "accuracy", "on": "training", "top": 2, "every": "13 iterations"},
    {"type": "precision", "on": "validation", "every": "13 iterations"},
    {"type": "recall", "on": "validation", "every": "13 iterations"},
    {"type": "f1", "on": "validation", "every": "13 iterations"},
    {"type": "auc", "on": "validation", "every": "13 iterations"},
    {"type": "intersection_over_union", "on": "validation", "every": "13 iterations"},
    {"type": "perplexity", "on": "validation", "every": "13 iterations"},
    {"type": "bits_per_character", "on": "validation", "every": "13 iterations"},
    {"type": "verify", "every": "9 iterations"},
    {"type": "text_sample", "every": "17 iterations", "background": True, "on_error": "ignore"},  # rows are no texts
    {"type": "confusion_matrix", "on": "validation", "every": "13 iterations"},
    {"type": "loss", "every": "9 iterations"},
    {"type": "row_loss", "on": "validation", "most": 3, "every": "10 iterations"},
    {"type": "row_loss", "on": "training", "most": 3, "every": "12 iterations", "background": True},
    {"type": "report", "values": ["training.loss"], "every": "10 iterations"},
    {"type": "progress", "every": "10 iterations"},
    {"type": "running_time", "every": "4 iterations"},
    {"type": "phase_time", "every": "4 iterations"},
    {"type": "extrema", **LOSS, "every": "3 iterations"},
    {"type": "accumulate", **LOSS, "every": "2 iterations"},
    {"type": "statistics", "of": "network.layers.*.weights", "every": "6 iterations"},
    {"type": "update_rate", "every": "5 iterations"},
    {"type": "checkpoint", "every": "3 iterations", "last": 2},
    {"type": "checkpoint", "every": "4 iterations", "value": "training.loss", "best": 2, "better": "lower"},
    {"type": "histogram", "of": "network.layers.*.weights", "every": "12 iterations"},
    {"type": "filters", "every": "12 iterations"},
    {"type": "row_history", "every": "12 iterations"},
    {"type": "stop", "when": "epoch reaches 1000"},
    {"type": "time_limit", "limit": "1000 seconds"},
    {"type": "early_stop", **LOSS, "patience": 1000},
    {"type": "nan_guard"},
    {"type": "reduce_on_plateau", **LOSS, "patience": 6, "factor": 0.7, "every": "1 iterations"},
    {"type": "reduce_on_plateau", **LOSS, "patience": 3, "factor": 0.9, "every": "2 iterations"},
    {"type": "learning_rate_finder", "steps": 20},
    {"type": "switch", "name": "flag"},
    {"type": "target_maximisation", "every": "40 iterations", "steps": 2, "shape": [2, 3]},
)


APART = {  # hooks that call a Python function, tell people, or need what a classifier of rows lacks: numbers, texts
    "function", "email", "webhook", "generated_pictures", "threshold_accuracy", "mean_absolute_error",
    "root_mean_square_error", "r_squared", "maximum_mean_discrepancy", "character_error_rate",
}  # fmt: skip
ATTACHED_ANYWAY = ("is the same as", "there is a hook", "was resumed at", "closed")  # why a right table is refused


def unlisted() -> set[str]:
    """Return the hooks of the catalogue that no table attaches."""
    there = {one.name for one in catalogue().components() if one.kind == "hook" and one.distribution == "sigma-hooks"}
    return there - {table["type"] for table in TABLES} - APART


def steer(sigma: Environment, seed: int, done: Counter[str], over: threading.Event, wrong: list[str]) -> None:
    """Send commands until the run is over."""
    draw = random.Random(seed)
    while not any(trainer.session.queue.busy for trainer in sigma.trainers.values()):
        time.sleep(0.001)
    while not over.wait(draw.uniform(0.0, 0.02)):
        name = draw.choice(NAMES)
        command, arguments = wish(draw, sigma.trainer(name).session.moment.iteration)
        try:
            sigma.send(command, trainer=name, **arguments)
            done[command] += 1
            if command == "attach":
                done[f"attached {arguments['hook']['type']}"] += 1
        except SigmaError as error:  # "go" while nothing is paused, for instance
            done["equal refused" if "is the same as" in str(error) else "refused"] += 1
            if command == "attach" and not any(reason in str(error) for reason in ATTACHED_ANYWAY):
                wrong.append(f"{arguments['hook']}: {error}")


def wish(draw: random.Random, now: int) -> tuple[str, dict[str, Any]]:
    """Return a command that may be valid."""
    often = ("go", "go", "set", "attach", "attach", "attach", "resize", "exclude", "exclude", "include", "relabel")
    match draw.choice(["pause", "step", "save", "rewind", "detach", "undo", "swap", *often]):
        case "step":
            return "step", {"count": draw.randrange(1, 5)}
        case "rewind":
            return "rewind", {"to": max(0, now - draw.randrange(10))}
        case "set":
            return "set", {"pattern": draw.choice(RATES), "value": draw.uniform(0.001, 0.1)}
        case "resize":
            return "set", {"pattern": "batch_size", "value": draw.randrange(3, 20)}
        case "exclude" | "include" | "relabel" as edit:
            rows = draw.sample(range(24), draw.randrange(1, 5))
            label = {"label": draw.randrange(3)} if edit == "relabel" else {}
            return edit, {"rows": rows, "split": draw.choice(["training", "validation"]), **label}
        case "attach":
            return "attach", {"name": draw.choice("zyxw"), "hook": draw.choice(TABLES)}
        case "detach":
            return "detach", {"name": draw.choice(["z", "y", "x", "w", "saves", "slower"])}
        case "swap":
            optimiser = {"type": draw.choice(OPTIMISERS), "learning_rate": draw.uniform(0.001, 0.05)}
            return "swap", {"slot": "optimiser", "component": optimiser}
        case other:
            return other, {}


def steered(backend: str, parent: Path | None, run: Path | None, seed: int, last: bool = False) -> dict[str, Any]:
    """Train or resume with three steering threads, until the run is killed or ends; return its results."""
    with environment("adam", backend, parent, hooks=EVERYTHING, operator=Halting(), names=NAMES) as sigma:
        sigma.prepare()
        if run is not None:
            sigma.resume(run)
        done, over, wrong = Counter[str](), threading.Event(), list[str]()
        told = done, over, wrong
        people = [threading.Thread(target=steer, args=[sigma, seed + n, *told], daemon=True) for n in range(3)]
        going = threading.Thread(target=keep_going, args=[sigma, over], daemon=True)
        for person in (*people, *([going] if last else [])):
            person.start()
        sigma.run()
        over.set()
        for person in (*people, *([going] if last else [])):
            person.join()  # commands sent after the end apply, too
        said = [text for _, text in sigma.messages.entries_after(0) if "differs" in text or "ALARM" in text]
        assert not said + wrong, said + wrong
        return {"trees": trees(sigma), "done": done}


def trees(sigma: Environment) -> dict[str, dict[str, Any]]:
    """Return the state of each trainer without values that depend on the wall clock."""
    return {name: untimed(trainer) for name, trainer in sigma.trainers.items()}


def untimed(trainer: NetworkTrainer) -> dict[str, Any]:
    """Return a state without the memory and values of hooks that depend on the wall clock or run in the background."""
    found, order = tree(trainer), trainer.session.setup.order
    hooks = {name: memory for name, memory in json.loads(found["hooks"]).items() if name not in order.timing_dependent}
    published = {
        name: value for name, value in json.loads(found["published"]).items() if not order.depends_on_time(name)
    }
    apart = {"hooks": json.dumps(hooks), "published": json.dumps(published), "undo": ""}  # contains both of them
    return {**found, **apart}


def keep_going(sigma: Environment, over: threading.Event) -> None:
    """Make sure that the run ends, whatever the others do, once the journal has been replayed."""
    end = time.monotonic() + 2
    while not over.wait(0.05):
        behind = any(trainer.session.recorder.is_behind for trainer in sigma.trainers.values())
        if time.monotonic() > end and not behind:
            sigma.stop()
            return


def replayed(backend: str, run: Path) -> dict[str, Any]:
    """Replay a run and return its results."""
    with environment("adam", backend, hooks=EVERYTHING, names=NAMES) as sigma:
        _, differs = sigma.replay(run)
        return {"trees": trees(sigma), "differs": differs}


def round_of(backend: str, folder: Path, draw: random.Random, plain: dict[str, Any]) -> Counter[str]:
    """Steer one run, kill it at least once, resume and steer it to its end, and replay it."""
    process, kills = begun(steered, backend, folder, None, draw.randrange(10**6)), draw.choice([1, 1, 2, 3])
    while any(not [*folder.glob(f"*/checkpoints/{name}/[0-9]*")] for name in NAMES):
        time.sleep(0.001)
    for kill in range(kills):
        time.sleep(draw.uniform(0, 1.0))
        os.kill(process.number, signal.SIGKILL)
        process.answer()
        (run,) = folder.iterdir()
        if kill < kills - 1:
            process = begun(steered, backend, None, run, draw.randrange(10**6))
            time.sleep(0.3)
    late = alone(steered, backend, None, run, draw.randrange(10**6), True)
    again = alone(replayed, backend, run)
    assert not again["differs"], again["differs"]
    for name in NAMES:
        one, other = late["trees"][name], again["trees"][name]
        assert not differing(one, other), differing(one, other)
    assert late["trees"] != plain, "steering changed nothing"
    return Counter({**late["done"], "killed": kills})


def main(rounds: int, seed: int = 0) -> None:
    """Steer that many runs on each backend and print the results."""
    print(f"drawn from seed {seed}", file=sys.stderr)
    assert not unlisted(), f"TABLES lacks {unlisted()}"
    done = Counter[str]()
    for backend in ("numpy", "numba"):
        with TemporaryDirectory() as parent:
            plain = alone(unsteered, backend)
            for number in range(rounds):
                try:
                    done += round_of(backend, Path(parent) / str(number), random.Random(f"{seed}.{number}"), plain)
                except BaseException:
                    kept = Path(mkdtemp(prefix="steered-"))
                    shutil.copytree(parent, kept, dirs_exist_ok=True)
                    print(f"{backend}: round {number} of seed {seed}; see {kept}", file=sys.stderr)
                    raise
                print(f"{backend}: {number + 1} of {rounds}, {done['killed']} kills", file=sys.stderr)
    print(json.dumps({"runs": 2 * rounds, "different": 0, "seed": seed, **done}))


def unsteered(backend: str) -> dict[str, Any]:
    """Train without commands and return the results."""
    with environment("adam", backend, names=NAMES) as sigma:
        sigma.run()
        return trees(sigma)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
