"""Record the run folders in ``folders/``: small runs that meet everything a journal or a checkpoint can hold.

Each function records one run, and returns its folder.  A run is described by ``folders/NAME.toml``; what a person does
is scripted here.  ``expected.json`` has what each network predicts, and the parameters in which a resume ends.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np

from sigma_kernel import Environment
from sigma_run import config, load
from sigma_run.launcher import main
from tests.proofs.machine import machine
from tests.proofs.parameters import empty_folder

FOLDERS = Path(__file__).with_name("folders")
OWN = Path(__file__).with_name("own")
POEM = "poem.txt"
EXPECTED = FOLDERS / "expected.json"
TRUST = ("--trust", "proof_parts")
RATE = "trainer.optimiser.learning_rate"
Script = Mapping[int, Callable[[Environment], Any]]


@contextmanager
def own_parts() -> Iterator[Any]:
    """Let runs import the parts of their own."""
    before = os.environ.get("SIGMA_TRUST")
    sys.path.insert(0, str(OWN))
    os.environ["SIGMA_TRUST"] = "proof_parts"
    try:
        import proof_parts  # type: ignore[import-not-found]

        yield proof_parts
        proof_parts.SCRIPT.clear()
        proof_parts.PRESENT.clear()
    finally:
        sys.path.remove(str(OWN))
        os.environ.pop("SIGMA_TRUST")
        if before is not None:
            os.environ["SIGMA_TRUST"] = before


@contextmanager
def environment_of(name: str, script: Script | None = None) -> Iterator[Environment]:
    """Build the environment of a file, steered by a script; its runs write to the working directory."""
    for file in (f"{name}.toml", POEM):
        shutil.copyfile(FOLDERS / file, file)
    with own_parts() as parts, config.build(config.load(Path(f"{name}.toml").absolute()), folder=Path.cwd()) as sigma:
        for iteration, act in (script or {}).items():
            parts.SCRIPT[iteration] = lambda act=act: act(sigma)
        yield sigma


def once(sigma: Environment, state: str, *acts: Callable[[Environment], Any]) -> threading.Thread:
    """Do something in another thread once an environment is in a state."""

    def work() -> None:
        while sigma.state != state:
            time.sleep(0.001)
        for act in acts:
            act(sigma)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    return thread


def finished(sigma: Environment, name: str) -> Path:
    """Close an environment, and give its run folder its name."""
    sigma.close()
    assert sigma.run_folder is not None
    return sigma.run_folder.rename(Path.cwd() / name)


def by_command(*words: str) -> dict[str, Any]:
    """Run a command of ``sigma``, and return what it prints."""
    with own_parts(), redirect_stdout(StringIO()) as output:
        code = main([*words, *TRUST, "--json", "--quiet"])
    assert code == 0, f"sigma {' '.join(words)}: exit code {code}"
    return dict(json.loads(output.getvalue()))


# -- the runs ----------------------------------------------------------------------------------------------------------
def commands() -> Path:
    """Send every command, by hand and by a hook, and stop by hand."""

    def change(sigma: Environment) -> None:
        sigma.set(RATE, 0.03)
        sigma.set("trainer.optimiser.hidden.weights.frozen", True)
        sigma.undo()
        sigma.set("trainer.optimiser.hidden.biases.frozen", True)
        sigma.set("trainer.network.layers.hidden.biases", 0.125)
        sigma.attach("mine", {"type": "statistics", "of": "network.layers.hidden.weights", "every": "3 iterations"})

    def edit(sigma: Environment) -> None:
        sigma.exclude([3, 4, 5])
        sigma.include([4])
        sigma.relabel([7, 8], 2)
        sigma.exclude([1], split="validation")
        sigma.undo()

    def stand(sigma: Environment) -> None:
        sigma.pause()
        sigma.set(RATE, 0.02)
        sigma.step(2)
        once(sigma, "paused", Environment.go)

    def swap(sigma: Environment) -> None:
        sigma.swap("iterator", "sequential")
        sigma.swap("optimiser", {"type": "momentum", "learning_rate": 0.02})
        sigma.swap("backend", {"type": "numpy"})
        sigma.detach("mine")

    def keep(sigma: Environment) -> None:
        sigma.send("save")
        sigma.send("save", score=0.5)

    script = {
        2: change, 4: edit, 6: stand, 10: keep, 12: lambda sigma: sigma.rewind(8), 13: swap,
        17: lambda sigma: sigma.reset(), 19: lambda sigma: sigma.set(RATE, 0.05),
        21: lambda sigma: once(sigma, "paused", Environment.go), 35: lambda sigma: sigma.stop(),
    }  # fmt: skip
    with environment_of("commands", script) as sigma:
        sigma.run()
        return finished(sigma, "commands")


def clock() -> Path:
    """Fire hooks in the background and by the wall clock, and train in float16 with a scaled loss."""
    with environment_of("clock") as sigma:
        sigma.run()
        return finished(sigma, "clock")


def failed() -> Path:
    """Fail, wait, rewind, change what was wrong, and go on."""
    with environment_of("failed", {6: lambda sigma: sigma.set(RATE, 1e38)}) as sigma, own_parts() as parts:
        parts.PRESENT.append("somebody")
        goes_on = once(sigma, "failed", lambda _: sigma.rewind(5), lambda _: sigma.set(RATE, 0.02), Environment.go)
        sigma.run(stay=True)
        goes_on.join()
        return finished(sigma, "failed")


def pair() -> Path:
    """Train two trainers that read each other, and lose the last checkpoints, so that a resume lives the end again."""
    with environment_of("pair") as sigma:
        sigma.run()
        run = finished(sigma, "pair")
    for trainer in (run / "checkpoints").iterdir():
        shutil.rmtree(max(trainer.iterdir(), key=lambda saved: int(saved.name)))
    return run


def resumed() -> Path:
    """Interrupt a run with edited rows; resume it paused, resume it with settings, and go back to a checkpoint."""

    def edit(sigma: Environment) -> None:
        sigma.relabel([0, 1, 2], 1)
        sigma.exclude([9])

    def leave(sigma: Environment) -> None:
        sigma.pause()
        sigma.stop()

    with environment_of("resumed", {3: edit, 21: leave}) as sigma:
        sigma.run()
        run = finished(sigma, "resumed")
    with environment_of("resumed", {28: lambda sigma: sigma.stop()}) as sigma:
        sigma.resume(run, paused=True)
        once(sigma, "paused", lambda _: sigma.set(RATE, 0.015), Environment.go)
        sigma.run()
    by_command("resume", run.name, "--set", f"{RATE}=0.02", "--set", "hooks.finish.when=epoch reaches 5")
    by_command("resume", run.name, "--checkpoint", "16", "--set", "hooks.finish.when=epoch reaches 6")
    return run


def fitted() -> Path:
    """Fit a trainer that is described from Python twice; each restores its best epoch."""
    with Environment("fitted", folder="runs", seed=4) as sigma:
        trainer = sigma.create_trainer(
            network="input(4) + dense(6, activation='tanh', name='hidden') + output(3) + softmax_cross_entropy()",
            data="iris", optimiser={"type": "adam", "learning_rate": 0.05}, backend="numpy", batch_size=30,
            preprocessors={"scale": "standardise"}, metrics={"accuracy": "accuracy"},
            hooks={"best": {"type": "early_stop", "value": "validation.loss", "patience": 2, "restore": True},
                   "score": {"type": "accuracy", "on": "validation"}},
        )  # fmt: skip
        trainer.fit(epochs=6)
        sigma.set(RATE, 0.2)
        trainer.fit(epochs=12)
        return finished(sigma, "fitted")


def text() -> Path:
    """Learn a text of its own, and write from time to time."""
    with environment_of("text") as sigma:
        sigma.run()
        return finished(sigma, "text")


RUNS = {one.__name__: one for one in (commands, clock, failed, pair, resumed, fitted, text)}


# -- what is expected of them ------------------------------------------------------------------------------------------
RESUMES: Mapping[str, tuple[str, ...]] = {  # each goes on from the last checkpoint
    "commands": (),
    "clock": ("--epochs", "14"),
    "failed": ("--set", "hooks.finish.when=epoch reaches 4"),
    "pair": (),
    "resumed": ("--set", "hooks.finish.when=epoch reaches 7"),
    "fitted": ("--epochs", "22"),
    "text": ("--set", "hooks.finish.when=epoch reaches 3"),
}
FLOWERS = np.array([[5.0, 3.4, 1.5, 0.2], [6.0, 2.7, 4.5, 1.4], [6.6, 3.0, 5.5, 2.1]], np.float32)


def predictions(run: Path) -> Any:
    """Return what the network of a run predicts for three flowers, or how it continues a text."""
    with own_parts():
        trained = load(run, trust=["proof_parts"], trainer="left" if run.name == "pair" else None)
    if run.name == "text":
        return trained.generate("The ", length=20, temperature=0)
    return np.asarray(trained.predict(FLOWERS)).tolist()


def describe_resume(run: Path) -> dict[str, Any]:
    """Resume a run, and return where it ends, but for values that the wall clock has a part in."""
    summary = by_command("resume", str(run), *RESUMES[run.name])
    return {name: summary[name] for name in ("status", "iterations", "parameters_sha256")}


def copy_of(name: str, place: Path) -> Path:
    """Copy a recorded run, and the file that one of them reads, to a place where it may be changed."""
    shutil.copyfile(FOLDERS / POEM, place / POEM)
    return shutil.copytree(FOLDERS / name, place / name)


def keep(run: Path, place: Path) -> None:
    """Copy a new run, without the name of the folder of this machine in which it was made."""
    shutil.copytree(run, place, ignore=shutil.ignore_patterns("curves.svg", ".lock"))
    summary = json.loads((place / "summary.json").read_text("utf-8"))
    (place / "summary.json").write_text(json.dumps({**summary, "folder": run.name}, indent=1) + "\n", "utf-8")


def record() -> Path:
    """Record all runs anew, and what is expected of them."""
    expected: dict[str, Any] = {"machine": machine("numpy")}
    for name, run_once in RUNS.items():
        shutil.rmtree(FOLDERS / name, ignore_errors=True)
        with empty_folder():
            keep(run_once(), FOLDERS / name)
        with empty_folder() as place:
            run = copy_of(name, place)
            expected[name] = {"predictions": predictions(run), "resumed": describe_resume(run)}
    EXPECTED.write_text(json.dumps(expected, indent=1) + "\n", encoding="utf-8")
    return FOLDERS
