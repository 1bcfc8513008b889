"""Requests about the data and the network, answered for a fake run whose numbers are known."""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sigma_kernel.contracts import AddressEntry, LayerEntry, RowLosses
from sigma_monitor_control.protocol import Conversation
from sigma_monitor_control.protocol.pictures import decode_picture, is_picture, picture
from sigma_testing import FakeTrainerView, FakeView

Ask = Callable[..., Any]
SHADES = np.arange(40.0).reshape(10, 2, 2)  # of ten rows, 0 to 39
TARGETS = np.array([0, 1, 2, 0, 1, 2, 0, 1, 2, 0])
PREDICTED = np.array([0, 1, 2, 0, 1, 2, 0, 2, 2, 1])  # rows 7 and 9 are wrong
LAYERS = [
    LayerEntry("0-input", "input", (), (2, 2), {}, {"section": "inputs"}),
    LayerEntry("1-output", "output", ("0-input",), (3,), {"trainer.network.layers.1-output.weights": (4, 3)}, {}),
]


class Pictures(FakeTrainerView):
    """A fake view of a trainer on ten pictures of three classes."""

    def classes(self) -> list[Any]:
        return ["cat", "dog", "owl"]

    def columns(self) -> dict[str, list[str]]:
        return {"inputs": ["size", "weight"]}

    def activations(self, samples: Any) -> dict[str, np.ndarray]:
        self.view.samples = samples
        rows = np.asarray(samples["inputs"], float)
        planes = np.stack([rows, -2 * rows, 0 * rows], axis=1)
        return {"0-input": rows, "1-output": rows.reshape(len(rows), -1)[:, :3] - 1, "conv": planes}

    def losses(self, split: str, most: int | None = None) -> RowLosses:
        self.view.computed += 1
        losses = np.where(TARGETS == PREDICTED, 0.1, 2.0) + np.arange(10) / 100
        return RowLosses(np.arange(10), losses, PREDICTED, TARGETS)

    def predict(self, samples: Any) -> dict[str, np.ndarray]:
        self.view.samples = samples
        return {"1-output": np.array([[0.1, 0.7, 0.2]])}


class PicturesView(FakeView):
    """A fake view of such trainers."""

    computed = 0
    samples: Any = None


def view(**given: Any) -> PicturesView:
    weights = np.array([[-1.0, 0.0, 1.0]] * 4, np.float32)
    return PicturesView(
        **{
            "shown": Pictures,
            "layers": LAYERS,
            "sections": {"inputs": SHADES, "targets": TARGETS},
            "values": {"trainer.iteration": 7, "trainer.network.layers.1-output.weights": weights},
            **given,
        }
    )


def having(**methods: Callable[..., Any]) -> type[FakeTrainerView]:
    """Return the view of a trainer with other methods."""
    return type("Own", (Pictures,), methods)


def asked(shown: FakeView, do: str, **arguments: Any) -> Any:
    (line,) = Conversation(shown).receive(json.dumps({"id": 1, "do": do, **arguments}))
    found = json.loads(line)
    return found["result"] if "result" in found else found["error"]


@pytest.fixture
def ask() -> Ask:
    shown = view()
    return lambda do, **arguments: asked(shown, do, **arguments)


def pixels(found: Any) -> list[int]:
    return [*base64.b64decode(found["pixels"])]


# -- pictures ----------------------------------------------------------------------------------------------------------
def test_a_picture_has_bytes_from_black_to_white() -> None:
    found = picture(np.array([[0.0, 0.5], [1.0, 2.0]]), 0.0, 1.0)
    assert (found["width"], found["height"], found["channels"]) == (2, 2, 1)
    assert pixels(found) == [0, 128, 255, 255]
    assert pixels(picture(np.array([[np.nan, np.inf, -np.inf]]), 0.0, 1.0)) == [0, 255, 0]
    assert pixels(picture(np.array([[3.0, 4.0]]), 3.0, 3.0)) == [0, 0]


def test_channels_lie_beside_each_other_in_the_bytes_of_a_picture() -> None:
    values = np.arange(12.0).reshape(3, 2, 2)
    found = picture(values, 0.0, 255.0)
    assert (found["width"], found["height"], found["channels"]) == (2, 2, 3)
    assert pixels(found) == [0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11]


@pytest.mark.parametrize("shape", [(2, 3), (1, 2, 3), (3, 2, 3)])
def test_a_picture_that_is_drawn_is_the_array_again(shape: tuple[int, ...]) -> None:
    values = np.random.default_rng(0).integers(0, 256, shape).astype(float)
    assert (decode_picture(picture(values, 0.0, 255.0), shape, 0.0, 255.0) == values).all()


def test_pictures_have_two_dimensions_or_one_or_three_channels() -> None:
    shapes = [(8, 8), (1, 8, 8), (3, 8, 8), (4, 8, 8), (8,), (), (1, 1), (2, 3, 8, 8)]
    assert [shape for shape in shapes if is_picture(shape)] == [(8, 8), (1, 8, 8), (3, 8, 8)]


# -- rows --------------------------------------------------------------------------------------------------------------
def test_rows_are_pictures_with_labels_and_edits() -> None:
    shown = view(edited={"training": {"excluded": [3], "labels": {4: "owl"}}})
    first, second, third = asked(shown, "rows", split="training", rows=[9, 3, 4])
    assert pixels(first["picture"])[-1] == 255  # the range is that of all rows
    assert (first["row"], first["label"], first["excluded"], first["relabelled"]) == (9, "cat", False, False)
    assert second["excluded"]
    assert (third["label"], third["relabelled"]) == ("owl", True)
    assert asked(shown, "edits") == {"training": {"excluded": [3], "labels": {"4": "owl"}}}


def test_rows_of_numbers_are_tables_and_words_are_texts() -> None:
    layers = [
        LayerEntry("0-input", "input", (), (2,), {}, {"section": "numbers"}),
        LayerEntry("1-input", "input", (), (), {}, {"section": "words"}),
    ]
    data = {"numbers": np.arange(20.0).reshape(10, 2), "words": np.array(["a"] * 10), "targets": np.linspace(0, 1, 10)}
    (found,) = asked(view(layers=layers, sections=data), "rows", split="training", rows=[2])
    assert found["table"] == {"numbers": [4.0, 5.0]}
    assert found["text"] == "a"
    assert found["label"] == pytest.approx(2 / 9)


@pytest.mark.parametrize(
    ("do", "arguments", "message"),
    [
        ("rows", {"split": "training", "rows": [10]}, "row 10: is not in 'training', which has rows 0 to 9."),
        ("rows", {"split": "training", "rows": [-1]}, "row -1: is not in 'training'"),
        ("rows", {"split": "test", "rows": [1]}, "split 'test': no such split. There is training"),
        ("rows", {"split": "training", "rows": [0] * 201}, "asks for 201 rows, more than 200"),
        ("losses", {"order": "random"}, "'order' is worst or best"),
        ("losses", {"class": "cow"}, "class 'cow': no such class."),
        ("layer", {"layer": "9-dense"}, "layer '9-dense': no such layer."),
        ("predict", {"inputs": {"pixels": [1]}}, "there is no input 'pixels'. There is inputs."),
        ("activations", {"layer": "9-dense"}, "layer '9-dense': no such layer."),
        ("activations", {"layer": "1-output"}, "needs a sample. Give its 'inputs', or a 'split' and a 'row' of it."),
        ("activations", {"layer": "1-output", "split": "training"}, "needs a sample"),
        ("activations", {"layer": "1-output", "split": "training", "row": 10}, "row 10: is not in 'training'"),
        ("activations", {"layer": "1-output", "inputs": {"pixels": [1]}}, "there is no input 'pixels'."),
        ("predict", {"inputs": {"inputs": [1, 2, 3]}}, "inputs: must have the shape (2, 2) (got (3,))."),
        ("predict", {"inputs": {"inputs": [[1], [2, 3]]}}, "inputs: must be a list of numbers"),
        ("predict", {"inputs": {"inputs": {"pixels": "AA=="}}}, "must have 4 pixels, 2 x 2 with 1 channel (got 1)"),
        ("predict", {"inputs": {"inputs": {"pixels": "&"}}}, "'pixels' must be bytes in base64"),
    ],
)
def test_a_mistake_is_answered(ask: Ask, do: str, arguments: dict[str, Any], message: str) -> None:
    assert message in ask(do, **arguments)["message"]


# -- losses ------------------------------------------------------------------------------------------------------------
def test_the_worst_rows_come_first_and_are_read_on() -> None:
    shown = view()
    found = asked(shown, "losses", count=3)
    assert (found["at"], found["total"]) == (7, 10)
    assert found["rows"][0] == {"row": 9, "loss": 2.09, "label": "cat", "predicted": "dog"}
    assert [one["row"] for one in found["rows"]] == [9, 7, 8]
    assert [one["row"] for one in asked(shown, "losses", count=3, start=3)["rows"]] == [6, 5, 4]
    assert [one["row"] for one in asked(shown, "losses", count=2, order="best")["rows"]] == [0, 1]
    assert shown.computed == 1


def test_losses_are_computed_again_when_training_or_the_data_have_changed() -> None:
    shown = view()
    asked(shown, "losses")
    shown.values["trainer.iteration"] = 8
    assert asked(shown, "losses", start=5)["at"] == 7  # who reads on gets the same order
    assert asked(shown, "losses")["at"] == 8
    assert shown.computed == 2
    shown.edited["training"] = {"excluded": [1], "labels": {}}
    asked(shown, "losses", start=5)
    assert shown.computed == 3


def test_rows_of_a_cell_of_the_confusion_matrix_are_found(ask: Ask) -> None:
    found = ask("losses", **{"class": "cat", "predicted": "dog"})
    assert [one["row"] for one in found["rows"]] == [9]
    assert [one["row"] for one in ask("losses", **{"class": "owl"})["rows"]] == [8, 5, 2]


def test_the_confusion_matrix_counts_rows_by_class_and_prediction(ask: Ask) -> None:
    assert ask("confusion", split="training") == {
        "classes": ["cat", "dog", "owl"], "matrix": [[3, 1, 0], [0, 2, 1], [0, 0, 3]], "rows": 10, "wrong": 2,
    }  # fmt: skip


def test_rows_are_counted_by_class_after_edits() -> None:
    shown = view(edited={"training": {"excluded": [0], "labels": {3: "owl"}}})
    found = asked(shown, "balance")
    assert (found["classes"], found["counts"]) == (["cat", "dog", "owl"], [2, 3, 4])
    assert (found["rows"], found["excluded"]) == (9, 1)


# -- try it ------------------------------------------------------------------------------------------------------------
def test_what_the_network_takes_is_described(ask: Ask) -> None:
    (found,) = ask("inputs")["inputs"]
    assert found == {"section": "inputs", "shape": [2, 2], "low": 0.0, "high": 39.0, "kind": "picture"}
    assert ask("inputs")["outputs"] == ["1-output"]
    layers = [LayerEntry("0-input", "input", (), (2,), {}, {"section": "inputs"})]
    data = {"inputs": np.array([[0.0, 5.0]] * 9 + [[9.0, np.nan]]), "targets": TARGETS}
    (found,) = asked(view(layers=layers, sections=data), "inputs")["inputs"]
    assert found["kind"] == "table"
    assert found["columns"][0] == {"name": "size", "low": 0.0, "middle": 0.0, "high": 9.0}
    assert found["columns"][1]["high"] == 5.0


def test_a_network_can_be_tried_without_its_data() -> None:
    shown = view(shown=having(splits=lambda trainer: {}))
    (found,) = asked(shown, "inputs")["inputs"]
    assert found == {"section": "inputs", "shape": [2, 2], "low": 0.0, "high": 1.0, "kind": "picture"}
    (answer,) = asked(shown, "predict", inputs={"inputs": [[0, 1], [1, 0]]}).values()
    assert answer["chosen"] == "dog"
    shown.layers = [LayerEntry("0-input", "input", (), (3,), {}, {"section": "inputs"})]
    assert [one["name"] for one in asked(shown, "inputs")["inputs"][0]["columns"]] == ["size", "weight", "2"]
    assert asked(shown, "columns") == {"inputs": ["size", "weight"]}


def test_an_answer_has_the_names_of_its_columns() -> None:
    shown = view(shown=having(targets=lambda trainer: {"1-output": ["price", "age", "size"]}))
    (answer,) = asked(shown, "predict", inputs={"inputs": [[0, 1], [1, 0]]}).values()
    assert answer["columns"] == ["price", "age", "size"]


@pytest.mark.parametrize("sample", [[[0, 13], [26, 39]], {"pixels": "AFWq/w=="}])
def test_a_sample_is_predicted_as_a_list_or_a_picture(sample: Any) -> None:
    shown = view()
    (found,) = asked(shown, "predict", inputs={"inputs": sample}).values()
    assert (found["chosen"], found["sure"]) == ("dog", 0.7)
    assert shown.samples["inputs"] == pytest.approx(np.array([[[0, 13], [26, 39]]]))


def test_a_prediction_of_numbers_chooses_nothing() -> None:
    shown = view(shown=having(classes=lambda trainer: []))
    (found,) = asked(shown, "predict", inputs={"inputs": [[0] * 2] * 2}).values()
    assert (found["values"], found["chosen"], found["classes"]) == ([0.1, 0.7, 0.2], None, [])


# -- layers and pictures -----------------------------------------------------------------------------------------------
def test_a_layer_has_histograms_and_filters() -> None:
    shown = view()
    head = "trainer.histogram.gradients.1-output.weights"
    shown.values |= {f"{head}.edges": [0.0, 1.0], f"{head}.counts": [12]}
    found = asked(shown, "layer", layer="1-output")
    (about,) = found["parameters"].values()
    assert (about["low"], about["high"], about["mean"]) == (-1.0, 1.0, 0.0)
    assert sum(about["histogram"]["counts"]) == 12
    assert len(about["histogram"]["edges"]) == len(about["histogram"]["counts"]) + 1
    assert [pixels(one) for one in found["filters"]] == [[0] * 4, [128] * 4, [255] * 4]  # of one scale
    assert found["gradients"] == {head: {"histogram": {"edges": [0.0, 1.0], "counts": [12]}}}
    assert found["updates"] == {}


def test_a_layer_makes_values_or_pictures_of_a_row_and_of_a_sample_that_was_sent() -> None:
    layers = [
        *LAYERS,
        LayerEntry("conv", "conv2d", ("0-input",), (3, 2, 2), {}, {}),
        LayerEntry("cost", "cost", (), (), {}, {}),
    ]
    shown = view(layers=layers)
    found = asked(shown, "activations", layer="1-output", split="training", row=0)
    assert shown.samples.keys() == {"inputs"}
    assert (found["shape"], found["size"], found["silent"], found["at"]) == ([3], 3, 1, 7)
    assert (found["values"], found["pictures"]) == ([-1.0, 0.0, 1.0], [])
    sent = asked(shown, "activations", layer="conv", inputs={"inputs": [[0, 1], [2, 4]]})
    assert [pixels(one) for one in sent["pictures"]] == [
        [128, 143, 159, 191],
        [128, 96, 64, 0],
        [128] * 4,
    ]  # of one scale
    assert (sent["values"], sent["silent"], sent["low"], sent["high"]) == ([], 6, -8.0, 4.0)
    assert len(asked(shown, "activations", layer="0-input", split="training", row=1)["pictures"]) == 1
    assert "'cost' is a cost" in asked(shown, "activations", layer="cost", split="training", row=1)["message"]


def test_activations_that_are_not_finite_are_told_as_such() -> None:
    shown = view(shown=having(activations=lambda trainer, samples: {"1-output": np.array([[np.nan, np.inf, 0.0]])}))
    found = asked(shown, "activations", layer="1-output", split="training", row=0)
    assert (found["values"], found["unusual"], found["high"]) == ([None, None, 0.0], 2, 0.0)


def test_a_layer_of_nothing_but_nan_is_shown() -> None:
    shown = view()
    shown.values["trainer.network.layers.1-output.weights"] = np.full((4, 3), np.nan)
    found = asked(shown, "layer", layer="1-output")
    (about,) = found["parameters"].values()
    assert (about["low"], about["unusual"], sum(about["histogram"]["counts"])) == (None, 12, 0)
    assert pixels(found["filters"][0]) == [0] * 4


def test_pictures_in_the_run_folder_are_sent_newest_first(tmp_path: Path) -> None:
    (tmp_path / "images").mkdir()
    for i, name in enumerate(("old", "new")):
        (tmp_path / "images" / f"{name}.png").write_bytes(name.encode())
        os.utime(tmp_path / "images" / f"{name}.png", (1000 + i, 1000 + i))
    (tmp_path / "images" / "link.png").symlink_to("/etc/hostname")
    first, second = asked(view(folder=tmp_path), "pictures")
    assert (first["address"], base64.b64decode(first["png"])) == ("images/new.png", b"new")
    assert second["address"] == "images/old.png"
    assert asked(view(), "pictures") == []


def test_edits_are_followed() -> None:
    shown = view()
    conversation = Conversation(shown)
    conversation.receive('{"id": 1, "do": "follow", "every": 0.1}')
    assert "edits" not in json.loads(conversation.events(0)[0])["event"]
    shown.edited["training"] = {"excluded": [1], "labels": {}}
    (line,) = conversation.events(0.2)
    assert json.loads(line)["event"] == {"edits": {"training": {"excluded": [1], "labels": {}}}}


def test_an_address_of_an_array_is_summarised_by_its_finite_numbers() -> None:
    shown = view()
    address = "trainer.network.layers.1-output.weights"
    shown.entries_of[address] = AddressEntry(address, "array", None, shape=(3,))
    shown.values[address] = np.array([1.0, np.inf, 3.0])
    (found,) = asked(shown, "get", pattern=address).values()
    assert found == {"array": {"shape": [3], "dtype": "float64", "low": 1.0, "high": 3.0, "mean": 2.0,
                               "deviation": 1.0, "unusual": 1}}  # fmt: skip
    for array in (np.zeros(0), np.array(["a"]), np.array([np.nan])):
        shown.values[address] = array
        (found,) = asked(shown, "get", pattern=address).values()
        assert found["array"]["shape"] == list(array.shape)
