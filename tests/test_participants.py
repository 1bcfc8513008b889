"""Plugins that take part in a run by name: they are told when it begins, ends and fails, and add options."""

from __future__ import annotations

import json
import re
import signal
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sigma_kernel import Environment, every, signals
from sigma_kernel.errors import SigmaComponentError, SigmaConfigError, SigmaPluginError, SigmaTrainingError
from sigma_kernel.plugins.specs import RunOption
from sigma_run.launcher.plugin_options import check_option
from sigma_testing import Do

pytestmark = pytest.mark.rooms
PAGE = Path(__file__).parents[1] / "docs" / "taking-part.md"
HEAD = """
from sigma_kernel import Component, RunOption, hookimpl

SIGMA_API = "1.0"


def note(path, text):
    with open(path, "a") as file:
        file.write(text)


@hookimpl
def sigma_components():
    return []


"""


@pytest.fixture
def watch(distribution: Callable[..., Any]) -> None:
    """Install the plugin of the page."""
    (text,) = re.findall(r":caption: acme_watch/plugin.py\n\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    assert distribution("acme-watch", text=text).state == "ready"


def begun(folder: Path | None = None, plugins: Any = ("acme-watch",), **settings: Any) -> Environment:
    sigma = Environment("watched", seed=0, folder=folder, plugins=plugins)
    draw = np.random.default_rng(0)
    sigma.create_trainer(
        data=(draw.normal(size=(24, 3)), draw.normal(size=(24, 1))), batch_size=8, optimiser="adam", backend="numpy",
        network="input(3) + output(1) + squared_difference()", **settings,
    )  # fmt: skip
    return sigma


def notes(folder: Path) -> list[str]:
    return (folder / "notes.txt").read_text().splitlines() if (folder / "notes.txt").exists() else []


def test_a_plugin_is_told_when_each_call_begins_and_ends(watch: None, tmp_path: Path) -> None:
    with begun(tmp_path, epochs=2) as sigma:
        sigma.trainer("trainer").fit(epochs=1, progress=False)
        sigma.run(progress=False)
    begins = "watched: begins to train trainer"
    assert notes(tmp_path)[::2] == [begins, begins]
    assert re.fullmatch("watched: (stopped|finished) after 3 iterations", notes(tmp_path)[1])
    assert notes(tmp_path)[3:] == ["watched: finished after 6 iterations"]


def test_installed_is_not_active(watch: None, tmp_path: Path) -> None:
    with begun(tmp_path, plugins=(), epochs=1) as sigma:
        sigma.run(progress=False)
    assert notes(tmp_path) == []


def test_a_plugin_is_told_when_training_fails(watch: None, tmp_path: Path) -> None:
    def fail(context: Any) -> None:
        raise RuntimeError("out of order")

    hook = Do(does=fail, every=every(2, "iteration"))
    with begun(tmp_path, epochs=1, hooks={"broken": hook}) as sigma, pytest.raises(SigmaTrainingError):
        sigma.run(progress=False)
    assert notes(tmp_path) == ["watched: begins to train trainer", "watched: failed: SigmaTrainingError"]


def test_nobody_takes_part_in_a_replay(watch: None, tmp_path: Path) -> None:
    with begun(tmp_path, epochs=2) as sigma:
        sigma.run(progress=False)
        run = sigma.run_folder
    assert run is not None
    before = notes(tmp_path)
    with begun(epochs=2) as again:
        assert again.replay(run)[1] == {}
    assert notes(tmp_path) == before


def told(distribution: Callable[..., Any], name: str, *bodies: str) -> None:
    """Install a plugin with implementations of hookspecs."""
    assert distribution(name, text=HEAD + "\n\n".join(f"@hookimpl\n{body}" for body in bodies)).state == "ready"


def test_an_error_when_a_run_begins_ends_it_and_those_before_are_told(
    distribution: Callable[..., Any], tmp_path: Path
) -> None:
    said = tmp_path / "said"
    told(
        distribution, "acme-one",
        f"def sigma_run_begins(): note({str(said)!r}, 'begins ')",
        f"def sigma_run_fails(error): note({str(said)!r}, type(error).__name__)",
    )  # fmt: skip
    told(distribution, "acme-two", "def sigma_run_begins(environment): 1 / 0")
    where = r"plugin acme-two \(acme_two.plugin.sigma_run_begins\): ZeroDivisionError: division by zero\. Correct its"
    with begun(plugins=["acme-one", "acme-two"], epochs=1) as sigma:
        with pytest.raises(SigmaComponentError, match=where):
            sigma.run(progress=False)
        assert sigma.trainer("trainer").session.moment.iteration == 0
        assert said.read_text() == "begins SigmaComponentError"
        sigma.plugins = ["acme-one"]
        assert sigma.run(progress=False).iterations == 3  # nothing is left of the call that did not begin


def test_an_error_when_a_run_ends_is_logged_and_changes_nothing(distribution: Callable[..., Any]) -> None:
    told(distribution, "acme-one", "def sigma_run_ends(summary): raise ValueError(summary.status)")
    with begun(plugins=["acme-one"], epochs=1) as sigma:
        assert sigma.run(progress=False).status == "finished"
        logged = [text for _, text in sigma.messages.entries_after(0)]
    assert any("plugin acme-one" in str(text) and "ValueError: finished" in str(text) for text in logged)


def press(times: int) -> str:
    return f"import signal; [signal.raise_signal(signal.SIGINT) for _ in range({times})]"


@pytest.mark.parametrize("method", ["run", "fit"])
def test_ctrl_c_while_a_run_ends_leaves_its_results_and_the_others_are_told(
    distribution: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    monkeypatch.setattr(signals, "TWICE", 0.0)
    said = tmp_path / "said"
    told(distribution, "acme-one", f"def sigma_run_ends(): {press(2)}; note({str(said)!r}, 'went on ')")
    told(distribution, "acme-two", f"def sigma_run_ends(summary): note({str(said)!r}, summary.status + ' ')")
    with begun(tmp_path, plugins=["acme-one", "acme-two"], epochs=1) as sigma:
        trainer = sigma.trainer("trainer")
        with pytest.raises(KeyboardInterrupt):
            sigma.run(progress=False) if method == "run" else trainer.fit(epochs=1, progress=False)
        assert (sigma.state, sigma.summary().status, sigma.summary().iterations) == ("stopped", "finished", 3)
        assert said.read_text() == "finished "
        assert sigma.run_folder is not None
        assert json.loads((sigma.run_folder / "summary.json").read_text())["status"] == "finished"
        logged = [str(text) for _, text in sigma.messages.entries_after(0)]
        assert [text for text in logged if "interrupted" in text or "ended by" in text] == [
            "interrupted: training has ended and is saved; interrupt again to end what a plugin does",
            "plugin acme-one: sigma_run_ends was ended by KeyboardInterrupt",
        ]
        sigma.plugins = ()
        trainer.fit(epochs=1, progress=False)  # nothing is left of the call that was interrupted
        assert sigma.summary().iterations == 6
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_one_ctrl_c_while_a_run_ends_interrupts_nothing(distribution: Callable[..., Any], tmp_path: Path) -> None:
    said = tmp_path / "said"
    told(distribution, "acme-one", f"def sigma_run_ends(): {press(1)}; note({str(said)!r}, 'went on')")
    with begun(tmp_path, plugins=["acme-one"], epochs=1) as sigma:
        assert sigma.run(progress=False).status == "finished"
        assert said.read_text() == "went on"


def test_ctrl_c_while_a_failed_run_ends_leaves_its_failure(
    distribution: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(signals, "TWICE", 0.0)
    said = tmp_path / "said"
    told(distribution, "acme-one", f"def sigma_run_fails(): {press(2)}")
    told(distribution, "acme-two", f"def sigma_run_fails(error): note({str(said)!r}, type(error).__name__)")
    hooks = {"broken": Do(does=lambda context: 1 // 0, every=every(2, "iteration"))}
    with begun(tmp_path, plugins=["acme-one", "acme-two"], epochs=1, hooks=hooks) as sigma:
        with pytest.raises(SigmaTrainingError, match="ZeroDivisionError"):
            sigma.run(progress=False)
        assert (sigma.state, sigma.summary().status) == ("failed", "failed")
    assert said.read_text() == "SigmaTrainingError"


def test_a_plugin_that_leaves_python_when_a_run_ends_does_so_after_the_others_were_told(
    distribution: Callable[..., Any], tmp_path: Path
) -> None:
    said = tmp_path / "said"
    told(distribution, "acme-one", "def sigma_run_ends(): raise SystemExit(7)")
    told(distribution, "acme-two", f"def sigma_run_ends(summary): note({str(said)!r}, summary.status)")
    with begun(tmp_path, plugins=["acme-one", "acme-two"], epochs=1) as sigma:
        with pytest.raises(SystemExit, match="7"):
            sigma.run(progress=False)
        assert sigma.summary().status == "finished"
    assert said.read_text() == "finished"


def test_a_plugin_that_is_missing_or_broken_ends_a_run_before_it_begins(
    distribution: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    distribution("acme-broken", text="raise RuntimeError('out of order')")
    for name, said in (
        ("acme-none", "plugin 'acme-none': not installed"),
        ("acme-broken", "takes part in this run, but"),
    ):
        with begun(plugins=[name], epochs=1) as sigma, pytest.raises(SigmaPluginError, match=said):
            sigma.run(progress=False)
    with pytest.raises(SigmaConfigError, match=r"plugins: must be names of distributions.*got 'acme-watch'"):
        begun(plugins="acme-watch")


# -- files and the command ---------------------------------------------------------------------------------------------
FILE = """format = 1
[data]
dataset = "iris"
[network]
architecture = "input(4) + output(3) + softmax_cross_entropy()"
[trainer]
epochs = 2
optimiser = "adam"
"""


def test_options_of_a_plugin_assign_values_of_the_configuration(sigma: Any, watch: None) -> None:
    Path("own.toml").write_text(FILE)
    code, out, error = sigma("run", "own.toml", "--json", "--quiet", "--watch", "--alarm", "0.001")
    assert code == 0, error
    folder = Path(json.loads(out)["folder"])
    ends = f"run: {json.loads(out)['status']} after {json.loads(out)['iterations']} iterations"
    assert notes(folder.parent) == ["run: begins to train trainer", ends]
    assert json.loads(out)["iterations"] == 1  # the alarm has ended it
    kept = (folder / "config.toml").read_text()
    assert 'plugins = ["acme-watch"]' in kept
    assert "training.loss above 0.001" in kept
    assert sigma("run", "own.toml", "--quiet")[0] == 0
    assert len(notes(folder.parent)) == 2  # installed is not active


def test_the_command_prints_the_summary_of_a_run_whose_end_was_interrupted(
    sigma: Any, distribution: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(signals, "TWICE", 0.0)
    told(distribution, "acme-one", f"def sigma_run_ends(): {press(2)}")
    Path("own.toml").write_text(FILE.replace("[data]", '[run]\nplugins = ["acme-one"]\n[data]', 1))
    code, out, error = sigma("run", "own.toml", "--json", "--quiet")
    assert (code, json.loads(out)["status"]) == (0, "finished"), error


def test_options_are_in_the_help_and_checked(sigma: Any, watch: None) -> None:
    assert re.search(r"--alarm TEXT\s+Stop if the loss is above this number\.", sigma("run", "--help")[1])
    Path("own.toml").write_text(FILE)
    code, _, error = sigma("run", "own.toml", "--alarm", "low")
    assert code == 2
    assert "hooks.alarm" in error


def test_a_file_that_names_a_plugin_that_is_not_there_is_refused(sigma: Any) -> None:
    Path("own.toml").write_text(FILE.replace("[data]", '[run]\nplugins = ["acme-none"]\n[data]', 1))
    for command in ("check", "run"):
        code, _, error = sigma(command, "own.toml")
        assert code in (2, 3)
        assert "run.plugins: plugin 'acme-none': not installed" in error


def test_options_that_are_taken_or_wrong_are_left_out_with_a_warning(
    sigma: Any, distribution: Callable[..., Any]
) -> None:
    told(distribution, "acme-one", "def sigma_run_options(): return [RunOption('--seed', 'Mine.', ('run.seed=1',))]")
    told(distribution, "acme-two", "def sigma_run_options(): return ['--mine']")
    told(distribution, "acme-three", "def sigma_run_options(): 1 / 0")
    Path("own.toml").write_text(FILE)
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        code, _, error = sigma("run", "own.toml", "--quiet")
    assert code == 0
    assert "plugin acme-one: `sigma run` has an option --seed already. This one is left out." in error
    assert "returned '--mine', which is not a RunOption. Its options of `sigma run` are left out." in error
    assert "acme-three" in error
    assert "ZeroDivisionError" in error


@pytest.mark.parametrize(
    "option", [RunOption("watch", "", ("a=1",)), RunOption("--a", "", ()), RunOption("--a", "", ("run.seed",))]
)
def test_an_option_of_another_form_is_refused(option: RunOption) -> None:
    with pytest.raises(SigmaPluginError, match="is not of the form"):
        check_option(option)
