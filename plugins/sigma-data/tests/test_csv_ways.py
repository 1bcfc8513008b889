"""A table read by Arrow or by the slow path gives the same arrays and the same errors."""

from __future__ import annotations

import gzip
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings as limits, strategies as st

from sigma_data import Compressed, Csv, CsvReader
from sigma_data.readers import delimited
from sigma_kernel import SigmaConfigError, SigmaDataError, Source

Held = Callable[[bytes], Source]
PLAIN = b"a,b,c\n1,2.5,x\n-3e2,4,y z\n5,.5,\n"

# awkward tables, and how they are read
TABLES: dict[str, tuple[bytes, dict[str, Any]]] = {
    "plain": (PLAIN, {"text": ("c",), "missing": "nan"}),
    "plain numbers": (b"a,b\n1,2\n3,4\n", {}),
    "some columns": (b"a,b,c\n1,x,2\n3,y,4\n", {"columns": ("c", "a")}),
    "columns that are not looked at": (b"a,b\n1,\n2,\"x\"\n", {"columns": ("a",)}),
    "quotes": (b'"a","b"\n"1","x, y"\n2,"z"\n', {"text": ("b",)}),
    "quotes within quotes": (b'a,b\n1,"x ""y"""\n', {"text": ("b",)}),
    "a quote within a word": (b'a,b\n1,x"y\n', {"text": ("b",)}),
    "a quote behind a blank": (b'a,b\n1, "y"\n', {"text": ("b",)}),
    "something behind a quote": (b'a,b\n1,"2"3\n', {}),
    "a quote that never ends": (b'a,b\n1,"2\n', {}),
    "line ends in quotes": (b'a,b\n"1\n",2\n3,4\n', {"text": ("a",)}),
    "a line end in quotes that looks like rows": (b'a,b\n1,"x\n2,y"\n', {"text": ("b",)}),
    "a header of several lines": (b'"a\nb",c\n1,2\n', {}),
    "empty quotes": (b'a,b\n"",2\n', {"missing": "nan"}),
    "a missing number": (b"a,b\n1,\n2,3\n", {}),
    "missing numbers": (b"a,b\n1,\nNA,?\nnull,NaN\n", {"missing": "nan"}),
    "gaps and words": (b'a,b,c\n1,NA,NA\n,n/a,"x,,y"\n2,,\nNone,?,"x ""y"",NA,"\n3,null,nan\n',
                       {"text": ("c",), "missing": "nan"}),
    "gaps alone": (b"a,b,c,d\n,,,\n1,,,2\n,3,,\n?,NaN,nUlL,4\n", {"missing": "nan"}),
    "gaps that are refused": (b"a,b\n1,2\n3,NA\n", {}),
    "gaps in columns that are not looked at": (b"a,b,c\n1,,NA\n,?,x\n", {"columns": ("a",), "missing": "nan"}),
    "gaps at both ends": (b"a,b\n1,2\n3,\n,4\n,\n", {"missing": "nan"}),
    "gaps and blank lines": (b"a,b\n\n1,\n\n\n,2\n", {"missing": "nan"}),
    "gaps with blanks around": (b"a,b\n1, NA \n3, \n", {"missing": "nan"}),
    "gaps in quotes": (b'a,b\n1,"NA"\n"",2\n', {"missing": "nan"}),
    "gaps with signs": (b"a,b\n1,NA\n-nan,2\n", {"missing": "nan"}),
    "gaps with signs that are words": (b"a,b\n1,-nan\n,2\n", {"text": ("b",), "missing": "nan"}),
    "gaps that hold more": (b"a,b\n1,NA\nnan(1),2\n", {"missing": "nan"}),
    "gaps and infinity": (b"a,b\n1,NA\ninf,2\n", {"missing": "nan"}),
    "gaps and a word": (b"a,b\n1,NA\nnon,2\n", {"missing": "nan"}),
    "gaps and a short line": (b"a,b\n1,NA\n2\n", {"missing": "nan"}),
    "gaps and a decimal comma": (b"a;b;c\n1,5;NA;x,y\n;2,5;\n", {"decimal": ",", "delimiter": ";", "text": ("c",),
                                                                 "missing": "nan"}),
    "gaps between blanks": (b"a b c\n1  2\n3 NA 4\n", {"delimiter": " ", "missing": "nan"}),
    "gaps between letters": (b"an1\n2n3\nnn\n", {"delimiter": "n", "missing": "nan", "header": False}),
    "gaps between carets": (b"a^b\n1^\n^NA\n", {"delimiter": "^", "missing": "nan"}),
    "gaps in one column": (b"a\nNA\n\n1\n?\n", {"missing": "nan"}),
    "gaps without a header": (b"1,,x\n,2,\n", {"header": False, "text": (2,), "missing": "nan"}),
    "two quotes for one in numbers": (b'a,b\n1,"2""3"\n', {}),
    "quotes alone": (b'a,b\n1,""""\n2,"""x"""\n3,""\n', {"text": ("b",), "missing": "nan"}),
    "quotes and marks": (b'a,b\n1,"x"",""y"\n2,",""",\n', {"text": ("b",)}),
    "three quotes": (b'a,b\n1,"x"""y"\n2,z\n', {"text": ("b",)}),
    "quotes over lines": (b'a,b\n1,"x""\ny"\n2,z\n', {"text": ("b",)}),
    "a missing word": (b"a,b\n1,x\n2, \n", {"text": ("b",)}),
    "missing words": (b"a,b\n1,NA\n2,\n", {"text": ("b",), "missing": "nan"}),
    "blank lines": (b"\n\na,b\n\n1,2\n\n\n3,4\n\n", {}),
    "lines of blanks": (b"a,b\n1,2\n \n3,4\n", {}),
    "a line of a blank in one column": (b"a\n1\n \n", {}),
    "windows": (b"a,b\r\n1,2\r\n3,4\r\n", {}),
    "windows without a last end": (b"a,b\r\n1,2\r\n3,4\r", {}),
    "old mac": (b"a,b\r1,2\r3,4\r", {}),
    "two kinds of ends": (b"a,b\n1,2\r3,4\r\n5,6\n", {}),
    "old mac in quotes": (b'a,b\n1,"x\ry"\n3,z\n', {"text": ("b",)}),
    "no last end": (b"a,b\n1,2\n3,4", {}),
    "a mark of byte order": (b"\xef\xbb\xbfa,b\n1,2\n", {}),
    "a delimiter at the end": (b"a,b\n1,2,\n3,4,\n", {}),
    "a delimiter at the end of all": (b"a,b,\n1,2,\n3,4,\n", {"columns": (0, 1)}),
    "ragged, too short": (b"a,b\n1,2\n3\n5,6\n", {}),
    "ragged, too long": (b"a,b\n1,2\n3,4,5\n5,6\n", {}),
    "ragged, a missing word": (b"a,b\nx,2\n3\n", {"columns": ("a",), "text": ("a",)}),
    "huge": (b"a,b\n1e308,1e-320\n123456789012345678901234567890.0,2\n", {}),
    "integers that merge": (b"a,b\n1,2\n9007199254740993,2\n", {}),
    "integers up to the last": (b"a,b\n-9007199254740992,2\n0009007199254740992,2\n", {}),
    "truths": (b"a,b\ntrue,1\nFALSE,2\nTrue,3\n", {}),
    "truths and gaps": (b"a,b\n?,1\nFALSE,NA\n,3\ntrue,3\n", {"missing": "nan"}),
    "truths and a gap": (b"a,b\ntrue,1\nNA,2\n", {}),
    "truths and a number": (b"a,b\ntrue,1\n0,2\n", {}),
    "a number and truths": (b"a,b\n0,1\ntrue,2\n", {}),
    "beyond all": (b"a,b\n1,2\n1e999,2\n", {}),
    "digits to the last": (b"a\n0.1\n2.2250738585072011e-308\n900719925474099.3\n1.7976931348623157e308\n4.35\n", {}),
    "hex": (b"a,b\n1,2\n0x10,2\n", {}),
    "hex floats": (b"a,b\n0x1p-2,2\n", {}),
    "infinite": (b"a,b\n1,2\n3,inf\n", {"missing": "nan"}),
    "no number": (b"a,b\n1,nan\n", {}),
    "signs and points": (b"a,b\n+1,-.5\n5.,+0\n-0,1E+2\n", {}),
    "underscores": (b"a,b\n1_000,2\n", {}),
    "other digits": ("a,b\n\u0661\u0662,2\n".encode(), {}),
    "blanks around": (b"a,b\n 1 ,\t2\n", {}),
    "other blanks around": ("a,b\n\u00a01,2\u2003\n".encode(), {}),
    "a vertical tab": (b"a,b\n1\x0b,2\n", {}),
    "a nul": (b"a,b\n1,x\x00y\n", {"text": ("b",)}),
    "a long word": (b"a,b\n1," + b"x" * 140_000 + b"\n", {"text": ("b",)}),
    "a word among numbers": (b"a,b\n1,2\n3,x\n5,6\n", {}),
    "true": (b"a,b\n1,true\n", {}),
    "a date": (b"a,b\n1,2024-01-01\n", {}),
    "thousands": (b'a,b\n"1,234.5",2\n"-1,234,567",3\n4,5\n', {"thousands": ","}),
    "thousands in twos": (b'a,b\n"1,23",2\n', {"thousands": ","}),
    "a decimal comma": (b"a;b\n1,5;-2,25\n3;,5\n", {"decimal": ",", "delimiter": ";"}),
    "a decimal comma in words": (b"a;b\n1,5;x,y\n3;z\n", {"decimal": ",", "delimiter": ";", "text": ("b",)}),
    "a decimal comma and points": (b"a;b\n1,5;x.y\n3;z\n", {"decimal": ",", "delimiter": ";", "text": ("b",)}),
    "a point for a comma": (b"a;b\n1.5;2\n", {"decimal": ",", "delimiter": ";"}),
    "a comma for a point": (b"a;b\n1,5;2\n", {"delimiter": ";"}),
    "commas for both": (b'a,b\n"1,5",2\n3,4\n', {"decimal": ","}),
    "points and commas": (b"a;b\n1.234,5;2\n3,25;1.000\n", {"decimal": ",", "thousands": ".", "delimiter": ";"}),
    "latin": ("a,b\n1,Z\u00fcrich\n".encode("latin-1"), {"text": ("b",), "encoding": "latin-1"}),
    "latin as utf-8": ("a,b\n1,Z\u00fcrich\n".encode("latin-1"), {"text": ("b",)}),
    "utf-8 words": ("a,b\n1,Z\u00fcrich \u6771\u4eac\n2,\U0001f600\n".encode(), {"text": ("b",)}),
    "utf-16": ("a,b\n1,2\n3,4\n".encode("utf-16"), {"encoding": "utf-16"}),
    "other line separators": ("a,b\n1,x\u2028y\n2,x\x85y\n3,x\x0cy\n".encode(), {"text": ("b",)}),
    "no header": (b"1,2\n3,4\n", {"header": False}),
    "no header behind blank lines": (b"\n\n1,x\n3,y\n", {"header": False, "text": (1,)}),
    "names without a header": (b"a,b\n1,2\n", {"header": False}),
    "comments": (b"a,b\n# 1,2\n3,4\n", {}),
    "a comment at the end": (b"a,b\n1,2 # two\n", {}),
    "one column": (b"a\n1\n2\n", {}),
    "one column of words": (b"a\nx\ny y\n", {"text": ("a",)}),
    "one column with a gap": (b"a\n1\n\n2\n", {}),
    "empty": (b"", {}),
    "only a header": (b"a,b\n", {}),
    "only blank lines": (b"\n\n\n", {}),
    "blanks between": (b"a b\n1 2\n3  4\n", {"delimiter": " "}),
    "tabs": (b"a\tb\n1\t2\n3\t4\n", {"delimiter": "\t"}),
    "bars": (b"a|b\n1|x,y\n", {"delimiter": "|", "text": ("b",)}),
    "a letter between": (b"ae1\n2e3\n", {"delimiter": "e"}),
}  # fmt: skip


def outcome(reader: CsvReader, source: Source) -> Any:
    """Return the result of reading a table: its lines and columns as bytes, or its error message."""
    try:
        lines, columns = reader.table(source)
    except (SigmaDataError, SigmaConfigError) as error:
        return str(error)
    return lines.tolist(), {
        name: (str(values.dtype), values.tolist() if values.dtype.kind == "T" else values.tobytes())
        for name, values in columns.items()
    }


def with_care(reader: CsvReader, source: Source) -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(CsvReader, "_swiftly", lambda *_: [])
        return outcome(reader, source)


def swiftly(reader: CsvReader, source: Source, chunk: int = delimited.CHUNK) -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sigma_data.readers.csv.SMALL", 0)
        patch.setattr(delimited, "CHUNK", chunk)
        return outcome(reader, source)


@pytest.mark.parametrize("name", TABLES)
def test_the_fast_and_the_slow_path_give_the_same_arrays_and_errors(held: Held, name: str) -> None:
    content, settings = TABLES[name]
    reader = CsvReader(**settings)
    wanted = with_care(reader, held(content))
    for chunk in (delimited.CHUNK, 16, 7, 1):
        assert swiftly(reader, held(content), chunk) == wanted


@limits(deadline=None)
@given(
    st.text(st.sampled_from('1230.,-+e"x \n\n\r;\t') | st.sampled_from('1,,?nNaA"\n/'), max_size=60),
    st.sampled_from([(), (0,), (1,)]),
    st.sampled_from(["refuse", "nan"]), st.booleans(), st.sampled_from(",;\t"), st.sampled_from([1, 5, 1 << 20]),
)  # fmt: skip
def test_any_number_format_gives_the_same_result_on_both_paths(
    held: Held, text: str, words: Any, missing: Any, header: bool, delimiter: str, chunk: int
) -> None:
    reader = CsvReader(text=words, missing=missing, header=header, delimiter=delimiter)
    source = held(("a,b\n" if header else "").replace(",", delimiter).encode() + text.encode())
    assert swiftly(reader, source, chunk) == with_care(reader, source)


@pytest.mark.parametrize("name", ["plain", "plain numbers", "some columns", "quotes", "blank lines", "windows", "huge",
                                  "a decimal comma", "a decimal comma in words", "latin", "utf-16", "no header",
                                  "one column of words", "digits to the last", "blanks around", "gaps and words",
                                  "gaps alone", "gaps at both ends", "gaps and blank lines", "gaps in one column",
                                  "gaps and a decimal comma", "gaps without a header", "gaps between carets",
                                  "gaps in columns that are not looked at", "missing numbers", "missing words",
                                  "quotes within quotes", "quotes alone"])  # fmt: skip
def test_plain_tables_are_parsed_by_the_library_only(held: Held, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setattr(CsvReader, "_carefully", lambda *_: pytest.fail("was read with care"))
    content, settings = TABLES[name]
    assert not isinstance(swiftly(CsvReader(**settings), held(content), 16), str)


def test_tables_without_one_row_per_line_take_the_slow_path(held: Held, monkeypatch: pytest.MonkeyPatch) -> None:
    real = delimited.csv.read_csv
    monkeypatch.setattr(delimited.csv, "read_csv", lambda *settings: real(*settings).slice(1))
    assert swiftly(CsvReader(), held(b"a,b\n1,2\n3,4\n"))[1]["a"][1] == np.array([1.0, 3.0]).tobytes()


def test_a_table_of_512_kib_is_read_by_arrow_and_a_smaller_one_is_not(held: Held) -> None:
    sizes: list[int] = []
    with pytest.MonkeyPatch.context() as patch:
        real = delimited.Parser.parse
        patch.setattr(delimited.Parser, "parse", lambda *one: sizes.append(one[1].count) or real(*one))
        assert CsvReader().read(held(b"a,b\n" + b"1.5,2\n" * 87_000))["a"].tolist() == [1.5] * 87_000
        assert sizes == []
        assert CsvReader().read(held(b"a,b\n" + b"1.5,2\n" * 88_000))["a"].tolist() == [1.5] * 88_000
        assert sizes == [88_000]


@pytest.mark.parametrize("name", ["Digits", "Iris", "Wdbc"])
def test_shipped_tables_are_read_without_arrow(name: str) -> None:
    code = f"import sys, sigma_data; sigma_data.{name}().all_rows(); sys.exit('pyarrow' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_truncated_compressed_file_is_reported_as_usual(held: Held) -> None:
    packed = gzip.compress(b"a,b\n" + b"1,2\n" * 100_000)
    source = Compressed(held(packed[: len(packed) // 2]))
    reader = CsvReader()
    assert outcome(reader, source) == with_care(reader, source)
    assert isinstance(outcome(reader, source), str)


# -- number formats ----------------------------------------------------------------------------------------------------
def test_decimal_and_thousands_marks_are_settings(held: Held) -> None:
    content = b"a;b\n1.234,5;-2,25\n1.000.000;3\n"
    found = CsvReader(delimiter=";", decimal=",", thousands=".").read(held(content))
    assert {name: values.tolist() for name, values in found.items()} == {"a": [1234.5, 1e6], "b": [-2.25, 3.0]}


@pytest.mark.parametrize("cell", ["1,5", "12,34", "1234,567", ",123", "1,2345", "1,234,56", "1.5,000"])
def test_groups_of_thousands_have_three_digits(held: Held, cell: str) -> None:
    with pytest.raises(SigmaDataError, match=f"held:2: column 'a': '{cell}' is not a number"):
        CsvReader(thousands=",").read(held(f'a,b\n"{cell}",2\n'.encode()))


@pytest.mark.parametrize(("cell", "remedy"), [("1,5", "set decimal = ','"), ("1,234.5", "set thousands = ','")])
def test_a_comma_in_a_number_suggests_the_decimal_or_thousands_setting(held: Held, cell: str, remedy: str) -> None:
    with pytest.raises(SigmaDataError, match=f"is not a number. .* {remedy}"):
        CsvReader(delimiter=";").read(held(f"a;b\n1;{cell}\n".encode()))


def test_invalid_decimal_or_thousands_marks_are_refused() -> None:
    with pytest.raises(SigmaConfigError, match="CsvReader.decimal: must be '.' or ','"):
        CsvReader(decimal=";")
    with pytest.raises(SigmaConfigError, match="CsvReader.thousands: ',' is also the decimal mark"):
        CsvReader(decimal=",", thousands=",")
    with pytest.raises(SigmaConfigError, match="CsvReader.thousands: must be one character"):
        CsvReader(thousands="1")


def test_decimal_marks_apply_to_samples_for_prediction_too(tmp_path: Any) -> None:
    (tmp_path / "a.csv").write_text("x;y;price\n1.000,5;2;1,5\n3,25;4;2.000,25\n", encoding="latin-1")
    data = Csv(tmp_path / "a.csv", "price", delimiter=";", decimal=",", thousands=".", encoding="latin-1")
    rows = data.all_rows()[0].block(0)
    assert rows["inputs"].tolist() == [[1000.5, 2], [3.25, 4]]
    assert rows["targets"].tolist() == [[1.5], [2000.25]]
    (tmp_path / "new.csv").write_text("x;y\n2.000,5;1\n")
    np.testing.assert_array_equal(data.samples(tmp_path / "new.csv", (2,)), [[2000.5, 1]])


def test_a_target_with_a_decimal_comma_names_the_setting(tmp_path: Any) -> None:
    (tmp_path / "a.csv").write_text("x;y\n1;2,5\n2;3,5\n")
    with pytest.raises(SigmaDataError, match="the target '2,5' is not a number. .* set decimal = ','"):
        Csv(tmp_path / "a.csv", "y", delimiter=";", targets="numbers").all_rows()
