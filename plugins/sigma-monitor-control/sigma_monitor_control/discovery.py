"""Find the runs of this user that can be steered, and connect to one of them."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from attrs import frozen

from sigma_kernel.errors import SigmaConfigError, SigmaError, SigmaStateError
from sigma_monitor_control import places
from sigma_monitor_control.client import Client

AGAIN = 0.02  # seconds between two polls for a run that begins
PATIENCE = 5.0  # seconds that a run gets to introduce itself
NONE = "Start one with `sigma run`; a run can be steered unless `[run] control = false` or SIGMA_CONTROL=off is set."


@frozen(eq=False)
class Found:
    """A run that answers: the path of its socket, and a client that has been introduced; or None if it is silent."""

    path: Path
    client: Client | None

    @property
    def name(self) -> str:
        """Return the name of the run."""
        return str(self.client.about["name"]) if self.client else f"process {self.path.name.partition('-')[0]}"

    @property
    def folder(self) -> Path | None:
        """Return the run folder."""
        folder = self.client.about["folder"] if self.client else None
        return None if folder is None else Path(folder)

    @property
    def title(self) -> str:
        """Return the name of the run folder, or else of the run with its process."""
        return self.client.title if self.client else f"{self.name} (no answer)"

    @property
    def is_near(self) -> bool:
        """Return whether the run is of the working directory: it writes, or its process works, below or above that."""
        return self.client is not None and is_near(self.client.about, Path.cwd())

    def is_called(self, run: str | Path) -> bool:
        """Return whether this is the name of the run or of its folder, or the folder's path, even if it was moved."""
        if self.folder is None:
            return run == self.name
        return run in (self.name, self.folder.name) or _absolute(run) == _absolute(self.folder)

    def close(self) -> None:
        """Close the connection."""
        if self.client is not None:
            self.client.close()


def is_near(about: Mapping[str, Any], here: Path) -> bool:
    """Return whether the folder of a run, or the working directory of its process, lies below or above a directory."""
    places = [Path(about[key]) for key in ("folder", "directory") if about.get(key) is not None]
    return any(place.is_relative_to(here) or here.is_relative_to(place) for place in places)


# -- connecting --------------------------------------------------------------------------------------------------------
def open_connection(path: Path) -> socket.socket | None:
    """Return a connection to a socket of this user; remove the socket and return None if nothing listens.

    Raises SigmaStateError if another user listens there.
    """
    if not places.is_own_socket(path):
        return None
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.settimeout(PATIENCE)
    try:
        connection.connect(str(path))
    except (ConnectionRefusedError, FileNotFoundError):
        connection.close()
        places.remove_file(path)
        return None
    except OSError as error:  # such as a full queue of a stopped process
        connection.close()
        raise SigmaStateError(f"{path}: does not answer: {error.strerror or error}. Is the process stopped?") from None
    if places.user(connection) not in (os.getuid(), None):
        connection.close()
        raise SigmaStateError(f"{path}: belongs to another user. Log in as that user to steer the run.")
    return connection


def introduce_client(connection: socket.socket) -> Client | None:
    """Return a client of the run; None if the run does not answer in time, or has ended."""
    client = Client(connection)
    try:
        about = client.request("hello")
    except (OSError, SigmaError):
        client.close()
        return None
    connection.settimeout(None)
    return Client(connection, about)


def running() -> list[Found]:
    """Return all steerable runs of this user, the newest last; remove sockets without a listener."""
    pairs: list[tuple[Path, socket.socket | None]] = []
    for path in places.sockets():
        try:
            connection = open_connection(path)
        except SigmaError:
            pairs.append((path, None))
        else:
            pairs += [] if connection is None else [(path, connection)]
    return [Found(path, None if connection is None else introduce_client(connection)) for path, connection in pairs]


# -- choosing ----------------------------------------------------------------------------------------------------------
def connect(run: str | Path | None = None, wait: float = 0.0) -> Client:
    """Return a client of a run: named by its folder or its name, or the only one, or the only one that is near.

    A run is near if its folder, or the working directory of its process, lies below or above that of this process.
    ``wait`` are seconds that it gets to begin.  Raises SigmaStateError if there is none then, SigmaConfigError, with a
    list, if there are several.
    """
    end = time.monotonic() + wait
    while True:
        try:
            return _find_client(run)
        except SigmaStateError:
            if time.monotonic() >= end:
                raise
        time.sleep(AGAIN)


def connect_to_steer(run: str | None) -> Client:
    """Return a client of the run that a command changes, as :func:`connect`; one that is not named has to be near.

    Raises SigmaConfigError, with its name, for one that is not.
    """
    client = connect(run)
    if run is None and not is_near(client.about, Path.cwd()):
        client.close()
        place = client.about["folder"] or client.about.get("directory") or "another directory"
        raise SigmaConfigError(
            f"no run of this directory can be steered. {client.title} trains in {place}. Name it to steer it: "
            f"--run {client.about['name'] if client.about['folder'] is None else client.title}."
        )
    return client


def _find_client(run: str | Path | None) -> Client:
    if run is not None and Path(run).is_dir():
        return _in_folder(Path(run))
    candidates = running()
    if run is None:
        named = [candidate for candidate in candidates if candidate.is_near] or candidates
    else:
        named = [candidate for candidate in candidates if candidate.is_called(run)]
    try:
        return _select_client(named, candidates, run)
    except SigmaError:
        _close(candidates)
        raise


def _select_client(named: Sequence[Found], found: Sequence[Found], run: Any) -> Client:
    """Return the client of the only one of the runs that are meant, and close the others."""
    if not named and run is not None:
        there = f" There is: {', '.join(candidate.title for candidate in found)}." if found else f" {NONE}"
        raise SigmaStateError(f"--run {run}: no run of that name can be steered.{there}")
    if not named:
        raise SigmaStateError(f"no run can be steered. {NONE}")
    if len(named) > 1:
        lines = "".join(f"\n  {candidate.title}" for candidate in named)
        raise SigmaConfigError(f"several runs can be steered. Name one with --run:{lines}")
    if named[0].client is None:
        raise SigmaStateError(f"{named[0].name}: does not answer. Is it stopped, or busy? Try again.")
    _close(candidate for candidate in found if candidate is not named[0])
    return named[0].client


def _close(found: Iterable[Found]) -> None:
    for candidate in found:
        candidate.close()


def _in_folder(run: Path) -> Client:
    """Return a client of the run of a folder, whose ``control.json`` names the socket; a dead one is removed."""
    about = places.read(run)
    if about and places.is_dead(about):
        places.remove_file(run / places.CONTROL)
    path = about.get("socket")
    connection = open_connection(Path(path)) if isinstance(path, str) and os.path.isabs(path) else None
    client = introduce_client(connection) if connection is not None else _among_all(run)
    if client is None:
        raise SigmaStateError(f"{run}: is not training, or does not answer. {NONE}")
    if not _is_same(client.about["folder"], run):
        client.close()
        raise _misplaced_error(run, client.about["folder"])
    return client


def _misplaced_error(run: Path, folder: str | None) -> SigmaStateError:
    """Return the error about a folder whose ``control.json`` names the socket of a run that writes to another."""
    if folder is None:
        return SigmaStateError(f"{run}: {places.CONTROL} names the socket of another run. Remove that file.")
    return SigmaStateError(
        f"{run}: was moved or copied from {folder} while its run trains, which still writes there. Pass --run "
        f"{folder}, and move the folder once the run has ended."
    )


def _among_all(run: Path) -> Client | None:
    """Return a client of the run of a folder without ``control.json``."""
    candidates = running()
    there = [candidate for candidate in candidates if candidate.folder is not None and _is_same(candidate.folder, run)]
    _close(candidate for candidate in candidates if candidate not in there[:1])
    return there[0].client if there else None


def _absolute(path: str | Path) -> str:
    return os.path.abspath(path)  # without looking: the folder may be gone


def _is_same(folder: str | Path | None, run: Path) -> bool:
    if folder is None:
        return False
    with suppress(OSError):
        return os.path.samefile(folder, run)
    return False
