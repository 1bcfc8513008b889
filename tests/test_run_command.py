"""``sigma run`` and related commands, from the command line to the exit code."""

from __future__ import annotations

import json
import os
import re
import resource
import signal
import subprocess
import sys
import time
import tomllib
from contextlib import suppress
from pathlib import Path

import pytest
import tomlkit

from sigma_kernel import Environment, signals
from sigma_kernel.errors import SigmaPluginError
from sigma_kernel.plugins import rooms
from sigma_kernel.signals import ENDING
from sigma_run.launcher.group import main
from sigma_store.checkpoints import store as checkpoint
from sigma_store.curves import rows

pytestmark = pytest.mark.rooms

XOR = """
format = 1

[run]
name = "small"

[data]
dataset = "xor"
batch_size = 4

[network]
architecture = 'input(2) + dense(8, activation="tanh") + output(2) + softmax_cross_entropy()'

[trainer]
optimiser = { type = "adam", learning_rate = 0.05 }

[hooks.score]
type = "accuracy"

[hooks.finish]
type = "stop"
when = "epoch reaches 20"
"""
LONG = ["--set", "hooks.finish.when=epoch reaches 100000000"]


@pytest.fixture
def file(tmp_path, monkeypatch):
    """Return the name of a small configuration in an empty folder, which is the working directory."""
    monkeypatch.chdir(tmp_path)
    Path("small.toml").write_text(XOR, encoding="utf-8")
    return "small.toml"


@pytest.fixture
def sigma(capsys):
    """Return a function that runs the command, and returns its exit code and output."""

    def run(*arguments):
        code = main(list(arguments))
        said = capsys.readouterr()
        assert "Traceback" not in said.err
        return code, said.out, said.err

    return run


# -- run ---------------------------------------------------------------------------------------------------------------
def test_a_run_writes_its_folder_and_prints_the_saved_summary(file, sigma):
    code, out, err = sigma("run", file, "--json", "--seed", "3")
    summary = json.loads(out)
    folder = Path(summary["folder"])
    assert code == 0
    assert (summary["run"], summary["status"], summary["seed"], summary["epochs"]) == ("small", "finished", 3, 20)
    assert summary["backend"] == "numpy"
    assert set(summary["metrics"]) == {"training.loss", "validation.loss", "validation.accuracy"}
    assert json.loads((folder / "summary.json").read_text()) == {"format": 1, **summary}
    stored = tomllib.loads((folder / "config.toml").read_text())
    assert stored["run"]["seed"] == 3
    assert 'sigma-layers:dense(8, activation="sigma-layers:tanh")' in stored["network"]["architecture"]
    assert checkpoint.list_checkpoints(folder, "trainer")[-1].name == "20"
    assert "small finished: 20 epochs" in err


def test_retraining_from_a_run_folders_configuration_gives_the_same_bits(file, sigma):
    first = json.loads(sigma("run", file, "--json", "--quiet")[1])
    again = json.loads(sigma("run", f"{first['folder']}/config.toml", "--json", "--quiet")[1])
    assert again["parameters_sha256"] == first["parameters_sha256"]
    assert again["metrics"] == first["metrics"]
    other = json.loads(sigma("run", file, "--json", "--quiet", "--set", "run.seed=1")[1])
    assert other["parameters_sha256"] != first["parameters_sha256"]


def test_a_quiet_run_prints_nothing(file, sigma):
    assert sigma("run", file, "--quiet") == (0, "", "")


@pytest.mark.parametrize("settings", ["file", "option"])
def test_a_monitor_that_is_named_keeps_the_settings_that_it_has(file, sigma, settings):
    if settings == "file":
        Path(file).write_text(XOR + '\n[monitors.console]\ntype = "console"\ninterval = 3.0\n', encoding="utf-8")
    given = ["--set", "monitors.console.interval=3.0"] if settings == "option" else []
    _, out, _ = sigma("run", file, "--monitor", "console", "--json", *given)
    stored = tomllib.loads((Path(json.loads(out)["folder"]) / "config.toml").read_text())["monitors"]["console"]
    assert stored["interval"] == 3.0


def test_the_console_monitor_is_the_default(file, sigma):
    _, out, err = sigma("run", file, "--json")
    text = (Path(json.loads(out)["folder"]) / "config.toml").read_text()
    assert "monitors" not in tomllib.loads(text)  # it is the terminal's, not the run's
    assert "epoch " in err
    code, _, err = sigma("run", file, "--monitor", "consol")
    assert code == 2
    assert err.startswith("--monitor: monitor 'consol': ")
    assert "Did you mean 'console'?" in err


def test_a_backend_and_a_seed_of_the_command_line_are_checked_as_in_the_file(file, sigma):
    code, _, err = sigma("run", file, "--backend", "nump")
    assert (code, err) == (2, "--backend: backend 'nump': no plugin offers it. Did you mean 'numpy'?\n")
    assert sigma("run", file, "--seed", "-1")[0] == 2
    assert json.loads(sigma("run", file, "--backend", "numpy", "--json", "--quiet")[1])["backend"] == "numpy"


def test_a_plugin_that_is_not_installed_ends_with_code_3(file, sigma, monkeypatch):
    monkeypatch.setitem(rooms._read_rooms()["planned"], "sigma-room", {"operator": "rare"})
    code, _, err = sigma("run", file, "--set", "trainer.operator=rare")
    assert code == 3
    assert err.endswith("sigma-room offers it, but is not installed. It is planned; there is no release yet.\n")


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (["trainer.optimiser.learning_rate=banana"], "must be a number (got 'banana')"),
        (["hooks.finish.wehn=1"], "Did you mean 'when'?"),
        (["hooks.finish.when=validation.acuracy reaches 1"], "'validation.acuracy', which nothing here publishes"),
        (["network.architecture=input(3) + output(2) + softmax_cross_entropy()"], "Write input(2)"),
        (["network.architecture=input(2) + output(2"], "column 20: expected"),
        (["data.dataset=csv"], "data.path: is missing. Give it a path."),
    ],
)
def test_an_invalid_configuration_exits_with_code_2_and_leaves_no_files(file, sigma, overrides, message):
    code, out, err = sigma("run", file, *(part for text in overrides for part in ("--set", text)))
    assert (code, out) == (2, "")
    assert message in err
    assert os.listdir() == [file]


ENDLESS = XOR[: XOR.index("[hooks.finish]")] + '[hooks.guard]\ntype = "nan_guard"\nthen = "stop"\n'


@pytest.mark.parametrize("command", ["check", "run"])
def test_a_file_that_nothing_ends_is_refused_at_its_line_with_all_other_errors(sigma, tmp_path, monkeypatch, command):
    monkeypatch.chdir(tmp_path)
    Path("small.toml").write_text(ENDLESS)
    line = ENDLESS[: ENDLESS.index("[trainer]")].count("\n") + 1
    code, _, err = sigma(command, "small.toml")
    assert code == 2
    assert err.startswith(f"small.toml:{line}: trainer.epochs: nothing ends its training. Set `epochs = 30`, or inf")
    code, _, err = sigma(command, "small.toml", "--set", "hooks.score.on=tset", "--set", "data.batch_size=7")
    assert (code, err.count("\n")) == (2, 3)
    assert "trainer.epochs: nothing ends" in err
    if command == "run":
        assert sigma(command, "small.toml", "--epochs", "2", "--quiet") == (0, "", "")


TWO = """format = 1
[trainers.a]
optimiser = "adam"
[trainers.b]
optimiser = "adam"
epochs = 2
"""
PARTS = """[trainers.{0}.data]
dataset = "xor"
[trainers.{0}.network]
architecture = "input(2) + output(2) + softmax_cross_entropy()"
"""


def test_one_of_several_trainers_that_nothing_ends_is_named(sigma, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("two.toml").write_text(TWO + PARTS.format("a") + PARTS.format("b"))
    code, _, err = sigma("check", "two.toml")
    assert (code, err.count("\n")) == (2, 1)
    assert err.startswith("two.toml:2: trainers.a.epochs: nothing ends its training.")


def test_a_mistake_in_the_hook_that_ends_training_is_the_only_one_reported(file, sigma):
    code, _, err = sigma("check", file, "--set", "hooks.finish.type=stopp")
    assert (code, err.count("\n")) == (2, 1)
    assert "Did you mean 'stop'?" in err


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (None, "no.csv"),
        ("", "data.csv"),
        ("a,b,target\n", "data.csv"),
        ("a,b,target\n1,2,0\n1,nan,1\n", "a value is missing"),
        ("a,b,target\n1,2,0\n1,x,1\n", "'x'"),
        (
            "a,b,target\n" + "1,2,0\n3,4,1\n" * 4 + "5,6,2\n" * 2,
            "holds 3 classes: 0, 1, 2; the network has 2",
        ),
        ("a,b,target\n1,2,0\n3,4,1\n", "larger than the data"),
    ],
)
def test_invalid_data_is_one_clear_error_and_leaves_no_files(file, sigma, rows, message):
    path = "no.csv" if rows is None else "data.csv"
    if rows is not None:
        Path(path).write_text(rows)
    dataset = (
        f'data={{ dataset = "csv", path = "{path}", target = "target", split = {{ training = 1.0 }}, batch_size = 4 }}'
    )
    code, out, err = sigma("run", file, "--set", dataset, "--set", "hooks.score.on=training")
    assert code in (1, 2)
    assert out == ""
    assert message in err
    assert not Path("runs").exists()


def test_a_failed_run_is_marked_in_its_summary_and_exit_code(file, sigma):
    network = 'network.architecture=input(2) + output(2) + squared_difference(targets="inputs")'
    rate, score = "trainer.optimiser.learning_rate=1e38", "hooks.score.type=loss"
    code, out, err = sigma("run", file, "--json", "--set", rate, "--set", network, "--set", score)
    assert code == 1
    summary = json.loads(out)
    assert summary["status"] == "failed"
    assert summary["why"].startswith("trainer: the loss is ")
    assert summary["why"] in err
    (row,) = json.loads(sigma("runs", "--json")[1])["runs"]
    assert row["why"] == summary["why"]


@pytest.mark.parametrize("debug", [[], ["--debug"]])
def test_a_failed_run_is_shown_after_its_error_was_printed_until_nobody_looks(file, sigma, monkeypatch, capsys, debug):
    seen = []

    def linger(environment):
        seen.append((environment.status(), environment.why(), capsys.readouterr().err))

    monkeypatch.setattr(Environment, "linger", linger)
    network = 'network.architecture=input(2) + output(2) + squared_difference(targets="inputs")'
    failing = ["--set", "trainer.optimiser.learning_rate=1e38", "--set", network, "--set", "hooks.score.type=loss"]
    assert main([*debug, "run", file, *failing]) == 1
    ((status, why, printed),) = seen
    assert status == "failed"
    assert why.startswith("trainer: the loss is ")
    assert printed.endswith(f"{why}\n")
    assert ("Traceback" in printed) is bool(debug)
    assert capsys.readouterr().err == ""  # it is told once
    assert main(["run", file]) == 0
    assert seen[1][:2] == ("finished", "")


def test_a_run_folder_that_cannot_be_created_is_an_error_that_names_it(file, sigma):
    Path("taken").write_text("in the way")
    code, out, err = sigma("run", file, "--json", "--set", "run.folder=taken")
    assert code == 2
    assert json.loads(out)["status"] == "failed"
    assert "taken" in err
    assert "Choose another run.folder" in err


def test_several_trainers_run_side_by_side_and_have_their_names_in_the_summary(file, sigma):
    tables = {name: table for name, table in tomllib.loads(XOR).items() if name not in ("format", "run")}
    parts = {**tables.pop("trainer"), **tables}
    text = tomlkit.dumps({"format": 1, "trainers": {"a": parts, "b": {**parts, "optimiser": "adagrad"}}})
    Path("two.toml").write_text(text, encoding="utf-8")
    code, out, _ = sigma("run", "two.toml", "--json", "--quiet")
    assert code == 0
    assert {f"{name}.validation.accuracy" for name in "ab"} <= set(json.loads(out)["metrics"])
    assert "b.validation.accuracy" in sigma("evaluate", json.loads(out)["folder"])[1]
    code, _, err = sigma(
        "run", "two.toml", "--set", "trainers.b.data.dataset=iris", "--set", "trainers.b.hooks.score.top=0"
    )
    assert code == 2
    wrong, shapes = err.splitlines()
    assert wrong == "--set trainers.b.hooks.score.top: must be at least 1 (got 0)."
    assert "trainers.b.network.architecture: 0-input: input(2,): the samples of section 'inputs' have" in shapes


def test_a_recipe_can_be_run_by_name(file, sigma):
    code, out, _ = sigma("run", "xor", "--json", "--quiet")
    assert code == 0
    assert json.loads(out)["metrics"]["validation.accuracy"] == 1.0
    code, _, err = sigma("run", "xro")
    assert code == 2
    assert "Did you mean 'xor'?" in err
    assert sigma("run", "none.toml")[0] == 2


# -- signals -----------------------------------------------------------------------------------------------------------
BESIDE = """
import sigma_run.__main__ as launcher

def interrupted():
    raise KeyboardInterrupt({})

class Left:
    def __del__(self):
        raise {}

launcher.main = {}
launcher.start()
"""


@pytest.mark.parametrize(("given", "code"), [("15", 143), ("", 130)])
def test_an_interruption_beside_the_command_sets_the_exit_code(given, code):
    text = BESIDE.format(given, "KeyError", "interrupted")
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (code, "")


@pytest.mark.parametrize(("error", "told"), [("KeyboardInterrupt(15)", False), ("KeyError('lost')", True)])
def test_an_interruption_in_a_destructor_is_not_told_other_errors_are(error, told):
    text = BESIDE.format("", error, "lambda: [Left().__class__, 0][1]")
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True)
    assert done.returncode == 0
    assert ("Exception ignored" in done.stderr) is told


ALIVE = """
import sigma_run.__main__ as launcher

open("alive", "w").close()
launcher.start()
"""


def _heed_signals():
    """Undo the effect of background jobs and nohup, whose children ignore Ctrl-C and SIGHUP."""
    for number in ENDING:
        signal.signal(number, signal.SIG_DFL)


def launched(program, *arguments):
    """Start a Python program in a process that heeds signals."""
    return subprocess.Popen(
        [sys.executable, "-c", program, *arguments],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=_heed_signals,
    )  # fmt: skip


def until(holds):
    give_up = time.monotonic() + 60
    while not holds() and time.monotonic() < give_up:
        time.sleep(0.01)


def appears(folder, pattern=""):
    """Wait until a file exists."""
    until(lambda: list(folder.glob(pattern)) if pattern else folder.exists())


def started(file, *more):
    """Start an endless run, and wait until it trains, and has written a row of metrics after the first line."""
    process = launched(ALIVE, "run", file, "--json", *LONG, *more)
    until(lambda: any([*rows(path, print)] for path in Path("runs").glob("*") if (path / "curves.bin").exists()))
    return process


@pytest.mark.parametrize(("number", "expected"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_a_signal_finishes_the_step_saves_and_sets_the_exit_code(file, number, expected):
    process = started(file)
    process.send_signal(number)
    out, err = process.communicate(timeout=60)
    summary = json.loads(out)
    assert process.returncode == expected
    assert summary["status"] == "interrupted"
    assert checkpoint.list_checkpoints(Path(summary["folder"]), "trainer")[-1].name == str(summary["iterations"])
    assert checkpoint.read(checkpoint.list_checkpoints(Path(summary["folder"]), "trainer")[-1])
    assert f"to continue: sigma resume {summary['folder']}\n" in err
    assert "Traceback" not in err


def test_two_simultaneous_signals_count_as_one(monkeypatch):
    seconds, heeded = [100.0], []
    monkeypatch.setattr(signals.time, "monotonic", lambda: seconds[0])
    with signals.Signals(heeded.append) as found:
        for later in (0.0, 0.1, 0.15, 0.05):  # programs such as timeout send one to the process and again to its group
            seconds[0] += later
            signal.raise_signal(signal.SIGINT)
        assert (heeded, found.ending) == ([signal.SIGINT], 1)
        seconds[0] += signals.TWICE
        signal.raise_signal(signal.SIGTERM)
        assert (heeded, found.ending) == ([signal.SIGINT, signal.SIGTERM], 2)
        seconds[0] += signals.TWICE
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)


def test_an_early_signal_whose_exception_was_dropped_reaches_training():
    with suppress(KeyboardInterrupt):  # as Python does in a destructor or a callback of the garbage collector
        signals.terminate(signal.SIGTERM, None)
    heeded = []
    with signals.Signals(heeded.append):
        assert heeded == [signal.SIGTERM]
    with signals.Signals(heeded.append):
        assert len(heeded) == 1


def test_an_early_signal_that_a_library_turned_into_an_error_ends_the_command(file, sigma, monkeypatch):
    def interrupted(*given):
        with suppress(KeyboardInterrupt):
            signals.terminate(signal.SIGTERM, None)
        raise SigmaPluginError("numpy cannot be imported")

    monkeypatch.setattr("sigma_run.launcher.run.open_document", interrupted)
    assert sigma("run", file) == (143, "", "")
    assert sigma("run", "no/such.toml")[0] == 143  # a signal each time


def test_sigusr1_saves_a_checkpoint_and_training_continues(file):
    process = started(file)
    process.send_signal(signal.SIGUSR1)
    appears(Path("runs"), "*/checkpoints/trainer/[0-9]*")
    assert process.poll() is None
    process.send_signal(signal.SIGINT)
    folder = Path(json.loads(process.communicate(timeout=60)[0])["folder"])
    assert len(checkpoint.list_checkpoints(folder, "trainer")) == 2


SLEEPER = """
import time
from sigma_kernel import Environment
from sigma_hooks import FunctionHook
from sigma_run.launcher import run

made = run.build
def build(*arguments):
    environment = made(*arguments)
    def sleep(context):
        open("asleep", "w").close()
        time.sleep(600)
    environment.trainer("trainer").hooks["sleep"] = FunctionHook(sleep)
    return environment
run.build = build
from sigma_run.__main__ import start
start()
"""


@pytest.mark.long_cases("15")
@pytest.mark.parametrize("first", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_second_signal_aborts_immediately_and_still_prints_the_summary(file, first):
    process = launched(SLEEPER, "run", file, "--json", *LONG)
    appears(Path("asleep"))
    process.send_signal(first)
    said = iter(process.stderr.readline, "")
    assert next((line for line in said if "interrupt again to abort" in line), "")  # the first one was received
    time.sleep(2 * signals.TWICE)
    assert process.poll() is None
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    summary = json.loads(out)
    assert process.returncode == 128 + first
    assert (summary["status"], summary["parameters_sha256"]) == ("interrupted", None)
    assert json.loads((Path(summary["folder"]) / "summary.json").read_text())["status"] == "interrupted"
    assert "Traceback" not in err


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("moment", [0.0, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.6])
def test_a_signal_at_any_moment_leaves_a_complete_run_folder_or_none(file, number, moment):
    process = launched(ALIVE, "run", file, "--json", "--quiet", *LONG)
    appears(Path("alive"))
    time.sleep(moment)
    process.send_signal(number)
    out, err = process.communicate(timeout=60)
    assert process.returncode in (128 + number, -number)
    assert "Traceback" not in err
    for folder in Path("runs").glob("*"):
        assert json.loads(out)["folder"] == str(folder.absolute())
        assert {"config.toml", "plugins.json", "journal.jsonl", "summary.json"} <= set(os.listdir(folder))
        assert checkpoint.read(checkpoint.list_checkpoints(folder, "trainer")[-1])


# -- evaluate ----------------------------------------------------------------------------------------------------------
def test_evaluating_a_run_gives_the_values_that_it_measured_itself(file, sigma):
    summary = json.loads(sigma("run", file, "--json", "--quiet")[1])
    code, out, _ = sigma("evaluate", summary["folder"], "--json")
    found = json.loads(out)
    assert code == 0
    assert found["metrics"] == {k: v for k, v in summary["metrics"].items() if k.startswith("validation.")}
    assert found["on"] == "validation"
    assert "training.accuracy" in sigma("evaluate", summary["folder"], "--on", "training")[1]


def test_a_metric_is_evaluated_as_its_hook_is_set(file, sigma):
    once = ("--set", "hooks.score.top=2", "--set", "hooks.finish.when=epoch reaches 1")
    folder = json.loads(sigma("run", file, "--json", "--quiet", *once)[1])["folder"]
    found = json.loads(sigma("evaluate", folder, "--json", "--metric", "accuracy")[1])["metrics"]
    assert found["validation.accuracy_top2"] == 1  # two of two classes
    assert found["validation.accuracy"] < 1


def test_the_previous_checkpoint_replaces_a_damaged_one(file, sigma):
    folder = Path(json.loads(sigma("run", file, "--json", "--quiet")[1])["folder"])
    before = folder / "checkpoints" / "trainer" / "20"
    checkpoint.write(before.with_name("30"), checkpoint.read(before))
    with (before.with_name("30") / "state.safetensors").open("r+b") as state:
        state.seek(-1, os.SEEK_END)
        state.write(b"?")
    code, _, err = sigma("evaluate", str(folder))
    assert code == 0
    assert "30/state.safetensors: is damaged" in err
    assert str(before) in err
    (before / "manifest.json").write_text("{}")
    code, _, err = sigma("evaluate", str(folder))
    assert code == 1
    assert "checkpoints/trainer: has no intact checkpoint" in err


def test_evaluating_an_invalid_run_or_split_is_refused(file, sigma):
    assert sigma("evaluate", "nowhere")[0] == 2
    folder = json.loads(sigma("run", file, "--json", "--quiet")[1])["folder"]
    code, _, err = sigma("evaluate", folder, "--on", "tets")
    assert code != 0
    assert "tets" in err


# -- check, explain, init ----------------------------------------------------------------------------------------------
def test_check_accepts_a_valid_file_and_writes_nothing(file, sigma):
    assert sigma("check", file) == (0, "", "ok\n")
    said = json.loads(sigma("check", file, "--json")[1])
    assert (said["ok"], said["data"], len(said)) == (True, True, 3)
    assert [finding["rule"] for finding in said["findings"]] == ["shared-rows"]  # it validates on the same four cases
    assert os.listdir() == [file]


def test_check_reports_all_mistakes_together(file, sigma):
    Path(file).write_text(XOR.replace("batch_size", "batch_sise").replace("0.05", "'fast'"), encoding="utf-8")
    code, out, err = sigma("check", file, "--json")
    assert code == 2
    assert json.loads(out) == {"ok": False, "errors": err.strip().split("\n")}
    assert [row.split(":")[1] for row in err.strip().split("\n")] == ["9", "15"]


def test_check_knows_the_activations_that_an_architecture_names(file, sigma):
    architecture = "network.architecture=input(2) + output(2, activation='tanhh') + softmax_cross_entropy()"
    code, _, err = sigma("check", file, "--set", architecture)
    assert code == 2
    assert "activation 'tanhh': no plugin offers it. Did you mean 'tanh'?" in err


def test_check_names_the_line_of_a_network_that_does_not_fit(file, sigma):
    Path(file).write_text(XOR.replace("input(2)", "input(3)"), encoding="utf-8")
    code, _, err = sigma("check", file)
    assert code == 2
    assert err.startswith("small.toml:12: network.architecture: 0-input: ")


def test_check_names_the_line_of_a_hook_that_reads_an_unknown_value(file, sigma):
    Path(file).write_text(XOR.replace("epoch reaches 20", "validation.acuracy reaches 1"), encoding="utf-8")
    code, _, err = sigma("check", file)
    assert code == 2
    assert err.startswith("small.toml:22: hooks.finish.when: reads 'validation.acuracy', which nothing here publishes.")


def test_check_reads_local_data(file, sigma):
    code, _, err = sigma("check", file, "--set", "data.batch_size=5")
    assert (code, err.partition(".")[0]) == (2, "--set data")
    assert err.startswith("--set data.batch_size: a batch of 5 is larger than the data, 4 rows.")


def test_check_downloads_nothing(file, sigma, monkeypatch):
    cache = "--set", "data.cache=cache"
    assert sigma("check", "mnist", *cache) == (0, "", "ok, except for the data, which must be downloaded first\n")
    code, _, err = sigma("check", "mnist", *cache, "--set", "network.architecture=input(28, 28) + reshape(5)")
    assert code == 2
    assert "--set network.architecture: 1-reshape: " in err
    assert "SIGMA_OFFLINE" not in os.environ


def test_explain_shows_the_rule_of_each_parameter_and_the_reasons_for_the_hook_order(file, sigma):
    rules = ["--set", "initialisers.all={ match = '**.weights', type = 'gaussian', deviation = 0.5 }",
             "--set", "trainer.optimiser.settings.slow={ match = '1-dense.*', learning_rate = 0.01 }",
             "--set", "trainer.optimiser.settings.still={ match = '2-output.biases', frozen = true }",
             "--set", "hooks.finish.when=validation.accuracy reaches 1"]  # fmt: skip
    code, out, _ = sigma("explain", file, "--json", *rules)
    found = json.loads(out)["trainers"]["trainer"]
    parameters = {parameter["address"]: parameter for parameter in found["parameters"]}
    assert code == 0
    assert [layer["parameters"] for layer in found["layers"]] == [0, 24, 18, 0]
    assert parameters["1-dense.weights"]["rule"] == "all"
    assert parameters["1-dense.weights"]["settings"]["learning_rate"] == {"value": 0.01, "rule": "slow"}
    assert parameters["2-output.weights"]["settings"]["learning_rate"] == {"value": 0.05, "rule": None}
    assert parameters["2-output.biases"]["rule"] is None
    assert parameters["2-output.biases"]["frozen"]
    assert [hook["name"] for hook in found["hooks"]] == ["score", "finish"]
    assert found["reasons"] == ["score before finish: finish reads validation.accuracy, which score writes"]
    assert found["bursts"] == {"iterations_per_epoch": 1, "first": 1, "ended_by": ["score", "finish"]}
    assert found["memory"]["state_bytes"] > (40 * 3 + 2) * 4  # parameters, and Adam's two moments unless frozen
    assert found["work"]["batch"] == 4
    assert found["work"]["flops"] > 2 * 4 * (2 * 8 + 8 * 2) * 2 + 2 * 4 * 8 * 2  # both products, and three gradients
    assert (
        3 * 4 * 40 < found["work"]["bytes"] < found["memory"]["peak_bytes"] + 2 * found["memory"]["state_bytes"] + 999
    )

    code, out, _ = sigma("explain", file, *rules)
    assert code == 0
    assert "frozen" in out
    assert re.search(r"^1-dense.weights .*\(rule all\) .*learning_rate=0.01 \(rule slow\)", out, re.MULTILINE)
    assert "0.0 (layer default)" in out
    assert "score before finish" in out
    assert re.search(r"^work: +[\d.]+ kFLOP a step of 4 rows, which reads and writes [\d.]+ KiB at least$", out, re.M)
    assert re.search(r"^BLAS: +\S+ \d", out, re.MULTILINE)
    assert re.search(r"^BLAS: +(OpenBLAS|MKL)", sigma("explain", file, "--set", "run.backend=numba")[1], re.MULTILINE)


@pytest.mark.parametrize("columns", [80, 200])
def test_what_explain_prints_fits_the_terminal(file, sigma, monkeypatch, columns):
    rule = "initialisers.all={match='**', type='he_normal', fan='in'}"
    given = [
        "--set",
        rule,
        "--set",
        "network.architecture=input(2) + dense(8) + residual(dense(8)) + output(2) + softmax_cross_entropy()",
    ]
    piped = sigma("explain", file, *given)[1]
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    monkeypatch.setenv("COLUMNS", str(columns))
    shown = sigma("explain", file, *given)[1]
    assert max(map(len, shown.splitlines())) <= columns
    assert shown.split() == piped.split()
    assert (max(map(len, piped.splitlines())) <= columns) == (shown == piped) == (columns == 200)


def test_explain_leaves_out_the_memory_of_a_step_that_a_backend_does_not_know(file, sigma):
    said = {backend: sigma("explain", file, "--set", f"run.backend={backend}")[1] for backend in ("numpy", "debug")}
    assert re.search(r"^memory: +\S+ KiB for the state, \S+ KiB at the peak of a step$", said["numpy"], re.MULTILINE)
    assert re.search(r"^memory: +\S+ KiB for the state$", said["debug"], re.MULTILINE)


def test_explain_draws_the_layers(file, sigma):
    assert sigma("explain", file, "--save", "layers.svg")[0] == 0
    drawn = Path("layers.svg").read_text()
    assert drawn.startswith("<svg")
    assert drawn.count("<circle") == 4
    code, _, err = sigma("explain", file, "--save", "layers.png")
    assert code == 2
    assert "--save: layers are drawn as SVG (got 'layers.png'). End the name in .svg." in err
    assert not Path("layers.png").exists()


def test_init_writes_a_configuration_and_never_overwrites_a_file(file, sigma):
    assert sigma("init", "xor", "--output", "mine.toml")[0] == 0
    assert sigma("check", "mine.toml")[0] == 0
    assert Path("mine.toml").read_text().startswith("# ")
    Path("mine.toml").write_text("precious")
    code, _, err = sigma("init", "xor", "--output", "mine.toml")
    assert code == 2
    assert "--force" in err
    assert Path("mine.toml").read_text() == "precious"
    assert sigma("init", "xor", "--output", "mine.toml", "--force")[0] == 0
    assert Path("mine.toml").read_text() != "precious"
    assert sigma("init")[0] == 0
    assert Path("digits.toml").is_file()
    assert sigma("init", "xor", "--output", "no/such/folder.toml")[0] == 2


def _full() -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (10, 10))


def test_init_on_a_full_disk_leaves_no_partial_file_and_keeps_the_old_one(file):
    def init(*more):
        command = [sys.executable, "-m", "sigma_run", "init", "xor", "--output", "mine.toml", *more]
        return subprocess.run(command, capture_output=True, text=True, preexec_fn=_full, check=False)

    said = "mine.toml: cannot be written: File too large. Choose another --output."
    ended = init()
    assert (ended.returncode, said in ended.stderr) == (2, True)
    assert os.listdir() == [file]
    Path("mine.toml").write_text("mine")
    assert init("--force").returncode == 2
    assert sorted(os.listdir()) == ["mine.toml", file]
    assert Path("mine.toml").read_text() == "mine"


def test_init_can_write_to_a_pipe(file, sigma):
    os.mkfifo("pipe")
    read = subprocess.Popen(["cat", "pipe"], stdout=subprocess.PIPE, text=True)
    assert sigma("init", "xor", "--output", "pipe", "--force")[0] == 0
    assert "[network]" in read.communicate()[0]
    assert Path("pipe").is_fifo()


@pytest.mark.parametrize("monitor", [[], ["--monitor", "console"]])
def test_quiet_silences_the_console_named_in_a_file_or_option(file, sigma, monitor):
    Path(file).write_text(XOR + '\n[monitors.screen]\ntype = "console"\n', encoding="utf-8")
    assert sigma("run", file, "--quiet", *monitor) == (0, "", "")
    folder = next(Path("runs").iterdir())
    stored = tomllib.loads((folder / "config.toml").read_text())
    assert "screen" in stored["monitors"]  # the console is used again when the run is resumed without --quiet
    again = ["--quiet", "--set", "hooks.finish.when=epoch reaches 22"]
    assert sigma("resume", str(folder), *again) == (0, "", "")
    assert sigma("replay", str(folder), "--quiet") == (0, "", "")
