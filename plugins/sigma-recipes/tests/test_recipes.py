"""Every recipe is valid, and reaches its known result."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from math import prod
from pathlib import Path
from statistics import median

import numpy as np
import pytest

from sigma_data import Digits
from sigma_hooks import MaximumMeanDiscrepancyMetric
from sigma_kernel import catalogue
from sigma_recipes import recipes
from sigma_recipes.plugin import RECIPES
from sigma_run import config, load
from sigma_run.launcher import main

from . import voices

MNIST = Path(__file__).parents[4] / "shared" / "data" / "mnist5k"


def accuracy(name: str, *overrides: str) -> float:
    configuration = config.load(recipes.recipe(name).text, overrides, name=name)
    with config.build(configuration) as environment:
        return environment.run().metrics["validation.accuracy"]


@pytest.mark.parametrize("name", RECIPES)
def test_a_recipe_is_a_valid_configuration_under_its_name(name):
    text = recipes.recipe(name).text
    assert tomllib.loads(text)["run"]["name"] == name
    configuration = config.load(text, name=name)
    assert config.load(config.resolved_toml(configuration)) == configuration


@pytest.mark.parametrize("name", RECIPES)
def test_a_recipe_begins_with_a_description(name):
    text = recipes.recipe(name).text
    assert text.startswith("# ")
    assert "format = 1" in text


RIVAL = """
from sigma_kernel import Component, hookimpl

SIGMA_API = "1.0"

@hookimpl
def sigma_components():
    names = {names!r}
    return [Component(kind, name, "nowhere:Nothing", "Offered by another plugin, too.") for kind, name in names]
"""


def test_a_plugin_that_offers_the_same_names_does_not_break_a_recipe(tmp_path, monkeypatch):
    names = [(one.kind, one.name) for one in catalogue().components() if one.kind not in ("recipe", "lowering", "op")]
    (tmp_path / "rival").mkdir()
    (tmp_path / "rival" / "plugin.py").write_text(RIVAL.format(names=names))
    about = tmp_path / "sigma_a_rival-1.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Name: sigma-a-rival\nVersion: 1\n")
    (about / "entry_points.txt").write_text("[sigma_kernel.plugins]\nrival = rival.plugin\n")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])}

    def check(name):
        command = [sys.executable, "-m", "sigma_run", "check", name]
        return subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True)

    (tmp_path / "own.toml").write_text(recipes.recipe("xor").text.replace('prefer = ["sigma-recipes"]', ""))
    done = check("own.toml")
    assert done.returncode == 0, done.stderr
    warned = (
        "'dense': sigma-a-rival and sigma-layers both offer it. It means 'sigma-layers:dense', which is in the default"
    )
    assert done.stderr.count(warned) == 1
    done = check("xor")
    assert done.returncode == 0, done.stderr
    assert "both offer it" not in done.stderr


@pytest.mark.parametrize("name", RECIPES)
def test_a_recipe_prefers_the_plugins_that_its_distribution_requires(name):
    text = recipes.recipe(name).text
    assert tomllib.loads(text)["run"]["prefer"] == ["sigma-recipes"]
    used = re.findall(r'"(sigma-[a-z-]+):', config.resolved_toml(config.load(text, name=name)))
    used += re.findall(r"(sigma-[a-z-]+):", config.load(text, name=name).trainers["trainer"].network.architecture)
    assert {*used} <= {*catalogue().preferring(["sigma-recipes"]).prefer}


SIZES = {
    "bench-mlp-small": (100, 60, 101_770),
    "bench-mlp-large": (100, 60, 1_863_690),
    "bench-deep": (32, 187, 19 * (64 * 64 + 64) + 650),
    "bench-iris": (10, 1200, 99),
    "bench-cnn": (100, 20, 320 + 18_496 + 401_536 + 1_290),
    "bench-resnet": (64, 10, 432 + 2 * 2_304 + 4_608 + 9_216 + 18_432 + 2 * 36_864 + 2 * (48 + 64 + 192) + 650),
    "bench-transformer": (16, 20, (64 + 128) * 128 + 4 * (4 * 16_512 + 66_048 + 65_664 + 512) + 256 + 8_256),
    "bench-lstm": (32, 40, (32 + 128 + 1) * 512 + 1_290),
}


@pytest.mark.parametrize("name", SIZES)
def test_a_benchmark_network_has_the_documented_size(name):
    configuration = config.load(recipes.recipe(name).text, name=name)
    with config.build(configuration) as environment:
        session = environment.trainers["trainer"].session
        parameters = sum(prod(p.shape) for p in session.setup.model.shapes.parameters.values())
        assert (session.setup.feed.batch_size, session.setup.feed.iterations_per_epoch, parameters) == SIZES[name]


@pytest.mark.long_cases("bench-lstm", "bench-resnet", "bench-transformer")
@pytest.mark.parametrize("name", SIZES)
def test_a_benchmark_learns(name):
    backend = "numba" if name == "bench-resnet" else "numpy"  # which would take half a minute
    rows = [f"run.backend={backend}", "data.rows=200", "data.batch_size=20", "hooks.finish.when=epoch reaches 3"]
    with config.build(config.load(recipes.recipe(name).text, rows, name=name)) as environment:
        environment.run()
        losses = environment.trainers["trainer"].history["training.loss"]
        assert losses[-10:].mean() < losses[:10].mean()


def loss(name: str, *overrides: str) -> float:
    configuration = config.load(recipes.recipe(name).text, overrides, name=name)
    with config.build(configuration) as environment:
        return environment.run().metrics["validation.loss"]


def test_the_convolutional_recipe_learns_in_five_epochs():
    assert accuracy("cnn", "hooks.finish.when=epoch reaches 5") >= 0.93


def test_the_residual_recipe_learns_in_two_epochs():
    assert accuracy("residual", "hooks.finish.when=epoch reaches 2") >= 0.85


def test_the_autoencoder_is_better_than_the_mean_picture():
    assert loss("autoencoder") < 0.025


# -- the adversarial pair ----------------------------------------------------------------------------------------------
DISTANCE = "validation.average.pictures.maximum_mean_discrepancy"


def discrepancy(made: np.ndarray, real: np.ndarray) -> float:
    """Return the statistic by which the recipe gan is judged."""
    rows = np.concatenate([made.reshape(len(made), -1), real.reshape(len(real), -1)], axis=1)
    return MaximumMeanDiscrepancyMetric(1.0).value(rows, len(rows))


@pytest.mark.long
def test_what_the_pair_draws_is_like_digits_as_a_distribution(tmp_path):
    few = ["hooks.finish.when=epoch reaches 150", "hooks.score.every=50 epochs"]
    with config.build(config.load(recipes.gan.text, few, name="gan"), folder=tmp_path) as environment:
        result = environment.run()
    distances = environment.trainers["trainer"].history[DISTANCE]
    splits = {name: rows.block(0)["inputs"] for name, rows in Digits().items()}
    real = splits["validation"]
    draw = np.random.default_rng(0)
    halves = [discrepancy(draw.permutation(splits["training"])[: len(real)], real) for _ in range(5)]
    likely = draw.multivariate_normal(real.reshape(-1, 64).mean(0), np.cov(real.reshape(-1, 64).T), len(real))
    assert max(map(abs, halves)) < 0.001
    assert discrepancy(np.clip(likely, 0, 1), real) > 0.01
    assert result.metrics[DISTANCE] < 0.008
    assert distances[-1] < distances[0]
    model = load(environment.run_folder, weights="average")
    pictures = model.predict(draw.normal(size=(len(real), 16)).astype(np.float32))
    assert pictures.shape == real.shape
    assert discrepancy(pictures, real) == pytest.approx(distances[-1], abs=0.002)  # of other noise


@pytest.mark.long
def test_the_pair_replays_and_resumes_to_the_same_bits(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)

    def sigma(*arguments: str) -> dict:
        assert main([*arguments, "--json", "--quiet"]) == 0, capsys.readouterr().err
        return json.loads(capsys.readouterr().out)

    ends = {n: ["--set", f"hooks.finish.when=epoch reaches {n}", "--set", "hooks.score.every=1 epoch"] for n in (2, 4)}
    whole, part = sigma("run", "gan", *ends[4]), sigma("run", "gan", *ends[2])
    resumed = sigma("resume", part["folder"], *ends[4])
    assert resumed["parameters_sha256"] == whole["parameters_sha256"] != part["parameters_sha256"]
    assert resumed["metrics"] == whole["metrics"]
    assert sigma("run", "gan", "--set", "run.seed=1", *ends[2])["metrics"][DISTANCE] != part["metrics"][DISTANCE]
    assert main(["replay", whole["folder"], "--check"]) == 0, capsys.readouterr().err


# -- a table by its path -----------------------------------------------------------------------------------------------
@pytest.fixture
def table(tmp_path):
    (tmp_path / "voices.csv").write_text(voices.table())
    return tmp_path / "voices.csv"


def test_the_recipe_of_voices_tests_on_persons_that_it_does_not_know(table, tmp_path):
    configuration = config.load(recipes.parkinsons.text, [f"data.path={table}"], name="parkinsons")
    with config.build(configuration, folder=tmp_path) as environment:
        metrics = environment.run().metrics
        data = environment.trainers["trainer"].data
    assert metrics["validation.accuracy"] >= 0.85
    assert metrics["validation.auc"] >= 0.9
    rows = {name: part.block(0) for name, part in data.items()}
    cells = [line.split(",") for line in table.read_text().splitlines()]
    known = {float(row[1]): row[0].split("_")[2] for row in cells[1:]}  # persons, by the first measure
    ill = {row[0].split("_")[2] for row in cells[1:] if row[17] == "1"}
    persons = {name: {known[x] for x in part["inputs"][:, 0]} for name, part in rows.items()}
    assert rows["training"]["inputs"].shape[1] == 22
    assert (len(persons["training"]), len(persons["validation"])) == (26, 6)
    assert not persons["training"] & persons["validation"]
    assert len(persons["training"] & ill) in (19, 20)  # of 24
    assert load(environment.run_folder).columns["inputs"] == cells[0][1:17] + cells[0][18:]


def test_voices_are_predicted_from_a_table_with_names_and_without_status(table, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    few = ["--set", f"data.path={table}", "--set", "hooks.finish.when=epoch reaches 1"]
    assert main(["run", "parkinsons", "--json", "--quiet", *few]) == 0
    folder = json.loads(capsys.readouterr().out)["folder"]
    cells = [line.split(",") for line in table.read_text().splitlines()]
    (tmp_path / "new.csv").write_text("\n".join(",".join(row[:17] + row[18:]) for row in cells[:4]))
    table.unlink()
    assert main(["predict", folder, "new.csv", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["predictions"]
    assert [one["label"] in (0, 1) for one in found] == [True] * 3


def test_a_table_that_is_missing_is_asked_for_with_its_source(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["run", "parkinsons"]) == 2
    said = capsys.readouterr().err
    assert "data: there is no such file" in said
    assert "It can be had from https://archive.ics.uci.edu/dataset/174/parkinsons; set `path` to your copy." in said
    assert not list(tmp_path.iterdir())


@pytest.mark.long
def test_the_recipe_of_tictactoe_plays_positions_that_it_has_not_seen():
    assert accuracy("tictactoe") >= 0.965


ATTENTION = re.findall(r"--set '(network.architecture=[^']++)'", re.sub(r"\n# +", " ", recipes.charmodel.text))


@pytest.mark.long_cases("attention")
@pytest.mark.parametrize("others", [[], ATTENTION], ids=["lstm", "attention"])
def test_a_model_of_characters_knows_more_than_how_frequent_they_are(others):
    short = ["run.backend=numpy", "data.length=25", "data.split={training=0.03, validation=0.01}"]
    configuration = config.load(recipes.charmodel.text, [*short, *others], name="charmodel")
    with config.build(configuration) as environment:
        assert environment.run().metrics["validation.bits_per_character"] < 3.5
        trainer = environment.trainers["trainer"]
        assert ("encoder" in str(trainer.network)) == bool(others)
        assert environment.get("trainer.text.sample") == "To be" + trainer.generate("To be", 120, 0.7)


def test_the_recurrent_recipe_remembers():
    short = ["data.rows=2000", "data.steps=10", "hooks.finish.when=validation.loss falls to 0.02 or epoch reaches 60"]
    assert loss("lstm", *short) <= 0.02


@pytest.mark.skipif(not MNIST.is_dir(), reason="the sample of MNIST is not next to this checkout")
def test_the_convolutional_recipe_takes_images_of_another_size():
    short = [
        "hooks.score.every=20 iterations",
        "hooks.finish.when=iteration reaches 20",
        "hooks.finish.every=1 iteration",
    ]
    assert accuracy("cnn", "data.dataset=mnist", f"data.folder={MNIST}", *short) > 0.5


def test_a_recipe_starts_at_once_where_no_backend_is_named(monkeypatch):
    monkeypatch.delenv("SIGMA_BACKEND")
    with config.build(config.load(recipes.recipe("digits").text, (), name="digits")) as environment:
        summary = environment.run()
    assert summary.backend == "numpy"
    assert summary.metrics["validation.accuracy"] >= 0.96


def test_the_digits_recipe_reaches_96_percent_accuracy():
    assert accuracy("digits") >= 0.96


@pytest.mark.parametrize(("name", "least"), [("iris", 0.93), ("wdbc", 0.96), ("xor", 1.0)])
def test_the_median_of_five_seeds_reaches_the_documented_result(name, least):
    assert median(accuracy(name, f"run.seed={seed}") for seed in range(5)) >= least


def test_the_same_seed_gives_the_same_bits_twice():
    configuration = config.load(recipes.xor.text)
    runs = [config.build(configuration).run().parameters_sha256 for _ in range(2)]
    assert runs[0] == runs[1]
    assert config.build(config.load(recipes.xor.text, ["run.seed=1"])).run().parameters_sha256 != runs[0]


@pytest.mark.skipif(not MNIST.is_dir(), reason="the sample of MNIST is not next to this checkout")
def test_the_mnist_recipe_learns_from_local_files_in_one_epoch():
    assert accuracy("mnist", f"data.folder={MNIST}", "hooks.finish.when=epoch reaches 1") >= 0.75
