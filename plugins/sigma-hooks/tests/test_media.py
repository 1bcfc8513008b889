"""What hooks publish as media: filters, generated pictures, confusion, histograms, maximised inputs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest

from sigma_hooks import ConfusionMatrix, Filters, GeneratedPictures, Histogram, TargetMaximisation
from sigma_hooks.filters import find_filters
from sigma_kernel import Environment
from sigma_kernel.contracts import HistogramValue, Hook, HookContext, Outlook, PictureValue, TableValue
from sigma_kernel.errors import SigmaConfigError, SigmaNetworkError
from sigma_kernel.graph import Spec
from sigma_layers import Dense, Input, Reshape, SquaredDifference
from sigma_testing import Desk, HookSuite, Sweep, small_environment

DRAW = np.random.default_rng(0)


class TestFilters(HookSuite):
    def make(self) -> Hook:
        return Filters()


class Drawing(Desk):
    """A desk whose network makes pictures of 3 x 4 of samples of 12 numbers: the samples themselves."""

    def ends(self, layer: str = "", section: str = "") -> tuple[Spec, Spec]:
        return Spec((12,), "float32"), Spec((3, 4), "float32")

    def excite(self, samples: np.ndarray, directions: np.ndarray, **at: Any) -> tuple[np.ndarray, np.ndarray]:
        return samples.reshape(-1, 3, 4), directions


class TestGeneratedPictures(HookSuite):
    in_background = False  # it computes with the network of the moment

    def make(self) -> Hook:
        return GeneratedPictures(count=3, low=-4.0, high=4.0)

    def desk(self, values: dict[str, Any] | None = None) -> Desk:
        return Drawing(values or {})

    def environment(self, hooks: Mapping[str, Hook]) -> Environment:
        sigma = small_environment(Sweep(), hooks=hooks)
        rows = np.random.default_rng(1).normal(size=(20, 5)).astype(np.float32)
        data = {"inputs": rows, "targets": np.tile(rows[:, None, :3], (1, 2, 1))}
        trainer = sigma.trainer("trainer")
        trainer.data = {"training": data, "validation": data}
        trainer.network = Input(5) + Dense(6) + Reshape(2, 3) + SquaredDifference()
        return sigma


# -- filters -----------------------------------------------------------------------------------------------------------
def test_units_that_read_pictures_and_convolutions_have_filters_and_others_do_not() -> None:
    weights = DRAW.normal(size=(12, 5))
    filters = find_filters(weights, (3, 4))
    assert filters is not None
    assert filters.shape == (5, 3, 4)
    assert filters[2].ravel().tolist() == weights[:, 2].tolist()
    kernels = DRAW.normal(size=(6, 2, 3, 3))
    assert np.allclose(find_filters(kernels, (8, 8)), kernels.mean(1))
    for other, shape in ((np.zeros((6, 2, 1, 1)), (8, 8)), (np.zeros((12, 5)), (12,)), (np.zeros(12), (3, 4))):
        assert find_filters(other, shape) is None
    assert find_filters(np.zeros((24, 5)), (2, 3, 4)) is None, "of several channels"


def test_filters_of_a_layer_are_tiles_of_one_scale() -> None:
    weights = np.zeros((12, 3))
    weights[0] = [1.0, -2.0, 0.5]
    desk = Desk({"network.layers.**.weights": {"network.layers.1-dense.weights": weights}})
    Filters(most=2).fire(desk)
    (picture,) = desk.media.values()
    assert isinstance(picture, PictureValue)
    assert [*desk.media] == ["filters.network.layers.1-dense.weights"]
    assert picture.pixels.shape == (3, 9, 3)
    assert picture.pixels[0, 5].tolist() == [47, 84, 200], "the greatest size is full"
    assert picture.pixels[0, 0].tolist() == [222, 165, 128], "half of it is half as strong"
    assert (picture.pixels[1:] == 255).all()


@pytest.mark.parametrize("shape", [(3,), (0, 4), (1, 2, 3)])
def test_a_shape_that_is_none_of_a_picture_is_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(SigmaConfigError, match=r"filters\.shape: must be height and width"):
        Filters(shape=shape)


# -- generated pictures ------------------------------------------------------------------------------------------------
def test_pictures_are_of_the_same_numbers_each_time_on_a_fixed_scale() -> None:
    desks = [Drawing() for _ in range(3)]
    for desk, seed in zip(desks, (0, 0, 1), strict=True):
        GeneratedPictures(count=5, seed=seed, low=-4.0, high=4.0).fire(desk)
    first, second, other = (desk.media["pictures"].encode() for desk in desks)
    assert first == second != other
    picture: Any = desks[0].media["pictures"]
    assert picture.pixels.shape == (2 * 4 - 1, 3 * 5 - 1, 1)
    sample = np.random.Generator(np.random.Philox(0)).normal(size=(5, 12))[0].astype(np.float32)
    assert (
        picture.pixels[:3, :4, 0].ravel().tolist() == np.rint((sample + 4) / 8 * 255).clip(0, 255).astype(int).tolist()
    )


def test_what_is_no_picture_is_refused_before_training() -> None:
    class Flat(Desk):
        def ends(self, layer: str = "", section: str = "") -> tuple[Spec, Spec]:
            return Spec((12,), "float32"), Spec((7,), "float32")

    outlook: Outlook = Flat()
    with pytest.raises(SigmaNetworkError, match=r"an output of shape \(7,\) is not a picture\. Set layer"):
        GeneratedPictures().check(outlook)
    with pytest.raises(SigmaConfigError, match="low = 1 must be below high = 1"):
        GeneratedPictures(low=1.0).check(Drawing())


# -- hooks that publish numbers too ------------------------------------------------------------------------------------
def test_a_confusion_matrix_is_a_table_unless_it_has_too_many_classes() -> None:
    hook = ConfusionMatrix(on="validation")
    table = hook.show("confusion_matrix", [[3, 1], [0, 2]])
    assert isinstance(table, TableValue)
    assert (table.columns, table.rows, table.heat) == (("true class", "0", "1"), (("0", 3, 1), ("1", 0, 2)), True)
    assert hook.show("digit.confusion_matrix", [[1]]) is not None
    assert hook.show("accuracy", 0.5) is None
    assert hook.show("confusion_matrix", np.zeros((101, 101)).tolist()) is None


def test_a_histogram_is_published_as_counts_and_as_media() -> None:
    desk = Desk({"a.*": {"a.b": np.array([0.0, 0.1, 0.9, 1.0, np.nan])}})
    Histogram("a.*", bins=2).fire(desk)
    value = desk.media["histogram.a.b"]
    assert isinstance(value, HistogramValue)
    assert (value.edges.tolist(), value.counts.tolist()) == ([0.0, 0.5, 1.0], [2, 2])
    assert desk.values["histogram.a.b.counts"] == [2, 2]


def test_maximised_inputs_are_one_picture_of_tiles() -> None:
    desk = Desk()
    TargetMaximisation(steps=2).fire(desk)
    picture: Any = desk.media["target_maximisation.all"]
    assert picture.pixels.shape == (3, 9, 1)
    assert {*desk.values} == {"target_maximisation.0", "target_maximisation.1"}


def test_media_of_hooks_are_kept_with_their_moments(classifier: Callable[..., Environment]) -> None:
    hooks: dict[str, Hook] = {"score": ConfusionMatrix(on="validation"), "see": Filters(), "count": Histogram()}
    with classifier(hooks=hooks) as sigma:
        history = sigma.trainer("trainer").fit(epochs=2)
        weights = sigma.get("trainer.network.layers.1-linear.weights")
    gallery = history.media()
    assert {name.partition(".")[0] for name in gallery.names()} == {"validation", "filters", "histogram"}
    assert [entry.epoch for entry in history.media("validation.confusion_matrix").entries] == [1, 2]
    last = history.media("histogram.network.layers.1-linear.weights")[-1]
    assert last.counts.sum() == weights.size
    assert sum(sum(row[1:]) for row in history.media("validation.confusion_matrix")[-1].rows) == 20


def test_an_own_hook_publishes_media_by_the_same_call(classifier: Callable[..., Environment]) -> None:
    def both(context: HookContext) -> None:
        context.publish("own", PictureValue([[0.5]]))
        context.publish("own", 3)

    with classifier(
        hooks={"own": {"type": "function", "function": both, "outputs": ["own"], "every": "1 epoch"}}
    ) as sigma:
        assert len(sigma.trainer("trainer").fit(epochs=2).media("own")) == 2
        assert sigma.get("trainer.own") == 3
