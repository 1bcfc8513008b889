"""The data set ``table``: roles of columns, splits, encoders fitted on training rows, prediction."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest

from sigma_data import Tabular
from sigma_data.encoded import EncodedColumn, EncodedColumns, describe_encoder, make_encoder, read_encoded
from sigma_data.encoders.boolean import BooleanEncoder
from sigma_data.encoders.date import DateEncoder
from sigma_data.encoders.hashing import HashingEncoder
from sigma_data.encoders.index import IndexEncoder
from sigma_data.encoders.number import NumberEncoder
from sigma_data.encoders.one_hot import OneHotEncoder
from sigma_data.encoders.ordinal import OrdinalEncoder
from sigma_data.encoders.target_mean import TargetMeanEncoder
from sigma_data.streaming import stream_rows
from sigma_kernel import Dataset, Encoder, Extractor, SigmaConfigError, SigmaDataError, SigmaError
from sigma_testing import DatasetSuite, ExtractorSuite

N = 60
SHARES = {"training": 0.5, "validation": 0.25, "test": 0.25}


def make_columns() -> dict[str, list[Any]]:
    rng = np.random.default_rng(3)
    return {
        "name": [f"house {i}" for i in range(N)],
        "size": [None if i % 10 == 9 else round(float(x), 3) for i, x in enumerate(rng.normal(100, 30, N))],
        "city": [("Bern", "Zug", "Basel")[i % 3] for i in range(N)],
        "sold": [f"20{10 + i // 6:02d}-0{1 + i % 6}-01" for i in range(N)],
        "agent": [f"a{i % 6}" for i in range(N)],
        "weight": [1.0 + i % 2 for i in range(N)],
        "garden": [bool(i % 2) for i in range(N)],
        "price": [round(float(x), 6) for x in rng.normal(500, 50, N)],
        "kind": [("flat", "house")[i % 4 == 0] for i in range(N)],
    }


@pytest.fixture
def table(tmp_path: Path) -> Path:
    pa.parquet.write_table(pa.table(make_columns()), tmp_path / "houses.parquet")
    return tmp_path / "houses.parquet"


def write_csv(path: Path, columns: Mapping[str, list[Any]]) -> Path:
    rows = zip(*columns.values(), strict=True)
    cells = [["" if cell is None else str(cell) for cell in row] for row in (columns, *rows)]
    path.write_text("".join(",".join(row) + "\n" for row in cells))
    return path


WRITERS: dict[str, Callable[[Any, Path], Any]] = {
    "houses.parquet": lambda table, path: pa.parquet.write_table(table, path),
    "houses.feather": lambda table, path: pa.feather.write_feather(table, path),
    "houses.csv": lambda table, path: write_csv(path, make_columns()),
}


def write_small(folder: Path) -> Path:
    return write_csv(folder / "small.csv", {name: values[:40] for name, values in make_columns().items()})


SEMICOLONS = {"delimiter": ";", "decimal": ","}


def write_semicolons(path: Path, columns: Mapping[str, list[Any]]) -> Path:
    write_csv(path, columns)
    path.write_text(path.read_text().replace(",", ";").replace(".", ","))
    return path


def test_a_run_on_a_text_reads_other_formats_whole_and_in_parts(table: Path, tmp_path: Path):
    path = write_semicolons(tmp_path / "houses.csv", make_columns())
    data = Tabular(path, "price", format=SEMICOLONS)
    learned = json.loads(json.dumps(data.learned))
    inputs = data.samples(path, (), learned=learned)
    columns = read_encoded(learned, "inputs", "x")
    for place in (table, path):
        assert np.array_equal(data.samples(place, (), learned=learned), inputs)
        parts = [part.sections["inputs"] for part in stream_rows([columns], place, 7, form=SEMICOLONS)]
        assert np.array_equal(np.concatenate(parts), inputs)
    with pytest.raises(SigmaConfigError, match="delimiter: .* is no delimited text, but parquet"):
        len(Tabular(table, "price", format=SEMICOLONS)["training"])


def test_settings_for_the_format_of_a_table_to_predict_from_are_kept(table: Path, tmp_path: Path):
    learned = Tabular(table, "price").learned
    columns = read_encoded(learned, "inputs", "x")
    packed = tmp_path / "houses.csv.gz"
    packed.write_bytes(gzip.compress(write_csv(tmp_path / "houses.csv", make_columns()).read_bytes()))
    for form, error, words in (
        ({"limit": 1000, **SEMICOLONS}, SigmaDataError, "unpacks to more than 1000 bytes"),
        ({"delimeter": ";"}, SigmaConfigError, "there is no setting 'delimeter'"),
        ({"format": "cvs"}, SigmaConfigError, "there is no 'cvs'"),
    ):
        data = Tabular(table, "price", format=form)
        with pytest.raises(error, match=words):
            data.samples(packed, (), learned=learned)
        with pytest.raises(error, match=words):
            next(stream_rows([columns], packed, 7, form=form))
    form = {"member": "x.csv", "query": "SELECT 1", "sheet": "s", "exact": ("name",)}
    assert len(Tabular(table, "price", format=form).samples(packed, (), learned=learned)) == N


class TestTabular(DatasetSuite):
    def make(self) -> Dataset:
        with TemporaryDirectory() as folder:
            return Tabular(write_small(Path(folder)), target="price")["training"]


class TestEncodedColumns(ExtractorSuite):
    def make(self) -> Extractor:
        state = {"fill": 0.0, "centre": 1.0, "width": 2.0}
        return EncodedColumns((EncodedColumn("size", NumberEncoder(), state),))

    def records(self) -> Mapping[str, np.ndarray]:
        return {"size": np.array([1.0, 3.0, 5.0]), "other": np.array([1.0, 2.0, 3.0])}

    def expected(self) -> Mapping[str, np.ndarray]:
        return {"inputs": np.array([[0.0], [1.0], [2.0]])}


@pytest.mark.parametrize("name", WRITERS)
def test_every_format_gives_the_same_rows(name: str, tmp_path: Path, table: Path) -> None:
    WRITERS[name](pa.table(make_columns()), tmp_path / name)
    settings: dict[str, Any] = {"target": "price", "split": SHARES, "exclude": ("name", "agent", "kind")}
    wanted, got = Tabular(table, **settings)["test"], Tabular(tmp_path / name, **settings)["test"]
    assert [*got.column_names("inputs")][:3] == ["size", "size is missing", "city=Basel"]
    for section, values in wanted.block(0).items():
        np.testing.assert_array_equal(got.block(0)[section], values)


def test_kinds_decide_which_columns_are_inputs(table: Path) -> None:
    names = Tabular(table, target="price", exclude="kind")["training"].column_names("inputs")
    assert not any(name.startswith(("name", "price", "kind")) for name in names)
    assert {"garden", "weight", "city=Zug", "agent=a0"} <= {*names}


def test_encoders_see_the_training_rows_alone(table: Path) -> None:
    data = Tabular(table, "price", split=SHARES)
    training = data["training"]
    rows = training.rows_of_dataset
    sizes = np.array([np.nan if x is None else x for x in make_columns()["size"]])[rows]
    state = next(c for c in data.learned["frames"]["inputs"]["columns"] if c["name"] == "size")["state"]
    there = sizes[~np.isnan(sizes)]
    assert state["fill"] == pytest.approx(np.median(there))
    filled = np.where(np.isnan(sizes), np.median(there), sizes)
    place = [*training.column_names("inputs")].index("size")
    values = training.block(0)["inputs"][:, place]
    np.testing.assert_allclose(values, (filled - state["centre"]) / state["width"], rtol=1e-12)
    np.testing.assert_allclose(state["centre"], there.mean(), rtol=1e-12)


def test_a_column_can_have_another_encoder_or_be_excluded(table: Path) -> None:
    columns = {
        "size": NumberEncoder(missing=0.0, scale="none"),
        "city": "exclude",
        "name": "hashing",
        "agent": "exclude",
    }
    training = Tabular(table, target="price", columns=columns)["training"]
    names = [*training.column_names("inputs")]
    assert any(name.startswith("name") for name in names)
    assert not any(name.startswith(("city", "agent")) for name in names)
    assert 0.0 in training.block(0)["inputs"][:, names.index("size")]


def test_training_rows_of_a_target_encoder_leave_their_own_target_out(table: Path) -> None:
    data = Tabular(table, target="price", columns={"city": TargetMeanEncoder()}, split=SHARES)
    place = [*data["training"].column_names("inputs")].index("city target")
    cities = np.array(make_columns()["city"])
    for split in ("training", "test"):
        rows, values = data[split].rows_of_dataset, data[split].block(0)["inputs"][:, place]
        distinct = len({*values.tolist()})
        assert distinct == len({*cities[rows]}) if split == "test" else distinct > 3


def test_classes_are_named_and_weights_kept(table: Path) -> None:
    data = Tabular(table, target="kind", weights="weight", split_by="stratified")
    assert data.classes == ("flat", "house")
    block, rows = data["validation"].block(0), data["validation"].rows_of_dataset
    kinds = np.array(make_columns()["kind"])[rows]
    np.testing.assert_array_equal(np.array(data.classes)[block["targets"]], kinds)
    np.testing.assert_array_equal(block["weights"], 1.0 + rows % 2)
    assert "weight" not in data["validation"].column_names("inputs")


def test_groups_stay_together(table: Path) -> None:
    data = Tabular(table, target="price", group="agent", split=SHARES)
    agents = np.array(make_columns()["agent"])
    held = [{*agents[data[split].rows_of_dataset]} for split in SHARES]
    assert sum(map(len, held)) == len({*agents}) == len(set.union(*held))


def test_time_divides_by_age(tmp_path: Path) -> None:
    columns = make_columns()
    order = np.random.default_rng(1).permutation(N)
    mixed = {name: [values[i] for i in order] for name, values in columns.items()}
    data = Tabular(write_csv(tmp_path / "t.csv", mixed), target="price", split_by="block", time="sold", split=SHARES)
    sold = dict(zip(mixed["price"], mixed["sold"], strict=True))
    dates = {split: [sold[price] for price in data[split].block(0)["targets"][:, 0].tolist()] for split in SHARES}
    latest = {split: (min(held), max(held)) for split, held in dates.items()}
    assert latest["training"][1] <= latest["validation"][0] <= latest["validation"][1] <= latest["test"][0]


def test_several_targets_are_numbers(table: Path) -> None:
    targets = Tabular(table, target=("price", "garden"))["training"].block(0)["targets"]
    assert targets.shape == (48, 2)
    assert {*targets[:, 1]} == {0.0, 1.0}


def test_rows_to_predict_may_have_gaps_new_words_and_other_columns(table: Path, tmp_path: Path) -> None:
    data = Tabular(table, target="price", exclude=("name", "kind"))
    learned = data.learned
    new = {name: values[:3] for name, values in make_columns().items() if name not in ("price", "kind")}
    new |= {"size": [None, 120.0, 130.0], "city": ["Chur", None, "Zug"], "note": ["x", "y", "z"]}
    reordered = dict(sorted(new.items()))
    samples = data.samples(write_csv(tmp_path / "new.csv", reordered), (0,), learned=learned)
    titles = [*data["training"].column_names("inputs")]
    assert samples.shape == (3, len(titles))
    assert np.isfinite(samples).all()
    np.testing.assert_array_equal(samples[:, titles.index("city=Zug")], [0, 0, 1])
    np.testing.assert_array_equal(samples[:, titles.index("size is missing")], [1, 0, 0])


FAULTS: dict[str, tuple[dict[str, Any], str]] = {
    "target": ({"target": "prize"}, r"there is no column 'prize'\. Did you mean 'price'\?"),
    "no target": ({"target": ()}, "Tabular.target: there is none"),
    "columns": ({"target": "price", "columns": {"sise": "number"}}, "no column 'sise'. Did you mean 'size'"),
    "own column": ({"target": "price", "columns": {"price": "number"}}, "'price' is no input"),
    "words": ({"target": "city", "targets": "numbers"}, "row 0: column 'city': 'Bern' is not a number"),
    "encoder": (
        {"target": "price", "columns": {"city": "number"}},
        r"houses\.parquet: row \d+: column 'city': '\w+' is not",
    ),
    "gap": ({"target": "size"}, r"houses\.parquet: row 9: the target, the weight, .* is missing, in 6 of 60 rows"),
    "nothing": (
        {"target": "price", "exclude": tuple(n for n in make_columns() if n != "price")},
        "no column can be an",
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_settings_that_do_not_fit_are_refused(fault: str, table: Path) -> None:
    settings, message = FAULTS[fault]
    with pytest.raises((SigmaConfigError, SigmaDataError, SigmaError), match=message):
        Tabular(table, **settings)["training"].block(0)


def test_rows_without_a_target_can_be_dropped(table: Path) -> None:
    data = Tabular(table, target="size", missing_targets="drop")
    assert sum(len(data[split]) for split in data) == 54


def test_damaged_columns_of_a_checkpoint_are_refused(table: Path) -> None:
    data = Tabular(table, target="price")
    with pytest.raises(SigmaDataError, match="the columns of the training are damaged in the checkpoint"):
        data.samples(table, (0,), learned={"frames": {"inputs": {"type": "sigma-data:encoded", "columns": 3}}})


def test_every_row_is_in_validation_once_over_the_folds(table: Path) -> None:
    folds = [Tabular(table, target="price", fold={"number": i, "of": 4}) for i in range(4)]
    rows = np.concatenate([fold["validation"].rows_of_dataset for fold in folds])
    assert sorted(rows.tolist()) == [*range(N)]
    columns = [fold.learned["frames"]["inputs"]["columns"] for fold in folds]
    fills = {column["state"]["fill"] for held in columns for column in held if column["name"] == "size"}
    assert len(fills) > 1  # fitted on the training rows of each fold


def test_an_error_names_the_row_of_the_file_also_if_rows_were_sorted(tmp_path: Path) -> None:
    columns = make_columns()
    columns["sold"] = columns["sold"][::-1]
    columns["size"] = [100.0 if x is None else x for x in columns["size"]]
    columns["price"][7] = float("inf")
    pa.parquet.write_table(pa.table(columns), tmp_path / "t.parquet")
    with pytest.raises(SigmaDataError, match=r"t\.parquet: row 7: column 'price': inf is not finite"):
        Tabular(tmp_path / "t.parquet", target="price", time="sold")["training"]


ENCODERS = [
    NumberEncoder(missing=0.0, clip=(1.0, 2.0), scale="robust"), OrdinalEncoder(("b", "a")), DateEncoder(("month",)),
    OneHotEncoder(least=3), HashingEncoder(8), TargetMeanEncoder(), BooleanEncoder("yes"), IndexEncoder(),
]  # fmt: skip


@pytest.mark.parametrize("encoder", ENCODERS, ids=lambda encoder: type(encoder).__name__)
def test_an_encoder_is_made_again_from_what_a_run_saves(encoder: Encoder) -> None:
    saved = json.loads(json.dumps(describe_encoder(encoder)))
    assert saved["type"].startswith("sigma-data:")
    assert describe_encoder(make_encoder(saved)) == saved
    assert repr(make_encoder(saved)) == repr(encoder).replace("(1.0, 2.0)", "[1.0, 2.0]")


def test_other_rows_are_encoded_as_those_of_the_training(table: Path, tmp_path: Path) -> None:
    training = Tabular(table, target="price", split=SHARES)["training"]
    few = {name: values[:6] for name, values in make_columns().items()}
    others = Tabular(write_csv(tmp_path / "few.csv", few), target="price", split={"training": 1.0})["training"]
    learned = training.dataset
    aligned = others.align(SimpleNamespace(tables=learned.tables, column_names=training.column_names))
    assert [*aligned.column_names("inputs")] == [*training.column_names("inputs")]
    np.testing.assert_array_equal(aligned.block(0)["inputs"], learned.tables["inputs"].extract(pa.table(few))["inputs"])
    assert not np.array_equal(aligned.block(0)["inputs"], others.block(0)["inputs"])
    del few["city"]
    lacking = Tabular(write_csv(tmp_path / "lacking.csv", few), target="price", split={"training": 1.0})["training"]
    with pytest.raises(SigmaDataError, match="lacking.csv: there is no column 'city'"):
        lacking.align(SimpleNamespace(tables=learned.tables, column_names=training.column_names))
