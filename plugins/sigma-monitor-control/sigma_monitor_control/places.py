"""The directories of sockets; only directories and files of this user alone are trusted."""

from __future__ import annotations

import json
import os
import socket
import stat
import struct
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from sigma_kernel.errors import SigmaStateError

CONTROL = "control.json"  # in the run folder
FORMAT = 1
SUFFIX = ".sock"
LONGEST = 100  # bytes of a socket's path: the limits of systems are 104 to 108
LARGEST = 10_000  # bytes of control.json


# -- directories -------------------------------------------------------------------------------------------------------
def directories() -> list[Path]:
    """Return the directories that may hold sockets of this user, the first choice first."""
    runtime = os.environ.get("XDG_RUNTIME_DIR", "")
    folders = [Path(runtime) / "sigma"] if os.path.isabs(runtime) else []
    return [*folders, Path(tempfile.gettempdir()) / f"sigma-{os.getuid()}"]


def is_private(directory: Path) -> bool:
    """Return whether a directory is this user's alone, and no link."""
    try:
        status = directory.lstat()
    except OSError:
        return False
    return stat.S_ISDIR(status.st_mode) and status.st_uid == os.getuid() and not stat.S_IMODE(status.st_mode) & 0o077


def open_listener() -> tuple[socket.socket, Path]:
    """Return a listening socket and its path; raises SigmaStateError, with the reasons, if none can be created."""
    problems = []
    for directory in directories():
        try:
            return _listening(directory)
        except OSError as error:
            problems.append(f"{directory}: {error.strerror or error}")
    raise SigmaStateError(
        f"other shells cannot steer this run, as no socket can be created ({'; '.join(problems)}). Set "
        "XDG_RUNTIME_DIR to a directory of your own, or switch this off: [run] control = false."
    )


def _listening(directory: Path) -> tuple[socket.socket, Path]:
    with suppress(FileExistsError):
        directory.mkdir(0o700)
    if not is_private(directory):
        raise OSError("is not a directory of this user alone")
    path = directory / f"{os.getpid()}-{os.urandom(4).hex()}{SUFFIX}"
    early = path.with_suffix(".new")  # until it listens: others remove a socket that refuses them
    if len(os.fsencode(path)) > LONGEST:
        raise OSError("is too long a path for a socket")
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        listener.bind(str(early))
        early.chmod(0o600)
        listener.listen(128)
        listener.setblocking(False)
        early.rename(path)
    except OSError:
        listener.close()
        remove_file(early)
        raise
    return listener, path


def sockets() -> Iterator[Path]:
    """Yield the sockets in all directories of this user, the newest last."""
    for directory in filter(is_private, directories()):
        paths = [path for path in directory.glob(f"*{SUFFIX}") if is_own_socket(path)]
        yield from sorted(paths, key=_born)


def _born(path: Path) -> float:
    try:
        return path.lstat().st_mtime
    except OSError:  # its run has just ended
        return 0.0


def is_own_socket(path: Path) -> bool:
    """Return whether a path is a socket of this user, in a directory of this user alone."""
    try:
        status = path.lstat()
    except OSError:
        return False
    return stat.S_ISSOCK(status.st_mode) and status.st_uid == os.getuid() and is_private(path.parent)


def remove_file(path: Path) -> None:
    """Remove a file, if it is there."""
    with suppress(OSError):
        path.unlink()


# -- who is at the other end -------------------------------------------------------------------------------------------
def user(connection: socket.socket) -> int | None:
    """Return the user at the other end of a connection; None if the system does not support it.

    There the modes of the directory and of the socket alone keep others out.
    """
    option = getattr(socket, "SO_PEERCRED", None)
    if option is None:
        return None
    credentials = struct.Struct("3i")
    _, uid, _ = credentials.unpack(connection.getsockopt(socket.SOL_SOCKET, option, credentials.size))
    return int(uid)


def read_start_time(process: int) -> int | None:
    """Return when a process started, in ticks since the system did; None if it has ended or the time is unknown."""
    try:
        text = Path(f"/proc/{process}/stat").read_text()
        return int(text.rpartition(")")[2].split()[19])
    except (OSError, ValueError, IndexError):
        return None


# -- the run folder ----------------------------------------------------------------------------------------------------
def announce_run(run: Path, path: Path) -> Path | None:
    """Write ``control.json`` to a run folder, and return its path; None if the folder cannot be written to.

    The run is then found through the directory of its socket alone.
    """
    process, file = os.getpid(), run / CONTROL
    values = {
        "format": FORMAT,
        "socket": str(path),
        "process": process,
        "started": read_start_time(process),
        "host": socket.gethostname(),
    }
    temporary = run / f".{CONTROL}.{process}.part"
    try:
        remove_file(temporary)
        handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
        with open(handle, "w", encoding="utf-8") as opened:
            opened.write(json.dumps(values, indent=1) + "\n")
        temporary.replace(file)
    except (OSError, UnicodeError):
        remove_file(temporary)
        return None
    return file


def read(run: Path) -> Mapping[str, Any]:
    """Return the content of ``control.json`` in a run folder; empty if it is missing or unreadable."""
    try:
        handle = os.open(run / CONTROL, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        with open(handle, "rb") as opened:
            document = json.loads(opened.read(LARGEST)) if stat.S_ISREG(os.fstat(handle).st_mode) else {}
    except (OSError, ValueError, RecursionError):
        return {}
    return document if isinstance(document, dict) else {}


def is_dead(about: Mapping[str, Any]) -> bool:
    """Return whether ``control.json`` belongs to an ended process of this machine."""
    process, begun = about.get("process"), about.get("started")
    if about.get("host") != socket.gethostname() or not isinstance(process, int) or isinstance(process, bool):
        return False
    return isinstance(begun, int) and read_start_time(process) != begun
