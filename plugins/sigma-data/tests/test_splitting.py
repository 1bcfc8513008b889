from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import assume, given, strategies as st

from sigma_data import Arrays, Frame, Iris, Shares, Stream, split
from sigma_data.splitting import Folding
from sigma_kernel import SigmaConfigError, SigmaDataError

SHARES = st.lists(st.integers(1, 10), min_size=1, max_size=4).map(
    lambda parts: {f"part{i}": part / (sum(parts) + len(parts) % 2) for i, part in enumerate(parts)}
)
WAYS = st.sampled_from(["record", "block", "stratified"])


def numbered(classes: list[int], block_rows: int = 10_000) -> Stream:
    return Stream([(i, one) for i, one in enumerate(classes)], block_rows=block_rows)


def rows(part) -> list[int]:
    return [int(row) for i in range(part.blocks) for row in part.block(i)["inputs"]]


@given(
    st.lists(st.integers(0, 3), min_size=40, max_size=120), SHARES, WAYS, st.integers(0, 2**64 - 1), st.integers(7, 200)
)
def test_parts_are_disjoint_and_have_their_share(classes, shares, by, seed, block_rows):
    assume(min(shares.values()) * 10 > 1)
    parts = split(numbered(classes, block_rows), shares, by, seed)
    assert list(parts) == list(shares)
    for one, other in combinations(parts.values(), 2):
        assert not set(rows(one)) & set(rows(other))
    for name, part in parts.items():
        assert len(part) == len(rows(part)) == len(set(rows(part)))
        slack = 1 if by != "stratified" else len(set(classes))
        assert abs(len(part) - shares[name] * len(classes)) <= slack + 1e-9
    if sum(shares.values()) > 1 - 1e-9:
        assert sum(map(len, parts.values())) == len(classes)


@given(st.lists(st.integers(0, 5), min_size=60, max_size=200), SHARES, st.integers(0, 9))
def test_every_class_has_its_share_to_within_one_row(classes, shares, seed):
    assume(min(shares.values()) * 10 > 1)
    counts = np.bincount(classes, minlength=6)
    for name, part in split(numbered(classes), shares, "stratified", seed).items():
        found = np.bincount([classes[row] for row in rows(part)], minlength=6)
        assert (np.abs(found - shares[name] * counts) < 1 + 1e-6).all()


def test_shares_of_many_small_classes_add_up_to_the_share():
    classes = [i for i in range(30) for _ in range(5)]  # 4.5 of each in the training split
    parts = split(numbered(classes), {"training": 0.9, "validation": 0.1}, "stratified")
    assert (len(parts["training"]), len(parts["validation"])) == (135, 15)


@pytest.mark.parametrize("large", [[], [20] * 40])
def test_classes_without_a_row_in_a_part_depend_on_the_seed_and_are_the_fewest_possible(large):
    classes = [i for i in range(20) for _ in range(4)] + large
    missing = set()
    for seed in range(4):
        part = rows(split(numbered(classes), {"training": 0.8, "validation": 0.2}, "stratified", seed)["validation"])
        missing.add(frozenset(range(20)) - {classes[row] for row in part})
        assert len(part) == len(classes) // 5
    assert {len(one) for one in missing} == {4}
    assert len(missing) > 1


def test_a_class_of_two_rows_has_one_in_each_part_where_the_shares_allow():
    classes = [0] * 93 + [1] * 43 + [2] * 2 + [3] * 2  # 0.4 of 2 rows, 18.6 of 93 and 8.6 of 43; 28 in all
    for seed in range(5):
        part = rows(split(numbered(classes), {"training": 0.8, "validation": 0.2}, "stratified", seed)["validation"])
        assert np.bincount([classes[row] for row in part]).tolist() == [18, 8, 1, 1]


def test_the_same_seed_draws_the_same_rows_and_another_seed_others():
    data = numbered([0, 1] * 50)
    for by in ("record", "stratified"):
        first = rows(split(data, {"training": 0.5}, by, seed=3)["training"])
        assert rows(split(data, {"training": 0.5}, by, seed=3)["training"]) == first
        assert rows(split(data, {"training": 0.5}, by, seed=4)["training"]) != first


def test_the_seed_of_a_split_defaults_to_0_and_is_independent_of_the_run():
    def drawn(**settings) -> bytes:
        return Iris(split_by="record", **settings)["validation"].block(0)["inputs"].tobytes()

    assert drawn() == drawn(seed=0) != drawn(seed=1)
    whole, _ = Iris().all_rows()
    assert drawn(seed=1) == split(whole, Iris().split, seed=1)["validation"].block(0)["inputs"].tobytes()


def test_splitting_by_block_takes_consecutive_rows_in_the_order_of_the_names():
    parts = split(numbered([0] * 10), {"training": 0.6, "validation": 0.3}, "block")
    assert rows(parts["training"]) == [0, 1, 2, 3, 4, 5]
    assert rows(parts["validation"]) == [6, 7, 8]


def test_a_split_by_record_draws_from_the_whole_data_set():
    validation = rows(split(numbered([0] * 1000), {"training": 0.8, "validation": 0.2})["validation"])
    assert np.histogram(validation, bins=4, range=(0, 1000))[0].min() > 30


def test_tenths_that_add_up_to_one_are_accepted():
    parts = split(numbered([0] * 10), {"a": 0.7, "b": 0.2, "c": 0.1}, "block")
    assert [len(part) for part in parts.values()] == [7, 2, 1]


@pytest.mark.parametrize(
    ("shares", "message"),
    [
        ({}, "there are no parts"),
        ({"training": 0.8, "validation": 0.3}, "the shares add up to 1.1"),
        ({"training": 0.8, "validation": 0.0}, "'validation' has a share of 0.0. It must be more than 0"),
        ({"training": -0.5}, "'training' has a share of -0.5"),
        ({"training": 1.5}, "'training' has a share of 1.5"),
        ({"training": float("nan")}, "'training' has a share of nan"),
        ({"training": 0.9, "validation": 0.01}, "'validation' gets none of 10 rows for a share of 0.01"),
    ],
)
def test_invalid_shares_are_reported(shares, message):
    with pytest.raises(SigmaConfigError, match=f"split: {message}"):
        split(numbered([0] * 10), shares)


def test_an_unknown_split_method_is_reported():
    with pytest.raises(SigmaConfigError, match="unknown method 'random'. Use one of record, block, stratified"):
        split(numbered([0] * 10), {"training": 0.5}, "random")


@pytest.mark.parametrize(
    ("targets", "message"),
    [(np.zeros(4), "holds float64"), (np.full((4, 2), 2), "holds int64.*"), (None, "is not there")],
    ids=["numbers", "vectors", "none"],
)
def test_stratified_needs_class_indices(targets, message):
    data = Arrays(inputs=np.zeros(4), **({} if targets is None else {"targets": targets}))
    with pytest.raises(
        SigmaDataError, match=f"section 'targets' {message}.*; stratified needs one class index per row"
    ):
        split(data, {"training": 0.5}, "stratified")


# -- groups ------------------------------------------------------------------------------------------------------------
@given(
    st.lists(st.integers(0, 30), min_size=40, max_size=150),
    SHARES,
    st.sampled_from(["record", "block"]),
    st.integers(0, 9),
)
def test_rows_of_a_group_stay_together_and_parts_have_their_share_of_the_groups(groups, shares, by, seed):
    number = len(set(groups))
    assume(min(shares.values()) * number > 1)
    parts = split(numbered([0] * len(groups)), shares, by, seed, groups=[f"person {group}" for group in groups])
    held = {name: {groups[row] for row in rows(part)} for name, part in parts.items()}
    for one, other in combinations(held.values(), 2):
        assert not one & other
    for name, part in parts.items():
        assert rows(part) == [row for row, group in enumerate(groups) if group in held[name]]
        assert abs(len(held[name]) - shares[name] * number) <= 1 + 1e-9


def test_groups_of_a_block_are_in_the_order_of_their_first_rows():
    parts = split(numbered([0] * 6), {"training": 0.5, "validation": 0.25}, "block", groups="bbacad")
    assert rows(parts["training"]) == [0, 1, 2, 4]
    assert rows(parts["validation"]) == [3]


@pytest.mark.parametrize("kind", [list, np.array])
def test_every_class_has_its_share_of_the_groups(kind):
    groups = [i // 3 for i in range(60)]
    classes = [int(group < 5) for group in groups]  # 5 of 20 groups
    parts = split(numbered(classes), {"training": 0.8, "validation": 0.2}, "stratified", groups=kind(groups))
    assert sum(classes[row] for row in rows(parts["validation"])) == 3
    assert len(rows(parts["validation"])) == 12


@pytest.mark.parametrize("seed", range(3))
def test_rows_with_several_labels_are_stratified_by_each(seed):
    random = np.random.default_rng(seed)
    labels = (random.uniform(size=(1000, 6)) < [0.5, 0.3, 0.1, 0.05, 0.02, 0.01]).astype(float)
    labels[:, 4] = np.maximum(labels[:, 4], labels[:, 5])  # which come together
    data = Arrays(inputs=np.arange(1000), targets=labels)
    shares = {"training": 0.7, "validation": 0.2, "test": 0.1}
    parts = {name: rows(part) for name, part in split(data, shares, "stratified", seed).items()}
    assert sorted(np.concatenate([*parts.values()])) == [*range(1000)]
    assert [len(part) for part in parts.values()] == [700, 200, 100]
    for name, part in parts.items():
        assert (np.abs(labels[part].sum(axis=0) - shares[name] * labels.sum(axis=0)) <= 2).all()
    again = {name: rows(part) for name, part in split(data, shares, "stratified", seed).items()}
    assert again == parts
    other = rows(split(data, shares, "stratified", seed + 1)["test"])
    assert other != parts["test"]


def test_labels_may_be_left_out_folded_and_missing_in_all_rows():
    labels = np.zeros((40, 3), bool)
    labels[:8, 0] = labels[4:12, 1] = True
    data = Arrays(inputs=np.arange(40), targets=labels)
    part = rows(split(data, {"training": 0.5}, "stratified")["training"])
    assert (len(part), labels[part].sum(axis=0).tolist()) == (20, [4, 4, 0])
    held = [rows(split(data, {"training": 1.0}, "stratified", fold=Folding(i, 4))["validation"]) for i in range(4)]
    assert sorted(np.concatenate(held)) == [*range(40)]
    assert [labels[part, :2].sum(axis=0).tolist() for part in held] == [[2, 2]] * 4


def test_a_group_of_other_labels_cannot_be_stratified():
    data = Arrays(inputs=np.arange(4), targets=[[0, 1], [0, 1], [1, 0], [1, 1]])
    with pytest.raises(SigmaDataError, match="group 'b' has rows of several classes"):
        split(data, {"training": 0.5}, "stratified", groups="aabb")
    assert len(rows(split(data, {"training": 0.5}, "stratified", groups="abcd")["training"])) == 2


def test_a_group_of_several_classes_cannot_be_stratified():
    with pytest.raises(SigmaDataError, match="group 'b' has rows of several classes, .* Split by record"):
        split(numbered([0, 0, 1, 0]), {"training": 0.5}, "stratified", groups="aabb")


def test_groups_that_leave_a_part_empty_or_do_not_name_every_row_are_reported():
    with pytest.raises(SigmaConfigError, match="'validation' gets none of 2 groups for a share of 0.2"):
        split(numbered([0] * 9), {"training": 0.8, "validation": 0.2}, groups="aaaaabbbb")
    with pytest.raises(SigmaDataError, match="there are 3 groups for 9 rows"):
        split(numbered([0] * 9), {"training": 0.5}, groups="abc")


def test_a_part_of_grouped_data_keeps_the_groups_together():
    frame = Frame(PEOPLE, "y", group="person")
    parts = Shares(frame, split={"training": 0.5, "validation": 0.5})
    persons = {name: {int(x) // 2 for x in part.block(0)["inputs"][:, 0]} for name, part in parts.items()}
    assert persons["training"] | persons["validation"] == {0, 1, 2, 3}
    assert not persons["training"] & persons["validation"]
    assert frame["training"].sections["inputs"].shape == (1,)


@pytest.mark.parametrize("by", ["record", "block", "stratified"])
def test_a_split_that_holds_all_rows_keeps_the_groups_together_when_it_is_split(by):
    frame = Frame(PEOPLE | {"y": [0, 0, 0, 0, 1, 1, 1, 1]}, "y", group="person")
    parts = Shares(frame["training"].encode("targets", 0), split={"training": 0.5, "validation": 0.5}, split_by=by)
    persons = [{int(x) // 2 for x in part.block(0)["inputs"][:, 0]} for part in parts.values()]
    assert [len(part) for part in parts.values()] == [4, 4]
    assert not persons[0] & persons[1]


class _Columns(dict):
    """A frame of the simplest kind: columns by name."""

    @property
    def columns(self):
        return list(self)


PEOPLE = _Columns(person=["a", "a", "b", "b", "c", "c", "d", "d"], x=np.arange(8.0), y=np.arange(8) + 0.5)
