"""Activation maximisation; for a linear network the solution is known."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from contextlib import nullcontext
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from attrs import define

from sigma_hooks import Stop, TargetMaximisation
from sigma_hooks.reading import file_name, placeholders
from sigma_kernel import Environment, Moment, after, functions as f
from sigma_kernel.contracts import Architecture, Context, Hook, Layer
from sigma_kernel.errors import SigmaConfigError, SigmaTrainingError
from sigma_kernel.graph import Node
from sigma_testing import Desk, HookSuite


@define(eq=False, init=False)
class Join(Layer):
    """All inputs, flattened and concatenated."""

    branches: tuple[Architecture, ...]

    def __init__(self, *branches: Architecture) -> None:
        self.__attrs_init__(branches)

    def forward(self, context: Context, *inputs: Node) -> Node:
        rows = (f.reshape(f.cast(x, "float32"), (x.shape[0], prod(x.shape[1:]))) for x in inputs)
        return f.concat(*rows, axis=1)


Make = Callable[..., Environment]
END = {"end": Stop(every=after(4, "epoch"))}


class TestTargetMaximisation(HookSuite):
    def make(self) -> Hook:
        return TargetMaximisation(steps=3)


# -- the ascent --------------------------------------------------------------------------------------------------------
def test_a_linear_output_is_maximised_along_its_weights(classifier: Make) -> None:
    found: dict[str, Any] = {}

    class Look(TargetMaximisation):
        def fire(self, context: Any) -> None:
            found["samples"], found["reached"] = self.climb(context, [0, 1])

    with classifier(hooks={**END, "look": Look(l2=1.0, steps=2000, rate=0.001)}) as sigma:
        sigma.run()
        weights = sigma.get("trainer.network.layers.1-linear.weights")
    for k in (0, 1):  # the gradient of w.x - x.x/2 is 0 at x = w
        assert found["samples"][k].ravel() == pytest.approx(weights[:, k], abs=0.003)
        assert found["reached"][k] == pytest.approx(weights[:, k] @ weights[:, k], rel=0.02)


def test_the_first_of_several_inputs_is_drawn_with_the_others_at_zero(
    classifier: Make, entrance: Callable[..., Layer], scores: Callable[[], Architecture]
) -> None:
    found: dict[str, Any] = {}

    class Look(TargetMaximisation):
        def fire(self, context: Any) -> None:
            found["samples"], found["reached"] = self.climb(context, [0, 1])

    with classifier(hooks={**END, "look": Look(l2=1.0, steps=2000, rate=0.001)}) as sigma:
        trainer = sigma.trainer("trainer")
        block = dict(trainer.data["training"])
        more = np.random.default_rng(1).normal(size=(20, 3)).astype(np.float32)
        trainer.data = {**block, "more": more, "kinds": np.arange(20) % 2}
        trainer.network = Join(entrance(), entrance("more"), entrance("kinds")) + scores()
        sigma.run()
        ((_, weights),) = sigma.registry.find("trainer.network.layers.*.weights")
    assert weights.shape == (12 + 3 + 1, 2)
    for k in (0, 1):  # the other inputs contribute 0
        assert found["samples"][k].ravel() == pytest.approx(weights[:12, k], abs=0.003)
        assert found["reached"][k] == pytest.approx(weights[:12, k] @ weights[:12, k], rel=0.02)


@pytest.mark.parametrize("kind", [np.uint8, bool])
def test_an_input_without_gradients_is_refused_before_training(
    classifier: Make, entrance: Callable[..., Layer], scores: Callable[[], Architecture], kind: type
) -> None:
    with classifier(hooks={**END, "draw": TargetMaximisation(steps=1)}) as sigma:
        trainer = sigma.trainer("trainer")
        block = trainer.data["training"]
        trainer.data = {**block, "inputs": (np.abs(block["inputs"]) * 9).astype(kind)}
        trainer.network = Join(entrance()) + scores()
        with pytest.raises(
            SigmaConfigError, match=r"trainer\.hooks\.draw: .* only floats have gradients\. Add the prepro"
        ):
            sigma.prepare()


def test_bounds_are_kept_and_reached() -> None:
    samples, reached = TargetMaximisation(low=0.0, high=1.0, l2=0.0).climb(Desk(), [0, 1])
    upper = np.arange(12).reshape(3, 4) < 6
    assert samples[0][upper].tolist() == [1.0] * 6
    assert samples[1][~upper].tolist() == [1.0] * 6
    assert reached.tolist() == [6.0, 6.0]


def test_gradient_ascent_with_the_same_seed_gives_the_same_bits() -> None:
    first, second, other = (TargetMaximisation(seed=seed, steps=5).climb(Desk(), [0])[0] for seed in (1, 1, 2))
    assert first.tobytes() == second.tobytes() != other.tobytes()


def test_no_bit_of_training_changes(classifier: Make) -> None:
    bits = []
    for hooks in (END, {**END, "draw": TargetMaximisation(steps=3, every=after(2, "epoch"))}):
        with classifier(hooks=hooks) as sigma:
            sigma.run()
            bits.append(sigma.get("trainer.network.layers.1-linear.weights").tobytes())
    assert bits[0] == bits[1]


# -- the images --------------------------------------------------------------------------------------------------------
def test_one_image_is_drawn_per_output(classifier: Make, tmp_path: Path) -> None:
    draw = TargetMaximisation(steps=20, zoom=2, name="epoch-{epoch}-class-{output}.png")
    with classifier(hooks={**END, "draw": draw}) as sigma:
        sigma.folder = tmp_path
        sigma.run()
        folder = Path(str(sigma.run_folder)) / "images"
        scores = [sigma.get(f"trainer.target_maximisation.{k}") for k in (0, 1)]
    assert sorted(path.name for path in folder.iterdir()) == ["epoch-4-class-0.png", "epoch-4-class-1.png"]
    assert all(score > 0 for score in scores)
    pixels = [_decoded((folder / f"epoch-4-class-{k}.png").read_bytes()).astype(float) for k in (0, 1)]
    assert pixels[0].shape == (8, 6)
    upper, lower = pixels[1][:4].mean(), pixels[1][4:].mean()
    assert upper > lower  # class 1 is brighter above


@pytest.mark.parametrize("name", ["images", "images/output-0.png"])
def test_no_image_is_written_through_a_link(classifier: Make, tmp_path: Path, name: str) -> None:
    theirs = tmp_path / "theirs" / "output-0.png"
    theirs.parent.mkdir()
    theirs.write_text("theirs")

    class Linked(TargetMaximisation):
        def fire(self, context: Any) -> None:
            link = context.folder / name
            link.parent.mkdir(exist_ok=True)
            link.symlink_to(theirs if link.suffix else theirs.parent)
            super().fire(context)

    with classifier(hooks={**END, "draw": Linked(steps=2, outputs=[0])}) as sigma:
        sigma.folder = tmp_path / "runs"
        text = "images/output-0.png: cannot be written: Not a directory. Free disk space, and remove a link"
        with pytest.raises(SigmaTrainingError, match=text) if name == "images" else nullcontext():
            sigma.run()
        assert sigma.run_folder is not None
        drawn = sigma.run_folder / "images" / "output-0.png"
    assert theirs.read_text() == "theirs"
    assert [path.name for path in theirs.parent.iterdir()] == ["output-0.png"]
    assert drawn.is_symlink() is False


def test_nothing_is_written_without_a_folder(classifier: Make) -> None:
    with classifier(hooks={**END, "draw": TargetMaximisation(steps=2, outputs=[1])}) as sigma:
        sigma.run()
        assert not [text for _, text in sigma.messages.entries_after(0) if "drawn" in text]
        assert [a for a, _ in sigma.registry.find("trainer.target_maximisation.*")] == ["trainer.target_maximisation.1"]


def test_a_flat_input_is_drawn_in_the_given_shape(classifier: Make, tmp_path: Path) -> None:
    with classifier((12,), hooks={**END, "draw": TargetMaximisation(steps=2, shape=[3, 4], zoom=1)}) as sigma:
        sigma.folder = tmp_path
        sigma.run()
        assert _decoded((Path(str(sigma.run_folder)) / "images" / "output-0.png").read_bytes()).shape == (3, 4)


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({}, r"an input of shape \(12,\) is not an image. Set shape"),
        ({"shape": [5, 5]}, r"\(5, 5\) does not have 12 elements"),
        ({"outputs": [2]}, "must be from 0 to 1 .got 2."),
    ],
)
def test_target_maximisation_refuses_unsuitable_networks_before_training(
    classifier: Make, settings: dict[str, Any], text: str
) -> None:
    draw = TargetMaximisation(steps=1, **settings)
    place = r"trainer\.hooks\.draw: target_maximisation.*"
    with classifier((12,), hooks={**END, "draw": draw}) as sigma, pytest.raises(SigmaConfigError, match=place + text):
        sigma.prepare()


def test_an_unsuitable_network_refuses_attaching_target_maximisation(classifier: Make) -> None:
    with classifier() as sigma:
        sigma.prepare()
        with pytest.raises(SigmaConfigError, match=r"^trainer\.hooks\.draw: .* must be from 0 to 1 .got 2."):
            sigma.attach("draw", {"type": "target_maximisation", "outputs": [2]})
        assert sigma.trainer("trainer").session.setup.order.names == ["validation"]


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"name": "same.png"}, "is the same for all outputs"),
        ({"name": "{output"}, "not a file name"),
        ({"folder": "../elsewhere"}, "must be inside the run's folder"),
        ({"folder": "/elsewhere"}, "must be inside the run's folder"),
    ],
)
def test_names_that_lead_out_of_their_folder_are_refused(settings: dict[str, Any], text: str) -> None:
    with pytest.raises(SigmaConfigError, match=text):
        TargetMaximisation(**settings)


def _decoded(file: bytes) -> np.ndarray:
    """Return the pixels of a grey PNG, decoded chunk by chunk as the standard says, every checksum verified."""
    assert file[:8] == bytes([137, 80, 78, 71, 13, 10, 26, 10])
    chunks, at = {}, 8
    while at < len(file):
        size, name = int.from_bytes(file[at : at + 4]), file[at + 4 : at + 8]
        data = file[at + 8 : at + 8 + size]
        assert int.from_bytes(file[at + 8 + size : at + 12 + size]) == zlib.crc32(name + data)
        chunks[name], at = data, at + 12 + size
    assert list(chunks) == [b"IHDR", b"IDAT", b"IEND"]
    width, height = int.from_bytes(chunks[b"IHDR"][:4]), int.from_bytes(chunks[b"IHDR"][4:8])
    rows = np.frombuffer(zlib.decompress(chunks[b"IDAT"]), np.uint8).reshape(height, 1 + width)
    assert not rows[:, 0].any()
    return rows[:, 1:]


# -- the names of files ------------------------------------------------------------------------------------------------
def test_a_file_name_can_contain_values_by_address() -> None:
    desk = Desk({"validation.accuracy": 0.98765}, Moment(epoch=7))
    name = "best-{epoch}-{validation.accuracy:.3f}-{what}.png"
    assert placeholders(name) == ("epoch", "validation.accuracy", "what")
    assert file_name(name, desk, {"what": "it"}) == "best-7-0.988-it.png"


def test_a_formatted_file_name_stays_inside_its_folder() -> None:
    assert file_name("{x}", Desk({"x": "../../etc/passwd"}), {}) == "_.._etc_passwd"
    assert file_name("{x}", Desk({"x": ".."}), {}) == "_"
