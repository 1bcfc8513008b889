"""A small task: dropout at odd widths, and a last batch that is smaller than the others."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from sigma_testing import fresh_catalogue

CONFIGURATION = """
format = 1

[run]
name = "small"
seed = 12345678901

[data]
dataset = "synthetic"
rows = 53                   # of which 42 are for training
shape = [3, 3]
classes = 3
batch_size = 10

[network]
architecture = '''
input(3, 3) + flatten() + dropout(0.2) + dense(7, activation="relu") + dropout(0.4)
+ dense(5, activation="relu") + output(3) + softmax_cross_entropy()
'''

[trainer]
optimiser = { type = "adagrad", learning_rate = 0.1 }

[hooks.finish]
type = "stop"
when = "epoch reaches 2"
"""


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """Return the path of the configuration."""
    path = tmp_path / "small.toml"
    path.write_text(CONFIGURATION)
    return path


PLUGIN = """
from sigma_kernel import Component, hookimpl

SIGMA_API = "1.0"

@hookimpl
def sigma_components():
    return [Component("backend", "naps", "acme_naps.naps:Naps", "Compute, with naps.")]
"""
BACKEND = """
from attrs import frozen
from sigma_backend_numpy import NumpyBackend

@frozen
class Naps(NumpyBackend):
    seconds: int = 0
"""


@pytest.fixture
def naps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Install another backend, which has a setting."""
    package, info = tmp_path / "acme_naps", tmp_path / "acme_naps-1.0.dist-info"
    package.mkdir()
    info.mkdir()
    (package / "plugin.py").write_text(PLUGIN)
    (package / "naps.py").write_text(BACKEND)
    (info / "METADATA").write_text("Name: acme-naps\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[sigma_kernel.plugins]\nplugin = acme_naps.plugin\n")
    monkeypatch.syspath_prepend(tmp_path)
    with fresh_catalogue():
        yield
