from __future__ import annotations

import csv
import gzip
import io
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, strategies as st

from sigma_data import Compressed, CsvReader
from sigma_data.readers import csv as module
from sigma_kernel import SigmaConfigError, SigmaDataError

NUMBER = st.floats(allow_nan=False, allow_infinity=False)
WORD = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=8)
FLOWERS = b"length,width,species\n5.1,3.5,setosa\n4.9,3,virginica\n"


def table(rows: list[list[object]], **settings) -> bytes:
    text = io.StringIO()
    csv.writer(text, **settings).writerows(rows)
    return text.getvalue().encode()


@given(st.lists(st.tuples(NUMBER, WORD, NUMBER), min_size=1, max_size=30), st.sampled_from(["\n", "\r\n"]),
       st.sampled_from(",;\t|"), st.sampled_from([7, 1_000_000]))  # fmt: skip
def test_written_files_round_trip(held, rows, end, delimiter, cells):
    content = table([["a", "b", "c"], *rows], lineterminator=end, delimiter=delimiter, quoting=csv.QUOTE_NONNUMERIC)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "CELLS", cells)
        found = CsvReader(text=("b",), delimiter=delimiter, missing="nan").read(held(content))
    assert list(found) == ["a", "b", "c"]
    for i, name in enumerate(found):
        assert found[name].tolist() == [row[i] for row in rows]


def test_columns_are_chosen_by_name_or_number_in_any_order(held):
    assert list(CsvReader((1, "length")).read(held(FLOWERS))) == ["width", "length"]
    found = CsvReader(("species", 0), text=(-1,)).read(held(FLOWERS))
    assert {name: values.tolist() for name, values in found.items()} == {
        "species": ["setosa", "virginica"], "length": [5.1, 4.9],
    }  # fmt: skip


def test_a_table_without_a_header_has_numbered_columns(held):
    found = CsvReader(header=False).read(held(b"1,2\n3,4\n"))
    assert {name: values.tolist() for name, values in found.items()} == {"0": [1, 3], "1": [2, 4]}


def test_a_byte_order_mark_and_blank_lines_are_ignored(held):
    assert CsvReader().read(held(b"\xef\xbb\xbfa,b\n\n1,2\n\n"))["a"].tolist() == [1]


@pytest.mark.parametrize("gap", ["", " ", "?", "NA", "n/a", "NaN", "null", "None"])
def test_a_missing_value_is_an_error_or_becomes_nan(held, gap):
    content = f"a,b\n1,2\n\n3,{gap}\n".encode()
    with pytest.raises(SigmaDataError, match="held:4: column 'b': a value is missing. .* set missing = 'nan'"):
        CsvReader().read(held(content))
    np.testing.assert_array_equal(CsvReader(missing="nan").read(held(content))["b"], [2, np.nan])


def test_a_missing_word_is_an_error_or_stays_blank(held):
    with pytest.raises(SigmaDataError, match="held:3: column 'b': a value is missing"):
        CsvReader(text=("b",)).read(held(b"a,b\n1,x\n2, \n"))
    assert CsvReader(text=("b",), missing="nan").read(held(b"a,b\n1,NA\n2,\n"))["b"].tolist() == ["NA", ""]


@pytest.mark.parametrize("cell", ["inf", "-Infinity", "1e999"])
def test_a_non_finite_number_is_named(held, cell):
    with pytest.raises(SigmaDataError, match=f"held:3: column 'b': '{cell}' is not a finite number"):
        CsvReader().read(held(f"a,b\n1,2\n3,{cell}\n".encode()))


def test_a_word_among_numbers_is_reported_with_its_line(held):
    with pytest.raises(SigmaDataError, match="held:2: column 'species': 'setosa' is not a number. Correct it, name"):
        CsvReader().read(held(FLOWERS))


@pytest.mark.parametrize(("row", "found"), [("3", 1), ("3,4,5", 3), ("3,4,", 3)])
def test_a_ragged_row_is_named_with_its_line(held, row, found):
    with pytest.raises(SigmaDataError, match=f"held:3: {found} values instead of 2"):
        CsvReader().read(held(f"a,b\n1,2\n{row}\n5,6\n".encode()))


def test_lines_are_counted_as_in_an_editor_when_values_hold_line_ends(held):
    with pytest.raises(SigmaDataError, match="held:6: 1 values instead of 2"):
        CsvReader(text=("a",)).read(held(b'a,b\n"one\ntwo\nthree",2\nfour,5\nsix\n'))


def test_an_unknown_column_suggests_similar_names(held):
    with pytest.raises(SigmaDataError, match="held: there is no column 'lenght'. Did you mean 'length'?"):
        CsvReader(("lenght",)).read(held(FLOWERS))
    with pytest.raises(SigmaDataError, match="held: there is no column 3, only 0 to 2"):
        CsvReader((3,)).read(held(FLOWERS))
    with pytest.raises(SigmaDataError, match="no column 'x'. There are: length, width, species"):
        CsvReader(text=("x",)).read(held(FLOWERS))


def test_a_column_requested_twice_is_reported(held):
    with pytest.raises(SigmaDataError, match="column 'length' is named 2 times"):
        CsvReader(("length", 0)).read(held(FLOWERS))


def test_two_columns_of_the_same_name_are_reported(held):
    with pytest.raises(SigmaDataError, match="held:1: 2 columns are called 'a'"):
        CsvReader().read(held(b"a,b,a\n1,2,3\n"))


@pytest.mark.parametrize("content", [b"", b"\n\n", b"a,b\n"])
def test_an_empty_table_is_reported(held, content):
    with pytest.raises(SigmaDataError, match="held: (the file is empty|there is no row of values)"):
        CsvReader().read(held(content))


@pytest.mark.parametrize(
    "content", [b'a,b\n1,"2\n', b'a,b\n1,"2"3\n', b"a,b\n1," + b"2" * 200_000], ids=["open", "closed", "endless"]
)
def test_a_malformed_table_is_reported_with_its_line(held, content):
    with pytest.raises(SigmaDataError, match="held:2: is not a table"):
        CsvReader().read(held(content))


def test_undecodable_text_is_reported(held):
    with pytest.raises(SigmaDataError, match="held:1: .* not valid utf-8"):
        CsvReader().read(held(b"a,b\n1,\xff\n"))


def test_a_line_of_millions_of_commas_takes_little_memory(held):
    source = Compressed(held(gzip.compress(b"," * 50_000_000)))
    tracemalloc.start()
    try:
        with pytest.raises(SigmaDataError, match="held:1: the line has more than"):
            CsvReader().read(source)
        assert tracemalloc.get_traced_memory()[1] < 100_000_000
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("delimiter", [", ", "", "\n", "\r", '"'])
def test_a_delimiter_is_one_character_without_another_meaning(delimiter):
    with pytest.raises(SigmaConfigError, match="delimiter"):
        CsvReader(delimiter=delimiter)


@pytest.mark.parametrize(("settings", "remedy"), [
    ({"columns": ("length",)}, "set delimiter = ';'"),
    ({"columns": ("length",), "header": False}, "set delimiter = ';'"),
    ({"columns": (1,), "header": False}, "only 0 to 0. .*set delimiter = ';'"),
])  # fmt: skip
def test_another_delimiter_is_suggested_if_there_is_only_one_column(held, settings, remedy):
    with pytest.raises(SigmaDataError, match=remedy):
        CsvReader(**settings).read(held(FLOWERS.replace(b",", b";")))


def test_a_missing_header_suggests_header_false(held):
    rows = FLOWERS.partition(b"\n")[2]
    with pytest.raises(SigmaDataError, match="There are: 5.1, 3.5, setosa. If .* set header = false"):
        CsvReader(("species",)).read(held(rows))
    with pytest.raises(SigmaDataError, match="held:1: 2 columns are called '1'. .*set header = false"):
        CsvReader().read(held(b"1,2,1\n3,4,5\n"))
    with pytest.raises(SigmaDataError, match="With header = false, columns are called by their numbers"):
        CsvReader(("species",), header=False).read(held(rows))


def test_a_first_line_of_names_suggests_header_true(held):
    with pytest.raises(SigmaDataError, match="held:1: .*'length' is not a number.*, or set header = true"):
        CsvReader(header=False).read(held(FLOWERS))
    with pytest.raises(SigmaDataError, match=r"held:2: .*'x' is not a number. Correct it, name .* in `columns`\.$"):
        CsvReader(header=False).read(held(b"1,2\n3,x\n"))


def test_an_infinite_number_is_not_treated_as_missing(held):
    with pytest.raises(SigmaDataError, match="held:2: column 'b': 'inf' is not a finite number"):
        CsvReader(missing="nan").read(held(b"a,b\n,inf\n"))


def test_an_unknown_encoding_and_undecodable_text_are_reported(held):
    for encoding in ("latin-99", "rot13", "\0"):
        with pytest.raises(SigmaDataError, match="encoding: there is no"):
            CsvReader(encoding=encoding).read(held(FLOWERS))
    with pytest.raises(SigmaDataError, match="not valid utf-16"):
        CsvReader(encoding="utf-16").read(held(FLOWERS))


@given(st.data())
def test_any_change_to_a_file_causes_only_data_errors(held, told, data):
    content = bytearray(FLOWERS * 3)
    for _ in range(data.draw(st.integers(1, 6))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    assert told(CsvReader(text=(2,)).read, held(bytes(content[: data.draw(st.integers(0, len(content)))]))).startswith(
        "held"
    )
