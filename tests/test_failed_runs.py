"""``sigma run``, ``resume`` and ``replay`` of runs that fail, from the command line to the exit code."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sigma_run.launcher.group import main
from sigma_store.checkpoints.store import list_checkpoints, read
from sigma_testing.journals import read_journal

pytestmark = pytest.mark.rooms

FAILS = """
format = 1

[run]
name = "fails"
backend = "numpy"

[data]
dataset = "xor"
batch_size = 4

[network]
architecture = 'input(2) + dense(8, activation="relu") + output(2) + softmax_cross_entropy()'

[trainer]
epochs = 6
optimiser = { type = "gradient_descent", learning_rate = 0.1 }
"""
RATE = "trainer.optimiser.learning_rate"


@pytest.fixture
def sigma(capsys, tmp_path, monkeypatch):
    """Return a function that runs the command in an empty folder, and returns its exit code and output."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments):
        code = main([str(one) for one in arguments])
        said = capsys.readouterr()
        assert "Traceback" not in said.err
        return code, said.out, said.err

    return run


@pytest.fixture
def run(sigma, tmp_path):
    """Return the folder of a run whose first update is far too great: the loss is not finite at iteration 2."""
    Path("fails.toml").write_text(FAILS, encoding="utf-8")
    code, _, err = sigma("run", "fails.toml", "--set", f"{RATE}=1e38")
    assert code == 1
    assert "trainer: iteration 0 is saved, the last good one" in err
    assert "the loss is nan at iteration 2" in err
    return next((tmp_path / "runs").iterdir())


def test_a_run_that_fails_leaves_its_last_good_state_and_says_why(run):
    summary = json.loads((run / "summary.json").read_text())
    assert (summary["status"], summary["iterations"]) == ("failed", 2)
    assert [path.name for path in list_checkpoints(run, "trainer")] == ["0"]
    end = read_journal(run)[-1]
    assert (end["event"], end["failed"], end["good"], end["iteration"]) == ("end", True, 0, 2)
    assert end["why"] == summary["why"]


def test_a_resume_goes_back_to_the_good_state_and_trains_on_with_other_settings(sigma, run):
    code, out, err = sigma("resume", run, "--set", f"{RATE}=0.1", "--json")
    assert code == 0
    assert "trainer: goes back to iteration 0, the last good one; the run failed at iteration 2: trainer: the" in err
    assert "may fail again" not in err
    resumed = json.loads(out)
    Path("right.toml").write_text(FAILS, encoding="utf-8")
    right = json.loads(sigma("run", "right.toml", "--json")[1])
    assert (resumed["status"], resumed["iterations"]) == ("finished", right["iterations"])
    assert resumed["parameters_sha256"] == right["parameters_sha256"]
    assert sigma("replay", run, "--check")[0] == 0


def test_a_resume_with_the_same_settings_fails_at_the_same_iteration(sigma, run):
    for _ in range(2):
        code, _, err = sigma("resume", run)
        assert code == 1
        assert "Nothing is changed, so it may fail again; --set changes a setting." in err
        assert "the loss is nan at iteration 2" in err
        assert [path.name for path in list_checkpoints(run, "trainer")] == ["0"]


def test_a_replay_of_a_run_that_failed_is_identical(sigma, run):
    code, _, err = sigma("replay", run, "--check")
    assert code == 0
    assert "replay is identical" in err
    assert "fails failed: " in err
    assert "the loss is nan at iteration 2" in err


def test_checkpoints_after_the_good_state_are_set_aside_by_a_resume(sigma, run):
    (run / "checkpoints" / "trainer" / "0").rename(run / "kept")
    code, _, _ = sigma("run", run / "config.toml", "--set", 'hooks.save={type="checkpoint", every="1 iteration"}')
    other = max((path for path in run.parent.iterdir()), key=lambda path: path.stat().st_mtime_ns)
    assert code == 1
    assert [path.name for path in list_checkpoints(other, "trainer")] == ["0", "1"]
    assert sigma("resume", other, "--set", f"{RATE}=0.1")[0] == 0
    assert [path.name for path in (other / "checkpoints" / "trainer").glob("*.branch-0")] == ["1.branch-0"]
    newest = read(list_checkpoints(other, "trainer")[-1])
    assert all(abs(x).max() < 100 for name, x in newest.arrays.items() if name.startswith("network"))
