"""The map of the data and decision surfaces, for a fake run whose numbers are known."""

from __future__ import annotations

import base64
import json
import sys
import threading
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sigma_kernel.contracts import LayerEntry, RowLosses
from sigma_kernel.errors import SigmaStateError
from sigma_monitor_control.aside import Aside
from sigma_monitor_control.budget import WorkBudget
from sigma_monitor_control.protocol import Conversation, mapping
from sigma_monitor_control.protocol.mapping import describe_surface
from sigma_monitor_control.protocol.positions import UmapProcess, align, embed, project
from sigma_monitor_control.protocol.sampling import draw_sample, index_labels
from sigma_testing import FakeTrainerView, FakeView
from sigma_testing.steering import wait_until

DRAW = np.random.default_rng(8)
POINTS = DRAW.normal(size=(90, 2)) * [3.0, 1.0]
TARGETS = (POINTS[:, 0] > 0).astype(int)
PREDICTED = (POINTS[:, 0] > 0.5).astype(int)
TYPES = {"split": "u1", "row": "<u4", "x": "<f4", "y": "<f4", "label": "<f4", "loss": "<f4", "right": "i1"}
TYPES |= {"excluded": "u1", "shares": "u1"}
LAYERS = [
    LayerEntry("0-input", "input", (), (2,), {}, {"section": "inputs"}),
    LayerEntry("1-dense", "dense", ("0-input",), (3,), {}, {}),
    LayerEntry("2-output", "output", ("1-dense",), (2,), {}, {}),
    LayerEntry("3-cost", "softmax_cross_entropy", ("2-output",), (), {}, {"targets": "targets"}),
]


class Plane(FakeTrainerView):
    """A fake view of a trainer on two numbers, with 60 rows for training and 30 for validation."""

    def splits(self) -> dict[str, int]:
        return {"training": 60, "validation": 30}

    def classes(self) -> list[Any]:
        return ["left", "right"]

    def columns(self) -> dict[str, list[str]]:
        return {"inputs": ["width", "height"]}

    def rows(self, split: str, numbers: Any, prepared: bool = False) -> dict[str, np.ndarray]:
        places = np.asarray(numbers, int) + (60 if split == "validation" else 0)
        inputs = POINTS[places] / (10.0 if prepared else 1.0)
        return {"inputs": inputs, "targets": TARGETS[places]}

    def activations(self, samples: Any) -> dict[str, np.ndarray]:
        turned = np.asarray(samples["inputs"]) @ np.array([[0.0, 5.0, 0.0], [2.0, 0.0, 0.0]]) * self.view.sign
        return {"0-input": samples["inputs"], "1-dense": turned, "2-output": turned[:, :2]}

    def losses(self, split: str, most: int | None = None) -> RowLosses:
        rows = np.arange(60 if split == "training" else 30)
        rows = rows[rows != 4] if split == "training" else rows
        places = rows + (0 if split == "training" else 60)
        return RowLosses(rows, places / 10.0, PREDICTED[places], TARGETS[places])

    def predict(self, samples: Any) -> dict[str, np.ndarray]:
        share = 1.0 / (1.0 + np.exp(-np.asarray(samples["inputs"])[:, 0]))
        return {"2-output": np.stack([1.0 - share, share], axis=1)}


class PlaneView(FakeView):
    """A fake view of such a trainer, whose layers may be mirrored."""

    sign = 1.0


def view(shown: type[FakeTrainerView] = Plane, **given: Any) -> PlaneView:
    return PlaneView(**{"shown": shown, "layers": LAYERS, "values": {"trainer.iteration": 7}, **given})


def ask(shown: FakeView, do: str, **arguments: Any) -> Any:
    (line,) = Conversation(shown).receive(json.dumps({"id": 1, "do": do, **arguments}))
    answer = json.loads(line)
    if "result" not in answer:
        return answer["error"]["message"] if isinstance(answer["error"], dict) else answer["error"]
    result = answer["result"]
    packed = [name for name in TYPES if isinstance(result.get(name), str)]
    return {**result, **{name: np.frombuffer(base64.b64decode(result[name]), TYPES[name]) for name in packed}}


# -- positions ---------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("shape", [(40, 6), (6, 40)])
def test_principal_components_are_the_singular_vectors(shape: tuple[int, int]) -> None:
    values = DRAW.normal(size=shape)
    centred = values - values.mean(axis=0)
    left, sizes, _ = np.linalg.svd(centred, full_matrices=False)
    positions, shares = project(values)
    np.testing.assert_allclose(np.abs(positions), np.abs(left[:, :2] * sizes[:2]), rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(shares, (sizes**2 / (sizes**2).sum())[:2], rtol=1e-10)


def test_rows_that_are_equal_or_have_one_number_have_a_place() -> None:
    positions, shares = project(np.ones((5, 3)))
    assert (positions == 0).all()
    assert shares == [0.0, 0.0]
    positions, shares = project(np.arange(4.0)[:, None])
    assert sorted(np.abs(positions[:, 0]).tolist()) == [0.5, 0.5, 1.5, 1.5]
    assert (positions[:, 1] == 0).all()


def test_of_many_rows_and_columns_the_components_are_those_of_some_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    values = DRAW.normal(size=(70, 2)) @ DRAW.normal(size=(2, 50)) + 3.0
    few, sides, eigh = values[:20], list[int](), np.linalg.eigh
    (whole, shares), before = project(values), project(few)[0]
    monkeypatch.setattr("sigma_monitor_control.protocol.positions.MOST", 20)

    def count(matrix: np.ndarray) -> Any:
        sides.append(len(matrix))
        return eigh(matrix)

    monkeypatch.setattr(np.linalg, "eigh", count)
    positions, some = project(values)
    by_some, by_all = (np.linalg.norm(placed[:, None] - placed[None], axis=2) for placed in (positions, whole))
    np.testing.assert_allclose(by_some, by_all, atol=1e-8)
    assert sum(some) == pytest.approx(sum(shares)) == pytest.approx(1.0)
    np.testing.assert_array_equal(project(few)[0], before)
    assert sides == [20, 20]
    assert (project(np.ones((70, 50)))[0] == 0).all()


def test_a_map_that_was_turned_mirrored_and_moved_is_turned_back() -> None:
    earlier = DRAW.normal(size=(50, 2))
    earlier -= earlier.mean(axis=0)
    for mirror in (1.0, -1.0):
        angle = DRAW.uniform(0, 7)
        turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]]) * [mirror, 1.0]
        np.testing.assert_allclose(align(earlier @ turn + 4.0, earlier), earlier, atol=1e-12)


def test_rows_that_have_changed_are_turned_as_scipy_does() -> None:
    linalg = pytest.importorskip("scipy.linalg")
    earlier, now = DRAW.normal(size=(2, 50, 2))
    earlier, now = earlier - earlier.mean(axis=0), now - now.mean(axis=0)
    np.testing.assert_allclose(align(now, earlier), now @ linalg.orthogonal_procrustes(now, earlier)[0], atol=1e-12)


# -- the sample --------------------------------------------------------------------------------------------------------
def test_a_sample_has_rows_of_all_splits_once_and_is_the_same_for_a_seed() -> None:
    sizes = {"training": 9000, "validation": 1000}
    sample, again = draw_sample(sizes, 500, 1), draw_sample(sizes, 500, 1)
    assert len({*zip(sample.split.tolist(), sample.rows.tolist(), strict=True)}) == 500
    assert sample.rows.tolist() == again.rows.tolist() != draw_sample(sizes, 500, 2).rows.tolist()
    assert 20 < (sample.split == 1).sum() < 80
    assert sample.rows[sample.split == 1].max() < 1000
    assert [len(rows) for _, rows in draw_sample({"a": 3, "b": 2}, 500, 0).parts()] == [3, 2]


def test_labels_are_classes_or_numbers() -> None:
    values, classes = index_labels(["b", "a", "b"], [])
    assert (values.tolist(), classes) == ([1, 0, 1], ["a", "b"])
    values, classes = index_labels([5, 7, 6], [7, 5])
    assert (values.tolist(), classes) == ([1, 0, -1], [7, 5])
    values, classes = index_labels([0.5, None, 2], [])
    assert classes == []
    np.testing.assert_array_equal(values, [0.5, np.nan, 2])


# -- maps --------------------------------------------------------------------------------------------------------------
def test_a_map_of_the_inputs_has_all_rows_with_labels_and_splits() -> None:
    found = ask(view(), "map")
    assert (found["at"], found["total"], found["splits"], found["method"]) == (7, 90, ["training", "validation"], "pca")
    assert found["split"].tolist() == [0] * 60 + [1] * 30
    assert found["row"].tolist() == [*range(60), *range(30)]
    assert [found["classes"][int(place)] for place in found["label"]] == ["right" if x else "left" for x in TARGETS]
    wanted = np.abs(project(POINTS / 10.0)[0])
    np.testing.assert_allclose(np.abs(found["x"]), wanted[:, 0], rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(np.abs(found["y"]), wanted[:, 1], rtol=1e-4, atol=1e-5)
    assert found["loss"] is None


def test_a_map_of_a_layer_does_not_flip_when_its_values_do() -> None:
    shown = view()
    first = ask(shown, "map", of="1-dense", split="training", count=30)
    shown.sign = -1.0
    second = ask(shown, "map", of="1-dense", split="training", count=30)
    assert first["row"].tolist() == second["row"].tolist()
    np.testing.assert_allclose(first["x"], second["x"], atol=1e-5)
    np.testing.assert_allclose(first["y"], second["y"], atol=1e-5)
    assert np.ptp(first["x"]) > np.ptp(first["y"]) > 0


def test_losses_answers_and_edits_are_those_of_the_rows() -> None:
    edited = {"training": {"excluded": [4], "labels": {5: "left"}}, "validation": {"labels": {1: "right"}}}
    found = ask(view(edited=edited), "map", losses=True)
    wanted = np.arange(90) / 10.0
    wanted[4] = np.nan
    np.testing.assert_allclose(found["loss"], wanted, rtol=1e-6)
    right = (TARGETS == PREDICTED).astype(int)
    right[4] = -1
    assert found["right"].tolist() == right.tolist()
    assert found["excluded"].nonzero()[0].tolist() == [4]
    assert [found["label"][5], found["label"][61]] == [0, 1]


def test_the_last_few_maps_of_a_run_are_kept_in_the_order_of_their_use() -> None:
    shown = view()
    for seed in (*range(8), 0, 8, 9):
        ask(shown, "map", count=10, seed=seed)
    assert [about[-1] for _, about in mapping._placed[shown]] == [3, 4, 5, 6, 7, 0, 8, 9]


def test_values_that_are_not_finite_are_placed_at_zero() -> None:
    def activations(self: Any, samples: Any) -> dict[str, np.ndarray]:
        return {"1-dense": np.full((len(samples["inputs"]), 3), np.nan)}

    found = ask(view(type("Broken", (Plane,), {"activations": activations})), "map", of="1-dense")
    assert (found["x"] == 0).all()


def test_of_wide_layers_fewer_rows_are_on_the_map(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sigma_monitor_control.protocol.sampling.BYTES", 4 * 3 * 10)
    found = ask(view(), "map", of="1-dense")
    assert len(found["row"]) == 10
    assert {*found["split"].tolist()} == {0, 1}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"of": "1-dens"}, "no layer '1-dens'. Did you mean '1-dense'"),
        ({"of": "3-cost"}, "'3-cost' is a cost, without outputs"),
        ({"method": "tsne"}, "'method' is pca or umap"),
        ({"count": 20_000}, "'count' 3 to 10000"),
        ({"split": "tset"}, "split 'tset': no such split"),
    ],
)
def test_a_map_that_is_impossible_is_refused(arguments: dict[str, Any], message: str) -> None:
    assert message in ask(view(), "map", **arguments)


# -- UMAP --------------------------------------------------------------------------------------------------------------
def test_without_umap_learn_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sigma_monitor_control.protocol.positions.find_spec", lambda name: None)
    message = ask(view(), "map", method="umap")
    assert "umap-learn, which is not installed" in message
    assert "pip install 'sigma-monitor-control[umap]'" in message


STAND_IN = """
import numpy
class UMAP:
    def __init__(self, **settings):
        self.settings = settings
    def fit_transform(self, values):
        return self.settings["init"] + len(values) + self.settings["random_state"]
"""


def test_umap_begins_with_the_last_map_in_a_process_of_its_own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "umap.py").write_text(STAND_IN)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "umap.py").write_text("raise ValueError('a file of the working directory')")
    monkeypatch.chdir(tmp_path / "here")
    earlier = DRAW.normal(size=(30, 2))
    positions = embed(DRAW.normal(size=(30, 4)).astype(np.float32), 3, earlier)
    np.testing.assert_allclose(positions, earlier * 10 / np.abs(earlier).max() + 33, rtol=1e-6)
    assert "umap" not in sys.modules


def test_a_process_that_fails_is_an_error_with_its_reason(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "umap.py").write_text("raise ValueError('no neighbours')")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    with pytest.raises(SigmaStateError, match="UMAP failed: ValueError: no neighbours. Use method 'pca'"):
        embed(DRAW.normal(size=(30, 4)), 0)


SLOW = """
import pathlib, time
class UMAP:
    def __init__(self, **settings):
        pathlib.Path(__file__).with_name("begun").touch()
        time.sleep(600)
"""


def test_umap_that_is_cancelled_ends_its_process_and_the_next_map_is_computed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "umap.py").write_text(SLOW)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    embeddings, aside = list[UmapProcess](), Aside(WorkBudget(rest=0.0))

    def make() -> UmapProcess:
        embeddings.append(UmapProcess())
        return embeddings[-1]

    monkeypatch.setattr(mapping, "UmapProcess", make)
    monkeypatch.setattr(mapping, "EMBEDDER", aside)
    conversation = Conversation(view(), later=aside.do)
    conversation.receive(json.dumps({"id": 1, "do": "map", "method": "umap"}))
    wait_until((tmp_path / "begun").exists)
    assert json.loads(conversation.receive(json.dumps({"id": 2, "do": "cancel", "of": 1}))[0])["result"] is True
    process = embeddings[0]._process
    assert process is not None
    wait_until(lambda: process.returncode is not None)
    assert process.returncode < 0, "it was killed"
    (tmp_path / "umap.py").write_text(STAND_IN)
    conversation.receive(json.dumps({"id": 3, "do": "map", "method": "umap"}))
    wait_until(lambda: conversation._waiting[3].done())
    assert "result" in json.loads(conversation.answers()[0])
    aside.end()


def test_umap_that_is_cancelled_before_it_begins_computes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sigma_monitor_control.protocol.positions.find_spec", lambda name: True)
    embedding = UmapProcess()
    embedding.stop()
    with pytest.raises(SigmaStateError, match="UMAP was cancelled"):
        embed(DRAW.normal(size=(30, 4)), 0, None, embedding)


def test_other_requests_are_answered_while_umap_computes(monkeypatch: pytest.MonkeyPatch) -> None:
    begun, go_on, aside = threading.Event(), threading.Event(), Aside(WorkBudget(rest=0.0))

    def embed(values: np.ndarray, *given: Any) -> np.ndarray:
        begun.set()
        assert go_on.wait(30)
        return np.zeros((len(values), 2))

    monkeypatch.setattr("sigma_monitor_control.protocol.positions.find_spec", lambda name: True)
    monkeypatch.setattr(mapping, "embed", embed)
    conversation, there, answered = Conversation(view(), later=aside.do), threading.Event(), list[int]()
    conversation.notify(there.set)
    for id, method in ((1, "umap"), (2, "umap"), (3, "pca")):
        answered += [
            json.loads(line)["id"]
            for line in conversation.receive(json.dumps({"id": id, "do": "map", "method": method}))
        ]
    assert begun.wait(30)
    while 3 not in answered:
        assert there.wait(30)
        there.clear()
        answered += [json.loads(line)["id"] for line in conversation.answers()]
    assert answered == [3]
    queued = conversation._waiting[2]
    conversation.close()
    assert isinstance(queued, Future)
    assert queued.cancelled()
    go_on.set()
    aside.end()


# -- decisions ---------------------------------------------------------------------------------------------------------
def test_a_surface_has_the_probabilities_of_its_grid() -> None:
    found = ask(view(), "surface", size=5)
    assert (found["classes"], found["columns"], found["size"]) == (2, ["width", "height"], 5)
    low, high = POINTS[:60].min(axis=0), POINTS[:60].max(axis=0)
    np.testing.assert_allclose(found["low"], low - 0.08 * (high - low))
    np.testing.assert_allclose(found["high"], high + 0.08 * (high - low))
    shares = found["shares"].reshape(5, 5, 2) / 255
    wanted = 1 / (1 + np.exp(-np.linspace(found["low"][0], found["high"][0], 5)))
    np.testing.assert_allclose(shares[..., 1], np.tile(wanted, (5, 1)), atol=1 / 255)
    np.testing.assert_allclose(shares.sum(axis=2), 1, atol=2 / 255)


def test_a_map_of_the_plane_has_the_two_numbers_as_they_are() -> None:
    found = ask(view(), "map", of="plane")
    np.testing.assert_allclose(np.stack([found["x"], found["y"]], axis=1), POINTS, rtol=1e-6)
    assert found["columns"] == ["width", "height"]


def test_values_that_are_no_shares_are_drawn_over_their_range() -> None:
    found = describe_surface(np.array([[-2.0], [0.0], [np.nan], [2.0]]))
    assert (found["classes"], found["least"], found["greatest"]) == (1, -2.0, 2.0)
    assert [*base64.b64decode(found["shares"])] == [0, 128, 128, 255]
    found = describe_surface(np.array([[0.2], [0.9]]))
    assert (found["least"], found["greatest"]) == (0.0, 1.0)
    assert describe_surface(np.array([[0.2, 0.9]]))["classes"] == 1


def test_a_network_of_other_inputs_has_no_surface() -> None:
    layers = [LayerEntry("0-input", "input", (), (3, 2), {}, {"section": "inputs"}), *LAYERS[1:]]
    for do, arguments in (("surface", {}), ("map", {"of": "plane"})):
        assert "needs a network of two input numbers (this has (3, 2))" in ask(view(layers=layers), do, **arguments)
    assert "'size' is 2 to 256" in ask(view(), "surface", size=1)


# -- history -----------------------------------------------------------------------------------------------------------
def test_rows_come_in_an_order_of_their_history_or_by_number() -> None:
    found = ask(view(FakeTrainerView), "row_history", order="forgotten", count=2)
    assert [row["row"] for row in found["rows"]] == [9, 6]
    assert (found["total"], found["epochs"], found["classes"]) == (3, [1, 2], True)
    assert found["rows"][0] == {
        "row": 9, "losses": [9.5, 8.5], "mean": 9.0, "forgotten": 9, "learned": 1, "correct": True
    }  # fmt: skip
    rest = ask(view(FakeTrainerView), "row_history", order="forgotten", start=2, count=2)
    assert [row["row"] for row in rest["rows"]] == [3]
    chosen = ask(view(FakeTrainerView), "row_history", rows=[4, 2])
    assert [(row["row"], row["learned"]) for row in chosen["rows"]] == [(2, None), (4, None)]


def test_a_history_that_is_impossible_is_refused() -> None:
    shown = view(FakeTrainerView)
    assert "order: must be one of mislabelled" in ask(shown, "row_history", order="best")
    assert "row 10: is not in 'training'" in ask(shown, "row_history", rows=[10])
    assert "'count' 1 to 200" in ask(shown, "row_history", count=201)


def test_a_map_needs_rows() -> None:
    empty = type("Empty", (Plane,), {"splits": lambda self: {}})
    assert "have no rows" in ask(view(empty), "map")
