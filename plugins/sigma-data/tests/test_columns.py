from __future__ import annotations

import numpy as np
import pytest

from sigma_data import Column, Columns, CsvReader
from sigma_kernel import SigmaConfigError, SigmaDataError

TABLE = b"length,width,species,weight\n1,2,rose,10\n3,4,aster,20\n5,6,rose,30\n"


@pytest.fixture
def records(held):
    return CsvReader(text=("species",)).read(held(TABLE))


def test_columns_by_name_and_number_become_sections(records):
    sections = Columns(
        {"inputs": Column((1, "length")), "targets": Column("species"), "weights": Column(-1, dtype="int32")}
    ).extract(records)
    assert {name: (str(values.dtype), values.tolist()) for name, values in sections.items()} == {
        "inputs": ("float64", [[2, 1], [4, 3], [6, 5]]),
        "targets": ("StringDType()", ["rose", "aster", "rose"]),
        "weights": ("int32", [10, 20, 30]),
    }


def test_a_star_stands_for_all_remaining_columns(records):
    sections = Columns({"inputs": Column(("*",), scale=0.5), "targets": Column("species")}).extract(records)
    assert sections["inputs"].tolist() == [[0.5, 1, 5], [1.5, 2, 10], [2.5, 3, 15]]


def test_samples_can_be_reshaped(records):
    columns = Columns({"inputs": Column(("length", "width", "weight", 0), shape=(2, 2))})
    assert columns.extract(records)["inputs"][1].tolist() == [[3, 4], [20, 3]]
    with pytest.raises(SigmaConfigError, match=r"shape: section 'inputs' has 2 values a row, which do not make \[3\]"):
        Columns({"inputs": Column((0, 1), shape=(3,))}).extract(records)


def test_classes_that_float_precision_has_merged_are_refused():
    table = {"y": np.array([1.0, 2.0**53])}
    with pytest.raises(
        SigmaDataError, match="column 'y': row 1 holds 9007199254740992, and float64 cannot distinguish"
    ):
        Columns({"targets": Column("y", dtype="class")}).extract(table)
    kept = Columns({"targets": Column("y", dtype="class")}).extract({"y": np.array([2**53 + 1, 2**53])})
    assert kept["targets"].tolist() == [1, 0]


def test_integers_can_be_classes(records):
    sections = Columns({"targets": Column("weight", dtype="class")}).extract(records)
    assert sections["targets"].tolist() == [0, 1, 2]


def test_an_array_of_any_shape_counts_as_a_column(records):
    images = np.arange(12).reshape(3, 2, 2)
    assert Columns({"inputs": Column("values", shape=(4,))}).extract({"values": images})["inputs"].shape == (3, 4)


def test_an_unknown_column_is_reported_with_its_section_and_similar_names(records):
    with pytest.raises(SigmaDataError, match="section 'targets': there is no column 'specie'. Did you mean 'species'?"):
        Columns({"targets": Column("specie")}).extract(records)


def test_fractions_are_not_integers(records):
    with pytest.raises(
        SigmaDataError, match="section 'inputs', column 'length', row 0: 0.5 does not fit int32. Round it"
    ):
        Columns({"inputs": Column("length", dtype="int32", scale=0.5)}).extract(records)


def test_words_among_numbers_are_reported(records):
    with pytest.raises(SigmaDataError, match="section 'inputs', column 'species': holds words, such as 'rose'"):
        Columns({"inputs": Column(("length", "species"))}).extract(records)
    with pytest.raises(SigmaDataError, match="section 'inputs', column 'species': holds words, such as 'rose'"):
        Columns({"inputs": Column("species", dtype="float32")}).extract(records)


def test_fractions_are_not_classes(records):
    records["length"][1] = 0.5
    with pytest.raises(
        SigmaDataError, match="section 'targets', column 'length': row 1 holds 0.5, which is not a class"
    ):
        Columns({"targets": Column("length", dtype="class")}).extract(records)


def test_a_row_without_a_class_is_reported(held):
    records = CsvReader(text=("species",), missing="nan").read(held(b"a,species\n1,rose\n2,\n"))
    with pytest.raises(SigmaDataError, match="column 'species': row 1 has no class"):
        Columns({"targets": Column("species", dtype="class")}).extract(records)


def test_a_section_without_columns_is_reported(records):
    every = Column(("length", "width", "species", "weight"), dtype="class")
    with pytest.raises(SigmaDataError, match="section 'rest': there is no column left for it"):
        Columns({"inputs": every, "rest": Column("*")}).extract(records)
