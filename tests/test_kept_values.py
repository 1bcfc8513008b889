"""Initial values from a file or another run are kept in the run folder: a run goes on without what they came from."""

from __future__ import annotations

from pathlib import Path
from shutil import rmtree
from typing import Any

import numpy as np
import pytest

from sigma_initialisers import FromFile, WarmStart
from sigma_kernel import Environment
from sigma_kernel.errors import SigmaCheckpointError, SigmaDataError
from sigma_optimisers import Adam
from sigma_run import load
from sigma_run.launcher.group import main

NAME = "1-output.weights"
WEIGHTS = np.linspace(-1.0, 1.0, 12, dtype="float32").reshape(4, 3)
X = np.random.default_rng(0).normal(size=(30, 4)).astype("float32")
LABELS = (X.argmax(1) % 3).astype("int32")


def environment(folder: Path, start: Any, epochs: float = 2) -> Environment:
    made = Environment("kept", folder=folder, seed=5)
    made.create_trainer(
        "trainer", network="input(4) + output(3) + softmax_cross_entropy()", data=(X, LABELS), epochs=epochs,
        optimiser=Adam(0.01), batch_size=10, initialisers={"start": (NAME, start)},
    )  # fmt: skip
    return made


def ran(folder: Path, start: Any, epochs: float = 2) -> Path:
    with environment(folder, start, epochs) as made:
        made.run()
        assert made.run_folder is not None
        return made.run_folder


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "weights.npz"
    np.savez(path, **{NAME: WEIGHTS})
    return path


def same(run: Path, other: Path) -> bool:
    found, wanted = load(run).parameters(), load(other).parameters()
    return all(np.array_equal(found[name], wanted[name]) for name in wanted)


def test_a_run_from_a_file_resumes_and_replays_to_the_bit_without_it(tmp_path: Path, file: Path) -> None:
    whole, run = ran(tmp_path / "whole", FromFile(file), 5), ran(tmp_path / "runs", FromFile(file))
    file.unlink()
    assert main(["resume", str(run), "--quiet", "--epochs", "5"]) == 0
    assert same(run, whole)
    assert main(["replay", str(whole), "--check", "--quiet"]) == 0
    assert load(run).predict(X).shape == (30, 3)
    assert load(run).evaluate("training")["loss"] > 0


def test_a_run_from_another_run_goes_on_without_that(tmp_path: Path) -> None:
    first = ran(tmp_path / "first", 0.25)
    run = ran(tmp_path / "runs", WarmStart(first))
    rmtree(first)
    assert main(["resume", str(run), "--quiet", "--epochs", "3"]) == 0


def test_a_file_that_has_changed_since_changes_nothing(tmp_path: Path, file: Path) -> None:
    run = ran(tmp_path / "runs", FromFile(file))
    np.savez(file, **{NAME: WEIGHTS * 2})
    with environment(tmp_path / "runs", FromFile(file)) as again:
        again.resume(run)
        session = again.trainer("trainer").session
        np.testing.assert_array_equal(session.initial.arrays()[f"network.layers.{NAME}"], WEIGHTS)


def test_kept_values_that_are_damaged_are_refused(tmp_path: Path, file: Path) -> None:
    run = ran(tmp_path / "runs", FromFile(file))
    kept = run / "initial" / "trainer" / "state.safetensors"
    data = bytearray(kept.read_bytes())
    data[-1] ^= 1
    kept.write_bytes(data)
    with environment(tmp_path / "runs", FromFile(file)) as again, pytest.raises(SigmaCheckpointError, match="damaged"):
        again.resume(run)


def test_other_runs_keep_nothing_and_a_new_run_needs_the_file(tmp_path: Path, file: Path) -> None:
    assert not (ran(tmp_path / "plain", 0.25) / "initial").exists()
    file.unlink()
    with pytest.raises(SigmaDataError, match="weights.npz: cannot be read: No such file"):
        ran(tmp_path / "runs", FromFile(file))
