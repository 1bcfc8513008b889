"""Where the data of a run lie: paths in ``config.toml`` relative to its project, and other places."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from types import NoneType
from typing import Any, get_args

from sigma_kernel.contracts.storing import StoredRun
from sigma_kernel.errors import SigmaConfigError
from sigma_kernel.plugins.choice import Choice
from sigma_kernel.settings.mistakes import format_path
from sigma_kernel.settings.records import settings
from sigma_run.config.document import Document, Path as Place, override
from sigma_run.config.schema import Configuration
from sigma_run.config.stores import BASE, CONFIGURATION, find_trained


# -- paths that are written --------------------------------------------------------------------------------------------
def places_in(configuration: Configuration, folder: Path | None) -> Callable[[Path], str]:
    """Return what writes the paths of a configuration for a run below a folder, or for the run that it is of.

    A path in the project, which is the directory of the configuration, is relative to the run if that is in it, too.
    """
    here = configuration.document.folder
    run = here if folder is None else Path(folder, configuration.run.name)
    stored = find_trained(here)
    project = None if stored is None else _project(here.resolve(), _text_of(stored))
    return partial(write_path, run=run, project=project or here) if folder or project else str


def _text_of(stored: StoredRun) -> str:
    """Return the configuration of a run, or the one that the members of a study share."""
    return (stored.read(CONFIGURATION) or stored.read(BASE) or b"").decode()


def write_path(path: Path, run: Path, project: Path) -> str:
    """Return a path as a run folder names it: relative to that if both are in the project, else absolute."""
    home, inside = run.resolve(), project.resolve()
    there = path.absolute().parent.resolve() / path.name  # a link stays one
    within = inside in (home, *home.parents) and inside in there.parents
    return os.path.relpath(there, home) if within else str(path.absolute())


def _project(run: Path, text: str) -> Path:
    """Return the directory from which the paths of a run folder start: as many above it as its text goes up."""
    prefixes = re.findall(r'"(\.\.(?:/\.\.(?=[/"]))*+)[/"]', text)
    return [run, *run.parents][min(max((prefix.count("..") for prefix in prefixes), default=0), len(run.parents))]


# -- data that lie elsewhere -------------------------------------------------------------------------------------------
def move_data(configuration: Configuration, data: Path, option: str = "--data") -> tuple[Document, list[str]]:
    """Return the document of a run whose data lie elsewhere, and the assignments that say so.

    Raises SigmaConfigError unless its trainers read one file or folder, and ``data`` is there.
    """
    files, described = [*_files(configuration)], configuration.document
    if len({path for _, path in files}) != 1:
        keys = " ".join(f"--set {format_path(place)}=PATH" for place, _ in files)
        wrong = f"reads several files: say where each is by {keys}" if files else "does not read a file of yours"
        raise SigmaConfigError(f"{option}: {described.folder.name} {wrong}. In Python, load(RUN).evaluate(data).")
    if not data.exists():
        raise SigmaConfigError(f"{option}: {data}: there is no such file or folder. Check the path.")
    edits = [f"{'.'.join(map(json.dumps, place))}={json.dumps(str(data.absolute()))}" for place, _ in files]
    for edit in edits:
        described = override(described, edit, option)
    return described, edits


def check_there(configuration: Configuration) -> None:
    """Raise SigmaConfigError, with the remedy, if data that a run was trained on are not where they were."""
    run = configuration.document.folder
    missing = [path for _, path in _files(configuration) if not path.exists()]
    if missing and find_trained(run) is not None:
        raise SigmaConfigError(
            f"{missing[0]}: there is no such file or folder, and {run.name} was trained on it. If it lies elsewhere "
            "now, say where: --data PATH, or in Python load(RUN, data=PATH)."
        )


def _files(configuration: Configuration) -> Iterator[tuple[Place, Path]]:
    """Yield the files and folders that data sets cannot do without, each with its key in the configuration."""
    values = configuration.document.values
    for name, trainer in configuration.trainers.items():
        head: Place = ("trainers", name, "data") if "trainers" in values else ("data",)
        table = values["trainers"][name]["data"] if "trainers" in values else values["data"]
        nested = isinstance(table.get("dataset"), Mapping)
        yield from _list_paths(trainer.data.dataset, (*head, "dataset") if nested else head)


def _list_paths(choice: Choice[Any], head: Place) -> Iterator[tuple[Place, Path]]:
    for name, setting in settings(choice.factory).items():
        types, value = (setting.type, *get_args(setting.type)), choice.settings.get(name)
        if Path in types and NoneType not in types and isinstance(value, Path):
            yield (*head, name), value
        elif isinstance(value, Choice):
            yield from _list_paths(value, (*head, name))
