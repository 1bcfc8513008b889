"""Checks by workers that are started, and plans against what a simulated exchange sends."""

from __future__ import annotations

import json
import os
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve

import sigma_ml as sm
from sigma_cluster.checking import LARGE, ClusterProbe, WorkerReport, check_cluster
from sigma_cluster.planning import StepCosts, measure_step, plan_workers
from sigma_cluster.probe import ProbeBlueprint, ProbeWorker
from sigma_kernel import catalogue
from sigma_kernel.contracts import Batches, Lane
from sigma_kernel.errors import SigmaTrainingError
from sigma_run.launcher import main
from sigma_testing.transports.threads import ThreadOperator, ThreadTransport

FILE = """format = 1
[run]
name = "flowers"
backend = "numpy"
operator = { type = "processes", workers = 2, shards = 4 }
[data]
dataset = "iris"
batch_size = 20
[network]
architecture = "input(4) + dense(8) + output(3) + softmax_cross_entropy()"
[trainer]
optimiser = "adam"
epochs = 2
"""
COSTS = StepCosts(
    batch=64, shards=8, shard_seconds=0.01, update_seconds=0.002, state=3000, gradients=1000, program=700, data=500
)


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    Path("flowers.toml").write_text(FILE)
    return "flowers.toml"


# -- checks ------------------------------------------------------------------------------------------------------------
def test_the_workers_of_a_file_are_started_and_checked(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cluster", "check", file, "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["ok"]
    (report,) = report["trainers"].values()
    assert (report["problems"], report["gradients"]) == ([], 4 * (4 * 8 + 8 + 8 * 3 + 3))
    assert [worker["number"] for worker in report["workers"]] == [0, 1]
    assert len({worker["process"] for worker in report["workers"]} | {os.getpid()}) == 3
    for worker in report["workers"]:
        assert (worker["plugins"], worker["reads_folder"]) == ([], True)
        assert abs(worker["clock"]) <= worker["accuracy"] + 0.1
    assert 0 < report["latency"] < 5
    assert report["bandwidth"] > 1e5
    assert [*Path().iterdir()] == [Path(file)]


def test_a_check_is_shown_with_a_row_for_each_worker(
    file: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sigma_operator_processes.ProcessesOperator.connect", lambda self: ThreadOperator().connect())
    assert main(["cluster", "check", file]) == 0
    out, err = capsys.readouterr()
    head, *rows, gradients, plan = out.splitlines()
    assert head.split()[:4] == ["WORKER", "HOST", "PROCESS", "CPUS"]
    assert [row.split()[0] for row in rows] == ["0", "1"]
    assert all(row.endswith("as here  reached") for row in rows)
    assert gradients.startswith("a sum of the gradients, 0.000268 MB a shard, takes ")
    assert plan.startswith("for `sigma cluster plan`: --bandwidth ")
    assert main(["cluster", "plan", file, *plan.split()[4:]]) == 0
    capsys.readouterr()
    assert main(["cluster", "check", file, "--set", "run.operator.workers=1"]) == 0
    assert capsys.readouterr().out.endswith("ms; one worker sends nothing, so that there is no bandwidth\n")
    assert err.splitlines()[-1] == "ok"


def test_other_plugins_an_unreachable_folder_and_late_clocks_are_problems(monkeypatch: pytest.MonkeyPatch) -> None:
    version = catalogue().versions()["sigma-kernel"]
    own = {**catalogue().versions(), "sigma-kernel": "0.0", "sigma-unknown": "1"}
    clock = time.time
    monkeypatch.setattr("sigma_cluster.probe.time.time", lambda: clock() - 90)
    with ClusterProbe(ThreadOperator(workers=1, shards=1), ProbeBlueprint(own, "/nowhere/mark", "x")) as probe:
        monkeypatch.setattr("sigma_cluster.checking.time.time", clock)
        (worker,) = probe.describe()
    texts = evolve(worker, clock=-90.0).problems
    assert [text.split(": ", 1)[1] for text in texts] == [
        "sigma-unknown is not installed. Install the same versions everywhere.",
        f"sigma-kernel was 0.0, and is {version} now. Install the same versions everywhere.",
        "does not reach the run folder. Put it where all machines do.",
        "its clock is 90.0 s behind. Synchronise the clocks.",
    ]


def test_a_worker_that_is_well_has_no_problems() -> None:
    worker = WorkerReport(0, "here", 1, 2, 0.4, 0.1, [], True)
    assert worker.problems == []
    assert evolve(worker, clock=1.05).problems == []  # within the accuracy
    (text,) = evolve(worker, clock=1.25).problems
    assert text == "worker 0 on here: its clock is 1.2 s ahead. Synchronise the clocks."


def test_a_worker_that_fails_or_is_lost_ends_the_check(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*given: Any) -> None:
        raise ValueError("wrong on purpose")

    operator = ThreadOperator(workers=2, shards=2)
    monkeypatch.setattr(ProbeWorker, "_time_sums", fail)
    with pytest.raises(SigmaTrainingError, match=r"(?s)^worker [01]: .*wrong on purpose"):
        check_cluster(operator, 10, tmp_path)
    monkeypatch.setattr(ProbeWorker, "_time_sums", lambda *given: operator.transports[-1].kill(0))
    with pytest.raises(SigmaTrainingError, match=r"^worker 0: killed$"):
        check_cluster(operator, 10, tmp_path / "runs" / "later")
    assert [*tmp_path.iterdir()] == []
    assert all(channel.dead for transport in operator.transports for channel in transport.channels.values())


@pytest.mark.parametrize(("workers", "shards"), [(2, 4), (2, 12), (4, 4)])
def test_a_plan_takes_what_a_check_measures(
    workers: int, shards: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seconds = {1: 0.0002, 10: 0.001, LARGE: 0.044}
    monkeypatch.setattr(ClusterProbe, "time_sums", lambda self, length: [9.0, seconds[length]])
    report = check_cluster(ThreadOperator(workers=workers, shards=shards), 10, tmp_path)
    assert report.bandwidth is not None
    costs = StepCosts(1, shards, 1e-12, 0.0, state=0, gradients=4 * LARGE, program=0, data=0)
    plans = {each.workers: each for each in plan_workers(costs, report.bandwidth, report.latency)}
    assert plans[workers].seconds == pytest.approx(seconds[LARGE] + seconds[1])


def test_a_check_ends_if_fewer_workers_come_than_are_wanted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    serve = ThreadTransport._serve
    monkeypatch.setattr(ThreadTransport, "_serve", lambda self, c: serve(self, c) if c.worker < 2 else None)
    monkeypatch.setattr("sigma_cluster.checking.PATIENCE", 1.5)
    operator = ThreadOperator(workers=4, shards=4)
    with pytest.raises(
        SigmaTrainingError, match=r"^2 of 4 workers have started within 1.5 s: start the others, or set fewer as"
    ):
        check_cluster(operator, 10, tmp_path)
    assert [*tmp_path.iterdir()] == []
    assert all(channel.dead for channel in operator.transports[0].channels.values() if channel.worker < 2)


def test_an_operator_without_workers_elsewhere_is_refused(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cluster", "check", file, "--set", "run.operator.type=local"]) == 2
    err = capsys.readouterr().err
    assert err.startswith(
        "flowers.toml: trainer.operator has no workers in other processes: there is nothing to check."
    )
    assert err.count("\n") == 1


def test_a_check_takes_the_operator_as_a_run_does(
    file: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sigma_operator_processes.ProcessesOperator.connect", lambda self: ThreadOperator().connect())
    given = ["--set", "run.operator.type=local", "--operator", "processes", "--workers", "3", "--json"]
    assert main(["cluster", "check", file, *given]) == 0
    (report,) = json.loads(capsys.readouterr().out)["trainers"].values()
    assert len(report["workers"]) == 3


# -- plans -------------------------------------------------------------------------------------------------------------
def count_sent(workers: int, shards: int, length: int) -> int:
    """Return the most numbers that a worker sends if each adds a slice over all shards, and gives the sum to all."""
    sent = Counter[int]()
    slices = [length * (part + 1) // workers - length * part // workers for part in range(workers)]
    for worker in range(workers):
        for other in range(workers):
            if other != worker:
                sent[worker] += len(range(worker, shards, workers)) * slices[other] + slices[worker]
    return max(sent.values(), default=0)


@pytest.mark.parametrize("workers", [1, 2, 4, 8])
def test_the_traffic_is_that_of_an_exchange_of_slices(workers: int) -> None:
    plans = {each.workers: each for each in plan_workers(COSTS, 1e9, 0.0)}
    assert plans.keys() == {1, 2, 4, 8}
    assert plans[workers].traffic == count_sent(workers, 8, 1000)


def test_memory_and_speed_follow_the_formulas() -> None:
    first, *_, last = plan_workers(COSTS, 1e6, 0.001)
    assert (first.shards, first.memory, first.traffic) == (8, 4 * 3000 + 8 * 1000 + 3 * 1000 + 700 + 500, 0.0)
    assert first.seconds == pytest.approx(8 * 0.01 + 0.002)
    assert (last.workers, last.shards, last.memory) == (8, 1, 5 * 3000 + (1 + 7 / 8 + 3) * 1000 + 700 + 500)
    assert last.seconds == pytest.approx(0.01 + 0.002 + 2 * 1000 * 7 / 8 / 1e6 + 2 * 0.001)
    assert last.rows == pytest.approx(64 / last.seconds)
    assert [each.workers for each in plan_workers(evolve(COSTS, shards=6), 1e6, 0.0)] == [1, 2, 4, 6]
    assert [each.shards for each in plan_workers(evolve(COSTS, shards=6), 1e6, 0.0)] == [6, 3, 2, 1]


def test_lanes_leave_a_worker_the_data_of_its_shards() -> None:
    for whole, own in zip(
        plan_workers(COSTS, 1e6, 0.0), plan_workers(evolve(COSTS, lanes=True), 1e6, 0.0), strict=True
    ):
        assert whole.memory - own.memory == pytest.approx(500 * (1 - own.shards / 8), abs=1)


@pytest.mark.parametrize(
    ("workers", "shards", "arrays", "program", "peak"),
    [
        (2, 4, 3, 182365808, 947),  # Adam: parameters and two slots
        (1, 4, 3, 182365808, 912),
        (4, 8, 3, 182365808, 964),
        (2, 8, 3, 182365808, 1087),
        (2, 8, 1, 109566296, 770),  # gradient descent
        (2, 4, 1, 109566296, 631),
    ],
)
def test_the_memory_is_that_which_workers_took(workers: int, shards: int, arrays: int, program: int, peak: int) -> None:
    """The greatest resident sizes of workers that trained a network 64-3000-3000-10 on NumPy, in MiB; 63 without it."""
    gradients = 4 * (65 * 3000 + 3001 * 3000 + 3001 * 10)
    costs = evolve(COSTS, shards=shards, state=arrays * gradients, gradients=gradients, program=program, data=373880)
    plans = {each.workers: each for each in plan_workers(costs, 1e9, 0.0)}
    assert plans[workers].memory == pytest.approx((peak - 63) * 2**20, rel=0.08)


def test_a_step_is_measured_on_copies(file: str) -> None:
    session = sm.from_file(file).trainer("trainer").session
    before = {name: session.host(name).tobytes() for name in session.state.arrays}
    costs = measure_step(session)
    assert {name: session.host(name).tobytes() for name in session.state.arrays} == before
    assert session.moment.iteration == 0
    assert (costs.batch, costs.shards, costs.gradients) == (20, 4, 4 * 67)
    assert costs.state >= 3 * costs.gradients  # parameters, and two slots of each
    assert not costs.lanes
    assert min(costs.shard_seconds, costs.update_seconds, costs.program) > 0


def test_data_in_lanes_are_those_of_all_lanes(file: str, monkeypatch: pytest.MonkeyPatch) -> None:
    session = sm.from_file(file).trainer("trainer").session
    whole, feed = measure_step(session).data, type(session.setup.feed)
    give = feed.next_batches

    def give_lanes(*given: Any) -> Batches:
        batches = give(*given)
        return evolve(batches, block={}, lanes=[Lane(0, batches.block)] * 4)

    monkeypatch.setattr(feed, "next_batches", give_lanes)
    costs = measure_step(session)
    assert (costs.lanes, costs.data) == (True, 4 * whole)


def test_a_plan_says_that_it_is_modelled(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cluster", "plan", file, "--bandwidth", "10"]) == 0
    out, err = capsys.readouterr()
    assert [line.split()[0] for line in out.splitlines()] == ["WORKERS", "1", "2", "4"]
    assert err.startswith("modelled, from ")
    assert "at 10 MB/s and 0.2 ms; nothing of it was measured on workers" in err
    assert main(["cluster", "plan", file, "--json"]) == 0
    plan = json.loads(capsys.readouterr().out)["trainers"]["trainer"]
    assert plan["modelled"].startswith("modelled, from ")
    assert [each["workers"] for each in plan["plans"]] == [1, 2, 4]
    assert plan["measured"]["shards"] == 4
    assert main(["cluster", "plan", file, "--bandwidth", "0"]) == 2


@pytest.mark.parametrize("mode", ["averaging", "asynchronous"])
def test_other_modes_are_not_planned(mode: str, file: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cluster", "plan", file, "--set", f"run.operator.mode={mode}"]) == 2
    err = capsys.readouterr().err
    assert err.startswith(f"flowers.toml: trainer.operator: mode = '{mode}' is not modelled, synchronous training is.")
    assert err.count("\n") == 1


# -- several trainers --------------------------------------------------------------------------------------------------
@pytest.fixture
def two(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    text = FILE.replace("[data]", "[trainers.a.data]").replace("[network]", "[trainers.a.network]")
    head, _, tables = text.replace("[trainer]", "[trainers.a]").partition("operator = ")
    operator, _, tables = tables.partition("\n")
    b = tables.replace("trainers.a", "trainers.b").replace("dense(8)", "dense(9)")
    Path("two.toml").write_text(f"{head}{tables}{b}operator = {operator}\n")
    return "two.toml"


def test_each_trainer_that_has_workers_is_checked(
    two: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sigma_operator_processes.ProcessesOperator.connect", lambda self: ThreadOperator().connect())
    assert main(["cluster", "check", two, "--json"]) == 0
    trainers = json.loads(capsys.readouterr().out)["trainers"]
    assert {place: report["gradients"] for place, report in trainers.items()} == {
        "trainers.b": 4 * (4 * 9 + 9 + 9 * 3 + 3)
    }
    assert main(["cluster", "check", two, "--set", "trainers.b.operator=local"]) == 2
    assert capsys.readouterr().err.startswith("two.toml: trainers.a.operator has no workers in other processes")


def test_each_trainer_is_planned(two: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cluster", "plan", two]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == [
        "trainers.a:",
        "WORKERS",
        "1",
        "trainers.b:",
        "WORKERS",
        "1",
        "2",
        "4",
    ]
    assert main(["cluster", "plan", two, "--set", "trainers.b.operator.mode=averaging"]) == 2
    assert capsys.readouterr().err.startswith("two.toml: trainers.b.operator: mode = 'averaging' is not modelled")


# -- wrong input -------------------------------------------------------------------------------------------------------
def test_a_run_folder_that_cannot_be_created_is_named(
    file: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(prefix: str, dir: Path) -> Any:
        raise FileNotFoundError(2, "No such file or directory", str(dir))

    monkeypatch.setattr("sigma_cluster.checking.TemporaryDirectory", refuse)
    assert main(["cluster", "check", file, "--set", "run.folder='far/away'"]) == 2
    err = capsys.readouterr().err
    assert err.splitlines() == [
        f"{Path.cwd()}/far/away: cannot be created: No such file or directory. Choose another run.folder."
    ]


@pytest.mark.parametrize(
    "options", [["--latency", "nan"], ["--latency", "inf"], ["--bandwidth", "nan"], ["--bandwidth", "inf"]]
)
def test_numbers_that_are_not_finite_are_refused(
    file: str, options: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["cluster", "plan", file, *options]) == 2
    assert f"{options[1]} is not a finite number." in capsys.readouterr().err
