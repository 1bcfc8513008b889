"""Draws of an optimiser have their numbers again when a run is resumed, in whatever order they are prepared."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sigma_run.launcher import main


@pytest.mark.parametrize("optimiser", ["random_search", "cma_es"])
def test_a_run_that_names_no_backend_is_resumed_to_the_bit(
    optimiser: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def train(*arguments: str) -> str:
        assert main([*arguments, "--quiet", "--json"]) == 0
        return str(json.loads(capsys.readouterr().out)["parameters_sha256"])

    def until(epoch: int) -> list[str]:
        return ["--set", f"hooks.finish.when='epoch reaches {epoch}'"]

    monkeypatch.chdir(tmp_path)
    run = ["run", "iris", "--set", "data.batch_size=30", "--set", f"trainer.optimiser={{type='{optimiser}'}}"]
    wanted = train(*run, *until(6))
    assert train(*run, *until(3), "--set", "run.folder='begun'") != wanted
    [folder] = tmp_path.glob("begun/*")
    assert train("resume", str(folder), *until(6)) == wanted
