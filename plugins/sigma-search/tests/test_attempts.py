"""How often a trial was tried is known again when a search is resumed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sigma_run.study import Member, Study
from sigma_search.protocol import Protocol
from sigma_search.trials import TrialQueue, reopen_trials


def test_attempts_before_an_interruption_count_after_it(tmp_path: Path) -> None:
    settings: Any = None  # no trial has ended, and none is asked for
    protocol = Protocol(trials=3, parallel=1, attempts=3)
    queue = TrialQueue(tmp_path, settings, 0, "hooks.trial", "training.loss", protocol)
    lost = Member(folder="0", overrides=(), status="unfinished", attempts=2)
    reopened = reopen_trials(queue, Study(name="study", varies=("trial",), members=(lost,)))
    assert reopened.protocol.tried == {0: 2}
    assert 0 in reopened.protocol.begin(0).lose(0).told, "the third attempt is the last one"
