"""``split`` of a data set that a plugin offers, and that has no splits of its own."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from sigma_kernel import Environment
from sigma_run import load
from sigma_run.launcher import main

POINTS = '''
import numpy as np
from attrs import field, frozen
from sigma_kernel import Dataset, Spec
from sigma_kernel.settings import ge

@frozen
class Points(Dataset):
    """Points and their classes."""

    size: int = field(default=50, validator=ge(1))
    seed: int = 3

    sections = {"inputs": Spec((2,), "float32"), "targets": Spec((), "int32")}
    blocks = 1

    def rows(self, block):
        return self.size

    def block(self, block):
        x = np.random.default_rng(self.seed).normal(size=(self.size, 2)).astype(np.float32)
        return {"inputs": x, "targets": (x[:, 0] > x[:, 1]).astype(np.int32)}
'''
FILE = """
format = 1
[run]
name = "points"
backend = "numpy"
[data]
dataset = "points"
size = 40
split = { training = 0.75, validation = 0.25 }
split_by = "stratified"
[network]
architecture = 'input(2) + output(2) + softmax_cross_entropy()'
[trainer]
optimiser = "adam"
epochs = 1
"""


@pytest.fixture
def file(distribution, tmp_path, monkeypatch) -> Path:
    distribution("acme-data", '"dataset", "points", "acme_data.points:Points", "Points and classes."', points=POINTS)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "points.toml").write_text(FILE)
    return tmp_path / "points.toml"


def test_a_file_divides_it(file):
    assert main(["run", str(file), "--quiet"]) == 0
    [run] = Path("runs").iterdir()
    trainer = load(run).trainer
    assert {name: len(part) for name, part in trainer.data.items()} == {"training": 30, "validation": 10}
    assert "points" in (run / "config.toml").read_text()
    assert main(["evaluate", str(run)]) == 0


def test_python_divides_it_into_the_same_rows(file, tmp_path):
    table = {"type": "points", "size": 40, "split": {"training": 0.75, "validation": 0.25}, "split_by": "stratified"}
    assert main(["run", str(file), "--quiet"]) == 0
    [run] = Path("runs").iterdir()
    with Environment("own") as sigma:
        trainer = sigma.create_trainer(
            data=table, network="input(2) + output(2) + softmax_cross_entropy()", optimiser="adam", backend="numpy"
        )
        trainer.prepare()
        splits = trainer.session.setup.evaluator.splits
        for name, part in load(run).trainer.data.items():
            np.testing.assert_array_equal(splits[name].block(0)["inputs"], part.block(0)["inputs"])
        assert sorted(np.concatenate([splits[name].block(0)["inputs"][:, 0] for name in splits])) == sorted(
            np.random.default_rng(3).normal(size=(40, 2)).astype(np.float32)[:, 0]
        )


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("size = 40", "size = 0", "points.toml:8: data.size: must be at least 1 (got 0)"),
        ("size = 40", "sise = 40", "points.toml:8: data: has no setting 'sise'. Did you mean 'size'?"),
        ("training = 0.75", "training = 1.75", "points.toml:9: data.split: 'training' has a share of 1.75."),
        ("size = 40", "size = 1", "points.toml:9: data.split: 'validation' gets none of 1 rows"),
        ('"stratified"', '"kind"', "points.toml:10: data.split_by: must be"),
        ("split = {", "splitt = {", "points.toml:9: data: has no setting 'splitt'."),
    ],
)
def test_a_mistake_is_reported_at_its_line(file, capsys, old, new, message):
    file.write_text(FILE.replace(old, new))
    assert main(["check", str(file)]) == 2
    assert message in capsys.readouterr().err
