"""Categorical columns among the inputs of a table."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sigma_data import Csv, SamplesReader
from sigma_data.categories import one_hot
from sigma_data.sources import local
from sigma_kernel import SigmaConfigError, SigmaDataError

CARS = "colour,doors,smoker,price\nred,3,true,1\nblue, 5,false,2\n green,3,true,3\nred,10,false,4\n"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    (tmp_path / "cars.csv").write_text(CARS)
    return tmp_path / "cars.csv"


def inputs(path: Path, **settings: Any) -> list[list[float]]:
    found: list[list[float]] = (
        Csv(path, "price", targets="numbers", **settings).all_rows()[0].block(0)["inputs"].tolist()
    )
    return found


def inputs_of(path: Path) -> list[list[float]]:
    found: list[list[float]] = Csv(path, "y", encode="kind").all_rows()[0].block(0)["inputs"].tolist()
    return found


def test_a_column_of_words_is_one_hot_encoded_in_alphabetical_order(path: Path) -> None:
    assert inputs(path, inputs=("colour", "doors"), encode="colour") == [  # blue, green, red; doors
        [0, 0, 1, 3], [1, 0, 0, 5], [0, 1, 0, 3], [0, 0, 1, 10],
    ]  # fmt: skip


def test_encoded_columns_keep_their_positions_and_integers_are_in_numerical_order(path: Path) -> None:
    assert inputs(path, encode=("smoker", "doors", 0)) == [  # blue, green, red; 3, 5, 10; false, true
        [0, 0, 1, 1, 0, 0, 0, 1], [1, 0, 0, 0, 1, 0, 1, 0], [0, 1, 0, 1, 0, 0, 0, 1], [0, 0, 1, 0, 0, 1, 1, 0],
    ]  # fmt: skip


def test_one_hot_columns_equal_the_pandas_example(tmp_path: Path) -> None:
    """The data frame of the documentation of ``pandas.get_dummies``: A = a, b, a; B = b, a, c; C = 1, 2, 3."""
    (tmp_path / "a.csv").write_text("A,B,C,y\na,b,1,0\nb,a,2,0\na,c,3,0\n")
    found = Csv(tmp_path / "a.csv", "y", inputs=("C", "A", "B"), encode=("A", "B")).all_rows()[0].block(0)["inputs"]
    assert found.tolist() == [[1, 1, 0, 0, 1, 0], [2, 0, 1, 1, 0, 0], [3, 1, 0, 0, 0, 1]]


def test_columns_without_names_are_encoded_by_number(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("x,1,0\ny,2,1\n")
    data = Csv(tmp_path / "a.csv", 2, header=False, encode=0, split={"training": 1.0})
    assert data.all_rows()[0].block(0)["inputs"].tolist() == [[1, 0, 1], [0, 1, 2]]
    (tmp_path / "new.csv").write_text("y,5\nx,6\n")
    assert data.samples(tmp_path / "new.csv", (3,)).tolist() == [[0, 1, 5], [1, 0, 6]]


@pytest.mark.parametrize(
    ("missing", "wanted"),
    [("drop", [[0, 1, 1]]), (0.0, [[0, 1, 1], [0, 0, 2], [1, 0, 0]]), (-1.0, [[0, 1, 1], [-1, -1, 2], [1, 0, -1]])],
)
def test_a_blank_cell_in_a_column_of_words_is_missing(tmp_path: Path, missing: Any, wanted: Any) -> None:
    (tmp_path / "a.csv").write_text("kind,x,y\nb,1,0\n ,2,0\na,,0\n")
    assert (
        Csv(tmp_path / "a.csv", "y", encode="kind", missing=missing).all_rows()[0].block(0)["inputs"].tolist() == wanted
    )


def test_a_blank_cell_among_words_is_refused_unless_missing_is_set(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("kind,x,y\nb,1,0\n,2,0\n")
    with pytest.raises(SigmaDataError, match=r"a\.csv:3: column 'kind': a value is missing. .* missing = 'drop'"):
        Csv(tmp_path / "a.csv", "y", encode="kind").all_rows()


def test_a_column_of_blanks_has_no_category(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("kind,x,y\n,1,0\n,2,0\n")
    with pytest.raises(SigmaDataError, match=r"a\.csv: column 'kind': there is no category: .* Leave the column out"):
        Csv(tmp_path / "a.csv", "y", encode="kind", missing=0.0).all_rows()


def test_unencoded_words_are_refused_with_the_setting(path: Path) -> None:
    with pytest.raises(SigmaDataError, match=r"cars\.csv:2: column 'colour': 'red' is not a number. .* `encode`"):
        inputs(path, inputs=("colour",))


@pytest.mark.parametrize("settings", [{"encode": "price"}, {"inputs": ("doors",), "encode": ("colour",)}])
def test_only_inputs_can_be_encoded(path: Path, settings: dict[str, Any]) -> None:
    with pytest.raises(SigmaConfigError, match=r"Csv.encode: column '\w+' is not among the inputs. Write it as in"):
        Csv(path, "price", **settings)


def test_the_target_cannot_be_encoded_as_an_input_under_another_name(path: Path) -> None:
    with pytest.raises(SigmaConfigError, match="Csv.encode: column 3 is not among the inputs"):
        Csv(path, "price", encode=(3, "colour", "smoker")).all_rows()


def test_a_missing_column_is_reported(path: Path) -> None:
    with pytest.raises(SigmaDataError, match=r"there is no column 'color'. Did you mean 'colour'?"):
        inputs(path, encode="color")


def test_too_many_categories_are_refused_before_they_take_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sigma_data.categories.CELLS", 99)
    (tmp_path / "a.csv").write_text("name,y\n" + "".join(f"n{i},0\n" for i in range(10)))
    with pytest.raises(SigmaDataError, match=r"a\.csv:2: column 'name': a column for each of 10 categories of 10 rows"):
        Csv(tmp_path / "a.csv", "y", encode="name").all_rows()


def test_a_large_table_is_encoded_piece_by_piece_while_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sigma_data.readers.csv.SMALL", 0)
    monkeypatch.setattr("sigma_data.readers.delimited.CHUNK", 64)
    rng = np.random.default_rng(0)
    kinds = rng.integers(0, 3, 500)
    (tmp_path / "a.csv").write_text("kind,x,y\n" + "".join(f"{'abc'[k]},{i},0\n" for i, k in enumerate(kinds)))
    found = Csv(tmp_path / "a.csv", "y", encode="kind").all_rows()[0].block(0)["inputs"]
    np.testing.assert_array_equal(found, np.column_stack([np.eye(3)[kinds], np.arange(500)]))


# -- samples to predict from -------------------------------------------------------------------------------------------
def test_samples_have_the_categories_of_the_training_data(path: Path, tmp_path: Path) -> None:
    data = Csv(path, "price", encode=("colour", "smoker"))
    (tmp_path / "new.csv").write_text("smoker,colour,doors\ntrue,green,4\n")  # fewer categories, in another order
    assert data.samples(tmp_path / "new.csv", (6,)).tolist() == [[0, 1, 0, 4, 0, 1]]
    learned = json.loads(json.dumps(data.learned))
    path.unlink()
    (tmp_path / "new.csv").write_text("colour,doors,smoker,price\ngreen,4,true,7\n")
    other = Csv(path, "price", encode=("colour", "smoker"))
    assert other.samples(tmp_path / "new.csv", (6,), learned=learned).tolist() == [[0, 1, 0, 4, 0, 1]]


@pytest.mark.parametrize("saved", [
    None, 7, "red", [], {}, ["0", "2"],  # not categories by column
    {"0": ["blue", "green", "red"]}, {"0": ["a", "b"], "1": ["a", "b"], "2": ["a", "b"]},  # of other columns
    {"0": "red", "2": ["false", "true"]}, {"0": 3, "2": ["false", "true"]}, {"0": None, "2": ["false", "true"]},
    {"0": [], "2": ["false", "true"]}, {"0": [1, 2, 3], "2": ["false", "true"]}, {"0": [["a"]], "2": ["false", "true"]},
    {"0": ["red", "green", "blue"], "2": ["false", "true"]},  # out of order: the columns of another colour
    {"0": ["blue", "blue", "red"], "2": ["false", "true"]}, {"0": ["", "blue", "red"], "2": ["false", "true"]},
    {"0": [" blue", "green", "red"], "2": ["false", "true"]}, {"0": ["blue", "green", "red"], "3": ["false", "true"]},
    {"0": ["blue", "green", "red"], "-1": ["false", "true"]}, {"0": ["blue", "green", "red"], "two": ["false", "true"]},
    {"0": ["blue", "green", "red"], "9" * 5000: ["false", "true"]}, {"0": sorted(map(str, range(9999))), "2": ["a"]},
    {"0": [str(i) for i in range(100_000)], "2": ["false", "true"]},
])  # fmt: skip
def test_damaged_categories_of_a_run_are_refused_in_one_sentence(path: Path, tmp_path: Path, saved: Any) -> None:
    (tmp_path / "new.csv").write_text("colour,doors,smoker\ngreen,4,true\n")
    data = Csv(path, "price", encode=("colour", "smoker"))
    with pytest.raises(SigmaDataError, match="its 2 encoded columns are damaged in the checkpoint: it holds .* Use an"):
        data.samples(tmp_path / "new.csv", (6,), learned={"categories": saved})


def test_a_run_without_categories_has_none_for_columns_to_encode(path: Path, tmp_path: Path) -> None:
    (tmp_path / "new.csv").write_text("colour,doors,smoker\ngreen,4,true\n")
    with pytest.raises(SigmaDataError, match="damaged in the checkpoint: it holds {}"):
        Csv(path, "price", encode=("colour", "smoker")).samples(tmp_path / "new.csv", (6,), learned={})


@pytest.mark.parametrize("word", ["--5", "-", "7" * 5000])
def test_a_word_that_resembles_a_number_is_a_category(tmp_path: Path, word: str) -> None:
    (tmp_path / "a.csv").write_text(f"kind,x,y\n{word},1,0\n3,2,0\n")
    assert inputs_of(tmp_path / "a.csv") == [[0, 1, 1], [1, 0, 2]]


def test_a_column_that_is_encoded_twice_is_refused(path: Path) -> None:
    with pytest.raises(
        SigmaConfigError, match=r"names a column twice \(got \('colour', 'smoker', 0\)\). Name each once"
    ):
        inputs(path, encode=("colour", "smoker", 0))


def test_a_data_set_without_words_learns_no_categories_and_reads_no_rows(tmp_path: Path) -> None:
    assert Csv(tmp_path / "gone.csv", "y").learned == {}


def test_an_unknown_category_names_the_line_and_the_column(path: Path, tmp_path: Path) -> None:
    data = Csv(path, "price", encode=("colour", "smoker"))
    (tmp_path / "new.csv").write_text("colour,doors,smoker\nred,4,true\npink,4,true\n")
    message = (
        r"new\.csv:3: column 'colour': 'pink' is not one of the 3 categories .*: 'blue', 'green', 'red'\. Correct it"
    )
    with pytest.raises(SigmaDataError, match=message):
        data.samples(tmp_path / "new.csv", (6,))
    (tmp_path / "new.csv").write_text("pink,4,true\n")  # no header: it holds a number
    with pytest.raises(SigmaDataError, match=r"new\.csv:1: column '0': 'pink' is not one"):
        data.samples(tmp_path / "new.csv", (6,))


def test_samples_with_a_blank_are_filled_or_refused_as_in_training(path: Path, tmp_path: Path) -> None:
    (tmp_path / "new.csv").write_text("colour,doors,smoker\n,4,true\n")
    with pytest.raises(SigmaDataError, match=r"new\.csv:2: column 'colour': a value is missing"):
        Csv(path, "price", encode=("colour", "smoker")).samples(tmp_path / "new.csv", (6,))
    filled = Csv(path, "price", encode=("colour", "smoker"), missing=0.0).samples(tmp_path / "new.csv", (6,))
    assert filled.tolist() == [[0, 0, 0, 4, 0, 1]]


def test_a_wrong_number_of_columns_is_reported_in_columns_of_the_file(path: Path, tmp_path: Path) -> None:
    (tmp_path / "new.csv").write_text("red,4\n")
    with pytest.raises(SigmaDataError, match=r"2 columns to predict from; .* \(6,\) has 6 numbers, made of 3 columns"):
        Csv(path, "price", encode=("colour", "smoker")).samples(tmp_path / "new.csv", (6,))


@pytest.mark.parametrize("rows", ["red,true", "red\ntrue"])
def test_a_first_line_of_known_categories_is_a_row(tmp_path: Path, rows: str) -> None:
    (tmp_path / "new.csv").write_text(rows + "\n")
    known = {"0": ("red",), "1": ("true",)} if "," in rows else {"0": ("red", "true")}
    reader = SamplesReader((2,), categories=known, delimiter=",")
    assert reader.read(local(tmp_path / "new.csv"))["values"].tolist() == (
        [[1, 1]] if "," in rows else [[1, 0], [0, 1]]
    )


def test_categories_agree_with_manual_counting() -> None:
    words = np.array(["b", "a", " b", "c"], np.dtypes.StringDType())
    found = one_hot(words, ("a", "b", "c"), str, "x")
    assert found.sum(axis=0).tolist() == [1, 2, 1]
    assert found.sum(axis=1).tolist() == [1, 1, 1, 1]
