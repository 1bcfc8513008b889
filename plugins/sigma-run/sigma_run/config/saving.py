"""Save the network of a trainer in a directory of its own, which :func:`sigma_ml.load` opens like a run folder."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path

from attrs import evolve

from sigma_kernel.contracts.storing import StoredRun
from sigma_kernel.encoding import json_document
from sigma_kernel.environment import Environment
from sigma_kernel.errors import SigmaConfigError
from sigma_kernel.plugins.dumping import Dumper
from sigma_run.config.recording import Description
from sigma_run.config.stored import PLUGINS
from sigma_run.config.stores import CONFIGURATION
from sigma_store.run_folder import replace_network
from sigma_training.trainer import NetworkTrainer


def save_network(environment: Environment, trainer: NetworkTrainer, path: Path | str) -> Path:
    """Write configuration, parameters and state to a directory, atomically; return its path.

    Another saved network there is replaced.  Raises SigmaConfigError if a setting cannot be written, SigmaStateError if
    the directory holds anything else, or cannot be written.
    """
    return replace_network(Path(path), lambda run: _fill(run, environment, trainer))


def _fill(network: StoredRun, environment: Environment, trainer: NetworkTrainer) -> None:
    session, description = trainer.session, Description(Dumper(environment.catalogue))
    run = {"name": environment.name, "seed": trainer.seed, "precision": trainer.precision}
    text = description.text(run, {trainer.name: trainer}, {})
    if description.unwritten:
        raise SigmaConfigError("save: " + "; ".join(f"{place}: {why}" for place, why in description.unwritten.items()))
    checkpoint = session.ask(session.snapshot)
    chain = {"configuration": sha256(text.encode()).hexdigest(), "head": "", "rows": []}
    values = {**checkpoint.values, "journal": 0, "branch": 0}
    network.write(CONFIGURATION, text)
    network.write(PLUGINS, json_document({"plugins": environment.catalogue.versions()}))
    state = evolve(checkpoint, values=values, made_with=session.checkpoints.made_with(), chain=chain)
    network.checkpoints(trainer.name).write(str(checkpoint.values["clock"]["iteration"]), state)
