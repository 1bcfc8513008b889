"""From Python, components can be given by name as in a file; invalid ones are refused before training."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from attrs import define

from sigma_backend_numpy import NumpyBackend
from sigma_data import Arrays, Records, Standardise, Synthetic
from sigma_hooks import Accuracy, AccuracyMetric, Evaluate, Stop
from sigma_initialisers import Constant
from sigma_kernel import Environment
from sigma_kernel.errors import SigmaConfigError, SigmaDataError, SigmaError, SigmaNetworkError
from sigma_kernel.plugins.catalogue import catalogue
from sigma_kernel.plugins.components import display_name
from sigma_kernel.plugins.resolver import Resolver
from sigma_layers import Input, Output, SoftmaxCrossEntropy
from sigma_operator_local.local import LocalOperator
from sigma_operator_local.mergers import Sum
from sigma_optimisers import Adam, ClipNorm, Exponential, MaxNorm, WarmUp
from sigma_run.config import build, load_configuration, parse
from sigma_run.config.writing import toml

ROOT = Path(__file__).parents[1]


def _trained(**settings: Any) -> dict[str, float]:
    data = Arrays(inputs=np.eye(4, dtype=np.float32), targets=np.arange(4) % 2)
    with Environment("named") as sigma:
        network = Input(4) + Output(2) + SoftmaxCrossEntropy()
        common = {"data": {"training": data, "validation": data}, "batch_size": 4, "optimiser": Adam(0.1)}
        trainer = sigma.create_trainer(**{"network": network, **common, **settings})
        trainer.fit(epochs=3)
        return sigma.summary().metrics


@pytest.mark.parametrize("optimiser", ["adam", {"type": "adam", "learning_rate": 0.01}, Adam])
def test_an_optimiser_may_be_a_name_a_table_or_a_class(optimiser: Any) -> None:
    assert "training.loss" in _trained(optimiser=optimiser)


def test_components_within_an_optimiser_may_be_names_and_tables() -> None:
    objects = {
        "schedules": {"learning_rate": Exponential("1 epoch", 0.5)}, "transforms": {"clip": ClipNorm(0.1)},
        "modifiers": {"max_norm": MaxNorm(0.5)},
    }  # fmt: skip
    names: dict[str, Any] = {
        "schedules": {"learning_rate": {"type": "exponential", "every": "1 epoch", "factor": 0.5}},
        "transforms": {"clip": {"type": "clip_norm", "limit": 0.1}},
        "modifiers": [{"type": "max_norm", "limit": 0.5}],
    }
    found = [_trained(optimiser=Adam(0.1, **settings)) for settings in (objects, names)]
    found.append(_trained(optimiser={"type": "adam", "learning_rate": 0.1, **names}))
    assert found[0] == found[1] == found[2] != _trained(optimiser=Adam(0.1))


@pytest.mark.parametrize(
    ("inner", "message"),
    [
        ({"schedules": {"learning_rate": "cosin"}}, "schedule 'cosin'.*Did you mean 'cosine'"),
        (
            {"schedules": {"learning_rate": 0.5}},
            "trainer.optimiser.schedules.learning_rate: must be a schedule: its name, or",
        ),
        (
            {"transforms": {"clip": Exponential("1 epoch", 0.5)}},
            "trainer.optimiser.transforms.clip: must be a modifier: its name, or",
        ),
    ],
)
def test_invalid_components_within_an_optimiser_are_refused(inner: Any, message: str) -> None:
    with pytest.raises(SigmaError, match=message):
        _trained(optimiser=Adam(0.1, **inner))


# -- components within others ------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "operator",
    [{"type": "local", "shards": 2, "merger": "sum"}, {"type": "local", "shards": 2, "merger": {"type": "sum"}},
     {"type": "local", "shards": 2, "merger": Sum}, LocalOperator(shards=2, merger="sum")],  # type: ignore[arg-type]
)  # fmt: skip
def test_components_of_an_operator_may_be_names_or_tables(operator: Any) -> None:
    assert _trained(operator=operator) == _trained(operator=LocalOperator(shards=2))


def test_a_schedule_within_a_schedule_may_be_a_name_or_a_table() -> None:
    def adam(schedule: Any) -> Adam:
        return Adam(0.1, schedules={"learning_rate": schedule})

    table = {
        "type": "warm_up",
        "duration": "2 epochs",
        "then": {"type": "exponential", "every": "1 epoch", "factor": 0.5},
    }
    wanted = _trained(optimiser=adam(WarmUp("2 epochs", then=Exponential("1 epoch", 0.5))))
    assert _trained(optimiser=adam(table)) == wanted
    assert _trained(optimiser=adam({"type": "product", "of": [table, "constant"]})) == wanted
    assert _trained(optimiser={"type": "adam", "learning_rate": 0.1, "schedules": {"learning_rate": table}}) == wanted


@pytest.mark.parametrize(
    "form", [dict, lambda **settings: Records(**{k: v for k, v in settings.items() if k != "type"})]
)
def test_parts_of_a_data_set_may_be_names_and_tables(tmp_path: Path, form: Any) -> None:
    (tmp_path / "a.csv").write_text("a;b;kind\n" + "".join(f"{i};1;{'xy'[i % 2]}\n" for i in range(8)))
    sections = {"inputs": {"columns": ["a", "b"]}, "targets": {"columns": "kind"}}
    data = form(
        type="records", source={"type": "file", "path": tmp_path / "a.csv"},
        reader={"type": "csv", "text": ["kind"], "delimiter": ";", "columns": ["b", "kind"]},
        extractor={"type": "columns", "sections": {**sections, "inputs": {"columns": ["b"]}}},
    )  # fmt: skip
    with Environment("nested") as sigma:
        trainer = sigma.create_trainer(
            data=data, optimiser="adam", network=Input(1) + Output(2) + SoftmaxCrossEntropy()
        )
        trainer.fit(epochs=1)
        assert trainer.session.setup.evaluator.classes == ("x", "y")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"operator": {"type": "local", "merger": "summ"}}, "merger 'summ'.*Did you mean 'sum'?"),
        ({"operator": {"type": "local", "merger": 3}}, "trainer.operator.merger: must be a merger"),
        ({"operator": LocalOperator(merger=3)}, "trainer.operator.merger: must be a merger"),  # type: ignore[arg-type]
        ({"data": {"type": "records", "source": {"type": "file", "path": "x"}, "reader": {"size": 3}}},
         "trainer.data.reader.type: is missing. Give it the name of a reader"),
        ({"data": {"type": "records", "source": {"type": "file", "path": "x"}, "reader": "npy",
                   "extractor": {"type": "columns", "sections": {"inputs": {"column": "a"}}}}},
         "trainer.data.extractor.sections.inputs: has no setting 'column'. Did you mean 'columns'?"),
    ],
)  # fmt: skip
def test_invalid_components_within_components_are_refused_before_training(
    settings: dict[str, Any], message: str
) -> None:
    with pytest.raises(SigmaConfigError, match=message):
        _trained(**settings)


def test_a_class_without_type_annotations_is_accepted_as_it_is() -> None:
    @define(eq=False)
    class Mine(LocalOperator):
        extra: Nowhere = None  # type: ignore[name-defined]  # noqa: F821

    assert _trained(operator=Mine()) == _trained(operator=LocalOperator())


def test_metrics_of_a_hook_may_be_a_list() -> None:
    assert "validation.accuracy" in _trained(hooks={"score": Evaluate(metrics=["accuracy"])})  # type: ignore[arg-type]


def test_a_complete_component_stays_the_same_object() -> None:
    resolve, operator = Resolver(catalogue()), LocalOperator()
    assert resolve("operator", operator) is operator
    assert resolve("operator", LocalOperator(merger="sum")).merger == operator.merger  # type: ignore[arg-type]


def test_hooks_may_be_given_by_name_with_times_and_criteria_as_text() -> None:
    hooks = {"score": "accuracy", "often": Accuracy(every="2 epochs"), "end": Stop(when="epoch reaches 2")}  # type: ignore[arg-type]
    assert "validation.accuracy" in _trained(hooks=hooks)


def test_hooks_without_names_are_refused() -> None:
    with pytest.raises(SigmaConfigError, match="hooks: each needs a name"):
        _trained(hooks=[Accuracy()])


def test_a_missing_split_is_refused_before_training() -> None:
    with pytest.raises(SigmaConfigError, match="no split 'vaildation'. Did you mean 'validation'?"):
        _trained(hooks={"score": Accuracy(on="vaildation")})


# -- data --------------------------------------------------------------------------------------------------------------
X, Y = np.eye(4, dtype=np.float32), np.arange(4) % 2
ARRAYS = {"inputs": X, "targets": Y}
HALVES = [{"inputs": X[:2], "targets": Y[:2]}, {"inputs": X[2:], "targets": Y[2:]}]


@pytest.mark.parametrize(
    "data",
    [ARRAYS, (X, Y), (X.tolist(), Y.tolist()), [ARRAYS], [(X, Y)], (block for block in [[X, Y]]), {"training": (X, Y)}],
)
def test_arrays_by_section_pairs_and_iterables_of_blocks_train_as_a_data_set_does(data: Any) -> None:
    assert _trained(data=data) == _trained(data=Arrays(inputs=X, targets=Y))


@pytest.mark.parametrize("data", [HALVES, tuple(HALVES), iter(HALVES), ((h["inputs"], h["targets"]) for h in HALVES)])
def test_blocks_are_trained_on_one_after_the_other(data: Any) -> None:
    with Environment("blocks") as sigma:
        trainer = sigma.create_trainer(data=data, batch_size=2, optimiser="adam")
        trainer.network = Input(4) + Output(2) + SoftmaxCrossEntropy()
        trainer.fit(epochs=2)
        blocks = [trainer.session.setup.feed.dataset.block(i)["inputs"].tolist() for i in range(2)]
        assert sigma.summary().iterations == 4
    assert blocks == [X[:2].tolist(), X[2:].tolist()]


@pytest.mark.parametrize("splits", [False, True])
def test_an_iterator_serves_a_second_preparation_after_one_that_failed(splits: bool) -> None:
    given: list[Any] = [iter(HALVES), (block for block in HALVES)]
    with Environment("again") as sigma:
        trainer = sigma.create_trainer(
            batch_size=2, optimiser="adam", network="input(3) + output(1) + squared_difference()"
        )
        trainer.data = {"training": given[0], "validation": given[1]} if splits else given[0]
        with pytest.raises(SigmaError, match="have shape"):
            trainer.prepare()
        trainer.network = Input(4) + Output(2) + SoftmaxCrossEntropy()
        trainer.fit(epochs=1)
        assert sigma.summary().iterations == 2


def test_an_iterator_that_failed_is_not_read_on_from_there() -> None:
    def read(number: int) -> dict[str, Any]:
        if number == 1 and failing:
            raise OSError("the disk is away")
        return HALVES[number % 2]

    failing = True
    with Environment("broken") as sigma:
        trainer = sigma.create_trainer(data=map(read, range(4)), batch_size=2, optimiser="adam")
        trainer.network = Input(4) + Output(2) + SoftmaxCrossEntropy()
        with pytest.raises(OSError, match="the disk is away"):
            trainer.prepare()
        failing = False
        with pytest.raises(
            SigmaDataError, match="reading this iterator failed, and cannot be repeated. Set the data again"
        ):
            trainer.prepare()
        trainer.data = map(read, range(4))
        trainer.fit(epochs=1)
        assert sigma.summary().iterations == 4


def test_a_data_set_may_be_named_with_its_splits() -> None:
    with Environment("iris") as sigma:
        trainer = sigma.create_trainer(data="iris", batch_size=10, optimiser="adam")
        trainer.network = "input(4) + output(3) + softmax_cross_entropy()"
        trainer.fit(epochs=1)
        assert set(trainer.session.setup.evaluator.splits) == {"training", "validation"}
        assert trainer.evaluate()["loss"] > 0


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (5, "trainer.data: not data (got int). Give arrays by section"),
        (X, "trainer.data: not data (got ndarray)"),
        ((X, Y, Y, Y), "trainer.data: not data (got tuple of 4)"),
        ([X, Y], "trainer.data: not data (got ndarray)"),
        ({"training": 5, "validation": ARRAYS}, "trainer.data.training: not data (got int)"),
        ({"inputs": X, "targets": 5}, "data: section 'targets' is a single value. Axis 0 is for the samples."),
        ({"inputs": X, "targets": [[1, 2], [3]]}, "section 'targets': samples have different shapes."),
        ({"inputs": X, "targets": Y[:3]}, "sections must have equally many rows (got {'inputs': 4, 'targets': 3})"),
        ({"train": ARRAYS, "validation": ARRAYS}, "No split is called 'training', only train, validation."),
        (iter(()), "there is no block of rows. Give one, or more; an iterator serves one trainer."),
        ([ARRAYS, {"inputs": X[:, :3], "targets": Y}], "block 1 holds {'inputs': (3,), 'targets': ()}; block 0 holds"),
    ],
)
def test_invalid_data_is_refused_with_the_accepted_types(data: Any, message: str) -> None:
    with pytest.raises(SigmaError, match=re.escape(message)):
        _trained(data=data)


# -- components --------------------------------------------------------------------------------------------------------
def test_a_network_may_be_given_as_text() -> None:
    text = "input(4) + output(2) + softmax_cross_entropy()"
    assert _trained(network=text) == _trained(network=Input(4) + Output(2) + SoftmaxCrossEntropy())


@pytest.mark.parametrize("network", [5, Input, ["input(4)"], lambda x: x])
def test_an_object_that_is_not_a_network_is_refused(network: Any) -> None:
    with pytest.raises(SigmaNetworkError, match="is not an architecture. Set one, such as Input"):
        _trained(network=network)


@pytest.mark.parametrize(
    "steps",
    [["standardise"], Standardise(), [{"type": "standardise"}], {"same": "standardise"}, {"type": "standardise"}],
)
def test_preprocessors_may_be_a_list_or_have_names(steps: Any) -> None:
    assert _trained(preprocessors=steps) == _trained(preprocessors={"it": Standardise()}) != _trained()


def test_preprocessors_in_a_list_are_named_by_their_type() -> None:
    with Environment("steps") as sigma:
        trainer = sigma.create_trainer(data=(X, Y), network="input(4) + output(2) + softmax_cross_entropy()")
        trainer.preprocessors, trainer.optimiser = ["sigma-data:standardise", Standardise()], "adam"
        trainer.prepare()
        assert list(trainer.session.setup.evaluator.prepare.preprocessors) == ["standardise", "1-standardise"]


@pytest.mark.parametrize("metrics", [{"accuracy": "accuracy"}, ["accuracy"], {"accuracy": AccuracyMetric()}])
def test_metrics_may_be_names(metrics: Any) -> None:
    assert 0.0 <= _trained(metrics=metrics)["training.accuracy"] <= 1.0


def test_initialisers_may_be_tables_as_in_a_file() -> None:
    table = {"weights": {"match": "**.weights", "type": "constant", "value": 0.5}}
    assert _trained(initialisers=table) == _trained(initialisers={"weights": ("**.weights", Constant(0.5))})


@pytest.mark.parametrize("rules", ["gaussian", [("**", "gaussian")], {"all": "gaussian"}, {"all": (1, "gaussian")}])
def test_initialisers_that_are_not_rules_are_refused(rules: Any) -> None:
    with pytest.raises(SigmaConfigError, match="trainer.initialisers: must be named rules"):
        _trained(initialisers=rules)


def test_an_iterator_may_be_given_by_name() -> None:
    assert "training.loss" in _trained(iterator="sequential")


@pytest.mark.parametrize(
    "settings",
    [
        {"preprocessors": [abs]}, {"metrics": {"x": abs}}, {"hooks": {"x": abs}}, {"optimiser": 5}, {"backend": 5},
        {"operator": 5}, {"iterator": 5},
    ],
)  # fmt: skip
def test_an_object_of_another_kind_is_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(SigmaConfigError, match=f"trainer.{next(iter(settings))}.*must be an? .*: its name, or"):
        _trained(**settings)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"batchsize": 3}, "trainer 'trainer': has no setting 'batchsize'. Did you mean 'batch_size'?"),
        ({"optimizer": "adam"}, "has no setting 'optimizer'. Did you mean 'optimiser'?"),
        ({"operator": {"type": "local", "worker": 2}}, "trainer.operator: has no setting 'worker'. Did you mean 'wor"),
        (
            {"optimiser": {"type": "adam", "rate": 2}},
            "trainer.optimiser: has no setting 'rate'. It has settings, ",
        ),
        ({"hooks": {"a": {"type": "early_stop", "valu": 1}}}, "trainer.hooks.a: has no setting 'valu'. Did you mean"),
        ({"initialisers": {"w": ("**", "gaussian")}}, "trainer.initialisers.w.deviation: is missing. Give it a num"),
    ],
)
def test_an_unknown_live_setting_is_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(SigmaConfigError, match=re.escape(message)):
        _trained(**settings)


@pytest.mark.parametrize("setting", ["scope", "on_error"])
def test_an_unknown_scope_or_policy_is_refused(setting: str) -> None:
    with pytest.raises(SigmaConfigError, match=setting):
        Accuracy(**{setting: "ignor"})


# -- errors with a remedy ----------------------------------------------------------------------------------------------
def _evaluated(metric: Any, network: str, targets: np.ndarray) -> dict[str, float]:
    with Environment("measured") as sigma:
        trainer = sigma.create_trainer(data=(X, targets), network=network, batch_size=4)
        return trainer.evaluate("training", [metric])


def test_accuracy_accepts_indices_one_hot_rows_and_probabilities() -> None:
    text = "input(4) + output(2) + softmax_cross_entropy()"
    shares = np.where(np.eye(2)[Y], 0.9, 0.1).astype(np.float32)
    found = [_evaluated("accuracy", text, targets)["accuracy"] for targets in (Y, np.eye(2, dtype=int)[Y], shares)]
    assert found[0] == found[1] == found[2]


@pytest.mark.parametrize("units", [1, 4])
def test_accuracy_of_a_regression_is_refused(units: int) -> None:
    text = f"input(4) + output({units}) + squared_difference()"
    with pytest.raises(SigmaDataError, match="accuracy: the targets are not classes. Give indices below the number of"):
        _evaluated("accuracy", text, np.linspace(0.0, 3.0, 4 * units, dtype=np.float32).reshape(4, units))


def test_top_k_larger_than_the_number_of_classes_is_refused() -> None:
    with pytest.raises(SigmaConfigError, match="accuracy: top = 3, but the output has 2 classes. Choose"):
        _evaluated({"type": "accuracy", "top": 3}, "input(4) + output(2) + softmax_cross_entropy()", Y)


def test_a_layer_too_large_for_memory_is_refused_before_initialisation() -> None:
    text = "input(4) + dense(1000000000000) + output(2) + softmax_cross_entropy()"
    with pytest.raises(SigmaNetworkError, match=r"1-dense: its parameters need 18,626 GiB; this machine has .* fewer"):
        _trained(network=text)


def test_metrics_of_a_hook_may_be_names() -> None:
    assert "validation.sure" in _trained(hooks={"score": Accuracy(metrics={"sure": "accuracy"})})  # type: ignore[dict-item]


# -- beginning and end -------------------------------------------------------------------------------------------------
def _stoppable(**hooks: Any) -> Environment:
    sigma = Environment("ends")
    network = "input(4) + output(2) + softmax_cross_entropy()"
    sigma.create_trainer(data=(X, Y), network=network, batch_size=4, optimiser="adam", hooks=hooks)
    return sigma


@pytest.mark.parametrize(
    ("stop", "reason"),
    [
        (Stop(when="epoch reaches 2"), "epoch reaches 2 holds"),
        (Stop(when="iteration reaches 2"), "iteration reaches 2 holds"),
        (Stop(when="training.loss above 0 for 2 epochs"), "holds"),
        (Stop(every="after 2 epochs"), "after 2 epochs is over"),
    ],
)
def test_a_finished_trainer_does_not_train_until_it_is_reset(stop: Stop, reason: str) -> None:
    with _stoppable(stop=stop) as sigma:
        assert sigma.run().epochs == 2
        assert sigma.run().epochs == 2
        assert sigma.trainer("trainer").fit(epochs=5)["training.loss"].size == 2
        assert any(
            f"nothing to train: {reason}" in text or reason in text for _, text in sigma.messages.entries_after(0)
        )
        sigma.reset()
        assert sigma.run().epochs == 2
        assert sigma.trainer("trainer").history["training.loss"].size == 4


def test_a_criterion_that_compares_with_earlier_values_is_not_evaluated_before_it_is_due() -> None:
    with _stoppable(stop=Stop(when="not training.loss improves")) as sigma:
        for epoch in (1, 2, 3):
            sigma.trainer("trainer").fit(epochs=1)
            assert sigma.summary().epochs == epoch


def test_training_continues_to_a_later_goal() -> None:
    with _stoppable() as sigma:
        for epoch in (1, 2, 3):
            sigma.trainer("trainer").fit(epochs=1)
            assert sigma.summary().epochs == epoch


def test_a_run_summary_gives_its_status() -> None:
    with _stoppable(stop=Stop(when="epoch reaches 2")) as sigma:
        assert (sigma.summary().status, sigma.summary().backend) == ("created", "")
        sigma.prepare()
        assert (sigma.summary().status, sigma.summary().backend) == ("prepared", "numpy")
        sigma.run()
        assert sigma.summary().status == "finished"
    with _stoppable() as sigma:
        sigma.trainer("trainer").fit(epochs=1)
        assert sigma.summary().status == "finished"


def test_an_empty_environment_has_a_summary() -> None:
    assert Environment("empty").summary().epochs == 0


@pytest.mark.parametrize(
    "backend", ["numpy", "sigma-backend-numpy:numpy", {"type": "numpy"}, NumpyBackend(), NumpyBackend]
)
def test_a_backend_is_selected_by_name(backend: Any) -> None:
    assert display_name(backend).removesuffix("_backend") == "numpy"


@pytest.mark.parametrize("way", ["file", "python"])
def test_a_named_data_set_is_divided_in_python_as_in_a_file(way: str) -> None:
    table = {"type": "divided", "split": {"training": 0.6, "validation": 0.4}, "dataset": "iris"}
    network = "input(4) + output(3) + softmax_cross_entropy()"
    if way == "python":
        trainer = Environment("parts").create_trainer(data=table, network=network, optimiser="adam", epochs=1)
    else:
        tables = {"format": 1, "data": {"dataset": table}, "network": {"architecture": network}}
        text = toml({**tables, "trainer": {"optimiser": "adam", "epochs": 1}})
        trainer = build(load_configuration(parse(text, "text"), catalogue())).trainer("trainer")
    trainer.fit(epochs=1)
    rows = trainer.session.setup.evaluator.splits
    assert {name: len(one) for name, one in rows.items()} == {"training": 90, "validation": 60}
    assert trainer.session.setup.evaluator.classes == ("setosa", "versicolor", "virginica")


@pytest.mark.parametrize(("data", "rows"), [
    ({"type": "synthetic", "rows": 50, "split": {"training": 0.5}}, 40),
    (Synthetic(rows=20, split={"training": 0.5}), 16),
    ({"type": "xor"}, "divided: the data has splits already: validation"),
])  # fmt: skip
def test_all_rows_of_a_data_set_are_divided_unless_its_splits_are_given(data: Any, rows: Any) -> None:
    made = Resolver(catalogue())
    if isinstance(rows, str):
        with pytest.raises(SigmaConfigError, match=rows):
            made("dataset", {"type": "divided", "dataset": data})
    else:
        assert len(made("dataset", {"type": "divided", "dataset": data})["training"]) == rows
