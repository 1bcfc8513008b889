"""A hook that ends training may say how: its status and its reason are in the summary."""

from __future__ import annotations

import json

import pytest
from attrs import define

from sigma_kernel import Hook
from sigma_kernel.clock import TimeStep, after
from sigma_testing.doing import Do
from sigma_testing.hooks import small_classifier
from sigma_testing.steering import Sweep


@pytest.mark.parametrize(
    ("cause", "status", "why"),
    [
        ("pruned: 0.5 is below 0.6: too low.", "pruned", "0.5 is below 0.6: too low."),
        ("", "finished", ""),
    ],
)
def test_the_cause_of_a_hook_is_status_and_reason_of_the_summary(tmp_path, cause, status, why):
    stop = Do(every=after(2, "epoch"), does=lambda context: context.command("stop", cause=cause), ends=True)
    with small_classifier(Sweep(), hooks={"it": stop}) as sigma:
        sigma.folder = tmp_path
        summary = sigma.run()
    assert (summary.status, summary.why, summary.epochs) == (status, why, 2)
    (run,) = tmp_path.iterdir()
    stored = json.loads((run / "summary.json").read_text())
    assert (stored["status"], stored.get("why", "")) == (status, why)
    (row,) = [
        row for row in map(json.loads, (run / "journal.jsonl").read_text().splitlines()) if row.get("command") == "stop"
    ]
    assert (row["by"], row["cause"]) == ("it", cause)


def test_training_that_goes_on_forgets_the_cause():
    stop = Do(every=after(1, "epoch"), does=lambda context: context.command("stop", cause="pruned: low."), ends=True)
    with small_classifier(Sweep(), hooks={"it": stop}) as sigma:
        sigma.run()
        sigma.trainer("trainer").fit(epochs=1)
        assert (sigma.summary().status, sigma.summary().why) == ("finished", "")


@define(eq=False, kw_only=True)
class Prune(Hook):
    """End training after the second epoch, and remember it."""

    every: TimeStep = after(2, "epoch")
    ends = True

    def has_ended(self, memory):
        return "over" in memory

    def fire(self, context):
        context.memory["over"] = True
        context.command("stop", cause="pruned: low.")


def test_a_run_that_was_killed_at_its_end_has_the_cause_when_it_is_resumed(tmp_path):
    with small_classifier(Sweep(), hooks={"it": Prune()}) as sigma:
        sigma.folder = tmp_path
        sigma.run()
        (run,) = tmp_path.iterdir()
    (run / "summary.json").unlink()  # the process was killed before it was written
    with small_classifier(Sweep(), hooks={"it": Prune()}) as again:
        again.resume(run)
        assert (again.run().status, again.summary().why, again.summary().epochs) == ("pruned", "low.", 2)
