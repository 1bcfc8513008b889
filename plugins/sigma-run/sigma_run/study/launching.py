"""Train the members of a study one after the other."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from attrs import define, evolve, field

from sigma_kernel.environment import Environment, Summary
from sigma_kernel.errors import error_text
from sigma_kernel.plugins.catalogue import catalogue
from sigma_kernel.signals import EARLY
from sigma_run.config.building import build, prepare
from sigma_run.config.document import Document, override
from sigma_run.config.schema import Configuration
from sigma_run.config.stored import described_in
from sigma_run.config.stores import CONFIGURATION, open_run
from sigma_run.study.folder import StudyFolder
from sigma_run.study.plan import Member, read_results


@define(eq=False)
class StudyTraining:
    """The members of a study that are not finished, to be trained.

    ``configure`` validates the document of a member, ``train`` trains an environment, and ``report`` says why a member
    failed.
    """

    folder: StudyFolder
    base: Document  # the configuration that the members share
    configure: Callable[[Document], Configuration]
    train: Callable[[Environment], Summary]
    say: Callable[[str], None]
    report: Callable[[Exception], object]
    is_new: bool = False
    _begun: bool = field(default=False, init=False)

    def train_all(self) -> int:
        """Train all members; return the exit code.

        The failure of a member is recorded, and the others go on; a signal ends the study after the member's
        checkpoint.  The first member of a new study raises what is wrong before its training, and no study is left.
        """
        for member in self.folder.study.members:
            if member.has_ended:
                continue
            self.say(f"member {member.folder} of {len(self.folder.study.members)}: {', '.join(member.overrides)}")
            if code := self._train_member(member):
                self.folder.note("interrupted")
                return code
        self.folder.note("ended", status=self.folder.study.status)
        return 0 if all(member.has_ended for member in self.folder.study.members) else 1

    def _train_member(self, member: Member) -> int:
        """Train one member; return the exit code if a signal ended it, else 0."""
        signals: Sequence[int] = ()
        try:
            with self._open(member) as environment:
                self._begun, signals = True, environment.signals
                self.folder.update(evolve(member, status="running", why=""), "begin")
                summary = self.train(environment)
        except Exception as error:
            if EARLY:  # it was a signal
                raise
            if self.is_new and not self._begun:
                self.folder.remove()
                raise
            self.report(error)
            self._begun = True
            self.folder.update(evolve(member, status="failed", why=error_text(error)), "failed")
        else:
            self.folder.update(read_results(member, summary.to_dict()), "end", status=summary.status)
        return 128 + signals[0] if signals else 0

    @contextmanager
    def _open(self, member: Member) -> Iterator[Environment]:
        """Open the prepared environment of a member, which continues if it has checkpoints."""
        run = self.folder.run(member)
        resumed = self._find_resumable(run)
        configuration = resumed or self._configure(member)
        folder, name = (None, None) if resumed else (self.folder.path, member.folder)
        with build(configuration, catalogue(), folder, name) as environment:
            if resumed:
                environment.begin_from(run)
                prepare(configuration, environment)
                environment.resume(run, (), self.say)
            else:
                self.folder.clear(member)
                prepare(configuration, environment, begins=True)
            yield environment

    def _find_resumable(self, run: Path) -> Configuration | None:
        """Return the configuration of a run with a checkpoint of each trainer; None if there is no such run."""
        if not os.path.lexists(run / CONFIGURATION):
            return None
        configuration, stored = self.configure(described_in(run)), open_run(run, self.say)
        has_all = all(stored.checkpoints(name).numbers() for name in configuration.trainers)
        return configuration if has_all else None

    def _configure(self, member: Member) -> Configuration:
        """Return the configuration of a member that begins."""
        document = self.base
        for assignment in member.overrides:
            document = override(document, assignment)
        return self.configure(document)
