"""Searches: the same trials however often they are killed or interrupted, each a run that replays."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import tomllib
from pathlib import Path

import pytest

import sigma_search
from sigma_kernel import catalogue
from sigma_kernel.errors import SigmaConfigError
from sigma_run.config import load_configuration, read
from sigma_run.launcher import list_runs, main
from sigma_run.study import is_study, read_study
from sigma_search.base import write_base
from sigma_search.sampling import VERSION
from sigma_search.searching import reopen_search

FILE = """
format = 1
[run]
name = "flowers"
backend = "numpy"
[data]
dataset = "iris"
batch_size = 10
[network]
architecture = "input(4) + dense(8) + output(3) + softmax_cross_entropy()"
[trainer]
optimiser = { type = "adam", learning_rate = 0.01 }
epochs = 8
[hooks.score]
type = "accuracy"
on = "validation"
every = "1 epoch"
[hooks.save]
type = "checkpoint"
every = "2 epochs"
[search]
trials = 7
parallel = 2
maximise = "validation.accuracy"
prune = { type = "median", from = "2 epochs", startup = 2 }
[search.space]
"trainer.optimiser.learning_rate" = { low = 1e-4, high = 1e-1, log = true }
"network.architecture" = { choices = [
    "input(4) + output(3) + softmax_cross_entropy()",
    "input(4) + dense(8, activation='tanh') + output(3) + softmax_cross_entropy()",
] }
"""


@pytest.fixture
def sigma(tmp_path, monkeypatch, capfd):
    """Return the command, run in a directory of its own with a file; it returns code, output and messages."""
    monkeypatch.chdir(tmp_path)
    Path("flowers.toml").write_text(FILE)

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
        time.sleep(0.01)


def workers(parent: int) -> list[int]:
    """Return the processes that a process has started, as /proc says."""
    return [int(pid) for pid in Path(f"/proc/{parent}/task/{parent}/children").read_text().split()]


def trials(document):
    """Return what determines a trial, and what it came to, of all trials of a search."""
    names = ("folder", "overrides", "status", "metrics", "parameters_sha256", "why")
    return [{name: member.get(name) for name in names} for member in document["members"]]


def search(sigma, *options):
    code, out, err = sigma("search", "flowers.toml", "--quiet", "--json", *options)
    assert (code, err) == (0, ""), err
    os.rename("runs", f"runs-{time.monotonic_ns()}")
    return json.loads(out)


def test_a_search_trains_its_trials_and_names_the_best(sigma):
    code, out, err = sigma("search", "flowers.toml")
    assert code == 0, err
    study = json.loads((the_study() / "study.json").read_text())
    assert (study["status"], study["varies"]) == (
        "finished",
        ["trainer.optimiser.learning_rate", "network.architecture"],
    )
    statuses = [member["status"] for member in study["members"]]
    assert len(statuses) == 7
    assert {*statuses} == {"finished", "pruned"}
    values = [m["metrics"]["validation.accuracy"] if m["status"] == "finished" else 0 for m in study["members"]]
    best = study["search"]["best"]
    assert int(best["folder"]) == values.index(max(values))
    assert best["value"] == max(values)
    assert f"best: trial {best['folder']}, validation.accuracy {max(values):.4g} with trainer.optimiser" in err
    assert out.splitlines()[0].split()[:4] == ["TRIAL", "STATUS", "optimiser.learning_rate", "network.architecture"]
    assert "mean" not in out


@pytest.mark.long
def test_the_best_trial_is_trained_alone_by_the_command_that_is_named(sigma):
    _, _, err = sigma("search", "flowers.toml")
    (line,) = [line for line in err.splitlines() if line.startswith("  train:  ")]
    best = sigma_search.SearchResults.read(the_study()).study.best
    done = subprocess.run(
        f"{sys.executable} -m sigma_run {line.partition('sigma ')[2]} --quiet --json",
        shell=True, check=True, capture_output=True, text=True,
    )  # fmt: skip
    assert json.loads(done.stdout)["parameters_sha256"] == best.parameters_sha256


def test_each_trial_replays_to_the_bit_and_pruned_ones_say_why(sigma):
    sigma("search", "flowers.toml")
    for member in read_study(the_study()).members:
        code, out, err = sigma("replay", the_study() / member.folder, "--check", "--json")
        assert code == 0, err
        assert (json.loads(out)["status"], json.loads(out).get("why", "")) == (member.status, member.why)
    rows = list_runs([the_study()])
    pruned = [row for row in rows if row["status"] == "pruned"]
    assert pruned
    for row in pruned:
        assert "is below" in row["why"]
        assert "the median of earlier trials, at iteration" in row["why"]
        assert row["epochs"] < 8


@pytest.mark.long
def test_a_search_has_the_same_trials_three_times_under_load(sigma):
    first = search(sigma)
    assert len({member["parameters_sha256"] for member in first["members"]}) == 7
    burners = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(2)]
    try:
        again = [search(sigma) for _ in range(2)]
    finally:
        for burner in burners:
            burner.kill()
            burner.wait()
    assert [trials(each) for each in again] == [trials(first)] * 2


@pytest.mark.long
def test_one_trial_at_a_time_is_another_search_but_a_reproducible_one(sigma):
    alone = [search(sigma, "--parallel", "1") for _ in range(2)]
    assert trials(alone[0]) == trials(alone[1])


def test_trials_whose_processes_are_killed_are_repeated_to_the_same_bits(sigma):
    whole = search(sigma, "--set", "trainer.epochs=60")
    process = start("search", "flowers.toml", "--set", "trainer.epochs=60", "--quiet", "--json")
    for folder in "03":
        wait_for(lambda folder=folder: [*Path("runs").glob(f"*/{folder}/checkpoints/trainer/*/manifest.sha256")])
        os.kill(workers(process.pid)[0], signal.SIGKILL)
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    assert trials(json.loads(out)) == trials(whole)
    journal = [json.loads(line) for line in (the_study() / "journal.jsonl").read_text().splitlines()]
    assert len([row for row in journal if row.get("event") == "lost"]) == 2


@pytest.mark.long
def test_an_interrupted_search_is_resumed_to_the_same_trials(sigma):
    whole = search(sigma, "--set", "trainer.epochs=60")
    process = start("search", "flowers.toml", "--set", "trainer.epochs=60", "--quiet", "--json")
    wait_for(lambda: [*Path("runs").glob("*/3/checkpoints/trainer/*/manifest.sha256")])
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (128 + signal.SIGINT, "")
    assert json.loads(out)["status"] in ("interrupted", "unfinished")  # a trial may have begun as the signal came
    code, _, err = sigma("resume", the_study())
    assert (code, err) == (2, f"{the_study()}: is a search. Continue it with `sigma search --resume {the_study()}`.\n")
    code, out, err = sigma("search", "--resume", the_study(), "--quiet", "--json")
    assert (code, err) == (0, "")
    assert trials(json.loads(out)) == trials(whole)


def test_a_search_whose_process_is_killed_is_resumed_to_the_same_trials(sigma):
    whole = search(sigma)
    process = start("search", "flowers.toml", "--quiet")
    wait_for(lambda: [*Path("runs").glob("*/4/config.toml")])
    children = workers(process.pid)
    process.kill()
    process.communicate(timeout=60)
    wait_for(lambda: not any(Path(f"/proc/{pid}/cmdline").exists() for pid in children))
    code, out, err = sigma("search", "--resume", the_study(), "--quiet", "--json")
    assert (code, err) == (0, "")
    assert trials(json.loads(out)) == trials(whole)


@pytest.mark.long
def test_more_trials_extend_a_search(sigma):
    whole = search(sigma)
    sigma("search", "flowers.toml", "--trials", "4", "--quiet")
    assert len(read_study(the_study()).members) == 4
    code, out, _ = sigma("search", "--resume", the_study(), "--trials", "7", "--quiet", "--json")
    assert (code, trials(json.loads(out))) == (0, trials(whole))


@pytest.mark.long
def test_an_extension_that_is_interrupted_is_continued(sigma):
    whole = search(sigma)
    sigma("search", "flowers.toml", "--trials", "4", "--quiet")
    folder, _ = reopen_search(the_study(), 7, lambda text: None)
    folder.release()
    study = read_study(the_study())
    assert (study.status, study.search["trials"], len(study.members)) == ("unfinished", 7, 4)
    code, out, _ = sigma("search", "--resume", the_study(), "--quiet", "--json")
    assert (code, trials(json.loads(out))) == (0, trials(whole))


@pytest.mark.long
def test_a_trial_that_fails_is_told_as_failed_and_the_search_goes_on(sigma):
    wrong = 'search.space={ "trainer.optimiser.learning_rate" = { choices = [0.01, 1e38] } }'
    options = ["--set", wrong, "--set", "search.sampler=grid", "--set", "trainer.optimiser.type=gradient_descent"]
    code, out, err = sigma("search", "flowers.toml", *options, "--json")
    study = json.loads(out)
    assert (code, study["status"]) == (0, "finished"), err
    assert [(member["status"], member.get("attempts")) for member in study["members"]] == [
        ("finished", None),
        ("failed", 3),
    ]
    assert study["search"]["best"]["folder"] == "0"
    assert "trial 1 failed: trainer: the loss is" in err
    code, out, _ = sigma("search", "--resume", the_study(), "--quiet", "--json")
    assert (code, trials(json.loads(out))) == (0, trials(study))


@pytest.mark.long_cases("training.loss", "validation.accuracy")
@pytest.mark.parametrize("goal", ["training.loss", "validation.accuracy", "progress"])
def test_what_trials_publish_is_a_goal(sigma, goal):
    options = [f"search.maximise={goal}", "trainer.epochs=1", "hooks.progress={ type = 'progress' }"]
    study = search(sigma, "--trials", "1", *(word for option in options for word in ("--set", option)))
    assert study["search"]["best"]["folder"] == "0"


@pytest.mark.long
def test_a_search_without_a_best_trial_says_so(sigma):
    options = ["--set", "hooks.score.every=20 epochs", "--set", "trainer.epochs=1"]
    code, out, err = sigma("search", "flowers.toml", "--trials", "1", "--quiet", *options)
    assert (code, out) == (1, "")
    assert (
        err
        == f"{the_study().absolute()}: no trial has finished with a finite validation.accuracy: there is no best one.\n"
    )


@pytest.mark.long
def test_a_grid_has_all_its_points_in_order(sigma):
    rates, seeds = "{ low = 0.1, high = 0.3, step = 0.1 }", "{ low = 4, high = 5 }"
    space = f'search.space={{ "trainer.optimiser.learning_rate" = {rates}, "run.seed" = {seeds} }}'
    options = ["--set", space, "--set", "search.sampler=grid", "--set", "trainer.epochs=1"]
    code, _, err = sigma("search", "flowers.toml", *options, "--quiet", "--json")
    assert code == 0, err
    rows = sigma_search.SearchResults.read(the_study()).trials
    pairs = [(row["trainer.optimiser.learning_rate"], row["run.seed"]) for row in rows]
    assert pairs == [(0.1, 4), (0.1, 5), (0.2, 4), (0.2, 5), (pytest.approx(0.3), 4), (pytest.approx(0.3), 5)]


TYPES = """
sampler = "grid"
maximise = "validation.accuracy"
[search.space]
"trainer.optimiser.type" = { choices = ["adam", "adamw", "muon", "gradient_descent"] }
"""


@pytest.mark.long_cases('"adamw"')
@pytest.mark.parametrize("optimiser", ['{ type = "adamw", learning_rate = 0.01 }', '"adamw"'])
def test_a_trial_of_another_type_is_the_run_of_the_file_with_that_type(sigma, optimiser):
    text = FILE.partition("[search]")[0].replace("epochs = 8", "epochs = 1")
    text = text.replace('{ type = "adam", learning_rate = 0.01 }', optimiser)
    Path("flowers.toml").write_text(f"{text}[search]{TYPES}")
    study = search(sigma)
    assert [member["status"] for member in study["members"]] == ["finished"] * 4
    for member, name in zip(study["members"], ["adam", "adamw", "muon", "gradient_descent"], strict=True):
        _, out, _ = sigma("run", "flowers.toml", "--set", f"trainer.optimiser.type={name}", "--quiet", "--json")
        assert json.loads(out)["parameters_sha256"] == member["parameters_sha256"], name


def test_settings_in_the_file_are_kept_of_a_component_whose_type_is_searched(tmp_path):
    (tmp_path / "flowers.toml").write_text(FILE)
    configuration = load_configuration(read(tmp_path / "flowers.toml"), catalogue())
    space = ["trainer.optimiser.type", "hooks.score.type", "run.operator.type", "network.architecture", "type"]
    base = tomllib.loads(write_base(configuration, space))
    assert base["trainer"]["optimiser"] == {"type": "sigma-optimisers:adam", "learning_rate": 0.01}
    assert base["hooks"]["score"] == {"type": "sigma-hooks:accuracy", "on": "validation", "every": "every 1 epoch"}
    assert "operator" not in base["run"]
    assert base["hooks"]["save"]["type"] == "sigma-hooks:checkpoint"
    assert len(base["hooks"]["save"]) > 2


def test_a_setting_that_another_type_lacks_ends_a_search_before_training(sigma):
    text = FILE.partition("[search]")[0].replace('"adam",', '"adam", beta2 = 0.9,')
    Path("flowers.toml").write_text(text + "[search]" + TYPES)
    code, _, err = sigma("search", "flowers.toml")
    assert (code, "has no setting 'beta2'" in err, len(err.splitlines())) == (2, True, 1), err
    assert not Path("runs").exists()


@pytest.mark.long
def test_python_gets_the_results_as_rows(sigma):
    space = {"trainer.optimiser.learning_rate": {"low": 1e-3, "high": 0.1, "log": True}}
    results = sigma_search.search("flowers.toml", "trainer.epochs=2", space=space, trials=3, parallel=2)
    assert [row["trial"] for row in results.trials] == [0, 1, 2]
    assert results.best == max(results.trials, key=lambda row: row["value"])
    assert {"trial", "status", "value", "trainer.optimiser.learning_rate", "epochs", "seconds", "folder"} == {
        *results.best
    }
    assert f"best validation.accuracy {results.best['value']:.4g} of trial" in repr(results)
    more = sigma_search.resume_search(results.folder, trials=4)
    assert more.trials[:3] == results.trials
    assert len(more.trials) == 4


TABLES = """
[trainers.{name}]
optimiser = "adam"
epochs = 4
data = {{ dataset = "iris" }}
network = {{ architecture = "input(4) + output(3) + softmax_cross_entropy()" }}
[trainers.{name}.hooks.score]
type = "accuracy"
on = "validation"
every = "1 epoch"
"""
TWO = f"""
format = 1
[run]
backend = "numpy"
{TABLES.format(name="left")}
{TABLES.format(name="right")}
[search]
trials = 4
parallel = 2
minimise = "right.validation.loss"
prune = {{ type = "halving", from = "1 epoch", factor = 2 }}
[search.space]
"trainers.right.optimiser.learning_rate" = {{ choices = [0.1, 0.01, 0.001, 0.0001] }}
"""


@pytest.mark.long
def test_the_value_of_one_of_several_trainers_is_minimised_and_pruning_ends_that_one(sigma):
    Path("two.toml").write_text(TWO)
    code, out, err = sigma("search", "two.toml", "--set", "search.sampler=grid", "--json")
    assert code == 0, err
    study = json.loads(out)
    assert [member["status"] for member in study["members"]] == ["finished", "finished", "pruned", "pruned"]
    assert study["search"]["best"]["settings"] == {"trainers.right.optimiser.learning_rate": "0.1"}
    assert len({member["metrics"]["left.validation.loss"] for member in study["members"]}) == 1
    code, _, err = sigma("search", "two.toml", "--set", "search.minimise=middle.validation.loss")
    assert (code, "begins with no trainer (got 'middle.validation.loss'). There is left, right." in err) == (2, True)


@pytest.mark.long
def test_warnings_of_trials_are_sentences(sigma, tmp_path, monkeypatch):
    (tmp_path / "warning_rows.py").write_text(
        "import warnings\nimport numpy as np\nfrom attrs import define\nfrom sigma_data import Arrays\n"
        "@define(eq=False)\nclass Rows(Arrays):\n"
        "    def __init__(self):\n"
        "        warnings.warn('nine rows')\n"
        "        super().__init__(inputs=np.eye(9, dtype='f'), targets=np.arange(9) % 2)\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    text = FILE.replace('"iris"', "{ python = 'warning_rows:Rows' }\nvalidation_split = 0.3")
    text = text.replace("input(4)", "input(9)").replace("output(3)", "output(2)").replace("batch_size = 10", "")
    Path("rows.toml").write_text(text)
    process = start("search", "rows.toml", "--trials", "2", "--trust", "warning_rows")
    _, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    assert err.count("warning: nine rows\n") >= 3  # one of the check, one of each trial
    assert "warning_rows.py" not in err


# -- mistakes ----------------------------------------------------------------------------------------------------------
RATE = "search.space={ 'trainer.optimiser.learning_rate' = "


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            ["search.space={ 'trainer.optimiser.learning_rat' = { low = 0.1, high = 0.2 } }"],
            "'learning_rat'. Did you mean 'learning_rate'?",
        ),
        (["search.space={ 'trainer.epochz' = { low = 1, high = 2 } }"], "'epochz'. Did you mean 'epochs'?"),
        ([RATE + "{ low = -1, high = 0.2 } }"], "learning_rate"),
        ([RATE + "{ low = 0.2, high = 0.2 } }"], "must be finite and above low (got 0.2, and low is 0.2)."),
        ([RATE + "{ low = 0.2, high = nan } }"], "must be finite and above low (got nan, and low is 0.2)."),
        ([RATE + "{ low = -inf, high = 1 } }"], "must be finite (got -inf)."),
        ([RATE + "{ low = 0, high = 1, log = true } }"], "must be above 0, as log is true (got 0)."),
        ([RATE + "{ low = 0.1 } }"], "needs low and high, or choices."),
        ([RATE + "{ low = 0.1, choices = [1] } }"], "there are choices as well."),
        ([RATE + "{ choices = [] } }"], "must have at least one value."),
        ([RATE + "{ low = 0.1, high = 1, step = 0 } }"], "must be a number above 0 (got 0)."),
        ([RATE + "{ low = 0.1, high = 1, step = 0.1, log = true } }"], "a range with log has no steps."),
        ([RATE + "{ low = 1, high = 3, step = 0.5 } }"], "must be a whole number, as low and high are (got 0.5)."),
        ([RATE + "{ low = 0.1, hihg = 1 } }"], "has no setting 'hihg'. Did you mean 'high'?"),
        (["search.space={ 'run.name' = { choices = ['a', 'b'] } }"], "cannot be searched: all trials share it."),
        (["search.space={ 'run.\"name\"' = { choices = ['a', 'b'] } }"], "cannot be searched: all trials share it."),
        (["search.space={ 'run' = { choices = [{ name = 'a' }] } }"], "cannot be searched: all trials share it."),
        (["search.space={ 'search.parallel' = { low = 1, high = 2 } }"], "cannot be searched: all trials share it."),
        (["search.space={ 'run.seed=3 #' = { low = 1, high = 2 } }"], "is no key (got 'run.seed=3 #')."),
        (["search.space={ 'run.se ed' = { low = 1, high = 2 } }"], "is no key (got 'run.se ed')."),
        (
            [RATE + "{ choices = [0.1] }, 'trainer.\"optimiser\".learning_rate' = { choices = [0.2] } }"],
            "'trainer.optimiser.learning_rate' sets it as well. Search one of them.",
        ),
        (
            [RATE + "{ choices = [0.1] }, 'trainer.optimiser' = { choices = ['adam'] } }"],
            "'trainer.optimiser.learning_rate' sets it as well. Search one of them.",
        ),
        (["search.space={}"], "has no settings to search."),
        (["search.sampler=grid"], "trainer.optimiser.learning_rate: a grid needs choices or a step."),
        (["search.maximise=validation.acuracy"], "search.maximise: reads 'validation.acuracy', which nothing here"),
        (["search.maximise=validation.acuracy"], "Did you mean 'validation.accuracy'?"),
        (["search.maximise=optimiser.learning_rate"], "search.maximise: is no metric of a trial (got 'optimiser."),
        (["search.maximise=phases.burst"], "search.maximise: is no metric of a trial (got 'phases.burst')."),
        (["search.maximise=trainer.seconds"], "search.maximise: is no metric of a trial (got 'trainer.seconds')."),
        (["search.maximise=goal"], "search.maximise: is no metric of a trial (got 'goal')."),
        (["search.minimise=validation.loss"], "there is minimise as well. Give one of them."),
        (["search.prune.from=2 seconds"], "prune.from: must be in epochs or iterations"),
        (["search.prune.type=mean"], "must be 'median' or 'halving'"),
        (["search.attempts=0"], "search.attempts"),
        (["hooks.trial={ type = 'stop', when = 'epoch reaches 3' }"], "hooks.trial: is the name of the hook that a"),
        (["data.dataset=irsi"], "irsi"),
    ],
)  # fmt: skip
def test_what_is_wrong_ends_a_search_before_training(sigma, options, message):
    code, out, err = sigma("search", "flowers.toml", *(word for option in options for word in ("--set", option)))
    assert (code, out) == (2, ""), err
    assert message in err
    assert len(err.splitlines()) == 1
    assert "Traceback" not in err
    checked = sigma("check", "flowers.toml", *(word for option in options for word in ("--set", option)))
    assert checked == (2, "", err)
    assert not Path("runs").exists()


def test_a_search_is_checked_and_nothing_is_trained(sigma):
    code, out, err = sigma("check", "flowers.toml")
    assert (code, out, err.splitlines()[-1]) == (0, "", "ok")
    assert sigma("search", "flowers.toml", "--check", "--trials", "9") == (0, "", "ok: 9 trials\n")
    assert sigma("check", "flowers.toml", "--json")[0] == 0
    assert not Path("runs").exists()
    assert sigma("search", "--resume", "runs/x", "--check")[2].startswith("--check: cannot change")


def test_a_search_whose_data_must_be_downloaded_is_checked_without_them(sigma, monkeypatch, tmp_path):
    monkeypatch.setenv("SIGMA_CACHE", str(tmp_path / "empty"))
    text = FILE.replace('"iris"', '"mnist"').replace("input(4)", "input(28, 28) + flatten()").replace("(3)", "(10)")
    Path("digits.toml").write_text(text)
    assert (
        sigma("check", "digits.toml")[2].splitlines()[-1] == "ok, except for the data, which must be downloaded first"
    )
    code, _, err = sigma("check", "digits.toml", "--set", "search.space={ 'trainer.epochz' = { low = 1, high = 2 } }")
    assert (code, "Did you mean 'epochs'?" in err) == (2, True)


def test_a_search_is_not_checked_where_the_plugin_is_missing(sigma):
    code, _, err = sigma("check", "flowers.toml", "--no-plugin", "sigma-search")
    assert code == 0
    assert "warning: the table [search] is not checked, as the plugin of `sigma search` is not installed" in err


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("trials = 7", "search: has no number of trials."),
        ('maximise = "validation.accuracy"', "search: has no goal."),
    ],
)
def test_a_missing_key_is_reported_with_its_line(sigma, line, message):
    Path("flowers.toml").write_text(FILE.replace(line, ""))
    code, _, err = sigma("search", "flowers.toml")
    assert (code, err.startswith("flowers.toml:"), message in err) == (2, True, True), err


def test_the_line_of_an_unknown_address_is_named(sigma):
    Path("flowers.toml").write_text(FILE.replace('"trainer.optimiser.learning_rate"', '"trainer.optimiser.rate"'))
    code, _, err = sigma("search", "flowers.toml")
    number = next(n for n, line in enumerate(FILE.splitlines(), 1) if line.startswith('"trainer.optimiser.learning'))
    assert code == 2
    assert err.startswith(f"flowers.toml:{number}: search.space.")
    assert "has no setting 'rate'" in err


def test_a_run_of_the_file_and_other_folders_are_no_search(sigma):
    code, _, err = sigma("run", "flowers.toml", "--quiet")
    assert (code, err) == (0, "")
    (run,) = Path("runs").iterdir()
    for wrong in (run, Path("nowhere")):
        code, _, err = sigma("search", "--resume", wrong)
        assert code == 2, err
    assert sigma("search", "iris")[0] == 2
    code, _, err = sigma("search", "--resume", run, "--parallel", "2")
    assert (code, err) == (2, "--parallel: cannot change when a search is resumed. Leave it out, or begin another.\n")


@pytest.mark.long
def test_the_values_of_a_trial_that_are_damaged_are_reported(sigma):
    sigma("search", "flowers.toml", "--trials", "2", "--quiet")
    (the_study() / "0" / "trial.json").write_text('{"values": [[1]]}')
    code, _, err = sigma("search", "--resume", the_study(), "--trials", "3")
    assert code == 2
    assert "0/trial.json: the values of this trial are missing or damaged" in err


SIZES = "{ low = 1, high = 9, step = 2 }"
SPACE = f"search.space={{ 'data.batch_size' = {SIZES}, 'run.seed' = {{ choices = [1, 2] }} }}"
EDITS = [
    ("low = 1", "low = 8"),
    ("high = 9", "high = 2"),
    ("step = 2", "step = 5"),
    ("low = 1\nhigh = 9\nstep = 2", "choices = [16]"),
    ("choices = [1, 2]", "choices = [1.0, 2.0]"),
    ("choices = [1, 2]", "low = 4\nhigh = 5"),
    ('[search.space."run.seed"]', '[search.space."trainer.epochs"]\nchoices = [1, 2]\n[search.space."run.seed"]'),
    ('[search.space."run.seed"]\nchoices = [1, 2]', ""),
]


@pytest.mark.long
def test_a_space_that_was_edited_is_reported(sigma):
    options = ["--set", SPACE, "--set", "trainer.epochs=1", "--set", "search.sampler=random"]
    code, _, err = sigma("search", "flowers.toml", "--trials", "3", "--quiet", *options)
    assert code == 0, err
    path = the_study() / "study.toml"
    text = path.read_text()
    for line, other in EDITS:
        assert line in text
        path.write_text(text.replace(line, other))
        code, _, err = sigma("search", "--resume", the_study(), "--trials", "4")
        assert (code, ": the space has changed since trial " in err, len(err.splitlines())) == (2, True, 1), err
    assert read_study(the_study()).search["trials"] == 3
    path.write_text(text.replace("high = 9", "high = 11"))  # which has the values of all trials
    code, _, err = sigma("search", "--resume", the_study(), "--trials", "4", "--quiet")
    assert (code, err) == (0, "")


@pytest.mark.long
def test_another_version_of_optuna_is_warned_of(sigma):
    sigma("search", "flowers.toml", "--trials", "2", "--quiet")
    path = the_study() / "study.json"
    path.write_text(path.read_text().replace(f'"optuna": "{VERSION}"', '"optuna": "4.5.0"'))
    _, _, err = sigma("search", "--resume", the_study())
    assert err.startswith(f"warning: began with Optuna 4.5.0, and this is {VERSION}: other values may be proposed")


def test_a_study_of_seeds_is_no_search(sigma):
    sigma("run", "flowers.toml", "--seeds", "2", "--epochs", "1", "--quiet")
    with pytest.raises(SigmaConfigError, match=r"is not a search. Pass a folder that `sigma search` wrote."):
        sigma_search.SearchResults.read(the_study())
