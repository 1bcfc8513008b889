"""Taking up a run folder: what is told, what is refused, and that nothing is harmed."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from sigma_kernel.config import build
from sigma_kernel.launcher.configured import opened, prepared, understood
from sigma_kernel.launcher.group import main
from sigma_kernel.plugins import catalogue

pytestmark = pytest.mark.rooms

SHORT = ["--set", "hooks.finish.when=epoch reaches 5", "--quiet", "--json"]


@pytest.fixture
def sigma(capsys, tmp_path, monkeypatch):
    """Return a function that runs the command in an empty folder, and returns its exit code and what it said."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments):
        code = main(list(map(str, arguments)))
        said = capsys.readouterr()
        assert "Traceback" not in said.err
        return code, said.out, said.err

    return run


@pytest.fixture
def run(sigma):
    """Return the folder of a run that has ended."""
    return Path(json.loads(sigma("run", "xor", *SHORT)[1])["folder"])


def contents(folder):
    return {str(path): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def test_a_run_that_has_ended_goes_on_with_another_goal_to_the_bits_of_one_that_never_ended(sigma, run):
    code, out, _ = sigma("resume", run, "--set", "hooks.finish.when=epoch reaches 20", "--json", "--quiet")
    summary = json.loads(out)
    assert (code, summary["epochs"], summary["folder"]) == (0, 20, str(run))
    whole = json.loads(sigma("run", "xor", "--set", "hooks.finish.when=epoch reaches 20", "--json", "--quiet")[1])
    assert summary["parameters_sha256"] == whole["parameters_sha256"]
    assert "epoch reaches 20" in (run / "config.toml").read_text()


def goal(epochs):
    return ["--set", f"hooks.finish.when=epoch reaches {epochs}", "--json", "--quiet"]


@pytest.mark.parametrize(("first", "then"), [("numpy", "numba"), ("numba", "numpy")])
def test_a_run_goes_on_with_another_backend_and_back_within_tolerance_and_is_warned(sigma, first, then):
    pytest.importorskip("sigma_backend_numba")
    whole = json.loads(sigma("run", "xor", "--backend", first, *goal(30))[1])
    run = Path(json.loads(sigma("run", "xor", "--backend", first, *goal(10))[1])["folder"])
    before = 0.0
    for backend, other, epochs in ((then, first, 20), (first, then, 30)):
        code, out, err = sigma("resume", run, "--backend", backend, *goal(epochs))
        found = json.loads(out)
        assert (code, found["epochs"], found["backend"]) == (0, epochs, backend)
        before, spent = found["seconds"], before
        assert found["seconds"] > spent  # of all that was trained, like epochs and iterations
        assert f"backend was {other}, and is {backend} now: bits may differ" in err
        assert f'"sigma-backend-{backend}:{backend}"' in (run / "config.toml").read_text()
        assert f'"run.backend={backend}"]' in (run / "journal.jsonl").read_text()
    assert found["metrics"].keys() == whole["metrics"].keys()
    for name, value in found["metrics"].items():
        assert value == pytest.approx(whole["metrics"][name], rel=1e-4), name


RATE = "trainer.optimiser.learning_rate"


@pytest.mark.parametrize(
    ("saved", "wanted"),
    [(True, 0.3), (False, 0.2)],  # before the checkpoint that is gone on from, or after it
)
def test_an_edited_setting_holds_from_the_checkpoint_on_until_somebody_sets_it_again(sigma, tmp_path, saved, wanted):
    def trained(edits=()):
        configuration = understood(opened("xor", edits))
        made = build(configuration, catalogue(), tmp_path)
        prepared(configuration, made)
        return made

    with trained() as first:
        one = first.trainer("trainer")
        if not saved:
            one.fit(iterations=3)
        first.set(RATE, 0.2)
        if saved:
            one.fit(iterations=3)
        run = first.run_folder
    with trained(edits=[f"{RATE}=0.3"]) as late:
        late.resume(run, [f"{RATE}=0.3"])
        late.trainer("trainer").fit(iterations=2)
        assert late.get(RATE) == wanted


@pytest.mark.parametrize("key", ["run.seed=5", "run.precision=float64", "run.name=other", "run.folder=x"])
def test_what_cannot_change_in_a_run_that_goes_on_is_refused(sigma, run, key):
    before = contents(run)
    code, _, err = sigma("resume", run, "--set", key)
    assert code == 2
    assert err.startswith(f"--set {key.partition('=')[0]}: cannot change in a run that goes on.")
    assert contents(run) == before


def test_a_damaged_checkpoint_is_named_when_it_is_passed_over(sigma, run):
    newest = max((run / "checkpoints" / "trainer").iterdir(), key=lambda path: int(path.name))
    (newest / "manifest.json").write_text("")
    code, _, err = sigma("resume", run, "--quiet")
    assert code == 1
    assert f"warning: {newest}/manifest.json: is damaged" in err


def test_a_network_that_does_not_fit_is_told_with_the_parameter_and_its_shapes(sigma, run):
    before = contents(run / "checkpoints")
    network = "network.architecture=input(2) + dense(3) + output(2) + softmax_cross_entropy()"
    code, _, err = sigma("resume", run, "--set", network)
    assert code == 2
    assert err.startswith(f"{network}: does not go with this run. ")
    assert re.search(r"1-dense.biases is float32\[\d+\] in it, and float32\[3\] here", err)
    assert contents(run / "checkpoints") == before


def test_a_journal_that_is_gone_is_told(sigma, run):
    (run / "journal.jsonl").unlink()
    code, _, err = sigma("resume", run, "--quiet", "--set", "hooks.finish.when=epoch reaches 6")
    assert code == 0
    assert "warning: " in err
    assert "its journal is missing" in err
    assert json.loads((run / "journal.jsonl").read_text().splitlines()[0]) == {"format": 1}


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("{", "Expecting property name"),
        ("[1]", "is no row of a journal"),
        ("[" * 100_000, "recursion"),
        ('{"trainer": 3}', "is no row of a journal"),
        ('{"trainer": "trainer", "iteration": 1, "epoch": 1, "event": "digest"}', "is no row of a journal"),
        (
            '{"trainer": "trainer", "iteration": 1, "epoch": 1, "command": "eval", "code": "1"}',
            "command 'eval': unknown",
        ),
        ('{"trainer": "trainer", "iteration": 1, "epoch": 1, "command": "set"}', "needs pattern, value"),
        (
            '{"trainer": "trainer", "iteration": 1, "epoch": 1, "event": "begin", "epochs": "x"}',
            "is no row of a journal",
        ),
    ],
)
@pytest.mark.parametrize("command", ["resume", "replay"])
def test_a_hostile_journal_is_one_clear_error(sigma, run, command, row, message):
    with (run / "journal.jsonl").open("a") as file:
        file.write(row + "\n")
    code, _, err = sigma(command, run, "--quiet")
    assert code == 1
    assert "journal.jsonl" in err
    assert message in err


def test_it_is_told_where_a_run_goes_on_and_that_a_replay_comes_out_the_same(sigma, run):
    went_on = "trainer: goes on from iteration 10"
    assert sigma("resume", run)[2].splitlines()[0] == went_on
    assert "goes on" not in sigma("resume", run, "--quiet")[2]
    assert sigma("replay", run)[2].endswith("comes out the same\n")


def test_a_folder_that_is_none_is_one_clear_error(sigma, run, tmp_path):
    (tmp_path / "file").write_text("")
    for what in ("nothing", "file"):
        code, _, err = sigma("resume", what)
        assert code in (1, 2)
        assert what in err


def test_nobody_goes_on_with_a_run_that_another_process_goes_on_with(sigma, run):
    more = ["--set", "hooks.finish.when=epoch reaches 100000000", "--quiet"]
    other = subprocess.Popen([sys.executable, "-m", "sigma_kernel", "resume", str(run), *more])
    try:
        give_up = time.monotonic() + 60
        while '"resumed"' not in (run / "journal.jsonl").read_text() and time.monotonic() < give_up:
            time.sleep(0.05)
        code, _, err = sigma("resume", run, "--set", "hooks.finish.when=epoch reaches 7")
        assert code == 1
        assert "somebody else writes into it. Wait for the end of that run." in err
        assert "100000000" in (run / "config.toml").read_text()
    finally:
        other.terminate()
        assert other.wait(60) in (143, 130, -15)
    assert sigma("resume", run, "--set", "hooks.finish.when=epoch reaches 7", "--quiet")[0] == 0
    assert os.listdir(run / "checkpoints" / "trainer")
