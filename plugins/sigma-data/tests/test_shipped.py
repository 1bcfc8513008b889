from __future__ import annotations

import re
from hashlib import sha256
from importlib.resources import files

import pytest

from sigma_data import Digits, Iris, Wdbc

FOLDER = files("sigma_data") / "files"
SOURCES = (FOLDER / "SOURCES.md").read_text(encoding="utf-8")
HASHES = dict(re.findall(r"^\| `(\S+)` \| `([0-9a-f]{64})` \|$", SOURCES, re.MULTILINE))


def test_every_bundled_file_has_its_source_and_licence():
    described = dict(
        re.findall(r"^\| `(\S+)` \| [^|]+ \| [^|]+ \| (CC BY 4.0|MIT|public domain)", SOURCES, re.MULTILINE)
    )
    assert set(described) == {path.name for path in FOLDER.iterdir()} - {"SOURCES.md"}


@pytest.mark.parametrize("name", ["digits.csv.gz", "iris.csv.gz", "textures.tar.xz", "wdbc.csv.gz"])
def test_the_bundled_files_have_the_documented_checksums(name):
    assert sha256((FOLDER / name).read_bytes()).hexdigest() == HASHES[name]


def test_tables_know_the_names_of_their_columns():
    iris, wdbc = Iris()["training"], Wdbc()["training"]
    assert iris.column_names("inputs")[:2] == ("sepal length (cm)", "sepal width (cm)")
    assert len(wdbc.column_names("inputs")) == wdbc.sections["inputs"].shape[0]
    assert wdbc.column_names("inputs")[0] == "mean radius"
    assert Digits()["training"].column_names("inputs") == ()
