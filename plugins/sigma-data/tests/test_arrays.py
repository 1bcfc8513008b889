from __future__ import annotations

from decimal import Decimal

import numpy as np
import pytest

from sigma_data import Arrays, Subset
from sigma_kernel import SigmaDataError
from sigma_kernel.graph import Spec


def test_arrays_are_one_block_and_not_copied():
    inputs, targets = np.zeros((3, 2, 2), np.float32), np.arange(3)
    data = Arrays(inputs=inputs, targets=targets)
    assert (data.blocks, data.rows(0), len(data)) == (1, 3, 3)
    assert np.shares_memory(data.block(0)["inputs"], inputs)
    assert data.sections == {"inputs": Spec((2, 2), "float32"), "targets": Spec((), "int64")}
    assert repr(data) == "Arrays(inputs=(3, 2, 2), targets=(3,))"


def test_lists_of_numbers_are_accepted_as_arrays():
    assert Arrays(inputs=[[1.5, 2], [3, 4]], targets=[True, False]).sections == {
        "inputs": Spec((2,), "float64"), "targets": Spec((), "bool"),
    }  # fmt: skip


@pytest.mark.parametrize(("given", "counts_as"), [("u1", "int32"), ("i2", "int32"), ("u8", "int64"), ("u4", "uint32")])
def test_unsupported_integer_types_become_the_next_larger_ones(given, counts_as):
    assert Arrays(inputs=np.zeros(1, given)).sections["inputs"].dtype == counts_as


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_a_non_finite_value_names_section_and_row(value):
    inputs = np.zeros((5, 2, 3), np.float32)
    inputs[2:4, 1, 2] = value
    with pytest.raises(SigmaDataError, match="section 'inputs', row 2: a value is not finite, in 2 of 5 rows"):
        Arrays(targets=np.zeros(5), inputs=inputs)


def test_sections_of_different_lengths_are_reported():
    with pytest.raises(SigmaDataError, match="different numbers of rows: 'inputs' 3, 'targets' 2"):
        Arrays(inputs=np.zeros((3, 2)), targets=np.zeros(2))


def test_missing_sections_and_rows_are_reported():
    with pytest.raises(SigmaDataError, match="there is no section"):
        Arrays()
    with pytest.raises(SigmaDataError, match="there is no row"):
        Arrays(inputs=np.zeros((0, 4)))


@pytest.mark.parametrize(
    "values",
    [[b"a", b"b"], np.array([["a", None]], object)],
)
def test_objects_and_bytes_are_reported(values):
    with pytest.raises(SigmaDataError, match="section 'targets' holds objects or words"):
        Arrays(targets=values)


@pytest.mark.parametrize(("values", "message"), [
    ([None, 1], "row 0: a value is not finite, in 1 of 2 rows"),
    (["a", None], "row 1 has no class"),
    (["a", np.nan, "b"], "row 1 has no class"),
    (["a", "\ud800b"], r"row 1 holds '\\ud800b', which is no valid text\. Correct it"),
    (["a", 3], "mixes words and numbers: row 0 holds 'a', row 1 3"),
    (np.array([1, "a"], object), "mixes numbers and words: row 0 holds 1, row 1 'a'"),
    (np.array([{}, {}], object), "row 0 holds a dict"),
])  # fmt: skip
def test_missing_and_mixed_values_are_reported_with_their_rows(values, message):
    with pytest.raises(SigmaDataError, match=f"section 'targets'.*{message}"):
        Arrays(targets=values)


def test_objects_that_are_numbers_are_numbers():
    assert Arrays(targets=np.array([Decimal("1.5"), 2, True], object)).block(0)["targets"].tolist() == [1.5, 2, 1]


@pytest.mark.parametrize("make", [list, np.array, lambda words: np.array(words, object),
                                  lambda words: np.array(words, np.dtypes.StringDType())])  # fmt: skip
def test_words_are_classes_in_alphabetical_order(make):
    data = Arrays(inputs=np.zeros((3, 1)), targets=make(["rose", "aster", "rose"]))
    assert data.block(0)["targets"].tolist() == [1, 0, 1]
    assert data.class_names("targets") == ("aster", "rose")
    assert data.sections["targets"] == Spec((), "int32")
    assert data.class_names("inputs") == ()


def test_words_requested_as_numbers_are_reported():
    data = Arrays(inputs=["red", "blue"], targets=[1, 2])
    with pytest.raises(SigmaDataError, match="section 'inputs' holds words, such as 'red', .* preprocessor one_hot"):
        data.encode("inputs", None)
    assert data.encode("targets", None) is data


def test_a_missing_word_and_several_words_per_row_are_reported():
    with pytest.raises(SigmaDataError, match="section 'targets': row 1 has no class"):
        Arrays(targets=["a", " "])
    with pytest.raises(SigmaDataError, match=r"section 'targets': classes have shape \(2,\) per row"):
        Arrays(targets=[["a", "b"]])


def test_classes_keep_the_order_of_the_training_split():
    data = Arrays(targets=["c", "a"])
    assert data.encode("targets", 3, ("a", "b", "c")).block(0)["targets"].tolist() == [2, 0]
    with pytest.raises(SigmaDataError, match="holds the class 'c', which the training split does not have: 'a', 'b'"):
        data.encode("targets", 2, ("a", "b"))


def test_a_number_of_classes_that_differs_from_the_networks_is_reported():
    with pytest.raises(SigmaDataError, match="holds 2 classes: 'a', 'c'; the network has 3"):
        Arrays(targets=["c", "a"]).encode("targets", 3)


def test_a_subset_has_the_classes_of_all_rows():
    part = Subset(Arrays(targets=["a", "b", "c"]), [2]).encode("targets", 3)
    assert part.block(0)["targets"].tolist() == [2]
    assert part.class_names("targets") == ("a", "b", "c")


@pytest.mark.parametrize("values", [np.zeros(2, "c8"), np.zeros(2, "M8[s]"), np.zeros(2, np.longdouble)])
def test_unsupported_types_are_reported(values):
    if values.dtype == np.float64:
        pytest.skip("long double is double on this platform")
    with pytest.raises(SigmaDataError, match="section 'inputs' holds .* Use floats of at most 64 bits"):
        Arrays(inputs=values)


def test_samples_of_different_shapes_are_reported():
    with pytest.raises(SigmaDataError, match="section 'inputs': samples have different shapes"):
        Arrays(inputs=[[1, 2], [3]])


def test_a_scalar_is_not_a_section():
    with pytest.raises(SigmaDataError, match="section 'inputs' is a single value"):
        Arrays(inputs=3.0)
