"""Event files, as TensorBoard's own reader reads them."""

from __future__ import annotations

import io
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from attrs import define
from PIL import Image
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.plugins.hparams.metadata import SESSION_START_INFO_TAG, parse_session_start_info_plugin_data

from sigma_kernel import Environment, TimeStep, every
from sigma_kernel.contracts import AddressEntry, Hook, HookContext, Monitor, Operator
from sigma_kernel.errors import SigmaConfigError
from sigma_monitor_tensorboard import TensorboardMonitor
from sigma_monitor_tensorboard.events import MOST, Events
from sigma_monitor_tensorboard.settings import flat, settings
from sigma_monitor_tensorboard.writing import Writing
from sigma_testing import FakeView, MonitorSuite, Sweep


@pytest.fixture(scope="module", autouse=True)
def patient() -> Iterator[None]:
    """Wait for the last events for as long as a slow machine needs."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sigma_kernel.running.GRACE", 60.0)
        yield


class TestTensorboard(MonitorSuite):
    @pytest.fixture(autouse=True)
    def _folder(self, tmp_path: Path) -> None:
        self.folder = tmp_path

    def make(self) -> Monitor:
        return TensorboardMonitor(str(self.folder), interval=0.05, histograms=0.1)

    def operator(self) -> Operator:
        return Sweep()


@define(eq=False, kw_only=True)
class Draw(Hook):
    """Publish a picture of the epoch, and write one into the run folder."""

    every: TimeStep = every(1, "epoch")

    @property
    def writes(self) -> Sequence[str]:
        return ["drawn.*"]

    def fire(self, context: HookContext) -> None:
        context.publish("drawn.it", np.full((4, 6), context.moment.epoch, np.uint8))
        if context.folder is not None:
            (context.folder / "images").mkdir(exist_ok=True)
            Image.fromarray(np.full((2, 3, 3), 9, np.uint8)).save(context.folder / "images" / "nine.png")


def _environment(folder: Path | None, **options: Any) -> Environment:
    sigma = Environment("seen", seed=0, folder=folder)
    sigma.monitors["board"] = TensorboardMonitor(**{"interval": 0.05, **options})
    sigma.create_trainer(
        data="iris",
        network="input(4) + dense(8, activation='tanh') + output(3) + softmax_cross_entropy()",
        optimiser={"type": "adam", "learning_rate": 0.01},
        hooks={"accuracy": {"type": "accuracy", "on": "validation"}, "draw": Draw()},
        epochs=4,
    )
    return sigma


def _read(directory: Path) -> EventAccumulator:
    found = EventAccumulator(str(directory), size_guidance=dict.fromkeys(("scalars", "histograms", "images"), 0))
    return found.Reload()


def _steps(found: EventAccumulator, tag: str) -> tuple[list[int], list[float]]:
    events = found.Scalars(tag)
    return [event.step for event in events], [event.value for event in events]


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Environment:
    with _environment(tmp_path_factory.mktemp("runs")) as sigma:
        sigma.run()
    return sigma


@pytest.fixture(scope="module")
def found(trained: Environment) -> EventAccumulator:
    assert trained.run_folder
    return _read(trained.run_folder / "tensorboard" / "trainer")


def test_tensorboard_reads_every_measured_value_at_its_iteration(trained: Environment, found: EventAccumulator) -> None:
    history = trained.trainer("trainer").history
    assert set(found.Tags()["scalars"]) == {name.replace(".", "/") for name in history}
    assert {"training/loss", "validation/loss", "validation/accuracy"} <= set(found.Tags()["scalars"])
    for name in history:
        curve = history.curve(name)
        steps, values = _steps(found, name.replace(".", "/"))
        assert steps == curve.iterations.tolist()
        assert values == curve.values.astype(np.float32).tolist()


def test_the_times_of_events_are_those_of_the_clock_on_the_wall(found: EventAccumulator) -> None:
    times = [event.wall_time for event in found.Scalars("training/loss")]
    assert times == sorted(times)
    assert time.time() - 300 < times[0] < times[-1] <= time.time()


def test_histograms_are_of_the_parameters_at_the_end(trained: Environment, found: EventAccumulator) -> None:
    assert set(found.Tags()["histograms"]) == {
        "1-dense/weights",
        "1-dense/biases",
        "2-output/weights",
        "2-output/biases",
    }
    weights = trained.get("trainer.network.layers.1-dense.weights")
    last = found.Histograms("1-dense/weights")[-1]
    assert last.step == trained.get("trainer.iteration")
    value = last.histogram_value
    assert (value.min, value.max, value.num) == (weights.min(), weights.max(), weights.size)
    assert sum(value.bucket) == weights.size
    assert value.sum == pytest.approx(weights.sum(dtype=float))


def test_pictures_that_hooks_published_or_wrote_are_shown(found: EventAccumulator) -> None:
    last = found.Images("drawn/it")[-1]
    assert (last.width, last.height) == (6, 4)
    assert (np.asarray(Image.open(io.BytesIO(last.encoded_image_string))) == 4).all()
    [*_, written] = found.Images("images/nine")
    assert (written.width, written.height) == (3, 2)


def test_the_settings_of_the_run_are_hyper_parameters(tmp_path: Path) -> None:
    with _environment(tmp_path) as sigma:
        sigma.trainer("trainer").hooks = {}
        sigma.trainer("trainer").fit(epochs=1)
        assert sigma.run_folder
    found = _read(sigma.run_folder / "tensorboard" / "trainer")
    content = found.PluginTagToContent("hparams")[SESSION_START_INFO_TAG]
    values = parse_session_start_info_plugin_data(content).hparams
    assert values["trainer.optimiser.type"].string_value == "sigma-optimisers:adam"
    assert "format" not in values
    assert values["trainer.optimiser.learning_rate"].number_value == 0.01


def test_a_branch_after_a_rewind_is_a_run_of_its_own(tmp_path: Path) -> None:
    with _environment(tmp_path) as sigma:
        trainer = sigma.trainer("trainer")
        trainer.fit(epochs=4)
        abandoned = trainer.history.curve("training.loss")
        start = sigma.rewind(2, "epoch")["trainer"].iteration
        sigma.set("trainer.optimiser.learning_rate", 0.5)
        trainer.fit(epochs=2)
        present = trainer.history.curve("training.loss")
        assert sigma.run_folder
        home = sigma.run_folder / "tensorboard"
    assert {path.name for path in home.iterdir()} == {"trainer", "trainer.branch-1"}
    assert _steps(_read(home / "trainer"), "training/loss") == (
        abandoned.iterations.tolist(), abandoned.values.astype(np.float32).tolist()
    )  # fmt: skip
    after = present.iterations > start
    assert _steps(_read(home / "trainer.branch-1"), "training/loss") == (
        present.iterations[after].tolist(), present.values[after].astype(np.float32).tolist()
    )  # fmt: skip
    texts = [text for home in home.iterdir() for text in _texts(_read(home))]
    assert any("**set**" in text and "0.5" in text for text in texts)
    assert len([text for text in texts if "**rewind**" in text]) == 1


def _texts(found: EventAccumulator) -> list[str]:
    tags = [tag for tag in found.Tags()["tensors"] if tag.startswith("journal")]
    return [event.tensor_proto.string_val[0].decode() for tag in tags for event in found.Tensors(tag)]


def test_training_that_goes_on_writes_nothing_twice(tmp_path: Path) -> None:
    with _environment(tmp_path) as sigma:
        trainer = sigma.trainer("trainer")
        trainer.fit(epochs=2)
        trainer.fit(epochs=2)
        curve = trainer.history.curve("training.loss")
        assert sigma.run_folder
        home = sigma.run_folder / "tensorboard" / "trainer"
    assert len(list(home.iterdir())) == 2
    assert _steps(_read(home), "training/loss")[0] == curve.iterations.tolist()


def test_a_run_that_is_resumed_hides_what_its_checkpoint_does_not_know(tmp_path: Path) -> None:
    view = FakeView({"trainer.training.loss": 0.0}, measured={"trainer.training.loss": [5.0, 4.0, 3.0, 2.0]})
    _once(view, tmp_path)
    view.measured["trainer.training.loss"] = [5.0, 4.0, 7.0]
    view.noted.append({"event": "begin", "trainer": "trainer", "iteration": 2})
    _once(view, tmp_path)
    assert _steps(_read(tmp_path / "trainer"), "training/loss") == ([1, 2, 3], [5.0, 4.0, 7.0])


def test_a_run_that_was_killed_and_resumed_shows_all_values_up_to_its_checkpoint_and_on(tmp_path: Path) -> None:
    view = FakeView({"trainer.training.loss": 0.0}, measured={"trainer.training.loss": [9.0, 8.0, 7.0, 6.0, 5.0]})
    view.noted.append({"event": "begin", "trainer": "trainer", "iteration": 0})
    _once(view, tmp_path)
    view.measured["trainer.training.loss"] = [9.0, 8.0, 7.0, 6.0, 4.0, 3.0]
    view.noted.append({"event": "resumed", "trainer": "trainer", "iteration": 4})
    _once(view, tmp_path)
    assert _steps(_read(tmp_path / "trainer"), "training/loss") == ([1, 2, 3, 4, 5, 6], [9.0, 8.0, 7.0, 6.0, 4.0, 3.0])


@pytest.mark.parametrize("cut", [1, 20])
def test_values_that_a_killed_process_had_not_written_are_filled_from_the_record_of_the_run(
    tmp_path: Path, cut: int
) -> None:
    view = FakeView({"trainer.a": 0.0}, measured={"trainer.a": [9.0, 8.0, 7.0]})
    writing = Writing(view, tmp_path, 100)
    writing.look()
    writing.close()
    (file,) = (tmp_path / "trainer").iterdir()
    file.write_bytes(file.read_bytes()[:-cut])  # the last record is torn
    view.measured["trainer.a"] = [9.0, 8.0, 7.0, 6.0, 5.0]
    view.noted.append({"event": "resumed", "trainer": "trainer", "iteration": 4})
    _once(view, tmp_path)
    assert _steps(_read(tmp_path / "trainer"), "a") == ([1, 2, 3, 4, 5], [9.0, 8.0, 7.0, 6.0, 5.0])


def _once(view: FakeView, folder: Path, most: int = 100) -> None:
    writing = Writing(view, folder, most)
    writing.look()
    writing.histograms()
    writing.close()


def test_of_very_many_values_a_part_is_written_with_the_last_one(tmp_path: Path) -> None:
    _once(FakeView({"trainer.a": 0.0}, measured={"trainer.a": list(range(1000))}), tmp_path, 10)
    steps, values = _steps(_read(tmp_path / "trainer"), "a")
    assert len(steps) == 10
    assert (steps[-1], values[-1]) == (1000, 999.0)


def test_values_that_are_not_finite_are_written_as_they_are(tmp_path: Path) -> None:
    _once(FakeView({"trainer.a": 0.0}, measured={"trainer.a": [np.nan, np.inf, -np.inf, 1e300]}), tmp_path)
    assert np.array_equal(
        _steps(_read(tmp_path / "trainer"), "a")[1], [np.nan, np.inf, -np.inf, np.inf], equal_nan=True
    )


def test_a_look_reads_on_where_the_last_one_ended(tmp_path: Path) -> None:
    view = FakeView({"trainer.a": 0.0}, measured={"trainer.a": [1.0, 2.0]})
    writing = Writing(view, tmp_path, 100)
    writing.look()
    view.measured["trainer.a"] = [1.0, 2.0, 3.0]
    writing.look()
    writing.look()
    writing.close()
    assert _steps(_read(tmp_path / "trainer"), "a") == ([1, 2, 3], [1.0, 2.0, 3.0])


@pytest.mark.parametrize(
    ("values", "counted"),
    [([np.nan, np.inf, 2.0], 1), ([np.nan], None), ([], None), ([3.0, 3.0], 2), (np.zeros(2 * MOST + 1), 699051)],
)
def test_a_histogram_counts_finite_elements_and_no_more_than_a_bound(
    tmp_path: Path, values: Sequence[float], counted: int | None
) -> None:
    events = Events(tmp_path)
    events.histogram("w", 3, np.array(values, np.float32))
    events.close()
    found = _read(tmp_path)
    assert found.Tags()["histograms"] == ([] if counted is None else ["w"])
    if counted is not None:
        assert found.Histograms("w")[0].histogram_value.num == counted


def test_only_bytes_in_the_shape_of_a_picture_are_pictures(tmp_path: Path) -> None:
    arrays = {
        "trainer.a": np.zeros((2, 3), np.uint8), "trainer.b": np.zeros((2, 3, 3), np.uint8),
        "trainer.c": np.zeros((2, 3), np.float32), "trainer.d": np.zeros((2, 3, 2), np.uint8),
        "trainer.e": np.zeros((0, 3), np.uint8), "trainer.network.layers.w": np.zeros((2, 3), np.uint8),
    }  # fmt: skip
    entries = {name: AddressEntry(name, "array", shape=value.shape) for name, value in arrays.items()}
    _once(FakeView(arrays, entries), tmp_path)
    found = _read(tmp_path / "trainer")
    assert found.Tags()["images"] == ["a", "b"]
    assert len(found.Images("a")) == 1
    assert found.Tags()["histograms"] == ["w"]


def test_a_run_without_a_folder_says_that_nothing_is_written() -> None:
    view = FakeView()
    TensorboardMonitor().watch(view)
    assert "absolute folder" in view.texts[0]


def test_a_picture_that_is_still_being_written_is_read_later(tmp_path: Path) -> None:
    (tmp_path / "images").mkdir()
    (tmp_path / "images" / "half.png").write_bytes(b"\x89PNG\r\n\x1a\n")
    view = FakeView(folder=tmp_path)
    writing = Writing(view, tmp_path / "events", 10)
    writing.look()
    Image.fromarray(np.zeros((2, 2), np.uint8)).save(tmp_path / "images" / "half.png")
    writing.look()
    writing.close()
    assert len(_read(tmp_path / "events" / "trainer").Images("images/half")) == 1


def test_settings_are_flat_with_plain_values(tmp_path: Path) -> None:
    table = {"a": {"b": 1, "c": {"d": True}}, "e": [1, "x"], "f": "y" * 1000}
    assert dict(flat(table)) == {"a.b": 1, "a.c.d": True, "e": '[1, "x"]', "f": "y" * 500}
    assert settings(tmp_path) == {}


@pytest.mark.parametrize("mistake", [{"interval": 0.0}, {"histograms": -1.0}, {"most": 1}])
def test_settings_out_of_range_are_refused(mistake: dict[str, Any]) -> None:
    with pytest.raises(SigmaConfigError, match=next(iter(mistake))):
        TensorboardMonitor(**mistake)
