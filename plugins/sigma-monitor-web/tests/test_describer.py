"""The dashboard describes the data of runs: in processes of their own, from files or from rows in memory."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np
import pytest

from sigma_kernel import Environment, Monitor, View
from sigma_kernel.errors import SigmaError
from sigma_monitor_web import describer as module
from sigma_monitor_web.describer import Describer, copy_rows
from sigma_monitor_web.describing import SavedRows
from sigma_monitor_web.ended import EndedRun
from sigma_monitor_web.monitor import OneRun
from sigma_monitor_web.readers import Limits
from sigma_run.launcher import main

PATIENCE = 300.0  # others go before the processes where the processor is busy
CSV = "size,town,price\n" + "".join(f"{i * 0.75},{'ab'[i % 2]},{i * 2.5 + 1}\n" for i in range(80))
TOML = """
format = 1
[run]
name = "houses"
backend = "numpy"
[data]
batch_size = 16
[data.dataset]
type = "table"
path = "houses.csv"
target = "price"
[network]
architecture = "input() + output() + squared_difference()"
[trainer]
optimiser = "adam"
epochs = 2
"""


@pytest.fixture
def describer() -> Iterator[Describer]:
    made = Describer()
    yield made
    made.end()


@pytest.fixture(scope="module")
def houses(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a run on a table in a file."""
    folder = tmp_path_factory.mktemp("houses")
    (folder / "houses.csv").write_text(CSV)
    (folder / "houses.toml").write_text(TOML)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        assert main(["run", "houses.toml", "--quiet"]) == 0
    [run] = (folder / "runs").iterdir()
    return run


def test_the_data_of_a_run_folder_are_described_and_examined(houses: Path, describer: Describer) -> None:
    view = EndedRun(houses)
    profile = describer.profile(view, "trainer").result(PATIENCE)
    columns = {column["name"]: column for column in profile["columns"]}
    assert [*columns] == ["size", "town", "price"]
    assert (profile["source"], profile["rows"], columns["size"]["kind"]) == ("folder", 80, "number")
    assert columns["town"]["counts"] == [["a", 40], ["b", 40]]
    assert profile["parts"] == {"training": 64, "validation": 16}


def test_files_in_the_working_directory_are_no_modules_of_the_process(
    houses: Path, describer: Describer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "numpy.py").write_text("raise SystemExit(9)")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [place for place in sys.path if place])
    assert describer.profile(EndedRun(houses)).result(PATIENCE)["source"] == "folder"


def test_findings_are_those_of_the_command(
    houses: Path, describer: Describer, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(houses.parents[1])
    assert main(["data", "check", "houses.toml", "--json"]) == 1
    expected = json.loads(capsys.readouterr().out)["findings"]
    assert expected, "the size gives the price away"
    assert describer.findings(EndedRun(houses), "trainer").result(PATIENCE) == expected


@pytest.mark.long
def test_answers_are_kept_until_they_are_asked_for_again(houses: Path, describer: Describer) -> None:
    view = EndedRun(houses)
    first = describer.profile(view)
    describer.findings(view).result(PATIENCE)
    assert describer.profile(view) is first
    again = describer.profile(view, again=True)
    assert again is not first
    assert describer.profile(view, again=True) is again, "which is not known yet"
    assert again.result(PATIENCE) == first.result()


@pytest.mark.long
def test_a_file_that_is_gone_is_named_with_the_remedy(houses: Path, describer: Describer, tmp_path: Path) -> None:
    moved = (houses.parents[1] / "houses.csv").rename(tmp_path / "other.csv")
    try:
        for ask in (describer.profile, describer.findings):
            with pytest.raises(SigmaError, match=r"houses\.csv: there is no such file.*say where: --data PATH"):
                ask(EndedRun(houses)).result(PATIENCE)
        elsewhere = Describer(data=moved)
        assert elsewhere.profile(EndedRun(houses)).result(PATIENCE)["rows"] == 80
        elsewhere.end()
    finally:
        moved.rename(houses.parents[1] / "houses.csv")
    assert describer.profile(EndedRun(houses)).result(PATIENCE)["rows"] == 80, "an error is not kept"


class Asking(Monitor):
    """A monitor that asks the server of its run."""

    def __init__(self, ask: Callable[[OneRun], Any]) -> None:
        self.ask, self.answer = ask, Future[Any]()

    def watch(self, view: View) -> None:
        run = OneRun(view)
        try:
            self.answer.set_result(self.ask(run))
        except Exception as error:
            self.answer.set_exception(error)
        run.end()


X = np.random.default_rng(0).normal(size=(90, 3)).astype("float32")
KINDS = np.array(["no", "yes"])[(X[:, 0] > 0).astype(int)]


@contextmanager
def training(folder: Path | None = None) -> Iterator[Environment]:
    """A run that trains on rows in memory until it is told to stop."""
    parts = {"training": slice(0, 60), "validation": slice(60, 90)}
    with Environment("memory", folder=folder) as sigma:
        data = {name: {"inputs": X[rows], "targets": KINDS[rows]} for name, rows in parts.items()}
        network = "input(3) + output(2) + softmax_cross_entropy()"
        sigma.create_trainer(network=network, data=data, optimiser="adam", batch_size=30, epochs=10**9)
        yield sigma


def ask(sigma: Environment, question: Callable[[OneRun], Any]) -> Any:
    """Return an answer while a run trains."""
    monitor = Asking(question)
    sigma.monitors = {"asking": monitor}
    monitor.answer.add_done_callback(lambda _: Thread(target=sigma.stop).start())
    sigma.run()
    return monitor.answer.result(PATIENCE)


@pytest.mark.long_cases("without a folder")
@pytest.mark.parametrize("stored", [False, True], ids=["without a folder", "in a folder"])
def test_rows_in_memory_are_described_while_a_run_trains(stored: bool, tmp_path: Path) -> None:
    with training(tmp_path if stored else None) as sigma:
        profile, findings = ask(
            sigma,
            lambda run: [what(run.view).result(PATIENCE) for what in (run.describer.profile, run.describer.findings)],
        )
    assert profile["source"] == ("folder" if stored else "rows")
    assert profile["parts"] == {"training": 60, "validation": 30}
    classes = profile["classes"]
    for name, kinds in (("training", KINDS[:60]), ("validation", KINDS[60:])):
        assert dict(zip(classes["names"], classes["counts"][name], strict=True)) == Counter(kinds.tolist())
    assert [column["name"] for column in profile["columns"]] == ["inputs[0]", "inputs[1]", "inputs[2]", "targets"]
    assert all(finding["severity"] != "error" for finding in findings)


def test_of_many_rows_in_memory_the_first_are_copied_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "NUMBERS", 100)  # of which a row has 4
    monkeypatch.setattr(module, "PIECE", 7)
    with training() as sigma:
        arrays = ask(sigma, lambda run: copy_rows(run.view.trainer("trainer"), "training", 60))
    assert np.array_equal(arrays["inputs"], X[:25])
    assert [["no", "yes"][i] for i in arrays["targets"]] == KINDS[:25].tolist()


@pytest.mark.parametrize(
    ("limits", "message"),
    [(Limits(0.01, 1 << 40), "takes longer than 0.01 seconds"), (Limits(600.0, 1 << 20), "cannot be described")],
)
def test_a_process_beyond_its_limits_is_ended_and_says_so(houses: Path, limits: Limits, message: str) -> None:
    describer = Describer(limits=limits)
    with pytest.raises(SigmaError, match=message):
        describer.profile(EndedRun(houses)).result(PATIENCE)
    describer.end()


def test_a_folder_without_a_run_is_refused_in_a_sentence(tmp_path: Path, describer: Describer) -> None:
    with pytest.raises(SigmaError, match="not a run folder"):
        describer.profile(EndedRun(tmp_path)).result(PATIENCE)


def test_an_end_ends_the_process_and_what_waits(houses: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    describer = Describer()
    monkeypatch.setattr(module, "COMMAND", (sys.executable, "-c", "import time; time.sleep(600)"))
    answer = describer.profile(EndedRun(houses))
    end = time.monotonic() + PATIENCE
    while describer._process is None and time.monotonic() < end:
        time.sleep(0.01)
    describer.end()
    with pytest.raises(SigmaError, match="was ended by SIGKILL"):
        answer.result(PATIENCE)


def test_a_process_ends_with_the_server() -> None:
    asked = subprocess.Popen(module.COMMAND, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    asked.communicate(timeout=PATIENCE)  # which closes its input
    assert asked.returncode is not None


def test_a_run_that_has_ended_tells_its_baselines_and_advice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    slow = ["--set", "trainer.optimiser.learning_rate=1e-9", "--set", 'hooks.finish.when="epoch reaches 1"']
    assert main(["run", "iris", "--quiet", *slow, "--set", 'hooks.score.every="1 epoch"']) == 0
    [folder] = (tmp_path / "runs").iterdir()
    run = OneRun(EndedRun(folder))
    results = run.results(run.view).result(PATIENCE)
    run.end()
    summary = json.loads((folder / "summary.json").read_text())
    assert results == {name: summary[name] for name in ("metrics", "baselines", "advice")}
    assert {*results["baselines"]} == {"majority", "linear"}


def test_bytes_and_short_integers_in_memory_have_dtypes_of_the_graph() -> None:
    arrays = {"inputs": np.zeros((2, 3), np.uint8), "targets": np.zeros(2, np.uint64), "weights": np.ones(2)}
    rows = SavedRows(arrays, (), {})
    assert {name: spec.dtype for name, spec in rows.sections.items()} == {
        "inputs": "int32", "targets": "int64", "weights": "float64",
    }  # fmt: skip
