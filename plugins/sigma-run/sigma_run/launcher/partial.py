"""Find further mistakes in a configuration file that does not read: check the parts that do."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import chain
from typing import Any, cast, get_args

from attrs import define, field

from sigma_kernel.environment import Resolver
from sigma_kernel.errors import SigmaError
from sigma_kernel.plugins.loading import FileLoader
from sigma_kernel.settings.mistakes import Wrong
from sigma_kernel.settings.records import settings
from sigma_run.config.building import settings_of
from sigma_run.config.complaints import locate_mistake
from sigma_run.config.document import Path as Place
from sigma_run.config.examination import examine
from sigma_run.config.schema import Run, TrainerTable as Declared
from sigma_training.components import Settings

OFFLINE = "SIGMA_OFFLINE"  # while it is set, sources raise instead of downloading


def mistakes_in_parts(loader: FileLoader, values: Mapping[str, Any]) -> list[tuple[Place, Exception]]:
    """Return the mistakes in the parts that can be read, without downloading anything."""
    with offline():
        tables = [*_tables(values)]
        names = [str(head[-1]) for head, _ in tables if head]
        mistakes = [_Parts(loader, table, names).mistakes(values, head) for head, table in tables]
    return [(path, error) for path, error in chain(*mistakes) if OFFLINE not in str(error)]


def _tables(values: Mapping[str, Any]) -> Iterator[tuple[Place, Mapping[str, Any]]]:
    """Yield the path and the tables of each trainer."""
    several, single = values.get("trainers"), values.get("trainer")
    if isinstance(several, dict):
        yield from ((("trainers", name), table) for name, table in several.items() if isinstance(table, dict))
    else:
        yield (), {**values, **(single if isinstance(single, dict) else {})}


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


@define
class _Parts:
    """The readable parts of one trainer's tables, and the names of those that cannot be read."""

    loader: FileLoader
    table: Mapping[str, Any]
    others: Sequence[str] = ()  # the names of all trainers
    found: dict[str, Any] = field(factory=dict, init=False)
    missing: set[str] = field(factory=set, init=False)

    def mistakes(self, values: Mapping[str, Any], head: Place) -> list[tuple[Place, Exception]]:
        """Return the mistakes found by preparing a trainer from the readable parts."""
        for name, setting in settings(Declared).items():
            if name in ("initialisers", "hooks"):
                self.found[name] = self._tables(name, get_args(setting.type)[-1])
            elif name in self.table or setting.default is not None:
                self.found[name] = self._read(name, self.table.get(name), setting.type)
            else:
                self.found[name] = None
        run = self._run(values.get("run"))
        chosen = settings_of(run, self.found, self.loader.catalogue)
        name, precision = str(head[-1]) if head else "trainer", run.precision if run else "float32"
        others = dict.fromkeys(self.others)
        trainer = Settings(name, Resolver(self.loader.catalogue), precision=precision, others=others, **chosen)
        return [locate_mistake(values, head, path, error) for path, error in examine(trainer, self.missing)]

    def _read(self, name: str, value: Any, type_: Any) -> Any:
        with suppress(Wrong, ValueError, TypeError, SigmaError):  # reported already
            return self.loader.load(value, type_)
        self.missing.add("backend" if name in ("backend", "operator") else name)
        return None

    def _tables(self, name: str, kind: Any) -> dict[str, Any]:
        tables = self.table.get(name, {})
        if not isinstance(tables, dict):
            self.missing.add(name)
            return {}
        read = {key: self._read(name, table, kind) for key, table in tables.items()}
        return {key: value for key, value in read.items() if value is not None}

    def _run(self, table: Any) -> Run | None:
        """Return the settings of ``[run]`` that concern a trainer."""
        run_table = table if isinstance(table, dict) else {}
        concerned = {key: run_table[key] for key in ("backend", "operator", "precision") if key in run_table}
        return cast("Run | None", self._read("run", concerned, Run))
