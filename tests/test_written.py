"""Runs made in Python leave a full configuration: everything that opens a run folder works on them."""

from __future__ import annotations

from collections.abc import Mapping
from inspect import signature
from pathlib import Path
from textwrap import dedent
from typing import Any

import numpy as np
import pytest

from sigma_data import Arrays, Digits, Standardise, Stream
from sigma_hooks import SaveCheckpoint, Stop
from sigma_initialisers import HeNormal
from sigma_kernel import Environment, functions as f
from sigma_kernel.errors import SigmaCheckpointError, SigmaConfigError, SigmaDataError, SigmaStateError, SigmaWarning
from sigma_kernel.plugins.catalogue import catalogue, load as loaded
from sigma_kernel.plugins.choice import make_choices
from sigma_kernel.plugins.components import KINDS
from sigma_kernel.plugins.dumping import Dumper
from sigma_kernel.plugins.resolver import Resolver
from sigma_kernel.plugins.specs import Component
from sigma_kernel.settings.records import REQUIRED, settings as declared
from sigma_layers import Add, Concat, Dense, Dropout, Function, Input, Output, SoftmaxCrossEntropy, SquaredDifference
from sigma_optimisers import Adam, MaxNorm, StepDecay
from sigma_run import load
from sigma_run.config import build, load_configuration, parse
from sigma_run.config.loading import FileLoader
from sigma_run.launcher.group import main
from sigma_training.notation import parse as parsed

DRAWN = np.random.default_rng(0)
X, Y = DRAWN.normal(size=(60, 4)).astype("float32"), DRAWN.integers(0, 3, 60)

# settings for those components that cannot be made without any
SETTINGS: dict[tuple[str, str], dict[str, Any]] = {
    ("extractor", "encoded"): {"columns": [{"name": "size", "encoder": "number", "state": {"fill": 0.0}}]},
    ("source", "file"): {"path": "x.csv"}, ("source", "url"): {"url": "https://example.org/x", "sha256": "0" * 64},
    ("source", "fsspec"): {"address": "memory://x.csv"},
    ("source", "compressed"): {"source": {"type": "file", "path": "x.gz"}},
    ("source", "multi"): {"sources": [{"type": "file", "path": "x.csv"}]}, ("reader", "bytes"): {"size": 4},
    ("reader", "samples"): {"shape": [2, 2]}, ("extractor", "columns"): {"sections": {"inputs": {"columns": [0, "a"]}}},
    ("extractor", "offsets"): {"sections": {"inputs": {"offset": 1}}}, ("preprocessor", "cast"): {"dtype": "float64"},
    ("hook", "email"): {"to": ["anna@example.org"], "sender": "sigma@example.org", "server": "smtp.example.org"},
    ("hook", "webhook"): {"url": "$HOOK"}, ("dataset", "latent"): {"of": "digits"},
    ("dataset", "csv"): {"path": "x.csv", "target": "y"}, ("schedule", "product"): {"of": ["constant"]},
    ("dataset", "image_folder"): {"folder": "x", "size": [4, 4], "memory": "1 GB", "table": "x.csv", "cache": "y"},
    ("dataset", "sound_folder"): {"folder": "x", "seconds": 1.0},
    ("dataset", "huggingface_pictures"): {"folder": "x", "size": [4, 4]},
    ("dataset", "huggingface_sounds"): {"folder": "x", "seconds": 1.0},
    ("dataset", "npy"): {"inputs": "x.npy", "targets": "y.npy"}, ("hook", "switch"): {"name": "brake"},
    ("dataset", "records"): {"source": {"type": "file", "path": "x.csv"}, "reader": "csv"},
    ("dataset", "joined"): {"parts": {"inputs": {
        "source": {"type": "file", "path": "x.csv"}, "reader": "csv",
        "preprocessors": {"scale": {"type": "normalise", "source": [0, 255]}},
    }}},
    ("hook", "function"): {"function": {"python": "sigma_kernel.functions:sin"}},
    ("extractor", "table"): {"columns": ["a", "b"]},
    ("backend", "tiered"): {"first": "numpy", "then": "numba"},
    ("hook", "time_limit"): {"limit": "10 seconds"}, ("merger", "weighted"): {"weights": [1.0, 3.0]},
    ("merger", "several"): {"rules": {"**.biases": "max"}}, ("schedule", "one_cycle"): {"total": "20 iterations"},
}  # fmt: skip


def network() -> Any:
    return Input(4) + Dense(8, activation="tanh") + Dropout(0.1) + Output(3) + SoftmaxCrossEntropy()


def environment(folder: Path, **settings: Any) -> Environment:
    made = Environment("mine", seed=3, folder=folder, most_data=settings.pop("most_data", 2**26))
    common = {"network": network(), "data": {"training": (X, Y), "validation": (X[:10], Y[:10])}, "batch_size": 10}
    made.create_trainer(**{**common, "optimiser": Adam(0.05), "epochs": 2, **settings})
    return made


def run(folder: Path, **settings: Any) -> tuple[Path, Any]:
    """Train, and return the run folder and the predictions."""
    with environment(folder, **settings) as made:
        made.run()
        assert made.run_folder is not None
        return made.run_folder, made.trainer("trainer").predict(X)


def sigma(*arguments: object) -> int:
    return main([str(one) for one in arguments])


# -- tables ------------------------------------------------------------------------------------------------------------
def components() -> list[Component]:
    kinds = {*KINDS.values()} - {"layer", "recipe", "command", "trainer"}  # no configuration names the latter two
    ours = (one for one in catalogue().components() if one.distribution.startswith("sigma-"))
    apart = ("arrays", "stream", "frame", "divided", "edited")  # of data that is in memory
    return [one for one in ours if one.kind in kinds and one.name not in apart]


def example(record: Component) -> Any:
    """Return an object of a component, with the settings above and one value for each that is required."""
    factory: Any = loaded(record)
    given = SETTINGS.get((record.kind, record.name), {})
    needed = {name: one for name, one in declared(factory).items() if one.default is REQUIRED and name not in given}
    values: dict[Any, Any] = {float: 0.5, int: 2}
    chosen = {name: values.get(one.type, "2 epochs") for name, one in needed.items()}
    try:
        return Resolver(catalogue())(record.kind, {"type": record.full_name, **given, **chosen})
    except SigmaConfigError as error:
        if record.kind != "backend":
            raise
        pytest.skip(f"not on this machine: {error}")  # it needs a device


def plainly(component: Any) -> Any:
    return Dumper(catalogue()).table(component)


@pytest.mark.parametrize("record", components(), ids=lambda one: f"{one.kind}-{one.name}")
def test_every_component_is_read_back_from_its_table_in_a_file_and_in_python(record: Component) -> None:
    table = plainly(component := example(record))
    contract: Any = next(
        cls for cls, kind in KINDS.items() if kind == record.kind and isinstance(component, (cls, Mapping))
    )
    read = FileLoader(catalogue()).load(parse(_toml(table), "text").values["value"], contract)
    from_file, from_python = make_choices(read), Resolver(catalogue())(record.kind, table)
    assert type(from_file) is type(from_python) is type(component)
    assert plainly(from_file) == plainly(from_python) == table
    assert table == record.full_name or table["type"] == record.full_name


def _toml(table: Any) -> str:
    from sigma_run.config.writing import toml

    return toml({"value": table})


def architectures() -> Mapping[str, Any]:
    trunk = Input(4) + Dense(8)
    left, right = trunk + Dense(3, name="left"), trunk + Dense(3, activation=f.tanh)
    linked = Input(4) + Dense(3)
    merged = Concat(linked)
    (Input(2, section="other") + Dense(3)).link(merged)
    return {
        "chain": network(),
        "copies": Input(4) + 3 * Dense(8, activation="relu") + Output(1) + SquaredDifference(),
        "merged": Add(left, right) + Output(3) + SoftmaxCrossEntropy(class_weights=[1.0, 2.0, 0.5]),
        "several ends": [left + SquaredDifference(targets="a"), right + SquaredDifference(targets="b", weight=0.5)],
        "link": merged + Output(3) + SquaredDifference(),
        "function": Input(4) + Function(f.sin) + Output(3) + SquaredDifference(),
    }


@pytest.mark.parametrize("name", list(architectures()))
def test_architectures_are_read_back_from_their_text(name: str) -> None:
    ends = architectures()[name]
    ends = ends if isinstance(ends, list) else [ends]
    text = Dumper(catalogue()).architecture(ends)
    assert Dumper(catalogue()).architecture(parsed(text, catalogue().load)) == text
    assert "sigma-layers:" in text
    assert "<" not in text


# what layers need to be made, by the names of their parameters
REQUIRED_OF_LAYERS: dict[str, tuple[Any, ...]] = {
    "axes": (2, 1), "branches": (Dense(2), Dense(3)), "chain": (Dense(2) + Dropout(0.1),), "classes": (5,),
    "cutoffs": ([2],), "filters": (2,),
    "function": (f.tanh,), "groups": (2,), "heads": (2,), "output": ("state",), "shape": (2, 2), "side": ("real",),
    "size": (2,), "times": (2,), "units": (2,), "vocabulary": (3,), "width": (1,),
}  # fmt: skip


@pytest.mark.parametrize("record", [*catalogue().components("layer")], ids=lambda record: record.name)
def test_every_layer_is_read_back_from_its_text(record: Component) -> None:
    factory: Any = loaded(record)
    needed = [name for name, one in signature(factory).parameters.items() if one.default is one.empty]
    text = Dumper(catalogue()).architecture([factory(*(x for name in needed for x in REQUIRED_OF_LAYERS[name]))])
    (layer,) = parsed(text, catalogue().load)
    assert type(layer) is factory
    assert Dumper(catalogue()).architecture([layer]) == text


def test_tables_nest_in_live_commands_as_in_a_file_and_replay(tmp_path: Path) -> None:
    with environment(tmp_path, epochs=1) as made:
        trainer = made.trainer("trainer")
        made.prepare()
        made.attach(
            "more", {"type": "evaluate", "on": "validation", "metrics": {"top": {"type": "accuracy", "top": 2}}}
        )
        decay = {
            "type": "warm_up",
            "duration": "3 iterations",
            "then": {"type": "step", "every": "1 epoch", "factor": 0.5},
        }
        made.swap(
            "optimiser",
            {"type": "adam", "schedules": {"learning_rate": decay}, "transforms": [{"type": "l2", "factor": 0.1}]},
        )
        made.attach("late", {"type": "loss", "every": "1 epoch", "when": "epoch reaches 1"})
        made.run()
        assert trainer.session.setup.order.hooks["more"].metrics["top"].top == 2  # type: ignore[attr-defined]
        (part,) = trainer.session.setup.parts.optimisers.values()
        assert part.type.schedules["learning_rate"].then.factor == 0.5  # type: ignore[attr-defined]
        folder = made.run_folder
    assert folder is not None
    assert sigma("replay", folder, "--check", "--quiet") == 0


# -- run folders -------------------------------------------------------------------------------------------------------
def everything() -> dict[str, Any]:
    """Return settings of every kind, as objects, names and tables."""
    return {
        "optimiser": {
            "type": "adam", "learning_rate": 0.05, "transforms": {"short": {"type": "clip_norm", "limit": 1.0}},
            "schedules": {
                "learning_rate": {"type": "warm_up", "duration": "3 iterations", "then": StepDecay("1 epoch", 0.5)}
            },
            "modifiers": [MaxNorm(3.0)], "settings": {"slow": {"match": "*<output>.*", "learning_rate": 0.01}},
        },
        "preprocessors": [Standardise(), {"type": "scale", "factor": 2.0}],
        "operator": {"type": "local", "merger": "sum"},
        "initialisers": {
            "weights": ("**.weights", HeNormal()), "biases": {"match": "**.biases", "type": "constant", "value": 0.1}
        },
        "hooks": {
            "score": {"type": "accuracy", "on": "validation", "when": "epoch reaches 1"}, "save": SaveCheckpoint(),
            "enough": Stop(when="epoch reaches 2"),
        },
        "metrics": ["accuracy"], "iterator": "sequential", "batch_size": 7, "last_batch": "drop",
    }  # fmt: skip


@pytest.mark.parametrize("chosen", [{}, everything()], ids=["few", "many"])
def test_a_run_made_in_python_is_opened_from_its_folder_by_every_command(
    chosen: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, predictions = run(tmp_path, **chosen)
    np.save(tmp_path / "x.npy", X)
    np.testing.assert_array_equal(load(folder).predict(X), predictions)
    assert sigma("check", folder / "config.toml") == 0
    assert sigma("explain", folder / "config.toml") == 0
    assert sigma("predict", folder, tmp_path / "x.npy", "--json") == 0
    assert sigma("evaluate", folder) == 0
    assert sigma("replay", folder, "--check") == 0
    assert "replay is identical" in capsys.readouterr().err
    assert sigma("resume", folder, "--epochs", "4", "--set", "hooks.enough={type='stop', when='epoch reaches 4'}") == 0
    whole, _ = run(
        tmp_path / "whole",
        **{**chosen, "epochs": 4, "hooks": {**chosen.get("hooks", {}), "enough": Stop(when="epoch reaches 4")}},
    )
    ours, theirs = load(folder).parameters(), load(whole).parameters()
    assert all(np.array_equal(ours[name], theirs[name]) for name in theirs)


def test_the_configuration_of_a_run_made_in_python_names_components_in_full(tmp_path: Path) -> None:
    folder, _ = run(tmp_path, **everything())
    text = (folder / "config.toml").read_text()
    for name in (
        "optimisers:adam",
        "optimisers:warm_up",
        "optimisers:step",
        "operator-local:sum",
        "initialisers:he_normal",
    ):
        assert f'"sigma-{name}"' in text
    assert not load_configuration(parse(text, "config.toml"), catalogue()).monitors


def test_several_optimisers_and_their_order_are_written(tmp_path: Path) -> None:
    several = {
        "body": {"type": "adam", "match": "1-*.**", "learning_rate": 0.1},
        "head": {"type": Adam(0.01), "match": "3-*.**", "minimises": ["4-softmax_cross_entropy"]},
    }
    folder, _ = run(tmp_path, optimiser=None, optimisers=several, order=["head", "body"])
    assert sigma("replay", folder, "--check", "--quiet") == 0
    assert 'order = ["head", "body"]' in (folder / "config.toml").read_text()


def test_a_run_folder_with_saved_rows_can_be_moved_even_after_a_change_of_settings(tmp_path: Path) -> None:
    folder, _ = run(tmp_path)
    assert sigma("resume", folder, "--epochs", "3", "--quiet") == 0
    there = folder.rename(tmp_path / "elsewhere")
    assert sigma("evaluate", there) == 0
    assert str(folder) not in (there / "config.toml").read_text()


def test_fit_with_a_folder_leaves_the_same_configuration_as_run(tmp_path: Path) -> None:
    folder, _ = run(tmp_path / "run")
    with environment(tmp_path / "run") as made:
        made.trainer("trainer").fit()
        assert made.run_folder is not None
        assert (made.run_folder / "config.toml").read_text() == (folder / "config.toml").read_text()
        assert sigma("evaluate", made.run_folder) == 0


def test_several_trainers_each_have_their_tables_and_rows(tmp_path: Path) -> None:
    with environment(tmp_path) as made:
        made.create_trainer(
            "other", network=network(), data=Digits(), optimiser="adam", epochs=1
        ).network = "input(8, 8) + flatten() + output(10) + softmax_cross_entropy()"
        made.run()
        predictions = made.trainer("trainer").predict(X)
        assert made.run_folder is not None
        assert [path.name for path in (made.run_folder / "data").iterdir()] == ["trainer.safetensors"]
        np.testing.assert_array_equal(load(made.run_folder, "trainer").predict(X), predictions)
        assert load(made.run_folder, "other").evaluate("validation")["loss"] > 0


@pytest.mark.parametrize(
    "data", [
        Arrays(inputs=X, targets=np.array(["red", "green", "blue"])[Y]), [(X[:30], Y[:30]), (X[30:], Y[30:])],
        {"inputs": X.astype(">f8")[:, ::-1], "targets": Y.astype("int16")},
        Stream([(x, int(y)) for x, y in zip(X, Y, strict=True)]),
        (block for block in [(X[:30], Y[:30]), (X[30:], Y[30:])]),
    ], ids=["words", "blocks", "strides", "stream", "generator"],
)  # fmt: skip
def test_rows_of_every_kind_of_data_are_kept_with_the_run(data: Any, tmp_path: Path) -> None:
    folder, predictions = run(tmp_path, data=data)
    model = load(folder)
    np.testing.assert_array_equal(model.predict(X), predictions)
    assert model.classes == (("blue", "green", "red") if isinstance(data, Arrays) else ())
    assert sigma("replay", folder, "--check", "--quiet") == 0


def test_rows_beyond_the_limit_are_not_kept_and_the_run_says_so_when_it_begins(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with environment(tmp_path, most_data=1000) as made:
        with pytest.warns(SigmaWarning) as told:
            made.run()
        (said,) = (str(one.message) for one in told)
        folder, trainer = made.run_folder, made.trainer("trainer")
        assert folder is not None
        assert said.startswith("trainer: the data exceed 1,000 bytes and are not saved with the run: to evaluate or")
        assert not (folder / "data").exists()
        np.testing.assert_array_equal(load(folder).predict(X), trainer.predict(X))
        wanted = trainer.evaluate("validation")
    assert sigma("check", folder / "config.toml") == 2
    assert sigma("evaluate", folder) == 2
    assert "the rows of this run were not kept with it. Give the data again" in capsys.readouterr().err
    model = load(folder)
    model.trainer.data = {"training": (X, Y), "validation": (X[:10], Y[:10])}
    assert model.evaluate("validation") == wanted


def test_a_file_of_rows_that_was_changed_is_refused(tmp_path: Path) -> None:
    folder, _ = run(tmp_path)
    path = folder / "data" / "trainer.safetensors"
    path.write_bytes(path.read_bytes()[:-1] + b"x")
    with pytest.raises(SigmaDataError, match="trainer.safetensors: is damaged: its checksum differs"):
        load(folder).evaluate("validation")
    path.unlink()
    with pytest.raises(SigmaDataError, match="trainer.safetensors: cannot be read: No such file"):
        load(folder).evaluate("validation")


# -- settings that are in use ------------------------------------------------------------------------------------------
def test_tables_and_lists_that_are_changed_later_change_nothing(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a,b,y\n" + "".join(f"{i},{i % 7},{'xyz'[i % 3]}\n" for i in range(30)))
    given: dict[str, Any] = {
        "optimiser": {"type": "adam", "learning_rate": 0.125, "transforms": [{"type": "l2", "factor": 0.25}]},
        "data": {"type": "csv", "path": str(tmp_path / "t.csv"), "target": "y", "inputs": ["a", "b"]},
        "preprocessors": [{"type": "scale", "factor": 2.0}],
        "hooks": {"score": {"type": "accuracy", "on": "validation", "every": "1 epoch"}},
        "network": "input(2) + output(3) + softmax_cross_entropy()",
    }
    with environment(tmp_path, **given) as made:
        trainer = made.trainer("trainer")
        given["optimiser"]["transforms"].append({"type": "clip_norm", "limit": 1.0})  # before: counts
        made.prepare()
        given["optimiser"]["learning_rate"] = 7.0
        given["optimiser"]["transforms"].clear()
        given["data"]["inputs"].reverse()
        given["preprocessors"].append("standardise")
        given["hooks"]["late"] = {"type": "loss"}
        for change in (
            lambda: trainer.optimiser.update(learning_rate=7.0), lambda: trainer.hooks.pop("score"),
            lambda: trainer.hooks["score"].__setitem__("on", "training"), lambda: trainer.data.clear(),
            lambda: trainer.hooks.__delitem__("score"), lambda: trainer.hooks.setdefault("late", "loss"),
        ):  # fmt: skip
            with pytest.raises(SigmaStateError, match="^settings: are fixed, as the trainer is prepared. Set them bef"):
                change()
        made.run()
        assert trainer.session.moment.epoch == 2
        predictions, folder = trainer.predict([[1.0, 2.0]]), made.run_folder
    assert folder is not None
    text = (folder / "config.toml").read_text()
    assert "learning_rate = 0.125" in text
    assert ("sigma-optimisers:l2" in text, "clip_norm" in text) == (True, True)
    assert ("standardise" in text, "late" in text, 'inputs = ["a", "b"]' in text) == (False, False, True)
    assert sigma("replay", folder, "--check", "--quiet") == 0
    np.testing.assert_array_equal(load(folder).predict([[1.0, 2.0]]), predictions)


# -- saved networks ----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", ["trainer", "other"])
def test_a_saved_network_predicts_with_the_same_bits_without_a_run_folder(name: str, tmp_path: Path) -> None:
    with Environment("mine", seed=3) as made:
        data = Arrays(inputs=X, targets=np.array(["red", "green", "blue"])[Y])
        trainer = made.create_trainer(
            name, network=network(), data=data, batch_size=7, preprocessors=["standardise"], optimiser="adam"
        )
        trainer.fit(epochs=2)
        assert trainer.save(tmp_path / "deep" / "model") == tmp_path / "deep" / "model"
        before = load(tmp_path / "deep" / "model")
        np.testing.assert_array_equal(before.predict(X), trainer.predict(X))
        assert before.classes == ("blue", "green", "red")
        trainer.fit(epochs=1)
        trainer.save(tmp_path / "deep" / "model")
        after = load(tmp_path / "deep" / "model")
        np.testing.assert_array_equal(after.predict(X), trainer.predict(X))
        assert (before.checkpoint.values["clock"]["epoch"], after.checkpoint.values["clock"]["epoch"]) == (2, 3)
        assert {path.name for path in (tmp_path / "deep").iterdir()} == {"model"}
    np.save(tmp_path / "x.npy", X)
    assert sigma("predict", tmp_path / "deep" / "model", tmp_path / "x.npy", "--json") == 0
    with pytest.raises(SigmaDataError, match="were not kept with it"):
        after.evaluate("training")


SHARE = {"split": {"training": 0.5, "validation": 0.3, "test": 0.2}, "split_by": "stratified", "seed": 3}


@pytest.mark.parametrize("share", [0.25, SHARE], ids=["number", "table"])
@pytest.mark.parametrize("kind", ["rows", "arrays", "stream"])
@pytest.mark.parametrize("where", ["run", "saved"])
def test_data_given_later_are_divided_as_in_training(kind: str, where: str, share: Any, tmp_path: Path) -> None:
    data: Any = {
        "rows": (X, Y), "arrays": Arrays(inputs=X, targets=Y), "stream": Stream([*zip(X, map(int, Y), strict=True)]),
    }[kind]  # fmt: skip
    with environment(tmp_path, data=data, validation_split=share, epochs=1) as made:
        made.run()
        trainer = made.trainer("trainer")
        folder = made.run_folder if where == "run" else trainer.save(tmp_path / "model")
        wanted = {name: trainer.evaluate(name) for name in trainer.session.setup.evaluator.splits}
    assert folder is not None
    if where == "run":  # the rows of each split are kept with it
        model = load(folder)
        assert {name: model.evaluate(name) for name in wanted} == wanted
    model = load(folder)
    model.trainer.data = data
    assert {name: model.evaluate(name) for name in wanted} == wanted
    assert model.trainer.session.setup.evaluator.splits.keys() == wanted.keys()


def test_splits_that_are_given_later_replace_the_shares(tmp_path: Path) -> None:
    with environment(tmp_path, data=(X, Y), validation_split=0.25) as made:
        path = made.trainer("trainer").save(tmp_path / "model")
    model = load(path)
    model.trainer.data = {"training": (X, Y), "validation": (X[:10], Y[:10])}
    with pytest.raises(SigmaConfigError, match="validation_split: the data has splits already: validation. Leave one"):
        model.evaluate()
    model.trainer.validation_split = None
    assert model.evaluate() == model.evaluate((X[:10], Y[:10]))


def test_a_trainer_of_a_file_is_saved_too_and_a_named_data_set_evaluates(tmp_path: Path) -> None:
    text = """
        format = 1
        data = { dataset = "iris", split = { training = 0.6, validation = 0.4 } }
        network.architecture = "input(4) + output(3) + softmax_cross_entropy()"
        trainer = { optimiser = "adam", epochs = 2 }
    """
    with build(load_configuration(parse(dedent(text), "text"), catalogue())) as made:
        made.run()
        trainer = made.trainer("trainer")
        assert load(trainer.save(tmp_path / "iris")).evaluate("validation") == trainer.evaluate("validation")
        assert sigma("check", tmp_path / "iris" / "config.toml") == 0


def test_saving_replaces_nothing_but_a_saved_network(tmp_path: Path) -> None:
    folder, _ = run(tmp_path)
    (tmp_path / "file").touch()
    with environment(tmp_path) as made:
        trainer = made.trainer("trainer")
        for path in (folder, tmp_path / "file"):
            with pytest.raises(SigmaStateError, match="already exists and is not a saved network. Choose another"):
                trainer.save(path)
        with pytest.raises(SigmaStateError, match="cannot be written"):
            trainer.save(tmp_path / "file" / "model")
        trainer.save(tmp_path / "model")
    path = next((tmp_path / "model").glob("checkpoints/*/*/state.safetensors"))
    path.write_bytes(path.read_bytes()[:-1] + b"x")
    with pytest.raises(SigmaCheckpointError, match="no intact checkpoint"):
        load(tmp_path / "model", log=lambda text: None)


def test_a_network_that_cannot_be_written_is_not_saved(tmp_path: Path) -> None:
    made = environment(tmp_path, network=Input(4) + Function(lambda x: x) + Output(3) + SoftmaxCrossEntropy())
    with pytest.raises(SigmaConfigError, match="save: trainer.network: .*<lambda> cannot be imported by a name"):
        made.trainer("trainer").save(tmp_path / "model")
    assert not [*tmp_path.iterdir()]
