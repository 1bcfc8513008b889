"""Processes of their own that train on Ray: an instance that lives as long as the run, and wrong addresses."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

TEXT = """
format = 1
[run]
name = "small"
seed = 3
backend = "numpy"
[data]
dataset = "iris"
batch_size = 10
[network]
architecture = 'input(4) + dense(8) + output(3) + softmax_cross_entropy()'
[trainer]
epochs = 1000000
operator = {{ type = "ray", shards = 2, workers = 2, address = "{address}" }}
[trainer.optimiser]
type = "adam"
"""
MARK = "SIGMA_TESTED_RUN"  # a variable that all processes of a run inherit
COMMAND = [sys.executable, "-m", "sigma_run", "run", "run.toml"]

pytestmark = pytest.mark.long


def start(folder: Path, address: str = "", **variables: str) -> subprocess.Popen[str]:
    (folder / "run.toml").write_text(TEXT.format(address=address))
    environment = {**os.environ, MARK: str(folder), **variables}
    return subprocess.Popen(
        COMMAND, cwd=folder, env=environment, text=True, start_new_session=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip


def find_processes(folder: Path) -> dict[Path, str]:
    """Return the command lines of processes of a run; not those of Ray's agents, who see the end of a node later."""
    lines = dict[Path, str]()
    for path in Path("/proc").glob("[0-9]*"):
        try:
            if f"{MARK}={folder}".encode() in (path / "environ").read_bytes().split(b"\0"):
                lines[path] = (path / "cmdline").read_bytes().replace(b"\0", b" ").decode().strip()
        except OSError:
            continue  # it has ended, or belongs to somebody else
    return {path: line for path, line in lines.items() if line and not line.endswith("Agent")}


def until(holds: Callable[[], object], seconds: float = 60.0) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, "waited too long"
        time.sleep(0.05)


def is_training(folder: Path) -> bool:
    return any('"joined"' in path.read_text() for path in folder.glob("runs/*/journal.jsonl"))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_an_instance_of_the_run_ends_with_it(number: int, tmp_path: Path) -> None:
    with start(tmp_path) as run:
        until(lambda: is_training(tmp_path))
        [folder] = {
            path for line in find_processes(tmp_path).values() for path in re.findall(r"/\w+/sigma-ray-\w+", line)
        }
        [server] = [path for path, line in find_processes(tmp_path).items() if "gcs_server" in line.split()[0]]
        assert "RAY_AUTH_MODE=token" in (server / "environ").read_text().split("\0")
        if number == signal.SIGINT:
            os.killpg(run.pid, signal.SIGINT)  # as a terminal does
            _, errors = run.communicate(timeout=60)
            assert run.returncode == 130, errors
            assert "sigma resume" in errors
            assert not Path(folder).exists()
            assert find_processes(tmp_path) == {}
        else:
            run.kill()
        until(lambda: not find_processes(tmp_path), 5.0)


@pytest.mark.parametrize("address", ["127.0.0.1:9", "nonsense", "auto"])
def test_a_wrong_address_is_refused_by_one_sentence(address: str, tmp_path: Path) -> None:
    variables = {"RAY_ADDRESS": "127.0.0.1:9"} if address == "auto" else {}
    with start(tmp_path, address, **variables) as run:
        output, errors = run.communicate(timeout=60)
    assert run.returncode == 2
    assert f"operator 'ray': address = '{address}': " in output + errors
    assert "Start Ray by `ray start --head`" in output + errors
    assert "Traceback" not in output + errors
