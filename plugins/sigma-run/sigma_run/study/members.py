"""The environments of a study's members: each begins, or continues from its checkpoints."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from attrs import define

from sigma_kernel.environment import Environment
from sigma_kernel.errors import SigmaConfigError
from sigma_kernel.plugins.catalogue import catalogue
from sigma_run.config.building import build, prepare
from sigma_run.config.document import Document, override
from sigma_run.config.schema import Configuration
from sigma_run.config.stored import described_in
from sigma_run.config.stores import CONFIGURATION, open_run
from sigma_run.study.plan import Member
from sigma_store.folders import WrittenFolder, is_locked
from sigma_training.trainer import expect_trainer


@define(eq=False)
class MemberOpener:
    """Open the environments of members; ``configure`` validates the document of one."""

    home: WrittenFolder  # the study's
    base: Document  # the configuration that the members share
    configure: Callable[[Document], Configuration]
    say: Callable[[str], None]

    @contextmanager
    def open(self, member: Member) -> Iterator[Environment]:
        """Open the prepared environment of a member, which continues if it has checkpoints."""
        run = self.home.path / member.folder
        resumed = self._find_resumable(run)
        configuration = resumed or self.configure_member(member)
        folder, name = (None, None) if resumed else (self.home.path, member.folder)
        with build(configuration, catalogue(), folder, name) as environment:
            if resumed:
                environment.begin_from(run)
                prepare(configuration, environment)
                environment.resume(run, (), self.say)
            else:
                self._clear(member)
                prepare(configuration, environment, begins=True)
            yield environment

    def check(self, member: Member) -> list[str]:
        """Prepare a member that begins, and write nothing; raise the SigmaError that its training would begin with.

        Returns the addresses of the metrics that its summary can have, patterns among them.
        """
        configuration = self.configure_member(member)
        with build(configuration, catalogue()) as environment:
            prepare(configuration, environment, begins=True)
            return [address for name in environment.trainers for address in _list_published(environment, name)]

    def configure_member(self, member: Member) -> Configuration:
        """Return the configuration of a member that begins."""
        document = self.base
        for assignment in member.overrides:
            document = override(document, assignment)
        return self.configure(document)

    def _find_resumable(self, run: Path) -> Configuration | None:
        """Return the configuration of a run with a checkpoint of each trainer; None if there is no such run."""
        if not os.path.lexists(run / CONFIGURATION):
            return None
        configuration, stored = self.configure(described_in(run)), open_run(run, self.say)
        has_all = all(stored.checkpoints(name).numbers() for name in configuration.trainers)
        return configuration if has_all else None

    def _clear(self, member: Member) -> None:
        """Remove the run folder of a member that holds nothing to resume from."""
        run = self.home.path / member.folder
        if is_locked(run):
            raise SigmaConfigError(f"{run}: another process writes to it. Wait for it.")
        if os.path.lexists(run):
            with self.home.open() as inside:
                shutil.rmtree(inside / member.folder)


def _list_published(environment: Environment, name: str) -> list[str]:
    """Return what a trainer publishes; addresses start at the trainer if there are several, as in the summary."""
    hooks = expect_trainer(environment.trainers[name]).session.setup.order.hooks.values()
    head = f"{name}." if len(environment.trainers) > 1 else ""
    written = [address for hook in hooks if hook.scope == "global" for address in hook.writes]
    return [head + address for address in ("training.**", *written)]
