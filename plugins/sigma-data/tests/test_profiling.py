"""Profiles of tables: kinds of columns with reasons, figures, leaks, groups."""

from __future__ import annotations

import json
from datetime import date, timedelta

import numpy as np
import pyarrow as pa
import pytest

from sigma_data.profiling.drafting import TableDraft, choose_batch_size, choose_task, choose_width, quote
from sigma_data.profiling.kinds import infer_kind
from sigma_data.profiling.leaks import find_groups, find_leaks
from sigma_data.profiling.profile import count_distinct, count_duplicates, draw_bars, profile_table
from sigma_data.tables import open_table
from sigma_kernel import SigmaDataError

DAYS = [date(2024, 1, 1) + timedelta(days=i) for i in range(60)]
SENTENCES = [f"the film number {i} was far too long for me" for i in range(60)]
SHUFFLED = np.random.default_rng(0).permutation(60)


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([1.5, 2.5, None] * 20, "number"),
        ([*range(3)] * 20, "number"),
        ([True, False, None] * 20, "boolean"),
        (["red", "green", None] * 20, "category"),
        (DAYS, "date"),
        (SENTENCES, "text"),
        ([f"A{i}" for i in range(60)], "identifier"),
        ([*range(100, 160)], "identifier"),
        ((SHUFFLED + 7).tolist(), "identifier"),
        ([4] * 60, "constant"),
        ([None] * 60, "constant"),
        ([[1, 2]] * 60, "other"),
        (["1", "2", "x", "4"] * 15, "category"),
        ([str(i) for i in range(59)] + ["unknown"], "other"),
    ],
)
def test_a_column_has_the_kind_of_its_cells(values: list[object], kind: str) -> None:
    column = pa.chunked_array([pa.array(values)])
    assert infer_kind("column", column).kind == infer_kind("column", column, is_reason_read=False).kind == kind


@pytest.mark.parametrize(
    ("name", "values", "kind"),
    [
        ("customer_id", (SHUFFLED * 1000).tolist(), "identifier"),
        ("amount", (SHUFFLED * 1000).tolist(), "number"),
        ("year", [*range(1900, 1960)], "number"),
        ("Unnamed: 0", [*range(30)] * 2, "identifier"),
    ],
)
def test_a_name_tells_identifiers_from_numbers(name: str, values: list[int], kind: str) -> None:
    assert infer_kind(name, pa.array(values)).kind == kind


@pytest.mark.parametrize("infinite", [[float("inf")], [float("inf"), float("-inf"), None]])
def test_infinite_cells_are_counted_and_drafted_as_missing(infinite: list[float | None]) -> None:
    values = pa.array([*infinite, *np.linspace(0, 1, 60)])
    table = pa.table({"a": values, "b": [1.0, 2.0] * (len(values) // 2) + [1.0] * (len(values) % 2)})
    profile = profile_table(table, "t")
    count = sum(value is not None for value in infinite)
    assert (profile["a"].kind, profile["a"].inferred.infinite) == ("number", count)
    assert f"{count} cell{'s are' if count > 1 else ' is'} infinite" in profile["a"].inferred.unsure
    assert profile["a"].encoder == {"type": "number", "indicator": True, "infinite": "missing"}
    assert profile["a"].figures["maximum"] == 1
    draft = TableDraft("t.csv", "t", profile, choose_task(profile, "b"))
    assert 'a = { type = "number", indicator = true, infinite = "missing" }' in draft.text
    assert any("column 'a'" in note and "infinite" in note for note in draft.notes)
    with pytest.raises(SigmaDataError, match="t: column 'a' cannot be predicted: .* infinite. Correct the"):
        choose_task(profile, "a")


def test_a_column_without_a_finite_number_says_nothing() -> None:
    inferred = infer_kind("a", pa.array([float("inf"), float("-inf"), None] * 9))
    assert (inferred.kind, inferred.reason) == ("constant", "every number is infinite")


def test_infinite_cells_hide_no_leak() -> None:
    values = np.linspace(0, 1, 60)
    table = pa.table({"a": np.where(np.arange(60) == 3, np.inf, values), "b": values * 2})
    assert [*find_leaks(table, "b", classes=False, inputs=("a",))] == ["a"]


@pytest.mark.parametrize(
    "parts", [[[], [1.0, 2.5]], [[None], [0.5, None]], [[0.5], [0.5]], [[2.0, 3.0], [np.inf, 0.25]]]
)
def test_kinds_of_reals_are_the_same_if_nobody_reads_the_reason(parts: list[list[float]]) -> None:
    column = pa.chunked_array([pa.array(part, pa.float64()) for part in parts])
    for cells in (column, pa.chunked_array(column.chunks[::-1]), column.combine_chunks()):
        assert infer_kind("x", cells).kind == infer_kind("x", cells, is_reason_read=False).kind


def test_what_is_unsure_says_which_line_to_change() -> None:
    inferred = infer_kind("class", pa.array([1, 2, 3] * 20))
    assert inferred.kind == "number"
    assert 'class = "one_hot"' in inferred.unsure
    mixed = infer_kind("price", pa.array([*map(str, range(59)), "on request"]))
    assert "59 of 60 cells are numbers" in mixed.reason
    assert "'on request'" in mixed.reason
    assert "leave these cells blank" in mixed.unsure


def make_table() -> pa.Table:
    numbers = np.arange(60.0)
    return pa.table(
        {
            "id": [f"r{i}" for i in range(60)],
            "size": pa.array([None if i == 3 else i / 2 for i in numbers]),
            "colour": ["red", "green", "blue"] * 20,
            "patient": [f"p{i % 7}" for i in range(60)],
            "twice": (numbers**2 * 2).tolist(),
            "price": (numbers**2).tolist(),
            "sold": [i >= 30 for i in range(60)],
        }
    )


def test_a_profile_has_figures_counts_and_a_histogram() -> None:
    profile = profile_table(make_table(), "houses.csv")
    size, colour = profile["size"], profile["colour"]
    present = np.array([i / 2 for i in range(60) if i != 3])
    assert (profile.rows, size.missing, size.distinct) == (60, 1, 59)
    assert size.figures == {
        "minimum": 0.0, "median": pytest.approx(np.median(present)), "maximum": 29.5,
        "mean": pytest.approx(present.mean()), "deviation": pytest.approx(present.std()),
    }  # fmt: skip
    assert sum(size.histogram) == 59
    assert colour.counts == (("blue", 20), ("green", 20), ("red", 20))
    assert len(colour.chart) == 3
    rows = [*profile.table()]
    assert rows[0][:2] == ["column", "kind"]
    assert rows[2][:3] == ["size", "number", "1.7 %"]
    document = json.loads(json.dumps(profile.to_json()))
    assert document["columns"][2]["kind"] == "category"
    assert document["columns"][2]["reason"] == "3 words"


def test_samples_are_evenly_spaced_rows_as_texts() -> None:
    table = make_table()
    samples = profile_table(table, "t").samples
    assert [row[0] for row in samples] == ["r0", "r8", "r16", "r25", "r33", "r42", "r50", "r59"]
    assert samples[0][1:] == ("0", "red", "p0", "0", "0", "False")
    assert [row[0] for row in profile_table(table.slice(2, 3), "t").samples] == ["r2", "r3", "r4"]
    assert profile_table(table.slice(3, 1), "t").samples[0][:2] == ("r3", ""), "a missing cell is empty"
    assert profile_table(table.slice(0, 0), "t").samples == ()


@pytest.mark.parametrize("kind", [pa.date32(), pa.timestamp("ms", "UTC"), pa.timestamp("ns")])
def test_dates_have_a_histogram_over_time(kind: pa.DataType) -> None:
    days = [date(2024, 1, 1)] * 5 + [date(2024, 1, 2)] + [date(2024, 12, 31)] * 3 + [None]
    column = profile_table(pa.table({"day": pa.array(days, pa.date32()).cast(kind)}), "t")["day"]
    assert column.kind == "date"
    assert column.histogram == (6, *[0] * 10, 3)


@pytest.mark.parametrize(
    ("values", "count"),
    [
        ([], 0),
        ([None], 0),
        ([1.5, None, 1.5, 2.5], 2),
        ([0.0, -0.0, float("nan"), float("nan")], 2),
        (["a", "b", "a"], 2),
    ],
)
def test_equal_values_are_counted_once(values: list[object], count: int) -> None:
    column = pa.array(values) if values and isinstance(values[0], str) else pa.array(values, pa.float64())
    assert count_distinct(column) == count_distinct(pa.chunked_array([column, column])) == count


def test_equal_rows_are_counted_except_for_columns_of_lists() -> None:
    table = pa.table({"a": [1, 1, None, None, 2], "b": ["x", "x", None, None, "x"]})
    assert count_duplicates(table) == 2
    assert count_duplicates(pa.table({"a": [[1], [1]]})) == 0
    assert count_duplicates(table.slice(0, 0)) == 0


def test_bars_grow_with_their_numbers() -> None:
    assert draw_bars([0, 1, 4, 8]) == " ▁▄█"
    assert draw_bars([0, 0]) == "  "


def test_columns_that_give_the_target_away_are_found() -> None:
    table = make_table()
    assert [*find_leaks(table, "price", False, ("size", "colour", "twice"))] == ["twice"]
    assert [*find_leaks(table, "sold", True, ("size", "colour", "patient"))] == ["size"]
    words = table.append_column("state", pa.array(["open", "closed"] * 30)).append_column("y", pa.array([0, 1] * 30))
    assert [*find_leaks(words, "y", True, ("state", "colour"))] == ["state"]
    assert not find_leaks(table.slice(0, 10), "price", False, ("twice",))


def test_a_column_of_names_may_name_groups() -> None:
    assert [column.name for column in find_groups(profile_table(make_table(), "t"), "price")] == ["patient"]


@pytest.mark.parametrize(
    ("values", "classes"),
    [(["a", "b"] * 30, 2), ([True, False] * 30, 2), ([0, 1, 2] * 20, 3), ([1.5, 2.5, 9] * 20, 0), ([0, 7] * 30, 0)],
)
def test_the_target_decides_the_task(values: list[object], classes: int) -> None:
    assert choose_task(profile_table(pa.table({"y": values}), "t"), "y").classes == classes


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("prise", "there is no column 'prise' to predict. Did you mean 'price'?"),
        ("id", "column 'id' cannot be predicted: 60 words in 60 cells, as names are. Choose another"),
    ],
)
def test_a_target_that_cannot_be_predicted_is_refused(target: str, message: str) -> None:
    with pytest.raises(SigmaDataError, match=message):
        choose_task(profile_table(make_table(), "houses.csv"), target)


def test_sizes_grow_with_the_rows() -> None:
    assert [choose_width(rows) for rows in (100, 1_000, 10_000, 10**6)] == [16, 32, 64, 256]
    assert [choose_batch_size(rows) for rows in (5, 150, 1_000, 10**7)] == [8, 8, 32, 512]


def test_a_draft_says_why_of_each_column() -> None:
    table = make_table()
    profile = profile_table(table, "houses.csv")
    leaks = find_leaks(table, "price", False, ("size", "twice"))
    groups = find_groups(profile, "price")
    draft = TableDraft("houses.csv", "houses", profile, choose_task(profile, "price"), leaks, groups)
    lines = {line.split(" = ")[0]: line for line in draft.text.splitlines()}
    assert lines["twice"].startswith('twice = "exclude"')
    assert "its correlation with the target is 1.0000" in lines["twice"]
    assert lines["id"].startswith('id = "exclude"')
    assert lines["colour"].startswith('colour = "one_hot"')
    assert lines["size"].startswith('size = { type = "number", indicator = true }')
    assert any("'patient' may name groups" in note for note in draft.notes)


def test_texts_are_quoted_for_toml() -> None:
    import tomllib

    for text in ('a "b" \\ c', "tab\there", "ünï"):
        assert tomllib.loads(f"x = {quote(text)}")["x"] == text


# -- what files from everywhere hold -----------------------------------------------------------------------------------
def test_dates_with_the_day_first_are_dates():
    column = pa.array(["31.12.2023", "1.2.2024", None, " 15.06.2023 "])
    inferred = infer_kind("day", column)
    assert (inferred.kind, inferred.reason) == ("date", "3 dates, day first, from 2023-06-15  to 2024-02-01")
    assert infer_kind("t", pa.array(["31.12.2023 14:30", "01.02.2024 08:15:30"])).kind == "date"
    for other in (["31.12.2023", "13.13.2023"], ["32.01.2024", "1.1.2024"], ["1.2.24", "1.2.25"], ["1.2.2024.5", "1"]):
        assert infer_kind("day", pa.array(other)).kind != "date"


@pytest.mark.parametrize("mark", ["-", "--", "\u2013", "\u2014", "?", "N/A", "null"])
@pytest.mark.parametrize("numbers", ["1{i}", "1.{i}", '"1,20{i}"'])
def test_marks_of_missing_values_among_numbers_are_missing(tmp_path, mark, numbers):
    rows = [f"{mark if i % 4 == 0 else numbers.format(i=i)},{'ab'[i % 2]}" for i in range(10)]
    (tmp_path / "t.csv").write_text("\n".join(["size,kind", *rows]) + "\n")
    column = open_table(tmp_path / "t.csv").read()["size"]
    assert (infer_kind("size", column).kind, column.null_count) == ("number", 3)


def test_marks_of_missing_values_among_words_are_categories_and_said_to_be():
    inferred = infer_kind("city", pa.array(["Rome", "Oslo", "-", "N/A", "Rome", "-"]))
    assert inferred.kind == "category"
    assert inferred.unsure.startswith("'-', 'N/A' are categories of their own; leave these cells blank")
    assert infer_kind("city", pa.array(["Rome", "Oslo", "Rome"])).unsure == ""


def test_names_of_columns_are_one_line_of_a_table_each():
    profile = profile_table(pa.table({"two\r\nlines": [1.5, 2.5], "n" * 100: [1, 2]}), "t")
    assert [row[0] for row in profile.table()] == ["column", "two lines", "n" * 59 + "…"]


@pytest.mark.parametrize(
    "values",
    [
        [1_700_000_000_000_000_000 + 7 * i for i in range(200)],
        [1e17 + 16 * i for i in range(200)],
        [1e308, -1e308, 1e308],
        [float(np.finfo(np.float64).max), 1.0, 2.0],
    ],
)
def test_large_numbers_have_finite_figures_and_a_histogram(values: list[float]) -> None:
    column = profile_table(pa.table({"number": values}), "t")["number"]
    assert all(np.isfinite(figure) for figure in column.figures.values())
    assert sum(column.histogram) == len(values)
    json.dumps(column.to_json(), allow_nan=False)


def test_infinite_numbers_are_not_counted_where_nobody_reads_it(monkeypatch):
    monkeypatch.setattr("sigma_data.profiling.kinds.count_infinite", None)
    for column in (pa.array([1.5, 2.0, np.inf]), pa.chunked_array([[1.5, None, 2.0], [np.inf]])):
        assert infer_kind("x", column, is_reason_read=False).kind == "number"
    for column in (pa.array([], pa.float64()), pa.chunked_array([[], []], pa.float64()), pa.array([None, None])):
        assert infer_kind("x", column, is_reason_read=False).kind == "constant"
