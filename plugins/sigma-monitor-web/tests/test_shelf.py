"""``sigma ui``: run folders as they lie there, those that train, and what may be done to them."""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sigma_kernel import Environment, View
from sigma_kernel.errors import SigmaConfigError, SigmaError, SigmaStateError, SigmaTrainingError
from sigma_monitor_web.archive import Archive
from sigma_monitor_web.ended import EndedRun
from sigma_monitor_web.keys import BOTH, READ
from sigma_monitor_web.relay import Relay
from sigma_monitor_web.run_actions import REMOVED, TRASH, RunActions
from sigma_monitor_web.shelf import Shelf
from sigma_monitor_web.talk import Talk
from sigma_run import from_file, load
from sigma_store import FolderStore, read_journal
from sigma_store.regular import open_regular
from sigma_testing import Slow, Sweep, ViewSuite, small_environment
from sigma_testing.journals import replace_metrics
from sigma_testing.stores import metrics_row, publish_media

PATIENCE = 60.0


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Wait for lists for as long as a slow machine needs; close what was opened."""
    monkeypatch.setattr("sigma_monitor_web.listing.PROMPT", PATIENCE)
    yield
    while OPEN:
        OPEN.pop()()


OPEN: list[Callable[[], None]] = []


class Opened(Shelf):
    """A directory that is closed after the test, and all conversations with it."""

    def __init__(self, *settings: Any, **more: Any) -> None:
        super().__init__(*settings, **more)
        OPEN.append(self.end)

    def talk(self, run: str, scopes: frozenset[str], who: str = "") -> Talk:
        made = super().talk(run, scopes, who)
        OPEN.append(made.close)
        return made


GENTLY = {"type": "gradient_descent", "learning_rate": 0.05}


def environment(folder: Path, name: str = "plane", **settings: Any) -> Environment:
    x = np.random.default_rng(0).normal(size=(40, 3)).astype("float32")
    sigma = Environment(name, folder=folder)
    rows = {"inputs": x, "targets": x @ np.array([[1.0], [-2.0], [0.5]], "float32")}
    sigma.create_trainer(
        network="input(3) + output(1) + squared_difference()",
        **{"data": rows, "optimiser": GENTLY, "batch_size": 8, "epochs": 4, **settings},
    )
    return sigma


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a run that went back once, and ended."""
    with environment(tmp_path_factory.mktemp("runs")) as sigma:
        sigma.prepare()
        trainer = sigma.trainer("trainer")
        trainer.fit(epochs=2)
        sigma.rewind(1, "epoch")
        sigma.set("trainer.optimiser.learning_rate", 0.1)
        sigma.run()
        assert sigma.run_folder is not None
        return sigma.run_folder


class TestArchive(ViewSuite):
    @pytest.fixture(autouse=True)
    def _finished(self, finished: Path) -> None:
        self.folder = finished

    @contextmanager
    def make(self) -> Iterator[View]:
        yield Archive(self.folder)


def test_an_archive_shows_each_checkpoint_as_it_is_loaded(finished: Path) -> None:
    trainer = Archive(finished).trainer("trainer")
    first, *_, last = [state.iteration for state in trainer.states()]
    seen = dict[int, bytes]()
    for at in (first, last):
        then, loaded = trainer.state(at), load(finished, checkpoint=at)
        name = "network.layers.1-output.weights"
        assert then.parameters()[f"trainer.{name}"].tobytes() == loaded.parameters()[name].tobytes()
        seen[at] = then.losses("training").losses.tobytes()
        assert seen[at] == loaded.data.losses("training").losses.tobytes()
    assert seen[first] != seen[last]
    with pytest.raises(SigmaStateError, match="iteration 3: no such state is kept. Choose another one."):
        trainer.state(3)


def test_an_archive_shows_what_the_folder_holds(finished: Path) -> None:
    view = Archive(finished)
    summary = json.loads((finished / "summary.json").read_text())
    assert (view.name, view.status()) == ("plane", "finished")
    assert view.get("trainer.iteration") == summary["iterations"] == 20
    assert view.get("trainer.epoch") == 4
    assert [layer.component for layer in view.trainer("trainer").network()] == ["input", "output", "squared_difference"]
    assert (view.trainer("trainer").network()[0].shape, view.trainer("trainer").network()[0].settings["section"]) == (
        (3,),
        "inputs",
    )
    assert view.trainer("trainer").network()[1].parameters["trainer.network.layers.1-output.weights"] == (3, 1)
    assert view.get("trainer.network.layers.1-output.weights").shape == (3, 1)
    assert [branch.number for branch in view.trainer("trainer").branches()] == [0, 1]
    assert view.trainer("trainer").states()[-1].iteration == 20
    assert [row["value"] for _, row in view.journal() if row.get("command") == "set"] == [0.1]
    assert view.trainer("trainer").predict(np.zeros((2, 3), "float32"))["1-output"].shape == (2, 1)
    made = view.trainer("trainer").activations(np.ones((2, 3), "float32"))
    assert {name: values.shape for name, values in made.items()} == {"0-input": (2, 3), "1-output": (2, 1)}
    assert view.trainer("trainer").columns() == {}


def test_an_archive_tells_shapes_and_what_layers_and_optimisers_hold(finished: Path) -> None:
    trainer = Archive(finished).trainer("trainer")
    assert [layer.shape for layer in trainer.network()] == [(3,), (1,), ()]
    work = {entry.name: entry for entry in trainer.work()}
    assert [*work] == ["0-input", "1-output", "2-squared_difference", "optimiser"]
    assert work["1-output"].sizes == {"parameters": 4 * (3 + 1), "slots": 4 * 2}  # how often each was updated
    assert {entry.operations for entry in work.values()} == {None}
    optimiser = work["optimiser"]
    assert (optimiser.component, optimiser.updates) == ("gradient_descent", ("1-output",))
    assert optimiser.minimises == ("2-squared_difference",)
    assert EndedRun(finished / "nowhere").trainer("trainer").work() == []


def test_an_archive_has_the_curves_of_every_branch(finished: Path) -> None:
    cursor, found = Archive(finished).stretches("trainer.training.loss")
    assert [(one.branch, one.curve.iterations[-1]) for one in found] == [(0, 10), (1, 20)]
    assert found[1].curve.iterations[0] > 5  # where branch 1 left branch 0
    whole = [int(at) for one in found for at in one.curve.iterations]
    assert cursor == len(whole)
    for after in range(cursor + 1):
        end, rest = Archive(finished).stretches("trainer.training.loss", after)
        assert end == cursor
        assert [int(at) for one in rest for at in one.curve.iterations] == whole[after:]
    thinned = Archive(finished).stretches("trainer.training.loss", most=2)[1]
    assert [len(one.curve.values) for one in thinned] == [1, 1]  # of each branch at least one


def test_an_archive_tells_the_epochs_of_checkpoints_whatever_its_curves_are(finished: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(finished, tmp_path / "copy"))
    expected = [(state.iteration, state.epoch) for state in Archive(finished).trainer("trainer").states()]
    assert expected[-1] == (20, 4)
    replace_metrics(copy, (metrics_row(n, np.array([1.0])) for n in range(100, 5000)))
    assert [(state.iteration, state.epoch) for state in Archive(copy).trainer("trainer").states()] == expected
    (copy / "curves.bin").unlink()
    assert [(state.iteration, state.epoch) for state in Archive(copy).trainer("trainer").states()] == expected


def test_an_archive_tells_the_last_value_on_the_way_to_the_result(finished: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(finished, tmp_path / "copy"))
    rows = [metrics_row(n, np.array([float(n)])) for n in range(1, 3001)]
    for number, start, name in ((1, 2007, "training.other"), (2, 1003, "training.third")):  # each leaves the one before
        for at in range(start + 1, start + 1000):
            row = metrics_row(at, np.array([-float(at)]), branch=number, start=start)
            rows.append({**row, "values": {name: row["values"]["training.loss"]}})
    replace_metrics(copy, rows)
    values = {entry.address: entry.value for entry in Archive(copy).entries()}
    assert values["trainer.training.loss"] == 1003  # where its branch was left for good
    assert "trainer.training.other" not in values
    assert values["trainer.training.third"] == -2002
    assert (values["trainer.iteration"], values["trainer.epoch"]) == (2002, 200)


def test_an_archive_reads_the_data_of_a_run_when_it_is_asked_for_them(finished: Path) -> None:
    view = Archive(finished)
    assert view.trainer("trainer").edits() == {}
    talk = Opened(finished.parent).talk(finished.name, BOTH)
    assert asked(talk, do="status")["trainers"]["trainer"]["rows"] is None  # not yet
    assert asked(talk, do="splits") == {"training": 40}
    x = np.random.default_rng(0).normal(size=(40, 3)).astype("float32")
    assert (view.trainer("trainer").rows("training", [39, 2])["inputs"] == x[[39, 2]]).all()
    found, weights = view.trainer("trainer").losses("training"), view.get("trainer.network.layers.1-output.weights")
    biases = view.get("trainer.network.layers.1-output.biases")
    wanted = ((x @ weights + biases - x @ np.array([[1.0], [-2.0], [0.5]], "float32")) ** 2)[:, 0]
    np.testing.assert_allclose(found.losses, wanted, rtol=1e-4)
    assert asked(talk, do="losses", count=1)["rows"][0]["row"] == int(wanted.argmax())
    assert "SIGMA_OFFLINE" not in os.environ


def test_an_archive_says_why_the_data_of_a_run_cannot_be_read(finished: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(finished, tmp_path / "copy"))
    config = (copy / "config.toml").read_text()
    assert "[data" in config
    shutil.rmtree(copy / "data")
    talk = Opened(tmp_path).talk("copy", BOTH)
    assert asked(talk, do="splits")["kind"] == "SigmaDataError"
    assert asked(talk, do="inputs")["inputs"][0]["shape"] == [3]  # what the network takes is known all the same


def test_code_that_a_run_names_is_not_imported_to_read_its_data(tmp_path: Path) -> None:
    with small_environment(Sweep(), epochs=1) as sigma:
        sigma.folder = tmp_path
        sigma.run()
        assert sigma.run_folder is not None
        talk = Opened(tmp_path).talk(sigma.run_folder.name, BOTH)
    assert asked(talk, do="splits")["kind"] in ("SigmaConfigError", "SigmaCheckpointError")


def test_files_that_are_damaged_or_missing_leave_the_rest(finished: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(finished, tmp_path / "copy"))
    (copy / "curves.bin").write_text('{"format": 1}\nnonsense\n[1]\n')
    (copy / "journal.jsonl").unlink()
    view = Archive(copy)
    assert (view.entries(), view.journal(), view.stretches("trainer.training.loss")) == ([], [], (0, []))
    shutil.rmtree(copy / "checkpoints")
    assert Archive(copy).trainer("trainer").network() == []
    (copy / "summary.json").unlink()
    assert Archive(copy).status() == "interrupted"  # its process did not say how it ended
    (copy / "curves.bin").unlink()
    (copy / "curves.bin").symlink_to(finished / "curves.bin")
    assert Archive(copy).entries() == []


def test_a_folder_that_is_moved_away_while_it_is_shown_leaves_an_empty_view(finished: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(finished, tmp_path / "copy"))
    view = Archive(copy)
    assert view.journal() != []
    copy.rename(tmp_path / "moved")
    assert (view.entries(), view.journal(), view.trainer("trainer").states()) == ([], [], [])
    assert view.status() == "interrupted"


@pytest.mark.parametrize("name", ["journal.jsonl", "curves.bin", "config.toml"])
def test_a_pipe_in_a_run_folder_is_not_waited_for(finished: Path, tmp_path: Path, name: str) -> None:
    copy = Path(shutil.copytree(finished, tmp_path / "copy"))
    (copy / name).unlink()
    os.mkfifo(copy / name)
    view = Archive(copy)
    assert view.name == ("copy" if name == "config.toml" else "plane")
    assert bool(view.journal()) == (name != "journal.jsonl")
    assert bool(view.entries()) == (name != "curves.bin")
    with pytest.raises(OSError, match="not a regular file"):
        open_regular(copy / name)


def test_a_number_that_json_has_none_for_does_not_hide_a_list(finished: Path, tmp_path: Path) -> None:
    for name in ("good", "bad"):
        shutil.copytree(finished, tmp_path / name)
    (tmp_path / "bad" / "summary.json").write_text('{"status": "finished", "metrics": {"loss": 1e999}}')
    (tmp_path / "bad" / "journal.jsonl").write_text('{"a": 1e999, "b": NaN, "c": 0.5}\n')
    talk = Opened(tmp_path).talk("bad", BOTH)
    assert {one["name"]: one["metrics"].get("loss", 0) for one in asked(talk, do="runs")} == {"good": 0, "bad": None}
    assert [row for _, row in Archive(tmp_path / "bad").journal()] == [{"a": None, "b": None, "c": 0.5}]


def test_what_a_process_writes_is_read_again(tmp_path: Path) -> None:
    with environment(tmp_path, epochs=1) as sigma:
        sigma.run()
        assert sigma.run_folder is not None
        view = Archive(sigma.run_folder)
        cursor, found = view.stretches("trainer.training.loss")
        assert found[-1].curve.iterations[-1] == 5
        sigma.trainer("trainer").fit(epochs=1)
    _, more = view.stretches("trainer.training.loss", cursor)
    assert more[-1].curve.iterations[-1] == 10


# -- a directory -------------------------------------------------------------------------------------------------------
def asked(talk: Any, **document: Any) -> Any:
    lines = talk.receive(json.dumps({"id": 1, **document}))
    while not lines or "event" in lines[-1]:  # a command is acknowledged first
        lines += talk.answers()
    answer = json.loads(lines[-1])
    return answer.get("result", answer.get("error"))


def test_a_directory_tells_why_a_run_failed(tmp_path: Path) -> None:
    wild = GENTLY | {"learning_rate": 1e38}
    with environment(tmp_path, optimiser=wild) as sigma, pytest.raises(SigmaTrainingError) as failed:
        sigma.run()
    told = asked(Opened(tmp_path).talk("", BOTH), do="status")
    assert (told["status"], told["why"]) == ("failed", str(failed.value))


def test_a_directory_lists_its_runs_and_talks_about_each(finished: Path) -> None:
    shelf = Opened(finished.parent)
    talk = shelf.talk(finished.name, BOTH)
    (run,) = asked(talk, do="runs")
    assert (run["name"], run["status"], run["epochs"]) == (finished.name, "finished", 4)
    assert asked(talk, do="hello")["name"] == "plane"
    assert asked(shelf.talk("", BOTH), do="hello")["name"] == "plane"  # the newest
    assert asked(talk, do="command", name="pause")["why"].endswith("Resume it first.")


def test_a_study_is_a_directory_of_runs_and_none_itself(finished: Path, tmp_path: Path) -> None:
    study = tmp_path / "study"
    shutil.copytree(finished, study / "0")
    (study / "study.json").write_text('{"format": 1}')
    (study / "journal.jsonl").write_text('{"format": 1}\n')
    assert [run["name"] for run in asked(Opened(study).talk("0", BOTH), do="runs")] == ["0"]
    shutil.copytree(finished, tmp_path / "alone")
    shelf = Opened(tmp_path)
    assert [run["name"] for run in asked(shelf.talk("alone", BOTH), do="runs")] == ["alone"]
    with pytest.raises(SigmaConfigError, match="is not the name of a run folder"):
        shelf.path("study")


def test_a_directory_without_runs_can_be_looked_at(tmp_path: Path) -> None:
    talk = Opened(tmp_path / "nothing").talk("", BOTH)
    assert asked(talk, do="runs") == []
    assert asked(talk, do="status")["status"] == "finished"


@pytest.mark.parametrize("name", ["", ".", "..", "../runs", "/etc", "a/b", "nothing", ".trash", "x\0y"])
def test_nothing_outside_of_the_directory_is_reached(finished: Path, name: str) -> None:
    with pytest.raises((SigmaConfigError, ValueError)):
        Opened(finished.parent).path(name)


@pytest.mark.parametrize("name", ["n" * 5000, "ä" * 200, "a\0b"])
def test_a_name_that_no_file_system_takes_is_no_run(finished: Path, name: str) -> None:
    for do in ("delete", "resume", "replay"):
        told = asked(Opened(finished.parent).talk(finished.name, BOTH), do=do, run=name)
        assert told["kind"] == "SigmaConfigError"
        assert "is not the name of a run folder in" in told["message"]
        assert len(told["message"]) < 500


def test_a_directory_in_place_of_a_file_is_left_out(finished: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(finished, tmp_path / "copy"))
    for name in ("journal.jsonl", "curves.bin"):
        (copy / name).unlink()
        (copy / name).mkdir()
    assert (Archive(copy).journal(), Archive(copy).entries()) == ([], [])


def test_a_link_is_no_run(finished: Path, tmp_path: Path) -> None:
    (tmp_path / "linked").symlink_to(finished)
    with pytest.raises(SigmaConfigError, match="is not the name of a run folder"):
        Opened(tmp_path).path("linked")


def test_a_run_is_deleted_by_moving_it_to_the_trash(finished: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(finished, tmp_path / "copy"))
    before = {path.relative_to(copy): path.read_bytes() for path in copy.rglob("*") if path.is_file()}
    shelf = Opened(tmp_path)
    refused = asked(shelf.talk("copy", frozenset({READ})), do="delete", run="copy")
    assert "unknown" in refused["message"]
    place = Path(asked(shelf.talk("copy", BOTH), do="delete", run="copy"))
    assert place.parent == tmp_path / TRASH
    assert {path.relative_to(place): path.read_bytes() for path in place.rglob("*") if path.is_file()} == before
    assert asked(shelf.talk("", BOTH), do="runs") == []


def test_who_deletes_a_run_is_told_in_the_terminal_and_noted_in_the_trash(
    finished: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("one", "two"):
        shutil.copytree(finished, tmp_path / name)
    shelf = Opened(tmp_path)
    refused = asked(shelf.talk("one", BOTH, "anna"), do="delete", run="one", who="ben")
    assert "who" in refused["message"]
    places = [Path(asked(shelf.talk("one", BOTH, "anna"), do="delete", run="one"))]
    places.append(Path(asked(shelf.talk("two", BOTH), do="delete", run="two")))
    rows = [json.loads(line) for line in (tmp_path / TRASH / REMOVED).read_text().splitlines()]
    assert [(row["run"], row["place"], row.get("who")) for row in rows] == [
        ("one", places[0].name, "anna"), ("two", places[1].name, None),
    ]  # fmt: skip
    assert f"anna: one: moved to {places[0]}\ntwo: moved to {places[1]}\n" in capsys.readouterr().err


def test_a_run_is_deleted_also_if_that_cannot_be_noted(
    finished: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(finished, tmp_path / "copy")
    (tmp_path / TRASH).mkdir()
    (tmp_path / TRASH / REMOVED).symlink_to(tmp_path / "elsewhere")
    assert Path(asked(Opened(tmp_path).talk("copy", BOTH, "anna"), do="delete", run="copy")).is_dir()
    assert f"anna: {tmp_path / TRASH / REMOVED}: cannot be written" in capsys.readouterr().err
    assert not (tmp_path / "elsewhere").exists()


def test_a_trash_that_is_a_link_is_refused(finished: Path, tmp_path: Path) -> None:
    shutil.copytree(finished, tmp_path / "runs" / "copy")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "runs" / TRASH).symlink_to(tmp_path / "elsewhere")
    shelf = Opened(tmp_path / "runs")
    with pytest.raises(SigmaError, match="is a link. Remove it"):
        RunActions(shelf.path, shelf.aside).delete(None, "copy")


def test_a_run_that_trains_is_steered_through_its_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SIGMA_CONTROL", raising=False)
    with environment(
        tmp_path, epochs=None, hooks={"slow": Slow(), "end": {"type": "stop", "when": "epoch reaches 9999"}}
    ) as sigma:
        handle = sigma.run_async()
        assert sigma.run_folder is not None
        name, shelf = sigma.run_folder.name, Opened(tmp_path)
        while not (sigma.run_folder / "control.json").exists():
            assert not handle.wait(0.01)
        talk = shelf.talk(name, BOTH)
        assert isinstance(talk, Relay)
        assert asked(talk, do="hello")["scopes"] == ["read", "steer"]
        done = asked(talk, do="set", pattern="trainer.optimiser.learning_rate", value=0.25)
        assert done["state"] == "applied"
        assert sigma.get("trainer.optimiser.learning_rate") == 0.25
        anna = shelf.talk(name, BOTH, "anna")
        asked(anna, do="set", pattern="trainer.optimiser.learning_rate", value=0.25, who="ben")
        rows = [row for _, row in sigma.rows.entries_after(0) if row.get("command") == "set"]
        assert [row.get("who") for row in rows] == [None, "anna"]
        assert asked(talk, do="tickets")[-1]["who"] == "anna"
        anna.last_lines()
        assert "a process writes to it" in asked(talk, do="delete", run=name)["message"]
        reader = shelf.talk(name, frozenset({READ}))
        assert asked(reader, do="hello")["scopes"] == ["read"]
        assert (
            "not allowed here" in asked(reader, do="set", pattern="trainer.optimiser.learning_rate", value=1)["message"]
        )
        assert sigma.get("trainer.optimiser.learning_rate") == 0.25
        assert [one["status"] for one in asked(talk, do="runs")] == ["running"]
        for one in (talk, reader):
            one.last_lines()
        handle.stop()
        handle.result(PATIENCE)


@pytest.mark.long
def test_a_run_is_resumed_and_what_keeps_it_from_that_is_told(
    finished: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(finished, tmp_path / "copy")
    talk = Opened(tmp_path).talk("copy", BOTH, "anna")
    process = asked(talk, do="resume", run="copy", epochs=6)
    assert process is None or process > 0  # it may have ended before it was looked at
    end = time.monotonic() + PATIENCE
    while (described := asked(talk, do="runs")[0])["epochs"] != 6 or described["status"] != "finished":
        assert time.monotonic() < end
        time.sleep(0.1)
    assert asked(Opened(tmp_path).talk("copy", BOTH), do="status")["trainers"]["trainer"]["epoch"] == 6
    assert [row.get("who") for row in read_journal(tmp_path / "copy", event="resumed")] == ["anna"]
    assert "anna: copy: resumes\n" in capsys.readouterr().err
    assert asked(talk, do="replay", run="copy")["identical"]  # whoever it was
    (tmp_path / "copy" / "journal.jsonl").write_text("nonsense\n")
    refused = asked(talk, do="resume", run="copy")
    assert (refused["kind"], "is not the first line of a journal" in refused["message"]) == ("SigmaStateError", True)


def test_a_replay_says_whether_it_is_identical(finished: Path) -> None:
    found = asked(Opened(finished.parent).talk(finished.name, BOTH), do="replay", run=finished.name)
    assert found["identical"], found
    assert "replay is identical" in found["text"]


def test_data_that_lie_elsewhere_now_are_read_there(tmp_path: Path) -> None:
    rows = "a,b,c,y\n" + "".join(f"{i % 7},{i % 5},{i % 3},{i % 2}\n" for i in range(40))
    (tmp_path / "t.csv").write_text(rows)
    data = {"type": "csv", "path": str(tmp_path / "t.csv"), "target": "y", "split": {"training": 1.0}}
    with environment(tmp_path / "runs", epochs=1, data=data) as sigma:
        sigma.run()
        assert sigma.run_folder is not None
        name = sigma.run_folder.name
    with environment(tmp_path / "runs", "arrays", epochs=1) as sigma:  # whose rows are saved with it
        sigma.run()
        assert sigma.run_folder is not None
        saved = sigma.run_folder.name
    (tmp_path / "t.csv").rename(tmp_path / "moved.csv")
    missing = asked(Opened(tmp_path / "runs").talk(name, BOTH), do="splits")
    assert "If it lies elsewhere now, say where: --data PATH" in str(missing)
    shelf = Opened(tmp_path / "runs", data=tmp_path / "moved.csv")
    assert asked(shelf.talk(name, BOTH), do="splits") == {"training": 40}
    assert asked(shelf.talk(saved, BOTH), do="splits") == {"training": 40}


@pytest.mark.long
def test_a_directory_tells_the_baselines_of_a_run_and_describes_its_data(finished: Path, tmp_path: Path) -> None:
    shutil.copytree(finished, tmp_path / "run")
    summary = json.loads((tmp_path / "run" / "summary.json").read_text())
    told = {"baselines": {"mean": {"training.loss": 0.5}}, "advice": ["no better than the mean."]}
    (tmp_path / "run" / "summary.json").write_text(json.dumps({**summary, **told}))
    talk = Opened(tmp_path).talk("", {READ})
    assert asked(talk, do="hello")["process"] == os.getpid(), "no process trains"
    assert asked(talk, do="results") == {"metrics": summary["metrics"], **told}
    profile = asked(talk, do="profile", trainer="trainer")
    assert (profile["parts"], profile["width"]) == ({"training": 40}, 4)
    assert "error" not in {finding["severity"] for finding in asked(talk, do="findings", trainer="trainer")}
    assert "'nobody'" in asked(talk, do="profile", trainer="nobody")["message"]


def test_an_archive_shows_the_media_of_the_folder(finished: Path, tmp_path: Path) -> None:
    folder = tmp_path / "copy"
    shutil.copytree(finished, folder)
    view = Archive(folder).trainer("trainer")
    assert (view.media(), view.media_version()) == ([], None)
    run = FolderStore().open(folder, print, lambda run: None)
    run.lock()
    run.reopen(None, run.excerpt(["trainer"], print))
    publish_media(run, 3)
    (entry,) = view.media()
    assert view.media_version() is not None
    assert (entry.iteration, view.read_media(entry.key)) == (3, b"3")
    publish_media(run, 4)
    assert [entry.iteration for entry in view.media()] == [3, 4], "a folder that is written to is read again"
    assert Archive(folder).trainer("other").media() == []


def test_a_run_is_replayed_whoever_has_sent_its_commands_and_its_journal_names_them(tmp_path: Path) -> None:
    with from_file("iris", "trainer.epochs=4", "run.control=false", folder=tmp_path) as sigma:
        sigma.prepare()
        sigma.trainer("trainer").fit(epochs=2)
        sigma.send("set", pattern="trainer.optimiser.learning_rate", value=0.5, who="anna")
        sigma.run()
        folder = sigma.run_folder
    assert folder is not None
    (row,) = [row for _, row in Archive(folder).journal() if row.get("command") == "set"]
    assert row["who"] == "anna"
    shelf = Opened(tmp_path)
    answer = asked(shelf.talk(folder.name, BOTH), do="replay", run=folder.name)
    assert answer["identical"], answer["text"]


def test_the_names_of_runs_and_the_commands_that_train_them_again_are_told(finished: Path, tmp_path: Path) -> None:
    shelf = Opened(finished.parent)
    talk = shelf.talk(finished.name, BOTH)
    asked(talk, do="mark", run=finished.name, title="A plane")
    assert asked(talk, do="names") == [[finished.name, "A plane", "finished"]]
    again = asked(talk, do="reproduce")
    assert (again["edits"], again["seed"]) == (2, 0)
    assert again["command"] == f"sigma run {finished}/config.toml"
