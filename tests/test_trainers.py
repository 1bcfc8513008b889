"""Environments drive whatever trainer the plugins offer by default."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from sigma_kernel.contracts import Trainer
from sigma_kernel.environment import Environment
from sigma_kernel.errors import SigmaConfigError, SigmaPluginError
from sigma_training.trainer import expect_trainer


def test_without_a_plugin_that_trains_the_error_names_the_one_to_install(
    monkeypatch: pytest.MonkeyPatch, fresh_catalogue: None
) -> None:
    monkeypatch.setenv("SIGMA_DISABLE_PLUGINS", "sigma-training")
    with Environment("bare") as sigma:
        with pytest.raises(SigmaPluginError, match=r"trainer 'network': sigma-training offers it, but is disabled"):
            sigma.create_trainer()
        assert sigma.trainers == {}


def test_a_trainer_of_another_plugin_is_refused_where_sigmas_own_is_needed() -> None:
    class Other:
        name = "other"

    other: Any = Other()
    with pytest.raises(
        SigmaConfigError, match=r"trainer 'other': is a Other of .*, and this needs one of sigma_training"
    ):
        expect_trainer(other)


SUITES = """
import sys

class Denied:  # what only training, storing and launching need
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("sigma_training", "sigma_store", "sigma_run", "click", "tomlkit", "safetensors"):
            raise ModuleNotFoundError(f"{name} is not installed", name=name)

sys.meta_path.insert(0, Denied())

import numpy as np

from sigma_kernel.contracts import Backend, Layer
from sigma_kernel.graph import interpret, numpy_namespace
from sigma_testing import BackendSuite, LayerSuite


class Twice(Layer):
    def forward(self, context, x):
        return 2 * x


class TestTwice(LayerSuite):
    def make(self):
        return Twice()


class Plain(Backend):
    def lower(self, graph, donate):
        run = interpret(graph, numpy_namespace())
        return lambda *arrays: [np.array(result) for result in run(*arrays)]

    def to_device(self, host):
        return np.array(host)

    def to_host(self, array):
        return np.array(array)


class TestPlain(BackendSuite):
    def make(self):
        return Plain()
"""


@pytest.mark.long
def test_suites_of_layers_and_backends_run_without_what_trains_stores_and_launches(tmp_path: Any) -> None:
    (tmp_path / "test_own.py").write_text(SUITES)
    command = [sys.executable, "-m", "pytest", "-v", "-p", "no:cacheprovider", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    for name in ("TestTwice", "TestPlain"):
        assert done.stdout.count(f"{name}::") > 5


def test_the_default_trainer_fulfils_the_contract() -> None:
    with Environment("small") as sigma:
        assert isinstance(sigma.create_trainer(), Trainer)
