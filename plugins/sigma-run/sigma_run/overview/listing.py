"""List the runs and studies in folders."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from sigma_kernel.contracts.storing import Store
from sigma_run.config.stores import stores
from sigma_run.overview.describing import describe_study
from sigma_run.overview.index import RunIndex, read_runs
from sigma_run.study.folder import list_studies


def list_runs(folders: Sequence[Path], log: Callable[[str], Any]) -> list[dict[str, Any]]:
    """Return what is known of the runs in some folders, oldest first, then of studies; log what is damaged."""
    runs = [row for store in stores() for folder in folders for row in _list_folder(store, folder, log)]
    return [*runs, *(describe_study(path, log) for path in list_studies(folders))]


def _list_folder(store: Store, folder: Path, log: Callable[[str], Any]) -> Iterator[dict[str, Any]]:
    paths = [*store.runs([folder])]
    index = RunIndex(folder) if paths and folder not in paths else None
    for path, row in zip(paths, read_runs(store, paths, index, log), strict=True):
        yield {**row, "status": "running"} if store.is_locked(path) else row
