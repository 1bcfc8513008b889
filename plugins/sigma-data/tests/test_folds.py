"""Folds: each row is for validation once, and other parts are the same in every fold."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given, strategies as st
from PIL import Image

from sigma_data import Arrays, Frame, ImageFolder, Iris, Shares, Stream, Xor, split
from sigma_data.splitting import Folding
from sigma_kernel import SigmaConfigError, SigmaDataError

WITH_TEST = {"training": 0.6, "test": 0.2, "validation": 0.2}
TWO = {"training": 0.8, "validation": 0.2}
WAYS = ["record", "block", "stratified"]


def numbered(classes: list[int]) -> Stream:
    return Stream([(i, each) for i, each in enumerate(classes)])


def rows(part) -> list[int]:
    return [int(row) for i in range(part.blocks) for row in part.block(i)["inputs"].ravel()]


def folds(data, shares, of, **settings):
    return [
        {name: rows(part) for name, part in split(data, shares, fold=Folding(i, of), **settings).items()}
        for i in range(of)
    ]


@given(
    st.lists(st.integers(0, 3), min_size=20, max_size=80),
    st.sampled_from([WITH_TEST, TWO, {"training": 1.0}, {"training": 0.5, "validation": 0.2}]),
    st.sampled_from(WAYS),
    st.integers(2, 8),
    st.integers(0, 2**64 - 1),
)
def test_each_row_of_training_and_validation_is_in_validation_once(classes, shares, by, of, seed):
    data = numbered(classes)
    parts = folds(data, shares, of, by=by, seed=seed)
    whole = {name: rows(part) for name, part in split(data, shares, by, seed).items()}
    pool = sorted(whole["training"] + whole.get("validation", []))
    assert sorted(row for part in parts for row in part["validation"]) == pool
    for part in parts:
        assert sorted(part["training"] + part["validation"]) == pool
        assert {name: part[name] for name in shares.keys() - {"training", "validation"}} == {
            name: whole[name] for name in shares.keys() - {"training", "validation"}
        }
        slack = 1 if by != "stratified" else len(set(classes))
        assert abs(len(part["validation"]) - len(pool) / of) <= slack


def test_folds_of_blocks_are_neighbours_and_the_test_rows_stay_at_the_end():
    shares = {"training": 0.4, "validation": 0.4, "test": 0.2}
    first, second = folds(numbered([0] * 10), shares, 2, by="block")
    assert first == {"training": [4, 5, 6, 7], "validation": [0, 1, 2, 3], "test": [8, 9]}
    assert second == {"training": [0, 1, 2, 3], "validation": [4, 5, 6, 7], "test": [8, 9]}


def test_every_fold_has_its_share_of_every_class():
    classes = [0] * 50 + [1] * 10
    for part in folds(numbered(classes), TWO, 5, by="stratified"):
        assert Counter(classes[row] for row in part["validation"]) == {0: 10, 1: 2}


@pytest.mark.parametrize("by", WAYS)
@pytest.mark.parametrize("kind", [list, np.array])
def test_the_rows_of_a_group_are_in_the_same_fold(by, kind):
    groups = kind([f"person {i % 12}" for i in range(60)])
    data = numbered([i % 12 % 2 for i in range(60)])
    parts = folds(data, WITH_TEST, 4, by=by, groups=groups)
    held = [{groups[row] for row in part["validation"]} for part in parts]
    assert sum(map(len, held)) == len(set().union(*held)) == 12 - len({groups[row] for row in parts[0]["test"]})
    assert all(not {groups[row] for row in part["training"]} & own for part, own in zip(parts, held, strict=True))


def test_another_seed_divides_into_other_folds():
    data = numbered([0] * 50)
    assert folds(data, TWO, 5, seed=1) == folds(data, TWO, 5, seed=1) != folds(data, TWO, 5, seed=2)


def test_a_table_of_settings_is_a_fold_and_names_the_parts():
    data = Iris(split={"training": 0.7, "test": 0.3}, fold={"number": 1, "of": 3})
    assert data.names == ("training", "test", "validation") == tuple(data)
    assert [len(part) for part in data.values()] == [70, 45, 35]


def test_the_parts_of_other_data_can_be_folds():
    data = Arrays(inputs=np.arange(10.0)[:, None])
    parts = [Shares(data, split=0.2, fold={"number": i, "of": 5}) for i in range(5)]
    assert sorted(row for part in parts for row in rows(part["validation"])) == [*range(10)]
    frame = Frame({"x": np.arange(8.0), "y": np.arange(8.0) + 0.5}, "y", fold={"number": 0, "of": 2})
    assert [len(part) for part in frame.values()] == [4, 4]


@pytest.mark.parametrize("shares", [TWO, {"training": 0.5, "test": 0.3, "validation": 0.2}, {"training": 0.4}])
@pytest.mark.parametrize("keep", ["rows", "blocks", "one"])
def test_rows_that_are_known_by_their_content_have_folds_too(shares, keep):
    def data():
        if keep != "rows":
            return Stream(lambda: ((float(i), 0.0) for i in range(400)), keep=keep)
        return Arrays(inputs=np.arange(400.0)[:, None], key=np.array([f"row {i}" for i in range(400)]))

    whole = {name: rows(part) for name, part in Shares(data(), split=shares).items()}
    pool = sorted(whole["training"] + whole.get("validation", []))
    parts = [
        {name: rows(part) for name, part in Shares(data(), split=shares, fold={"number": i, "of": 7}).items()}
        for i in range(7)
    ]
    assert sorted(row for part in parts for row in part["validation"]) == pool
    for part in parts:
        assert sorted(part["training"] + part["validation"]) == pool
        assert part.get("test") == whole.get("test")
        assert 0.3 < len(part["validation"]) / (len(pool) / 7) < 2


def picture(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("L", (4, 4)).save(path)


def test_folders_of_pictures_have_folds_unless_they_are_splits(tmp_path: Path) -> None:
    for i in range(12):
        picture(tmp_path / "all" / f"class{i % 2}" / f"{i}.png")
        picture(tmp_path / "parts" / "training" / f"class{i % 2}" / f"{i}.png")
        picture(tmp_path / "parts" / "validation" / f"class{i % 2}" / f"{i}.png")
    data = ImageFolder(tmp_path / "all", size=(4, 4), fold={"number": 2, "of": 3})
    assert (data.names, [len(part) for part in data.values()]) == (("training", "validation"), [8, 4])
    divided = ImageFolder(tmp_path / "parts", size=(4, 4), fold={"number": 2, "of": 3})
    with pytest.raises(SigmaConfigError, match="its folders are splits already: training, validation. Set `split`"):
        divided.load()
    divided = ImageFolder(tmp_path / "parts", size=(4, 4), split={"training": 1.0}, fold={"number": 2, "of": 3})
    with pytest.raises(SigmaConfigError, match="ImageFolder.split: 'validation' is a folder already"):
        divided.load()


def test_folds_that_there_are_not_are_reported():
    with pytest.raises(SigmaConfigError, match="fold: there is no fold 5 of 5. They are 0 to 4"):
        Folding(5, 5)
    with pytest.raises(SigmaConfigError, match="of: must be at least 2"):
        Folding(0, 1)
    with pytest.raises(SigmaConfigError, match="of: must be at least 2"):
        Iris(fold={"number": 0, "of": 1})
    with pytest.raises(SigmaConfigError, match="fold: 5 folds need as many rows, and there are 4. Use fewer folds"):
        split(numbered([0] * 4), TWO, fold=Folding(0, 5))
    with pytest.raises(SigmaConfigError, match="fold: 4 folds need as many groups, and there are 3. Use fewer folds"):
        split(numbered([0] * 9), TWO, groups="aaabbbccc", fold=Folding(0, 4))
    with pytest.raises(SigmaDataError, match="there are 3 groups for 9 rows"):
        split(numbered([0] * 9), TWO, groups="abc", fold=Folding(0, 2))
    assert not hasattr(Xor, "fold")
    assert len(split(numbered([0, 1]), TWO, fold=Folding(0, 2))["validation"]) == 1


@given(st.integers(2, 40), st.integers(0, 60))
def test_there_are_folds_of_any_number_of_rows(of, more):
    assume(of + more > 1)
    parts = folds(numbered([0] * (of + more)), TWO, of)
    assert {len(part["validation"]) for part in parts} <= {(of + more) // of, -(-(of + more) // of)}
