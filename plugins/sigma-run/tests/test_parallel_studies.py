"""Members of a study in processes: the same bits, and processes that are lost, interrupted or left behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import deque
from pathlib import Path

import pytest

from sigma_run.launcher import main
from sigma_run.study.folder import is_study, read_study
from sigma_run.study.parallel import PlannedMembers
from sigma_run.study.plan import LOST, Member
from sigma_run.study.pool import divide_processors
from sigma_store.folders import is_locked

SHORT = ["--epochs", "6", "--set", "hooks.save={ type = 'checkpoint', every = '2 epochs' }", "--quiet", "--json"]
FOLDS = ["iris", "--folds", "3", *SHORT]
LONG = [
    "iris",
    "--folds",
    "3",
    "--epochs",
    "500",
    "--set",
    "hooks.finish.when=epoch reaches 500",
    "--quiet",
    "--json",
]
SAVED = [*LONG, "--set", "hooks.save={ type = 'checkpoint', every = '100 epochs' }", "--parallel", "2"]


@pytest.fixture
def sigma(tmp_path, monkeypatch, capfd):
    """Return the command, run in a directory of its own; it returns code, output and messages."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments):
        code = main([str(argument) for argument in arguments])
        return code, *capfd.readouterr()

    return run


def start(*arguments) -> subprocess.Popen:
    command = [sys.executable, "-m", "sigma_run", *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def the_study() -> Path:
    (path,) = filter(is_study, Path("runs").iterdir())
    return path


def wait_for(condition):
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


def saved(member: str) -> bool:
    return any(Path("runs").glob(f"*/{member}/checkpoints/trainer/*/manifest.sha256"))


def workers(parent: int) -> list[int]:
    """Return the processes that a process has started, as /proc says."""
    return [int(pid) for pid in Path(f"/proc/{parent}/task/{parent}/children").read_text().split()]


def digests(document):
    return [member["parameters_sha256"] for member in document["members"]]


def test_members_in_processes_have_the_bits_of_members_one_after_the_other(sigma):
    code, out, err = sigma("run", *FOLDS, "--parallel", "2")
    at_once = json.loads(out)
    assert (code, err) == (0, "")
    os.rename("runs", "before")
    in_turn = json.loads(sigma("run", *FOLDS)[1])
    assert digests(at_once) == digests(in_turn)
    assert len({*digests(at_once)}) == 3
    assert at_once["metrics"] == in_turn["metrics"]
    assert (at_once["status"], at_once["varies"]) == ("finished", ["data.fold"])
    assert sigma("replay", next(Path("before").iterdir()) / "2", "--check", "--quiet")[0] == 0


def test_processes_import_nothing_from_the_current_directory(sigma):
    for name in ("numpy", "json"):
        Path(f"{name}.py").write_text("raise SystemExit(3)")
    code, out, err = sigma("run", *FOLDS, "--parallel", "2")
    assert (code, err, json.loads(out)["status"]) == (0, "", "finished")


@pytest.mark.long
def test_a_member_whose_process_is_killed_is_trained_again_to_the_same_bits(sigma):
    whole = json.loads(sigma("run", *SAVED)[1])
    os.rename("runs", "before")
    process = start("run", *SAVED)
    wait_for(lambda: saved("1"))
    os.kill(workers(process.pid)[1], signal.SIGKILL)
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    assert digests(json.loads(out)) == digests(whole)
    events = [json.loads(line) for line in (the_study() / "journal.jsonl").read_text().splitlines()]
    assert [row["member"] for row in events if row.get("event") == "lost"] == ["1"]


@pytest.mark.long
def test_a_member_whose_process_is_killed_three_times_has_failed_and_a_resume_trains_it(sigma):
    process = start("run", *SAVED, "--folds", "2")
    wait_for(lambda: len(workers(process.pid)) == 2)
    for _ in range(3):
        wait_for(lambda: is_locked(the_study() / "1"))
        os.kill(workers(process.pid)[-1], signal.SIGKILL)
        wait_for(lambda: not is_locked(the_study() / "1"))
    out, err = process.communicate(timeout=120)
    assert process.returncode == 1, err
    assert "member 1: its process was lost 3 times\n" in err
    assert [member["status"] for member in json.loads(out)["members"]] == ["finished", "failed"]
    assert not (the_study() / "1" / "summary.json").exists()
    code, out, _ = sigma("resume", the_study(), "--parallel", "2", "--quiet", "--json")
    assert (code, [member["status"] for member in json.loads(out)["members"]]) == (0, ["finished"] * 2)


@pytest.mark.long
def test_ctrl_c_ends_members_after_checkpoints_and_a_resume_continues_them(sigma):
    whole = json.loads(sigma("run", *SAVED)[1])
    os.rename("runs", "before")
    process = start("run", *SAVED)
    wait_for(lambda: saved("0") and saved("1"))
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 128 + signal.SIGINT, err
    assert err == ""
    assert [member["status"] for member in json.loads(out)["members"]] == ["interrupted", "interrupted", "planned"]
    code, out, _ = sigma("resume", the_study(), "--parallel", "2", "--quiet", "--json")
    assert (code, digests(json.loads(out))) == (0, digests(whole))


# a signal arrives once a member is taken, or once there is a process for it and before that has the member
DRIVER = """
import os, signal, sys
from sigma_run.launcher import main
from sigma_run.study.parallel import PlannedMembers
from sigma_run.study.pool import MemberProcess

take, begin = PlannedMembers.take, MemberProcess.begin

def taking(self):
    if (member := take(self)) is not None and [member.folder, "taken"] == sys.argv[1:3]:
        os.kill(os.getpid(), signal.SIGTERM)
    return member

def beginning(self, member):
    if [member.folder, "started"] == sys.argv[1:3]:
        os.kill(os.getpid(), signal.SIGTERM)
    begin(self, member)

PlannedMembers.take, MemberProcess.begin = taking, beginning
sys.exit(main(sys.argv[3:]))
"""


@pytest.mark.long_cases(
    "a new process-started", "a process that has trained another-started", "a process that has trained another-taken"
)
@pytest.mark.parametrize("moment", ["taken", "started"])
@pytest.mark.parametrize("member", ["1", "2"], ids=["a new process", "a process that has trained another"])
def test_a_signal_ends_a_member_that_begins_at_this_moment(sigma, member, moment):
    command = [sys.executable, "-c", DRIVER, member, moment, "run", *SAVED]
    process = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert (process.returncode, process.stderr) == (128 + signal.SIGTERM, "")
    members = json.loads((the_study() / "study.json").read_text())["members"]
    assert members[int(member)]["status"] == "interrupted"


# a signal ends the training of members, and another comes while the process ends
ENDED = """
import atexit, os, signal, time
from sigma_run.study import worker

def end(*arguments):
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(60)

atexit.register(end)
worker.train_members = end
worker.main()
"""


def test_a_process_that_ends_has_nothing_to_say_at_another_signal():
    process = subprocess.run([sys.executable, "-c", ENDED, "study"], capture_output=True, text=True, timeout=120)
    assert (process.returncode, process.stderr) == (128 + signal.SIGTERM, "")


@pytest.mark.long
def test_processes_end_after_a_checkpoint_once_their_parent_is_gone(sigma):
    process = start("run", *SAVED, "--epochs", "100000", "--set", "hooks.finish.when=epoch reaches 100000")
    wait_for(lambda: saved("0") and saved("1"))
    children = workers(process.pid)
    process.kill()
    process.communicate(timeout=60)
    wait_for(lambda: not any(Path(f"/proc/{pid}/cmdline").exists() for pid in children))
    assert not is_locked(the_study() / "0")
    assert [member.status for member in read_study(the_study()).members] == ["interrupted", "interrupted", "planned"]


@pytest.mark.long
def test_a_member_that_fails_is_recorded_and_the_others_go_on(sigma):
    wrong = ["--set", "trainer.optimiser={ type = 'gradient_descent', learning_rate = 1e38 }"]
    code, out, err = sigma("run", "iris", "--seeds", "2", *wrong, *SHORT, "--parallel", "2")
    study = json.loads(out)
    assert (code, study["status"]) == (1, "failed")
    for member in study["members"]:
        assert member["why"]
        assert f"member {member['folder']}: {member['why']}\n" in err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--folds", "200", "--parallel", "2"], "200 folds need as many rows, and there are 150. Use fewer folds."),
        (["--parallel", "2"], "--parallel 2: is for studies. Add --seeds or --folds, or leave it out."),
        (["--seeds", "2", "--parallel", "0"], "0 is not in the range"),
    ],
)
def test_what_is_wrong_before_training_leaves_no_study(sigma, arguments, message):
    code, out, err = sigma("run", "iris", *arguments, *SHORT)
    assert (code, out) == (2, "")
    assert message in err
    assert [*Path().glob("runs/*")] == []


# -- the queue ---------------------------------------------------------------------------------------------------------
def test_a_lost_member_is_trained_before_the_others_and_fails_after_three_attempts():
    queue = PlannedMembers(deque(Member(folder=name, overrides=()) for name in "abc"))
    first, second = queue.take(), queue.take()
    for _ in range(2):
        lost = Member(folder=first.folder, overrides=(), status=LOST)
        assert queue.settle(lost) == lost
        assert queue.take() == lost
    assert queue.settle(lost).status == "failed"
    assert queue.settle(lost).why == "its process was lost 4 times"
    assert (second.folder, queue.take().folder, queue.take()) == ("b", "c", None)


def test_processors_are_divided_without_a_rest(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0, 1, 2, 3, 6}, raising=False)
    assert [divide_processors(n, 2) for n in range(2)] == [(0, 2, 6), (1, 3)]
    assert [divide_processors(n, 6) for n in range(6)] == [()] * 6
    assert divide_processors(0, 1) == ()
