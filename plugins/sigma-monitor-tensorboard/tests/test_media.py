"""Media in event files, as TensorBoard's own reader reads them."""

from __future__ import annotations

import io
import time
import wave
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from sigma_kernel import Environment
from sigma_kernel.contracts import HistogramValue, HookContext, Media, PictureValue, SoundValue, TableValue, TextValue
from sigma_monitor_tensorboard import TensorboardMonitor
from sigma_monitor_tensorboard.writing import Writing
from sigma_testing import FakeView
from sigma_testing.doing import Do
from sigma_testing.stores import media_entry

DRAW = np.random.default_rng(0)
MADE: dict[str, Media] = {
    "picture": PictureValue(DRAW.integers(0, 256, (4, 6, 3), np.uint8)),
    "text": TextValue("To be,\nor | not"),
    "sound": SoundValue(DRAW.uniform(-1, 1, (50, 2)), 8000),
    "table": TableValue(["class", "a|b"], [["0", 3], ["1", None]]),
    "histogram": HistogramValue([0, 1, 3], [5, 2]),
}


@pytest.fixture(scope="module", autouse=True)
def patient() -> Iterator[None]:
    """Wait for the last events for as long as a slow machine needs."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sigma_kernel.running.GRACE", 60.0)
        yield


def read(directory: Path) -> EventAccumulator:
    kinds = ("scalars", "histograms", "images", "audio", "tensors")
    return EventAccumulator(str(directory), size_guidance=dict.fromkeys(kinds, 0)).Reload()


def publish(context: HookContext) -> None:
    for name, value in MADE.items():
        context.publish(f"shown.{name}", value)


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> EventAccumulator:
    sigma = Environment("seen", seed=0, folder=tmp_path_factory.mktemp("runs"))
    sigma.monitors["board"] = TensorboardMonitor(interval=0.05)
    sigma.create_trainer(
        data="iris",
        network="input(4) + output(3) + softmax_cross_entropy()",
        optimiser={"type": "adam", "learning_rate": 0.01},
        hooks={"show": Do(does=publish, writes=["shown.*"])},
        epochs=3,
    )
    with sigma:
        sigma.run()
    assert sigma.run_folder
    return read(sigma.run_folder / "tensorboard" / "trainer")


def test_each_kind_is_at_its_iterations(found: EventAccumulator) -> None:
    reads: dict[str, Any] = {
        "shown/picture": found.Images, "shown/sound": found.Audio, "shown/histogram": found.Histograms,
        "shown/text/text_summary": found.Tensors, "shown/table/text_summary": found.Tensors,
    }  # fmt: skip
    steps = {tag: [event.step for event in events(tag)] for tag, events in reads.items()}
    assert len({tuple(own) for own in steps.values()}) == 1
    assert len(steps["shown/picture"]) == 3
    times = [event.wall_time for event in found.Images("shown/picture")]
    assert time.time() - 300 < times[0] <= times[-1] <= time.time()


def test_pictures_and_sounds_have_their_own_bytes(found: EventAccumulator) -> None:
    picture, sound = found.Images("shown/picture")[-1], found.Audio("shown/sound")[-1]
    pixels = np.asarray(Image.open(io.BytesIO(picture.encoded_image_string)))
    assert (picture.width, picture.height) == (6, 4)
    assert pixels.tolist() == MADE["picture"].pixels.tolist()  # type: ignore[attr-defined]
    assert (sound.sample_rate, sound.length_frames, sound.content_type) == (8000, 50, "audio/wav")
    with wave.open(io.BytesIO(sound.encoded_audio_string)) as file:
        assert (file.getnchannels(), file.getnframes()) == (2, 50)


def test_texts_keep_their_lines_and_tables_their_cells(found: EventAccumulator) -> None:
    text, table = (
        found.Tensors(f"shown/{name}/text_summary")[-1].tensor_proto.string_val[0].decode()
        for name in ("text", "table")
    )
    assert text == "    To be,\n    or | not"
    assert table.splitlines() == ["| class | a\\|b |", "| --- | --- |", "| 0 | 3 |", "| 1 |  |"]


def test_a_histogram_has_its_counts(found: EventAccumulator) -> None:
    value = found.Histograms("shown/histogram")[-1].histogram_value
    assert (value.min, value.max, value.num) == (0, 3, 7)
    assert list(value.bucket_limit) == [1, 3]
    assert list(value.bucket) == [5, 2]
    assert value.sum == pytest.approx(5 * 0.5 + 2 * 2)


def look(view: FakeView, folder: Path) -> None:
    writing = Writing(view, folder, 100)
    writing.look()
    writing.look()
    writing.close()


def test_nothing_is_written_twice_and_a_resume_writes_what_its_checkpoint_does_not_know(tmp_path: Path) -> None:
    def shades(start: int, *numbers: int) -> list[tuple[Any, bytes]]:
        return [media_entry(number, PictureValue(np.full((1, 1), start + number, np.uint8))) for number in numbers]

    view = FakeView(published=shades(0, 1, 2, 3))
    view.noted.append({"event": "begin", "trainer": "trainer", "iteration": 0})
    look(view, tmp_path)
    view.published = shades(10, 1, 2, 3, 4)
    view.noted.append({"event": "resumed", "trainer": "trainer", "iteration": 2})
    look(view, tmp_path)
    events = read(tmp_path / "trainer").Images("a/b")
    pixels = [int(np.asarray(Image.open(io.BytesIO(event.encoded_image_string)))[0, 0]) for event in events]
    assert [event.step for event in events] == [1, 2, 3, 4]
    assert pixels == [1, 2, 13, 14]


def test_a_value_that_is_gone_by_now_is_left_out_with_a_word(tmp_path: Path) -> None:
    view = FakeView(published=[media_entry(1, TextValue("1")), media_entry(2, TextValue("2"))])
    view.published[0] = view.published[0][0], b"other"
    look(view, tmp_path)
    assert [event.step for event in read(tmp_path / "trainer").Tensors("a/b/text_summary")] == [2]
    assert len([text for text in view.texts if "was changed since it was published" in text]) == 1
