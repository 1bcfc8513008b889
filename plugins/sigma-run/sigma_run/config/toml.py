"""Write runs that were made in Python, and trained networks, as TOML files."""

from __future__ import annotations

from pathlib import Path

from attrs import frozen

from sigma_kernel.contracts import ConfigurationFormat
from sigma_kernel.environment import Environment
from sigma_run.config.recording import record_configuration
from sigma_run.config.saving import save_network
from sigma_training.trainer import NetworkTrainer


@frozen
class Toml(ConfigurationFormat):
    """Write runs and trained networks as TOML."""

    def describe(self, environment: Environment, run: Path) -> str:
        """Return the configuration of an environment; save the arrays that it refers to in its run folder."""
        return record_configuration(environment, run)

    def save(self, environment: Environment, trainer: NetworkTrainer, path: Path | str) -> Path:
        """Write configuration, parameters and state of a trainer to a directory, atomically; return its path."""
        return save_network(environment, trainer, path)
