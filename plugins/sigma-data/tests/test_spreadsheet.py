from __future__ import annotations

import datetime as dt
import io
import sys
import tracemalloc
import zipfile
from collections.abc import Callable
from pathlib import Path
from xml.sax.saxutils import escape

import numpy as np
import openpyxl
import pandas as pd
import pyarrow as pa
import pytest

from sigma_data import Tabular
from sigma_data.tables import open_alike, open_table
from sigma_kernel import SigmaConfigError, SigmaDataError, SigmaPluginError

HOUSES = [
    ["price", "rooms", "town", "built", "seen", "sold"],
    [210.5, 3, "Bern", dt.date(1950, 1, 2), dt.datetime(2024, 1, 2, 3, 4, 5), True],
    [None, 4, "NA", None, None, False],
    [99.0, "n/a", "Thun", dt.date(2001, 12, 31), dt.datetime(2024, 1, 3), None],
]
CONTENT = """<?xml version="1.0"?><office:document-content
 xmlns:office="urn:oasis:names:tc:opendocument:xmlns:office:1.0"
 xmlns:table="urn:oasis:names:tc:opendocument:xmlns:table:1.0"
 xmlns:text="urn:oasis:names:tc:opendocument:xmlns:text:1.0">
<office:body><office:spreadsheet><table:table table:name="S">{}</table:table></office:spreadsheet></office:body>
</office:document-content>"""
MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
SHARED = "http://schemas.openxmlformats.org/officeDocument/2006/relationships/sharedStrings"
MANIFEST = """<?xml version="1.0"?><manifest:manifest
 xmlns:manifest="urn:oasis:names:tc:opendocument:xmlns:manifest:1.0">
</manifest:manifest>"""


def write_xlsx(path: Path, **sheets: list[list]) -> Path:
    book = openpyxl.Workbook()
    book.remove(book.active)
    for name, rows in sheets.items():
        sheet = book.create_sheet(name)
        for row in rows:
            sheet.append(row)
    book.save(path)
    return path


def cell(value: str | float, repeated: int = 1) -> str:
    kind = f'string"><text:p>{value}</text:p>' if isinstance(value, str) else f'float" office:value="{value}">'
    return f'<table:table-cell table:number-columns-repeated="{repeated}" office:value-type="{kind}</table:table-cell>'


def row(*cells: str, repeated: int = 1) -> str:
    return f'<table:table-row table:number-rows-repeated="{repeated}">{"".join(cells)}</table:table-row>'


def write_ods(path: Path, *rows: str) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("mimetype", "application/vnd.oasis.opendocument.spreadsheet")
        archive.writestr("content.xml", CONTENT.format("".join(rows)))
        archive.writestr("META-INF/manifest.xml", MANIFEST)
    return path


def rewrite(path: Path, change: Callable[[dict[str, bytes]], None]) -> Path:
    """Change the members of a workbook."""
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    change(members)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return path


def replace(path: Path, old: bytes, new: bytes, member: str = "xl/worksheets/sheet1.xml") -> Path:
    """Replace a text in a member of a workbook, by default its first sheet."""

    def change(members: dict[str, bytes]) -> None:
        assert old in members[member]
        members[member] = members[member].replace(old, new)

    return rewrite(path, change)


def test_a_sheet_is_read_with_the_types_of_its_cells(tmp_path):
    table = open_table(write_xlsx(tmp_path / "h.xlsx", notes=[["x"]], houses=HOUSES), sheet="houses")
    assert {field.name: str(field.type) for field in table.schema} == {
        "price": "double", "rooms": "int64", "town": "string", "built": "date32[day]", "seen": "timestamp[us]",
        "sold": "bool",
    }  # fmt: skip
    rows = table.read().to_pylist()
    assert rows[0] == dict(zip(HOUSES[0], HOUSES[1], strict=True))
    assert rows[1] == {"price": None, "rooms": 4, "town": "NA", "built": None, "seen": None, "sold": False}
    assert (rows[2]["rooms"], rows[2]["seen"]) == (None, dt.datetime(2024, 1, 3))
    assert table.place(2) == f"{tmp_path}/h.xlsx: sheet 'houses', row 4"
    assert table.read(["town"]).column_names == ["town"]


def test_numbers_are_those_that_pandas_reads(tmp_path):
    values = np.random.default_rng(0).normal(size=(300, 4)) * [1, 1e9, 1e-9, 1]
    frame = pd.DataFrame(values, columns=list("abcd"))
    frame.to_excel(tmp_path / "x.xlsx", index=False, engine="openpyxl")
    ours = open_table(tmp_path / "x.xlsx").read().to_pandas()
    pd.testing.assert_frame_equal(ours, pd.read_excel(tmp_path / "x.xlsx", engine="openpyxl"), check_exact=True)


def test_a_table_may_begin_anywhere_and_have_blank_rows(tmp_path):
    rows = [[None], [None, "a", "b"], [None, 1, "x"], [], [None, 2, "y"], [None, None, " "]]
    table = open_table(write_xlsx(tmp_path / "x.xlsx", s=rows))
    assert table.read().to_pylist() == [{"a": 1, "b": "x"}, {"a": 2, "b": "y"}]
    assert [table.place(i) for i in (0, 1)] == [f"{tmp_path}/x.xlsx: sheet 's', row {n}" for n in (3, 5)]


def test_an_open_document_is_read(tmp_path):
    blank = '<table:table-cell table:number-columns-repeated="16380"/>'
    path = write_ods(
        tmp_path / "x.ods", row(cell("a"), cell("b"), blank), row(cell(1.5, 2), blank), row(cell(3), cell(4)),
        row(blank, repeated=1048570),
    )  # fmt: skip
    assert open_table(path).read().to_pylist() == [{"a": 1.5, "b": 1.5}, {"a": 3.0, "b": 4.0}]


def test_a_spreadsheet_trains_as_any_other_table(tmp_path):
    rows = [["length", "kind"], *([i / 7, "ab"[i % 2]] for i in range(20))]
    data = Tabular(write_xlsx(tmp_path / "x.xlsx", first=rows, second=[["x"]]), "kind", format={"sheet": "first"})
    assert data.classes == ("a", "b")
    assert len(data["training"]) == 16


@pytest.mark.parametrize(
    ("rows", "text"),
    [
        ([["a"], [1], ["high"]], r"sheet 's', cell A3: holds a word, in a column whose cell A2 holds a number\. Make"),
        (
            [["a", "b"], [1, 2], [1, dt.date(2020, 1, 1)]],
            r"cell B3: holds a date, in a column whose cell B2 holds a nu",
        ),
        (
            [["a", None], [1, None], [1, 5]],
            r"cell B1: there is no name for this column, which has a value in B3\. Name",
        ),
        ([["a", "a"], [1, 2]], r"2 columns are called 'a'"),
        ([["a"]], r"there is no row of values below that of the names"),
        ([], r"sheet 's': is empty\. Choose another"),
    ],
)
def test_errors_name_the_sheet_and_the_cell(tmp_path, rows, text):
    with pytest.raises(SigmaDataError, match=text) as error:
        open_table(write_xlsx(tmp_path / "x.xlsx", s=rows))
    assert str(error.value).startswith(f"{tmp_path}/x.xlsx: ")


def test_a_sheet_is_chosen_by_name(tmp_path):
    path = write_xlsx(tmp_path / "x.xlsx", prices=[["a"], [1]], towns=[["b"], [2]])
    with pytest.raises(SigmaDataError, match=r"has 2 sheets: 'prices', 'towns'\. Name one as `sheet`"):
        open_table(path)
    with pytest.raises(SigmaConfigError, match=r"has no 'price'\. Did you mean 'prices'\?"):
        open_table(path, sheet="price")
    with pytest.raises(SigmaConfigError, match=r"delimiter: .* is a spreadsheet\. Leave `delimiter` out"):
        open_table(path, sheet="prices", delimiter=";")
    (tmp_path / "x.csv").write_text("a\n1\n")
    with pytest.raises(SigmaConfigError, match=r"sheet: .* is no spreadsheet\. Leave `sheet` out"):
        open_table(tmp_path / "x.csv", sheet="a")


def test_a_misspelt_sheet_of_a_table_to_predict_from_is_no_other_sheet(tmp_path):
    path, form = write_xlsx(tmp_path / "x.xlsx", prices=[["a"], [1]], price=[["a"], [2]]), {"sheet": "prices"}
    assert open_alike(path, {**form, "delimiter": ";"}).read().to_pylist() == [{"a": 1}]
    with pytest.raises(SigmaConfigError, match=r"has no 'prise'\. Did you mean"):
        open_alike(path, {"sheet": "prise"})
    (tmp_path / "x.csv").write_text("a\n3\n")
    assert open_alike(tmp_path / "x.csv", form).read().to_pylist() == [{"a": 3}]


def test_a_workbook_in_an_archive_is_read(tmp_path):
    inner = write_xlsx(tmp_path / "x.xlsx", s=[["a"], [1]]).read_bytes()
    with zipfile.ZipFile(tmp_path / "x.zip", "w") as archive:
        archive.writestr("x.xlsx", inner)
    assert open_table(tmp_path / "x.zip").read().to_pylist() == [{"a": 1}]


# -- hostile files -----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("place", ["XFD1048576", "xfd1048576", "A99999999999999", "ZZZZZZZ2"])
@pytest.mark.parametrize("form", ['r="{}"', "r = '{}'", 'r\n=\n"{}"'])
def test_a_cell_far_outside_is_refused_before_it_is_unfolded(tmp_path, place, form):
    path = replace(write_xlsx(tmp_path / "x.xlsx", s=[["a"], [1]]), b'r="A2"', form.format(place).encode())
    tracemalloc.start()
    with pytest.raises(
        SigmaDataError, match=r"x\.xlsx: its cells reach from the first to row \d+ and column \d+, more"
    ):
        open_table(path)
    assert tracemalloc.get_traced_memory()[1] < 1 << 24
    tracemalloc.stop()


def test_cells_without_places_are_counted(tmp_path):
    many = b"<row>" + b"<c/>" * 5000 + b"</row>" + b"<row/>" * 5000 + b"<row><c/></row>"
    path = replace(write_xlsx(tmp_path / "x.xlsx", s=[["a"], [1]]), b"</sheetData>", many + b"</sheetData>")
    with pytest.raises(SigmaDataError, match=r"row 500\d and column 500\d, more than 16777216 bytes"):
        open_table(path, limit=1 << 24)
    rows = "".join(f"<row><c><v>{i}</v></c><c><v>{i}</v></c></row>" for i in range(5000)).encode()
    path = replace(write_xlsx(tmp_path / "x.xlsx", s=[["a", "b"], [1, 2]]), b"</sheetData>", rows + b"</sheetData>")
    assert open_table(path, limit=1 << 24).rows == 5001


@pytest.mark.parametrize(
    ("place", "reason"), [("&#88;FD1048576", "its cells reach"), ("&#88;FD9", "cannot be"), ("A-2", "is no place of a")]
)
def test_places_in_another_form_are_refused(tmp_path, place, reason):
    path = replace(write_xlsx(tmp_path / "x.xlsx", s=[["a"], [1]]), b'r="A2"', f'r="{place}"'.encode())
    with pytest.raises(SigmaDataError, match=rf"x\.xlsx: .*{reason}"):
        open_table(path)


@pytest.mark.parametrize("text", ['set r="x & y"', 'of r="ZZ99999999"', "<c r='XFD1048576'/><row/>", "<sheetData><c/>"])
@pytest.mark.parametrize("is_shared", [False, True])
def test_a_text_that_looks_like_a_cell_is_read(tmp_path, text, is_shared):
    path = write_xlsx(tmp_path / "x.xlsx", s=[["a"], [text]])
    if is_shared:
        inline = f"<is><t>{escape(text)}</t></is>"
        replace(path, b't="inlineStr">' + inline.encode(), b't="s"><v>0</v>')
        link = f'<Relationship Id="rId99" Type="{SHARED}" Target="sharedStrings.xml"/></Relationships>'
        replace(path, b"</Relationships>", link.encode(), "xl/_rels/workbook.xml.rels")
        strings = f'<sst xmlns="{MAIN}"><si><t>{escape(text)}</t></si></sst>'.encode()
        rewrite(path, lambda members: members.update({"xl/sharedStrings.xml": strings}))
    assert open_table(path).read().to_pylist() == [{"a": text}]


def rename_sheet(path: Path, member: str) -> Path:
    links = "xl/_rels/workbook.xml.rels"
    replace(path, b"/xl/worksheets/sheet1.xml", b"/" + member.encode(), links)
    return rewrite(path, lambda members: members.update({member: members.pop("xl/worksheets/sheet1.xml")}))


@pytest.mark.parametrize("member", ["xl/a.xml", "xl/worksheets/a.bin", "xl/chartsheets/a.PNG"])
def test_a_sheet_is_checked_whatever_its_member_is_called(tmp_path, member):
    path = rename_sheet(write_xlsx(tmp_path / "x.xlsx", s=[["a"], [1]]), member)
    rewrite(path, lambda members: members.update({"xl/media/b.png": b"\x89PNG", "xl/c.vml": b"<xml><br></xml>"}))
    assert open_table(path).read().to_pylist() == [{"a": 1}]
    path = replace(write_xlsx(tmp_path / "y.xlsx", s=[["a"], [1]]), b'r="A2"', b'r="XFD1048576"')
    with pytest.raises(SigmaDataError, match="its cells reach"):
        open_table(rename_sheet(path, member))
    path = replace(write_xlsx(tmp_path / "z.xlsx", s=[["a"], [1]]), b"</sheetData>", b"")
    with pytest.raises(SigmaDataError, match=r"z\.xlsx: cannot be read"):
        open_table(rename_sheet(path, member))


def test_a_binary_workbook_beside_that_of_xml_is_refused(tmp_path):
    path = write_xlsx(tmp_path / "x.xlsx", s=[["a"], [1]])
    rewrite(path, lambda members: members.update({"xl/workbook.xml": b"<x/>", "xl/workbook.bin": b""}))
    with pytest.raises(
        SigmaDataError, match=r"x\.xlsx: is a binary workbook of Excel, as in \.xlsb\. Save it as \.xlsx"
    ):
        open_table(path)


def test_rows_within_rows_count_all_their_cells(tmp_path):
    many = (b"<row>" + b"<c/>" * 1000) * 20 + b"</row>" * 20
    path = replace(write_xlsx(tmp_path / "x.xlsx", s=[["a"], [1]]), b"</sheetData>", many + b"</sheetData>")
    with pytest.raises(SigmaDataError, match=r"row 3 and column 20000, more than"):
        open_table(path, limit=1 << 20)


def test_a_tag_that_does_not_end_is_refused_in_time(tmp_path):
    begun = b"<c a='" + b"x" * (1 << 26) + b"'/></sheetData>"
    path = replace(write_xlsx(tmp_path / "x.xlsx", s=[["a"], [1]]), b"</sheetData>", begun)
    with pytest.raises(SigmaDataError, match=r"x\.xlsx: holds a tag of more than 16777216 bytes"):
        open_table(path)


@pytest.mark.parametrize(
    "rows",
    [
        [row(cell("a")), row(cell(1.0), repeated=1 << 40)],
        [row(cell("a")), row(cell(1.0, 1 << 30))],
        [row(cell("a")), row("<table:table-cell/>", repeated=1 << 30), row(cell(1.0))],
        [row(cell("a", 1 << 14)), row(cell(1.0), repeated=1 << 20)],
    ],
)
def test_repeated_cells_are_refused_before_they_are_unfolded(tmp_path, rows):
    with pytest.raises(SigmaDataError, match=r"x\.ods: its cells reach from the first to row"):
        open_table(write_ods(tmp_path / "x.ods", *rows))


def test_workbooks_that_unpack_to_too_much_are_refused(tmp_path):
    path = write_xlsx(tmp_path / "x.xlsx", s=[["a"], ["x" * 30_000]])
    replace(path, b"</sheetData>", b"<!-- -->" * (1 << 21) + b"</sheetData>")
    with pytest.raises(SigmaDataError, match=r"x\.xlsx: unpacks to more than 8388608 bytes"):
        open_table(path, limit=1 << 23)


def test_damaged_workbooks_are_refused(tmp_path):
    content = write_xlsx(tmp_path / "x.xlsx", s=[["a"], [1]]).read_bytes()
    (tmp_path / "x.xlsx").write_bytes(content[:300] + b"\0\0\0\0" + content[304:])
    with pytest.raises(SigmaDataError, match=r"x\.xlsx: cannot be read"):
        open_table(tmp_path / "x.xlsx")


@pytest.mark.parametrize("end", [60, 300, 500, -20])
def test_xml_that_is_cut_off_is_refused(tmp_path, end):
    path = write_ods(tmp_path / "x.ods", row(cell("a")), row(cell(1.0)))
    text = CONTENT.format(row(cell("a")) + row(cell(1.0)))[:end]
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("mimetype", "application/vnd.oasis.opendocument.spreadsheet")
        archive.writestr("content.xml", text)
        archive.writestr("META-INF/manifest.xml", MANIFEST)
    with pytest.raises(SigmaDataError, match=r"x\.ods: cannot be read"):
        open_table(path)
    path = replace(write_xlsx(tmp_path / "y.xlsx", s=[["a"], [1]]), b"</sheetData>", b"")
    with pytest.raises(SigmaDataError, match=r"y\.xlsx: cannot be read"):
        open_table(path)


def test_a_workbook_that_changes_meanwhile_is_refused(tmp_path):
    table = open_table(write_xlsx(tmp_path / "x.xlsx", s=[["a"], [1]]))
    write_xlsx(tmp_path / "x.xlsx", s=[["a"], [1], [2]])
    with pytest.raises(SigmaDataError, match="has changed while it was read"):
        table.read()


def test_without_calamine_it_is_said_how_to_install_it(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "python_calamine", None)
    with pytest.raises(SigmaPluginError, match=r'pip install "sigma-data\[spreadsheets\]"'):
        open_table(write_xlsx(tmp_path / "x.xlsx", s=[["a"], [1]]))


def test_durations_are_seconds_and_times_words(tmp_path):
    rows = [["d", "t"], [dt.timedelta(hours=30), dt.time(3, 4)]]
    table = open_table(write_xlsx(tmp_path / "x.xlsx", s=rows)).read()
    assert table.to_pylist() == [{"d": 108000.0, "t": "03:04:00"}]
    assert table.schema.types == [pa.float64(), pa.string()]


def test_an_archive_without_a_workbook_is_not_taken_for_one(tmp_path):
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("a.csv", "a\n1\n")
    (tmp_path / "x.xlsx").write_bytes(packed.getvalue())
    assert open_table(tmp_path / "x.xlsx").read().to_pylist() == [{"a": 1}]
