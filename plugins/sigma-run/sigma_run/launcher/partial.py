"""Find further mistakes in a configuration file that does not read: check the parts that could be read."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from attrs import asdict

from sigma_kernel.environment import Resolver
from sigma_kernel.plugins.catalogue import Catalogue
from sigma_kernel.settings.mistakes import Fragment
from sigma_kernel.settings.records import settings
from sigma_run.config.building import settings_of
from sigma_run.config.complaints import locate_mistake
from sigma_run.config.document import Path as Place
from sigma_run.config.examination import examine
from sigma_run.config.schema import Run, TrainerTable
from sigma_training.components import Settings

OFFLINE = "SIGMA_OFFLINE"  # while it is set, sources raise instead of downloading


def mistakes_in_parts(
    catalogue: Catalogue, values: Mapping[str, Any], parts: Mapping[str, Any]
) -> list[tuple[Place, Exception]]:
    """Return the mistakes in the parts of a file that could be read, without downloading anything."""
    trainers = dict(_trainers(parts))
    others = [str(head[-1]) for head in trainers if head]
    with offline():
        mistakes = [
            locate_mistake(values, head, path, error)
            for head, table in trainers.items()
            for path, error in _examine(catalogue, str([*head, "trainer"][-1]), table, parts["run"], others)
        ]
    return [(path, error) for path, error in mistakes if OFFLINE not in str(error)]


def _trainers(parts: Mapping[str, Any]) -> Iterator[tuple[Place, Mapping[str, Any]]]:
    """Yield the path and the tables of each trainer."""
    if "trainers" in parts:
        yield from ((("trainers", name), _fields(table)) for name, table in parts["trainers"].items() if table)
    else:
        yield (), {**parts, **_fields(parts["trainer"])}


def _fields(table: Any) -> Mapping[str, Any]:
    return table if isinstance(table, Fragment) else asdict(table, recurse=False)


@contextmanager
def offline() -> Iterator[None]:
    """Forbid downloads within the context."""
    before = os.environ.get(OFFLINE)
    os.environ[OFFLINE] = before or "1"
    try:
        yield
    finally:
        os.environ.pop(OFFLINE)
        os.environ.update({} if before is None else {OFFLINE: before})


def _examine(
    catalogue: Catalogue, name: str, table: Mapping[str, Any], run: Any, others: Sequence[str]
) -> list[tuple[Place, Exception]]:
    """Return the mistakes found by preparing a trainer from the parts of its tables that could be read."""
    parts: dict[str, Any] = {setting: table.get(setting) for setting in settings(TrainerTable)}
    readable = {**dict.fromkeys(parts), **_readable(parts), "initialisers": _readable(parts["initialisers"] or {})}
    common = _readable({slot: _fields(run).get(slot) for slot in ("backend", "operator", "precision")})
    shared = Run(**{"backend": None, "operator": None, **common})
    chosen = settings_of(shared, readable, catalogue)
    given = {"precision": shared.precision, "others": dict.fromkeys(others), **chosen}
    return examine(Settings(name, Resolver(catalogue), **given), parts.keys() - _readable(parts))


def _readable(parts: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in parts.items() if not isinstance(value, Fragment)}
