"""Find the store that holds a run."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from sigma_kernel.contracts.storing import Log, Store, StoredRun
from sigma_kernel.errors import SigmaCheckpointError, SigmaConfigError, SigmaPluginError
from sigma_kernel.plugins.catalogue import catalogue
from sigma_kernel.plugins.resolver import STORE, Resolver

CONFIGURATION = "config.toml"  # the name of a run's configuration
BASE = "study.toml"  # the same of a study: what its members share


def open_run(run: Path, log: Log) -> StoredRun:
    """Return a run of the first store that has it, for reading; raise SigmaConfigError if there is none."""
    why = list[str]()
    for store in stores():
        try:
            return store.open(run, log, lambda stored: None)
        except SigmaCheckpointError as error:
            why.append(str(error).removeprefix(f"{run}: "))
    raise SigmaConfigError(f"{run}: not a run folder: {why[0]}")


def stores() -> Iterator[Store]:
    """Yield the stores of this process, the default first: what a run prefers is known once it is found.

    Others that cannot be loaded are passed over, as most runs are not theirs.
    """
    rooms = catalogue()
    default = rooms.resolve("store", STORE).full_name
    yield Resolver(rooms)("store", default)
    for name in {
        component.full_name: None for component in rooms.components("store") if component.full_name != default
    }:
        with suppress(SigmaPluginError):
            yield Resolver(rooms)("store", name)


def is_run_folder(folder: Path) -> bool:
    """Return whether a folder holds a run that has its configuration there."""
    return (folder / CONFIGURATION).is_file() and find_trained(folder) is not None


def find_trained(folder: Path) -> StoredRun | None:
    """Return the run in a folder, if something was trained in it: a configuration alone makes none."""
    for store in stores():
        with suppress(SigmaCheckpointError):  # another store may have it
            stored = store.open(folder, lambda text: None, lambda run: None)
            if stored.version("journal") is not None:
                return stored
    return None
