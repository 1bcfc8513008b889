"""Values of tables are read as what they are, from frames and from files: numbers, booleans, words and their order."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from sigma_data import Arrays, Csv, Frame
from sigma_kernel import Dataset
from sigma_kernel.errors import SigmaConfigError, SigmaDataError, SigmaError

SIZES = ("low", "mid", "high")  # not in alphabetical order
BEYOND = 2**53 + 1  # the first integer that float64 lacks


def rows(data: Any) -> Arrays:
    """Return all rows of a frame or a file."""
    found: Arrays = data.all_rows()[0]
    return found


def labels(data: Dataset) -> tuple[Any, ...]:
    """Return the labels that a classification cost gets."""
    return tuple(data.encode("targets", 0).class_names("targets"))


def write(path: Path, *lines: str) -> Path:
    (path / "table.csv").write_text("\n".join(lines) + "\n")
    return path / "table.csv"


# -- columns by number -------------------------------------------------------------------------------------------------
@pytest.fixture
def numbered() -> pd.DataFrame:
    """Return a frame as pandas makes it of an array, with labels added."""
    frame = pd.DataFrame([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    frame[3] = ["p", "n"]
    return frame


@pytest.mark.parametrize("target", [3, "3", np.int64(3), [3]])
def test_numbered_columns_are_given_by_number_or_as_text(numbered: pd.DataFrame, target: Any) -> None:
    found = rows(Frame(numbered, target, inputs=[2, "0"], weights=1))
    assert found.column_names("inputs") == ("2", "0")
    assert found.arrays["inputs"].tolist() == [[3, 1], [6, 4]]
    assert found.arrays["weights"].tolist() == [2, 5]
    assert labels(found) == ("n", "p")


def test_the_number_of_a_column_is_its_name_before_its_place(numbered: pd.DataFrame) -> None:
    turned = numbered[[3, 2, 1, 0]]
    assert labels(rows(Frame(turned, 3))) == ("n", "p")
    assert rows(Frame(turned, 3, group=0, inputs=[1])).arrays["inputs"].tolist() == [[2], [5]]


def test_columns_named_by_words_are_counted_from_either_end() -> None:
    frame = pd.DataFrame({"a": [1.0, 2.0], "b": [3.0, 4.0], "kind": ["p", "n"]})
    for target in (2, -1):
        assert rows(Frame(frame, target, inputs=0)).column_names("inputs") == ("a",)


def test_a_column_that_is_a_series_with_a_number_is_known_as_another_one(numbered: pd.DataFrame) -> None:
    data = Arrays(inputs=numbered[[0, 1]], targets=numbered[3])
    assert data.tables["inputs"].others == ("3",)  # so that frames to predict from may have it


@pytest.mark.parametrize("setting", [
    {"target": None}, {"target": 1.5}, {"target": 7}, {"target": []}, {"target": [3, None]}, {"encode": 9},
    {"weights": [0, 1]}, {"group": 1.5}, {"inputs": 4.5}, {"inputs": ()}, {"inputs": -9},
])  # fmt: skip
def test_columns_that_cannot_be_given_are_refused_in_a_sentence(numbered: pd.DataFrame, setting: Any) -> None:
    with pytest.raises(SigmaError, match=r"^[Ff]rame.*: .*\. ?.*") as refused:
        rows(Frame(numbered, **{"target": 3, **setting}))
    assert isinstance(refused.value, SigmaConfigError | SigmaDataError)


@pytest.mark.parametrize("frame", [5, [[1, 2]], None, np.zeros((2, 2))])
def test_what_is_no_frame_is_refused_with_its_type(frame: Any) -> None:
    with pytest.raises(SigmaDataError, match=rf"frame: must be a data frame, .*\(got {type(frame).__name__}\)"):
        rows(Frame(frame, "a"))


def test_a_number_in_a_file_that_is_the_name_of_another_column_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path, "1,2,3", "5,6,p", "7,8,n")
    with pytest.raises(SigmaDataError, match=r"number 2 is '3', and another column is called '2'. Write its name in"):
        rows(Csv(path, 2))
    with pytest.raises(SigmaDataError, match=r"another column is called '3'"):
        rows(Csv(path, 3))
    assert labels(rows(Csv(path, "3"))) == labels(rows(Csv(path, -1))) == ("n", "p")


# -- the order of categories -------------------------------------------------------------------------------------------
def ordered(library: str, values: list[Any], order: list[Any]) -> Any:
    """Return a table with an ordered column among the inputs and as the target."""
    if library == "pyarrow":
        codes = pa.array([order.index(value) for value in values])
        column: Any = pa.DictionaryArray.from_arrays(codes, pa.array(order), ordered=True)
        return pa.table({"size": column, "y": column})
    if library == "polars":
        column = pl.Series(values, dtype=pl.Enum(order))
        return pl.DataFrame({"size": column, "y": column})
    column = pd.Categorical(values, order, ordered=True)
    return pd.DataFrame({"size": column, "y": column})


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_ordered_categories_keep_their_order_as_classes_and_among_the_inputs(library: str) -> None:
    found = rows(Frame(ordered(library, ["high", "low", "mid", "low"], [*SIZES]), "y"))
    assert labels(found) == SIZES
    assert found.encode("targets", 3).arrays["targets"].tolist() == [2, 0, 1, 0]
    assert found.column_names("inputs") == ("size = low", "size = mid", "size = high")
    assert found.arrays["inputs"].tolist() == [[0, 0, 1], [1, 0, 0], [0, 1, 0], [1, 0, 0]]


def test_ordered_categories_without_a_row_are_no_classes() -> None:
    assert labels(rows(Frame(ordered("pandas", ["high", "low"], [*SIZES]), "y"))) == ("low", "high")


def test_a_column_or_a_frame_of_labels_keeps_the_order_as_well() -> None:
    frame = ordered("pandas", ["high", "low", "mid"], [*SIZES])
    for targets in (frame["y"], frame[["y"]]):
        assert labels(Arrays(inputs=frame[["size"]], targets=targets)) == SIZES


def test_ordered_integers_are_classes_in_that_order() -> None:
    assert labels(rows(Frame(ordered("pandas", [30, 10, 20], [30, 10, 20]), "y"))) == (30, 10, 20)


def test_a_categorical_column_without_an_order_is_sorted_by_name() -> None:
    frame = pd.DataFrame({"a": [1.0, 2.0, 3.0], "y": pd.Categorical([*SIZES], [*SIZES])})
    assert labels(rows(Frame(frame, "y"))) == ("high", "low", "mid")


# -- numbers and words as targets --------------------------------------------------------------------------------------
def test_a_word_among_several_targets_is_refused_by_column_and_row(tmp_path: Path) -> None:
    frame = pd.DataFrame({"a": [1.0, 2.0, 3.0], "k": ["x", "p", "n"]})
    remedy = "is not a number. Correct it, or make it the only `target`, whose words are classes"
    with pytest.raises(SigmaDataError, match=rf"column 'k', row 0: the target 'x' {remedy}"):
        rows(Frame(frame.assign(t=1.0), ["t", "k"]))
    with pytest.raises(SigmaDataError, match=rf"column 'k', row 1: the target 'p' {remedy}"):
        rows(Frame(frame.assign(t=[None, 1.0, 2.0]), ["t", "k"], missing="drop"))
    frame.assign(t=1.0).to_csv(tmp_path / "t.csv", index=False)
    with pytest.raises(SigmaDataError, match=rf"t\.csv:2: column 'k': the target 'x' {remedy}"):
        rows(Csv(tmp_path / "t.csv", ("t", "k")))


@pytest.mark.parametrize(("value", "said"), [
    (2**70, "1180591620717411303424, and floats cannot tell"), (10**5000, "an integer of more than 40 digits"),
    (Decimal("sNaN"), "cannot convert signaling NaN"),
], ids=["2**70", "of 5000 digits", "signaling"])  # fmt: skip
def test_numbers_that_floats_cannot_hold_are_refused_by_row(value: Any, said: str) -> None:
    with pytest.raises(SigmaDataError, match=rf"column 'a': row 1 holds .*{said}|row 1 holds {said}"):
        rows(Frame(pd.DataFrame({"a": [1.0, value], "y": ["p", "n"]}, dtype=object), "y"))


# -- booleans ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("spelled", [("True", "False"), ("true", "false"), ("TRUE", "FALSE")])
def test_booleans_in_a_file_are_those_of_a_frame(tmp_path: Path, spelled: tuple[str, str]) -> None:
    frame = pd.DataFrame({"a": [True, False, False], "b": [1.5, 2.5, 3.5], "y": [False, True, False]})
    text = frame.astype(str).replace({"True": spelled[0], "False": spelled[1]})
    text.to_csv(tmp_path / "t.csv", index=False)
    here, there = rows(Frame(frame, "y")), rows(Csv(tmp_path / "t.csv", "y"))
    assert here.arrays["inputs"].tolist() == there.arrays["inputs"].tolist() == [[1, 1.5], [0, 2.5], [0, 3.5]]
    for data in (here, there):
        assert labels(data) == (False, True)
        assert data.encode("targets", 0).arrays["targets"].tolist() == [0, 1, 0]
        assert data.encode("targets", None).arrays["targets"].tolist() == [[0], [1], [0]]
    several = rows(Csv(tmp_path / "t.csv", ("y", "b"))).arrays["targets"]
    assert several.tolist() == [[0, 1.5], [1, 2.5], [0, 3.5]]


def test_missing_booleans_are_missing_values(tmp_path: Path) -> None:
    path = write(tmp_path, "a,y", "NA,true", "false,NA", "true,false", ",true")
    found = rows(Csv(path, "y", missing="drop"))
    assert found.arrays["inputs"].tolist() == [[1]]
    assert labels(found) == (False, True)
    with pytest.raises(SigmaDataError, match=r"table\.csv:2: column 'a': a value is missing"):
        rows(Csv(write(tmp_path, "a,y", "NA,true", "false,true"), "y"))
    path = write(tmp_path, "a,y", "true,true", "false,NA")
    with pytest.raises(SigmaDataError, match=r"table\.csv:3: the target: a value is missing"):
        rows(Csv(path, "y"))


def test_booleans_among_other_values_are_refused_by_line(tmp_path: Path) -> None:
    path = write(tmp_path, "a,y", "true,p", "3.5,n")
    with pytest.raises(
        SigmaDataError, match=r"table\.csv:3: column 'a': '3.5' is neither true nor false. Make .* alike"
    ):
        rows(Csv(path, "y"))
    assert labels(rows(Csv(write(tmp_path, "a,y", "1,true", "2,maybe"), "y"))) == ("maybe", "true")


def test_samples_to_predict_from_may_be_booleans(tmp_path: Path) -> None:
    data = Csv(write(tmp_path, "a,b,y", "true,1,p", "false,2,n"), "y")
    (tmp_path / "new.csv").write_text("false,3\ntrue,4\n")
    assert data.samples(tmp_path / "new.csv", (2,)).tolist() == [[0, 3], [1, 4]]


# -- integers that floats merge ----------------------------------------------------------------------------------------
def test_integers_beyond_53_bits_among_the_inputs_are_refused_by_name(tmp_path: Path) -> None:
    frame = pd.DataFrame({"key": [1, -BEYOND], "a": [1.0, 2.0], "y": ["p", "n"]})
    wanted = (
        rf"column 'key': row 1 holds -{BEYOND}, and floats cannot tell integers beyond 2\*\*53 apart. Give the column"
    )
    for data in (frame, pl.DataFrame(frame), pa.Table.from_pandas(frame)):
        with pytest.raises(SigmaDataError, match=wanted):
            rows(Frame(data, "y")).arrays["inputs"]
    frame.to_csv(tmp_path / "t.csv", index=False)
    with pytest.raises(SigmaDataError, match=rf"t\.csv:3: column 'key': floats cannot tell -{BEYOND} from its neigh"):
        rows(Csv(tmp_path / "t.csv", "y"))


def test_the_last_integer_that_floats_hold_and_greater_floats_are_read(tmp_path: Path) -> None:
    path = write(tmp_path, "a,b,y", f"{2**53},1e20,p", f"-{2**53},123456789012345678.0,n")
    for data in (Csv(path, "y"), Frame(pd.read_csv(path), "y")):
        assert rows(data).arrays["inputs"].astype(np.float32).tolist() == np.float32(
            [[2**53, 1e20], [-(2**53), 123456789012345678.0]]
        ).tolist()  # fmt: skip


def test_such_integers_are_classes_and_categories_but_no_numeric_targets() -> None:
    frame = pd.DataFrame({"key": [BEYOND, BEYOND + 1, BEYOND], "y": [BEYOND + 2, BEYOND + 3, BEYOND]})
    found = rows(Frame(frame, "y", encode="key"))
    assert labels(found) == (BEYOND, BEYOND + 2, BEYOND + 3)
    assert found.arrays["inputs"].tolist() == [[1, 0], [0, 1], [1, 0]]
    for refused in (
        lambda: found.encode("targets", None),
        lambda: rows(Frame(frame, "y", encode="key", targets="numbers")),
    ):
        with pytest.raises(SigmaDataError, match=rf"row 0 holds {BEYOND + 2}, and .* Give such numbers as floats"):
            refused()


# -- texts that Python takes for numbers, and blanks -------------------------------------------------------------------
@pytest.mark.parametrize("cell", ["1_000", "\uff11\uff12", "\u0661"])
def test_other_digits_and_underscores_are_texts(tmp_path: Path, cell: str) -> None:
    with pytest.raises(SigmaDataError, match=rf"table\.csv:3: column 'a': '{cell}' is not a number"):
        rows(Csv(write(tmp_path, "a,y", "1,p", f"{cell},n"), "y"))
    assert labels(rows(Csv(write(tmp_path, "a,y", "1,2000", f"2,{cell}"), "y"))) == ("2000", cell)
    with pytest.raises(SigmaDataError, match=rf"the target '{cell}' is not a number"):
        rows(Csv(write(tmp_path, "a,y", "1,2000", f"2,{cell}"), "y", targets="numbers"))


def test_an_underscore_between_thousands_is_named_as_the_setting(tmp_path: Path) -> None:
    path = write(tmp_path, "a,y", "1_000,p", "2_500,n")
    with pytest.raises(SigmaDataError, match=r"If _ stands between thousands, set thousands = '_'\."):
        rows(Csv(path, "y"))
    assert rows(Csv(path, "y", thousands="_")).arrays["inputs"].tolist() == [[1000], [2500]]


def test_labels_that_differ_by_blanks_are_refused_with_both_places(tmp_path: Path) -> None:
    path = write(tmp_path, "a,y", "v,p", "w,n", "v,p ")
    with pytest.raises(
        SigmaDataError, match=r"the target: 'p' in line 2 and 'p ' in line 4 differ only by blanks. Make"
    ):
        rows(Csv(path, "y", encode="a"))
    path = write(tmp_path, "a,y", "v,p", '"",n', "w,p", " w,n")
    with pytest.raises(SigmaDataError, match=r"column 'a': 'w' in line 4 and ' w' in line 5 differ only by blanks"):
        rows(Csv(path, "y", encode="a", missing="drop"))
    frame = pd.DataFrame({"a": ["v", "v ", "w"], "y": ["p", "n", " n"]})
    with pytest.raises(
        SigmaDataError, match=r"frame: column 'a': 'v' in row 0 and 'v ' in row 1 differ only by blanks"
    ):
        rows(Frame(frame, "y", encode="a"))
    with pytest.raises(SigmaDataError, match=r"the target: 'n' in row 1 and ' n' in row 2 differ only by blanks"):
        rows(Frame(frame.assign(a=1.0), "y")).encode("targets", 0)


def test_blanks_that_all_labels_have_alike_are_cut(tmp_path: Path) -> None:
    path = write(tmp_path, "a, y", "1, p", "2, n", "3, p")
    assert labels(rows(Csv(path, "y"))) == ("n", "p")
