"""What is trained, as data: the blueprint from which every worker makes a replica."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from attrs import evolve, field, frozen

from sigma_kernel.contracts.grouping import Channel, GroupOperator
from sigma_kernel.contracts.running import Trainer
from sigma_kernel.contracts.storing import ConfigurationFormat
from sigma_kernel.errors import SigmaDataError, SigmaPluginError
from sigma_kernel.graph.reprs import brief
from sigma_kernel.plugins.catalogue import catalogue
from sigma_kernel.plugins.resolver import Resolver
from sigma_training.compatibility import differences
from sigma_training.components import Learned
from sigma_training.data.identity import changed_rows
from sigma_training.workers.replica import Replica
from sigma_training.workers.worker import GroupWorker


@frozen(repr=False)
class TrainingBlueprint:
    """A trainer of a configuration.

    Args:
        trainer: The name of the trainer.
        text: The configuration.
        learned: What preparation has derived from the data, so that workers do not derive it anew.
        folder: Where its relative paths start.
        plugins: The versions of the plugins, by distribution.
        modules: The packages and modules whose own code may be imported.
        paths: Where these are looked for, beside the places of the interpreter.
        patience: Seconds without an order after which a worker ends.
        shards: Parts that every batch is cut into.
    """

    trainer: str
    text: str
    learned: Learned
    folder: str
    plugins: Mapping[str, str]
    modules: Sequence[str]
    paths: Sequence[str] = field(factory=lambda: [os.getcwd(), *sys.path])
    patience: float = 5.0
    shards: int = 1
    __repr__ = brief

    def serve(self, worker: int, channel: Channel) -> None:
        """Work as this worker until it is to leave, or the operator is gone."""
        sys.path.extend(path for path in self.paths if path not in sys.path)
        GroupWorker(worker, channel, self.replica, self.patience).run()

    def replica(self) -> Replica:
        """Return a replica of the trainer, which is prepared in this process.

        Raises SigmaPluginError if plugins have other versions here, or are missing, and SigmaDataError for other rows.
        """
        self._check_plugins()
        environment = _configuration_format().build(self.text, Path(self.folder), self.modules)
        trainer = environment.trainer(self.trainer)
        trainer.learn_from(self.learned, self.shards)
        self._check_rows(trainer.session.setup.evaluator.learned["rows"])
        return Replica(trainer.session)

    def _check_rows(self, here: Mapping[str, str]) -> None:
        if other := changed_rows(self.learned.facts_of("rows"), here):
            raise SigmaDataError(
                f"this worker reads other rows of {', '.join(other)} than the operator. Let both read the same files,"
                " which nothing may change during training."
            )

    def _check_plugins(self) -> None:
        here = catalogue().versions() | {plugin.name: plugin.version for plugin in catalogue().plugins}
        missing = [f"{name} is not installed" for name in self.plugins if name not in here]
        if wrong := [*missing, *differences(self.plugins, here)]:
            raise SigmaPluginError(
                f"this worker has other plugins than the operator, so that bits may differ: {'; '.join(wrong)}. Install"
                " the same versions everywhere."
            )


def _configuration_format() -> ConfigurationFormat:
    return Resolver(catalogue())("configuration", "default:run")  # type: ignore[no-any-return]


def make_blueprint(trainer: Trainer, learned: Learned, folder: Path, operator: GroupOperator) -> TrainingBlueprint:
    """Return the blueprint of a prepared trainer for an operator; arrays that it needs are saved in a folder.

    Raises SigmaConfigError for what other processes cannot make.
    """
    text = _configuration_format().describe_trainer(trainer, folder)
    modules = sorted({name.partition(".")[0] for name in [*sys.modules]})
    start, plugins = str(folder.absolute()), catalogue().versions()
    blueprint = TrainingBlueprint(trainer.name, text, learned, start, plugins, modules)
    return evolve(blueprint, patience=operator.lost_after, shards=operator.shards)
