"""Save the network of a trainer in a directory of its own, which :func:`sigma_ml.load` opens like a run folder."""

from __future__ import annotations

import shutil
from pathlib import Path

from attrs import evolve

from sigma_kernel.encoding import json_document
from sigma_kernel.environment import Environment
from sigma_kernel.errors import SigmaConfigError, SigmaStateError
from sigma_kernel.training.trainer import Trainer
from sigma_run.config.recording import Description
from sigma_run.config.tables import Writer
from sigma_store.checkpoints import store
from sigma_store.files import digest, put_text

KNOWN = ("config.toml", "checkpoints", "plugins.json")  # the entries of such a directory


def saved(environment: Environment, trainer: Trainer, path: Path | str) -> Path:
    """Write configuration, parameters and state to a directory, atomically; return its path.

    Another saved network there is replaced.  Raises SigmaConfigError if a setting cannot be written, SigmaStateError if
    the directory holds anything else, or cannot be written.
    """
    folder = Path(path).absolute()
    if folder.exists() and not (folder.is_dir() and {one.name for one in folder.iterdir()} <= {*KNOWN}):
        raise SigmaStateError(f"{path}: is there already, and is not a saved network. Choose another path.")
    temporary = folder.with_name(f".{folder.name}.part")
    shutil.rmtree(temporary, ignore_errors=True)
    try:
        temporary.mkdir(parents=True)
        _fill(temporary, environment, trainer)
        store.replace(temporary, folder)
    except OSError as error:
        raise SigmaStateError(f"{path}: cannot be written: {error.strerror}. Choose another path.") from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    return folder


def _fill(folder: Path, environment: Environment, trainer: Trainer) -> None:
    session, description = trainer.session, Description(Writer(environment.catalogue))
    run = {"name": environment.name, "seed": trainer.seed, "precision": trainer.precision}
    text = description.text(run, {trainer.name: trainer}, {})
    if description.unwritten:
        raise SigmaConfigError("save: " + "; ".join(f"{place}: {why}" for place, why in description.unwritten.items()))
    found = session.ask(session.snapshot)
    chain = {"configuration": digest(text.encode()), "head": "", "rows": []}
    values = {**found.values, "journal": 0, "branch": 0}
    put_text(folder / "config.toml", text)
    put_text(folder / "plugins.json", json_document({"plugins": environment.catalogue.versions()}))
    place = folder / "checkpoints" / trainer.name / str(found.values["clock"]["iteration"])
    store.write(place, evolve(found, values=values, made_with=session.checkpoints.made_with(), chain=chain))
