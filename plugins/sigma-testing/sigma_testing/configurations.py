"""Conformance suite for formats of configurations, to inherit in a plugin's tests.

::

    class TestMine(ConfigurationSuite):
        def make(self) -> ConfigurationFormat:
            return Mine()
"""

from __future__ import annotations

from abc import abstractmethod
from pathlib import Path
from typing import Any

import pytest

from sigma_kernel.contracts import ConfigurationFormat
from sigma_kernel.environment import Environment
from sigma_kernel.errors import SigmaStateError
from sigma_testing.steering import Sweep, small_environment
from sigma_testing.suite import Suite


class ConfigurationSuite(Suite):
    """Conformance tests of a format of configurations: inherit, and override :meth:`make`."""

    @abstractmethod
    def make(self) -> ConfigurationFormat:
        """Return the format under test."""

    def environment(self) -> Environment:
        """Return an environment that the format can describe, with one trainer."""
        return small_environment(Sweep())

    def prepare(self) -> tuple[Environment, Any]:
        """Return the environment and its trainer, prepared."""
        environment = self.environment()
        environment.prepare()
        (trainer,) = environment.trainers.values()
        return environment, trainer

    def test_it_describes_equal_environments_by_equal_texts(self, tmp_path: Path) -> None:
        """Return a text, the same for equal environments."""
        for name in ("first", "second"):
            (tmp_path / name).mkdir()
        first, second = (self.make().describe(self.environment(), run) for run in sorted(tmp_path.iterdir()))
        assert first, "describe() returns the text of a configuration (got none)."
        assert first == second, "equal environments are described differently."

    def test_it_saves_a_network_and_replaces_one_that_it_saved(self, tmp_path: Path) -> None:
        """Return the path of the directory, in which nothing else is left."""
        (environment, trainer), path = self.prepare(), tmp_path / "network"
        for _ in range(2):
            saved = self.make().save(environment, trainer, path)
            assert saved == path, f"save() returns the absolute path of the directory (got {saved})."
            assert [*tmp_path.iterdir()] == [path], "save() leaves other files beside the directory."
            assert any(path.iterdir()), "save() writes nothing."

    def test_it_refuses_to_replace_anything_else(self, tmp_path: Path) -> None:
        """Raise SigmaStateError for a directory with other files, which are kept."""
        environment, trainer = self.prepare()
        (tmp_path / "mine.txt").write_text("mine")
        with pytest.raises(SigmaStateError):
            self.make().save(environment, trainer, tmp_path)
        assert (tmp_path / "mine.txt").read_text() == "mine"
