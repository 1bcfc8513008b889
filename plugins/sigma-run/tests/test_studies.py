"""Studies: several seeds and folds of one configuration, killed, interrupted and resumed."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from statistics import fmean, stdev

import attrs
import pytest

from sigma_kernel.environment import Environment
from sigma_kernel.errors import SigmaConfigError, SigmaTrainingError
from sigma_run.launcher import list_members, list_runs, main
from sigma_run.study.folder import is_study, read_study
from sigma_run.study.plan import Member, Study, from_plain, summarise, table_of, to_plain
from sigma_store.folders import WrittenFolder
from sigma_store.run_folder import lock

SHORT = ["--epochs", "6", "--set", "hooks.save={ type = 'checkpoint', every = '2 epochs' }", "--quiet", "--json"]
FOLDS = ["iris", "--folds", "3", *SHORT]
# ends this process by a signal: after an event of a member, or as it saves a checkpoint
DRIVER = """
import os, sys
from sigma_kernel.records import RunRecords
from sigma_run.launcher import main
from sigma_run.study.folder import StudyFolder
from sigma_store.checkpoints.writer import Saver

number, member, place = int(sys.argv[1]), sys.argv[2], sys.argv[3]
update, save, leave = StudyFolder.update, Saver.save, RunRecords.leave

def updating(self, changed, event, **more):
    if (changed.folder, place) == (member, f"before {event}"):
        os.kill(os.getpid(), number)
    update(self, changed, event, **more)
    if (changed.folder, place) == (member, event):
        os.kill(os.getpid(), number)

def saving(self, iteration, checkpoint):
    if place == str(checkpoint.values["clock"]["epoch"]) and self.home.parents[1].name == member:
        self.wait()
        os.kill(os.getpid(), number)
    return save(self, iteration, checkpoint)

def leaving(self, summary):
    if place == "leave" and self.run.path.name == member:
        os.kill(os.getpid(), number)
    leave(self, summary)

StudyFolder.update, Saver.save, RunRecords.leave = updating, saving, leaving
sys.exit(main(sys.argv[4:]))
"""


@pytest.fixture
def sigma(tmp_path, monkeypatch, capsys):
    """Return the command, run in a directory of its own; it returns code, output and messages."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments):
        code = main([str(argument) for argument in arguments])
        return code, *capsys.readouterr()

    return run


def end_by(number, member, place, *arguments):
    command = [sys.executable, "-c", DRIVER, str(int(number)), member, place, "run", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


def the_study() -> Path:
    (path,) = filter(is_study, Path("runs").iterdir())
    return path


def digests(document):
    return [member["parameters_sha256"] for member in document["members"]]


def test_every_seed_is_trained_with_every_fold_and_the_results_are_summarised(sigma):
    code, out, _ = sigma("run", "iris", "--seed", "3", "--seeds", "2", "--folds", "2", *SHORT)
    study, path = json.loads(out), the_study()
    assert code == 0
    assert (study["format"], study["name"], study["status"]) == (1, "iris", "finished")
    assert study["varies"] == ["run.seed", "data.fold"]
    assert [member["overrides"] for member in study["members"]] == [
        [f"run.seed={seed}", f"data.fold={{ number = {fold}, of = 2 }}"] for seed in (3, 4) for fold in (0, 1)
    ]
    assert [member["folder"] for member in study["members"]] == ["0", "1", "2", "3"]
    losses = [member["metrics"]["training.loss"] for member in study["members"]]
    total = study["metrics"]["training.loss"]
    assert total == {"mean": fmean(losses), "deviation": stdev(losses), "count": 4}
    assert json.loads((path / "study.json").read_text()) == {k: v for k, v in study.items() if k != "folder"}
    events = [json.loads(line) for line in (path / "journal.jsonl").read_text().splitlines()][1:]
    steps = [step for member in "0123" for step in (("begin", member), ("end", member))]
    assert [(row["event"], row.get("member")) for row in events] == [("created", None), *steps, ("ended", None)]
    assert len({*digests(study)}) == 4


def test_a_member_is_the_run_that_its_settings_describe(sigma):
    sigma("run", *FOLDS)
    path = the_study()
    alone = json.loads(sigma("run", "iris", "--set", "data.fold={ number = 1, of = 3 }", *SHORT)[1])
    assert read_study(path).members[1].parameters_sha256 == alone["parameters_sha256"]
    assert sigma("replay", path / "1", "--check", "--quiet")[0] == 0
    assert sigma("evaluate", path / "1", "--json")[0] == 0


@pytest.mark.long_cases("0-4", "0-begin", "1-4", "1-before end", "2-2")
@pytest.mark.parametrize(
    ("member", "place"),
    [("0", "begin"), ("0", "4"), ("1", "4"), ("1", "before end"), ("1", "end"), ("2", "2")],
    ids=str,
)
def test_a_study_that_is_killed_is_resumed_to_the_same_bits(sigma, member, place):
    whole = json.loads(sigma("run", *FOLDS)[1])
    os.rename(whole["folder"], "whole")
    killed = end_by(signal.SIGKILL, member, place, *FOLDS)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    path = the_study()
    assert read_study(path).status == "unfinished"
    code, out, _ = sigma("resume", path, "--quiet", "--json")
    assert code == 0
    assert digests(json.loads(out)) == digests(whole)
    events = [json.loads(line) for line in (path / "journal.jsonl").read_text().splitlines()]
    assert "resumed" in [row.get("event") for row in events]
    for name in ("0", "1", "2"):
        assert sigma("replay", path / name, "--check", "--quiet")[0] == 0


def test_a_member_goes_on_from_its_checkpoint(sigma):
    end_by(signal.SIGKILL, "1", "4", *FOLDS)
    path = the_study()
    sigma("resume", path, "--quiet")
    journal = (path / "1" / "journal.jsonl").read_text()
    (row,) = [json.loads(line) for line in journal.splitlines() if '"resumed"' in line]
    assert row["from"] > 0
    assert '"resumed"' not in (path / "2" / "journal.jsonl").read_text()


@pytest.mark.long
def test_ctrl_c_ends_the_study_after_the_checkpoint_of_the_member(sigma):
    long = [
        *FOLDS,
        "--epochs",
        "800",
        "--set",
        "hooks.finish.when=epoch reaches 800",
        "--set",
        "hooks.save.every=100 epochs",
    ]
    whole = json.loads(sigma("run", *long)[1])
    os.rename(whole["folder"], "whole")
    ended = end_by(signal.SIGINT, "1", "200", *long)
    assert ended.returncode == 128 + signal.SIGINT, ended.stderr
    path = the_study()
    assert [member.status for member in read_study(path).members] == ["finished", "interrupted", "planned"]
    assert json.loads(ended.stdout)["status"] == "interrupted"
    code, out, _ = sigma("resume", path, "--quiet", "--json")
    assert (code, digests(json.loads(out))) == (0, digests(whole))


def test_ctrl_c_once_a_member_has_finished_ends_the_study_as_well(sigma):
    ended = end_by(signal.SIGINT, "0", "leave", *FOLDS)
    assert ended.returncode == 128 + signal.SIGINT, ended.stderr
    assert [member.status for member in read_study(the_study()).members] == ["finished", "planned", "planned"]


def test_a_finished_study_is_not_trained_again(sigma):
    first = json.loads(sigma("run", *FOLDS)[1])
    again = json.loads(sigma("resume", first["folder"], "--quiet", "--json")[1])
    assert again == first


def test_the_paths_of_data_are_found_by_members_that_begin_later(sigma, monkeypatch, tmp_path):
    Path("project").mkdir()
    Path("project/houses.csv").write_text("x,y\n" + "".join(f"{i},{i * 2}.5\n" for i in range(30)))
    Path("project/houses.toml").write_text(
        'format = 1\n[data]\ndataset = "csv"\npath = "houses.csv"\ntarget = "y"\n'
        '[network]\narchitecture = "input(1) + output(1) + squared_difference()"\n'
        '[trainer]\nepochs = 4\noptimiser = "adam"\n[run]\nfolder = "runs"\n'
    )
    monkeypatch.chdir("project")
    assert end_by(signal.SIGKILL, "0", "end", "houses.toml", "--folds", "2").returncode == -signal.SIGKILL
    monkeypatch.chdir(tmp_path)
    os.rename("project", "moved")
    monkeypatch.chdir("moved")
    assert sigma("resume", the_study(), "--quiet")[0] == 0
    texts = [(run / "config.toml").read_text() for run in list_members([the_study()])]
    assert [re.findall('path = "(.*)"', text) for text in texts] == [["../../../houses.csv"]] * 2
    _, out, _ = sigma("predict", the_study() / "0", "houses.csv", "--json")
    assert len(json.loads(out)["predictions"]) == 30
    whole = Path("houses.csv").read_text().splitlines()
    Path("few.csv").write_text("\n".join(whole[:3]))  # fewer rows than folds would leave
    assert sigma("evaluate", the_study() / "1", "few.csv", "--json")[0] == 0


# -- failures ----------------------------------------------------------------------------------------------------------
def test_a_member_that_fails_is_recorded_and_the_others_go_on(sigma, monkeypatch):
    train = Environment.run

    def fail(self, *given, **more):
        if self.folder_name == "1":
            raise SigmaTrainingError("trainer: the loss is NaN. Lower the learning rate.")
        return train(self, *given, **more)

    monkeypatch.setattr(Environment, "run", fail)
    code, out, err = sigma("run", *FOLDS)
    study = json.loads(out)
    assert code == 1
    assert err == "trainer: the loss is NaN. Lower the learning rate.\n"
    assert [member["status"] for member in study["members"]] == ["finished", "failed", "finished"]
    assert study["members"][1]["why"] == "trainer: the loss is NaN. Lower the learning rate."
    assert (study["status"], study["metrics"]["training.loss"]["count"]) == ("failed", 2)
    monkeypatch.undo()
    os.chdir(Path(study["folder"]).parents[1])
    code, out, _ = sigma("resume", study["folder"], "--quiet", "--json")
    assert (code, json.loads(out)["status"]) == (0, "finished")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--seeds", "1"], "--seeds 1: a study has at least 2. Leave --seeds out for a single run."),
        (["--folds", "1"], "--folds 1: a study has at least 2. Leave --folds out for a single run."),
        (["--folds", "-3"], "--folds -3: a study has at least 2."),
        (["--folds", "200"], "200 folds need as many rows, and there are 150. Use fewer folds."),
        (["--seeds", "2", "--set", "trainer.optimiser=adm"], "optimiser"),
    ],
)
def test_what_is_wrong_before_training_leaves_no_study(sigma, arguments, message):
    code, out, err = sigma("run", "iris", *arguments, *SHORT)
    assert (code, out) == (2, "")
    assert message in err
    assert [*Path().glob("runs/*")] == []


def test_data_with_fixed_splits_have_no_folds(sigma):
    code, _, err = sigma("run", "xor", "--folds", "3", *SHORT)
    assert code == 2
    assert err == (
        "--folds: data: the data set 'sigma-data:xor' has fixed splits. Take one without predefined splits, or vary "
        "the seed: --seeds.\n"
    )


@pytest.mark.parametrize("share", ["0.3", "{ split = 0.3, split_by = 'block' }", None])
def test_the_parts_of_data_without_splits_have_folds(sigma, share, monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(tmp_path)
    Path("nine_rows.py").write_text(
        "import numpy as np\nfrom attrs import define\nfrom sigma_data import Arrays\n"
        "@define(eq=False)\nclass Nine(Arrays):\n"
        "    def __init__(self):\n"
        "        super().__init__(inputs=np.eye(9, dtype='f'), targets=np.arange(9) % 2)\n"
    )
    Path("nine.toml").write_text(
        f"format = 1\n[data]\ndataset = {{ python = 'nine_rows:Nine' }}\n"
        f"{f'validation_split = {share}' if share else ''}\n"
        "[network]\narchitecture = 'input(9) + output(2) + softmax_cross_entropy()'\n"
        "[trainer]\nepochs = 1\noptimiser = 'adam'\n"
    )
    code, out, err = sigma("run", "nine.toml", "--folds", "3", "--quiet", "--json", "--trust", "nine_rows")
    assert code == 0, err
    assert json.loads(out)["varies"] == [f"data.validation_split{'.fold' if share and share[0] == '{' else ''}"]
    texts = [(run / "config.toml").read_text() for run in list_members([the_study()])]
    assert [re.findall(r"\[data.validation_split.fold\]\nnumber = (\d)\nof = 3", text) for text in texts] == [
        ["0"], ["1"], ["2"]
    ]  # fmt: skip
    assert ["split_by" in text for text in texts] == [bool(share and share[0] == "{")] * 3


def test_a_study_refuses_changes_and_a_second_process(sigma):
    sigma("run", *FOLDS)
    path = the_study()
    code, _, err = sigma("resume", path, "--epochs", "9")
    sentence = "a study resumes with the settings that it has. Pass the folder of a member to change it."
    assert (code, err) == (2, f"{path}: {sentence}\n")
    with lock(WrittenFolder(path.absolute())):
        code, _, err = sigma("resume", path)
    assert code != 0
    assert f"{path.absolute()}: " in err


# -- reading -----------------------------------------------------------------------------------------------------------
def test_a_study_is_one_row_among_runs_and_its_members_are_rows_of_their_own(sigma):
    sigma("run", *FOLDS)
    sigma("run", "iris", *SHORT)
    single, study = list_runs([Path("runs")])
    members = read_study(the_study()).members
    assert "members" not in single
    assert (study["folder"], study["status"], study["members"]) == (str(the_study()), "finished", 3)
    assert study["metrics"]["training.loss"] == fmean(member.metrics["training.loss"] for member in members)
    assert study["settings"]["data.dataset"] == "sigma-data:iris"
    assert (study["epochs"], study["seconds"]) == (6, pytest.approx(sum(member.seconds for member in members)))
    assert [Path(row["folder"]).name for row in list_runs([the_study()])] == ["0", "1", "2"]
    assert the_study().name in sigma("runs")[1]


def test_a_study_whose_member_is_locked_is_running(sigma):
    sigma("run", *FOLDS)
    with lock(WrittenFolder((the_study() / "1").absolute())):
        assert [member.status for member in read_study(the_study()).members] == ["finished", "running", "finished"]
        assert list_runs([Path("runs")])[0]["status"] == "running"
    assert list_runs([Path("runs")])[0]["status"] == "finished"


def test_the_summary_is_a_table_of_members_with_mean_and_deviation():
    members = tuple(
        Member(
            folder=str(i), overrides=(f"run.seed={i}", f"data.fold={{ number = {i}, of = 3 }}"),
            status=status, metrics={"loss": loss},
        )
        for i, (status, loss) in enumerate([("finished", 1.0), ("stopped", 2.0), ("failed", 9.0)])
    )  # fmt: skip
    study = Study(name="a", varies=("run.seed", "data.fold"), members=members)
    assert table_of(study) == [
        ["MEMBER", "STATUS", "run.seed", "data.fold", "loss"],
        ["0", "finished", "0", "0 of 3", "1"],
        ["1", "stopped", "1", "1 of 3", "2"],
        ["2", "failed", "2", "2 of 3", "9"],
        ["mean", "", "", "", "1.5"],
        ["deviation", "", "", "", "0.7071"],
    ]
    assert study.status == "failed"
    assert from_plain("study.json", json.loads(json.dumps(to_plain(study)))) == study


def test_the_deviation_of_one_value_is_none_and_values_that_are_not_finite_do_not_count():
    members = [
        Member(folder=str(i), overrides=(), status="finished", metrics={"loss": loss, "other": None})
        for i, loss in enumerate([0.5, float("nan"), None])
    ]
    assert summarise(members) == {"loss": {"mean": 0.5, "deviation": None, "count": 1}}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[]", "not a JSON object"),
        ("{", "not JSON"),
        ('{"format": 2}', "has format 2, and this version of Sigma reads 1"),
        ('{"format": 1, "name": "a", "varies": []}', "is damaged"),
        ('{"format": 1, "name": "a", "varies": [], "members": [{"folder": "../x", "overrides": []}]}', "no member"),
        ('{"format": 1, "name": "a", "varies": [], "members": [{"folder": 3, "overrides": []}]}', "is damaged"),
    ],
)
def test_a_damaged_study_is_reported_and_listed_all_the_same(tmp_path, text, message, capsys):
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "study.json").write_text(text)
    with pytest.raises(SigmaConfigError, match=message):
        read_study(tmp_path / "broken")
    (row,) = list_runs([tmp_path])
    assert (row["status"], row["members"]) == ("unfinished", 0)
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("summary", "statuses"),
    [
        (None, ("failed", "unfinished")),
        ("{", ("failed", "unfinished")),
        ('{"status": "interrupted"}', ("failed", "interrupted")),  # in an earlier session
        ('{"status": "finished"}', ("finished", "finished")),  # by a resume of the member alone
    ],
)
def test_a_member_whose_process_was_lost_too_often_has_failed(tmp_path, summary, statuses):
    lost = Member(folder="0", overrides=(), status="failed", why="its process was lost 3 times", attempts=3)
    members = (lost, Member(folder="1", overrides=(), status="running"))
    (tmp_path / "study.json").write_text(json.dumps(to_plain(Study(name="a", varies=(), members=members))))
    for member in members:
        (tmp_path / member.folder).mkdir()
        if summary is not None:
            (tmp_path / member.folder / "summary.json").write_text(summary)
    read = read_study(tmp_path).members
    assert tuple(member.status for member in read) == statuses
    assert (read[0] == lost) == (statuses[0] == "failed")


def test_a_search_is_one_row_with_the_metrics_of_the_best_trial_and_its_table_has_no_means(tmp_path):
    ends = [("finished", 0.5), ("pruned", 0.9), ("finished", 0.7), ("finished", 0.7), ("failed", None)]
    members = tuple(
        Member(folder=str(i), overrides=(f"run.seed={i}",), status=status, metrics={"loss": value})
        for i, (status, value) in enumerate(ends)
    )
    study = Study(name="a", varies=("run.seed",), members=members, search={"trials": 5, "maximise": "loss"})
    assert study.best == members[2]  # the first of equal ones
    assert (study.goal, study.status) == ("loss", "finished")
    assert attrs.evolve(study, search={"trials": 5, "minimise": "loss"}).best == members[0]
    assert attrs.evolve(study, search={"trials": 6, "maximise": "loss"}).status == "unfinished"
    assert table_of(study)[0] == ["TRIAL", "STATUS", "run.seed", "loss"]
    assert len(table_of(study)) == 6
    document = json.loads(json.dumps(to_plain(study)))
    assert document["search"]["best"] == {"folder": "2", "value": 0.7, "settings": {"run.seed": "2"}}
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "study.json").write_text(json.dumps(document))
    (row,) = list_runs([tmp_path])
    assert (row["status"], row["metrics"], row["members"]) == ("finished", {"loss": 0.7}, 5)


def test_a_pruned_trial_says_why_in_the_list(sigma):
    for name, status, why in (("a", "finished", ""), ("b", "pruned", "loss 2 is above 1.")):
        Path("runs", name).mkdir(parents=True)
        Path("runs", name, "config.toml").write_text("")
        Path("runs", name, "summary.json").write_text(json.dumps({"status": status, "why": why}))
    out = sigma("runs")[1].splitlines()
    assert out[0].split()[-1] == "WHY"
    assert out[2].split() == ["b", "pruned", "loss", "2", "is", "above", "1."]
