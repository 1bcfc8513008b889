"""A directory of run folders: list, compare and serve them."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from attrs import define, field

from sigma_kernel.contracts import View
from sigma_kernel.errors import SigmaConfigError, SigmaError, SigmaStateError
from sigma_monitor_control import connect
from sigma_monitor_control.aside import Aside
from sigma_monitor_control.client import Client
from sigma_monitor_control.protocol import Conversation
from sigma_monitor_web.describer import Describer
from sigma_monitor_web.ended import EndedRun
from sigma_monitor_web.exposition import expose_view
from sigma_monitor_web.keys import STEER
from sigma_monitor_web.listing import STORE, RunList
from sigma_monitor_web.readers import RunReaders
from sigma_monitor_web.relay import Relay
from sigma_monitor_web.run_actions import RunActions
from sigma_monitor_web.run_table import ROWS, TableQuery, compare_settings
from sigma_monitor_web.talk import Talk

LONGEST = 255  # bytes of a name in a file system


@define(eq=False)
class Shelf:
    """The run folders directly below a directory."""

    folder: Path
    where: str = "ui"
    data: Path | None = None  # the location of its runs' data, if they were moved
    aside: Aside = field(factory=Aside, init=False)
    describer: Describer = field(init=False)
    list: RunList = field(init=False)
    readers: RunReaders = field(init=False)

    @list.default
    def _(self) -> RunList:
        return RunList(self.folder)

    @describer.default
    def _(self) -> Describer:
        return Describer(self.data)

    @readers.default
    def _(self) -> RunReaders:
        return RunReaders(self.data)

    def end(self) -> None:
        """End the threads, after their current work, and the processes."""
        self.aside.end()
        self.describer.end()
        self.readers.close()
        self.list.end()

    @property
    def name(self) -> str:
        """Return the name of the directory."""
        return self.folder.resolve().name

    # -- one run -------------------------------------------------------------------------------------------------------
    def path(self, name: str) -> Path:
        """Return the folder of a run; raise SigmaConfigError unless it is a run folder directly below this one."""
        path = self.folder / name
        plain = name not in ("", ".", "..") and Path(name).name == name and not name.startswith(".")
        plain = plain and "\0" not in name and len(os.fsencode(name)) <= LONGEST
        if not plain or path not in STORE.runs([path]):
            raise SigmaConfigError(f"{name!r:.100}: is not the name of a run folder in {self.folder}.")
        return path

    def talk(self, run: str, scopes: frozenset[str], who: str = "") -> Talk:
        """Return a conversation about a run, by default the newest: with its process, or with its reader.

        If neither works, the conversation states the reason.
        """
        if not run and not (paths := self.list.paths()):
            return self._local(EndedRun(self.folder), scopes, who)
        path = self.path(run or paths[-1].name)
        local, own = self._local(EndedRun(path), scopes, who), self._directory_requests(scopes).keys()
        try:
            client, process = self._connect(path)
            return Relay(client, local, scopes, own, process, who)
        except (SigmaError, OSError) as error:
            return self._local(EndedRun(path, str(error)), scopes, who)

    def _connect(self, path: Path) -> tuple[Client, int | None]:
        """Return a connection to the process of a run, or to its reader; with the process to state for the latter."""
        if STORE.is_locked(path):
            with suppress(SigmaError):  # it runs without a socket: what it writes can be watched
                return connect(path), None
        return self.readers.connect(path), os.getpid()

    def _local(self, view: View, scopes: frozenset[str], who: str) -> Conversation:
        return Conversation(view, scopes, self.aside.do, self._directory_requests(scopes, who))

    def _directory_requests(self, scopes: frozenset[str], who: str = "") -> Mapping[str, Callable[..., Any]]:
        """Return the additional requests of a directory."""
        data = {"profile": self.describer.profile, "findings": self.describer.findings}
        read: dict[str, Callable[..., Any]] = {
            "runs": self.runs,
            "results": self.results,
            "reproduce": self.reproduce,
            **data,
        }
        read |= {"names": self.names, "table": self.table, "difference": self.difference}
        actions = RunActions(self.path, self.aside, who)
        return {**read, **(actions.requests() if STEER in scopes else {})}

    def metrics(self) -> tuple[bytes, str]:
        """Return the Prometheus exposition of the newest run."""
        if not (paths := self.list.paths()):
            return expose_view(EndedRun(self.folder))
        try:
            return self.list.expose_run(paths[-1])
        except SigmaStateError as error:
            return expose_view(EndedRun(paths[-1], str(error)))

    # -- requests ------------------------------------------------------------------------------------------------------
    def runs(self, view: Any) -> Any:
        """Return status, length, settings and results of all runs, oldest first."""
        return self.list.runs()

    def names(self, view: Any) -> Any:
        """Return the name, the title and the status of all runs, newest first."""
        return self.list.names()

    def table(
        self,
        view: Any,
        where: str = "",
        sort: str = "",
        descending: bool = False,
        archived: bool = False,
        start: int = 0,
        count: int = ROWS,
    ) -> Any:
        """Return a part of the table of runs: those that a criterion leaves, sorted by the value at an address."""
        return self.list.table(TableQuery(where, sort, descending, archived, start, count))

    def difference(self, view: Any, one: str, other: str) -> Any:
        """Return the settings in which two runs differ, and the commands of each."""
        paths = [self.path(name) for name in (one, other)]
        return self.aside.do(lambda: self._compare(paths))

    def _compare(self, paths: Sequence[Path]) -> dict[str, Any]:
        described = {run["name"]: run for run in self.list.runs().result()}
        settings = [described.get(path.name, {}).get("settings", {}) for path in paths]
        commands = [self.list.commands(path).result() for path in paths]
        return {"runs": [path.name for path in paths], "settings": compare_settings(settings), "commands": commands}

    def results(self, view: Any) -> Any:
        """Return a future of the baselines of a run that has ended, and of what is said about its results."""
        return self.list.results(view.folder)

    def reproduce(self, view: Any) -> Any:
        """Return a future of the commands that train a run again."""
        return self.list.reproduce(view.folder)
