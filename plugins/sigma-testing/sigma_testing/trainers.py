"""Conformance suite for trainers, to inherit in a plugin's tests.

::

    class TestTrainer(TrainerSuite):
        def make(self) -> type[Trainer]:
            return NetworkTrainer

        def settings(self) -> dict[str, Any]:
            return {"network": "...", "data": ..., "optimiser": ..., "epochs": 2}
"""

from __future__ import annotations

from abc import abstractmethod
from pathlib import Path
from typing import Any

import pytest

from sigma_kernel import Environment
from sigma_kernel.arrays import as_numpy
from sigma_kernel.contracts import Trainer
from sigma_kernel.errors import SigmaConfigError, SigmaStateError
from sigma_testing.suite import Suite

FEW = 3  # iterations


class TrainerSuite(Suite):
    """Conformance tests of a trainer: inherit, and override :meth:`make` and :meth:`settings`."""

    @abstractmethod
    def make(self) -> type[Trainer]:
        """Return the class of the trainer."""

    @abstractmethod
    def settings(self) -> dict[str, Any]:
        """Return new settings of a training that has a network, takes more than a few iterations, and ends."""

    def use(self) -> None:
        """Prepare a trainer."""
        with self.environment() as environment:
            environment.prepare()

    def environment(self, folder: Path | None = None, **settings: Any) -> Environment:
        """Return an environment with one trainer."""
        environment = Environment("small", folder=folder)
        trainer = self.make().create("trainer", environment, {**self.settings(), **settings})
        environment.trainers["trainer"] = trainer
        return environment

    # -- settings ------------------------------------------------------------------------------------------------------
    def test_a_setting_that_it_does_not_know_is_refused(self) -> None:
        """Creating a trainer with a setting of another name raises SigmaConfigError."""
        with pytest.raises(SigmaConfigError, match="no_such_setting"):
            self.environment(no_such_setting=1)

    def test_it_is_prepared_once_and_its_addresses_are_registered(self) -> None:
        """``prepare`` makes it ``is_prepared``, and its values are found below its name."""
        with self.environment() as environment:
            trainer = environment.trainer("trainer")
            assert not trainer.is_prepared
            trainer.prepare()
            assert trainer.is_prepared
            assert trainer.lifecycle is trainer.lifecycle
            assert environment.find("trainer.**")

    # -- training ------------------------------------------------------------------------------------------------------
    def test_a_run_trains_to_its_end(self) -> None:
        """A run finishes, moves the parameters, and its summary has the final moment."""
        with self.environment() as environment:
            environment.prepare()
            before = _parameters(environment.trainer("trainer"))
            summary = environment.run(progress=False)
            assert (summary.status, environment.trainer("trainer").lifecycle.status) == ("finished", "stopped")
            assert summary.iterations > FEW
            assert _parameters(environment.trainer("trainer")) != before

    def test_equal_seeds_give_equal_parameters(self) -> None:
        """Two runs of the same settings and seed end with the same bits."""
        digests = set[str | None]()
        for _ in range(2):
            with self.environment() as environment:
                digests.add(environment.run(progress=False).parameters_sha256)
        assert len(digests) == 1
        assert None not in digests

    def test_fit_trains_so_many_iterations(self) -> None:
        """``fit(iterations=n)`` trains n iterations in the calling thread, and can be called again."""
        with self.environment() as environment:
            trainer = environment.trainer("trainer")
            for _ in range(2):
                trainer.fit(iterations=FEW, progress=False)
            assert trainer.lifecycle.report().moment.iteration == 2 * FEW
            assert not trainer.lifecycle.is_busy

    def test_it_is_claimed_by_one_thread_at_a_time(self) -> None:
        """A second claim raises SigmaStateError until the first is left."""
        with self.environment() as environment:
            lifecycle = environment.trainer("trainer").lifecycle
            lifecycle.claim()
            assert lifecycle.is_busy
            with pytest.raises(SigmaStateError):
                lifecycle.check_free()
            with pytest.raises(SigmaStateError):
                lifecycle.claim()
            lifecycle.leave()
            lifecycle.check_free()

    def test_a_stop_ends_training_at_the_next_boundary(self) -> None:
        """Training in the background ends on request, and answers once it has ended."""
        with self.environment() as environment:
            environment.prepare()
            lifecycle = environment.trainer("trainer").lifecycle
            lifecycle.claim()
            lifecycle.post_stop(interrupted=True)
            lifecycle.train((None, None))
            lifecycle.leave()
            assert lifecycle.is_interrupted
            assert lifecycle.report().moment.iteration == 0

    # -- views ---------------------------------------------------------------------------------------------------------
    def test_its_view_describes_it_once_it_is_prepared(self) -> None:
        """The view raises SigmaStateError before; then the same one has the rows of each split, and one branch."""
        with self.environment() as environment:
            trainer = environment.trainer("trainer")
            view = trainer.view
            with pytest.raises(SigmaStateError):
                view.splits()
            trainer.prepare()
            assert view.splits()
            assert all(count > 0 for count in view.splits().values())
            assert [branch.number for branch in view.branches()] == [0]

    # -- the stored run ------------------------------------------------------------------------------------------------
    @pytest.mark.filterwarnings("ignore::sigma_kernel.errors.SigmaWarning")  # of objects that no file describes
    def test_a_run_resumes_to_the_same_bits(self, tmp_path: Path) -> None:
        """A run that was cut after a few iterations, and resumed, ends as one that was not."""
        with self.environment(tmp_path / "whole") as environment:
            whole = environment.run(progress=False)
        with self.environment(tmp_path / "cut") as environment:
            trainer = environment.trainer("trainer")
            trainer.fit(iterations=FEW, progress=False)
            folder = environment.run_folder
            assert folder is not None
        with self.environment() as environment:
            environment.resume(folder)
            rest = whole.iterations - environment.trainer("trainer").lifecycle.report().moment.iteration
            environment.trainer("trainer").fit(iterations=rest, progress=False)
            assert environment.summary().parameters_sha256 == whole.parameters_sha256

    @pytest.mark.filterwarnings("ignore::sigma_kernel.errors.SigmaWarning")  # of objects that no file describes
    def test_a_replay_finds_no_difference(self, tmp_path: Path) -> None:
        """Replaying the journal of a run ends in the same parameters, and every digest is equal."""
        with self.environment(tmp_path) as environment:
            summary, folder = environment.run(progress=False), environment.run_folder
            assert folder is not None
        with self.environment() as environment:
            replayed, differences = environment.replay(folder, progress=False)
            assert differences == {}
            assert replayed.parameters_sha256 == summary.parameters_sha256


def _parameters(trainer: Trainer) -> dict[str, bytes]:
    """Return every parameter as bytes."""
    return {name: as_numpy(value).tobytes() for name, value in trainer.parameters().items()}
