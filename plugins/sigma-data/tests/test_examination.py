from __future__ import annotations

from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sigma_data import Arrays, Csv, Digits, Frame, Iris, Wdbc, split
from sigma_data.examination import FEW, HEAD, ROWS, WIDE, examine_classes, examine_columns

RANDOM = np.random.default_rng(0)
NOISE = RANDOM.normal(size=ROWS)
COUNT = np.arange(float(ROWS))


def odd(categories: dict[str, int] | None = None, rows: int = ROWS, in_time: bool = False, **columns: Any) -> list[str]:
    """Return the findings on some columns beside one of noise, without their remedies."""
    return [*examine_columns({"noise": NOISE, **columns}, categories or {}, rows, "Drop {}.".format, in_time)]


# -- columns -----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", ["", " ", "Unnamed: 0", "Unnamed: 0.1", "__index_level_0__"])
def test_a_column_without_a_name_is_named_as_a_saved_index_whatever_it_holds(name: str) -> None:
    (said,) = odd(**{name: NOISE})
    assert said.startswith(f"column {name!r} has no name, as an index that was saved with a table. ")
    assert said.endswith(f"Drop {name}.")


@pytest.mark.parametrize("values", [COUNT, COUNT + 7, 3 * COUNT - 99, np.insert(COUNT, 20, np.nan)])
def test_integers_that_increase_with_every_row_are_an_index(values: np.ndarray) -> None:
    (said,) = odd(row=values)
    assert said.startswith("column 'row' counts the rows up, as an index does. ")
    assert said.endswith("Drop row.")


@pytest.mark.parametrize("values", [
    COUNT[:-1], NOISE, np.sort(NOISE), COUNT / 10, np.repeat(COUNT[:25], 2), np.where(COUNT == 20, 5, COUNT),
])  # fmt: skip
def test_few_rows_fractions_and_repeated_integers_are_no_index(values: np.ndarray) -> None:
    assert odd(row=values) == []


@pytest.mark.parametrize("name", ["t", "time", "Timestamp", "date", "year", "WeekOfYear", "elapsed_seconds"])
def test_time_may_count_up(name: str) -> None:
    assert odd(**{name: COUNT}) == []


def test_rows_in_the_order_of_time_may_be_counted() -> None:
    assert odd(n=COUNT, in_time=True) == []


def test_a_table_of_one_column_is_not_blamed_for_it() -> None:
    for name in ("x", "Unnamed: 0"):
        assert examine_columns({name: COUNT}, {}, ROWS, str) == ()


def test_a_shuffled_index_and_scattered_identifiers_are_identifiers() -> None:
    shuffled, scattered = RANDOM.permutation(COUNT), RANDOM.permutation(COUNT) * 1009 + 10**6
    for name, values in {"number": shuffled, "PassengerId": scattered, "user_id": scattered, "ID": scattered}.items():
        (said,) = odd(**{name: values})
        assert said.startswith(f"column {name!r} has another integer in every row, as an identifier does. ")


@pytest.mark.parametrize("name", ["price", "paid", "grid", "humid", "idle"])
def test_scattered_integers_that_do_not_call_themselves_identifiers_are_measurements(name: str) -> None:
    assert odd(**{name: RANDOM.permutation(COUNT) * 1009}) == []


def test_an_identifier_that_occurs_twice_is_none() -> None:
    values = RANDOM.permutation(COUNT)
    assert odd(user_id=np.where(values == 3, 4, values)) == []


def test_a_category_for_almost_every_row_is_a_name() -> None:
    assert odd({"name": ROWS - 4})[0].startswith("column 'name' has almost as many categories as there are rows, as a")
    assert odd({"colour": ROWS - 10}) == odd({"colour": 20}, rows=21) == []


def test_constants_are_told_in_one_sentence() -> None:
    gaps = np.where(COUNT < 9, np.nan, 2.5)
    said = "have one value in all rows, from which nothing can be learned."
    assert odd({"k": 1}, a=np.zeros(ROWS), b=gaps) == [f"columns 'a', 'b', 'k' {said}"]
    assert odd(a=np.zeros(ROWS)) == [f"column 'a' {said.replace('have', 'has')}"]
    assert odd(a=np.full(ROWS, np.nan)) == []
    late = np.append(np.zeros(HEAD), 1.0)
    assert odd(a=late) == []


def test_wide_tables_such_as_pixels_may_have_constant_columns() -> None:
    assert odd(**{f"pixel{i}": np.zeros(ROWS) for i in range(WIDE)}) == []


# -- classes -----------------------------------------------------------------------------------------------------------
def test_a_class_without_rows_is_named_with_its_split_and_what_to_do() -> None:
    training, validation = np.array([0, 0, 0, 1, 1, 2] * 3), np.array([0, 1, 0, 1])
    assert examine_classes({"training": training, "validation": validation}, ("a", "b", "c")) == (
        "class 'c' has no row in the split 'validation': nothing there measures such rows. "
        "Set split_by = 'stratified', or give it more rows.",
    )
    (said,) = examine_classes({"training": validation, "validation": training}, ())
    assert said.startswith(
        "class 2 has no row in the split 'training': nothing is learned about such rows. Set split_by"
    )


def test_what_no_division_can_give_each_class_is_said() -> None:
    many, few = np.arange(30) % 10, np.array([0, 1, 2])
    (said,) = examine_classes({"training": many, "validation": few}, ())
    assert said.endswith("Give it more than 3 rows, as there are 10 classes.")
    (said,) = examine_classes({"training": np.append(many % 3, 3), "validation": few}, ())
    assert said.endswith("There are fewer such rows than splits: add some, or leave them all out.")


def test_rows_without_a_class_toys_and_a_single_split_are_left_alone() -> None:
    rows = np.arange(FEW) % 3
    assert examine_classes({"training": np.append(rows, -100), "validation": rows}, ()) == ()
    assert examine_classes({"training": rows}, ()) == ()
    assert examine_classes({"training": rows[: FEW - 4], "validation": rows[:2]}, ()) == ()


# -- data sets ---------------------------------------------------------------------------------------------------------
def findings(data: Any) -> list[str]:
    """Return the findings on a data set for a classification cost."""
    encoded = {name: rows.encode("targets", 0) for name, rows in data.items()}
    return [*encoded.pop("training").findings(["targets"], encoded)]


def test_a_saved_index_in_a_file_or_a_frame_is_found_and_excluded(tmp_path: Path) -> None:
    columns = {"": np.arange(60), "a": RANDOM.normal(size=60), "y": np.array(["u", "v"] * 30)}
    lines = (",".join(map(str, row)) for row in zip(*columns.values(), strict=True))
    (tmp_path / "t.csv").write_text("\n".join([",a,y", *lines]) + "\n")
    for data, remedy in (
        (Csv(tmp_path / "t.csv", "y"), "Set exclude = ['']."),
        (Frame(columns, "y", split={"training": 0.8, "validation": 0.2}), "Set exclude=['']."),
    ):
        (said,) = findings(data)
        assert said.startswith("column '' has no name")
        assert said.endswith(remedy)
    for data in (
        Csv(tmp_path / "t.csv", "y", exclude=""),
        Csv(tmp_path / "t.csv", -1, exclude=(0,)),
        Frame(columns, "y", exclude=0),
    ):
        assert findings(data) == []
        assert data["training"].sections["inputs"].shape == (1,)


def test_columns_of_a_file_without_a_header_are_excluded_by_number(tmp_path: Path) -> None:
    text = "".join(f"{i},{value:.3f},{'uv'[i % 2]}\n" for i, value in enumerate(NOISE))
    (tmp_path / "t.csv").write_text(text)
    (said,) = findings(Csv(tmp_path / "t.csv", 2, header=False))
    assert said.endswith("Set exclude = [0].")
    data = Csv(tmp_path / "t.csv", 2, header=False, exclude=0)
    assert findings(data) == []
    assert np.allclose(data.all_rows()[0].arrays["inputs"][:, 0], NOISE, atol=5.1e-4)
    assert data.samples(tmp_path / "t.csv", (1,)).shape == (ROWS, 1)


def test_an_excluded_column_may_hold_words_and_stay_in_samples(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("name,a,y\nann,1,p\nbob,2,n\n")
    data = Csv(tmp_path / "t.csv", "y", exclude="name")
    assert data.all_rows()[0].column_names("inputs") == ("a",)
    assert data.samples(tmp_path / "t.csv", (1,)).tolist() == [[1], [2]]
    assert data.samples(tmp_path / "t.csv", (1,), learned=data.learned).tolist() == [[1], [2]]


def test_rows_of_any_data_set_in_one_block_are_examined_for_classes() -> None:
    labels = np.repeat(np.arange(20), 4)
    data = split(Arrays(inputs=np.zeros((80, 1)), targets=labels), {"training": 0.8, "validation": 0.2}, "stratified")
    (said,) = findings(data)
    assert said.endswith("Give it more than 16 rows, as there are 20 classes.")
    assert data["training"].findings([], {"validation": data["validation"]}) == ()


@pytest.mark.parametrize("name", ["iris", "wdbc", "digits"])
def test_good_tables_are_left_alone(name: str) -> None:
    shipped = {"iris": Iris, "wdbc": Wdbc, "digits": Digits}[name]()
    assert findings(shipped) == []
    assert findings(Csv(str(files("sigma_data") / "files" / f"{name}.csv.gz"), "target")) == []
