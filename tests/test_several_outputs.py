"""Several outputs and costs: each cost is published, each output is measured, each unit can be maximised."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sigma_hooks import Accuracy, Evaluate, MeanAbsoluteError, TargetMaximisation
from sigma_kernel import Environment
from sigma_kernel.errors import SigmaConfigError, SigmaStateError
from sigma_layers import Concat, Dense, Input, Output, SoftmaxCrossEntropy, SquaredDifference
from sigma_operator_local import LocalOperator
from sigma_run import load

RANDOM = np.random.default_rng(4)
X = RANDOM.normal(size=(47, 3))
DATA = {"inputs": X, "kind": RANDOM.integers(0, 3, 47).astype(np.int32), "size": X @ RANDOM.normal(size=(3, 1)) + 1.0}
WEIGHTS = [0.2, 1.0, 5.0]


def network(**settings: Any) -> Any:
    """Return a trunk with a classifier, whose rows may have weights, and a regression."""
    trunk = Input(3) + Dense(4, activation="tanh")
    sized = Output(1, name="long") + SquaredDifference(targets="size", name="gap", weight=0.5)
    trunk.link(sized)
    return [trunk + Output(3, name="kind") + SoftmaxCrossEntropy(targets="kind", name="entropy", **settings), sized]


def making(**settings: Any) -> Any:
    given = {"network": network(), "optimiser": {"type": "gradient_descent", "learning_rate": 0.1}, **settings}
    given.setdefault("data", {"training": DATA, "validation": {name: values[:29] for name, values in DATA.items()}})
    sigma = Environment("outputs", precision="float64")
    return sigma.create_trainer(batch_size=10, iterator="sequential", **given)


def expected(trainer: Any, rows: slice, weights: list[float]) -> dict[str, float]:
    """Return the costs of some rows, from their predictions."""
    found = trainer.predict(X[rows])
    kind, each = DATA["kind"][rows], np.array(weights)
    entropy = -np.log(found["kind"][np.arange(len(kind)), kind]) * each[kind]
    return {
        "entropy": entropy.sum() / each[kind].sum(),
        "gap": 0.5 * np.mean((found["long"] - DATA["size"][rows]) ** 2),
    }


# -- accumulation ------------------------------------------------------------------------------------------------------
def accumulated(size: int, weights: Any, clipped: str = "", shards: int = 1) -> dict[str, np.ndarray]:
    """Return the parameters after 40 rows, in one update of batches of a size; transforms may clip to no effect."""
    clip = {"type": "clip_norm", "limit": 1e9}
    transforms: dict[str, Any] = {"accumulate": {"type": "accumulate", "batches": 40 // size}}
    transforms = {"clip": clip, **transforms} if clipped == "before" else {**transforms, "clip": clip}
    optimiser = {"type": "gradient_descent", "learning_rate": 0.1, "transforms": transforms if size < 40 else {}}
    sigma = Environment("outputs", precision="float64")
    trainer = sigma.create_trainer(
        data={name: rows[:40] for name, rows in DATA.items()}, batch_size=size, iterator="sequential", backend="numpy",
        network=network(class_weights=weights), optimiser=optimiser, operator=LocalOperator(shards=shards),
    )  # fmt: skip
    trainer.fit(epochs=1, progress=False)
    return trainer.parameters()


@pytest.mark.parametrize(("weights", "clipped", "shards"), [
    (None, "before", 1), (None, "after", 3), (WEIGHTS, "after", 1), (WEIGHTS, "", 1),
])  # fmt: skip
def test_costs_of_accumulated_batches_have_means_of_their_own(weights: Any, clipped: str, shards: int) -> None:
    """One cost is a mean over weighted classes, the other one over rows, as with all rows in one batch."""
    whole, parts = accumulated(40, weights), accumulated(8, weights, clipped, shards)
    for name, value in whole.items():
        np.testing.assert_allclose(parts[name], value, rtol=1e-12, atol=1e-14)


def test_costs_of_different_weights_are_accumulated_before_other_transforms_and_without_shards() -> None:
    with pytest.raises(SigmaConfigError, match="accumulate: the costs have rows of different .* List accumulate first"):
        accumulated(8, WEIGHTS, "before")
    with pytest.raises(SigmaStateError, match=r"shards add up gradients of costs .* Use shards = 1\."):
        accumulated(8, WEIGHTS, shards=2)


# -- costs -------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("backend", ["numpy", "numba"])
@pytest.mark.parametrize("shards", [1, 3])
@pytest.mark.parametrize("weights", [None, WEIGHTS])
def test_each_cost_is_published_and_their_sum_is_the_loss(backend: str, shards: int, weights: Any) -> None:
    trainer = making(
        network=network(class_weights=weights), backend=backend, operator=LocalOperator(shards=shards),
        hooks={"score": Evaluate()},
    )  # fmt: skip
    each = weights or [1.0] * 3
    trainer.prepare()
    wanted = [
        expected(trainer, slice(10 * k, 10 * k + 10), each)[name] for k in range(1) for name in ("entropy", "gap")
    ]
    trainer.fit(iterations=1)
    history = trainer.history
    assert [history[f"training.cost.{name}"][0] for name in ("entropy", "gap")] == pytest.approx(wanted, rel=1e-9)
    trainer.fit(epochs=1)
    costs = history["training.cost.entropy"] + history["training.cost.gap"]
    assert costs == pytest.approx(history["training.loss"], rel=1e-12)
    assert len(costs) == 5  # the last batch has 7 rows
    found, read = expected(trainer, slice(29), each), dict(trainer.session.registry.find("validation.**"))
    assert read == pytest.approx(
        {**{f"validation.cost.{name}": value for name, value in found.items()}, "validation.loss": sum(found.values())}
    )
    assert trainer.evaluate("validation") == pytest.approx({
        "loss": sum(found.values()), "cost.entropy": found["entropy"], "cost.gap": found["gap"],
    })  # fmt: skip


def test_the_cost_of_the_last_batch_is_that_of_its_rows() -> None:
    trainer = making(network=network(class_weights=WEIGHTS), operator=LocalOperator(shards=2))
    trainer.fit(iterations=4)
    wanted = expected(trainer, slice(40, 47), WEIGHTS)
    trainer.fit(iterations=1)
    found = {name: trainer.history[f"training.cost.{name}"][-1] for name in wanted}
    assert found == pytest.approx(wanted)


def test_a_single_cost_is_the_loss_alone() -> None:
    trainer = making(network=network()[1:], hooks={"score": Evaluate()})
    trainer.fit(epochs=1)
    assert set(trainer.history) == {"training.loss", "validation.loss"}
    assert not trainer.session.registry.addresses("**.cost.**")


@pytest.mark.parametrize(
    ("address", "message"),
    [("training.cost.entropi", r"which nothing here publishes.*Did you mean 'training.cost.entropy'"), ("", "")],
)
def test_hooks_read_costs_by_the_names_of_their_layers(address: str, message: str) -> None:
    when = f"{address or 'training.cost.entropy'} below 100 and validation.cost.gap below 100"
    stop = {"type": "stop", "every": "1 epoch", "when": when}
    trainer = making(hooks={"score": Evaluate(), "stop": stop}, epochs=5)
    if message:
        with pytest.raises(SigmaConfigError, match=message):
            trainer.prepare()
    else:
        trainer.fit()
        assert trainer.session.moment.epoch == 1


# -- metrics -----------------------------------------------------------------------------------------------------------
def test_metrics_measure_the_output_that_their_hook_names() -> None:
    trainer = making(
        hooks={
            "named": Accuracy(output="kind", metrics={"again": "recall"}),
            "far": MeanAbsoluteError(output="long"),
        },
        metrics={"long.error": "mean_absolute_error", "kind.accuracy": "accuracy"},
    )  # fmt: skip
    trainer.fit(epochs=2)
    predicted, rows = trainer.predict(X[:29]), slice(29)
    accuracy = np.mean(predicted["kind"].argmax(1) == DATA["kind"][rows])
    error = np.mean(np.abs(predicted["long"] - DATA["size"][rows]))
    found = dict(trainer.session.registry.find("validation.**"))
    assert found["validation.kind.accuracy"] == pytest.approx(accuracy)
    assert found["validation.long.mean_absolute_error"] == pytest.approx(error)
    assert {"validation.kind.again", "training.long.error", "training.kind.accuracy"} <= {
        *trainer.session.registry.addresses()
    }
    assert trainer.evaluate(
        metrics={"long.mean_absolute_error": MeanAbsoluteError().named_metrics()["mean_absolute_error"]}
    )["long.mean_absolute_error"] == pytest.approx(error)


@pytest.mark.parametrize(
    ("settings", "where"),
    [
        ({"metrics": ["accuracy"]}, "own.metrics: metric 'accuracy'"),
        ({"hooks": {"score": Accuracy()}}, "own.hooks.score: metric 'accuracy'"),
        ({"hooks": {"score": Evaluate(metrics={"top": "accuracy"})}}, "own.hooks.score: metric 'top'"),
    ],
)
def test_a_metric_that_names_none_of_several_outputs_is_refused(settings: dict[str, Any], where: str) -> None:
    with pytest.raises(SigmaConfigError) as caught:
        making(name="own", **settings).prepare()
    name = where.rpartition("'")[0].rpartition("'")[2]
    assert str(caught.value).endswith(
        f"metric '{name}': the network has several outputs: kind, long. Name one, 'kind.{name}' (a hook: output = "
        f"'kind'), or all, '*.{name}'."
    )
    trainer = making()
    with pytest.raises(SigmaConfigError, match="metric 'accuracy': the network has several outputs: kind, long"):
        trainer.evaluate(metrics={"accuracy": "accuracy"})


@pytest.mark.parametrize("shards", [1, 3])
def test_a_pattern_measures_every_output_that_it_matches(shards: int) -> None:
    def ends() -> list[Any]:
        return [Input(3) + Output(1, name=name) + SquaredDifference(targets="size") for name in ("left", "right")]

    score = MeanAbsoluteError(on="training", output="*", every="1 iteration")
    trainer = making(
        network=ends(), operator=LocalOperator(shards=shards), metrics={"*.off": "mean_absolute_error"},
        hooks={"score": score},
    )  # fmt: skip
    trainer.fit(iterations=1)
    before, after = making(network=ends()).predict(X), trainer.predict(X)
    errors = [{name: np.mean(np.abs(y - DATA["size"][: len(y)])) for name, y in found.items()} for found in (
        {name: y[:10] for name, y in before.items()}, after,
    )]  # fmt: skip
    found = dict(trainer.session.registry.find("training.**"))
    for name in ("left", "right"):
        assert found[f"training.{name}.off"] == pytest.approx(errors[0][name])
        assert found[f"training.{name}.mean_absolute_error"] == pytest.approx(errors[1][name])


@pytest.mark.parametrize(
    ("hook", "error", "message"),
    [
        (Accuracy(output="kinds"), SigmaConfigError, "there is no output 'kinds'. Did you mean 'kind'"),
        (Accuracy(output="z*"), SigmaConfigError, "there is no output 'z.*'. There are: kind, long"),
        (Accuracy(output="long", top=2), SigmaConfigError, "top = 2, but the output has 1 classes"),
    ],
)
def test_an_output_that_cannot_be_measured_is_refused_before_training(hook: Any, error: Any, message: str) -> None:
    with pytest.raises(error, match=message):
        making(hooks={"score": hook}).prepare()


@pytest.mark.parametrize("name", ["two..f1", "two.", "a.two.f1", "f/1"])
def test_a_metric_of_a_file_has_a_name_after_an_output_at_most(sigma: Any, tmp_path: Path, name: str) -> None:
    (tmp_path / "f.toml").write_text(
        'format = 1\n[data]\ndataset = "iris"\n[network]\n'
        'architecture = "input(4) + output(3) + softmax_cross_entropy()"\n'
        f'[trainer]\nepochs = 2\noptimiser = "adam"\n[trainer.metrics]\n"{name}" = "f1"\n'
    )
    code, _, said = sigma("check", "f.toml")
    assert code == 2
    assert "f.toml:10: trainer.metrics" in said
    assert "must be a name of letters, digits, - and _, after an output and a dot" in said


def test_an_output_without_a_cost_has_no_targets_to_be_measured_by() -> None:
    trunk = Input(3) + Dense(4)
    spare = Output(2, name="spare")
    trunk.link(spare)
    ends = [trunk + Output(1, name="long") + SquaredDifference(targets="size"), spare]
    with pytest.raises(SigmaConfigError, match="spare: no cost compares this output with targets"):
        making(network=ends, hooks={"score": MeanAbsoluteError(output="spare")}).prepare()
    assert set(making(network=ends).predict(X[:2])) == {"long", "spare"}


def test_a_run_made_in_python_is_written_with_its_optimisers_and_outputs(tmp_path: Path) -> None:
    with Environment("written", folder=tmp_path) as sigma:
        sigma.create_trainer(
            data={"training": DATA, "validation": DATA}, network=network(), epochs=1, hooks={"save": "checkpoint"},
            metrics=METRICS,
            optimisers={
                "long": {"type": "adam", "match": "long.*", "minimises": ["gap"]},
                "rest": {"type": "momentum", "match": "*dense.*"},
            },
            order=["rest", "long"],
        )  # fmt: skip
        sigma.run()
        assert sigma.run_folder is not None
        trained = load(sigma.run_folder)
    assert set(trained.predict(X[:2])) == {"kind", "long"}
    assert set(trained.evaluate("training", METRICS)) == {"loss", "cost.entropy", "cost.gap", *METRICS}


METRICS = {"long.error": "mean_absolute_error"}


def test_a_run_is_evaluated_by_the_outputs_of_its_hooks(sigma: Any, tmp_path: Path) -> None:
    (tmp_path / "f.toml").write_text(
        'format = 1\n[data]\ndataset = "iris"\n[network]\narchitecture = """trunk = input(4) + dense(3)\n'
        'trunk + output(3, name="one") + softmax_cross_entropy(name="a")\n'
        'trunk + output(3, name="two") + softmax_cross_entropy(name="b")"""\n'
        '[trainer]\nepochs = 2\noptimiser = "adam"\n'
        '[hooks.score]\ntype = "accuracy"\noutput = "*"\n[hooks.save]\ntype = "checkpoint"\n'
        '[hooks.stop]\ntype = "stop"\nwhen = "training.cost.b below 0"\n[trainer.metrics]\n"two.f1" = "f1"\n'
    )
    run = json.loads(sigma("run", "f.toml", "--quiet", "--json")[1])["folder"]
    found = json.loads(sigma("evaluate", run, "--json", "--metric", "two.accuracy")[1])["metrics"]
    assert set(found) == {
        "validation.loss", "validation.cost.a", "validation.cost.b",
        "validation.one.accuracy", "validation.two.accuracy", "validation.two.f1",
    }  # fmt: skip


# -- excitation --------------------------------------------------------------------------------------------------------
def climbed(hook: TargetMaximisation, network: Any, data: Any, at: str = "weights") -> tuple[Any, Any, Any]:
    """Return what a hook found, and the weights of the trained network."""
    found: dict[str, Any] = {}

    class Look(TargetMaximisation):
        def fire(self, context: Any) -> None:
            found["it"] = self.climb(context, self._select_outputs(context))

    hook = Look(**{name: getattr(hook, name) for name in ("layer", "section", "given", "outputs", "shape")}, **ASCENT)
    trainer = making(network=network, data=data, hooks={"look": hook})
    trainer.fit(epochs=1)
    return *found["it"], lambda name: trainer.session.host(f"network.layers.{name}")


ASCENT: dict[str, Any] = {"l2": 1.0, "steps": 500, "rate": 0.006}


def two_layers() -> Any:
    return Input(3) + Dense(2, name="hidden") + Output(1, name="out") + SquaredDifference(targets="size")


@pytest.mark.parametrize("layer", ["hidden", "out"])
def test_any_output_and_any_hidden_unit_is_maximised_along_its_weights(layer: str) -> None:
    samples, reached, read = climbed(TargetMaximisation(layer=layer, shape=[1, 3]), two_layers(), DATA)
    weights, biases = read("hidden.weights"), read("hidden.biases")
    if layer == "out":
        weights, biases = weights @ read("out.weights"), biases @ read("out.weights") + read("out.biases")
    assert samples.shape == weights.T.shape
    for k, sample in enumerate(samples):  # the gradient of w.x - x.x/2 is 0 at x = w
        assert sample == pytest.approx(weights[:, k], abs=0.02)
        assert reached[k] == pytest.approx(weights[:, k] @ weights[:, k] + biases[k], rel=0.03, abs=0.03)


def test_one_of_several_inputs_is_drawn_while_the_others_are_given() -> None:
    data = {**DATA, "more": RANDOM.normal(size=(47, 2))}
    joined = Concat(Input(3), Input(2, section="more")) + Dense(1, activation="tanh", name="joined")
    ends = joined + SquaredDifference(targets="size")
    hook = TargetMaximisation(section="more", given={"inputs": [0.3, -0.2, 0.1]}, shape=[1, 2])
    samples, reached, read = climbed(hook, ends, data)
    weights, bias = read("joined.weights")[:, 0], read("joined.biases")[0]
    assert samples.shape == (1, 2)
    held = weights[:3] @ np.array([0.3, -0.2, 0.1]) + bias
    assert reached[0] == pytest.approx(np.tanh(held + weights[3:] @ samples[0]), rel=1e-9)
    slope = (1 - reached[0] ** 2) * weights[3:]
    assert samples[0] == pytest.approx(slope, abs=0.01)  # the gradient of tanh(w.x + c) - x.x/2 is 0 there


@pytest.mark.parametrize(
    ("hook", "message"),
    [
        (TargetMaximisation(layer="hiden", shape=[1, 3]), "there is no layer 'hiden'. Did you mean 'hidden'"),
        (TargetMaximisation(section="input", shape=[1, 3]), "there is no input section 'input'. Did you mean 'inputs'"),
        (TargetMaximisation(layer="hidden", outputs=[2], shape=[1, 3]), "outputs: must be from 0 to 1"),
        (TargetMaximisation(given={"mor": 1.0}, shape=[1, 3]), "there is no input section 'mor'. There are: inputs"),
        (
            TargetMaximisation(given={"inputs": [1.0]}, shape=[1, 3]),
            "target_maximisation.given: 'inputs' has shape (3,)",
        ),
    ],
)
def test_a_unit_or_an_input_that_is_not_there_is_refused_before_training(hook: Any, message: str) -> None:
    with pytest.raises(SigmaConfigError, match=re.escape(message)):
        making(network=two_layers(), data=DATA, hooks={"look": hook}).prepare()


def test_a_channel_is_maximised_in_the_mean_over_its_positions(sigma: Any, tmp_path: Path) -> None:
    (tmp_path / "f.toml").write_text(
        'format = 1\n[data]\ndataset = "digits"\n[network]\narchitecture = """input(8, 8) + reshape(1, 8, 8)\n'
        '+ conv2d(3, 3, name="maps") + flatten() + output(10) + softmax_cross_entropy()"""\n'
        '[trainer]\nepochs = 1\noptimiser = "adam"\n[data.preprocessors.x]\ntype = "scale"\nfactor = 0.1\n'
        '[hooks.look]\ntype = "target_maximisation"\nlayer = "maps"\nevery = "1 epoch"\nsteps = 2\n'
    )
    code, out, said = sigma("run", "f.toml", "--quiet", "--json")
    assert code == 0, said
    images = Path(json.loads(out)["folder"]) / "images"
    assert {path.name for path in images.iterdir()} == {f"maps-{k}.png" for k in range(3)}
