"""Resuming a run folder: messages, refusals, and no damage."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from sigma_kernel.plugins.catalogue import catalogue
from sigma_run.config import build, prepare
from sigma_run.launcher.configured import open_document, understood
from sigma_store.files import digest
from sigma_testing.journals import read_journal, reseal_journal
from sigma_testing.steering import decisive, steered_environment

PAIR = """
[trainers.{name}]
optimiser = "adam"
[trainers.{name}.data]
dataset = "xor"
[trainers.{name}.network]
architecture = "input(2) + dense(4) + output(2) + softmax_cross_entropy()"
"""
SHORT = ["--set", "hooks.finish.when=epoch reaches 5", "--quiet", "--json"]


@pytest.fixture
def run(sigma):
    """Return the folder of a finished run."""
    return Path(json.loads(sigma("run", "xor", *SHORT)[1])["folder"])


def contents(folder):
    return {str(path): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def test_a_finished_run_with_a_new_goal_has_the_bits_of_an_uninterrupted_one(sigma, run):
    code, out, _ = sigma("resume", run, "--set", "hooks.finish.when=epoch reaches 20", "--json", "--quiet")
    summary = json.loads(out)
    assert (code, summary["epochs"], summary["folder"]) == (0, 20, str(run))
    whole = json.loads(sigma("run", "xor", "--set", "hooks.finish.when=epoch reaches 20", "--json", "--quiet")[1])
    assert summary["parameters_sha256"] == whole["parameters_sha256"]
    assert "epoch reaches 20" in (run / "config.toml").read_text()


def test_epochs_are_a_total_also_on_resume(sigma):
    run = Path(json.loads(sigma("run", "xor", "--epochs", "3", "--json", "--quiet")[1])["folder"])
    assert "epochs = 3\n" in (run / "config.toml").read_text()
    code, out, _ = sigma("resume", run, "--epochs", "20", "--json", "--quiet")
    summary = json.loads(out)
    assert (code, summary["epochs"]) == (0, 20)
    whole = json.loads(sigma("run", "xor", "--epochs", "20", "--json", "--quiet")[1])
    assert summary["parameters_sha256"] == whole["parameters_sha256"]
    assert sigma("replay", run, "--check")[0] == 0
    again = json.loads(sigma("resume", run, "--json", "--quiet")[1])
    assert (again["epochs"], again["parameters_sha256"]) == (20, whole["parameters_sha256"])


def test_epochs_are_those_of_every_trainer(sigma):
    text = Path("pair.toml")
    head = 'format = 1\n[run]\nname = "pair"\nbackend = "numpy"\n'
    text.write_text(head + "".join(PAIR.format(name=name) for name in ("a", "b")))
    run = Path(json.loads(sigma("run", text, "--epochs", "2", "--json", "--quiet")[1])["folder"])
    assert (run / "config.toml").read_text().count("epochs = 2\n") == 2
    summary = json.loads(sigma("resume", run, "--epochs", "4", "--json", "--quiet")[1])
    assert (summary["epochs"], summary["iterations"]) == (4, 4)
    assert '"edits": ["trainers.\\"a\\".epochs=4", "trainers.\\"b\\".epochs=4"]' in (run / "journal.jsonl").read_text()


@pytest.mark.parametrize("command", ["run", "resume"])
@pytest.mark.parametrize(
    ("epochs", "message"),
    [
        ("0", "--epochs: must be a whole number of at least 1, or inf (got 0).\n"),
        ("2.5", "--epochs: must be a whole number of at least 1, or inf (got 2.5).\n"),
        ("nan", "--epochs: must be a whole number of at least 1, or inf (got nan).\n"),
        ("many", "--epochs: must be a whole number or a number (got 'many')"),
    ],
)
def test_a_number_of_epochs_that_is_not_one_is_refused(sigma, run, command, epochs, message):
    before = contents(run)
    code, _, err = sigma(command, run if command == "resume" else "xor", "--epochs", epochs)
    assert code == 2
    assert err.startswith(message)
    assert contents(run) == before


def goal(epochs):
    return ["--set", f"hooks.finish.when=epoch reaches {epochs}", "--json", "--quiet"]


@pytest.mark.parametrize(("first", "then"), [("numpy", "numba"), ("numba", "numpy")])
def test_a_run_can_resume_on_another_backend_and_back_within_tolerance_with_a_warning(sigma, first, then):
    pytest.importorskip("sigma_backend_numba")
    whole = json.loads(sigma("run", "xor", "--backend", first, *goal(30))[1])
    run = Path(json.loads(sigma("run", "xor", "--backend", first, *goal(10))[1])["folder"])
    before = 0.0
    for backend, other, epochs in ((then, first, 20), (first, then, 30)):
        code, out, err = sigma("resume", run, "--backend", backend, *goal(epochs))
        found = json.loads(out)
        assert (code, found["epochs"], found["backend"]) == (0, epochs, backend)
        before, spent = found["seconds"], before
        assert found["seconds"] > spent  # of all training, like epochs and iterations
        assert f"backend was {other}, and is {backend} now: bits may differ" in err
        assert f'"sigma-backend-{backend}:{backend}"' in (run / "config.toml").read_text()
        assert f'"run.backend={backend}"]' in (run / "journal.jsonl").read_text()
    assert found["metrics"].keys() == whole["metrics"].keys()
    for name, value in found["metrics"].items():
        assert value == pytest.approx(whole["metrics"][name], rel=1e-4), name


RATE = "trainer.optimiser.learning_rate"


@pytest.mark.parametrize(
    ("saved", "wanted"),
    [(True, 0.3), (False, 0.2)],  # before or after the checkpoint that the run resumes from
)
def test_an_edited_setting_applies_from_the_checkpoint_until_it_is_set_again(sigma, tmp_path, saved, wanted):
    def trained(edits=()):
        configuration = understood(open_document("xor", edits))
        made = build(configuration, catalogue(), tmp_path)
        prepare(configuration, made)
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
def test_settings_that_cannot_change_on_resume_are_refused(sigma, run, key):
    before = contents(run)
    code, _, err = sigma("resume", run, "--set", key)
    assert code == 2
    assert err.startswith(f"--set {key.partition('=')[0]}: cannot change on resume.")
    assert contents(run) == before


def test_a_damaged_checkpoint_is_named_when_it_is_skipped(sigma, run):
    newest = max((run / "checkpoints" / "trainer").iterdir(), key=lambda path: int(path.name))
    (newest / "manifest.json").write_text("")
    code, _, err = sigma("resume", run, "--quiet")
    assert code == 1
    assert f"warning: {newest}/manifest.json: is damaged" in err


def test_a_network_that_does_not_fit_is_reported_with_the_parameter_and_its_shapes(sigma, run):
    before = contents(run / "checkpoints")
    network = "network.architecture=input(2) + dense(3) + output(2) + softmax_cross_entropy()"
    code, _, err = sigma("resume", run, "--set", network)
    assert code == 2
    assert err.startswith(f"{network}: does not fit this run. ")
    assert re.search(r"1-dense.biases is float32\[\d+\] in it, and float32\[3\] here", err)
    assert contents(run / "checkpoints") == before


def test_a_deleted_journal_is_reported(sigma, run):
    (run / "journal.jsonl").unlink()
    code, _, err = sigma("resume", run, "--quiet", "--set", "hooks.finish.when=epoch reaches 6")
    assert code == 0
    assert "warning: " in err
    assert "journal.jsonl: is missing: everything after the last checkpoint is lost" in err
    assert json.loads((run / "journal.jsonl").read_text().splitlines()[0])["lost"]["trainer"][1] > 0


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("{", "does not follow from the lines before it"),
        ("[1]", "does not follow from the lines before it"),
        ("{1}", "Expecting property name"),
        ('{"a": ' + "[" * 100_000 + "}", "recursion"),
        ('{"configuration": ' + "[" * 100_000 + "}", "recursion"),
        ('{"trainer": 3}', "not a row of a journal"),
        ('{"trainer": "trainer", "iteration": 1, "epoch": 1, "event": "digest"}', "not a row of a journal"),
        (
            '{"trainer": "trainer", "iteration": 1, "epoch": 1, "command": "eval", "code": "1"}',
            "command 'eval': no plugin offers it",
        ),
        ('{"trainer": "trainer", "iteration": 1, "epoch": 1, "command": "set"}', "pattern missing or wrong"),
        ('{"trainer": "trainer", "iteration": 1, "epoch": 1, "command": "rewind"}', "to missing or wrong"),
        (
            '{"trainer": "trainer", "iteration": 1, "epoch": 1, "event": "begin", "epochs": "x"}',
            "not a row of a journal",
        ),
    ],
)
@pytest.mark.parametrize("command", ["resume", "replay"])
def test_a_malicious_journal_gives_one_clear_error(sigma, run, command, row, message):
    lines = (run / "journal.jsonl").read_text().splitlines()
    reseal_journal(run / "journal.jsonl", [*(line.rpartition(', "hash"')[0] + "}" for line in lines), row])
    code, _, err = sigma(command, run, "--quiet")
    assert code == 1
    assert "journal.jsonl" in err
    assert message in err


def test_a_command_that_another_trainer_got_from_a_plugin_that_is_missing_does_not_matter(sigma, run):
    row = '{"trainer": "other", "iteration": 1, "epoch": 1, "command": "prune"}'
    lines = (run / "journal.jsonl").read_text().splitlines()
    reseal_journal(run / "journal.jsonl", [*(line.rpartition(', "hash"')[0] + "}" for line in lines), row])
    assert sigma("replay", run, "--quiet")[0] == 0
    assert sigma("resume", run, "--quiet")[0] == 0


def test_resume_prints_the_iteration_and_replay_that_it_is_identical(sigma, run):
    assert sigma("resume", run)[2].splitlines()[0] == "trainer: resumed from iteration 10"
    assert "resumed" not in sigma("resume", run, "--quiet")[2]
    assert sigma("replay", run)[2].endswith("replay is identical\n")


def test_a_path_that_is_not_a_folder_is_one_clear_error(sigma, run, tmp_path):
    (tmp_path / "file").write_text("")
    for what in ("nothing", "file"):
        code, _, err = sigma("resume", what)
        assert code in (1, 2)
        assert what in err


def test_a_run_that_another_process_is_training_cannot_be_resumed(sigma, run):
    more = ["--set", "hooks.finish.when=epoch reaches 100000000", "--quiet"]
    other = subprocess.Popen([sys.executable, "-m", "sigma_run", "resume", str(run), *more])
    try:
        give_up = time.monotonic() + 60
        while '"resumed"' not in (run / "journal.jsonl").read_text() and time.monotonic() < give_up:
            time.sleep(0.05)
        code, _, err = sigma("resume", run, "--set", "hooks.finish.when=epoch reaches 7")
        assert code == 1
        assert "another run writes to it. Wait for its end." in err
        assert "100000000" in (run / "config.toml").read_text()
    finally:
        other.terminate()
        assert other.wait(60) in (143, 130, -15)
    assert sigma("resume", run, "--set", "hooks.finish.when=epoch reaches 7", "--quiet")[0] == 0
    assert os.listdir(run / "checkpoints" / "trainer")


# -- the configuration -------------------------------------------------------------------------------------------------
def digit(path):
    """Change one digit of the seed."""
    text = path.read_text()
    assert "seed = 0" in text
    path.write_text(text.replace("seed = 0", "seed = 1"))


@pytest.mark.parametrize("command", ["resume", "replay", "evaluate", "predict"])
@pytest.mark.parametrize("journal", [True, False])
def test_a_changed_configuration_is_refused_with_a_remedy(sigma, run, command, journal):
    if not journal:
        (run / "journal.jsonl").unlink()
    digit(run / "config.toml")
    (run.parent / "x.csv").write_text("0,1\n")
    before = contents(run)
    code, out, err = sigma(command, run, *([run.parent / "x.csv"] if command == "predict" else []))
    assert code == 1
    assert not out
    assert "config.toml: was changed since the run wrote it: its sha256 begins with " in err
    assert "Restore it from a copy; for other settings, use `sigma resume --set KEY=VALUE`." in err
    assert contents(run) == before


def test_a_resume_with_new_settings_records_them_and_all_commands_use_them(sigma, run):
    old = (run / "config.toml").read_bytes()
    assert sigma("resume", run, *goal(8))[0] == 0
    rows = [row for row in read_journal(run) if row.get("event") == "resumed"]
    assert [row["configuration"] for row in rows] == [digest((run / "config.toml").read_bytes())]
    assert journal_head(run)["configuration"] == digest(old)
    for command in ("resume", "replay", "evaluate"):
        code, _, err = sigma(command, run)
        assert (code, "warning" in err) == (0, False), err
    (run / "config.toml").write_bytes(old)
    for command in ("resume", "replay"):
        code, _, err = sigma(command, run)
        assert code == 1
        assert "config.toml: was changed since the run wrote it" in err


def journal_head(run):
    return json.loads((run / "journal.jsonl").read_text().partition("\n")[0])


def test_a_crash_between_journalling_and_writing_new_settings_leaves_a_resumable_run(sigma, run, monkeypatch):
    def crash(path, text, inside):
        raise KeyboardInterrupt

    old = (run / "config.toml").read_bytes()
    with monkeypatch.context() as patch:
        patch.setattr("sigma_store.files.put_text", crash)
        assert sigma("resume", run, *goal(8))[0] == 130
    assert (run / "config.toml").read_bytes() == old
    assert sigma("replay", run)[0] == 0
    code, out, _ = sigma("resume", run, *goal(20))
    assert (code, json.loads(out)["epochs"]) == (0, 20)
    assert sigma("replay", run, "--check")[0] == 0
    (run / "config.toml").write_bytes(old)
    assert sigma("resume", run)[0] == 1


def test_a_run_folder_of_an_older_version_is_refused_in_one_sentence(sigma, run):
    (run / "journal.jsonl").write_text('{"format": 1}\n{"trainer": "trainer", "event": "begin"}\n')
    before = contents(run)
    for command in ("resume", "replay", "evaluate"):
        code, out, err = sigma(command, run)
        assert (code, out) == (1, "")
        assert "journal.jsonl: has format 1, not 3 as this version reads. Use the sigma-kernel that wrote it." in err
    assert contents(run) == before


# -- paused runs -------------------------------------------------------------------------------------------------------
def paused(folder, steps, saved):
    """Return the folder of a run that crashed while it was paused or stepping."""
    sent = threading.Event()

    def steer(made):
        made.pause()
        if saved:
            made.send("save")
        if steps:
            made.step(steps)
        sent.set()

    def begin(made):
        threading.Thread(target=steer, args=[made], daemon=True).start()
        wait_until(lambda: made.trainer("trainer").session.queue.awaits("pause"))

    with steered_environment({3: begin}) as made:
        made.folder = folder
        runner = threading.Thread(target=made.run, daemon=True)
        runner.start()
        session = made.trainer("trainer").session
        assert sent.wait(30)  # each row of a command is on the disk when its sender goes on
        wait_until(lambda: session.status == "paused")
        session.checkpoints.saver.wait()  # a checkpoint may still be written in the background
        copy = folder / "copy"
        shutil.copytree(made.run_folder, copy)
        made.stop()
        runner.join(10)
    return copy


def wait_until(holds):
    end = time.monotonic() + 30
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.001)


@pytest.mark.long_cases("0-False")
@pytest.mark.parametrize("saved", [False, True])
@pytest.mark.parametrize("steps", [0, 2])
def test_a_run_that_crashed_while_paused_or_stepping_continues_and_is_replayed(tmp_path, steps, saved):
    run = paused(tmp_path, steps, saved)
    with steered_environment() as again:
        again.resume(run, log=lambda text: None)
        again.run()
        assert again.trainer("trainer").session.moment.iteration == 12
        wanted = decisive(again.trainer("trainer"))
    assert "go" in [row.get("command") for row in read_journal(run)]
    with steered_environment() as replayed:
        assert replayed.replay(run)[1] == {}
        assert decisive(replayed.trainer("trainer")) == wanted


def test_a_run_resumed_with_paused_waits_for_a_command(tmp_path):
    run = paused(tmp_path, 0, True)
    with steered_environment() as again:
        again.resume(run, log=lambda text: None, paused=True)
        runner = threading.Thread(target=again.run, daemon=True)
        runner.start()
        wait_until(lambda: again.state == "paused")
        at = again.trainer("trainer").session.moment.iteration
        assert not runner.join(0.1)
        assert (again.state, again.trainer("trainer").session.moment.iteration) == ("paused", at)
        again.go()
        runner.join(30)
        assert again.trainer("trainer").session.moment.iteration == 12


def test_a_run_stays_paused_on_resume_only_if_it_can_be_continued(sigma, run):
    before = contents(run)
    for quiet in ([], ["--quiet"]):
        code, _, err = sigma("resume", run, "--paused", *quiet)
        assert code == 2
        assert err.startswith("--paused: no monitor of this run sends commands, so nothing could end the pause.")
    assert contents(run) == before
