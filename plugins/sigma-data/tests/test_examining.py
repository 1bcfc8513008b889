"""Each rule of the examination finds the fault that is planted, and nothing in clean data."""

from __future__ import annotations

import shutil
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image
from scipy import stats
from scipy.special import kolmogorov as scipy_kolmogorov

from sigma_data import Adding, Arrays, DataInspector, Digits, ImageFolder, Iris, Synthetic, Tabular, TicTacToe, Wdbc
from sigma_data.examining import alike, tables
from sigma_data.examining.alike import choose_clear, describe_pictures, find_alike, find_pairs, shrink
from sigma_data.examining.drift import (
    chi_squared,
    compare_counts,
    compare_numbers,
    find_drift,
    kolmogorov,
    stability_index,
)
from sigma_data.examining.gathering import gather, gather_place
from sigma_data.examining.rows import ExaminedColumn, ExaminedRows, group_equal, hash_column, hash_columns, hash_matrix
from sigma_data.examining.rules import RULES, apply_rules
from sigma_kernel import Dataset, Finding, SigmaDataError

RANDOM = np.random.default_rng(1)
ROWS = 400


def columns_of_houses() -> dict[str, list[Any]]:
    """Return clean columns: size and city make the class, with noise."""
    random = np.random.default_rng(1)
    size, city = random.normal(100, 30, ROWS), random.integers(0, 3, ROWS)
    dear = size + 20 * city + random.normal(0, 40, ROWS) > 120
    words = np.array(["Bern", "Basel", "Zug"])[city]
    return {"size": size.round(3).tolist(), "city": words.tolist(), "dear": np.where(dear, "yes", "no").tolist()}


def write(path: Path, columns: Mapping[str, list[Any]]) -> Path:
    lines = [",".join(columns), *(",".join(map(str, row)) for row in zip(*columns.values(), strict=True))]
    path.write_text("\n".join(lines) + "\n")
    return path


def examine(path: Path, columns: Mapping[str, list[Any]], target: Any = "dear", **settings: Any) -> list[Finding]:
    """Return the findings about a table with a target, split by blocks of 300 and 100 rows, weighted or not."""
    place = write(path / "houses.csv", columns)
    settings = {"split": {"training": 0.75, "validation": 0.25}, "split_by": "block", **settings}
    plain, *others = (
        examine_splits(Tabular(place, target, class_weights=weights, **settings))
        for weights in (None, "balanced")[: 1 if settings.get("targets") == "numbers" else 2]
    )
    assert others in ([], [plain])
    return plain


def examine_splits(data: Any) -> list[Finding]:
    return apply_rules(gather(data, {name: part.encode("targets", 0) for name, part in data.items()}))


def only(findings: list[Finding]) -> Finding:
    assert len(findings) == 1, findings
    return findings[0]


# -- clean data --------------------------------------------------------------------------------------------------------
def test_nothing_is_found_in_a_clean_table(tmp_path: Path) -> None:
    assert examine(tmp_path, columns_of_houses()) == []
    assert apply_rules(gather_place(tmp_path / "houses.csv")) == []


@pytest.mark.parametrize("data", [Iris(), Digits(), Wdbc(), Adding(), Synthetic(), TicTacToe()], ids=repr)
def test_nothing_serious_is_found_in_the_sets_of_the_package(data: Mapping[str, Dataset]) -> None:
    findings = examine_splits(data)
    assert {finding.severity for finding in findings} <= {"note"}


def test_names_of_rules_are_distinct_and_each_finding_has_one() -> None:
    names = [rule.name for rule in RULES]
    assert len({*names}) == len(names)


# -- equal rows --------------------------------------------------------------------------------------------------------
def test_equal_rows_are_named_by_their_lines(tmp_path: Path) -> None:
    columns = columns_of_houses()
    for values in columns.values():
        values[7] = values[2]
    finding = only(apply_rules(gather_place(write(tmp_path / "houses.csv", columns))))
    assert (finding.rule, finding.severity) == ("duplicates", "note")
    assert finding.text.startswith("1 row is equal to an earlier one, 0.25 % of all.")
    assert [place.rpartition("/")[2] for place in finding.examples[0].split(" and ")] == [
        "houses.csv:4",
        "houses.csv:9",
    ]


@pytest.mark.parametrize("target", [("old", "red"), ("price", "rooms"), {"first": "old", "second": "red"}], ids=str)
def test_rows_with_other_targets_are_not_equal(tmp_path: Path, target: Any) -> None:
    columns = columns_of_houses() | {"rooms": [i % 5 for i in range(ROWS)], "price": [i / 7 for i in range(ROWS)]}
    columns |= {"old": [i % 2 for i in range(ROWS)], "red": [i // 2 % 2 for i in range(ROWS)]}
    for name in ("size", "city", "dear"):
        columns[name][2] = columns[name][0]
    others = {"old", "red", "price", "rooms"} - {*(target.values() if isinstance(target, dict) else target)}
    settings: dict[str, Any] = {"exclude": ("dear", *others), "targets": "numbers"}
    assert [f for f in examine(tmp_path, columns, target, **settings) if f.rule == "duplicates"] == []
    for values in columns.values():
        values[2] = values[0]
    findings = [f for f in examine(tmp_path, columns, target, **settings) if f.rule == "duplicates"]
    assert only(findings).text.startswith("1 row is equal to an earlier one of the same split")


def test_arrays_with_other_labels_are_not_equal() -> None:
    inputs, labels = RANDOM.normal(size=(200, 3)), RANDOM.integers(0, 2, (200, 4))
    inputs[1] = inputs[0]
    labels[1] = 1 - labels[0]
    assert [*DataInspector().examine({"training": Arrays(inputs=inputs, targets=labels)})] == []
    labels[1] = labels[0]
    assert only([*DataInspector().examine({"training": Arrays(inputs=inputs, targets=labels)})]).rule == "duplicates"


@pytest.mark.parametrize(("copies", "severity"), [(1, "note"), (5, "warning"), (10, "error")])
def test_rows_that_are_trained_on_and_validated_on_are_found(tmp_path: Path, copies: int, severity: str) -> None:
    columns = columns_of_houses()
    for values in columns.values():
        values[300 : 300 + copies] = values[:copies]
    finding = only(examine(tmp_path, columns))
    assert (finding.rule, finding.severity) == ("shared-rows", severity)
    assert finding.text.startswith(f"{copies} of 100 rows of 'validation' have the same inputs")
    assert finding.examples[0].endswith("houses.csv:2")
    assert "houses.csv:302 and" in finding.examples[0]
    assert len(finding.examples) == min(3, copies)


def test_inputs_with_few_values_recur_without_a_warning(tmp_path: Path) -> None:
    columns = columns_of_houses()
    columns["size"] = [i % 4 for i in range(ROWS)]
    findings = examine(tmp_path, columns)
    assert {f.severity for f in findings if f.rule in ("duplicates", "shared-rows")} == {"note"}


def test_answers_to_a_few_questions_recur_without_a_warning(tmp_path: Path) -> None:
    answers = {f"q{i}": RANDOM.integers(0, 4, ROWS).tolist() for i in range(4)}
    findings = [
        f for f in examine(tmp_path, {**answers, "dear": columns_of_houses()["dear"]}) if f.rule == "shared-rows"
    ]
    assert only(findings).severity == "note"
    assert int(findings[0].text.split()[0]) > 50
    columns = {**answers, **columns_of_houses()}
    assert not [f for f in examine(tmp_path, columns) if f.rule == "shared-rows"]


def test_equal_inputs_with_different_classes_bound_the_accuracy(tmp_path: Path) -> None:
    columns = columns_of_houses()
    for i in range(10):
        columns["size"][2 * i + 1], columns["city"][2 * i + 1] = columns["size"][2 * i], columns["city"][2 * i]
        columns["dear"][2 * i], columns["dear"][2 * i + 1] = "yes", "no"
    finding = only(examine(tmp_path, columns))
    assert (finding.rule, finding.severity) == ("conflicts", "warning")
    assert "no network classifies more than 97.5 % of all rows right" in finding.text
    assert "such as 'yes' and 'no', 10 times" in finding.text


def test_rows_are_named_by_their_lines_whatever_the_split_and_however_many_are_dropped(tmp_path: Path) -> None:
    columns = columns_of_houses()
    columns["dear"][:10] = [""] * 10
    columns["size"][201], columns["city"][201] = columns["size"][100], columns["city"][100]
    columns["dear"][100], columns["dear"][201] = "yes", "no"
    for seed in range(4):
        findings = examine(tmp_path, columns, split_by="record", seed=seed, missing_targets="drop")
        (conflict,) = (finding for finding in findings if finding.rule == "conflicts")
        assert [place.rpartition(":")[2] for place in conflict.examples[0].split(" and ")] == ["102", "203"]
        assert "such as 'yes' and 'no', 1 times" in conflict.text


def test_equal_inputs_with_other_numbers_are_no_conflict(tmp_path: Path) -> None:
    columns = columns_of_houses()
    columns["dear"] = np.random.default_rng(0).normal(size=ROWS).tolist()
    columns["size"][1], columns["city"][1] = columns["size"][0], columns["city"][0]
    assert examine(tmp_path, columns, targets="numbers") == []


# -- columns -----------------------------------------------------------------------------------------------------------
def test_a_column_that_gives_the_class_away_is_found(tmp_path: Path) -> None:
    columns = columns_of_houses()
    columns["label"] = [{"yes": "A", "no": "B"}[dear] for dear in columns["dear"]]
    finding = only(examine(tmp_path, columns))
    assert (finding.rule, finding.severity) == ("leak", "warning")
    assert finding.text.startswith("column 'label' gives the target away: each of its values has one target.")
    assert finding.text.endswith("write 'label' = \"exclude\" below [data.columns].")


def test_a_column_in_proportion_to_the_target_is_found(tmp_path: Path) -> None:
    columns = columns_of_houses()
    columns["price"] = RANDOM.normal(size=ROWS).tolist()
    columns["price_in_cents"] = [100 * price for price in columns["price"]]
    finding = only(examine(tmp_path, columns, "price", targets="numbers"))
    assert (finding.rule, "correlation with the target is 1.0000" in finding.text) == ("leak", True)


def test_persons_in_two_splits_are_found_until_they_are_a_group(tmp_path: Path) -> None:
    columns = columns_of_houses() | {"patient_id": [i % 40 for i in range(ROWS)]}
    finding = only(examine(tmp_path, columns))
    assert (finding.rule, finding.severity) == ("split-groups", "warning")
    assert "40 in all, and 100 of 100 rows of 'validation'" in finding.text
    assert "write group = 'patient_id' below [data]" in finding.text
    assert examine(tmp_path, columns, group="patient_id", split_by="record") == []


@pytest.mark.parametrize(("cells", "said"), [
    (["1.5", "2,5"], "numbers with decimal commas and with decimal points"),
    (["1.5 kg", "2300 g"], "numbers with the units 'g', 'kg'"),
    (["1.5 kg", "2"], "numbers with the units 'kg' and without any"),
    (["1.5", "2.5", "3", "unknown"], "numbers and words such as 'unknown'"),
])  # fmt: skip
def test_numbers_that_are_read_as_words_are_found(tmp_path: Path, cells: list[str], said: str) -> None:
    columns = columns_of_houses()
    columns["mass"] = [f'"{cells[i % len(cells)].replace("5", str(i % 7))}"' for i in range(ROWS)]
    findings = [f for f in examine(tmp_path, columns) if f.rule == "numbers-as-words"]
    assert only(findings).text.startswith(f"column 'mass' holds {said}: it is read as words. ")
    assert findings[0].examples[0].partition("houses.csv:")[2] in {"2", "3", "5"}


def test_units_that_all_cells_have_and_plain_words_are_in_order(tmp_path: Path) -> None:
    columns = columns_of_houses()
    columns["mass"] = [f"{i % 9} kg" for i in range(ROWS)]
    columns["code"] = [f"a{i % 9}" for i in range(ROWS)]
    assert [f for f in examine(tmp_path, columns) if f.rule == "numbers-as-words"] == []


def test_groups_in_columns_that_are_left_out_are_found(tmp_path: Path) -> None:
    columns = columns_of_houses() | {"patient_id": [i % 40 for i in range(ROWS)]}
    settings: dict[str, Any] = {"exclude": "patient_id", "time": "size", "missing_targets": "drop"}
    columns["dear"][3] = ""
    findings = [f for f in examine(tmp_path, columns, **settings) if f.rule == "split-groups"]
    assert only(findings).text.startswith("column 'patient_id'")
    data = Tabular(tmp_path / "houses.csv", "dear", **settings)
    parts = {**data}
    write(tmp_path / "houses.csv", {name: values[:50] for name, values in columns.items()})
    with pytest.raises(SigmaDataError, match=r"houses\.csv: has changed since it was read"):
        gather(data, parts)


@pytest.mark.parametrize(("limit", "quick"), [("CELLS", False), ("QUICK", True), ("MOST", False)])
def test_of_many_rows_the_first_of_each_split_are_examined(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: str, quick: bool
) -> None:
    monkeypatch.setattr(tables, limit, 100 if limit == "MOST" else 300)
    data = Tabular(write(tmp_path / "houses.csv", columns_of_houses()), "dear", split_by="stratified")
    rows = gather(data, {name: part.encode("targets", 0) for name, part in data.items()}, quick)
    assert {name: len(part) for name, part in rows.splits.items()} == {"training": 80, "validation": 20}
    assert len(rows) == len(rows.full_keys) == len(rows.columns["city"].values) == 100
    assert rows.sentences == (() if quick else ("there are 400 rows, of which 100 are examined.",))
    labels = np.array(rows.columns["dear"].words)[rows.columns["dear"].values.astype(int)]
    assert np.array_equal(np.array(rows.labels)[rows.classes], labels)
    for row in (0, 57, 99):
        line = (tmp_path / "houses.csv").read_text().splitlines()[int(rows.place(row).rpartition(":")[2]) - 1]
        assert line.startswith(f"{rows.columns['size'].values[row]:.10g},")


# -- splits ------------------------------------------------------------------------------------------------------------
def test_numbers_that_are_sorted_differ_between_blocks(tmp_path: Path) -> None:
    columns = columns_of_houses()
    columns["size"].sort()
    finding = only(examine(tmp_path, columns))
    assert (finding.rule, finding.severity) == ("drift", "warning")
    assert finding.text.startswith("column 'size' is distributed otherwise in 'validation' than in 'training': ")
    assert "(Kolmogorov-Smirnov distance 1.00)" in finding.text


def test_small_differences_between_many_rows_and_few_rows_are_no_drift() -> None:
    for rows, shift, count in ((10_000, 0.1, 0), (10_000, 0.5, 1), (30, 9.0, 0)):
        values = RANDOM.normal(size=2 * rows)
        values[rows:] += shift
        splits = {"training": np.arange(rows), "validation": np.arange(rows, 2 * rows)}
        column = ExaminedColumn("x", values)
        examined = ExaminedRows("x", hash_column(values), {"x": column}, ["x"], splits=splits)
        assert len([*find_drift(examined)]) == count


def test_words_that_are_sorted_differ_between_blocks(tmp_path: Path) -> None:
    columns = columns_of_houses() | {"{0}": sorted(["a", "b"] * 150) + ["a"] * 100}
    finding = only(examine(tmp_path, columns))
    assert finding.text.startswith("column '{0}' is distributed otherwise in 'validation'")
    assert "100.0 % and 50.0 % are 'a' (population stability index" in finding.text


def test_words_that_only_the_validation_has_are_found(tmp_path: Path) -> None:
    columns = columns_of_houses()
    columns["city"][305:308] = ["Chur"] * 3
    columns["city"][399] = ""  # missing, not unseen
    finding = only(examine(tmp_path, columns))
    assert (finding.rule, finding.severity) == ("unseen", "note")
    assert "3 rows of 'validation', 3 % of it, have words that no row of 'training' has: 'Chur'." in finding.text
    assert finding.examples[0].endswith("houses.csv:307")
    columns["city"][305:310] = ["Chur"] * 5
    assert only(examine(tmp_path, columns)).severity == "warning"


def test_a_column_of_one_value_in_the_training_alone_is_found(tmp_path: Path) -> None:
    columns = columns_of_houses() | {"sold": [0.5] * 300 + [0.5, 0.7] + [0.5] * 98}
    finding = only(examine(tmp_path, columns))
    assert (finding.rule, finding.severity) == ("constant-in-training", "warning")
    assert finding.text.startswith("column 'sold' has one value in all rows of 'training', and others elsewhere")


# -- targets -----------------------------------------------------------------------------------------------------------
def test_a_class_with_few_rows_in_the_training_is_found(tmp_path: Path) -> None:
    columns = columns_of_houses()
    columns["dear"][5] = columns["dear"][9] = columns["dear"][350] = "very"
    finding = only(examine(tmp_path, columns))
    assert (finding.rule, finding.severity) == ("rare-classes", "warning")
    assert finding.text.startswith("fewer than 5 rows of 'training' are of class 'very': little is learned")
    assert [place.rpartition(":")[2] for place in finding.examples] == ["7", "11"]


def test_labels_that_a_split_lacks_are_found_until_they_are_stratified(tmp_path: Path) -> None:
    columns = columns_of_houses() | {"old": [int(i < 30) for i in range(ROWS)], "red": [i % 2 for i in range(ROWS)]}
    columns["new"] = [int(i in (1, 399)) for i in range(ROWS)]
    settings: dict[str, Any] = {"exclude": "dear", "targets": "numbers"}
    rare = [f for f in examine(tmp_path, columns, ("old", "red"), **settings) if f.rule == "rare-labels"]
    assert only(rare).text == (
        "in 'validation', no row has the label 'old': little is measured about such rows. Set split_by = 'stratified', "
        "or add such rows."
    )
    stratified = examine(tmp_path, columns, ("old", "red"), split_by="stratified", **settings)
    assert [f for f in stratified if f.rule == "rare-labels"] == []
    rare = [f for f in examine(tmp_path, columns, ("new", "red"), **settings) if f.rule == "rare-labels"]
    assert only(rare).text.startswith("in 'training', fewer than 5 rows have the label 'new': little is learned about")


def test_a_class_that_the_training_lacks_is_told_by_the_data_set(tmp_path: Path) -> None:
    columns = columns_of_houses()
    columns["dear"][350] = "very"
    finding = only(examine(tmp_path, columns))
    assert finding.rule == "columns-and-classes"
    assert finding.text.startswith("class 'very' has no row in the split 'training'")


def test_a_target_that_makes_up_the_loss_is_found(tmp_path: Path) -> None:
    columns = columns_of_houses()
    columns["price"] = RANDOM.normal(100, 10, ROWS).tolist()
    assert examine(tmp_path, columns, "price", targets="numbers") == []
    columns["price"][11] = 99999.0
    finding = only(examine(tmp_path, columns, "price", targets="numbers"))
    assert (finding.rule, finding.severity) == ("outliers", "warning")
    assert finding.text.startswith("1 target of 400, such as 99999, has 100 % of the squared deviations")
    assert finding.examples[0].endswith("houses.csv:13")


def test_a_normal_and_a_skewed_distribution_have_no_outliers(tmp_path: Path) -> None:
    for seed in range(5):
        random = np.random.default_rng(seed)
        for prices in (random.normal(size=ROWS), random.lognormal(size=ROWS), random.exponential(size=ROWS)):
            columns = {**columns_of_houses(), "price": prices.tolist()}
            assert [f for f in examine(tmp_path, columns, "price", targets="numbers") if f.rule == "outliers"] == []


# -- statistics --------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("rows", "others"), [(200, 100), (51, 1000), (3, 4)])
def test_the_statistic_of_kolmogorov_and_smirnov_is_that_of_scipy(rows: int, others: int) -> None:
    first, second = RANDOM.normal(size=rows).round(1), RANDOM.normal(0.3, 1, others).round(1)  # with ties
    distance, p = compare_numbers(first, second)
    reference = stats.ks_2samp(first, second, method="asymp")
    assert distance == pytest.approx(reference.statistic, abs=1e-12)
    assert p == pytest.approx(scipy_kolmogorov(distance * np.sqrt(rows * others / (rows + others))), rel=1e-9)
    assert min(rows, others) < 50 or p == pytest.approx(reference.pvalue, rel=0.3, abs=1e-3)


@pytest.mark.parametrize("x", [0.0, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0])
def test_the_distribution_of_kolmogorov_is_that_of_scipy(x: float) -> None:
    assert kolmogorov(x) == pytest.approx(scipy_kolmogorov(x), rel=1e-9, abs=1e-300)


@pytest.mark.parametrize("freedom", [1, 2, 3, 10, 51, 199])
@pytest.mark.parametrize("x", [0.01, 1.0, 10.0, 200.0, 1000.0])
def test_the_chi_squared_distribution_is_that_of_scipy(x: float, freedom: int) -> None:
    assert chi_squared(x, freedom) == pytest.approx(stats.chi2.sf(x, freedom), rel=1e-8)


def test_counts_are_compared_as_in_scipy() -> None:
    first, second = np.array([30, 0, 12, 5]), np.array([20, 0, 40, 9])
    reference = stats.chi2_contingency(np.stack([first, second])[:, [0, 2, 3]])
    assert compare_counts(first, second) == pytest.approx((reference.statistic, reference.pvalue))
    assert compare_counts(first, 0 * first + first) == pytest.approx((0.0, 1.0))
    assert stability_index(first, first) == 0.0
    assert stability_index(np.array([100, 100]), np.array([50, 150])) == pytest.approx(0.27, abs=0.01)


def test_p_values_are_below_a_limit_as_rarely_as_it_says() -> None:
    alarms = np.array([
        [compare_numbers(random.normal(size=80), random.normal(size=60))[1], compare_counts(
            random.multinomial(80, [0.2, 0.3, 0.5]), random.multinomial(60, [0.2, 0.3, 0.5]))[1]]
        for random in map(np.random.default_rng, range(1000))
    ]) < 0.05  # fmt: skip
    assert (alarms.sum(axis=0) < stats.binom.ppf(0.999, 1000, 0.05)).all()
    assert (alarms.sum(axis=0) > 10).all()


# -- keys --------------------------------------------------------------------------------------------------------------
def test_keys_are_equal_for_equal_rows_alone() -> None:
    values = np.array([0.0, -0.0, 1.0, np.nan, -np.nan, np.inf, 2.0**-1074])
    keys = hash_column(values)
    assert keys[0] == keys[1]
    assert keys[3] == keys[4]
    assert len(np.unique(keys)) == 5
    a, b = np.array([1.0, 2.0, 1.0]), np.array([2.0, 1.0, 2.0])
    assert [*np.unique(hash_columns([a, b], 3), return_inverse=True)[1]] in ([0, 1, 0], [1, 0, 1])
    matrix = np.stack([a, b], axis=1)
    assert [*np.unique(hash_matrix(matrix), return_inverse=True)[1]] in ([0, 1, 0], [1, 0, 1])
    distinct = RANDOM.normal(size=(100_000, 3))
    assert len(np.unique(hash_matrix(distinct))) == len(distinct)
    assert len(np.unique(hash_matrix(np.float32([[0], [1], [-1]])))) == 3


def test_equal_keys_are_neighbours_in_their_order() -> None:
    order, starts = group_equal(np.array([5, 3, 5, 3, 9], np.uint64))
    assert (order.tolist(), starts.tolist()) == ([1, 3, 0, 2, 4], [0, 2, 4])
    assert [part.tolist() for part in group_equal(np.zeros(0, np.uint64))] == [[], []]


# -- pictures ----------------------------------------------------------------------------------------------------------
def draw(seed: int, side: int = 96) -> np.ndarray:
    """Return a picture of a few soft spots on a gradient."""
    random = np.random.default_rng(seed)
    y, x = np.mgrid[0:side, 0:side] / side
    shade = random.uniform(0, 60) * x + random.uniform(0, 60) * y
    for _ in range(6):
        cy, cx, width = random.uniform(0, 1, 3)
        shade = shade + random.uniform(-120, 120) * np.exp(-((y - cy) ** 2 + (x - cx) ** 2) / (0.02 + 0.05 * width))
    return np.clip(128 + np.stack([shade, 0.7 * shade, 0.4 * shade - 20], -1), 0, 255).astype(np.uint8)


def fill(folder: Path, parts: Mapping[str, int]) -> Path:
    seed = 0
    for name, count in parts.items():
        for kind in ("cat", "dog"):
            (folder / name / kind).mkdir(parents=True)
            for i in range(count):
                Image.fromarray(draw(seed)).save(folder / name / kind / f"{i:03d}.png")
                seed += 1
    return folder


def test_pictures_that_differ_are_in_order(tmp_path: Path) -> None:
    fill(tmp_path, {"train": 60, "val": 30})
    assert apply_rules(gather_place(tmp_path)) == []


def test_a_smaller_copy_in_another_split_is_found_by_its_path(tmp_path: Path) -> None:
    fill(tmp_path, {"train": 30, "val": 30})
    with Image.open(tmp_path / "train" / "cat" / "007.png") as image:
        image.resize((64, 60)).save(tmp_path / "val" / "dog" / "copy.jpg", quality=70)
    across, labels = apply_rules(gather_place(tmp_path))
    assert (across.rule, across.severity) == ("alike", "warning")
    assert across.text.startswith("1 of 61 pictures of 'validation' are nearly the same as one of 'training'")
    assert across.examples == ("train/cat/007.png and val/dog/copy.jpg",)
    assert labels.text.startswith("1 pairs of pictures that are nearly the same have different classes")


def test_equal_pictures_in_a_folder_without_splits_are_a_note(tmp_path: Path) -> None:
    fill(tmp_path / "all", {"": 30})
    (tmp_path / "all" / "cat" / "copy.png").write_bytes((tmp_path / "all" / "cat" / "000.png").read_bytes())
    notes = apply_rules(gather_place(tmp_path / "all"))
    assert {note.severity for note in notes} == {"note"}
    assert ("cat/000.png and cat/copy.png",) in [note.examples for note in notes if note.rule == "alike"]


def test_pictures_in_an_archive_are_examined_as_those_in_a_folder(tmp_path: Path) -> None:
    folder = fill(tmp_path / "all", {"": 15})
    (folder / "cat" / "copy.png").write_bytes((folder / "cat" / "000.png").read_bytes())
    shutil.make_archive(str(tmp_path / "pictures"), "zip", folder)
    notes = DataInspector().examine(tmp_path / "pictures.zip")
    assert [*notes] == [*DataInspector().examine(folder)]
    assert ("cat/000.png and cat/copy.png",) in [note.examples for note in notes if note.rule == "alike"]
    table = write(tmp_path / "houses.csv", columns_of_houses())
    with zipfile.ZipFile(tmp_path / "table.zip", "w") as archive:
        archive.write(table, "houses.csv")
    assert [*DataInspector().examine(tmp_path / "table.zip")] == []


@pytest.mark.parametrize("weights", [None, "balanced", {"cat": 2.0}])
def test_pictures_of_a_configuration_are_examined_in_its_splits(tmp_path: Path, weights: Any) -> None:
    fill(tmp_path / "all", {"": 20})
    for i in range(20):
        (tmp_path / "all" / "cat" / f"z{i:02d}.png").write_bytes(
            (tmp_path / "all" / "cat" / f"{i:03d}.png").read_bytes()
        )
    findings = examine_splits(ImageFolder(tmp_path / "all", size=(48, 48), class_weights=weights))
    copied = [f for f in findings if f.rule in ("alike", "shared-rows")][:2]
    assert [f.severity for f in copied] == ["error", "error"]
    assert all(place.startswith("cat/") for f in copied for place in f.examples[0].split(" and "))


def pair_up(thumbnails: np.ndarray) -> np.ndarray:
    return np.concatenate([np.zeros((0, 2), int), *find_pairs(thumbnails, choose_clear(thumbnails)[0])])


def test_pictures_that_differ_in_detail_alone_are_not_alike() -> None:
    small = shrink(np.stack([draw(1).transpose(2, 0, 1)] * 2))
    detail = np.kron(RANDOM.choice([-5, 5], (8, 8)), [[1, -1], [-1, 1]])
    assert len(pair_up(small)) == 1
    assert len(pair_up(small + np.stack([detail, -detail]))) == 0


def test_blank_pictures_are_not_compared() -> None:
    faint = np.float32(200) + RANDOM.uniform(-3, 3, (16, 16)).astype(np.float32)
    assert len(pair_up(np.stack([faint] * 4))) == 0
    assert len(pair_up(np.stack([10 * (faint - 190)] * 4))) == 6
    blank = np.full((50, 1, 40, 40), 200, np.uint8) + RANDOM.integers(0, 2, (50, 1, 40, 40)).astype(np.uint8)
    assert len(pair_up(shrink(blank))) == 0


def test_thumbnails_are_means_and_do_not_depend_on_brightness_and_gradients() -> None:
    pictures = RANDOM.uniform(0, 200, (5, 3, 32, 64))
    small = shrink(pictures)
    assert small[1, 2, 3] == pytest.approx(pictures[1, :, 4:6, 12:16].mean(), rel=1e-5)
    sky = np.linspace(0, 99, 16)
    units, contrast = describe_pictures(small)
    again, darker = describe_pictures(small * 0.5 + 20 + sky + 2 * sky[:, None])
    assert units == pytest.approx(again, abs=1e-4)
    assert darker == pytest.approx(contrast / 2, rel=1e-3)
    flat = small[0].astype(np.float64).ravel()
    design = np.stack([np.ones(256), *(axis.ravel() for axis in np.mgrid[0:16, 0:16])], axis=1)
    residual = flat - design @ np.linalg.lstsq(design, flat, rcond=None)[0]
    assert units[0] == pytest.approx(residual / np.linalg.norm(residual), abs=1e-5)


def test_copies_are_found_whatever_was_done_to_them() -> None:
    pictures = np.stack([draw(seed).transpose(2, 0, 1) for seed in range(60)])
    pictures = pictures[describe_pictures(shrink(pictures))[1] > 12]
    noisy = np.clip(pictures + RANDOM.integers(-9, 10, pictures.shape), 0, 255)
    every = np.concatenate([shrink(x) for x in (pictures, noisy, pictures[:, :, ::2, ::2], pictures // 2)])
    found, count = {tuple(pair) for pair in pair_up(every).tolist()}, len(pictures)
    assert count > 30
    assert found == {(a, b) for a in range(4 * count) for b in range(a + count, 4 * count, count)}


def crowd(splits: Mapping[str, np.ndarray], count: int, classes: np.ndarray | None = None) -> ExaminedRows:
    """Return rows of which all but the last are the same picture, each a little brighter than the one before."""
    pictures = np.repeat(shrink(draw(1).transpose(2, 0, 1)[None]), count, axis=0)
    pictures[-1] = shrink(draw(2).transpose(2, 0, 1)[None])
    pictures += np.linspace(0, 5, count, dtype=np.float32)[:, None, None]
    keys = np.arange(count, dtype=np.uint64)
    return ExaminedRows("x", keys, splits=splits, pictures=pictures, goal=classes)


@pytest.mark.parametrize("limits", [{}, {"CROWD": 50}, {"CROWD": 50, "SPARSE": 10}, {"BLOCK": 7, "CROWD": 1}])
def test_pairs_across_splits_are_counted_however_many_others_there_are(
    monkeypatch: pytest.MonkeyPatch, limits: Mapping[str, int]
) -> None:
    for name, value in limits.items():
        monkeypatch.setattr(alike, name, value)
    splits = {"training": np.arange(80), "validation": np.arange(80, 111)}
    across, same, labels = find_alike(crowd(splits, 111, (np.arange(111) >= 100).astype(int)))
    assert across.text.startswith("30 of 31 pictures of 'validation' are nearly the same as one of 'training'")
    assert (across.severity, across.examples[0]) == ("error", "row 0 and row 80")
    assert same.text.startswith("108 pictures are nearly the same as another one.")
    assert labels.text.startswith("1,000 pairs of pictures that are nearly the same have different classes")
    assert labels.examples == ("row 0 and row 100", "row 0 and row 101", "row 0 and row 102")


def test_a_copy_in_another_split_is_found_behind_a_crowd(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(alike, "CROWD", 50)
    monkeypatch.setattr(alike, "BLOCK", 16)
    rows = crowd({"training": np.arange(100), "validation": np.arange(100, 111)}, 111)
    for row, seed in enumerate(range(10, 21), start=100):
        rows.pictures[row] = shrink(draw(seed).transpose(2, 0, 1)[None])[0]
    rows.pictures[99] = rows.pictures[105] + 3
    across, same = find_alike(rows)
    assert across.text.startswith("1 of 11 pictures of 'validation'")
    assert across.examples == ("row 99 and row 105",)
    assert same.text.startswith("98 pictures")


def test_of_many_pictures_the_number_of_copies_is_estimated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(alike, "MOST", 50)
    splits = {"training": np.arange(80), "validation": np.arange(80, 111)}
    across, same = find_alike(crowd(splits, 111))
    assert across.text.startswith("at least about 30 of 31 pictures of 'validation' are nearly the same")
    assert across.text.endswith(" One picture in 3 was compared.")
    assert across.severity == "error"
    assert same.text.startswith("at least about 105 pictures are nearly the same as another one.")


# -- other data --------------------------------------------------------------------------------------------------------
def test_arrays_are_examined_without_names() -> None:
    inputs, targets = RANDOM.normal(size=(200, 3)), RANDOM.integers(0, 2, 200)
    splits = {
        "training": Arrays(inputs=inputs, targets=targets),
        "validation": Arrays(inputs=inputs[:60], targets=targets[:60]),
    }
    finding = only([*DataInspector().examine(splits)])
    assert (finding.rule, finding.severity) == ("shared-rows", "error")
    assert finding.examples[0] == "validation: row 0 and training: row 0"
    assert [*DataInspector().examine(splits, quick=True)] == [finding]
    one = {"training": splits["training"]}
    assert [*DataInspector().examine(one)] == []


def test_tables_with_gaps_dates_and_lists_are_read(tmp_path: Path) -> None:
    table = pa.table({
        "day": pa.array([1, None, 3, 1], pa.date32()), "tags": [["a"], None, ["b"], ["a"]],
        "flag": [True, None, False, True], "none": pa.array([None] * 4, pa.string()),
    })  # fmt: skip
    pq.write_table(table, tmp_path / "odd.parquet")
    finding = only(apply_rules(gather_place(tmp_path / "odd.parquet")))
    assert finding.rule == "duplicates"
    assert finding.text.startswith("1 row is equal")
