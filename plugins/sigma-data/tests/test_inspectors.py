"""The inspector of tables."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from sigma_data.examining.inspecting import DataInspector
from sigma_data.profiling.inspectors import TableInspector
from sigma_kernel import Inspector, SigmaConfigError, SigmaDataError
from sigma_testing import InspectorSuite

ROWS = "".join(f"r{i},{i % 7},{'red' if i % 3 else 'blue'},{i * 1.5},{'' if i % 9 else 4}\n" for i in range(90))
TEXT = "id,size,colour,price,gap\n" + ROWS


class TestTableInspector(InspectorSuite):
    wishes: Mapping[str, str] = {"target": "price"}

    def make(self) -> Inspector:
        return DataInspector()

    def place(self, folder: Path) -> Path:
        (folder / "houses.csv").write_text(TEXT)
        return folder / "houses.csv"


@pytest.mark.parametrize(
    "name", ["a.csv", "a.CSV", "a.tsv.gz", "a.parquet", "a.feather", "a.jsonl.zst", "a.orc", "a.db", "a.xlsx", "a.ODS"]
)
def test_names_of_tables_are_known(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(b"x")
    for inspector in (TableInspector(), DataInspector()):
        assert inspector.takes(tmp_path / name)
        assert inspector.takes(tmp_path)


@pytest.mark.parametrize("name", ["a.png", "a.gz", "a", ".csv", "a.toml"])
def test_other_names_are_not(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(b"x")
    assert not TableInspector().takes(tmp_path / name)


def test_what_to_predict_must_be_said(tmp_path: Path) -> None:
    (tmp_path / "houses.csv").write_text(TEXT)
    with pytest.raises(
        SigmaConfigError,
        match=r"Name it: --target 'gap', or from Python trainer\.target = 'gap'\. There are",
    ):
        TableInspector().draft(tmp_path / "houses.csv", "houses.csv", {})


def test_a_question_about_a_text_says_how_running_text_is_read(tmp_path: Path) -> None:
    place = tmp_path / "lists.txt"
    place.write_text(f"{'a line that is far too long to be a name ' * 20}\n1\n3\n")
    with pytest.raises(SigmaConfigError, match='If it is running text, write dataset = "texts" and folder = ') as error:
        TableInspector().draft(place, "lists.txt", {})
    assert "--target COLUMN, or from Python trainer.target = COLUMN. There are: a line" in str(error.value)
    assert len(str(error.value)) < 900


def test_a_damaged_table_is_refused_with_its_name(tmp_path: Path) -> None:
    (tmp_path / "houses.parquet").write_bytes(b"PAR1 and no more")
    with pytest.raises(SigmaDataError, match=r"houses\.parquet"):
        TableInspector().inspect(tmp_path / "houses.parquet")


def test_findings_name_constant_columns_and_equal_rows(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a,b,c\n1,5,x\n1,5,x\n2,5,y\n")
    findings = TableInspector().inspect(tmp_path / "t.csv").findings
    assert "nothing can be learned from 'b': one value in all rows, or none." in findings
    assert "1 row is equal to an earlier one." in findings
