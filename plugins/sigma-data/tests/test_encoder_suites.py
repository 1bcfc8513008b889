"""Encoders pass the suite of their kind."""

from __future__ import annotations

from datetime import date, datetime
from typing import Any

import numpy as np
import pyarrow as pa

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
from sigma_kernel import Encoder
from sigma_testing import EncoderSuite


class _Numbers(EncoderSuite):
    def column(self) -> Any:
        return pa.array([0.1, 2.0, 3.5, -40.0, 0.7, 0.7, 1e3])

    def unseen(self) -> Any:
        return pa.array([1e6])


class _NumbersWithGaps(_Numbers):
    def column(self) -> Any:
        return pa.array([0.1, 2.0, None, -40.0, float("nan"), 0.7, 0.7, 1e3])


class TestNumber(_Numbers):
    def make(self) -> Encoder:
        return NumberEncoder()


class TestNumberByMean(_NumbersWithGaps):
    def make(self) -> Encoder:
        return NumberEncoder(missing="mean", indicator=True, log=True)


class TestNumberByMedian(_NumbersWithGaps):
    def make(self) -> Encoder:
        return NumberEncoder(missing="median", scale="robust", clip=0.1)


class TestNumberByMode(_NumbersWithGaps):
    def make(self) -> Encoder:
        return NumberEncoder(missing="most_frequent", scale="quantile")


class TestNumberAsItIs(_NumbersWithGaps):
    def make(self) -> Encoder:
        return NumberEncoder(missing=-1.0, scale="none", clip=(0.0, 5.0))


class TestIntegers(EncoderSuite):
    def make(self) -> Encoder:
        return NumberEncoder(missing="mean")

    def column(self) -> Any:
        return pa.array([3, None, 5, 7, 1])

    def unseen(self) -> Any:
        return pa.array([2**60])


class TestBoolean(EncoderSuite):
    def make(self) -> Encoder:
        return BooleanEncoder()

    def column(self) -> Any:
        return pa.array([True, False, False, True])

    def unseen(self) -> Any:
        return pa.array([None], pa.bool_())


class TestBooleanWords(EncoderSuite):
    def make(self) -> Encoder:
        return BooleanEncoder(missing="mean", indicator=True)

    def column(self) -> Any:
        return pa.array(["Yes", "no", None, "no", "yes"])

    def unseen(self) -> Any:
        return pa.array(["perhaps"])


class _Words(EncoderSuite):
    def column(self) -> Any:
        return pa.array(["b", "a", None, "b", "c", "a", "b"])

    def unseen(self) -> Any:
        return pa.array(["d"])


class _WordsWithoutGaps(_Words):
    def column(self) -> Any:
        return pa.array(["b", "a", "b", "c", "a", "b"])


class TestOneHot(_Words):
    def make(self) -> Encoder:
        return OneHotEncoder(least=2)


class TestStrictOneHot(_WordsWithoutGaps):
    def make(self) -> Encoder:
        return OneHotEncoder(unseen="refuse", missing="refuse", least=2)


class TestOneHotOfADictionary(_Words):
    def make(self) -> Encoder:
        return OneHotEncoder()

    def column(self) -> Any:
        return super().column().dictionary_encode()

    def unseen(self) -> Any:
        return super().unseen().cast(self.column().type)


class TestOrdinal(_WordsWithoutGaps):
    def make(self) -> Encoder:
        return OrdinalEncoder()


class TestOrdinalByMedian(_Words):
    def make(self) -> Encoder:
        return OrdinalEncoder(["c", "b", "a"], missing="median", unseen="missing")


class TestIndex(_Words):
    def make(self) -> Encoder:
        return IndexEncoder(least=2)


class TestIndexOfNumbers(_NumbersWithGaps):
    def make(self) -> Encoder:
        return IndexEncoder()


class TestHashing(_Words):
    def make(self) -> Encoder:
        return HashingEncoder(5)


class TestTargetMean(_Words):
    def make(self) -> Encoder:
        return TargetMeanEncoder(smoothing=1.5, folds=2)

    def targets(self) -> np.ndarray:
        return np.array([1.5, 2.0, -0.5, 0.1, 0.2, 0.3, 1e3])


class TestTargetMeanOfClasses(TestTargetMean):
    def targets(self) -> np.ndarray:
        return np.array([0, 1, 2, 2, 0, 1, 3])


class TestDate(EncoderSuite):
    def make(self) -> Encoder:
        return DateEncoder()

    def column(self) -> Any:
        return pa.array([date(2024, 3, 31), date(2023, 12, 1), date(1969, 7, 20), date(2024, 2, 29)])

    def unseen(self) -> Any:
        return pa.array([date(2345, 6, 7)])


class TestDatesAsWords(EncoderSuite):
    def make(self) -> Encoder:
        return DateEncoder(missing="zero", indicator=True, zone="Europe/Berlin")

    def column(self) -> Any:
        return pa.array([None, "2024-03-31T00:30:00Z", "2024-03-31 01:30:00+00:00", "2024-12-31 23:30:00-02:00"])

    def unseen(self) -> Any:
        return pa.array(["yesterday"])


class TestTimes(EncoderSuite):
    def make(self) -> Encoder:
        return DateEncoder(["hour", "weekend"])

    def column(self) -> Any:
        times = [datetime(2024, 3, 30, hour) for hour in (0, 6, 12, 18)]
        return pa.array(times, pa.timestamp("ns", "America/New_York"))

    def unseen(self) -> Any:
        return pa.array([datetime(2024, 3, 30, 1, 15, 30)], self.column().type)
