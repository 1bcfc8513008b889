"""Train the members of a study one after the other."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from attrs import define, evolve, field

from sigma_kernel.environment import Environment, Summary
from sigma_kernel.errors import error_text
from sigma_kernel.signals import EARLY
from sigma_run.study.folder import StudyFolder
from sigma_run.study.members import MemberOpener
from sigma_run.study.plan import Member, read_results


@define(eq=False)
class StudyTraining:
    """The members of a study that are not finished, to be trained.

    ``train`` trains an environment, and ``report`` says why a member failed.
    """

    folder: StudyFolder
    opener: MemberOpener
    train: Callable[[Environment], Summary]
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
            self.opener.say(describe_begin(member, len(self.folder.study.members)))
            if code := self._train_member(member):
                self.folder.note("interrupted")
                return code
        return self.folder.conclude()

    def _train_member(self, member: Member) -> int:
        """Train one member; return the exit code if a signal ended it, else 0."""
        signals: Sequence[int] = ()
        try:
            with self.opener.open(member) as environment:
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


def describe_begin(member: Member, count: int) -> str:
    """Describe a member that begins, of so many, in one line."""
    return f"member {member.folder} of {count}: {', '.join(member.overrides)}"
