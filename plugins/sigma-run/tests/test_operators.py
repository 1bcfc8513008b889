"""The options of the command for operators and workers."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from sigma_run.launcher import main

FILE = """format = 1
[data]
dataset = "iris"
[network]
architecture = "input(4) + output(3) + softmax_cross_entropy()"
[trainer]
epochs = 2
optimiser = { type = "adam" }
"""


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "small.toml").write_text(FILE)
    return tmp_path / "small.toml"


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, object]:
    assert main(["run", "small.toml", "--json", "--quiet", *arguments]) == 0
    return dict(json.loads(capsys.readouterr().out))


def test_options_choose_the_operator_and_the_workers(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    wanted = run(capsys, "--set", "run.operator={type='local', shards=3}")["parameters_sha256"]
    assert run(capsys, "--workers", "2", "--set", "run.operator.shards=3", "--operator", "local")
    file.write_text(FILE.replace("[trainer]", "[trainer]\noperator = { type = 'local', shards = 3 }"))
    assert run(capsys, "--workers", "3", "--set", "run.folder='there'")["parameters_sha256"] == wanted
    [config] = file.parent.glob("there/*/config.toml")
    assert re.search(r"\[trainer\.operator\]\n(.*\n)*?workers = 3", config.read_text())


@pytest.mark.filterwarnings("always::sigma_kernel.errors.SigmaWarning")
def test_workers_without_a_shard_are_named_with_the_remedy(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "small.toml", "--workers", "2"]) == 0
    assert "warning: LocalOperator.workers: 2 workers share 1 parts of each batch" in capsys.readouterr().err


def test_another_operator_that_is_not_there_is_named(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "small.toml", "--operator", "locl"]) == 2
    assert "operator 'locl'" in (error := capsys.readouterr().err)
    assert "Did you mean 'local'?" in error


def test_explain_says_who_computes_the_shards(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "small.toml", "--set", "run.operator={type='local', shards=4, workers=2}"]) == 0
    assert "2 by local compute the 4 shards of each batch; the number of workers changes" in capsys.readouterr().out
    averaging = "run.operator={type='local', shards=4, mode='averaging', every=5}"
    assert main(["explain", "small.toml", "--set", averaging]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "1 by local train 4 replicas, one for each shard of a batch, which are averaged every 5 iterations" in text
    assert main(["explain", "small.toml"]) == 0
    assert "workers:" not in capsys.readouterr().out
