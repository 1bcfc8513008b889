"""Write runs that were made in Python, and trained networks, as TOML files."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from attrs import evolve, frozen

from sigma_kernel.contracts import ConfigurationFormat
from sigma_kernel.environment import Environment
from sigma_kernel.plugins.catalogue import catalogue
from sigma_run.config.document import parse
from sigma_run.config.recording import record_configuration, record_trainer
from sigma_run.config.saving import save_network
from sigma_run.config.stored import build_unwatched
from sigma_training.trainer import NetworkTrainer


@frozen
class Toml(ConfigurationFormat):
    """Write runs and trained networks as TOML."""

    def describe(self, environment: Environment, run: Path) -> str:
        """Return the configuration of an environment; save the arrays that it refers to in its run folder."""
        return record_configuration(environment, run)

    def describe_trainer(self, trainer: NetworkTrainer, folder: Path) -> str:
        """Return the configuration of one trainer, without its hooks and operator; save its arrays in a folder."""
        return record_trainer(trainer, folder)

    def build(self, text: str, folder: Path, modules: Iterable[str] = ()) -> Environment:
        """Return the environment that a text describes, without monitors; relative paths start in a folder."""
        return build_unwatched(evolve(parse(text, "configuration"), folder=folder), catalogue().trusting(modules))[1]

    def save(self, environment: Environment, trainer: NetworkTrainer, path: Path | str) -> Path:
        """Write configuration, parameters and state of a trainer to a directory, atomically; return its path."""
        return save_network(environment, trainer, path)
