"""Data frames of pandas, polars and pyarrow as data, and predictions from them by column name."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from sigma_data import Arrays, Csv, Frame, split
from sigma_kernel import Environment
from sigma_kernel.errors import SigmaConfigError, SigmaDataError, SigmaError
from sigma_layers import Input, Output, SoftmaxCrossEntropy, SquaredDifference
from sigma_optimisers import Adam
from sigma_run import load
from sigma_run.config import build, load as configuration
from sigma_run.launcher.group import main

LIBRARIES: dict[str, Callable[[pd.DataFrame], Any]] = {
    "pandas": lambda frame: frame,
    "polars": lambda frame: pl.DataFrame(frame.reset_index(drop=True)),
    "pyarrow": lambda frame: pa.Table.from_pandas(frame, preserve_index=False),
}


@pytest.fixture
def flowers() -> pd.DataFrame:
    """Return a table with three numbers and a word in each row; its index is not 0, 1, ..."""
    draw = np.random.default_rng(3)
    table = {name: draw.normal(size=60) * scale for name, scale in (("a", 1.0), ("b", 10.0), ("c", 0.1))}
    kind = np.where(table["a"] > 0, "rose", "aster")
    return pd.DataFrame({**table, "kind": kind}, index=draw.permutation(60) + 7)


def trained(data: Any, units: int = 3, classes: int = 2, **settings: Any) -> Any:
    network = Input(units) + Output(classes) + SoftmaxCrossEntropy()
    made = Environment("frames", seed=1).create_trainer(network=network, data=data, optimiser=Adam(0.1), **settings)
    made.fit(epochs=2)
    return made


# -- predicting by column name -----------------------------------------------------------------------------------------
@pytest.mark.parametrize("way", ["Frame", "pair", "mapping", "Arrays", "subset"])
@pytest.mark.parametrize("library", LIBRARIES)
def test_columns_are_found_by_name_whatever_their_order(flowers: pd.DataFrame, way: str, library: str) -> None:
    frame, read = LIBRARIES[library](flowers), LIBRARIES[library]
    inputs, targets = read(flowers[["a", "b", "c"]]), frame["kind"]
    made = trained({
        "Frame": lambda: Frame(frame, "kind"),
        "pair": lambda: (inputs, targets),
        "mapping": lambda: {"inputs": inputs, "targets": targets},
        "Arrays": lambda: Arrays(inputs=inputs, targets=targets),
        "subset": lambda: split(Frame(frame, "kind")["training"], {"training": 1.0}),
    }[way]())  # fmt: skip
    wanted = made.predict(flowers[["a", "b", "c"]].to_numpy())
    for other in LIBRARIES.values():
        for columns in (["c", "b", "a"], ["a", "b", "c"], ["b", "c", "a"]):
            assert made.predict(other(flowers[columns])).tobytes() == wanted.tobytes()
    swapped = flowers.rename(columns={"a": "b", "b": "a"})
    assert not np.array_equal(made.predict(read(swapped[["a", "b", "c"]])), wanted)  # names decide, not positions


@pytest.mark.parametrize("way", ["Frame", "pair"])
def test_the_target_may_stay_in_the_frame_and_other_columns_may_not(flowers: pd.DataFrame, way: str) -> None:
    made = trained(Frame(flowers, "kind") if way == "Frame" else (flowers[["a", "b", "c"]], flowers["kind"]))
    assert np.array_equal(made.predict(flowers), made.predict(flowers[["a", "b", "c"]]))
    with pytest.raises(SigmaDataError, match=r"not trained on column 'z', but on 'a', 'b', 'c'\. Leave it out"):
        made.predict(flowers.assign(z=1.0))
    with pytest.raises(SigmaDataError, match="there is no column 'b', 'c'; it has 'a', 'kind'"):
        made.predict(flowers[["a", "kind"]])
    with pytest.raises(SigmaDataError, match="has two columns 'a'"):
        made.predict(pd.concat([flowers, flowers[["a"]]], axis=1))


def test_predictions_keep_the_order_of_the_rows(flowers: pd.DataFrame) -> None:
    made, order = trained(Frame(flowers, "kind")), np.random.default_rng(0).permutation(60)
    whole = made.predict(flowers)
    assert np.array_equal(made.predict(flowers.iloc[order]), whole[order])
    np.testing.assert_allclose(made.predict(flowers.iloc[[5]]), whole[[5]], rtol=1e-6)  # BLAS sums one row otherwise
    assert made.classify(flowers.iloc[order]).tolist() == made.classify(flowers)[order].tolist()
    assert (made.predict(flowers[:0]).shape, made.classify(flowers[:0]).tolist()) == ((0, *whole.shape[1:]), [])


def test_a_network_trained_on_arrays_takes_frames_by_position(flowers: pd.DataFrame) -> None:
    inputs = flowers[["a", "b", "c"]]
    made = trained((inputs.to_numpy(), flowers["kind"]))
    assert np.array_equal(made.predict(inputs), made.predict(inputs.to_numpy()))


def test_integers_in_a_frame_are_predicted_like_floats() -> None:
    frame = pd.DataFrame({"a": [1, 2, 3, 4], "b": [0, 1, 0, 1], "y": [0, 1, 0, 1]})
    made = trained(Frame(frame, "y"), 2)
    assert np.array_equal(made.predict(frame), made.predict(frame.astype({"a": float, "b": "float32"})))


def test_sections_are_frames_of_their_own() -> None:
    frame = pd.DataFrame({"a": [1.0, 2.0], "b": [3.0, 5.0], "c": [0.5, 0.25]})
    network = [Input(2, section="left") + Output(1, name="l") + SquaredDifference(targets="y")]
    network += [Input(1, section="right") + Output(1, name="r") + SquaredDifference(targets="y")]
    data = {"left": frame[["a", "b"]], "right": frame[["c"]], "y": np.ones((2, 1))}
    made = Environment().create_trainer(network=network, data=data, optimiser=Adam())
    made.fit(epochs=1)
    by_name = made.predict({"left": frame[["b", "a"]], "right": frame[["c"]]})
    by_place = made.predict({"left": frame[["a", "b"]].to_numpy(), "right": frame[["c"]].to_numpy()})
    assert all(np.array_equal(by_name[name], by_place[name]) for name in ("l", "r"))


# -- splits ------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("way", ["Frame", "pair"])
def test_the_columns_of_validation_are_those_of_training(flowers: pd.DataFrame, way: str) -> None:
    def data(frame: pd.DataFrame) -> Any:
        return Frame(frame, "kind") if way == "Frame" else (frame.drop(columns="kind"), frame["kind"])

    made = trained({"training": data(flowers), "validation": data(flowers[["kind", "c", "a", "b"]])})
    assert made.evaluate("validation") == made.evaluate("training")
    with pytest.raises(SigmaDataError, match="there is no column 'c'; it has 'a', 'b'"):
        trained({"training": data(flowers), "validation": data(flowers[["a", "b", "kind"]])}).evaluate()


def test_a_frame_without_a_target_says_how_to_name_it(flowers: pd.DataFrame) -> None:
    with pytest.raises(SigmaConfigError, match=r"which column is to be predicted\? .* trainer\.target = 'kind'"):
        trained(flowers)
    with pytest.raises(SigmaDataError, match="there is no column 'sort'"):
        trained(Frame(flowers, "sort"))
    with pytest.raises(SigmaDataError, match="there is no column except the target"):
        trained(Frame(flowers[["kind"]], "kind"))


# -- the same as a table in a file -------------------------------------------------------------------------------------
@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("missing", ["drop", 0.5])
def test_a_frame_is_read_like_the_same_table_in_a_file(
    flowers: pd.DataFrame, tmp_path: Path, library: str, missing: Any
) -> None:
    table = flowers.assign(colour=["red", "blue", "green"] * 20).round(3)
    table.iloc[4, 1] = np.nan
    table.iloc[9, 4] = None
    table.to_csv(tmp_path / "t.csv", index=False)
    settings: dict[str, Any] = {"encode": "colour", "missing": missing, "split": {"training": 0.7, "validation": 0.3}}
    first = trained(Csv(tmp_path / "t.csv", "kind", **settings), 6)
    second = trained(Frame(LIBRARIES[library](table), "kind", **settings), 6)
    assert first.session.setup.evaluator.classes == second.session.setup.evaluator.classes == ("aster", "rose")
    assert first.evaluate() == second.evaluate()
    whole = table.dropna()[["colour", "b", "a", "c"]]
    assert np.array_equal(first.predict(whole), second.predict(whole))


def test_a_run_trained_on_a_file_predicts_frames_by_name(flowers: pd.DataFrame, tmp_path: Path) -> None:
    table = flowers.assign(colour=["red", "blue"] * 30).round(3)
    table.to_csv(tmp_path / "t.csv", index=False)
    text = f"""
format = 1
[data]
dataset = "csv"
path = "{tmp_path / "t.csv"}"
target = "kind"
encode = "colour"
scale = 0.5
missing = 0.25
[network]
architecture = "input(5) + output(2) + softmax_cross_entropy()"
[trainer]
optimiser = "adam"
epochs = 2
"""
    with build(configuration(text), folder=tmp_path) as sigma:
        sigma.run()
        wanted = sigma.trainers["trainer"].predict(table)
    (tmp_path / "new.csv").write_text("b,colour,c,a\n2,red,1,\n")
    model = load(sigma.run_folder)
    (tmp_path / "t.csv").unlink()
    assert np.array_equal(model.predict(table[["colour", "c", "a", "b", "kind"]]), wanted)
    assert set(model.classify(table)) <= {"aster", "rose"}
    one = pd.DataFrame({"colour": ["red"], "c": [1.0], "b": [2.0], "a": [None]})
    from_file = model.trainer.data.samples(tmp_path / "new.csv", (5,), learned=model.checkpoint.values["learned"])
    assert np.array_equal(model.predict(one), model.predict(from_file))
    with pytest.raises(SigmaDataError, match="'pink' is not one of the 2 categories of the training data"):
        model.predict(table.assign(colour="pink"))


def test_a_run_on_a_frame_is_loaded_with_its_names_and_classes(
    flowers: pd.DataFrame, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = flowers.assign(colour=["red", "blue"] * 30, w=np.arange(60) % 3).round(3)
    with Environment("frames", seed=1, folder=tmp_path) as sigma:
        data = Frame(table, "kind", inputs=["b", "a", "colour"], encode="colour", weights="w", missing=0.5)
        made = sigma.create_trainer(data=data, validation_split=0.25, optimiser="adam", epochs=2)
        made.network = "input(4) + output(2) + softmax_cross_entropy()"
        sigma.run()
        wanted, loss = made.predict(table), made.evaluate()
    assert sigma.run_folder is not None
    model = load(sigma.run_folder)
    mixed = table[["w", "colour", "kind", "a", "c", "b"]]
    assert np.array_equal(model.predict(mixed), wanted)
    assert np.array_equal(model.predict(LIBRARIES["polars"](mixed)), wanted)
    assert model.classify(mixed).tolist() == np.array(["aster", "rose"])[wanted.argmax(axis=1)].tolist()
    assert model.evaluate() == loss
    mixed.to_csv(tmp_path / "new.csv", index=False)
    assert main(["predict", str(sigma.run_folder), str(tmp_path / "new.csv"), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["predictions"]
    assert np.array_equal(np.array([row["probabilities"] for row in found], np.float32), wanted)
    assert [row["label"] for row in found] == model.classify(mixed).tolist()
    with pytest.raises(SigmaDataError, match="there is no column 'a'"):
        model.predict(mixed.drop(columns="a"))


# -- types of columns --------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("kind", ["category", "encode", "polars", "enum", "numbers"])
def test_categorical_columns_are_one_hot_encoded(kind: str) -> None:
    words = ["b", "a", "c", "a"]
    frame = pd.DataFrame({"a": [1.0, 2, 3, 4], "word": words, "y": [0, 1, 1, 0]})
    given: dict[str, Any] = {
        "category": frame.astype({"word": "category"}),
        "encode": frame,
        "polars": pl.DataFrame(frame).with_columns(pl.col("word").cast(pl.Categorical)),
        "enum": pl.DataFrame(frame).with_columns(pl.col("word").cast(pl.Enum(["a", "b", "c", "d"]))),
        "numbers": frame.assign(word=[20, 3, 100, 3]),
    }
    encode = ("word",) if kind in ("encode", "numbers") else ()
    data = Frame(given[kind], "y", encode=encode)["training"]
    encoded = [[0, 1, 0], [1, 0, 0], [0, 0, 1], [1, 0, 0]]  # a, b, c in alphabetical, 3, 20, 100 in numerical order
    assert np.array_equal(data.block(0)["inputs"], np.column_stack([frame["a"], encoded]))


def test_booleans_of_a_frame_count_as_numbers_and_as_classes() -> None:
    frame = pd.DataFrame({"a": [True, False, True], "y": [True, False, False]})
    assert Frame(frame, "y")["training"].block(0)["inputs"].tolist() == [[1.0], [0.0], [1.0]]
    made = trained(Frame(frame, "y"), 1)
    assert made.session.setup.evaluator.classes == (False, True)
    nullable = frame.astype("boolean")
    assert np.array_equal(made.predict(nullable[["a"]]), made.predict(frame))


@pytest.mark.parametrize(("column", "message"), [
    (["x", "y"], r"column 'b': holds words, such as 'x'\. Name it in Frame\(..., encode=\['b'\]\)"),
    (["x", 3], "column 'b': mixes words and numbers: row 0 holds 'x', row 1 3"),
    (pd.to_datetime(["2020-01-01", "2021-01-01"]), r"column 'b': holds datetime64.*Make numbers of it, such as days"),
    ([1.0, None], "column 'b', row 1: a value is missing, in 1 of 2 rows. Fill it in, or train with"),
    (pd.array([1, None], dtype="Int64"), "column 'b', row 1: a value is missing"),
    ([{}, {}], "column 'b': row 0 holds a dict. Use numbers or words"),
    ([1.0, np.inf], "section 'inputs', row 1: a value is not finite"),
])  # fmt: skip
def test_columns_that_are_no_numbers_are_refused_by_name(column: Any, message: str) -> None:
    frame = pd.DataFrame({"a": [1.0, 2.0], "b": column, "y": [0, 1]})
    with pytest.raises(SigmaError, match=message):
        trained(Frame(frame, "y"), 2)
    with pytest.raises(SigmaError, match=message):
        trained((frame[["a", "b"]], frame["y"]), 2)


@pytest.mark.parametrize("target", [["u", None], [1.0, None]])
def test_a_missing_target_is_refused_or_dropped(target: list[Any]) -> None:
    frame = pd.DataFrame({"a": [1.0, 2.0], "y": target})
    with pytest.raises(
        SigmaDataError, match=r"row 1: the target, the weight or the group is missing\. .* missing = 'drop'"
    ):
        Frame(frame, "y")["training"]
    assert len(Frame(frame, "y", missing="drop")["training"]) == 1
    with pytest.raises(SigmaDataError, match="there is no row without missing values"):
        Frame(frame[1:], "y", missing="drop")["training"]


def test_a_lazy_frame_is_refused_with_the_remedy(flowers: pd.DataFrame) -> None:
    with pytest.raises(SigmaDataError, match=r"a LazyFrame has not been read\. Call its collect\(\)"):
        trained(Frame(pl.DataFrame(flowers).lazy(), "kind"))


def test_targets_are_several_columns_or_numbers(flowers: pd.DataFrame) -> None:
    rows = Frame(flowers, ["b", "c"], inputs=["a"])["training"].block(0)
    assert np.array_equal(rows["targets"], flowers[["b", "c"]].to_numpy())
    assert rows["inputs"].shape == (60, 1)
    made = trained(Frame(flowers, "kind", inputs=["b", "a"]), 2)  # the other columns may stay in the frame
    assert np.array_equal(made.predict(flowers), made.predict(flowers[["b", "a"]].to_numpy()))
    ages = pd.DataFrame({"a": [1.0, 2.0, 3.0], "age": [30, 40, 50]})
    network = Input(1) + Output(1) + SquaredDifference()
    made = Environment().create_trainer(network=network, data=Frame(ages, "age"), optimiser=Adam())
    made.fit(epochs=1)
    error = made.predict(ages).ravel() - ages["age"]
    assert made.evaluate("training")["loss"] == pytest.approx(np.mean(error**2), rel=1e-6)


def test_a_frame_of_one_word_column_holds_the_classes(flowers: pd.DataFrame) -> None:
    made = trained((flowers[["a", "b", "c"]], flowers[["kind"]]))
    assert made.session.setup.evaluator.classes == ("aster", "rose")


def test_blocks_of_frames_are_refused_as_their_columns_may_differ_in_order(flowers: pd.DataFrame) -> None:
    blocks = [(flowers[["a", "b", "c"]], np.zeros(60, int)), (flowers[["c", "b", "a"]], np.ones(60, int))]
    for data in (blocks, iter(blocks)):
        with pytest.raises(
            SigmaDataError, match=r"blocks lose the names of columns\. Give one frame, or frame\[names\]"
        ):
            trained(data)
    with pytest.raises(SigmaDataError, match="section 'inputs' of a batch is a frame, and batches lose the names"):
        trained(lambda: iter(blocks))


def test_columns_with_numbers_for_names_are_accepted() -> None:
    frame = pd.DataFrame(np.arange(8.0).reshape(4, 2))
    made = trained((frame, [0, 1, 0, 1]), 2)
    assert np.array_equal(made.predict(frame[[1, 0]]), made.predict(frame.to_numpy()))


@pytest.mark.parametrize("missing", ["refuse", "drop"])
def test_a_missing_value_at_prediction_is_named_with_what_can_be_done_then(missing: Any, flowers: pd.DataFrame) -> None:
    made, gap = trained(Frame(flowers, "kind", missing=missing)), flowers.copy()
    gap.iloc[[4, 9], gap.columns.get_loc("b")] = np.nan
    with pytest.raises(SigmaDataError) as error:
        made.predict(gap)
    assert str(error.value) == (
        "frame: column 'b', row 4: a value is missing, in 2 of 60 rows. There is one prediction for each row, so that "
        "none is dropped. Fill the value in, or leave such rows out, in pandas by frame.dropna(subset=...)."
    )
    rest = gap.dropna(subset=["a", "b", "c"])
    assert len(made.predict(rest)) == 58
    with pytest.raises(SigmaDataError, match=r"Fill it in, or train with Frame\(..., missing='drop'\) or a number"):
        trained(Frame(gap, "kind"))


def test_columns_of_frames_have_names_and_keep_them_when_the_run_is_loaded(tmp_path: Path) -> None:
    frame = pd.DataFrame({"size": [1.0, 2, 3, 4], "colour": ["red", "blue"] * 2, "kind": ["a", "b"] * 2})
    data, names = Frame(frame, "kind", encode="colour"), ("size", "colour = blue", "colour = red")
    assert data["training"].column_names("inputs") == names
    assert split(data["training"], {"training": 0.5})["training"].column_names("inputs") == names
    assert Arrays(inputs=frame[["size"]], targets=[0, 1, 0, 1]).column_names("inputs") == ("size",)
    with Environment("named", folder=tmp_path) as sigma:
        network = "input(3) + output(2) + softmax_cross_entropy()"
        sigma.create_trainer(data=data, network=network, optimiser="adam", epochs=1)
        sigma.run()
        assert sigma.run_folder is not None
        saved = load(sigma.run_folder)
    assert saved.columns == {"inputs": [*names]}
    kept: Any = saved.trainer.data
    assert kept["training"].column_names("inputs") == names
