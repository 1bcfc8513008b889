"""A conformance suite for inspectors of data, to inherit in a plugin's tests.

::

    class TestMyInspector(InspectorSuite):
        def make(self) -> Inspector:
            return MyInspector()

        def place(self, folder: Path) -> Path:
            (folder / "songs.notes").write_text("c d e")
            return folder / "songs.notes"
"""

from __future__ import annotations

import json
import tomllib
from abc import abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest

from sigma_kernel.contracts import Inspector
from sigma_kernel.errors import SigmaConfigError
from sigma_testing.suite import Suite

UNKNOWN = "a-wish-that-nobody-has"


class InspectorSuite(Suite):
    """Conformance tests of an inspector: inherit, and override :meth:`make`, :meth:`place` and :attr:`wishes`."""

    wishes: Mapping[str, str] = {}  # what a draft needs, such as a target

    @abstractmethod
    def make(self) -> Inspector:
        """Return the inspector under test."""

    @abstractmethod
    def place(self, folder: Path) -> Path:
        """Return a file or folder of data that it takes, written into an empty folder."""

    @contextmanager
    def _open_place(self) -> Iterator[Path]:
        with TemporaryDirectory() as folder:
            yield self.place(Path(folder))

    def test_it_takes_its_own_data_and_no_others(self) -> None:
        """It takes data of its form, no empty folder, and no file of which the name says nothing."""
        with self._open_place() as place, TemporaryDirectory() as folder:
            (Path(folder) / "unnamed").write_bytes(b"\0")
            assert self.make().takes(place) is True
            assert self.make().takes(Path(folder) / "unnamed") is False
            (Path(folder) / "unnamed").unlink()
            assert self.make().takes(Path(folder)) is False

    def test_an_inspection_is_one_line_a_table_sentences_and_json(self) -> None:
        """The head is one line, all rows of the table have its width, findings are sentences, the document is JSON."""
        with self._open_place() as place:
            inspection = self.make().inspect(place)
        head, *rows = inspection.table
        assert inspection.head.strip()
        assert "\n" not in inspection.head
        assert rows
        assert {len(row) for row in rows} == {len(head)}
        assert all(isinstance(cell, str) for row in inspection.table for cell in row)
        assert all(text.endswith(".") and "\n" not in text for text in inspection.findings)
        assert json.loads(json.dumps(inspection.document, allow_nan=False)) == inspection.document

    def test_samples_are_pictures_in_bytes(self) -> None:
        """Samples, if there are any, are uint8, of shape (pictures, 3, height, width), at least one of each label."""
        with self._open_place() as place:
            samples = self.make().inspect(place).samples
        assert all(values.dtype == np.uint8 for values in samples.values())
        assert all(values.ndim == 4 and values.shape[1] == 3 and values.size for values in samples.values())

    def test_a_draft_is_a_configuration_of_the_data(self) -> None:
        """The text is TOML of the current format, names the run and the place, and notes are sentences."""
        with self._open_place() as place:
            draft = self.make().draft(place, "somewhere/else", self.wishes)
        tables = tomllib.loads(draft.text)
        assert tables["format"] == 1
        assert tables["run"]["name"] == draft.name
        assert "somewhere/else" in draft.text
        assert {"data", "network", "trainer"} <= {*tables}
        assert all(text.endswith(".") and "\n" not in text for text in draft.notes)

    def test_looking_changes_nothing(self) -> None:
        """Inspecting and drafting leave the data as they were, and the same draft follows again."""
        with self._open_place() as place:
            files = sorted(path for path in [place, *place.rglob("*")] if path.is_file())
            before = [path.read_bytes() for path in files]
            first = self.make().draft(place, "here", self.wishes)
            self.make().inspect(place)
            assert self.make().draft(place, "here", self.wishes) == first
            assert [path.read_bytes() for path in files] == before

    def test_an_unknown_wish_is_refused(self) -> None:
        """A wish that does not fit raises SigmaConfigError, which names it."""
        with self._open_place() as place, pytest.raises(SigmaConfigError, match=UNKNOWN):
            self.make().draft(place, "here", {**self.wishes, UNKNOWN: "x"})

    def test_a_cache_that_is_not_there_has_no_entries(self) -> None:
        """Entries are listed without a folder of the cache, and in an empty one."""
        with TemporaryDirectory() as folder:
            assert [*self.make().list_cached(Path(folder) / "cache")] == []
            assert [*self.make().list_cached(Path(folder))] == []
