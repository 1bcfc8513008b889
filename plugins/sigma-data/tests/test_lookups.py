"""Places among many categories, one by one and at once, are those that pandas finds; tables are made once."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from sigma_data import IndexEncoder, OrdinalEncoder, TargetMeanEncoder
from sigma_data.encoders.columns import MANY, place_categories
from sigma_data.encoders.lookups import FEW, tabulate_categories

COUNT = MANY + 10
KINDS: dict[str, list[Any]] = {
    "words": [f"c{number}" for number in range(COUNT)],
    "whole numbers": [*range(-5, COUNT - 5)],
    "numbers": [number / 4 for number in range(COUNT)],
}


@pytest.mark.parametrize("rows", [1, COUNT // FEW, COUNT])
@pytest.mark.parametrize("kind", KINDS)
def test_places_are_those_of_pandas(kind: str, rows: int) -> None:
    categories = KINDS[kind]
    draw = np.random.default_rng(rows)
    values = [categories[i] for i in draw.integers(0, COUNT, rows)]
    unseen = type(categories[0])("9999999")
    for some in (values, [*values[1:], None], [*values[1:], unseen]):
        expected = pd.Index(categories, dtype=object).get_indexer(pd.Index(some, dtype=object))
        assert place_categories(pa.array(some, pa.array(categories).type), categories).tolist() == expected.tolist()


@pytest.mark.parametrize("kind", KINDS)
def test_few_rows_and_many_get_the_same_places(kind: str) -> None:
    categories = [*KINDS[kind], KINDS[kind][3]]  # one is there twice
    column = pa.array([*categories[:50], None])
    all_at_once = place_categories(pa.concat_arrays([column] * 200), categories)
    np.testing.assert_array_equal(place_categories(column, categories), all_at_once[:51])
    assert all_at_once[3] == 3


def test_numbers_are_compared_with_words_by_their_text_and_zeros_by_their_sign() -> None:
    words = [*map(str, range(COUNT))]
    assert place_categories(pa.array([7, 70_000]), words).tolist() == [7, -1]
    zeros = [-0.0, 0.0, *map(float, range(1, COUNT))]
    for rows in (1, COUNT):
        assert place_categories(pa.array([0.0] * rows), zeros)[0] == place_categories(pa.array([0.0]), zeros[:9])[0]


def test_a_table_is_made_once_for_a_list() -> None:
    categories = KINDS["words"].copy()
    table = tabulate_categories(categories)
    assert tabulate_categories(categories) is table
    assert tabulate_categories(categories.copy()) is not table


@pytest.mark.parametrize("encoder", [IndexEncoder(), OrdinalEncoder(), TargetMeanEncoder()])
def test_a_row_is_encoded_as_among_many_and_by_another_state_otherwise(encoder: Any) -> None:
    column, draw = pa.array(KINDS["words"]), np.random.default_rng(0)
    states = [encoder.fit([part], [draw.normal(size=len(part))]) for part in (column, column[: COUNT - 4][::-1])]
    for state in states:
        whole = encoder.apply(column[: COUNT - 4], state)
        for row in (0, 17, COUNT - 5):
            for _ in range(2):
                np.testing.assert_array_equal(encoder.apply(column[row : row + 1], state)[0], whole[row])
