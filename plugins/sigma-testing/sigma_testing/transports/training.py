"""Conformance suite for operators that train in groups of workers: whole trainers, against the bits of ``local``.

::

    class TestTraining(GroupTrainingSuite):
        def make(self) -> GroupOperator:
            return ProcessesOperator()

It needs the default set of plugins.
"""

from __future__ import annotations

from abc import abstractmethod
from pathlib import Path
from typing import Any, ClassVar

import pytest
from attrs import evolve

from sigma_kernel import Environment
from sigma_kernel.contracts import GroupOperator
from sigma_kernel.summary import Summary
from sigma_run import config
from sigma_testing.suite import Suite

SHARDS = 4
TEXT = """
format = 1
[run]
name = "small"
seed = 3
{backend}
precision = "{precision}"
[data]
{data}
batch_size = {batch}
[network]
architecture = '''{network}'''
[trainer]
epochs = {epochs}
operator = {{ type = "local", shards = {shards} }}
[trainer.optimiser]
type = "adam"
learning_rate = 0.01
[trainer.optimiser.schedules.learning_rate]
type = "cosine"
total = "3 epochs"
"""
CROSS = "output(10) + softmax_cross_entropy()"
DIGITS = f'input(8, 8) + flatten() + dense(16, activation="relu") + dropout(0.2) + {CROSS}'
CASES: dict[str, dict[str, Any]] = {  # the last batches have fewer rows, and in `classes` fewer than shards
    "classes": {
        "data": 'dataset = "iris"',
        "network": 'input(4) + dense(8, activation="tanh") + output(3) + softmax_cross_entropy()',
    },
    "digits": {"data": 'dataset = "digits"', "network": DIGITS, "batch": 130},
    "pictures": {
        "data": 'dataset = "digits"',
        "network": f"input(8, 8) + reshape(1, 8, 8) + conv2d(4, 3) + batch_norm() + flatten() + {CROSS}",
        "batch": 150,
        "epochs": 1,
    },
    "memory": {
        "data": 'dataset = "adding"\nrows = 92\nsteps = 9\niterator = "sequential"\nlast_batch = "drop"',
        "network": "input(none, 2) + lstm(5, carried=20) + output(1) + squared_difference()",
        "batch": 20,
    },
    "costs": {
        "data": 'dataset = "digits"',
        "network": 'x = input(8, 8) + flatten() + dense(16, activation="relu")\n'
        f'x + {CROSS}\nx + dense(4) + output(10, name="second") + softmax_cross_entropy(weight=0.3)',
        "batch": 150,
        "epochs": 1,
    },
    "16 bits": {"data": 'dataset = "digits"', "network": DIGITS, "batch": 200, "precision": "mixed", "epochs": 1},
    "64 bits": {"data": 'dataset = "digits"', "network": DIGITS, "batch": 200, "precision": "float64", "epochs": 1},
}
DEFAULTS = {"precision": "float32", "batch": 37, "epochs": 3}


def write_case(name: str, backend: str = "", shards: int = SHARDS) -> str:
    """Return the configuration of a case, with the operator `local`, and a backend if that is not to be the default."""
    line = f'backend = "{backend}"' if backend else ""
    return TEXT.format(**{**DEFAULTS, **CASES[name]}, shards=shards, backend=line)


class GroupTrainingSuite(Suite):
    """Conformance tests of an operator with groups of workers: inherit, and override :meth:`make`."""

    backend: ClassVar[str] = ""  # one that compiles nothing makes the tests quick

    @abstractmethod
    def make(self) -> GroupOperator:
        """Return the operator under test, with any settings; tests set ``workers`` and ``shards``."""

    def build(self, case: str, workers: int, folder: Path | None = None, **settings: Any) -> Environment:
        """Return an environment whose trainer is run by so many workers, with other settings; by ``local`` for none."""
        environment = config.build(config.load(write_case(case, self.backend)), folder=folder)
        local = {"type": "local", "shards": SHARDS, **settings}
        operator = evolve(self.make(), workers=workers, shards=SHARDS, **settings) if workers else local
        environment.trainer("trainer").operator = operator
        return environment

    def train(self, case: str, workers: int, folder: Path | None = None) -> str | None:
        """Return the hash of the parameters after training."""
        return self.summarise(case, workers, folder).parameters_sha256

    def summarise(self, case: str, workers: int, folder: Path | None = None) -> Summary:
        """Return the summary of training, with what is measured of its splits."""
        with self.build(case, workers, folder) as environment:
            return environment.run(progress=False)

    @pytest.mark.parametrize("case", CASES)
    def test_the_parameters_are_those_of_local(self, case: str) -> None:
        """Train and evaluate each kind of network to the bits of the operator `local`."""
        own, local = self.summarise(case, 3), self.summarise(case, 0)
        assert own.parameters_sha256 == local.parameters_sha256, "3 workers give other bits than `local`."
        assert own.metrics == local.metrics, f"3 workers measure {own.metrics}, and `local` {local.metrics}."

    def test_averaged_replicas_are_those_of_local(self) -> None:
        """Train replicas of shards, and exchange their slots and parameters every three iterations."""
        environments = [self.build("classes", workers, mode="averaging", every=3) for workers in (0, 3)]
        hashes = [environment.run(progress=False).parameters_sha256 for environment in environments]
        assert hashes[0] == hashes[1], "averaged by 3 workers, replicas have other bits than by `local`."

    def test_hooks_of_local_scope_run_in_workers_and_publish_what_they_do_with_local(self) -> None:
        """Carry the calls of hooks, arrays among their values, and the results of all workers."""
        values = [self._look_at_gradients(workers) for workers in (0, 2)]
        assert values[0], "the hook has published nothing."
        assert values[0] == values[1], "with 2 workers, a hook of local scope publishes other values than with `local`."

    def _look_at_gradients(self, workers: int) -> dict[str, Any]:
        """Return what a hook publishes of the gradients of two workers; with ``local`` for none."""
        with self.build("classes", workers) as environment:
            trainer = environment.trainer("trainer")
            trainer.operator = trainer.operator if workers else {"type": "local", "shards": SHARDS, "workers": 2}
            trainer.hooks = {"look": {"type": "statistics", "of": "gradients.**", "scope": "local"}}
            environment.run(progress=False)
            return dict(environment.find("trainer.workers.*.statistics.**"))

    def test_the_number_of_workers_changes_no_bits(self) -> None:
        """Train by 1, 2 and 4 workers."""
        hashes = [self.train("classes", workers) for workers in (0, 1, 2, 4)]
        assert len({*hashes}) == 1, f"0 (local), 1, 2 and 4 workers give {hashes}."
