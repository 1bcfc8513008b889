"""Tables of many columns: long lines are plain text, and work grows with the columns, not with their square."""

from __future__ import annotations

import json
from pathlib import Path
from time import process_time

import numpy as np
import pyarrow as pa
import pytest

from sigma_data import File, Tabular
from sigma_data.encoded import EncoderMaker
from sigma_data.frames import check_names
from sigma_data.readers import delimited
from sigma_data.tables import open_table, text
from sigma_data.tables.text import TextTable
from sigma_kernel import SigmaDataError

NAMES = [f"column {i} {'x' * 60}" for i in range(1500)]  # more than the bytes that a dialect is found from


def write_wide(path: Path, mark: str = ",", names: list[str] = NAMES) -> np.ndarray:
    values = np.random.default_rng(0).integers(0, 64, (6, len(names))) / 64
    lines = [names, *([f"{value:.90f}" for value in row] for row in values)]
    path.write_text("".join(f"{mark.join(line)}\n" for line in lines))
    return values


@pytest.mark.parametrize("mark", [",", ";", "\t"])
def test_lines_that_are_longer_than_a_piece_of_the_head_are_plain(tmp_path, monkeypatch, mark):
    values = write_wide(tmp_path / "wide.csv", mark)
    monkeypatch.setattr(TextTable, "_read_carefully", None)
    table = open_table(tmp_path / "wide.csv").read()
    assert table.column_names == NAMES
    np.testing.assert_array_equal(np.stack([np.asarray(column) for column in table.columns], axis=1), values)


def test_a_line_that_is_longer_than_a_block_is_plain(tmp_path, monkeypatch):
    monkeypatch.setattr("sigma_data.readers.delimited.BLOCK", 1 << 10)
    monkeypatch.setattr("sigma_data.readers.delimited.WIDE", 1000)
    values = write_wide(tmp_path / "wide.csv")
    monkeypatch.setattr(TextTable, "_read_carefully", None)
    assert open_table(tmp_path / "wide.csv").read()[NAMES[-1]].to_pylist() == values[:, -1].tolist()


def test_a_cell_that_is_too_long_is_read_with_care(tmp_path, monkeypatch):
    (tmp_path / "long.csv").write_text(f"a,b\n1,{'x' * 200_000}\n")
    read = []
    monkeypatch.setattr(TextTable, "_read_carefully", lambda self: read.append(1))
    with pytest.raises(Exception, match="there is no row"):
        open_table(tmp_path / "long.csv")
    assert read == [1]


@pytest.mark.parametrize("words", ["some words of a long line ", "some long words, and many others of a text. "])
def test_of_one_long_line_of_words_a_small_head_is_looked_at(tmp_path, monkeypatch, words):
    (tmp_path / "novel.txt").write_text(words * 400_000)
    heads, detect = list[int](), text.detect
    monkeypatch.setattr(text, "detect", lambda head, **given: heads.append(len(head)) or detect(head, **given))
    with pytest.raises(SigmaDataError, match="more than 100000. Store it as rows"):
        open_table(tmp_path / "novel.txt")
    assert heads == [text.HEAD]


@pytest.mark.long
def test_twenty_thousand_columns_with_names_of_words_are_found(tmp_path):
    names = [f"value of the sensor {i}" for i in range(20_000)]
    values = np.random.default_rng(0).integers(0, 64, (3, len(names))) / 64
    lines = [names, *(map(str, row) for row in values)]
    (tmp_path / "wide.csv").write_text("".join(f"{';'.join(line)}\n".replace(".", ",") for line in lines))
    table = open_table(tmp_path / "wide.csv").read()
    assert table.column_names == names
    np.testing.assert_array_equal(np.stack([np.asarray(column) for column in table.columns], axis=1), values)


def test_names_are_looked_up_in_time_that_grows_with_their_number():
    names = [f"c{i}" for i in range(30_000)]
    table = open_table(pa.table([pa.array([1.0])] * len(names), names))
    before = process_time()
    check_names(dict.fromkeys(names), names, (), "table")
    assert sum(1 for _ in table.select(names)) == 1
    assert process_time() - before < 5  # the square took minutes


def test_equal_columns_share_an_encoder_and_its_description(tmp_path):
    write_wide(tmp_path / "wide.csv", names=[f"c{i}" for i in range(300)])
    data = Tabular(tmp_path / "wide.csv", "c0", targets="numbers")
    learned = data["training"].learned["frames"]["inputs"]
    assert len({json.dumps(column["encoder"]) for column in learned["columns"]}) == 1
    make = EncoderMaker().make
    assert make("number") is make("number")
    assert make({"type": "number", "log": True}) is make({"log": True, "type": "number"}) is not make("number")
    assert make({"type": "number", "log": True}).log


CELLS = {
    "whole": ["1", "-2", "3"], "real": ["1.5", "2", "-inf"], "gaps": ["1.5", "NA", "2"], "not one": ["1.5", "nan", "2"],
    "blank": ["1", "", "2"], "truths": ["true", "False", "TRUE"], "mixed truths": ["tRuE", "", "false"],
    "digits": ["0", "1", "1"], "words": ["a", "NA", "true"], "days": ["2024-01-01", "2024-02-01", ""],
    "no cell": ["", "none", "NA"], "long": ["90071992547409931", "1", "2"], "times": ["2024-01-01 10:00", "", "NULL"],
    "grades": ["1", "nan", "3"], "users": ["90071992547409931", "nan", "90071992547409933"], "far": ["1", "inf", "nan"],
    "late": ["1", "2", "x"], "later": ["1", "2", "NA"], "latest": ["true", "false", "1"],
}  # fmt: skip


WITH_NAN = {
    "users": ([2**53 + 1, None, 2**53 + 3], pa.int64()),
    "ids": ([2**60 + 1, None, -(2**53) - 1], pa.int64()),
    "grades": ([1, None, 3], pa.int64()),
    "floats": ([1.5, None, 2.5], pa.float64()),
    "far": ([1.0, float("inf"), float("-inf")], pa.float64()),
    "far and near": ([1.0, None, float("-inf")], pa.float64()),
    "gaps": ([None, None, None], pa.float64()),
}
GAPS_OF = dict.fromkeys(WITH_NAN, "nan") | {"users": "", "floats": "NaN"}


@pytest.mark.parametrize("width", [100, 4200])
def test_nan_among_whole_numbers_is_a_gap_however_many_columns_there_are(tmp_path, width):
    names = [*WITH_NAN, *(f"c{i}" for i in range(width - len(WITH_NAN)))]
    columns = [[GAPS_OF[name] if x is None else str(x) for x in values] for name, (values, _) in WITH_NAN.items()]
    lines = [names, *([*row, *["0.5"] * (width - len(row))] for row in zip(*columns, strict=True))]
    (tmp_path / "a.csv").write_text("".join(f"{','.join(line)}\n" for line in lines))
    table = open_table(tmp_path / "a.csv").read().select([*WITH_NAN])
    assert {name: (table[name].to_pylist(), table[name].type) for name in WITH_NAN} == WITH_NAN


@pytest.mark.parametrize("chunk", [1 << 22, 8, 200])
@pytest.mark.parametrize("fields", [[*CELLS], ["whole", "real"], ["later", "whole", "latest"]], ids=str)
def test_many_columns_have_the_kinds_and_values_that_few_have(tmp_path, monkeypatch, chunk, fields):
    lines = [fields, *(zip(*(CELLS[name] for name in fields), strict=True))]
    (tmp_path / "a.csv").write_text("".join(f"{','.join(line)}\n" for line in lines))
    monkeypatch.setattr(delimited, "CHUNK", chunk)
    monkeypatch.setattr(delimited, "ROW", 1)
    few = open_table(tmp_path / "a.csv").read()
    monkeypatch.setattr(delimited, "WIDE", 2)
    many = open_table(tmp_path / "a.csv").read()
    assert few.column_names == fields
    assert many.schema == few.schema
    assert many.to_pydict() == few.to_pydict()


def test_pieces_grow_with_the_columns(tmp_path):
    rows = 300
    for columns in (1000, 5000, 10_000):
        (tmp_path / "a.csv").write_text(",".join(["0.1234567"] * columns) + "\n")
        line = (tmp_path / "a.csv").read_text()
        (tmp_path / "a.csv").write_text(line * rows)
        count = len([*delimited.pieces(File(tmp_path / "a.csv"), "utf-8", 0, ",", columns)])
        assert count <= 6  # as many as there are for any number of columns, and not more for more of them
