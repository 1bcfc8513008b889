"""What encoders compute: closed forms, and numbers of scikit-learn 1.9 where it has a counterpart."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, date, datetime
from decimal import Decimal
from itertools import pairwise, product
from math import cos, log1p, pi, sin
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from sigma_data import (
    BooleanEncoder,
    DateEncoder,
    HashingEncoder,
    IndexEncoder,
    NumberEncoder,
    OneHotEncoder,
    OrdinalEncoder,
    TargetMeanEncoder,
)
from sigma_data.encoders import columns, number
from sigma_data.encoders.hashing import hash_words
from sigma_kernel import Encoder, SigmaConfigError, SigmaDataError

WORDS = pa.array(["red", "blue", None, "red", "green", "red", "blue"])


def encode(encoder: Encoder, column: Any, rows: Any = None) -> list[list[float]]:
    """Return what a column, or other rows, become after the encoder has been fitted to the column."""
    encoded: list[list[float]] = encoder.apply(column if rows is None else rows, encoder.fit([column])).tolist()
    return encoded


def names(encoder: Encoder, column: Any) -> tuple[str, ...]:
    return encoder.names("x", encoder.fit([column]))


# -- numbers -----------------------------------------------------------------------------------------------------------
def test_numbers_have_mean_0_and_deviation_1() -> None:
    assert encode(NumberEncoder(), pa.array([1.0, 3.0])) == [[-1.0], [1.0]]
    assert encode(NumberEncoder(), pa.array([7, 7])) == [[0.0], [0.0]]


def test_the_largest_numbers_are_encoded_where_their_statistics_are_finite():
    large = pa.array([1.7e308, 1.5e308, None])
    assert encode(NumberEncoder(scale="none"), large) == [[1.7e308], [1.5e308], [1.6e308]]
    assert encode(NumberEncoder(), pa.array([1.7e308] * 3)) == [[0.0]] * 3
    logs = np.log1p([1.7e308, 1.5e308, 1.6e308])
    wanted = (logs - logs[:2].mean()) / logs[:2].std()
    np.testing.assert_allclose(np.ravel(encode(NumberEncoder(log=True), large)), wanted, rtol=1e-9, atol=1e-9)


def test_a_number_that_is_too_large_for_the_scale_is_refused_with_its_row():
    encoder, column = NumberEncoder(), pa.array([0.001, 0.002])
    state = encoder.fit([column])
    for rows in ([0.001, 1.7e308], [0.001, -1.7e308, 1.7e308]):
        with pytest.raises(
            SigmaDataError, match=r"row 1: -?1.7e\+308 is too large to be scaled as the training rows are"
        ):
            encoder.apply(pa.array(rows), state)
    with pytest.raises(SigmaDataError, match=r"row 2: 1.7e\+308 is too large"):
        encoder.apply(pa.array([1.0, 2.0, 1.7e308]), {"fill": 0.0, "centre": -1e308, "width": 2.0})


def test_infinite_values_count_as_missing_where_that_is_set():
    given = pa.array([1.0, float("inf"), None, 3.0, float("-inf"), 8.0])
    encoder = NumberEncoder(infinite="missing", missing="median", scale="none", indicator=True)
    assert encode(encoder, given) == [[1, 0], [3, 1], [3, 1], [3, 0], [3, 1], [8, 0]]
    with pytest.raises(SigmaDataError, match="row 1: there is no value"):
        encode(NumberEncoder(infinite="missing", missing="refuse"), given)


@pytest.mark.parametrize(("missing", "fill"), [("mean", 3.5), ("median", 2.5), ("most_frequent", 2.0), (-1.0, -1.0)])
def test_a_missing_number_is_replaced(missing: Any, fill: float) -> None:
    column = pa.array([2.0, 2.0, None, 3.0, 7.0])
    encoder = NumberEncoder(missing=missing, scale="none", indicator=True)
    assert encode(encoder, column)[2:4] == [[fill, 1.0], [3.0, 0.0]]
    assert encode(encoder, column, pa.nulls(1, pa.float64())) == [[fill, 1.0]]
    assert names(encoder, column) == ("x", "x is missing")


@pytest.mark.parametrize("rows", [1, 2, 3, 10, 11, 1000, 1001])
@pytest.mark.parametrize("held", [0, 5, 1 << 20])
def test_the_median_is_that_of_numpy_to_the_bit(monkeypatch: pytest.MonkeyPatch, rows: int, held: int) -> None:
    monkeypatch.setattr(number, "MOST", held)
    for values in (np.random.default_rng(rows).normal(size=rows), np.random.default_rng(rows).integers(0, 3, rows) / 3):
        parts = [pa.array(part) for part in np.array_split(values, 3)]
        for encoder in (NumberEncoder(), NumberEncoder(clip=0.1, scale="robust"), NumberEncoder(missing="mean")):
            state = encoder.fit(parts)
            assert state == encoder.fit([pa.array(values)])
            assert state["fill"] == (np.mean(values) if encoder.missing == "mean" else np.median(values))


def test_the_statistics_of_a_scale_leave_missing_values_out_as_in_scikit_learn() -> None:
    column = pa.array([1.0, None, 2.0, 4.0, 9.0])
    standard = [-0.9733285267845753, 0.0, -0.6488856845230502, 0.0, 1.6222142113076254]  # StandardScaler
    robust = [-0.5714285714285714, 0.2857142857142857, -0.2857142857142857, 0.2857142857142857, 1.7142857142857142]
    np.testing.assert_allclose(encode(NumberEncoder(missing="mean"), column), np.array(standard)[:, None], atol=1e-15)
    np.testing.assert_allclose(
        encode(NumberEncoder(missing="mean", scale="robust"), column), np.array(robust)[:, None], rtol=1e-15
    )  # RobustScaler


def test_numbers_are_limited_before_their_logarithm_is_taken() -> None:
    column = pa.array([-9.0, 0.0, 1.0, 99.0])
    encoder = NumberEncoder(clip=(-3.0, 3.0), log=True, scale="none")
    assert encode(encoder, column) == [[-log1p(3)], [0.0], [log1p(1)], [log1p(3)]]
    assert encode(NumberEncoder(clip=0.25, scale="none"), pa.array([0.0, 1.0, 2.0, 3.0, 400.0])) == [
        [1.0], [1.0], [2.0], [3.0], [3.0]
    ]  # fmt: skip


def test_quantiles_become_normal_scores() -> None:
    encoded = np.array(encode(NumberEncoder(scale="quantile"), pa.array(np.exp(np.arange(101.0) / 10))))[:, 0]
    np.testing.assert_allclose(encoded[[25, 50, 75]], [-0.6744897501960817, 0.0, 0.6744897501960817], atol=1e-12)


# -- booleans ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "column",
    [pa.array([True, False]), pa.array(["YES", "no"]), pa.array([1, 0]), pa.array([1.0, 0.0]), pa.array(["t", "F"])],
)
def test_words_for_true_and_false_become_1_and_0(column: Any) -> None:
    assert encode(BooleanEncoder(), column) == [[1.0], [0.0]]


def test_any_two_words_are_a_boolean_if_one_is_named() -> None:
    column = pa.array(["M", "B", "m"])
    assert encode(BooleanEncoder("m"), column) == [[1.0], [0.0], [1.0]]


def test_a_missing_boolean_is_replaced() -> None:
    column = pa.array([True, True, None, False])
    assert encode(BooleanEncoder(missing="mean"), column)[2] == [2 / 3]
    assert encode(BooleanEncoder(missing="most_frequent", indicator=True), column)[2] == [1.0, 1.0]
    assert encode(BooleanEncoder(missing=0.5), column)[2] == [0.5]


# -- categories --------------------------------------------------------------------------------------------------------
def test_rare_and_missing_categories_have_a_number_if_training_rows_have_them() -> None:
    encoder = OneHotEncoder(least=2)
    assert names(encoder, WORDS) == ("x=blue", "x=red", "x is other", "x is missing")
    assert encode(encoder, WORDS, pa.array(["red", "green", None, "pink", "blue"])) == [
        [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1], [0, 0, 1, 0], [1, 0, 0, 0]
    ]  # fmt: skip


def test_an_unseen_category_is_zeros_if_no_training_row_is_other() -> None:
    column = pa.array([10, 9, 10])
    assert names(OneHotEncoder(), column) == ("x=9", "x=10")
    assert encode(OneHotEncoder(), column, pa.array([11, None, 9])) == [[0, 0], [0, 0], [1, 0]]


@pytest.mark.parametrize("rows", [pa.array(["9", "10"]), pa.array([9.0, 10.0]), pa.array([9, 10], pa.int8())])
def test_a_category_is_the_same_in_columns_of_other_types(rows: Any) -> None:
    assert encode(IndexEncoder(), pa.array([10, 9]), rows) == [[1], [2]]
    assert encode(IndexEncoder(), pa.array(["10", "9"]), rows) == [[2], [1]]


def test_ranks_follow_the_order() -> None:
    column = pa.array(["low", "high", "low", "middle"])
    assert encode(OrdinalEncoder(["low", "middle", "high"]), column) == [[0], [2], [0], [1]]
    assert encode(OrdinalEncoder(), column) == [[1], [0], [1], [2]]
    assert encode(OrdinalEncoder(), pa.array([10, 9, 30])) == [[1], [0], [2]]


def test_missing_ranks_are_the_median_of_the_training_rows() -> None:
    encoder = OrdinalEncoder(["low", "middle", "high"], missing="median", unseen="missing")
    column = pa.array(["low", "high", None, "high", "high"])
    assert encode(encoder, column, pa.array([None, "huge", "middle"])) == [[2], [2], [1]]
    assert encode(OrdinalEncoder(missing="median"), pa.array(["a", "a", "a", "b", "c", None]))[-1] == [0]
    assert encode(OrdinalEncoder(missing=-1), pa.array(["a", None])) == [[0], [-1]]


def test_indices_begin_at_1_for_an_embedding() -> None:
    encoder = IndexEncoder(least=2)
    encoded = encoder.apply(pa.array(["red", "blue", "green", None, "pink"]), encoder.fit([WORDS]))
    assert (encoded.dtype, encoded[:, 0].tolist()) == (np.int32, [2, 1, 0, 0, 0])


def test_categories_are_counted_over_many_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(columns, "ROWS", 5)
    drawn = np.random.default_rng(0).integers(0, 400, 3000)
    values, counts, missing = columns.count_categories(columns.read_batches([pa.array(drawn)], columns.read_categories))
    wanted = np.unique(drawn, return_counts=True)
    assert (values.to_pylist(), counts.tolist(), missing) == (wanted[0].tolist(), wanted[1].tolist(), 0)


def test_a_column_of_many_batches_has_the_same_state_for_every_layout(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(columns, "ROWS", 7)
    drawn = np.random.default_rng(0).normal(size=100)
    column, targets = pa.array(drawn), drawn**2
    for cuts in ([], [50], [3, 3, 99], range(1, 100)):
        ends = [0, *cuts, 100]
        parts = [slice(begin, end) for begin, end in pairwise(ends)]
        times = pa.array((drawn * 1e4).astype("datetime64[s]"))
        for encoder, rows in ((NumberEncoder(), column), (DateEncoder(), times), (TargetMeanEncoder(), column)):
            state = encoder.fit([rows[part] for part in parts], [targets[part] for part in parts])
            assert state == encoder.fit([rows], [targets])


# -- hashes ------------------------------------------------------------------------------------------------------------
def mixed(number: int) -> int:
    """Return the hash of SplitMix64, with the integers of Python."""
    bits = (number + 0x9E3779B97F4A7C15) % 2**64
    bits = (bits ^ bits >> 30) * 0xBF58476D1CE4E5B9 % 2**64
    bits = (bits ^ bits >> 27) * 0x94D049BB133111EB % 2**64
    return bits ^ bits >> 31


def hash_word(word: str) -> int:
    letters = word.encode()
    total = sum(mixed(letter) * pow(0x9E3779B97F4A7C15, place + 1, 2**64) for place, letter in enumerate(letters))
    return mixed(total % 2**64 ^ mixed(len(letters)))


def test_a_hash_is_the_same_in_every_process() -> None:
    words = ["", "a", "b", "ab", "ba", "straße", "a" * 1000, "a" * 1001]
    code = (
        "import pyarrow as pa; from sigma_data.encoders.hashing import hash_words; "
        f"print(hash_words(pa.array({words!r})).tolist())"
    )
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    hashes = hash_words(pa.array(words)).tolist()
    assert printed.strip() == str(hashes)
    assert len({*hashes}) == len(words)
    assert hashes == [*map(hash_word, words)]


def test_hashes_do_not_depend_on_the_words_beside() -> None:
    words = [f"word {i}" * (i % 7) for i in range(500)]
    array = pa.array(["before", *words])[1:]
    assert hash_words(array).tolist() == [hash_words(pa.array([word]))[0] for word in words]


def test_categories_are_spread_over_all_places_with_both_signs() -> None:
    encoded = np.array(encode(HashingEncoder(8), pa.array([f"user {i}" for i in range(8000)])))
    assert (np.abs(encoded).sum(axis=1) == 1).all()
    np.testing.assert_allclose(np.abs(encoded).sum(axis=0), 1000, atol=4 * np.sqrt(1000 * 7 / 8))  # 4 deviations
    assert abs(encoded.sum()) < 4 * np.sqrt(8000)
    assert encode(HashingEncoder(8, signed=False), pa.array(["a", None])) == [[0] * 2 + [1] + [0] * 5, [0] * 8]


# -- targets -----------------------------------------------------------------------------------------------------------
def test_a_category_is_its_mean_target_drawn_to_that_of_all_rows() -> None:
    encoder = TargetMeanEncoder(smoothing=2.0)
    column, targets = pa.array(["a", "a", "b", None]), np.array([1.0, 2.0, 5.0, 0.0])
    state = encoder.fit([column], [targets])
    encoded = encoder.apply(pa.array(["a", "b", None, "new"]), state)[:, 0]
    assert encoded.tolist() == [(3 + 2 * 2) / 4, (5 + 2 * 2) / 3, (0 + 2 * 2) / 3, 2.0]


def test_classes_have_a_probability_each_and_two_classes_that_of_the_second() -> None:
    encoder, column = TargetMeanEncoder(smoothing=1e-12), pa.array(["a", "a", "b"])
    for targets, wanted in (([0, 1, 1], [[0.5], [1.0]]), ([0, 2, 1], [[0.5, 0.0, 0.5], [0.0, 1.0, 0.0]])):
        state = encoder.fit([column], [np.array(targets)])
        np.testing.assert_allclose(encoder.apply(column[1:], state), wanted, atol=1e-9)
        assert len(encoder.names("x", state)) == len(wanted[0])


def test_a_training_row_says_nothing_of_its_own_target() -> None:
    encoder, rows = TargetMeanEncoder(), np.arange(40)
    column = pa.array([f"c{i % 7}" for i in rows])
    targets = np.random.default_rng(0).normal(size=40)
    encoded = encoder.apply_training(column, encoder.fit([column], [targets]), rows)
    for row in rows:
        changed = targets + 100.0 * (rows == row)
        state = encoder.fit([column], [changed])
        np.testing.assert_allclose(encoder.apply_training(column, state, rows)[row], encoded[row], rtol=1e-12)
        assert abs(encoder.apply(column, state)[row] - encoder.apply(column, encoder.fit([column], [targets]))[row]) > 1


def test_a_training_row_is_what_an_encoder_of_the_other_folds_makes_of_it() -> None:
    encoder, rows = TargetMeanEncoder(folds=3), np.arange(60)
    column = pa.array([f"c{i % 5}" for i in rows])
    targets = np.random.default_rng(1).normal(size=60)
    encoded = encoder.apply_training(column, encoder.fit([column], [targets]), rows)
    folds = encoder._fold(rows)
    assert {*folds.tolist()} == {0, 1, 2}
    for fold in range(3):
        others = encoder.fit([column.filter(pa.array(folds != fold))], [targets[folds != fold]])
        np.testing.assert_allclose(encoded[folds == fold], encoder.apply(column, others)[folds == fold], rtol=1e-12)


# -- dates -------------------------------------------------------------------------------------------------------------
def wave(share: float) -> list[float]:
    return [sin(2 * pi * share), cos(2 * pi * share)]


def test_parts_of_a_date_are_shares_of_their_cycles() -> None:
    encoder = DateEncoder(["month", "day", "weekday", "weekend"])
    encoded = encode(encoder, pa.array([date(2024, 2, 29), date(2024, 3, 31)]))  # a Thursday and a Sunday
    np.testing.assert_allclose(encoded[0], [*wave(1 / 12), *wave(28 / 29), *wave(3 / 7), 0.0], atol=1e-12)
    np.testing.assert_allclose(encoded[1], [*wave(2 / 12), *wave(30 / 31), *wave(6 / 7), 1.0], atol=1e-12)
    assert encoder.names("x", encoder.fit([pa.array([date(2024, 1, 1)])])) == (
        "x month sine", "x month cosine", "x day sine", "x day cosine", "x weekday sine", "x weekday cosine",
        "x weekend",
    )  # fmt: skip


def test_a_weekend_is_saturday_and_sunday() -> None:
    week = pa.array([date(2024, 3, day) for day in range(4, 11)])  # from a Monday on
    assert encode(DateEncoder(["weekend"]), week) == [[0]] * 5 + [[1]] * 2


def test_parts_that_do_not_differ_are_left_out() -> None:
    years = pa.array([date(2001, 1, 1), date(2007, 1, 1)])  # both Mondays
    assert names(DateEncoder(), years) == ("x elapsed",)
    assert encode(DateEncoder(), years) == [[-1.0], [1.0]]
    hours = pa.array([datetime(2024, 3, 1, 6), datetime(2024, 3, 1, 12)])
    assert names(DateEncoder(), hours) == ("x hour sine", "x hour cosine", "x elapsed")


@pytest.mark.parametrize(
    ("column", "zone", "hour"),
    [
        (pa.array(["2024-07-01 12:30"]), "", 12.5),
        (pa.array(["2024-07-01 12:30:00.1234567"]), "Europe/Berlin", 12.5),
        (pa.array(["2024-07-01T12:30:00Z"]), "Europe/Berlin", 14.5),
        (pa.array(["2024-07-01 12:30:00+05:30"]), "", 7.0),
        (pa.array(["2024-01-01T12:30:00Z"]), "Europe/Berlin", 13.5),
        (pa.array([datetime(2024, 7, 1, 12, 30)]), "Europe/Berlin", 12.5),
        (pa.array([datetime(2024, 7, 1, 12, 30, tzinfo=UTC)]), "America/New_York", 8.5),
        (pa.array([datetime(2024, 7, 1, 12, 30, tzinfo=UTC)], pa.timestamp("s", "Asia/Tokyo")), "", 21.5),
    ],
)
def test_times_with_an_offset_are_those_of_the_zone(column: Any, zone: str, hour: float) -> None:
    np.testing.assert_allclose(encode(DateEncoder(["hour"], zone), column), [wave(hour / 24)], atol=1e-4)


def test_dates_before_1970_count_backwards() -> None:
    column = pa.array(["1969-12-31 18:00", "1970-01-01 06:00"])
    assert encode(DateEncoder(["elapsed"]), column) == [[-1.0], [1.0]]
    np.testing.assert_allclose(encode(DateEncoder(["hour"]), column)[0], wave(0.75), atol=1e-12)


def test_a_missing_date_is_zeros() -> None:
    column = pa.array(["2024-03-31", None])
    assert encode(DateEncoder(["weekday", "elapsed"], missing="zero", indicator=True), column)[1] == [0, 0, 0, 1]


# -- errors ------------------------------------------------------------------------------------------------------------
NULL = "row 2: there is no value. Enter one, "
LARGE = "its numbers are so large that their mean or spread exceeds float64. Correct them, or "
ERRORS: list[tuple[Encoder, Any, str]] = [
    (NumberEncoder("refuse"), [1.0, 2.0, None], NULL + "set missing = 'median' or another replacement,"),
    (NumberEncoder(), ["1", "2", "x"], "row 2: 'x' is not a number that float64 holds. Correct it, or leave the"),
    (NumberEncoder(), [1, 2**53 + 1], "row 1: 9007199254740993 is not a number that float64 holds. Correct it,"),
    (NumberEncoder(), [1.0, float("-inf")], "row 1: -inf is not finite. Correct it, leave the row out, or set"),
    (NumberEncoder(), [1.7e308, -1.7e308, 3.5], LARGE + "set log = true or scale = 'none'."),
    (NumberEncoder(), [1e200, 0.0], LARGE),
    (NumberEncoder(scale="robust"), [1.7e308, -1.7e308] * 9, LARGE + "set log = true or scale = 'none'."),
    (NumberEncoder(missing="mean", scale="none"), [1.7e308, 1.6e308], LARGE + "set missing = 'median'."),
    (NumberEncoder(missing="mean"), [None, None], "no row has a value. Leave the column out."),
    (NumberEncoder(missing="mean"), [[1.0], [2.0]], "row 0: [1.0] is not a number that float64 holds."),
    (BooleanEncoder(missing="refuse"), [True, False, None], NULL + "set missing = 'most_frequent' or another"),
    (BooleanEncoder(), ["yes", "no", "maybe"], "row 2: 'maybe' is not 'true' or 'false'. Correct it, or leave the row"),
    (BooleanEncoder("m"), ["M", "B", "x"], "row 2: 'x' is not 'm' or 'b'. Correct it, or leave the row out."),
    (BooleanEncoder(missing="mean"), [None], "no row has a value."),
    (OneHotEncoder(missing="refuse"), ["a", "b", None], NULL + "set missing = 'category', or leave the row out."),
    (OneHotEncoder(most=2), ["a", "b", "c"], "there are 3 categories, and most is 2. Increase least, or use"),
    (OneHotEncoder(), [None], "no row has a value."),
    (OneHotEncoder(), [["a"]], "row 0: ['a'] is not a category. Correct it, or leave the row out."),
    (OrdinalEncoder(), ["a", "b", None], NULL + "set missing = 'median' or a rank, or leave the row out."),
    (OrdinalEncoder(["a", "b"]), ["a", "b", "{}"], "row 2: '{}' is not one of the 2 categories of the training rows:"),
    (OrdinalEncoder(), [None], "row 0: there is no value."),
    (IndexEncoder(), [None], "no row has a value."),
    (TargetMeanEncoder(), ["a"], "target_mean: there are no targets to learn from. Use another encoder."),
    (DateEncoder(missing="refuse"), ["2024-02-28", "2024-02-29", None], NULL + "set missing = 'zero', or leave"),
    (DateEncoder(), ["2024-02-28", "2024-02-30"], "row 1: '2024-02-30' is no date of the form 2024-03-31 or"),
    (DateEncoder(), ["2024-02-28", "2024-02-28 10:00Z"], "row 1: '2024-02-28 10:00Z' is no date of the form"),
    (DateEncoder(), [1.5], "row 0: 1.5 is no date. Correct it, or leave the row out."),
    (DateEncoder(missing="zero"), pa.nulls(2, pa.date32()), "no row has a value."),
]  # fmt: skip


@pytest.mark.parametrize(("encoder", "column", "message"), ERRORS)
def test_values_that_cannot_be_learned_from_are_refused_with_their_row(
    encoder: Encoder, column: Any, message: str
) -> None:
    with pytest.raises((SigmaDataError, SigmaConfigError)) as error:
        encoder.fit([pa.array(column)])
    assert str(error.value).startswith(message)


def test_a_row_is_counted_over_all_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(columns, "ROWS", 2)
    with pytest.raises(SigmaDataError, match=r"^row 5: there is no value\."):
        NumberEncoder("refuse").fit([pa.array([1.0, 2.0, 3.0]), pa.array([4.0, 5.0, None])])


HOSTILE: list[Any] = [
    pa.nulls(2), pa.array([True, None]), pa.array([1, None]), pa.array([2**64 - 1], pa.uint64()),
    pa.array([1.5, float("nan")]), pa.array([1.5], pa.float32()), pa.array(["a", None]), pa.array([], pa.string()),
    pa.array(["a\0b", "{}", "x" * 10**5], pa.large_string()), pa.array([b"\xff"]), pa.array([date(1, 1, 1)]),
    pa.array([datetime(9999, 12, 31)]), pa.array(["0001-01-01"]), pa.array([[1]]), pa.array([{"a": 1}]),
    pa.array([Decimal("1.5")]), pa.array([1, 2]).dictionary_encode(), pa.array([2**62], pa.duration("us")),
]  # fmt: skip


@pytest.mark.parametrize(
    "encoder",
    [
        NumberEncoder("mean"), BooleanEncoder(missing="mean"), OneHotEncoder(), OrdinalEncoder(missing="median"),
        IndexEncoder(), HashingEncoder(), TargetMeanEncoder(), DateEncoder(missing="zero"),
    ],
    ids=lambda encoder: type(encoder).__name__,
)  # fmt: skip
def test_a_column_of_any_type_is_encoded_or_refused_by_row(encoder: Encoder) -> None:
    states = []
    for column in HOSTILE:
        with suppress(SigmaDataError):
            states.append(encoder.fit([column], [np.arange(len(column)) / 2]))
    for state, column in product(states, HOSTILE):
        try:
            encoded = encoder.apply(column, state)
        except SigmaDataError as error:
            refused = error.row
        else:
            refused = 0
            assert encoded.shape == (len(column), len(encoder.names("x", state)))
            assert np.isfinite(encoded).all()
        assert refused in range(max(1, len(column)))
    assert states


def test_an_unseen_category_is_refused_with_its_row_and_the_remedy() -> None:
    encoder = OneHotEncoder(unseen="refuse")
    message = (
        "row 1: 'pink' is not one of the 3 categories of the training rows: 'blue', 'green', 'red'. Correct it, or set "
        "unseen = 'other'."
    )
    with pytest.raises(SigmaDataError) as error:
        encoder.apply(pa.array(["red", "pink"]), encoder.fit([WORDS]))
    assert str(error.value) == message


def test_targets_of_another_number_of_rows_are_refused() -> None:
    with pytest.raises(SigmaDataError, match=r"^the column and the targets have different numbers of rows\. Give"):
        TargetMeanEncoder().fit([WORDS], [np.zeros(3)])


def test_a_target_that_is_not_finite_is_refused_with_its_row(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(columns, "ROWS", 2)
    targets = np.array([0.0, 1.0, 2.0, np.nan, 4.0, 5.0, 6.0])
    with pytest.raises(SigmaDataError, match=r"^row 3: the target is not finite\. Correct it, or leave the row out\.$"):
        TargetMeanEncoder().fit([WORDS], [targets])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: NumberEncoder("zero"), r"^NumberEncoder\.missing: must be 'refuse', 'mean', 'median', 'most_fr"),
        (lambda: NumberEncoder(float("nan")), r"^NumberEncoder\.missing: must be .* or a finite number \(got nan\)"),
        (lambda: NumberEncoder(clip=(2.0, 1.0)), r"^NumberEncoder\.clip: must be a share above 0 and below 0\.5, or"),
        (lambda: NumberEncoder(clip=0.5), r"^NumberEncoder\.clip: must be a share"),
        (lambda: NumberEncoder(scale="minmax"), r"^NumberEncoder\.scale: must be 'none' or 'standard' or"),
        (lambda: OrdinalEncoder(["a", "a"]), r"^OrdinalEncoder\.order: must be categories that differ"),
        (lambda: OrdinalEncoder(["a", 1]), r"^OrdinalEncoder\.order: must be .*, all words or all numbers"),
        (lambda: DateEncoder(["day", "day"]), r"^DateEncoder\.parts: must be parts that differ"),
        (lambda: DateEncoder(["year"]), r"^DateEncoder\.parts: must be 'month' or 'day' or"),
        (lambda: DateEncoder(zone="Mars"), r"^DateEncoder\.zone: must be the name of a time zone, such as"),
        (lambda: TargetMeanEncoder(0.0), r"^TargetMeanEncoder\.smoothing: must be more than 0"),
        (lambda: TargetMeanEncoder(folds=1), r"^TargetMeanEncoder\.folds: must be at least 2"),
    ],
)  # fmt: skip
def test_settings_that_make_no_sense_are_refused(make: Callable[[], Encoder], message: str) -> None:
    with pytest.raises(SigmaConfigError, match=message):
        make()


def test_pyarrow_is_imported_with_the_first_encoder_only() -> None:
    code = "import sys, sigma_data; sigma_data.Csv, sigma_data.Robust; assert 'pyarrow' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_dates_with_the_day_first_are_those_of_iso():
    dotted = ["31.3.2024", "01.12.2023 14:30", " 9.10.2022 ", None, "28.02.2024 08:15:30"]
    iso = ["2024-03-31", "2023-12-01 14:30", "2022-10-09", None, "2024-02-28 08:15:30"]
    given, expected = (DateEncoder().fit([pa.array(words)]) for words in (dotted, iso))
    assert given == expected
    np.testing.assert_array_equal(
        DateEncoder().apply(pa.array(dotted), given), DateEncoder().apply(pa.array(iso), given)
    )
    with pytest.raises(SigmaDataError, match="is no date of the form"):
        DateEncoder().fit([pa.array(["31.3.2024", "31.2.2024"])])
