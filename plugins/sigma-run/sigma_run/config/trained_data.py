"""Read the data of a run again, for its trained network: splits, rows and their losses."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from attrs import Factory, define, evolve, field

from sigma_kernel.contracts import RowHistory, RowLosses
from sigma_kernel.contracts.storing import Checkpoint
from sigma_run.config.location import check_there
from sigma_run.config.schema import Configuration
from sigma_run.config.stored import rows_of
from sigma_training.compatibility import check_layers
from sigma_training.data.dataset import gather_rows
from sigma_training.hooks.row_history import find_row_history
from sigma_training.preparation import prepared_for
from sigma_training.runs.resume import fit
from sigma_training.session.session import Session
from sigma_training.session.state import Setup
from sigma_training.trainer import NetworkTrainer
from sigma_training.view import SessionView


@define(eq=False)
class TrainedData:
    """The data of the run that trained a network; they are read on first use."""

    trainer: NetworkTrainer
    path: Path  # of the checkpoint
    checkpoint: Checkpoint
    _configuration: Configuration  # of the run
    _own: Any = field(default=Factory(lambda made: made.trainer.data, takes_self=True), init=False)  # of the run

    @property
    def session(self) -> Session:
        """Return the session; the first one reads the data."""
        if self.trainer.data is self._own and not self.trainer.is_prepared:
            check_there(self._configuration)
        return self.trainer.session

    @property
    def _view(self) -> SessionView:
        session = self.session
        return SessionView(self.trainer.name, session.recorder, session)

    def splits(self) -> dict[str, int]:
        """Return the number of rows of each split of the run's data, which are read now."""
        return self._view.splits()

    def rows(self, split: str, wanted: Sequence[int], prepared: bool = False) -> dict[str, np.ndarray]:
        """Return the sections of numbered rows of a split, as they are in the data, or preprocessed."""
        return self._view.rows(split, wanted, prepared)

    def losses(self, split: str = "training", most: int | None = None) -> RowLosses:
        """Return the loss of each row of a split as it was edited in the run, or of the ``most`` with the greatest."""
        return self._view.losses(split, most)

    def row_history(self, split: str = "training") -> RowHistory:
        """Return what a hook has recorded of each row of a split; the data are not read."""
        return find_row_history(self.trainer.resolve, self.checkpoint.values.get("hooks", {}), split)

    def edits(self) -> dict[str, dict[str, Any]]:
        """Return the rows that were ``excluded`` in the run, and new ``labels`` by row, for each split."""
        return self._view.edits()

    def draw_rows(self, on: Any, most: int | None = None, seed: int = 0) -> tuple[np.ndarray, dict[str, np.ndarray]]:
        """Return the numbers and the sections of the rows of a split, of a file, or of other data, as they are there.

        A file, given as a Path, is read like the data of the run.  With ``most``, at most so many rows are drawn by
        ``seed``, in the order of their numbers.
        """
        other = rows_of(self._configuration, self.trainer.name, on, "training") if isinstance(on, Path) else on
        setup = self.session.setup if isinstance(on, str) else self.setup_for(other)
        dataset = setup.evaluator.data(on if isinstance(on, str) else "training", edited=False)
        numbers = np.arange(len(dataset))
        if most is not None and most < len(numbers):
            numbers = np.sort(np.random.default_rng(seed).choice(numbers, most, replace=False))
        return numbers, gather_rows(dataset, numbers.tolist())

    def setup_for(self, data: Any) -> Setup:
        """Return the setup for other data, which are read like those of the training."""
        setup = prepared_for(self.trainer, data, self.trainer.learned)
        check_layers(self.path, self.checkpoint, self.trainer.name, setup.model)
        return setup

    def restore(self, checkpoint: Checkpoint, session: Session) -> None:
        """Restore a session; edits are of the rows of the run, and none of others."""
        values = checkpoint.values
        other = self.trainer.data is not self._own
        if other:
            edited = {part: {**values.get(part, {})} for part in ("changes", "data")}
            for part in edited.values():
                part.pop("edits", None)
            checkpoint = evolve(checkpoint, values={**values, **edited})
        fit(self.path, checkpoint, session, (lambda text: None) if other else None)
