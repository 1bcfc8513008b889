"""The page about publishing a plugin: its files and commands give a plugin that passes its tests and is found."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from sigma_run.launcher import main
from tests.installs.page import read_steps


@pytest.fixture
def written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Path:
    """Return a folder in which the page's plugin is begun by its first command, and written by its files."""
    monkeypatch.chdir(tmp_path)
    steps = [*read_steps()]
    assert main(shlex.split(steps[0][1])[1:]) == 0
    for path, text in steps[1:]:
        if path:
            Path(path).write_text(text)
    capsys.readouterr()
    return tmp_path


def test_the_plugin_of_the_page_passes_its_tests(written: Path) -> None:
    project = written / "acme-snake"
    path = os.pathsep.join([str(project), *filter(None, [os.environ.get("PYTHONPATH")])])
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/test_snake.py"]
    done = subprocess.run(
        command, cwd=project, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout[-3000:]
    assert int(done.stdout.rpartition(" passed")[0].split()[-1]) > 20


def test_the_index_of_the_page_has_the_plugin(written: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (search,) = (line for path, line in read_steps() if not path and line.startswith("sigma plugins search"))
    assert main([*shlex.split(search)[1:], "--json"]) == 0
    [found] = json.loads(capsys.readouterr().out)["plugins"]
    assert (found["distribution"], found["kinds"]) == ("acme-snake", {"layer": ["snake"]})


def test_the_page_has_the_commands_of_a_release_in_their_order() -> None:
    commands = [line for path, line in read_steps() if not path]
    assert [line.split(" ")[0] for line in commands] == [
        "sigma", "cd", "python", "python", "python", "python", "python", "cd", "sigma", "sigma",
    ]  # fmt: skip
