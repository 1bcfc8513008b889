"""Fork a run at a moment: a run of its own that begins in the state of that moment, with some values changed.

Its folder has the configuration of the first run, the state as a checkpoint, and a journal that begins with its parent:
it is resumed and replayed from there, as a run whose settings were changed is.
"""

from __future__ import annotations

import shutil
import warnings
from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from attrs import evolve

from sigma_kernel.contracts.storing import Checkpoint, Log, StoredRun
from sigma_kernel.environment import Environment
from sigma_kernel.errors import SigmaConfigError
from sigma_kernel.plugins.catalogue import catalogue
from sigma_kernel.plugins.resolver import default_store
from sigma_run.config.building import prepare
from sigma_run.config.stored import PLUGINS, open_stored
from sigma_run.config.stores import CONFIGURATION, open_run
from sigma_run.moments.recall import recall
from sigma_training.history.replay import RESUMED
from sigma_training.session.progress import TrainingProgress

DATA = "data"  # the folder of rows that were given as arrays


def fork(
    run: Path | str,
    at: int,
    values: Mapping[str, Any] | None = None,
    *,
    branch: int | None = None,
    trust: Iterable[str] = (),
    log: Log = warnings.warn,
) -> Environment:
    """Return a new run, beside the first one, that begins as that was at an iteration, with other ``values``.

    They are set by address or pattern, as the first commands of its journal; ``run()`` then trains it, while the first
    may train as well. ``branch`` and ``trust`` are those of ``recall``. Raises SigmaConfigError for a run with several
    trainers, and leaves nothing if a value does not fit.
    """
    folder = create_fork(Path(run), at, branch, trust, log)
    try:
        configuration, environment = open_stored(folder, trust)
        environment.begin_from(folder)
        prepare(configuration, environment)
        begin_fork(environment, folder, values or {}, log)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    return environment


def begin_fork(environment: Environment, folder: Path, values: Mapping[str, Any], log: Log) -> None:
    """Resume a fork, and set its values; they may be named by their last levels."""
    environment.resume(folder, log=log)
    for address, value in values.items():
        pattern = address if environment.registry.addresses(address) else f"**.{address}"
        environment.set(pattern if environment.registry.addresses(pattern) else address, value)


def create_fork(run: Path, at: int, branch: int | None, trust: Iterable[str], log: Log) -> Path:
    """Create the folder of a fork beside a run; return its path."""
    configuration, environment = open_stored(run, trust)
    if len(environment.trainers) > 1:
        raise SigmaConfigError(f"{run}: has several trainers, and a fork begins at a moment of one. Fork another run.")
    state, parent = recall(run, at, branch=branch, trust=trust, log=log).state(), open_run(run, log)
    store, home = default_store(catalogue()), run.absolute().parent
    new = store.create(home, configuration.run.name, log, partial(_describe, parent), partial(_fill, parent))
    (name,) = environment.trainers
    if initial := parent.initial(name):
        new.keep_initial(name, initial)
    _begin(new, name, run.absolute().name, state)
    return Path(new.place)


def _begin(fork: StoredRun, trainer: str, run: str, state: Checkpoint) -> None:
    """Write the first row of a fork and its first checkpoint, also where a replay begins; both name the parent."""
    clock = state.values["clock"]
    number, parent = clock["iteration"], {"run": run, "iteration": clock["iteration"], "branch": state.values["branch"]}
    moment = {"trainer": trainer, "iteration": number, "epoch": clock["epoch"], "seconds": clock["second"]}
    row = {"event": RESUMED, "from": number, "at": 1, "edits": [], "parent": parent}
    fork.journal.append({**moment, **row, "configuration": fork.journal.configuration})
    if (error := fork.journal.durable()) is not None:
        raise error
    anew = TrainingProgress().to_list()  # with its own goals, which a ``begin`` in its journal names
    values = {**state.values, "progress": anew, "journal": 1, "branch": 0, "parent": parent}
    checkpoint = evolve(state, values=values, chain=fork.journal.chain(trainer), keep=True)
    for label in (f"{number}.edited-0", str(number)):
        fork.checkpoints(trainer).write(label, checkpoint)


def _describe(parent: StoredRun, run: StoredRun) -> str:
    """Return the configuration of a run, for a fork; copy the rows that it refers to."""
    if parent.path is not None and run.path is not None and (parent.path / DATA).is_dir():
        (run.path / DATA).mkdir()
        for path in (path for path in (parent.path / DATA).iterdir() if path.is_file() and not path.is_symlink()):
            shutil.copyfile(path, run.path / DATA / path.name)
    return (parent.read(CONFIGURATION) or b"").decode()


def _fill(parent: StoredRun, run: StoredRun) -> None:
    """Write the plugins of a run to its fork."""
    run.write(PLUGINS, parent.read(PLUGINS) or b"{}")
