"""Tables in lanes: workers read those of their shards, and bits depend neither on them nor on what happens to them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from attrs import define

import sigma_ml as sm
from sigma_data.prepared.blocks import RowBlocks
from sigma_kernel import Environment, Hook, HookContext, SigmaConfigError, every
from sigma_kernel.clock import TimeStep
from sigma_operator_local import LocalOperator
from sigma_run.launcher.group import main
from sigma_testing import Do, state_bytes
from sigma_testing.transports.threads import ThreadOperator, kill_at_random
from tests.test_groups import until

pytestmark = pytest.mark.rooms
LANES = 4
TABLE: Mapping[str, Any] = {"type": "table", "path": "houses.parquet", "target": "kind", "block_rows": 12}
SERIES: Mapping[str, Any] = {
    "type": "series", "path": "load.parquet", "time": "hour", "target": "load", "past": 6, "ahead": 2, "block_rows": 12,
}  # fmt: skip
CLASSES = "input() + dense(8, activation='tanh') + dropout(0.2) + output() + softmax_cross_entropy()"
LINEAR = "input() + flatten() + output(2) + squared_difference()"
CASES: dict[str, tuple[Mapping[str, Any], dict[str, Any]]] = {
    "classes": (TABLE, {}),
    "last batch of one row": (TABLE, {"batch_size": 13}),
    "batches smaller than lanes": (TABLE, {"batch_size": 3}),
    "weighted classes, drawn by class": ({**TABLE, "class_weights": "balanced"}, {"iterator": "balanced"}),
    "augmented": (TABLE, {"augmentations": {"noise": {"type": "noise", "deviation": 0.1}}}),
    "in order": (TABLE, {"iterator": "sequential", "last_batch": "drop"}),
    "one lot": ({**TABLE, "block_rows": 200}, {}),
    "series, mixed": (SERIES, {"network": LINEAR, "augmentations": {"mix": "mix_up"}}),
}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Work in a folder with a table that is sorted by its classes, and a series."""
    monkeypatch.chdir(tmp_path)
    draws = np.random.default_rng(0)
    frame = pd.DataFrame({f"x{i}": draws.normal(size=501) for i in range(4)})
    frame["kind"] = np.where(frame["x0"] + frame["x1"] > 0.5, "house", "flat")
    frame.sort_values("kind").to_parquet("houses.parquet")
    hours = pd.date_range("2020-01-01", periods=400, freq="h")
    pd.DataFrame({"hour": hours, "load": np.sin(np.arange(400) / 4)}).to_parquet("load.parquet")


def build(operator: Any, data: Mapping[str, Any] = TABLE, folder: Path | None = None, **settings: Any) -> Environment:
    """Return an environment whose data are in as many lanes as there are shards."""
    sigma = Environment("lanes", seed=3, folder=folder)
    given = {"network": CLASSES, "batch_size": 22, "backend": "numpy", "epochs": 3, **settings}
    sigma.create_trainer(
        data={"cache": "cache", "lanes": LANES, **data},
        optimiser={"type": "adam", "learning_rate": 0.01},
        operator=operator,
        **given,
    )
    return sigma


def train(operator: Any, *given: Any, **settings: Any) -> dict[str, bytes]:
    """Return the state after training."""
    with build(operator, *given, **settings) as sigma:
        sigma.run(progress=False)
        return state_bytes(sigma.trainer("trainer"))


@pytest.mark.long_cases(
    "augmented",
    "batches smaller than lanes",
    "classes",
    "last batch of one row",
    "series, mixed",
    "weighted classes, drawn by class",
)
@pytest.mark.parametrize("case", CASES)
def test_bits_do_not_depend_on_the_number_of_workers_or_on_memory(case: str) -> None:
    data, settings = CASES[case]
    wanted = train(LocalOperator(shards=LANES), data, **settings)
    assert train(LocalOperator(shards=LANES, workers=3), {**data, "memory": "0 B"}, **settings) == wanted
    for workers in (1, 3):
        assert train(ThreadOperator(workers=workers, shards=LANES), data, **settings) == wanted
    assert train(LocalOperator(shards=LANES), {**data, "lanes": 1}, **settings) != wanted


def test_rows_of_lanes_are_learned_as_those_of_one_lane_are() -> None:
    losses = []
    for lanes in (1, LANES):
        with build(LocalOperator(shards=LANES), {**TABLE, "lanes": lanes}, epochs=25) as sigma:
            sigma.run(progress=False)
            losses.append(sigma.trainer("trainer").evaluate("validation")["loss"])
    assert max(losses) < 0.25


@pytest.mark.parametrize("workers", [1, 2, 4])
def test_a_worker_reads_the_blocks_of_its_lanes_alone_and_the_operator_none(
    workers: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads, read = defaultdict[int, set[int]](set), RowBlocks.block
    monkeypatch.setattr("sigma_training.data.identity.MOST", 1)  # bytes of the rows that are compared

    def count(rows: RowBlocks, block: int) -> Mapping[str, np.ndarray]:
        if len(rows) > 300:  # those of the training
            reads[id(rows._resident)].add(block)
        return read(rows, block)

    monkeypatch.setattr(RowBlocks, "block", count)
    train(ThreadOperator(workers=workers, shards=LANES, at_least=workers), epochs=2)
    operator, *each = sorted(map(len, reads.values()))
    assert (operator, len(each)) == (1, workers)  # one block is looked at before training
    blocks = 34  # of 400 rows
    assert blocks <= sum(each) <= blocks + 3 * workers
    assert each[-1] <= blocks / workers + 3


@pytest.mark.long
def test_lanes_are_taken_over_from_workers_that_die() -> None:
    wanted = train(LocalOperator(shards=LANES), epochs=15)
    operator = ThreadOperator(workers=3, shards=LANES, burst_seconds=0.01)
    with kill_at_random(operator, 0, 0.3) as killed:
        assert train(operator, epochs=15) == wanted
    assert killed


@pytest.mark.long_cases("batches smaller than lanes", "last batch of one row")
@pytest.mark.parametrize("case", ["classes", "last batch of one row", "batches smaller than lanes"])
def test_replicas_that_are_averaged_have_lanes_of_their_own(case: str) -> None:
    data, settings = CASES[case]
    modes = {"mode": "averaging", "every": 3}
    wanted = train(LocalOperator(shards=LANES, **modes), data, **settings)
    assert train(ThreadOperator(workers=3, shards=LANES, **modes), data, **settings) == wanted
    assert train(LocalOperator(shards=LANES), data, **settings) != wanted


# -- what happens in a run ---------------------------------------------------------------------------------------------
@define(eq=False, kw_only=True)
class Edit(Hook):
    """Leave out rows and give others another label in the middle of an epoch; later, take rows in again."""

    every: TimeStep = every(7, "iteration")

    def fire(self, context: HookContext) -> None:
        turn = context.memory["turn"] = context.memory.get("turn", 0) + 1
        if turn == 2:
            context.command("exclude", rows=[*range(40), 399])
            context.command("relabel", rows=[50, 51, 399], label="house")
        if turn == 6:
            context.command("include", rows=[3, 399])
        if turn == 7:
            context.command("set", pattern="batch_size", value=17)


def test_edits_of_the_data_reach_the_workers() -> None:
    wanted = train(LocalOperator(shards=LANES), hooks={"edit": Edit()}, epochs=6)
    assert train(ThreadOperator(workers=3, shards=LANES), hooks={"edit": Edit()}, epochs=6) == wanted
    assert train(LocalOperator(shards=LANES), epochs=6) != wanted


def test_epochs_after_a_rewind_are_repeated_by_workers_to_the_bit() -> None:
    with build(ThreadOperator(workers=2, shards=LANES), epochs=None) as sigma:
        trainer = sigma.trainer("trainer")
        trainer.fit(epochs=3)
        wanted = state_bytes(trainer)
        sigma.rewind(1, "epoch")
        trainer.fit(epochs=2)
        assert state_bytes(trainer) == wanted


def test_a_run_is_resumed_with_other_workers_and_replayed_without(tmp_path: Path) -> None:
    operator, wanted = ThreadOperator(workers=3, shards=LANES, burst_seconds=0.002), train(LocalOperator(shards=LANES))
    sigma = build(operator, folder=tmp_path / "runs")
    handle = sigma.run_async(progress=False)
    until(lambda: sigma.get("trainer.iteration") > 21)  # in the second epoch of three
    handle.stop()
    assert handle.result().iterations < 57
    with build(LocalOperator(shards=LANES, workers=2)) as again:
        again.resume(sigma.run_folder)
        again.run(progress=False)
        assert state_bytes(again.trainer("trainer")) == wanted
    with build(LocalOperator(shards=LANES)) as replayed:
        assert replayed.replay(sigma.run_folder, progress=False)[1] == {}


def test_what_is_observed_is_read_by_the_operator() -> None:
    address = "gradients.1-dense.weights"

    def observe(operator: Any) -> list[np.ndarray]:
        seen: list[np.ndarray] = []
        look = Do(every=every(5, "iteration"), does=lambda context: seen.append(context.read(address)), reads=[address])
        train(operator, hooks={"look": look})
        return seen

    wanted = observe(LocalOperator(shards=LANES))
    assert len(wanted) > 3
    np.testing.assert_equal(observe(ThreadOperator(workers=2, shards=LANES)), wanted)


# -- files and sentences -----------------------------------------------------------------------------------------------
TOML = """
format = 1
[data]
dataset = { type = "table", path = "houses.parquet", target = "kind", block_rows = 12, cache = "cache", lanes = 4 }
batch_size = 22
[network]
architecture = "input() + dense(8, activation='tanh') + output() + softmax_cross_entropy()"
[trainer]
epochs = 2
operator = { type = "local", shards = 4 }
optimiser = "adam"
"""


def test_a_file_is_run_evaluated_and_explained(capsys: pytest.CaptureFixture[str]) -> None:
    Path("lanes.toml").write_text(TOML)
    assert main(["run", "lanes.toml", "--quiet", "--set=run.name=lanes"]) == 0
    run = next(Path("runs").glob("lanes-*"))
    assert "lanes = 4" in (run / "config.toml").read_text()
    assert main(["replay", str(run)]) == 0
    assert main(["evaluate", str(run), "houses.parquet"]) == 0
    loaded = sm.load(run)
    assert loaded.evaluate("validation")["loss"] < 1
    assert len(loaded.predict("houses.parquet").to_pandas()) == 501
    capsys.readouterr()
    assert main(["explain", "lanes.toml"]) == 0
    assert "rows of 16 are drawn together, in 4 lanes, one for each shard" in capsys.readouterr().out


def test_lanes_must_be_as_many_as_shards(capsys: pytest.CaptureFixture[str]) -> None:
    Path("lanes.toml").write_text(TOML.replace("shards = 4", "shards = 3"))
    assert main(["check", "lanes.toml"]) == 2
    why = "there are 4 lanes, and 3 shards of each batch, which have a lane each. Set lanes = 3, or shards = 4 for the"
    assert why in capsys.readouterr().err
    with pytest.raises(SigmaConfigError, match=why), build(LocalOperator(shards=3)) as sigma:
        sigma.prepare()


@pytest.mark.parametrize("data", [TABLE, SERIES])
def test_a_table_in_memory_has_no_lanes(data: Mapping[str, Any]) -> None:
    with (
        pytest.raises(SigmaConfigError, match=r"lanes: this table is read into memory.*Set block_rows, or leave out"),
        build(LocalOperator(shards=LANES), {**data, "block_rows": None}) as sigma,
    ):
        sigma.prepare()


def test_layers_that_carry_the_state_of_rows_refuse_lanes() -> None:
    network = "input() + lstm(4, carried=20) + flatten() + output(2) + squared_difference()"
    with (
        pytest.raises(SigmaConfigError, match=r"lanes change the order of the rows. Leave out lanes, or carried"),
        build(LocalOperator(shards=LANES), SERIES, network=network, iterator="sequential", batch_size=20) as sigma,
    ):
        sigma.prepare()
