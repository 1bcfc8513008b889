from __future__ import annotations

import numpy as np

from sigma_data import BytesReader, Column, Columns, CsvReader, Field, Offsets, Records


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
