"""What people pass as data from Python: words as labels, shares for validation, generators, foreign arrays."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from sigma_data import Arrays, Csv, Frame, Iris, Stream
from sigma_data.datasets.shares import Shares
from sigma_kernel import Environment, as_numpy
from sigma_kernel.contracts import Preprocessor
from sigma_kernel.errors import (
    SigmaConfigError,
    SigmaDataError,
    SigmaError,
    SigmaNetworkError,
    SigmaPluginError,
    SigmaWarning,
)
from sigma_layers import BinaryCrossEntropy, Input, Output, SoftmaxCrossEntropy, SquaredDifference
from sigma_optimisers import Adam
from sigma_run import load
from sigma_run.launcher.group import main
from sigma_testing.checkpoints import newest_checkpoint

DRAW = np.random.default_rng(9)
X = DRAW.normal(size=(40, 3)).astype(np.float32)
CODES = np.argmax(X, axis=1)
WORDS = np.array(["cat", "dog", "ant"])[CODES]


def trained(data: Any, units: int = 3, cost: Any = None, epochs: int = 2, **settings: Any) -> Any:
    network = Input(*X.shape[1:]) + Output(units) + (cost or SoftmaxCrossEntropy())
    made = Environment("own", seed=4).create_trainer(network=network, data=data, optimiser=Adam(0.1), **settings)
    made.fit(epochs=epochs)
    return made


# -- labels ------------------------------------------------------------------------------------------------------------
LABELS: dict[str, Any] = {
    "list": WORDS.tolist(),
    "strings": WORDS,
    "objects": WORDS.astype(object),
    "StringDType": WORDS.astype(np.dtypes.StringDType()),
    "series": pd.Series(WORDS, index=np.arange(40) * 3),
    "categorical": pd.Series(pd.Categorical(WORDS, ["dog", "cow", "cat", "ant"])),
    "polars": pl.Series(WORDS),
    "polars categorical": pl.Series(WORDS, dtype=pl.Categorical),
}


@pytest.mark.parametrize("name", LABELS)
def test_words_are_classes_in_alphabetical_order_like_those_of_a_file(name: str, tmp_path: Path) -> None:
    pd.DataFrame(X.astype(float), columns=["a", "b", "c"]).assign(y=WORDS).to_csv(tmp_path / "t.csv", index=False)
    file = trained(Csv(tmp_path / "t.csv", "y", split={"training": 1.0}))
    made = trained((X, LABELS[name]))
    assert made.session.setup.evaluator.classes == file.session.setup.evaluator.classes == ("ant", "cat", "dog")
    assert np.array_equal(made.predict(X), file.predict(X))


def test_classes_are_named_by_classify_and_kept_in_the_checkpoint(tmp_path: Path) -> None:
    with Environment("own", seed=4, folder=tmp_path) as sigma:
        made = sigma.create_trainer(data=(X, WORDS), optimiser=Adam(0.1))
        made.network = Input(3) + Output(3) + SoftmaxCrossEntropy()
        made.epochs = 200
        sigma.run()
        assert made.classify(X).tolist() == WORDS.tolist()
        _, checkpoint = newest_checkpoint(sigma.run_folder, "trainer")
    assert checkpoint.values["classes"] == ["ant", "cat", "dog"]


@pytest.mark.parametrize("values", [[True, False] * 20, np.array([True, False] * 20), pd.Series([True, False] * 20)])
@pytest.mark.parametrize("cost", [BinaryCrossEntropy, SoftmaxCrossEntropy])
def test_booleans_are_the_classes_false_and_true(values: Any, cost: Any) -> None:
    made = trained((X, values), 1 if cost is BinaryCrossEntropy else 2, cost())
    assert made.session.setup.evaluator.classes == (False, True)
    assert set(made.classify(X).tolist()) <= {False, True}


def test_booleans_of_one_value_are_still_two_classes() -> None:
    made = trained((X, [True] * 40), 2, epochs=30)
    assert made.classify(X).tolist() == [True] * 40


def test_every_split_has_the_classes_of_training() -> None:
    made = trained({"training": (X, WORDS), "validation": (X[CODES > 0], WORDS[CODES > 0].tolist())})
    rows = np.array(["ant", "cat", "dog"]) == WORDS[CODES > 0][:, None]
    losses = -np.log(made.predict(X[CODES > 0])[rows])
    assert made.evaluate()["loss"] == pytest.approx(losses.mean(), rel=1e-5)
    with pytest.raises(SigmaDataError, match="holds the class 'cow', which the training split does not have"):
        trained({"training": (X, WORDS), "validation": (X, ["cow"] * 40)})


@pytest.mark.parametrize(("first", "message"), [
    (None, "row 1 has no class. Fill it in, or drop the row"),
    (np.nan, "row 1 has no class"),
    (pd.NA, "row 1 has no class"),
    ("", "row 1 has no class"),
    (" ", "row 1 has no class"),
    (3, r"mixes words and numbers: row 0 holds '\w+', row 1 3. Make them alike"),
    (("a", "b"), "section 'targets'"),
])  # fmt: skip
def test_labels_that_are_missing_or_mixed_are_refused(first: Any, message: str) -> None:
    with pytest.raises(SigmaDataError, match=message):
        trained((X, [WORDS[0], first, *WORDS[2:].tolist()]))


def test_words_are_refused_by_a_cost_for_numbers() -> None:
    with pytest.raises(SigmaDataError, match="'targets' holds words, such as '.*use a classification cost"):
        trained((X, WORDS), 1, SquaredDifference())


def test_classify_returns_the_first_of_equal_classes_and_keeps_the_order() -> None:
    made = trained((X, WORDS), epochs=0)
    order = DRAW.permutation(40)
    assert made.classify(X[order]).tolist() == made.classify(X)[order].tolist()
    assert made.classify(X[:1]).shape == (1,)
    assert made.classify(np.zeros((2, 3))).tolist() == ["ant", "ant"]  # biases are 0, so all classes are equal
    binary = trained((X, CODES > 0), 1, BinaryCrossEntropy(), epochs=0)
    assert binary.classify(np.zeros((1, 3))).tolist() == [False]  # 0.5 is not above one half


def test_classify_returns_indices_without_names_and_refuses_numbers() -> None:
    assert set(trained((X, CODES)).classify(X).tolist()) <= {0, 1, 2}
    with pytest.raises(SigmaNetworkError, match=r"1-output: its cost does not predict classes\. Use predict\(\)"):
        trained((X, X), 3, SquaredDifference()).classify(X)
    with pytest.raises(SigmaNetworkError, match="1-output: predictions are not finite"), np.errstate(all="ignore"):
        trained((X, WORDS)).classify(np.full((1, 3), 3e38))


def test_several_outputs_have_class_names_of_their_own(tmp_path: Path) -> None:
    sizes = np.where(X[:, 0] > 0, "tall", "small")
    sex = np.where(X[:, 1] > 0, "male", "female")
    with Environment("own", seed=4, folder=tmp_path) as sigma:
        made = sigma.create_trainer(data={"inputs": X, "size": sizes, "sex": sex}, optimiser=Adam(0.1), epochs=100)
        made.network = """
            trunk = input(3) + dense(8, activation="tanh")
            trunk + output(2, name="a") + softmax_cross_entropy(targets="size")
            trunk + output(1, name="b") + binary_cross_entropy(targets="sex")
        """
        sigma.run()
        found = made.classify(X)
    assert found["a"].tolist() == sizes.tolist()
    assert found["b"].tolist() == sex.tolist()
    model = load(sigma.run_folder)
    loaded = model.classify(X)
    assert {name: values.tolist() for name, values in loaded.items()} == {n: v.tolist() for n, v in found.items()}
    assert (model.names("a"), model.names("b")) == (["small", "tall"], ["female", "male"])


# -- shares for validation ---------------------------------------------------------------------------------------------
@pytest.mark.parametrize("settings", [{}, {"seed": 7}, {"split_by": "stratified"}, {"split_by": "block"}])
def test_validation_split_takes_the_rows_that_a_file_takes(tmp_path: Path, settings: dict[str, Any]) -> None:
    pd.DataFrame(X.astype(float), columns=["a", "b", "c"]).assign(y=WORDS).to_csv(tmp_path / "t.csv", index=False)
    shares = {"training": 0.7, "validation": 0.3}
    file = trained(Csv(tmp_path / "t.csv", "y", split=shares, **settings))
    made = trained((X, WORDS), validation_split={"split": 0.3, **settings} if settings else 0.3)
    for name in shares:
        ours, theirs = (t.session.setup.evaluator.splits[name].block(0) for t in (made, file))
        assert np.array_equal(ours["inputs"], theirs["inputs"])
        assert np.array_equal(ours["targets"], theirs["targets"])
    assert made.evaluate() == file.evaluate()


@pytest.mark.parametrize("share", [0.3, {"split": {"training": 0.7, "validation": 0.3}, "seed": 3}])
@pytest.mark.parametrize("kind", ["frame", "file", "splits"])
def test_validation_split_keeps_the_rows_of_a_group_together(tmp_path: Path, kind: str, share: Any) -> None:
    frame = pd.DataFrame(
        {"a": np.repeat(np.arange(30.0), 4), "b": 0.5, "c": 0.5, "who": [f"p{i // 4}" for i in range(120)]}
    )
    frame["y"] = np.arange(120) % 2
    frame.to_csv(tmp_path / "t.csv", index=False)
    data = Csv(tmp_path / "t.csv", "y", group="who", split={"training": 1.0}) if kind == "file" else None
    data = Frame(frame, "y", group="who") if data is None else data
    made = trained({"training": data} if kind == "splits" else data, units=2, epochs=1, validation_split=share)
    parts = [{*x.block(0)["inputs"][:, 0].tolist()} for x in made.session.setup.evaluator.splits.values()]
    assert [len(part) for part in parts] == [21, 9]
    assert not parts[0] & parts[1]


def test_validation_split_works_for_every_kind_of_data() -> None:
    frame = pd.DataFrame(X.astype(float), columns=["a", "b", "c"])
    given = {
        "lists": (X.tolist(), CODES.tolist()),
        "sections": {"inputs": X, "targets": CODES},
        "frame": (frame, CODES),
        "Arrays": Arrays(inputs=X, targets=CODES),
        "iterator": iter([(X[:20], CODES[:20]), (X[20:], CODES[20:])]),
    }
    losses = {name: trained(data, validation_split=0.25, epochs=0).evaluate()["loss"] for name, data in given.items()}
    assert max(losses.values()) == pytest.approx(min(losses.values()), rel=1e-6)
    stream = Stream(zip(X, CODES, strict=True), block_rows=7)  # whose rows are divided by what they are
    splits = trained(stream, validation_split=0.25, epochs=0).session.setup.evaluator.splits
    assert sum(map(len, splits.values())) == 40


@pytest.mark.parametrize(
    "given",
    [
        {"data": (X, WORDS), "validation_split": 0.25},
        {"data": {"training": (X[:30], CODES[:30]), "validation": (X[30:], CODES[30:])}},
    ],
)
def test_loss_and_metrics_are_measured_on_validation_rows_after_each_epoch(
    tmp_path: Path, given: dict[str, Any]
) -> None:
    with Environment("own", seed=4, folder=tmp_path) as sigma:
        made = sigma.create_trainer(
            network=Input(3) + Output(3) + SoftmaxCrossEntropy(), optimiser=Adam(0.1), metrics=["accuracy"],
            epochs=3, **given,
        )  # fmt: skip
        history = made.fit()
        wanted = made.evaluate(metrics={"accuracy": "accuracy"})
        folder = sigma.run_folder
    assert {name: len(history[name]) for name in history if name.startswith("validation.")} == {
        "validation.loss": 3, "validation.accuracy": 3,
    }  # fmt: skip
    assert {name: history[f"validation.{name}"][-1] for name in wanted} == pytest.approx(wanted)
    assert main(["resume", str(folder), "--epochs", "5", "--quiet"]) == 0  # the folder knows of it
    assert len(load(str(folder)).history["validation.accuracy"]) == 5


def test_a_validation_split_is_measured_on_once() -> None:
    made = trained((X, WORDS), validation_split=0.25, hooks={"score": {"type": "accuracy", "every": "2 epochs"}})
    assert len(made.history["validation.loss"]) == 1
    early = {"type": "early_stop", "value": "validation.loss", "patience": 9}
    assert len(trained((X, WORDS), validation_split=0.25, hooks={"enough": early}).history["validation.loss"]) == 2
    apart = trained((X, WORDS), validation_split={"split": {"training": 0.5, "test": 0.5}})
    assert not [name for name in apart.history if not name.startswith("training.")]


@pytest.mark.parametrize("kind", ["arrays", "frame", "file"])
def test_rows_that_are_held_out_are_measured_at_the_end_of_each_epoch_though_nothing_asks_for_it(
    kind: str, tmp_path: Path
) -> None:
    table = pd.DataFrame(X, columns=[*"abc"]).assign(kind=WORDS)
    table.to_csv(tmp_path / "t.csv", index=False)
    splits = {"training": (X, CODES), "validation": (X[:9], CODES[:9]), "test": (X[9:], CODES[9:])}
    data = {"arrays": splits, "frame": Frame(table, "kind", split={"training": 0.5, "validation": 0.5})}
    made = trained(data.get(kind, Csv(tmp_path / "t.csv", "kind")), epochs=3)
    assert made.history["validation.loss"][-1] == made.evaluate("validation")["loss"]
    assert len(made.history["validation.loss"]) == 3
    assert not [name for name in made.history if name.startswith("test.")]


def test_without_the_room_of_the_hook_only_what_asks_for_a_measurement_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("SIGMA_DISABLE_PLUGINS", "sigma-hooks")
    splits = {"training": (X, CODES), "validation": (X, CODES)}
    assert [*trained(splits).history] == ["training.loss"]
    with pytest.raises(SigmaPluginError, match="hook 'evaluate': sigma-hooks offers it, but is disabled"):
        trained((X, CODES), validation_split=0.25)


def test_several_parts_can_be_given_as_in_a_file() -> None:
    table = {"split": {"training": 0.5, "validation": 0.25, "test": 0.25}, "split_by": "stratified", "seed": 3}
    made = trained((X, WORDS), validation_split=table)
    assert {name: len(rows) for name, rows in made.session.setup.evaluator.splits.items()} == {
        "training": 20, "validation": 10, "test": 10,
    }  # fmt: skip


@pytest.mark.parametrize(("data", "share", "message"), [
    ((X, CODES), 0, r"own.validation_split: must be more than 0 .* \(got 0\.0\)\. For no validation rows, leave"),
    ((X, CODES), 1.0, r"\(got 1\.0\)"),
    ((X, CODES), -0.1, r"\(got -0\.1\)"),
    ((X, CODES), float("nan"), r"\(got nan\)"),
    ((X, CODES), True, r"\(got true\)"),
    ((X, CODES), "0.2", r"\(got '0\.2'\)"),
    ((X, CODES), 0.001, "'validation' gets none of 40 rows"),
    ((X, CODES), {"spilt": 0.2}, "has no setting 'spilt'. Did you mean 'split'"),
    ({"training": (X, CODES), "validation": (X, CODES)}, 0.2, "own.validation_split: the data has splits already: val"),
    (Iris(), 0.2, "the data has splits already: validation"),
])  # fmt: skip
def test_shares_that_cannot_be_cut_are_refused(data: Any, share: Any, message: str) -> None:
    with pytest.raises(SigmaConfigError, match=message.replace("own.", "trainer.")):
        trained(data, validation_split=share)


# -- generators --------------------------------------------------------------------------------------------------------
def batches() -> Iterator[tuple[np.ndarray, np.ndarray]]:
    for start in range(0, 40, 10):
        yield X[start : start + 10], CODES[start : start + 10]


def endless() -> Iterator[tuple[np.ndarray, np.ndarray]]:
    while True:
        yield from batches()


def samples() -> Iterator[tuple[np.ndarray, np.int64]]:
    yield from zip(X, CODES, strict=True)


def test_a_generator_is_kept_and_its_function_is_called_for_each_epoch() -> None:
    calls = []

    def counted() -> Iterator[Any]:
        calls.append(1)
        return batches()

    kept, streamed = trained(batches(), epochs=3), trained(counted, epochs=3)
    assert len(kept.session.setup.feed.dataset) == len(streamed.session.setup.feed.dataset) == 40
    assert len(calls) >= 4  # to count the rows, and for each epoch
    stream = Stream(batches, of="batches", keep="one")
    assert np.array_equal(streamed.predict(X), trained(stream, epochs=3).predict(X))
    assert trained(lambda: islice(endless(), 4), epochs=3).predict(X).tobytes() == streamed.predict(X).tobytes()


def test_rows_that_a_function_draws_are_drawn_anew_for_each_epoch() -> None:
    calls: list[int] = []

    def drawn() -> Iterator[Any]:
        calls.append(0)
        yield np.full((40, 3), len(calls), np.float32), CODES

    feed = trained(drawn, epochs=1).session.setup.feed
    seen = [np.asarray(feed.next_batches(feed.start(epoch), 1).block["inputs"])[0, 0] for epoch in (5, 6, 7)]
    assert len({float(one) for one in seen}) == 3


def test_a_shuffled_generator_is_split_by_what_its_rows_are() -> None:
    draw = np.random.default_rng(0)
    inputs = np.arange(1200, dtype=np.float32).reshape(400, 3)

    def shuffled() -> Iterator[Any]:
        order = draw.permutation(400)
        for start in range(0, 400, 50):
            rows = order[start : start + 50]
            yield inputs[rows], rows % 3

    splits = trained(shuffled, validation_split=0.25, epochs=2).session.setup.evaluator.splits
    reads = [{name: {*part.block(0)["inputs"][:, 0].tolist()} for name, part in splits.items()} for _ in range(3)]
    assert reads[0] == reads[1] == reads[2]
    assert not reads[0]["training"] & reads[0]["validation"]
    assert sum(map(len, reads[0].values())) == 400
    assert abs(len(reads[0]["validation"]) - 100) < 3 * (400 * 0.25 * 0.75) ** 0.5  # binomial


def test_rows_that_are_changed_at_random_are_split_by_their_key() -> None:
    draw = np.random.default_rng(0)

    def changed(key: bool) -> Iterator[Any]:
        inputs = X + draw.normal(size=X.shape).astype(np.float32)
        yield {"inputs": inputs, "targets": CODES} | ({"key": np.arange(40)} if key else {})

    made = trained(lambda: changed(True), validation_split=0.25, epochs=3)
    splits = made.session.setup.evaluator.splits
    keys = [[*part.block(0)["key"].tolist()] for part in splits.values()]
    assert sorted(keys[0] + keys[1]) == [*range(40)]
    with pytest.raises(SigmaDataError, match="not yield as many rows as the first time.*yield a section 'key'"):
        trained(lambda: changed(False), validation_split=0.25, epochs=30)


def rows_of(split: Any) -> set[tuple[float, ...]]:
    return {tuple(row) for number in range(split.blocks) for row in split.block(number)["inputs"].tolist()}


def test_kept_rows_of_a_stream_are_split_alike_in_any_order() -> None:
    orders = [np.random.default_rng(seed).permutation(40) for seed in range(3)]
    made = [Shares(Stream([(X[i], CODES[i]) for i in order], block_rows=9), split=0.25) for order in orders]
    first, *others = [{name: rows_of(splits[name]) for name in splits} for splits in made]
    assert others == [first, first]
    assert not first["training"] & first["validation"]
    assert sum(map(len, first.values())) == 40
    anew = Shares(Stream(lambda: zip(X, CODES, strict=True), keep="one"), split=0.25)
    assert {name: rows_of(anew[name]) for name in anew} == first


@pytest.mark.parametrize("kind", ["generator", "arrays", "words", "stream"])
def test_rows_of_one_key_stay_together_in_every_kind_of_data(kind: str) -> None:
    key: Any = np.arange(40) // 4
    key = [f"person {number}" for number in key] if kind == "words" else key
    whole = {"inputs": X, "targets": CODES, "key": key}
    data: Any = whole
    if kind == "generator":
        data = ({name: values[at : at + 7] for name, values in whole.items()} for at in range(0, 40, 7))
    if kind == "stream":
        data = Stream([{"inputs": X[i], "targets": CODES[i], "key": key[i]} for i in range(40)])
    splits = trained(data, validation_split=0.25, epochs=1).session.setup.evaluator.splits
    people = [{row[0] for row in rows_of(part)} for part in splits.values()]
    owner = {float(row[0]): number // 4 for number, row in enumerate(X)}
    first, second = ({owner[one] for one in group} for group in people)
    assert not first & second
    assert len(first | second) == 10


def test_rows_that_are_read_anew_are_not_split_by_place() -> None:
    with pytest.raises(SigmaConfigError, match="'block' needs rows in a fixed order.*keep='blocks'"):
        trained(batches, validation_split={"split": 0.25, "split_by": "block"})
    with pytest.raises(SigmaConfigError, match="'validation' gets no row for a share of 1e-06. Give it more"):
        trained(batches, validation_split=1e-6)


@pytest.mark.parametrize("data", [endless(), endless], ids=["object", "function"])
def test_an_endless_generator_is_refused_with_the_remedy(data: Any) -> None:
    with pytest.raises(SigmaDataError, match=r"has not ended after 10,000 .* must end: .*itertools\.islice\(generator"):
        trained(data)


def test_a_generator_that_yields_more_than_memory_may_hold_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sigma_training.data.dataset.LARGEST", 2**20)
    with pytest.raises(SigmaDataError, match=r"has not ended after \d,?\d+ blocks, 0\.0 GiB, .* pass the function"):
        trained(endless())


@pytest.mark.parametrize(("data", "message"), [
    (samples(), r"section 'targets' is a single value\. Axis 0 is for the samples; Stream\(...\) joins single ones"),
    (samples, r"If the source yields samples, not batches, use Stream\(source\)"),
    (lambda x: x, r"must be a function without arguments that returns an iterable \(.*missing 1 required"),
    (lambda: None, "must be a function without arguments that returns an iterable .*not iterable"),
])  # fmt: skip
def test_sources_that_are_no_batches_are_refused_by_name(data: Any, message: str) -> None:
    with pytest.raises(SigmaDataError, match=message):
        trained(data)


# -- arrays of all kinds -----------------------------------------------------------------------------------------------
class Foreign:
    """An array of another library, which offers one of the protocols."""

    def __init__(self, values: np.ndarray, error: Exception | None = None) -> None:
        self.values, self.error = values, error

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        if self.error is not None:
            raise self.error
        return self.values


class Capsule:
    def __init__(self, values: np.ndarray) -> None:
        self.__dlpack__, self.__dlpack_device__ = values.__dlpack__, values.__dlpack_device__


def read_only(values: np.ndarray) -> np.ndarray:
    values = values.copy()
    values.flags.writeable = False
    return values


ALIKE: dict[str, Any] = {
    "lists": X.tolist(),
    "rows": list(X),
    "Fortran order": np.asfortranarray(X),
    "strided": np.repeat(X, 2, axis=1)[:, ::2],
    "read-only": read_only(X),
    "big-endian": X.astype(">f4"),
    "float64": X.astype(float),
    "__array__": Foreign(X),
    "__dlpack__": Capsule(X),
    "lists of Arrow": pa.array(X.tolist(), pa.list_(pa.float32())),
    "lists of one length": pa.FixedSizeListArray.from_arrays(pa.array(X.ravel()), 3),
    "chunks": pa.chunked_array([X[:7].tolist(), X[7:].tolist()], pa.list_(pa.float32(), 3)),
    "tensors of Arrow": pa.FixedShapeTensorArray.from_numpy_ndarray(X),
    "polars.List": pl.Series(X.tolist(), dtype=pl.List(pl.Float32)),
    "polars.Array": pl.Series(X.tolist(), dtype=pl.Array(pl.Float32, 3)),
    "pandas of arrays": pd.Series([*X], index=range(9, 49)),
    "pandas of lists": pd.Series(X.tolist()),
}


@pytest.mark.parametrize("name", ALIKE)
def test_arrays_of_every_kind_train_and_predict_alike(name: str) -> None:
    given = ALIKE[name]
    assert trained((given, CODES)).predict(given).tobytes() == trained((X, CODES)).predict(X).tobytes()


def test_images_in_lists_of_lists_are_arrays() -> None:
    images = pa.FixedSizeListArray.from_arrays(pa.FixedSizeListArray.from_arrays(pa.array(np.arange(24.0)), 3), 2)
    found = as_numpy(images)
    assert found.shape == (4, 2, 3)
    assert found.ravel().tolist() == [*range(24)]


@pytest.mark.parametrize("frame", [
    pa.table({"x": [1.0, 2.0], "kind": [0, 1]}), pl.DataFrame({"x": [1.0, 2.0], "kind": [0, 1]}),
    pd.DataFrame({"x": [1.0, 2.0], "kind": [0, 1]}),
], ids=lambda frame: type(frame).__module__.partition(".")[0])  # fmt: skip
def test_a_frame_alone_is_refused_with_the_name_of_its_last_column(frame: Any) -> None:
    with pytest.raises(SigmaConfigError, match=r"Name it: trainer\.target = 'kind'\. There are: x, kind\.$"):
        trained(frame)
    with pytest.raises(SigmaDataError, match=r"^table: has no columns"):
        trained(pd.DataFrame())


def test_bytes_of_images_are_numbers() -> None:
    pixels = DRAW.integers(0, 256, (40, 3)).astype(np.uint8)
    made, same = trained((pixels, CODES)), trained((pixels.astype(np.float32), CODES))
    assert np.array_equal(made.predict(pixels), same.predict(pixels.astype(np.float32)))


def test_a_memory_map_is_not_copied(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", X)
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    made = trained((mapped, CODES), backend="numpy")
    assert np.shares_memory(made.session.setup.feed.dataset.block(0)["inputs"], mapped)
    assert np.shares_memory(made.session.setup.feed.prepare(made.session.setup.feed.dataset.block(0))["inputs"], mapped)


class Sparse:
    def toarray(self) -> np.ndarray:
        return X


@pytest.mark.parametrize(("data", "message"), [
    ((Sparse(), CODES), r"section 'inputs' is a sparse matrix\. Give x\.toarray\(\)"),
    ((Foreign(X, RuntimeError("requires grad.")), CODES), "section 'inputs': RuntimeError: requires grad"),
    ((Foreign(X, TypeError("is on cuda")), CODES), "section 'inputs': TypeError: is on cuda. Give a NumPy array"),
    ((X[:0], CODES[:0]), "there are no rows"),
    ((X[:, 0], CODES), r"the samples of section 'inputs' have shape \(\)\. Write Input\(\)"),
    ((X, CODES[:5]), r"must have equally many rows \(got {'inputs': 40, 'targets': 5}\)"),
    (([[1.0], [1.0, 2.0]], [0, 1]), "samples have different shapes. Cut or pad them"),
    ((pa.array([[1.0], [1.0, 2.0]]), [0, 1]), "samples have different shapes. Cut or pad them"),
    ((pa.array([[1.0, 3.0], None]), [0, 1]), "section 'inputs': row 1 is missing. Fill it in"),
    ((X.astype(complex), CODES), "section 'inputs' holds complex128"),
    (("abc", "def"), "section 'inputs' is a single value"),
    ((np.ma.masked_greater(X, 0.5), CODES), r"section 'inputs' has masked values\. Give x\.filled\(0\.0\)"),
    (np.zeros((4, 3)), r"not data \(got ndarray\)"),
    ((X, CODES, CODES, CODES), r"not data \(got tuple of 4\)"),
])  # fmt: skip
def test_arrays_that_do_not_fit_are_refused(data: Any, message: str) -> None:
    with pytest.raises(SigmaError, match=message):
        trained(data)


@pytest.mark.parametrize(("given", "message"), [
    (Sparse(), "section 'inputs' is a sparse matrix"),
    (np.ma.masked_greater(X, 0.5), "section 'inputs' has masked values"),
])  # fmt: skip
def test_values_that_would_be_lost_are_refused_everywhere(given: Any, message: str) -> None:
    with pytest.raises(SigmaDataError, match=message):
        Arrays(inputs=given)
    with pytest.raises(SigmaDataError, match=message):
        trained((X, CODES)).predict(given)


# -- resuming ----------------------------------------------------------------------------------------------------------
def test_a_run_on_a_weighted_share_of_a_frame_resumes_to_the_bit(tmp_path: Path) -> None:
    frame = pd.DataFrame(X.astype(float), columns=["a", "b", "c"]).assign(kind=WORDS, w=np.arange(40) % 3)

    def run(folder: Path, epochs: int, continued: Path | None = None) -> tuple[Path, Any]:
        with Environment("own", seed=4, folder=folder) as sigma:
            made = sigma.create_trainer(data=Frame(frame, "kind", weights="w"), validation_split=0.25, batch_size=7)
            made.network = Input(3) + Output(3) + SoftmaxCrossEntropy()
            made.optimiser, made.epochs = Adam(0.1), epochs
            if continued is not None:
                sigma.resume(continued)
            sigma.run()
            assert sigma.run_folder is not None
            return sigma.run_folder, (made.predict(frame[["c", "b", "a"]]).tobytes(), made.evaluate())

    _, whole = run(tmp_path / "whole", 6)
    folder, part = run(tmp_path / "part", 3)
    assert part != whole
    assert run(tmp_path / "part", 6, folder)[1] == whole


# -- held-out rows -----------------------------------------------------------------------------------------------------
REFUSED: dict[str, tuple[Any, str]] = {
    "a label": ((X[:8], np.full(8, 7)), "section 'targets', row 0: label 7 is not one of 3 classes"),
    "a shape": ((X[:8, :2], CODES[:8]), "section 'inputs' has shape (8, 2); expected ('n', 3)"),
    "a fraction": ((X[:8], CODES[:8] + 0.5), "section 'targets', row 0: "),
    "a generator": (lambda: iter([(X[:8], CODES[:8] + 9)] * 3), "section 'targets', row 0: label "),
}


@pytest.mark.filterwarnings("ignore:.*has no row in the split")
@pytest.mark.parametrize("name", REFUSED)
def test_held_out_rows_that_cannot_be_read_end_a_run_before_its_first_iteration(name: str) -> None:
    rows, said = REFUSED[name]
    made = Environment("own", seed=4).create_trainer(data={"training": (X, CODES), "validation": rows})
    made.network, made.optimiser = Input(3) + Output(3) + SoftmaxCrossEntropy(), Adam(0.1)
    with pytest.raises(SigmaDataError) as error:
        made.fit(epochs=2)
    assert str(error.value).startswith("data: split 'validation': " + said)
    assert "training.loss" not in made.history


@pytest.mark.filterwarnings("ignore:.*has no row in the split")
def test_a_hook_that_may_fail_does_not_keep_its_split_from_being_trained_without() -> None:
    hooks = {"watch": {"type": "evaluate", "on": "validation", "on_error": "mute"}}
    made = trained({"training": (X, CODES), "validation": REFUSED["a label"][0]}, hooks=hooks)
    assert len(made.history["training.loss"]) == 2


def test_held_out_rows_read_before_the_training_are_those_of_the_first_evaluation() -> None:
    made, calls = iter([(X[:8], CODES[:8])] * 2), list[int]()

    def blocks() -> Iterator[Any]:
        calls.append(1)
        yield from [(X[:8], CODES[:8]), (X[8:16], CODES[8:16])]

    given = trained({"training": (X, CODES), "validation": blocks}, epochs=3)
    assert len(calls) <= 3
    assert len(given.history["validation.loss"]) == 3
    once = trained({"training": (X, CODES), "validation": made}, epochs=3)
    assert len(once.history["validation.loss"]) == 3


class Filled(Preprocessor):
    section = "inputs"

    def fit(self, section: Any) -> dict[str, np.ndarray]:
        return {}

    def apply(self, x: np.ndarray, fitted: Any) -> np.ndarray:
        return np.nan_to_num(x)


def test_a_preprocessor_fills_what_is_missing_in_plain_arrays_of_splits_too() -> None:
    gaps, aside = X.copy(), np.full((40, 2), np.nan, np.float32)
    gaps[3, 1] = np.nan
    rows = {"inputs": gaps, "targets": CODES, "aside": aside}  # nothing reads the last
    made = trained({"training": rows, "validation": rows}, preprocessors=[Filled()])
    assert np.isfinite(made.history["validation.loss"]).all()
    assert len(made.history["validation.loss"]) == 2


class Wider(Filled):
    """A preprocessor that adds columns, which have no names, and coarse numbers in the last."""

    def apply(self, x: np.ndarray, fitted: Any) -> np.ndarray:
        return np.concatenate([x, 1e9 + np.arange(len(x) * 2).reshape(-1, 2) / 8], axis=1)


def test_columns_that_a_preprocessor_has_made_are_named_by_their_number() -> None:
    frame = pd.DataFrame(X, columns=["a", "b", "c"]).assign(y=WORDS)
    made = Environment("own", seed=4).create_trainer(data=Frame(frame, target="y"), optimiser=Adam(0.1))
    made.network, made.preprocessors = Input(5) + Output(3) + SoftmaxCrossEntropy(), [Wider()]
    with pytest.warns(SigmaWarning, match="column 4 of section 'inputs' holds 1000000000.125"):
        made.fit(epochs=1)
