"""The file of the data set has its source, its licence and its checksum."""

from __future__ import annotations

import re
from hashlib import sha256
from importlib.resources import files

FOLDER = files("sigma_text") / "files"
SOURCES = (FOLDER / "SOURCES.md").read_text(encoding="utf-8")


def test_the_bundled_file_has_its_source_and_the_documented_checksum() -> None:
    described = re.findall(r"^\| `(\S+)` \| [^|]+ \| [^|]+ \| public domain", SOURCES, re.MULTILINE)
    hashes = dict(re.findall(r"^\| `(\S+)` \| `([0-9a-f]{64})` \|$", SOURCES, re.MULTILINE))
    there = {path.name for path in FOLDER.iterdir()} - {"SOURCES.md"}
    assert set(described) == set(hashes) == there == {"shakespeare.txt.gz"}
    assert {name: sha256((FOLDER / name).read_bytes()).hexdigest() for name in there} == hashes
