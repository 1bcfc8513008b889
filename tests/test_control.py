"""Runs are steered from other processes: by the commands, by the client, and by the documents of the protocol."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from sigma_kernel import Environment
from sigma_kernel.errors import SigmaConfigError
from sigma_kernel.plugins.catalogue import catalogue
from sigma_run.config import build, load
from sigma_run.launcher import main

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "steering.md").read_text()
SIGMA = [sys.executable, "-m", "sigma_run"]

pytestmark = pytest.mark.rooms


@pytest.fixture
def home(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Let runs be steered, through sockets in a directory of the test's own with a short path."""
    tmp_path_factory.getbasetemp()  # which pytest would put into that directory
    folder = Path(tempfile.mkdtemp()).resolve()
    for variable in ("XDG_RUNTIME_DIR", "TMPDIR"):
        monkeypatch.setenv(variable, str(folder))
    monkeypatch.setattr(tempfile, "tempdir", None)  # which is read again
    monkeypatch.delenv("SIGMA_CONTROL")
    yield folder / "sigma"
    shutil.rmtree(folder)


@contextmanager
def digits(folder: Path, *settings: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Yield a process that trains without an end, and its run folder, once it can be steered."""
    endless = ["--set", "hooks.finish.when=epoch reaches 1000000", "--set", f"run.folder={folder}"]
    command = [*SIGMA, "run", "digits", "--backend", "numpy", "--quiet", *endless, *settings]
    with subprocess.Popen(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        try:
            yield process, str(wait_for(lambda: next(iter(folder.glob("*/control.json")), None)).parent)
        finally:
            process.kill()


def wait_for(found: Any) -> Any:
    end = time.monotonic() + 60
    while not (result := found()):
        assert time.monotonic() < end, "waited too long"
        time.sleep(0.01)
    return result


@pytest.fixture
def sigma(capsys: pytest.CaptureFixture[str]) -> Any:
    """Return a function that calls a command and returns the document that it prints."""

    def call(*arguments: str, code: int = 0) -> Any:
        assert main([*arguments, *(["--json"] if code == 0 else [])]) == code
        out, err = capsys.readouterr()
        return json.loads(out) if code == 0 else err

    return call


# -- another process ---------------------------------------------------------------------------------------------------
def test_a_run_in_another_process_is_steered_and_replays_to_the_same_bits(
    home: Path, tmp_path: Path, sigma: Any
) -> None:
    with digits(tmp_path) as (process, run):
        (paused,) = sigma("pause", "--run", run)["applied"].values()
        assert sigma("ps")["runs"][0]["state"] == "paused"
        assert sigma("get", "trainer.iteration") == {"trainer.iteration": paused["iteration"]}
        assert sigma("set", "learning_rate", "0.01")["applied"] == {"trainer": paused}
        assert sigma("get", "learning_rate") == {"trainer.optimiser.learning_rate": 0.01}
        sigma("attach", "extra", '{type = "loss", every = "1 epoch"}')
        sigma("step", "5")
        wait_for(lambda: sigma("get", "trainer.iteration")["trainer.iteration"] == paused["iteration"] + 5)
        wait_for(lambda: sigma("ps")["runs"][0]["state"] == "paused")
        sigma("save")
        sigma("swap", "optimiser", '{type = "gradient_descent", learning_rate = 0.1}')
        sigma("undo")
        sigma("detach", "extra")
        sigma("exclude", "3-5", "7")
        sigma("include", "7")
        sigma("relabel", "8", "1")
        sigma("step", "2", "epochs")
        wait_for(lambda: sigma("get", "training.excluded") == {"trainer.data.training.excluded": 3})
        wait_for(lambda: sigma("ps")["runs"][0]["state"] == "paused")
        assert "could be" in sigma("set", "loss", "1", code=2)
        assert "missing" in sigma("rewind", "missing", "--run", Path(run).name, code=1)
        sigma("rewind", "1000000")
        sigma("go")
        sigma("stop")
        assert process.wait(60) == 0
    assert not (Path(run) / "control.json").exists()
    assert [*home.iterdir()] == []
    assert sigma("ps") == {"runs": []}
    rows = [json.loads(line) for line in (Path(run) / "journal.jsonl").read_text().splitlines()]
    commands = [row["command"] for row in rows if "command" in row]
    for name in (
        "pause",
        "set",
        "attach",
        "step",
        "save",
        "swap",
        "undo",
        "detach",
        "exclude",
        "include",
        "relabel",
        "rewind",
        "go",
        "stop",
    ):
        assert name in commands
    assert main(["replay", "--check", run, "--quiet"]) == 0


def test_interrupting_a_watch_leaves_the_run_alone(home: Path, tmp_path: Path, sigma: Any) -> None:
    with digits(tmp_path) as (process, run):
        command = [*SIGMA, "watch", "**.loss", "--every", "0.1", "--run", run]
        with subprocess.Popen(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as watching:
            assert watching.stdout is not None
            assert re.fullmatch(r"\d+\.\d  trainer\.(training|validation)\.loss  +\S+\n", watching.stdout.readline())
            watching.send_signal(signal.SIGINT)
            _, err = watching.communicate(timeout=60)
        assert (watching.returncode, err.strip()) == (130, "")
        before = sigma("get", "trainer.iteration", "--run", run)["trainer.iteration"]
        wait_for(lambda: sigma("get", "trainer.iteration")["trainer.iteration"] > before)
        assert process.poll() is None


def test_a_run_is_steered_by_its_first_place_after_its_folder_was_moved(home: Path, tmp_path: Path, sigma: Any) -> None:
    with digits(tmp_path) as (process, run):
        sigma("pause", "--run", run)
        moved = str(Path(run).rename(tmp_path / "moved"))
        for given in (["get", "training.loss"], ["set", "learning_rate", "0.1"], ["watch", "loss"], ["go"]):
            assert sigma(*given, "--run", moved, code=1).endswith(
                f"Pass --run {run}, and move the folder once the run has ended.\n"
            )
        assert sigma("get", "trainer.optimiser.learning_rate", "--run", run) == {
            "trainer.optimiser.learning_rate": 0.003
        }
        sigma("go", "--run", run)
        wait_for(Path(run).exists)  # with the next row
        assert "still writes there" in sigma("get", "training.loss", "--run", moved, code=1)
        sigma("stop", "--run", run)
        assert process.wait(60) == 0
    assert "is not training" in sigma("get", "training.loss", "--run", moved, code=1)


def test_what_a_killed_run_has_left_is_removed(home: Path, tmp_path: Path, sigma: Any) -> None:
    with digits(tmp_path) as (process, run):
        assert len([*home.iterdir()]) == 1
        process.kill()
        process.wait(60)
        assert (Path(run) / "control.json").exists()
        assert "is not training" in sigma("get", "loss", "--run", run, code=1)
        assert not (Path(run) / "control.json").exists()
        assert sigma("ps") == {"runs": []}
        assert [*home.iterdir()] == []


def test_a_run_whose_file_says_so_is_not_steered(home: Path, tmp_path: Path, sigma: Any) -> None:
    arguments = ["run", "xor", "--quiet", "--backend", "numpy", "--set", f"run.folder={tmp_path}"]
    for setting, there in (("true", True), ("false", False)):
        assert main([*arguments, "--set", f"run.control={setting}"]) == 0
        assert home.exists() is there
        if there:
            home.rmdir()
        (run,) = tmp_path.iterdir()
        assert f"control = {setting}\n" in (run / "config.toml").read_text()
        shutil.rmtree(run)


def test_a_run_of_python_records_whether_it_can_be_steered(home: Path, tmp_path: Path) -> None:
    with Environment("recorded", folder=tmp_path, control=False) as made:
        settings = {"optimiser": "adam", "epochs": 1}
        made.create_trainer(data="iris", network="input(4) + output(3) + softmax_cross_entropy()", **settings)
        made.run(progress=False)
        run = made.run_folder
    assert run is not None
    assert build(load((run / "config.toml").read_text())).control is False
    assert not home.exists()


def test_control_is_true_or_false() -> None:
    text = catalogue().load("recipe", "xor").text  # type: ignore[attr-defined]
    assert build(load(text)).control is True
    with pytest.raises(SigmaConfigError, match="run.control: must be true or false"):
        load(text, ["run.control=off"])


@pytest.mark.long
def test_a_resumed_run_may_stay_paused_as_it_can_be_steered(
    home: Path, tmp_path: Path, sigma: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    with digits(tmp_path) as (process, run):
        sigma("pause")
        process.send_signal(signal.SIGTERM)
        process.wait(60)
    monkeypatch.setenv("SIGMA_CONTROL", "off")
    assert "--paused: no monitor of this run sends commands" in sigma("resume", run, "--paused", code=2)
    monkeypatch.delenv("SIGMA_CONTROL")
    with subprocess.Popen([*SIGMA, "resume", run, "--paused", "--quiet"]) as process:
        wait_for(lambda: sigma("ps")["runs"] and sigma("ps")["runs"][0]["state"] == "paused")
        sigma("stop")
        assert process.wait(60) == 0


# -- the protocol of the page ------------------------------------------------------------------------------------------
def acknowledges(document: dict[str, Any]) -> bool:
    """Return whether a document is the event of a queued command, which comes unless the command is applied before."""
    return "ticket" in document.get("event", {})


SHOWN = [json.loads(line) for block in re.findall(r"```text\n(.*?)```", PAGE, re.S) for line in block.splitlines()]
TRANSCRIPT = [document for document in SHOWN if not acknowledges(document)]
(ACKNOWLEDGED,) = (document for document in SHOWN if acknowledges(document))


class Talk:
    """The lines of a connection to the socket that a file names, by the id that they have."""

    def __init__(self, control: Path) -> None:
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(json.loads(control.read_text())["socket"])
        self.lines = self.socket.makefile("rb")

    def __enter__(self) -> Talk:
        return self

    def __exit__(self, *error: object) -> None:
        self.lines.close()
        self.socket.close()

    def ask(self, document: dict[str, Any]) -> dict[str, Any]:
        """Send a request, and return the first document with its id that does not acknowledge it."""
        self.socket.sendall(json.dumps(document).encode() + b"\n")
        while (found := json.loads(self.lines.readline()))["id"] != document["id"] or acknowledges(found):
            if found["id"] == document["id"]:
                assert found["event"]["ticket"].keys() == ACKNOWLEDGED["event"]["ticket"].keys()
        return found  # type: ignore[no-any-return]


def check_same(shown: Any, found: Any) -> None:
    """Check that a document is as the page shows it, but for its numbers, and for texts where the page has dots."""
    if isinstance(shown, dict):
        assert list(shown) == list(found)
        for name, value in shown.items():
            check_same(value, found[name])
    elif isinstance(shown, list):
        for one, other in zip(shown, found, strict=True):
            check_same(one, other)
    elif isinstance(shown, str) and shown.endswith("..."):
        assert found.startswith(shown.removesuffix("..."))
    elif isinstance(shown, int | float) and not isinstance(shown, bool):
        assert isinstance(found, int | float)
    else:
        assert shown == found


def test_the_documents_of_the_page_are_what_a_run_says(home: Path, tmp_path: Path) -> None:
    with Environment("page", seed=0, folder=tmp_path) as made:
        made.create_trainer(
            data="iris",
            network="input(4) + dense(16, activation='tanh') + output(3) + softmax_cross_entropy()",
            optimiser={"type": "adam", "learning_rate": 0.001},
            hooks={"score": {"type": "accuracy", "on": "training", "every": "1 epoch"}},
            epochs=1_000_000,
        )
        training = made.run_async(progress=False)
        run = made.run_folder
        assert run is not None
        wait_for(lambda: (run / "control.json").exists() and made.registry.find("trainer.training.accuracy"))
        with Talk(run / "control.json") as talk:
            for asked, shown in zip(TRANSCRIPT[::2], TRANSCRIPT[1::2], strict=True):
                check_same(shown, talk.ask(asked))
            for do in documented():
                if do not in ("watch", "follow", "cancel", "set", "command", "recall", "cancel_recall"):
                    given = {
                        "kind": "hook",
                        "pattern": "learning_rate",
                        "addresses": ["trainer.training.loss"],
                        "split": "training",
                        "rows": [0, 1],
                        "layer": "1-dense",
                        "key": "none.png",
                        "inputs": {"inputs": [5.1, 3.5, 1.4, 0.2]},
                    }
                    known = {name: given[name] for name in documented()[do] if name in given}
                    answer = talk.ask({"id": do, "do": do, **known})
                    refused = {
                        "row_history": "nothing is recorded",
                        "surface": "needs a network of two",
                        "medium": "none.png",
                    }
                    assert refused[do] in answer["error"]["message"] if do in refused else "result" in answer, do
            talk.ask({"id": "end", "do": "command", "name": "stop"})
        assert training.result(60).status == "stopped"


def documented() -> dict[str, list[str]]:
    """Return the arguments of each request in the table of the page; those that can be left out in brackets."""
    rows = re.findall(r"^\| `(\w+)` \| (.*?) ?\| ", PAGE.partition("### The protocol")[2], re.M)
    return {do: re.findall(r"`\[?(\w+)\]?`", arguments) for do, arguments in rows}


def test_the_table_of_the_page_has_every_request_and_its_arguments(home: Path, tmp_path: Path) -> None:
    protocol = pytest.importorskip("sigma_monitor_control.protocol")
    arguments = pytest.importorskip("sigma_monitor_control.protocol.arguments")
    moments = pytest.importorskip("sigma_monitor_control.protocol.moments")
    known = {
        **protocol.READS,
        **protocol.DATA,
        **protocol.ROWS,
        **protocol.LAYERS,
        **protocol.MEDIA,
        **protocol.SUBSCRIBES,
        **protocol.STEERS,
        **protocol.READS_RECALLS,
        **protocol.RECALLS,
    }
    found = {do: {*arguments.parameters(function)[0]} for do, function in known.items()}
    of_moments = {do: {*names, "at"} if do in moments.ASKED else names for do, names in found.items()}
    assert {do: {*names} for do, names in documented().items() if do != "cancel"} == of_moments
    assert "```{generated} commands\n```" in PAGE  # their table


def test_the_directory_of_sockets_is_used_by_others_only_if_it_is_theirs(home: Path, tmp_path: Path) -> None:
    if os.getuid() != 0:  # another user cannot be played by an ordinary one
        assert not home.exists()
        return
    home.parent.chmod(0o755)
    with digits(tmp_path) as (_, run):
        path = json.loads((Path(run) / "control.json").read_text())["socket"]
        code = "import os, socket, sys; os.setuid(65534); s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1])"
        ask = '; s.sendall(b\'{"id": 1, "do": "hello"}\\n\'); print(s.recv(9999).decode())'
        done = subprocess.run([sys.executable, "-c", code, path], capture_output=True, text=True)
        assert "PermissionError" in done.stderr
        home.chmod(0o711)
        Path(path).chmod(0o666)  # even then
        done = subprocess.run([sys.executable, "-c", code + ask, path], capture_output=True, text=True)
        assert json.loads(done.stdout)["error"]["message"].startswith("this run belongs to another user.")
