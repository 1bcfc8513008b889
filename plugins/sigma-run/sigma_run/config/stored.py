"""Read the files of a run folder: its configuration, its plugins' versions, its summary."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from attrs import evolve

from sigma_kernel.contracts.storing import Log
from sigma_kernel.environment import Environment
from sigma_kernel.errors import SigmaCheckpointError, SigmaConfigError
from sigma_kernel.plugins.catalogue import catalogue
from sigma_kernel.training.compatibility import differences
from sigma_kernel.training.components import check_split
from sigma_run.config.building import build
from sigma_run.config.document import Document, read
from sigma_run.config.location import move_data
from sigma_run.config.reading import structured
from sigma_run.config.schema import Configuration
from sigma_store import files


def opened(run: Path, trust: Iterable[str] = (), data: Path | None = None) -> tuple[Configuration, Environment]:
    """Return the configuration of a run folder, and an environment for it without monitors; no data is read yet.

    Own code that it names is imported only of the packages and modules in ``trust``; ``data`` is where its data lie
    now.
    """
    described, known = described_in(run), catalogue().trusting(trust)
    watched_by_none = {name: table for name, table in described.values.items() if name != "monitors"}
    configuration = structured(evolve(described, values=watched_by_none), known)
    if data is not None:
        configuration = structured(move_data(configuration, data)[0], known)
    return configuration, build(configuration, known)


def rows_of(configuration: Configuration, trainer: str, file: Path, split: str) -> Any:
    """Return a file as a trainer's data set reads it: all its rows, or a split if the file has splits of its own."""
    elsewhere = structured(move_data(configuration, file, "FILE")[0], catalogue())
    data: Any = elsewhere.trainers[trainer].data.dataset.make()
    if isinstance(data, Mapping) and not hasattr(data, "split"):
        check_split("FILE", split, data)
        return data[split]
    return evolve(data, split={"training": 1.0}) if hasattr(data, "split") else data


def described_in(run: Path) -> Document:
    """Return the configuration of a run folder as a document."""
    path = run / "config.toml"
    if not os.path.lexists(path):
        what = "it has no config.toml" if os.path.isdir(run) else "no such directory"
        raise SigmaConfigError(f"{run}: not a run folder: {what}. Pass one that `sigma run` wrote, below runs/.")
    described = read(path, regular=True)
    if not described.values:
        raise SigmaConfigError(
            f"{run}: was trained from Python, so it has no configuration. Create its trainers again in Python, then "
            "call Environment.resume(RUN) and run()."
        )
    return described


def changed_plugins(run: Path, log: Log) -> list[str]:
    """Return a line for each plugin whose version differs from that of the run."""
    then = document_in(run / "plugins.json", log).get("plugins", {})
    if not isinstance(then, Mapping):
        return [f"{run / 'plugins.json'}: does not say which plugins were used"]
    return [f"{line}: bits may differ" for line in differences(then, catalogue().versions())]


def document_in(path: Path, log: Log) -> dict[str, Any]:
    """Read a JSON file of a run folder; empty if it is missing or damaged, which is logged."""
    try:
        return files.document(path, files.get_bytes(path, files.LARGEST)) if os.path.lexists(path) else {}
    except SigmaCheckpointError as error:
        log(str(error))
        return {}
