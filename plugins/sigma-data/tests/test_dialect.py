"""The dialect of a text is found from its first bytes, with a reason for each part."""

from __future__ import annotations

import csv
import io
import random

import pytest

from sigma_data.tables import Dialect, detect

# the text; then delimiter, decimal mark, separator of thousands, and whether there is a header
TEXTS = {
    "commas": ("a,b\n1,2.5\n3,4\n", ",", ".", None, True),
    "semicolons and decimal commas": ("a;b\n1,5;2\n3,25;4\n", ";", ",", None, True),
    "semicolons and commas, without a header": ("1,5;2,5\n3,5;4,5\n", ";", ",", None, False),
    "tabs": ("name\tsize\nx\t1\ny\t2\n", "\t", ".", None, True),
    "tabs and sentences": ("text\tstars\nnice, but late\t3\nbad; very bad\t1\n", "\t", ".", None, True),
    "bars": ("a|b|c\n1|2|x,y\n", "|", ".", None, True),
    "blanks": ("a b\n1 2\n3 4\n", " ", ".", None, True),
    "one column of numbers": ("a\n1\n2\n", ",", ".", None, True),
    "one column of sentences": ("text\na b c\nd e\nf\n", ",", ".", None, True),
    "no header": ("1,2\n3,4\n", ",", ".", None, False),
    "no header, words that repeat": ("red,big\nred,small\nblue,big\n", ",", ".", None, False),
    "a header over words": ("colour,size\nred,small\nblue,big\n", ",", ".", None, True),
    "an index without a name": (",a,b\n0,1,2\n1,3,4\n", ",", ".", None, True),
    "years as names": ("country,1990,1991,1992\nFrance,1,2,3\n", ",", ".", None, True),
    "years as values": ("1990,1\n1991,2\n", ",", ".", None, False),
    "thousands in quotes": ('a,b\n"1,234.5",2\n"2,000",3\n', ",", ".", ",", True),
    "thousands with points": ("a;b\n1.234,5;2\n2.000,0;3\n", ";", ",", ".", True),
    "three digits behind a comma, between semicolons": ("a;b\n12,345;2\n", ";", ",", None, True),
    "three digits behind a comma, between tabs": ("a\tb\n12,345\t2\n", "\t", ".", ",", True),
    "three digits behind a comma and a zero": ("a\tb\n0,345\t2\n12,345\t2\n", "\t", ",", None, True),
    "quoted marks": ('a,b\n"x;y;z",1\n"u;v;w",2\n', ",", ".", None, True),
    "quoted line ends": ('a,b\n"x\ny",1\nz,2\n', ",", ".", None, True),
    "dates": ("2024-01-01,1\n2024-01-02,2\n", ",", ".", None, False),
    "dates under names": ("day,load\n2024-01-01,1\n", ",", ".", None, True),
    "truths": ("true,false\nfalse,true\n", ",", ".", None, False),
    "gaps": ("a,b\n,1\nNA,\n2,3\n", ",", ".", None, True),
    "only a header": ("a,b\n", ",", ".", None, True),
    "a cut last line": ("a;b\n1;2\n3;4\n5", ";", ".", None, True),
    "empty": ("", ",", ".", None, True),
}


@pytest.mark.parametrize("name", TEXTS)
def test_the_marks_of_a_text_are_found(name: str) -> None:
    text, *wanted = TEXTS[name]
    dialect = detect(text.encode())
    assert [dialect.delimiter, dialect.decimal, dialect.thousands, dialect.header] == wanted
    assert dialect.reasons.keys() == {"encoding", "delimiter", "decimal", "thousands", "header"}
    assert all(dialect.reasons.values())


@pytest.mark.parametrize(("head", "encoding"), [
    (b"a,b\n1,2\n", "utf-8-sig"), (b"\xef\xbb\xbfa,b\n1,2\n", "utf-8-sig"),
    ("a,b\nZ\u00fcrich,2\n".encode(), "utf-8-sig"),
    ("a,b\nZ\u00fcrich,2\n".encode("cp1252"), "cp1252"), ("a,b\n\u20ac,2\n".encode("cp1252"), "cp1252"),
    (b"a,b\n\x81\xe4,2\n", "latin-1"), ("a,b\n1,2\n".encode("utf-16"), "utf-16"),
    ("a,b\n1,2\n".encode("utf-16-le"), "utf-16-le"), ("a,b\n1,2\n".encode("utf-16-be"), "utf-16-be"),
    ("a,b\n1,\u6771".encode()[:-1], "utf-8-sig"),
])  # fmt: skip
def test_the_encoding_of_a_text_is_found(head: bytes, encoding: str) -> None:
    dialect = detect(head)
    assert (dialect.encoding, dialect.delimiter) == (encoding, ",")


def test_what_is_given_is_not_looked_for() -> None:
    dialect = detect(b"a,b;c\n1,2;3\n", delimiter=",", header=False)
    assert (dialect.delimiter, dialect.header) == (",", False)
    assert dialect.reasons["delimiter"] == dialect.reasons["header"] == "as set"
    assert dialect.reasons["encoding"] == "all bytes are plain ASCII"


@pytest.mark.parametrize("seed", range(200))
def test_tables_that_were_written_in_a_dialect_are_found_to_be_in_it(seed: int) -> None:
    draw = random.Random(seed)
    delimiter = draw.choice(",;\t|")
    decimal = "." if delimiter == "," else draw.choice(".,")
    kinds = ["number", *draw.choices(["number", "word", "date", "truth"], k=draw.randint(1, 6))]
    cells = {
        "number": lambda: f"{draw.uniform(-99, 99):.2f}".replace(".", decimal),
        "word": lambda: draw.choice(["red", "new york", "a, b", "x; y", 'say "yes"', ""]),
        "date": lambda: f"20{draw.randint(10, 30)}-0{draw.randint(1, 9)}-1{draw.randint(0, 9)}",
        "truth": lambda: draw.choice(["true", "False"]),
    }
    out, header = io.StringIO(), draw.random() < 0.7
    writer = csv.writer(out, delimiter=delimiter)
    if header:
        writer.writerow([f"{kind} {i}" for i, kind in enumerate(kinds)])
    writer.writerows([cells[kind]() for kind in kinds] for _ in range(draw.randint(3, 150)))
    wanted = Dialect("utf-8-sig", delimiter, decimal, None, header)
    dialect = detect(out.getvalue().encode())
    parts = ("encoding", "delimiter", "decimal", "thousands", "header")
    assert [getattr(dialect, part) for part in parts] == [getattr(wanted, part) for part in parts]


@pytest.mark.parametrize("first", ["a,a,label", "a,,label"])
def test_a_header_with_a_name_twice_or_missing_is_one_above_numbers(first):
    dialect = detect(f"{first}\n1,2,x\n3,4,y\n".encode())
    assert (dialect.header, dialect.reasons["header"]) == (True, "'a' stands above values")
    words = detect(f"{first}\nu,v,x\nu,w,y\n".encode())
    assert words.header is False


def test_marks_of_missing_values_do_not_hide_groups_of_digits():
    assert detect(b'a;b\n"1,234";x\n-;y\n"2,345";z\n', decimal=".").thousands == ","
