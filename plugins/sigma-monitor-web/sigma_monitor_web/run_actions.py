"""Change runs in a directory: resume, replay, mark, and move to the trash, in the name of a person."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

from attrs import asdict, frozen

from sigma_kernel.errors import SigmaStateError
from sigma_monitor_control.aside import Aside
from sigma_monitor_web.listing import STORE
from sigma_run.launcher import say
from sigma_run.overview import make_marks, read_marks, write_marks

Tags = list[str]
TRASH, REMOVED = ".trash", "removed.jsonl"
PATIENCE = 3600.0  # seconds that a replay may take
LOOK = 0.3  # seconds between two checks of a process that should train


@frozen(eq=False)
class RunActions:
    """The requests of a client that change a run; the terminal says who sent each.

    Args:
        find: Return the folder of a run by its name.
        aside: The thread for what takes long.
        who: The name of the client, if it has one.
    """

    find: Callable[[str], Path]
    aside: Aside
    who: str = ""

    def requests(self) -> dict[str, Callable[..., Any]]:
        """Return them by name."""
        return {"delete": self.delete, "resume": self.resume, "replay": self.replay, "mark": self.mark}

    def delete(self, view: Any, run: str) -> str:
        """Move an inactive run folder to the trash; return its new path."""
        path = self._find_idle(run)
        trash = path.parent / TRASH
        if trash.is_symlink():
            raise SigmaStateError(f"{trash}: is a link. Remove it, so that nothing is moved elsewhere.")
        trash.mkdir(mode=0o700, exist_ok=True)
        place = trash / f"{run}-{time.time_ns()}"
        try:
            path.rename(place)
        except OSError as error:
            raise SigmaStateError(f"{path}: cannot be moved to {trash}: {error.strerror}.") from error
        self._tell(f"{run}: moved to {place}")
        self._note(trash, {"run": run, "place": place.name, "time": datetime.now(UTC).isoformat(), "who": self.who})
        return str(place)

    def resume(self, view: Any, run: str, epochs: int | None = None) -> Any:
        """Resume a run in a new process; return its pid once it trains, None if it has already ended.

        Raises the error of ``sigma resume`` if the run cannot be resumed.
        """
        path = self._find_idle(run)
        more = [*([] if epochs is None else ["--epochs", str(epochs)]), *([f"--who={self.who}"] if self.who else [])]
        self._tell(f"{run}: resumes")
        return self.aside.do(lambda: _resume_run(path, more))

    def replay(self, view: Any, run: str) -> Any:
        """Replay a run in a new process, and return the result of ``sigma replay --check``."""
        path = self._find_idle(run)
        self._tell(f"{run}: is replayed")
        return self.aside.do(lambda: _replay_run(path))

    def mark(
        self,
        view: Any,
        run: str,
        title: str | None = None,
        tags: Tags | None = None,
        note: str | None = None,
        starred: bool | None = None,
        archived: bool | None = None,
    ) -> dict[str, Any]:
        """Change what is said of a run, which may train meanwhile; return all of it."""
        stored = STORE.open(self.find(run), say, lambda run: None)
        given = {"title": title, "tags": tags, "note": note, "starred": starred, "archived": archived}
        before = asdict(read_marks(stored, say))
        marks = make_marks(run, {**before, **{name: value for name, value in given.items() if value is not None}})
        write_marks(stored, marks)
        return asdict(marks)

    def _find_idle(self, run: str) -> Path:
        path = self.find(run)
        if STORE.is_locked(path):
            raise SigmaStateError(f"{run}: a process writes to it. Stop that first.")
        return path

    def _tell(self, text: str) -> None:
        say(f"{self.who}: {text}" if self.who else text)

    def _note(self, trash: Path, row: dict[str, str]) -> None:
        """Append a row to the list of what is in the trash; the run is there also if that fails."""
        try:
            handle = os.open(trash / REMOVED, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW, 0o600)
            with open(handle, "a", encoding="utf-8") as file:
                file.write(json.dumps({name: value for name, value in row.items() if value}) + "\n")
        except OSError as error:
            self._tell(f"{trash / REMOVED}: cannot be written: {error.strerror}")


def _resume_run(path: Path, more: list[str]) -> int | None:
    command = [sys.executable, "-P", "-m", "sigma_run", "resume", str(path), "--quiet", *more]
    with TemporaryFile() as errors:  # the process outlives this one
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=errors, start_new_session=True
        )
        while process.poll() is None:
            if STORE.is_locked(path):
                threading.Thread(target=process.wait, name="sigma-resumed", daemon=True).start()  # until it ends
                return process.pid
            time.sleep(LOOK)
        errors.seek(0)
        why = errors.read().decode(errors="replace").strip()[-1000:]
    if process.returncode:
        raise SigmaStateError(why or f"{path}: cannot be resumed (exit code {process.returncode}).")
    return None


def _replay_run(path: Path) -> dict[str, Any]:
    command = [sys.executable, "-P", "-m", "sigma_run", "replay", str(path), "--check"]
    done = subprocess.run(
        command, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=PATIENCE, check=False
    )
    return {"identical": done.returncode == 0, "text": done.stderr.strip()[-4000:]}
