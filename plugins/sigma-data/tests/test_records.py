from __future__ import annotations

import numpy as np
import pytest
from attrs import define

from sigma_data import BytesReader, Column, Columns, CsvReader, Field, Offsets, Records
from sigma_kernel import Extractor, Reader
from sigma_kernel.errors import SigmaComponentError


def test_any_source_reader_and_extractor_make_a_data_set(held):
    content = b"".join(bytes([i % 3, i, i + 1]) for i in range(10))
    extractor = Offsets({"targets": Field(0), "inputs": Field(1, shape=(2,), scale=0.5)})
    data = Records(held(content), BytesReader(3), extractor, split_by="block")
    assert data["training"].block(0)["inputs"][7].tolist() == [3.5, 4.0]
    assert data["validation"].block(0)["targets"].tolist() == [2, 0]


def test_csv_tables_use_the_same_sources_and_extractors(held):
    extractor = Columns({"inputs": Column(("*",)), "targets": Column("kind")})
    data = Records(held(b"a,b,kind\n1,2,x\n3,4,y\n"), CsvReader(text=("kind",)), extractor, split={"training": 1.0})
    assert data["training"].block(0)["targets"].tolist() == [0, 1]


def test_without_an_extractor_each_array_is_a_section(held):
    data = Records(held(b"inputs,targets\n1,2\n3,4\n"), CsvReader(), split={"training": 1.0})
    np.testing.assert_array_equal(data["training"].block(0)["targets"], [2, 4])


@define(eq=False)
class Held(Reader):
    """A reader that returns arrays of the user."""

    arrays: dict[str, np.ndarray]

    def read(self, source):
        return dict(self.arrays)


@define(eq=False)
class Halving(Extractor):
    """An extractor that writes to the records."""

    def extract(self, records):
        records["inputs"] *= 0.5
        return dict(records)


def test_an_extractor_that_writes_to_the_records_is_refused_by_name(held):
    arrays = {"inputs": np.ones((4, 2)), "targets": np.ones((4, 1))}
    with pytest.raises(SigmaComponentError, match=r"(?s)extractor .*Halving.*read-only.*Correct its code"):
        len(Records(held(b""), Held(arrays), Halving(), split_by="block")["training"])
    assert arrays["inputs"].min() == 1.0
