"""Read what a stored run has by name: its configuration, its plugins' versions, its summary."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from attrs import evolve

from sigma_kernel.contracts import Dataset
from sigma_kernel.contracts.storing import Log, StoredRun
from sigma_kernel.environment import Environment
from sigma_kernel.errors import SigmaCheckpointError, SigmaConfigError
from sigma_kernel.plugins.catalogue import Catalogue, catalogue
from sigma_run.config.building import build
from sigma_run.config.document import Document, parse
from sigma_run.config.location import check_there, move_data
from sigma_run.config.reading import load_configuration
from sigma_run.config.schema import Configuration
from sigma_run.config.stores import CONFIGURATION, open_run
from sigma_training.compatibility import differences
from sigma_training.components import check_split
from sigma_training.trainer import expect_trainer

PLUGINS, SUMMARY = "plugins.json", "summary.json"  # what a run has by name, beside its configuration


def open_stored(run: Path, trust: Iterable[str] = (), data: Path | None = None) -> tuple[Configuration, Environment]:
    """Return the configuration of a run folder, and an environment for it without monitors; no data is read yet.

    Own code that it names is imported only of the packages and modules in ``trust``; ``data`` is where its data lie
    now.
    """
    return build_unwatched(described_in(run), catalogue().trusting(trust), data)


def build_unwatched(
    described: Document, plugins: Catalogue, data: Path | None = None
) -> tuple[Configuration, Environment]:
    """Return the configuration of a document, and an environment for it without monitors; no data is read yet."""
    watched_by_none = {name: table for name, table in described.values.items() if name != "monitors"}
    configuration = load_configuration(evolve(described, values=watched_by_none), plugins)
    if data is not None:
        configuration = load_configuration(move_data(configuration, data)[0], plugins)
    return configuration, build(configuration, plugins)


def open_data(run: Path, trainer: str | None = None, data: Path | None = None) -> tuple[Any, Mapping[str, Dataset]]:
    """Return the data set of a trainer of a run folder, by default of the first, and the splits that it reads now.

    Own code that the run names is not imported; ``data`` is where the data lie now. Raises SigmaConfigError for an
    unknown trainer, and a SigmaError for data that cannot be read.
    """
    configuration, environment = open_stored(run, data=data)
    check_there(configuration)
    name = trainer if trainer is not None else next(iter(environment.trainers))
    setup = expect_trainer(environment.trainer(name)).session.setup
    return setup.settings.data, setup.factory.splits


def rows_of(configuration: Configuration, trainer: str, file: Path, split: str) -> Any:
    """Return a file as a trainer's data set reads it: all its rows, or a split if the file has splits of its own."""
    elsewhere = load_configuration(move_data(configuration, file, "FILE")[0], catalogue())
    data: Any = elsewhere.trainers[trainer].data.dataset.make()
    if isinstance(data, Mapping) and not hasattr(data, "split"):
        check_split("FILE", split, data)
        return data[split]
    whole = {"split": {"training": 1.0}, **{name: None for name in ("fold", "class_weights") if hasattr(data, name)}}
    return evolve(data, **whole) if hasattr(data, "split") else data


def described_in(run: Path) -> Document:
    """Return the configuration of a run as a document; raise SigmaConfigError for a run that has none."""
    stored = open_run(run, warnings.warn)
    described = read_configuration(stored, run)
    if not described.values:
        raise SigmaConfigError(
            f"{run}: was trained from Python, so it has no configuration. Create its trainers again in Python, then "
            "call Environment.resume(RUN) and run()."
        )
    return evolve(described, plugins=_used_plugins(stored))


def _used_plugins(stored: StoredRun) -> dict[str, str]:
    """Return the versions of the plugins that a run has used; none that are not texts, of which others tell."""
    versions = read_document(stored, PLUGINS, lambda text: None).get("plugins", {})
    names = versions.items() if isinstance(versions, Mapping) else ()
    return {str(name): version for name, version in names if isinstance(version, str)}


def read_configuration(stored: StoredRun, run: Path) -> Document:
    """Return the configuration of a run, whose relative paths start at it; raise SigmaConfigError."""
    place = f"{run / CONFIGURATION}"
    try:
        if (data := stored.read(CONFIGURATION)) is None:
            what = f"it has no {CONFIGURATION}. Pass one that `sigma run` wrote, below runs/"
            raise SigmaConfigError(f"{run}: not a run folder: {what}.")
        return evolve(parse(data.decode("utf-8-sig"), place), folder=run.absolute())
    except SigmaCheckpointError as error:
        raise SigmaConfigError(str(error)) from None
    except UnicodeDecodeError:
        raise SigmaConfigError(f"{place}: is not UTF-8 text, as TOML must be.") from None


def changed_plugins(stored: StoredRun, log: Log) -> list[str]:
    """Return a line for each plugin whose version differs from that of the run."""
    then = read_document(stored, PLUGINS, log).get("plugins", {})
    if not isinstance(then, Mapping):
        return [f"{Path(stored.place, PLUGINS)}: does not say which plugins were used"]
    return [f"{line}: bits may differ" for line in differences(then, catalogue().versions())]


def read_document(stored: StoredRun, name: str, log: Log) -> dict[str, Any]:
    """Return the JSON object of a name in a run; empty if it is missing or damaged, which is logged."""
    try:
        content = json.loads(stored.read(name) or b"{}")
        if isinstance(content, dict):
            return content
        log(f"{Path(stored.place, name)}: not a JSON object. Restore it from a copy.")
    except SigmaCheckpointError as error:
        log(str(error))
    except (ValueError, RecursionError, MemoryError) as error:
        log(f"{Path(stored.place, name)}: not JSON: {error!r:.200}. Restore it from a copy.")
    return {}
