"""``sigma predict --save``: tables of predictions, for files of any size."""

from __future__ import annotations

import datetime
import json
import resource
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sigma_data
import sigma_ml as sm
from sigma_kernel import Environment, SigmaConfigError, SigmaDataError, SigmaError
from sigma_kernel.network.network import Network
from sigma_kernel.plugins.catalogue import catalogue
from sigma_layers import Input, Output, SquaredDifference
from sigma_run import load
from sigma_run.config import build, load as read
from sigma_run.launcher.group import main
from sigma_run.predicting import reading, writing
from sigma_run.predicting.columns import PredictionColumns
from sigma_run.predicting.predicted import save_predictions

pytestmark = pytest.mark.rooms
TOML = """
format = 1
[data]
dataset = {{ type = "{kind}", path = "houses.{suffix}", target = {target}, exclude = {exclude}{more} }}
batch_size = 32
{steps}
[network]
architecture = 'input({width}) + dense(8, activation="relu") + {ends}'
[trainer]
optimiser = "adam"
[hooks.finish]
type = "stop"
when = "epoch reaches 2"
"""
CLASSES = {"ends": "output(2) + softmax_cross_entropy()", "target": '"state"', "steps": "", "exclude": '["price"]'}
PRICES = {
    "ends": "output(1) + squared_difference()", "target": '"price"', "exclude": '["state"]',
    "steps": 'preprocessors.y = { type = "standardise", section = "targets" }',
}  # fmt: skip
ROWS = 400


def houses(rows=ROWS):
    draws = np.random.default_rng(3)
    area, city = draws.normal(90, 20, rows), draws.choice(["Bern", "Rome", "Oslo"], rows)
    frame = pd.DataFrame({"house": [f"H-{i:05d}" for i in range(rows)], "area": area, "city": city})
    frame["price"] = 1000 * area + 30_000 * (city == "Bern")
    return frame.assign(state=np.where(area > 90, "sold", "free"))


def trained(folder, about, kind="table", suffix="csv", width=4, more=""):
    frame = houses() if kind == "table" else houses().drop(columns=["house", "city"])
    frame.to_csv(folder / "houses.csv", index=False)
    frame.to_parquet(folder / "houses.parquet")
    file = folder / "houses.toml"
    file.write_text(TOML.format(**about, kind=kind, suffix=suffix, width=width, more=more))
    with build(read(file), catalogue(), folder / "runs") as environment:
        environment.run()
    return environment.run_folder


@pytest.fixture(scope="module")
def states(tmp_path_factory):
    return trained(tmp_path_factory.mktemp("runs"), CLASSES)


@pytest.fixture(scope="module")
def prices(tmp_path_factory):
    return trained(tmp_path_factory.mktemp("runs"), PRICES, suffix="parquet")


@pytest.fixture
def new(tmp_path, monkeypatch):
    """Return new houses, in files of several formats in the working directory."""
    monkeypatch.chdir(tmp_path)
    frame = houses(100).iloc[50:].drop(columns=["price", "state"]).reset_index(drop=True)
    frame.to_csv("new.csv", index=False)
    frame.to_parquet("new.parquet")
    frame.to_json("new.jsonl", orient="records", lines=True)
    return frame


def sigma(capsys, *arguments):
    capsys.readouterr()
    code = main(["predict", *map(str, arguments)])
    said = capsys.readouterr()
    assert "Traceback" not in said.err
    assert "bug in Sigma" not in said.err
    return code, said.err


# -- what is in the table ----------------------------------------------------------------------------------------------
def test_classes_are_named_and_have_probabilities_beside_the_columns_that_name_a_row(states, new, capsys):
    assert sigma(capsys, states, "new.csv", "--save", "out.csv")[0] == 0
    table, expected = pd.read_csv("out.csv"), load(states).predict(new)
    assert [*table] == ["house", "predicted_state", "probability_free", "probability_sold"]
    assert table.house.tolist() == new.house.tolist()
    assert np.array_equal(table[["probability_free", "probability_sold"]].to_numpy(np.float32), expected)
    assert table.predicted_state.tolist() == np.array(["free", "sold"])[expected.argmax(1)].tolist()


def test_numbers_are_in_the_units_of_their_target(prices, new, capsys):
    assert sigma(capsys, prices, "new.parquet", "--save", "out.parquet", "--keep", "area, city")[0] == 0
    table = pd.read_parquet("out.parquet")
    assert [*table] == ["house", "area", "city", "predicted_price"]
    assert np.array_equal(table.predicted_price, load(prices).predict(new)[:, 0])
    assert 50_000 < table.predicted_price.mean() < 150_000
    assert table[["house", "area", "city"]].equals(new[["house", "area", "city"]])


def test_every_format_gives_the_same_table(states, new, capsys):
    tables = []
    for given in ("new.csv", "new.parquet", "new.jsonl"):
        assert sigma(capsys, states, given, "--save", "out.parquet", "--force")[0] == 0
        tables.append(pq.read_table("out.parquet"))
    assert tables[0].equals(tables[1])
    assert tables[0].equals(tables[2])
    assert sigma(capsys, states, "new.csv", "--save", "out.jsonl")[0] == 0
    rows = [json.loads(line) for line in Path("out.jsonl").read_text().splitlines()]
    assert rows == tables[0].to_pylist()


def test_several_inputs_are_named(states, new, capsys):
    assert sigma(capsys, states, "new.csv", "new.parquet", "--save", "out.csv")[0] == 0
    table = pd.read_csv("out.csv")
    assert table.input.tolist() == ["new.csv"] * 50 + ["new.parquet"] * 50
    assert table.house[:50].tolist() == table.house[50:].tolist()


def test_columns_of_several_inputs_are_matched_by_name(states, new, capsys):
    noted = new.assign(note=[f"n{i}" for i in range(50)])
    noted.to_csv("one.csv", index=False)
    noted[[*reversed(noted.columns)]].to_csv("two.csv", index=False)
    assert sigma(capsys, states, "one.csv", "two.csv", "--save", "out.csv", "--keep", "note")[0] == 0
    table = pd.read_csv("out.csv")
    assert table.note.tolist() == noted.note.tolist() * 2
    assert table.house.tolist() == new.house.tolist() * 2


@pytest.mark.parametrize("suffix", ["csv", "parquet", "jsonl"])
def test_inputs_whose_columns_differ_are_refused(suffix, states, new, capsys):
    new.drop(columns="house").to_parquet("less.parquet")
    new.assign(house=range(50)).to_parquet("numbers.parquet")
    for other, words in (
        ("less.parquet", "less.parquet: the inputs before differ in column 'house'. Predict from it alone."),
        ("numbers.parquet", "numbers.parquet: column 'house' holds int64, but string in the inputs before."),
    ):
        code, said = sigma(capsys, states, "new.parquet", other, "--save", f"out.{suffix}")
        assert (code, words in said, Path(f"out.{suffix}").exists()) == (2, True, False)


def test_missing_and_unseen_values_are_replaced_and_counted(states, new, capsys):
    new.loc[3:4, "area"] = np.nan
    new.loc[7, "city"] = "Atlantis"
    new.to_csv("gaps.csv", index=False)
    code, said = sigma(capsys, states, "gaps.csv", "--save", "out.csv")
    assert code == 0
    assert (
        "replaced as in the training: missing values (2 in 'area'); categories that no training row has (1 in 'city')."
        in said
    )
    assert np.isfinite(pd.read_csv("out.csv").probability_sold).all()


@pytest.mark.parametrize("broken", [False, True])  # a row for which the table is parsed in Python
def test_codes_keep_their_leading_zeros(broken, prices, new, capsys):
    codes = [f"{i:04d}" for i in range(50)]
    new.assign(house=codes, zip=range(50)).to_csv("codes.csv", index=False)
    if broken:
        text = Path("codes.csv").read_text()
        Path("codes.csv").write_text(text.replace("Bern", '"Be""rn"', 1))
    assert sigma(capsys, prices, "codes.csv", "--save", "out.parquet", "--keep", "zip")[0] == 0
    table = pd.read_parquet("out.parquet")
    assert table.house.tolist() == codes
    assert table.zip.tolist() == [*range(50)]


def test_the_kind_csv_keeps_excluded_columns_and_reads_other_formats(tmp_path, monkeypatch, capsys):
    run = trained(tmp_path, {**PRICES, "exclude": '["state"]'}, kind="csv", width=1)
    monkeypatch.chdir(tmp_path)
    houses().head(9).rename(columns={"state": "state"}).to_parquet("new.parquet")
    assert sigma(capsys, run, "new.parquet", "--save", "out.csv")[0] == 0
    table = pd.read_csv("out.csv")
    assert [*table] == ["state", "predicted_price"]
    assert np.allclose(table.predicted_price, load(run).predict(houses().head(9)[["area"]])[:, 0], rtol=1e-6)


def test_a_network_that_was_trained_on_a_frame_keeps_what_it_left_out(tmp_path, new):
    frame = houses().drop(columns="price")
    data = sigma_data.Frame(frame, target="state", exclude="house", encode=["city"], missing=90.0)
    environment = Environment("frame", folder=tmp_path)
    environment.create_trainer(
        data=data, network="input(4) + output(2) + softmax_cross_entropy()", optimiser="adam", epochs=1
    )
    with environment:
        environment.run()
    new.loc[3, "area"] = None
    new.to_csv("new.csv", index=False)
    table = load(environment.run_folder).predict("new.csv")
    assert table.columns == ["house", "predicted_state", "probability_free", "probability_sold"]
    assert table.replaced == {"area": (1, 0)}
    filled = new.fillna({"area": 90.0})[["area", "city"]]
    assert np.array_equal(table["probability_sold"], load(environment.run_folder).predict(filled)[:, 1])
    new.loc[4, "city"] = "Atlantis"
    new.to_csv("new.csv", index=False)
    with pytest.raises(SigmaDataError, match=r"new.csv:6: column 'city': 'Atlantis' is not one of the 3 categories"):
        load(environment.run_folder).predict("new.csv")


def test_arrays_without_names_are_numbered(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    text = "format = 1\n[data]\ndataset = 'iris'\n[network]\narchitecture = "
    text += "'input(4) + output(3) + softmax_cross_entropy()'\n[trainer]\noptimiser = 'gradient_descent'\nepochs = 1\n"
    with build(read(text), catalogue(), tmp_path) as environment:
        environment.run()
    flowers = sigma_data.Iris()["validation"].block(0)["inputs"]
    np.save("x.npy", flowers)
    assert sigma(capsys, environment.run_folder, "x.npy", "--save", "out.csv")[0] == 0
    table = pd.read_csv("out.csv")
    assert [*table] == ["row", "predicted", *(f"probability_{name}" for name in ("setosa", "versicolor", "virginica"))]
    assert table.row.tolist() == [*range(len(flowers))]
    code, said = sigma(capsys, environment.run_folder, "x.npy", "--save", "more.csv", "--keep", "id")
    assert code == 2
    assert "--keep id: x.npy has no columns with names" in said


def test_predictions_of_a_path_and_of_a_frame_are_tables_in_python(prices, new):
    model = load(prices)
    table = model.predict("new.csv")
    assert len(table) == 50
    assert table.columns == ["house", "predicted_price"]
    assert table.to_pandas().equals(model.predict_table(new).to_pandas())
    stream = pa.RecordBatchReader.from_batches((rows := pa.table(new)).schema, rows.to_batches())  # without columns
    assert np.array_equal(model.predict(stream), model.predict(new))
    assert table.to_arrow().equals(pa.table(table))
    assert np.array_equal(table["predicted_price"], model.predict(new)[:, 0])
    assert pq.read_table(table.save("out.parquet")).equals(table.to_arrow())
    with pytest.raises(SigmaConfigError, match="already exists"):
        table.save("out.parquet")
    with pytest.raises(KeyError):
        table["price"]
    assert repr(table) == "PredictedTable(replaced={'area': (0, 0), 'city': (0, 0)})"


# -- targets of several kinds ------------------------------------------------------------------------------------------
BOTH = """
format = 1
[data]
dataset = { type = "table", path = "houses.csv", target = { worth = "price", state = "state" } }
batch_size = 32
preprocessors.units = { type = "standardise", section = "worth" }
[network]
architecture = '''
trunk = input(4) + dense(8, activation="tanh")
trunk + output(1, name="money") + squared_difference(targets="worth")
trunk + output(2, name="which") + softmax_cross_entropy(targets="state")
'''
[trainer]
optimiser = { type = "adam", learning_rate = 0.03 }
epochs = 40
"""


def test_a_number_and_a_class_of_one_table_are_predicted_together(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    houses().to_csv("houses.csv", index=False)
    Path("both.toml").write_text(BOTH)
    with build(read(Path("both.toml")), catalogue(), tmp_path / "runs") as environment:
        environment.run()
    new = houses(500).iloc[400:].reset_index(drop=True)
    new.drop(columns=["price", "state"]).to_parquet("new.parquet")
    assert sigma(capsys, environment.run_folder, "new.parquet", "--save", "out.csv")[0] == 0
    table, model = pd.read_csv("out.csv"), load(environment.run_folder)
    assert [*table] == [
        "house",
        "predicted_price",
        "predicted_state",
        "probability_state_free",
        "probability_state_sold",
    ]
    predicted = model.predict(new)
    assert np.array_equal(table.predicted_price, predicted["money"][:, 0])
    assert np.array_equal(np.float32(table.probability_state_sold), predicted["which"][:, 1])
    assert np.abs(table.predicted_price - new.price).mean() < 5000 < new.price.std()
    assert (table.predicted_state == new.state).mean() > 0.9
    assert model.evaluate("validation", {"which.accuracy": "accuracy"})["which.accuracy"] > 0.9


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ({}, "there is none. Name the column to predict."),
        ({"a": ()}, "there is none. Name the column to predict."),
        ({"inputs": "price"}, "'inputs' is no section of targets. Choose another name."),
        (("price", "state"), "Targets of several kinds have a section each: target = { state = 'state', ... }."),
        ({"a": "price", "b": "stat"}, "'stat'"),
    ],
)
def test_targets_that_do_not_fit_are_refused(target, message, tmp_path):
    houses(20).to_csv(tmp_path / "houses.csv", index=False)
    with pytest.raises((SigmaConfigError, SigmaDataError)) as refusal:
        _ = sigma_data.Tabular(tmp_path / "houses.csv", target)["training"]
    assert message in str(refusal.value)


# -- names of columns --------------------------------------------------------------------------------------------------
def test_the_labels_that_a_row_has_and_two_classes_of_one_output(tmp_path):
    draws = np.random.default_rng(0)
    inputs, labels = draws.normal(size=(40, 2)), (draws.random((40, 3)) < 0.5).astype(np.float32)
    targets = pd.DataFrame(labels, columns=["cat", "dog", "cow"])
    environment = Environment("labels", folder=tmp_path)
    several = environment.create_trainer(
        "several", network="input(2) + output(3) + binary_cross_entropy()", epochs=1, optimiser="adam",
        data=sigma_data.Arrays(inputs=inputs, targets=targets),
    )  # fmt: skip
    two = environment.create_trainer(
        "two", network="input(2) + output(1) + binary_cross_entropy()", epochs=1, optimiser="adam",
        data=sigma_data.Arrays(inputs=inputs, targets=np.where(labels[:, 0] > 0, "cat", "none")),
    )  # fmt: skip
    with environment:
        environment.run()
    np.save(tmp_path / "x.npy", inputs)
    table = load(environment.run_folder, several.name).predict(tmp_path / "x.npy").to_pandas()
    names = ["cat", "dog", "cow"]
    assert [*table] == ["row", *(f"predicted_{name}" for name in names), *(f"probability_{name}" for name in names)]
    assert np.array_equal(table[[f"probability_{name}" for name in names]], several.predict(inputs))
    assert table.predicted_dog.tolist() == (table.probability_dog > 0.5).tolist()
    table = load(environment.run_folder, two.name).predict(str(tmp_path / "x.npy")).to_pandas()
    assert [*table] == ["row", "predicted", "probability_cat", "probability_none"]
    assert table.predicted.tolist() == two.classify(inputs).tolist()
    assert np.array_equal(table.probability_none, two.predict(inputs)[:, 0])
    assert (table.probability_cat + table.probability_none).to_numpy() == pytest.approx(np.ones(40))


def test_numbers_without_names_are_counted_and_equal_names_are_refused():
    network = Input(2) + Output(2) + SquaredDifference()
    several = PredictionColumns(Network.build(network), {}, {})
    name = several.network.outputs[0].name
    values = np.arange(6.0).reshape(3, 2)
    assert [*several.cut({name: values})] == ["predicted_0", "predicted_1"]
    assert several.cut({name: values})["predicted_1"].tolist() == [1.0, 3.0, 5.0]
    assert [*PredictionColumns(several.network, {}, {name: ["a", "b"]}).cut({name: values})] == [
        "predicted_a", "predicted_b",
    ]  # fmt: skip
    with pytest.raises(SigmaConfigError, match="2 columns would be called 'predicted_a'"):
        PredictionColumns(several.network, {}, {name: ["a", "a"]}).cut({name: values})


# -- parts -------------------------------------------------------------------------------------------------------------
def test_the_bits_do_not_depend_on_the_parts_nor_on_the_groups_of_rows_in_the_file(states, new, monkeypatch):
    model = load(states)
    whole = model.predict_table(houses()).to_arrow()
    monkeypatch.setattr(reading, "ELEMENTS", 1)
    assert [len(part) for part in reading.read_parts(model, houses())] == [32] * 12 + [16]
    pq.write_table(pa.Table.from_pandas(houses()), "small.parquet", row_group_size=7)
    parts = model.predict_table("small.parquet").to_arrow()
    assert parts.combine_chunks().equals(whole.combine_chunks())
    assert np.array_equal(whole["probability_sold"], model.predict(houses())[:, 1])


def test_rows_in_another_order_have_the_same_predictions(states):
    model, order = load(states), np.random.default_rng(5).permutation(ROWS)
    one, other = (model.predict_table(rows).to_pandas() for rows in (houses(), houses().iloc[order]))
    one = one.iloc[order].reset_index(drop=True)
    assert one.house.equals(other.house)
    assert np.allclose(one.probability_sold, other.probability_sold, atol=1e-6, rtol=0)


def test_a_large_file_is_read_part_by_part(states, new, monkeypatch):
    model, rows = load(states), []
    monkeypatch.setattr(reading, "ELEMENTS", 1 << 12)
    pq.write_table(pa.Table.from_pandas(pd.concat([new] * 400)), "large.parquet")
    predict = type(model).predict

    def count_rows(self, part):
        rows.append(len(part["inputs"]))
        return predict(self, part)

    monkeypatch.setattr(type(model), "predict", count_rows)
    table = model.predict_table("large.parquet")
    assert (sum(rows), max(rows)) == (len(table), 1024) == (20_000, 1024)


# -- files -------------------------------------------------------------------------------------------------------------
def test_nothing_is_overwritten_without_force(states, new, capsys):
    Path("out.csv").write_text("mine")
    code, said = sigma(capsys, states, "new.csv", "--save", "out.csv")
    assert (code, Path("out.csv").read_text()) == (2, "mine")
    assert "out.csv: already exists. Pass --force to replace it, or another name." in said
    assert sigma(capsys, states, "new.csv", "--save", "out.csv", "--force")[0] == 0
    assert len(pd.read_csv("out.csv")) == 50


def test_an_error_in_a_later_part_leaves_no_file(tmp_path, monkeypatch, capsys):
    run = trained(tmp_path, PRICES, kind="csv", width=1)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(reading, "ELEMENTS", 1)
    frame = houses(100)
    frame.loc[97, "area"] = np.nan
    frame.to_csv("new.csv", index=False)
    before = sorted(tmp_path.iterdir())
    code, said = sigma(capsys, run, "new.csv", "--save", "out.csv")
    assert code == 2
    assert "new.csv:99: column 'area': a value is missing" in said
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.parametrize("suffix", ["csv", "parquet", "jsonl"])
def test_a_full_disk_leaves_no_file(suffix, states, new, capsys):
    before, limits = sorted(Path().iterdir()), resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (512, limits[1]))
    try:
        code, said = sigma(capsys, states, "new.csv", "--save", f"out.{suffix}")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert code == 2
    assert f"out.{suffix}: cannot be written: " in said
    assert sorted(Path().iterdir()) == before


def test_an_input_that_cannot_be_read_is_not_taken_for_a_full_disk(states, new, monkeypatch):
    def fail(*_, **__):
        raise OSError(5, "Input/output error")

    monkeypatch.setattr("sigma_run.predicting.predicted.read_parts", fail)
    with pytest.raises(OSError, match="Input/output error"):
        save_predictions(load(states), [Path("new.csv")], Path("out.csv"))
    assert not [*Path().glob("out.csv"), *Path().glob(".sigma-*")]


def test_an_interruption_leaves_no_file(states, new):
    model, before = load(states), sorted(Path().iterdir())
    table = model.predict_table("new.csv").to_arrow()

    def interrupt():
        with writing.new_table(Path("out.csv")) as write:
            write(table)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupt()
    assert sorted(Path().iterdir()) == before


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--save", "out.txt"], "--save out.txt: must be a .csv, .parquet or .jsonl file."),
        (["--save", "no/out.csv"], "--save no/out.csv: 'no' is not a directory. Create it first."),
        (["--save", "out.csv", "--keep", "aera"], "there is no column 'aera' to keep. Did you mean 'area'?"),
        (["--save", "out.csv", "--output", "out.npy"], "Both --output and --save were given."),
        (["--force"], "--force is for a table. Give --save FILE, too."),
        (["--keep", "area"], "--keep is for a table. Give --save FILE, too."),
    ],
)
def test_options_that_do_not_fit_are_refused(options, message, states, new, capsys):
    code, said = sigma(capsys, states, "new.csv", *options)
    assert code == 2
    assert message in " ".join(said.split())
    assert not Path("out.csv").exists()


def test_columns_that_csv_cannot_hold_and_names_that_occur_twice_are_refused(states, new, capsys):
    new.assign(tags=[["a"]] * 50).to_parquet("lists.parquet")
    code, said = sigma(capsys, states, "lists.parquet", "--save", "out.csv", "--keep", "tags")
    assert code == 2
    assert "--keep tags: holds list<element: string>, for which CSV has no form. Save a .parquet file." in said
    assert not Path("out.csv").exists()
    new.assign(predicted_state=1).to_parquet("twice.parquet")
    code, said = sigma(capsys, states, "twice.parquet", "--save", "out.csv", "--keep", "predicted_state")
    assert code == 2
    assert "'predicted_state' is the name of a prediction, too. Rename this column." in said
    assert not Path("out.csv").exists()


def test_tables_without_rows_are_refused(states, new, capsys):
    new.iloc[:0].to_parquet("empty.parquet")
    with pytest.raises(SigmaError, match="there is no row"):
        load(states).predict_table("empty.parquet")
    code, said = sigma(capsys, states, "empty.parquet", "--save", "out.csv")
    assert (code, "there is no row" in said, Path("out.csv").exists()) == (2, True, False)


def test_dates_and_bytes_are_texts_in_lines_of_json(states, new, capsys):
    day, time = pd.Timestamp("2024-02-29 12:30"), pd.Timestamp("2024-02-29 12:30").time()
    new.assign(day=day, time=time, code=b"\x01\xff").to_parquet("dated.parquet")
    assert sigma(capsys, states, "dated.parquet", "--save", "out.jsonl", "--keep", "day,time,code")[0] == 0
    first = json.loads(Path("out.jsonl").read_text("utf-8").partition("\n")[0])
    assert (first["day"], first["time"], first["code"]) == ("2024-02-29T12:30:00", "12:30:00.000000", "01ff")


def test_a_frame_does_not_fit_a_network_without_columns(tmp_path, new):
    environment = sm.Environment("arrays", folder=tmp_path / "runs")
    trainer = environment.create_trainer(
        data=(np.zeros((8, 3), np.float32), np.zeros((8, 1), np.float32)),
        batch_size=4,
        network="input(3) + output(1) + squared_difference()",
        optimiser="gradient_descent",
    )
    trainer.fit(epochs=1)
    model = load(environment.run_folder)
    with pytest.raises(SigmaConfigError, match="the network was not trained on columns with names"):
        model.predict_table(new)


def test_files_hold_one_of_several_sections(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    environment = sm.Environment("two", folder=tmp_path / "runs")
    trainer = environment.create_trainer(
        data={"a": np.zeros((8, 3), np.float32), "b": np.zeros((8, 2), np.float32), "targets": np.zeros((8, 1))},
        batch_size=4,
        network="concat(input(3, section='a'), input(2, section='b')) + output(1) + squared_difference()",
        optimiser="gradient_descent",
    )
    trainer.fit(epochs=1)
    np.save("x.npy", np.zeros((2, 3), np.float32))
    with pytest.raises(SigmaConfigError, match="the network reads several sections: a, b"):
        load(environment.run_folder).predict_table("x.npy")


def test_a_table_that_lacks_a_column_is_refused(states, new):
    with pytest.raises(SigmaDataError, match=r"there is no column 'city'"):
        load(states).predict_table(new.drop(columns="city"))
    Path("new.jsonl").write_bytes(Path("new.jsonl").read_bytes()[:-20])
    with pytest.raises(SigmaDataError, match=r"new\.jsonl:50: is not JSON"):
        load(states).predict_table("new.jsonl")


def test_identifying_columns_that_csv_cannot_hold_are_left_out_unless_they_are_named():
    table = pa.table(
        {"tags": [["a"]], "blob": [b"x"], "inner": [{"a": 1}], "name": ["b"], "day": [datetime.date(2024, 1, 1)]}
    )
    assert writing.drop_unwritable(table, Path("out.csv"), []).column_names == ["name", "day"]
    assert writing.drop_unwritable(table, Path("out.csv"), ["tags"]).column_names == ["tags", "name", "day"]
    assert writing.drop_unwritable(table, Path("out.parquet"), []) is table
