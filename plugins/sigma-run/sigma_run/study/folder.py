"""The folder of a study: ``study.json``, ``study.toml``, ``journal.jsonl``, and the run folders of its members."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Sequence
from contextlib import ExitStack, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from attrs import define, evolve, field

from sigma_kernel.contracts.storing import Log, RowWriter
from sigma_kernel.encoding import json_document
from sigma_kernel.errors import SigmaCheckpointError, SigmaConfigError
from sigma_run.config.document import Document, read
from sigma_run.config.stored import SUMMARY
from sigma_run.config.stores import BASE, CONFIGURATION
from sigma_run.study.plan import Member, Study, from_plain, read_results, to_plain
from sigma_store import files, run_folder
from sigma_store.folders import WrittenFolder, is_locked

STUDY = "study.json"  # the members and their results


@define(eq=False)
class StudyFolder:
    """The folder of a study that this process writes to."""

    home: WrittenFolder
    study: Study
    journal: RowWriter
    _claim: ExitStack = field(factory=ExitStack)

    @property
    def path(self) -> Path:
        """Return the folder."""
        return self.home.path

    def update(self, member: Member, event: str, **more: Any) -> None:
        """Write a member's new value, and what happened to the journal."""
        self._write(self.study.replace(member))
        self.note(event, member=member.folder, **more)

    def extend(self, trials: int) -> None:
        """Write the number of trials of a search, if it is another one."""
        if trials != self.study.search.get("trials"):
            self._write(evolve(self.study, search={**self.study.search, "trials": trials}))
            self.note("extended", trials=trials)

    def _write(self, study: Study) -> None:
        self.study = study
        files.put_text(self.path / STUDY, json_document(to_plain(study)), self.home)

    def note(self, event: str, **more: Any) -> None:
        """Append what happened to the journal."""
        self.journal.append({"time": datetime.now(UTC).isoformat(timespec="seconds"), "event": event, **more})

    def conclude(self) -> int:
        """Note that all members were trained; return the exit code."""
        self.note("ended", status=self.study.status)
        return 0 if self.study.status == "finished" else 1

    def base(self) -> Document:
        """Return the configuration that the members share."""
        return read(self.path / BASE, regular=True)

    def remove(self) -> None:
        """Remove the folder, of which nothing was begun."""
        self.release()
        shutil.rmtree(self.path, ignore_errors=True)

    def release(self) -> None:
        """Let others write to the study."""
        self._claim.close()


def create_study(parent: Path, study: Study, text: str, log: Log) -> StudyFolder:
    """Create the folder of a new study, whose members share the configuration ``text``."""
    home = run_folder.create(parent, study.name)
    claim = run_folder.lock(home)
    files.put_text(home.path / BASE, text, home)
    files.put_text(home.path / STUDY, json_document(to_plain(study)), home)
    folder = StudyFolder(home, study, run_folder.open_events(home, log), claim)
    folder.note("created", varies=list(study.varies), members=len(study.members))
    return folder


def reopen_study(path: Path, log: Log) -> StudyFolder:
    """Return the folder of a study, to continue it; raise SigmaStateError while another process does."""
    home = WrittenFolder(path.absolute())
    claim = run_folder.lock(home)
    try:
        folder = StudyFolder(home, read_study(home.path), run_folder.open_events(home, log), claim)
    except BaseException:
        claim.close()
        raise
    folder.note("resumed")
    return folder


# -- reading -----------------------------------------------------------------------------------------------------------
def is_study(path: Path) -> bool:
    """Return whether a folder is that of a study."""
    return not path.is_symlink() and os.path.lexists(path / STUDY)


def list_studies(places: Iterable[Path]) -> list[Path]:
    """Return the studies directly below some folders, oldest first in each."""
    studies = [
        sorted(filter(is_study, place.iterdir()), key=lambda path: (_age(path / BASE), path))
        for place in places
        if place.is_dir() and not is_study(place)
    ]
    return [path for paths in studies for path in paths]


def _age(path: Path) -> int:
    with suppress(OSError):
        return path.lstat().st_mtime_ns
    return 0


def list_members(paths: Sequence[Path]) -> list[Path]:
    """Return run folders, those of the members that have begun in place of a study."""
    return [run for path in paths for run in (_list_begun(path) if is_study(path) else [path])]


def _list_begun(path: Path) -> list[Path]:
    runs = [path / member.folder for member in read_study(path).members]
    return [run for run in runs if os.path.lexists(run / CONFIGURATION)]


def read_study(path: Path) -> Study:
    """Return a study, its members as their run folders say; raise SigmaConfigError if it is damaged."""
    place = path / STUDY
    try:
        study = from_plain(str(place), files.document(place, files.get_bytes(place, files.LARGEST)))
    except SigmaCheckpointError as error:
        raise SigmaConfigError(str(error)) from None
    return evolve(study, members=tuple(_look_at(path / member.folder, member) for member in study.members))


def _look_at(run: Path, member: Member) -> Member:
    """Return a member as its run folder says, if there is one; one whose process was lost too often has failed."""
    if is_locked(run):
        return evolve(member, status="running")
    if not os.path.lexists(run):
        is_decided = member.has_ended or member.status == "failed"
        return member if is_decided else evolve(member, status="planned")
    summary = _read_summary(run, member)
    return member if member.status == "failed" and summary.status in ("unfinished", "interrupted") else summary


def _read_summary(run: Path, member: Member) -> Member:
    if os.path.lexists(run / SUMMARY):
        with suppress(SigmaCheckpointError):
            return read_results(member, files.document(run / SUMMARY, files.get_bytes(run / SUMMARY, files.LARGEST)))
    return evolve(member, status="unfinished")
