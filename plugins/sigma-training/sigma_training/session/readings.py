"""Readings of a run for people and monitors: measurements, losses of rows, edits, arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from attrs import frozen

from sigma_kernel.clock import Timed
from sigma_kernel.contracts import Metric, RowLosses
from sigma_training.data.dataset import gather_rows
from sigma_training.session.current import CurrentRun
from sigma_training.step.evaluator import Evaluator
from sigma_training.step.steps import Steps


@frozen(eq=False, repr=False)
class Readings:
    """Read the current run."""

    current: CurrentRun

    # -- for the training thread, or inside a request ------------------------------------------------------------------
    def evaluate(
        self, on: str, metrics: Mapping[str, Metric | str], edited: bool = True, weights: str = ""
    ) -> dict[str, Any]:
        """Return the loss and the metrics over a split of the data, edited or not, at the current parameters."""
        run = self.current.present
        with Timed(self.current.phases, "evaluation"):
            return run.setup.evaluator.evaluate(run.steps(weights), on, metrics, edited)

    def generate(self, *how: Any, weights: str = "") -> str:
        """Return the continuation of a text, at the current parameters."""
        run = self.current.present
        with Timed(self.current.phases, "evaluation"):
            return "".join(run.setup.evaluator.continuation(run.steps(weights), *how))

    # -- from any thread -----------------------------------------------------------------------------------------------
    def evaluator_and_steps(self) -> tuple[Evaluator, Steps]:
        """Return what evaluates in the calling thread, without delaying training, and the steps to evaluate with.

        The training thread copies the parameters at the next boundary.
        """
        current = self.current
        evaluator, steps = current.ask(lambda: (current.background.evaluator, current.present.copy_steps()))
        return evaluator, steps.to_device()

    def row_losses(self, split: str = "training", most: int | None = None) -> RowLosses:
        """Return the loss of each row of a split, or of the ``most`` with the greatest, without delaying training."""
        evaluator, steps = self.evaluator_and_steps()
        return evaluator.losses(steps, split, most)

    def rows_of(self, split: str, rows: Sequence[int], prepared: bool = False) -> dict[str, np.ndarray]:
        """Return the sections of numbered rows of a split as they are in the data, or preprocessed.

        Classes are indices.  Labels that were changed are in :meth:`edits`.
        """
        evaluator = self.current.setup.evaluator
        found = gather_rows(evaluator.data(split, edited=False), rows)
        return evaluator.prepare(found) if prepared else found

    def edits(self) -> dict[str, dict[str, Any]]:
        """Return the edits by split, as they are wanted: the rows ``excluded``, and new ``labels`` by row.

        With targets in several sections, a label is a dictionary by section.  Edits act from the next epoch on; how
        many are in force is at the addresses ``data.<split>.*``.
        """
        run = self.current.present
        known = run.state.changes.get("edits", {}).items()
        several = len({cost.layer.targets for cost in run.setup.model.network.targeted_costs}) > 1
        labels = {split: dict(own.get("labels", ())).items() for split, own in known}
        plain = {split: {row: x if several else next(iter(x.values())) for row, x in labels[split]} for split in labels}
        return {split: {"excluded": [*own.get("excluded", ())], "labels": plain[split]} for split, own in known}
