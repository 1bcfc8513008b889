"""The identity of data: columns, classes and rows that are read again are those of the training, or are refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from attrs import evolve

from sigma_data import Csv
from sigma_kernel import Environment
from sigma_kernel.errors import SigmaDataError, SigmaError
from sigma_run import load
from sigma_run.launcher.group import main
from sigma_store.checkpoints.store import write
from sigma_testing.checkpoints import newest_checkpoint
from sigma_testing.steering import Rows
from sigma_training.data.identity import changed_rows, describe_rows

DRAW = np.random.default_rng(0)
TABLE = pd.DataFrame(DRAW.normal(size=(60, 3)) * [1, 10, 100], columns=["a", "b", "c"])
TABLE["y"] = np.where(TABLE["a"] > 0, "u", "v")
FILE = """format = 1
[run]
name = "it"
backend = "numpy"
[data]
dataset = "csv"
path = "t.csv"
target = "y"
batch_size = 8
preprocessors = ["standardise"]
[network]
architecture = "input(3) + output(2) + softmax_cross_entropy()"
[trainer]
epochs = 4
optimiser = { type = "adam", learning_rate = 0.1 }
[hooks.score]
type = "accuracy"
on = "validation"
"""
Sigma = Callable[..., tuple[int, str, str]]


@pytest.fixture
def sigma(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Sigma:
    """Return a function that calls the command in an empty folder: its exit code, what it prints, and the errors."""
    monkeypatch.chdir(tmp_path)

    def call(*words: object) -> tuple[int, str, str]:
        code = main([str(word) for word in words])
        return (code, *capsys.readouterr())

    return call


@pytest.fixture
def run(sigma: Sigma) -> Path:
    TABLE.to_csv("t.csv", index=False)
    Path("c.toml").write_text(FILE)
    return Path(json.loads(sigma("run", "c.toml", "--quiet", "--json")[1])["folder"])


def evaluated(sigma: Sigma, run: Path, *more: object) -> dict[str, float]:
    code, out, err = sigma("evaluate", run, "--json", *more)
    assert code == 0, err
    return dict(json.loads(out)["metrics"])


# -- columns and classes -----------------------------------------------------------------------------------------------
def test_a_table_that_was_exported_anew_with_other_columns_first_evaluates_to_the_same(sigma: Sigma, run: Path) -> None:
    wanted = evaluated(sigma, run)
    TABLE[["c", "y", "b", "a"]].to_csv("t.csv", index=False)
    assert evaluated(sigma, run) == wanted


def test_training_goes_on_to_the_same_bits_with_the_columns_in_another_order(sigma: Sigma, run: Path) -> None:
    TABLE[["y", "c", "b", "a"]].to_csv("t.csv", index=False)
    _, out, _ = sigma("resume", run, "--epochs", 6, "--quiet", "--json")
    TABLE.to_csv("t.csv", index=False)
    whole = json.loads(sigma("run", "c.toml", "--epochs", 6, "--quiet", "--json")[1])
    assert json.loads(out)["parameters_sha256"] == whole["parameters_sha256"]
    assert load(run).columns == {"inputs": ["a", "b", "c"]}
    rows = TABLE[["c", "a", "b"]]
    assert load(run).classify(rows).tolist() == load(whole["folder"]).classify(rows).tolist()


def renamed(before: str, after: str) -> pd.DataFrame:
    return TABLE.rename(columns={before: after})


CHANGED: dict[str, tuple[pd.DataFrame, str]] = {
    "a class": (TABLE.replace({"y": {"u": "z"}}), "holds the class 'z', which the training split does not have"),
    "a column": (TABLE.drop(columns="b"), "there is no column 'b'; it has 'a', 'c'"),
    "one more": (TABLE.assign(d=1.0), "was not trained on column 'd', but on 'a', 'b', 'c'. Name those in `inputs`"),
    "a name": (renamed("b", "B"), "there is no column 'b'; it has 'a', 'B', 'c'"),
    "order": (TABLE[::-1], "the rows of 'training' have changed since the training: 48 as before, with other values"),
    "more rows": (pd.concat([TABLE, TABLE[:10]]), "the rows of 'training' have changed since the training: 48 then"),
    "fewer rows": (TABLE[:50], "'validation' have changed since the training: 12 then, 10 now"),
    "a value": (TABLE.assign(a=TABLE["a"] + (TABLE.index == 7)), "with other values"),
}


@pytest.mark.parametrize("what", CHANGED)
@pytest.mark.parametrize("command", ["evaluate", "resume", "replay"])
def test_data_that_differ_are_refused_by_name(what: str, command: str, sigma: Sigma, run: Path) -> None:
    before = {str(path): path.read_bytes() for path in sorted(run.rglob("*")) if path.is_file()}
    table, message = CHANGED[what]
    table.to_csv("t.csv", index=False)
    code, _, err = sigma(command, run, *(["--epochs", 5] if command == "resume" else []))
    assert code != 0
    assert message in err
    assert {str(path): path.read_bytes() for path in sorted(run.rglob("*")) if path.is_file()} == before


def test_an_identical_table_in_another_notation_is_the_same(sigma: Sigma, run: Path) -> None:
    wanted = evaluated(sigma, run)
    TABLE.map(lambda cell: f"{cell:+.17e}" if isinstance(cell, float) else cell).to_csv("t.csv", index=False)
    assert evaluated(sigma, run) == wanted


def test_a_missing_category_is_no_other_and_a_new_one_is_refused(sigma: Sigma) -> None:
    table = TABLE.assign(kind=np.where(TABLE["b"] > 0, "red", np.where(TABLE["c"] > 0, "green", "blue")))
    table.to_csv("t.csv", index=False)
    Path("c.toml").write_text(FILE.replace("input(3)", "input(6)").replace("batch_size", 'encode = "kind"\nbatch_size'))
    run = Path(json.loads(sigma("run", "c.toml", "--quiet", "--json")[1])["folder"])
    some, model = table[table["kind"] != "green"], load(run)
    some[["y", "kind", "c", "b", "a"]].to_csv("some.csv", index=False)
    chosen = model.classify(some)
    assert evaluated(sigma, run, "some.csv")["accuracy"] == pytest.approx(np.mean(chosen == some["y"]), abs=1e-12)
    some.replace({"kind": {"red": "pink"}}).to_csv("some.csv", index=False)
    code, _, err = sigma("evaluate", run, "some.csv")
    assert code != 0
    assert "column 'kind': 'pink' is not one of the 3 categories of the training data: 'blue', 'green', 'red'" in err


def test_splits_from_several_files_are_matched_by_name(tmp_path: Path) -> None:
    TABLE.to_csv(tmp_path / "one.csv", index=False)
    TABLE[["c", "b", "y", "a"]].to_csv(tmp_path / "two.csv", index=False)
    data = {name: Csv(tmp_path / f"{name}.csv", "y", split={"training": 1.0}) for name in ("one", "two")}
    made = Environment("it", seed=1).create_trainer(
        data={"training": data["one"], "validation": data["two"]}, optimiser={"type": "adam", "learning_rate": 0.1},
        network="input(3) + output(2) + softmax_cross_entropy()", preprocessors=["standardise"],
    )  # fmt: skip
    made.fit(epochs=2)
    assert made.evaluate("training") == made.evaluate("validation")


# -- other data --------------------------------------------------------------------------------------------------------
def test_a_second_file_is_evaluated_by_names_with_all_its_rows_and_the_statistics_of_the_training(
    sigma: Sigma, run: Path
) -> None:
    some = TABLE[5:12][["y", "b", "c", "a"]]
    some.to_csv("some.csv", index=False)
    Path("t.csv").unlink()  # the data of the run are not needed
    found, model = evaluated(sigma, run, "some.csv"), load(run)
    right = np.searchsorted(["u", "v"], some["y"])
    probabilities = model.predict(some)[range(7), right]
    assert found["loss"] == pytest.approx(-np.log(probabilities).mean(), rel=1e-5)
    assert found["accuracy"] == pytest.approx(np.mean(model.classify(some) == some["y"]))
    assert model.evaluate(Csv("some.csv", "y", split={"training": 1.0})) == {"loss": found["loss"]}


def test_a_trainer_evaluates_other_data_as_the_loaded_network_does(sigma: Sigma, run: Path) -> None:
    some, fresh = TABLE[5:12], Environment("it", seed=0)
    made = fresh.create_trainer(
        data=Csv("t.csv", "y"), network="input(3) + output(2) + softmax_cross_entropy()", batch_size=8,
        preprocessors=["standardise"], optimiser={"type": "adam", "learning_rate": 0.1},
    )  # fmt: skip
    made.fit(epochs=4)
    inputs, model = some[["a", "b", "c"]], load(run)
    wanted = model.evaluate((inputs, some["y"]), {"accuracy": "accuracy"})
    for data in ((inputs[["c", "b", "a"]], some["y"]), (inputs.to_numpy(), some["y"].tolist())):
        assert made.evaluate(data, {"accuracy": "accuracy"}) == wanted
    assert made.evaluate((inputs[:1], some["y"][:1]))["loss"] > 0
    with pytest.raises(SigmaDataError, match="holds the class 'z', which the training split does not have: 'u', 'v'"):
        made.evaluate((inputs, ["z"] * 7))


def test_training_goes_on_with_fewer_rows_than_a_batch(run: Path) -> None:
    model, some = load(run), TABLE[5:10]
    model.trainer.data, model.trainer.hooks = (some[["a", "b", "c"]], some["y"]), {}
    before = model.evaluate((some[["a", "b", "c"]], some["y"]))["loss"]
    model.trainer.fit(epochs=20)
    assert model.trainer.session.setup.feed.batch_size == 5
    assert model.trainer.evaluate("training")["loss"] < before


# -- where the data lie ------------------------------------------------------------------------------------------------
def test_a_project_can_be_moved(sigma: Sigma, run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wanted, here = evaluated(sigma, run), Path.cwd()
    assert 'path = "../../t.csv"' in (run / "config.toml").read_text()
    there = here.rename(here.with_name(here.name + "-moved"))
    monkeypatch.chdir(there)
    moved = there / run.relative_to(here)
    assert evaluated(sigma, moved) == wanted
    assert sigma("resume", moved, "--epochs", 5, "--quiet")[0] == 0
    assert 'path = "../../t.csv"' in (moved / "config.toml").read_text()
    assert sigma("replay", moved, "--check", "--quiet")[0] == 0


def test_data_that_lie_elsewhere_are_named_by_an_option_which_the_error_says(sigma: Sigma, run: Path) -> None:
    wanted, elsewhere = evaluated(sigma, run), Path("other")
    elsewhere.mkdir()
    Path("t.csv").rename(elsewhere / "moved.csv")
    for command in ("evaluate", "resume", "replay"):
        code, _, err = sigma(command, run)
        assert code != 0
        assert f"t.csv: there is no such file or folder, and {run.name} was trained on it. If it lies elsewhere" in err
        assert "say where: --data PATH" in err
    with pytest.raises(SigmaError, match=r"say where: --data PATH, or in Python load\(RUN, data=PATH\)"):
        load(run).evaluate("validation")
    assert load(run).predict(TABLE).shape == (60, 2)
    there = elsewhere / "moved.csv"
    assert load(run, data=there).evaluate("validation")["loss"] == wanted["validation.loss"]
    assert evaluated(sigma, run, "--data", there) == wanted
    assert sigma("replay", run, "--check", "--quiet", "--data", there)[0] == 0
    assert sigma("resume", run, "--epochs", 5, "--quiet", "--data", there)[0] == 0
    assert 'path = "../../other/moved.csv"' in (run / "config.toml").read_text()
    assert sigma("evaluate", run)[0] == 0


def test_rows_that_changed_are_used_on_purpose_and_the_change_is_said(sigma: Sigma, run: Path) -> None:
    pd.concat([TABLE, TABLE[:10]]).to_csv("t.csv", index=False)
    for command in (["evaluate", run], ["resume", run, "--epochs", 6, "--quiet"]):
        code, _, err = sigma(*command, "--data", "t.csv")
        assert code == 0, err
        assert "warning: trainer: the rows of 'training' have changed since the training: 48 then, 56 now" in err
    assert sigma("evaluate", run)[2].count("warning") == 0  # they are now those of the run
    assert sigma("replay", run, "--check", "--quiet")[0] == 0


def test_rows_edited_by_number_are_not_taken_for_others(sigma: Sigma, run: Path, tmp_path: Path) -> None:
    edit = {"edits": {"training": {"excluded": [3]}}}
    path, found = newest_checkpoint(run)
    write(path, evolve(found, values={**found.values, "changes": edit, "data": edit}))
    TABLE[::-1].to_csv("t.csv", index=False)
    code, _, err = sigma("resume", run, "--epochs", 5, "--quiet", "--data", "t.csv")
    assert code != 0
    assert "Some were left out or relabelled by their numbers: restore the rows, or undo that first." in err


@pytest.mark.parametrize("ask", [
    lambda model: model.data.rows("training", [0]), lambda model: model.data.losses(),
    lambda model: model.data.splits(),
    lambda model: model.evaluate("validation"), lambda model: model.trainer.fit(epochs=1),
])  # fmt: skip
def test_a_loaded_network_does_not_take_other_rows_for_those_of_its_training(ask: Any, run: Path) -> None:
    TABLE[::-1].to_csv("t.csv", index=False)
    with pytest.raises(SigmaDataError, match="the rows of 'training' have changed since the training: 48 as before"):
        ask(load(run))
    model = load(run)
    model.trainer.data = Csv("t.csv", "y")
    ask(model)  # on purpose


def test_a_run_without_an_identity_is_read_by_what_is_there(sigma: Sigma, run: Path) -> None:
    wanted = evaluated(sigma, run)
    path, found = newest_checkpoint(run)
    learned = {name: value for name, value in found.values["learned"].items() if name not in ("rows", "columns")}
    write(path, evolve(found, values={**found.values, "learned": learned}))
    TABLE[["c", "y", "b", "a"]].to_csv("t.csv", index=False)
    assert evaluated(sigma, run) == wanted


@pytest.mark.parametrize("labels", [(3, 7), (1, 2)])
def test_whole_numbers_are_the_labels_of_the_training_and_not_positions(labels: tuple[int, int], sigma: Sigma) -> None:
    table = TABLE.replace({"y": {"u": labels[0], "v": labels[1]}}).infer_objects()
    table.to_csv("t.csv", index=False)
    Path("c.toml").write_text(FILE)
    model = load(json.loads(sigma("run", "c.toml", "--quiet", "--json")[1])["folder"])
    some = table[table["y"] == labels[0]][:6]
    wanted = -np.log(model.predict(some)[:, 0]).mean()
    inputs = some[["a", "b", "c"]]
    for data in ((inputs, some["y"]), (inputs.to_numpy(), some["y"].to_numpy())):
        assert model.evaluate(data)["loss"] == pytest.approx(wanted, rel=1e-5)
        with pytest.raises(SigmaDataError, match="holds the class 5, which the training split does not have: "):
            model.evaluate((data[0], np.full(6, 5)))


def test_labels_do_not_take_the_places_of_indices(tmp_path: Path) -> None:
    inputs, indices = TABLE[["a", "b", "c"]].to_numpy(), np.searchsorted(["u", "v"], TABLE["y"])
    made = Environment("it", seed=1).create_trainer(
        data=(inputs, indices), network="input(3) + output(2) + softmax_cross_entropy()", optimiser="adam",
    )  # fmt: skip
    made.fit(epochs=1)
    assert made.evaluate((inputs, indices)) == made.evaluate("training")
    with pytest.raises(SigmaDataError, match="holds the class 'u', which the training split does not have: 0, 1"):
        made.evaluate((inputs, TABLE["y"]))


@pytest.mark.parametrize("dtype", ["str", "U40", object], ids=str)
def test_rows_of_texts_are_known_by_their_texts(dtype: Any) -> None:
    def described(*texts: str) -> dict[str, str]:
        rows = Rows({"inputs": np.array(texts, dtype)})
        return describe_rows({"training": rows}, {"inputs": ((), np.array(texts).dtype.name)}, ["inputs"])

    known = described("snow", "rain", "żółć\ud800")
    assert changed_rows(known, describe_rows({"training": Rows({"inputs": np.array(["snow", "rain", "żółć\ud800"])})},
                                             {"inputs": ((), "str64")}, ["inputs"])) == {}  # fmt: skip
    for other in (("snow", "rain", "żółć"), ("rain", "snow", "żółć\ud800"), ("sno", "wrain", "żółć\ud800")):
        assert "with other values or in another order" in changed_rows(known, described(*other))["training"]


def write_later(table: pd.DataFrame, run: Path, match: str = "**", deeper: str = "") -> None:
    """Write a file that begins from the parameters of a run, with a table of its own."""
    table.to_csv("later.csv", index=False)
    places = 'map = { "2-output" = "1-output" }\n' if deeper else ""
    rule = f'[initialisers.warm]\nmatch = "{match}"\ntype = "warm_start"\nrun = "{run}"\n{places}'
    Path("later.toml").write_text(
        f"{FILE.replace('t.csv', 'later.csv').replace('+ output', f'{deeper} + output')}{rule}"
    )


@pytest.mark.parametrize(
    ("columns", "label", "wanted"),
    [
        ("abcy", "v", ""),
        ("bacy", "v", "columns a, b, c of section 'inputs'; the data have b, a, c. Give those"),
        ("abdy", "v", "columns a, b, c of section 'inputs'; the data have a, b, d. Give those"),
        ("abcy", "w", "classes u, v of section 'targets'; the data have u, w. Give those"),
    ],
    ids=["same", "reordered", "renamed", "another class"],
)
def test_a_warm_start_knows_the_columns_and_classes_of_its_values(
    columns: str, label: str, wanted: str, sigma: Sigma, run: Path
) -> None:
    table = TABLE.rename(columns={"c": "d"} if "d" in columns else {}).replace({"y": {"v": label}})
    write_later(table[[*columns]], run)
    code, _, err = sigma("run", "later.toml", "--quiet")
    assert (code == 0) is (not wanted)
    assert wanted in err


def test_values_that_no_column_reaches_do_not_depend_on_columns(sigma: Sigma, run: Path) -> None:
    write_later(TABLE[["b", "a", "c", "y"]], run, "2-output.*", "+ dense(3)")
    assert sigma("run", "later.toml", "--quiet")[0] == 0


def test_a_warm_start_goes_on_without_the_run_that_it_began_from(sigma: Sigma, run: Path) -> None:
    write_later(TABLE, run)
    assert sigma("run", "later.toml", "--quiet", "--epochs", "2")[0] == 0
    run.rename("elsewhere")
    later = max(Path("runs").iterdir())
    assert sigma("resume", later, "--quiet")[0] == 0
    assert sigma("evaluate", later)[0] == 0


def test_rows_that_an_earlier_version_read_as_floats_of_32_bits_are_known() -> None:
    exact = np.random.default_rng(0).normal(size=(9, 2))
    told = [
        describe_rows({"training": Rows({"inputs": values})}, {"inputs": ((2,), "float32")}, ["inputs"])
        for values in (exact.astype(np.float32), exact, exact + 1e-6)
    ]
    assert told[0] == told[1] != told[2]
