"""Every recipe: ONNX Runtime returns what ``predict`` returns."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("onnxruntime")

from sigma_initialisers import FromFile
from sigma_recipes import recipes
from sigma_recipes.plugin import RECIPES
from sigma_run import config, load

from .test_networks import same

SMALL = ["data.rows=20", "data.batch_size=4"]
FEW = {
    **{name: SMALL for name in RECIPES if name.startswith("bench-") or name == "lstm"},
    "charmodel": ["data.length=25", "data.split={training=0.03, validation=0.01}"],
    "mnist": ["data.batch_size=10"],
}


def files(folder: Path) -> list[str]:
    """Write made-up digits as MNIST's files."""
    draw = np.random.default_rng(0)
    for name, count in (("train", 30), ("t10k", 5)):
        for kind, shape in (("images-idx3", (count, 28, 28)), ("labels-idx1", (count,))):
            head = bytes([0, 0, 8, len(shape)]) + np.array(shape, ">i4").tobytes()
            values = draw.integers(0, 10 if len(shape) == 1 else 256, shape, np.uint8)
            (folder / f"{name}-{kind}-ubyte").write_bytes(head + values.tobytes())
    return [f"data.folder={folder}"]


def voices(folder: Path) -> list[str]:
    """Write a made-up table of recordings of persons, most of them ill."""
    draw, names = np.random.default_rng(0), [f"measure{i}" for i in range(22)]
    rows = [
        ",".join([f"phon_R01_S{person:02}_{n}", *(f"{x:.6g}" for x in draw.normal(9, 5, 22)), str(int(person > 5))])
        for person in range(20)
        for n in range(3)
    ]
    (folder / "voices.csv").write_text("\n".join([",".join(["name", *names, "status"]), *rows]))
    return [f"data.path={folder / 'voices.csv'}"]


def single(values: np.ndarray) -> np.ndarray:
    """Return numbers of a table, which are read in float64, in the type of the model's inputs."""
    return values.astype(np.float32) if values.dtype == np.float64 else values


FILES = {"mnist": files, "parkinsons": voices}


@pytest.mark.parametrize("name", RECIPES)
def test_a_recipe_predicts_the_same(name: str, tmp_path: Path) -> None:
    settings = ["run.backend=numpy", *FEW.get(name, ()), *(FILES[name](tmp_path) if name in FILES else ())]
    with config.build(config.load(recipes.recipe(name).text, settings, name=name), folder=tmp_path) as environment:
        trainer = environment.trainers["trainer"]
        model, data = load(trainer.save(tmp_path / "saved")), trainer.session.setup.feed.dataset
        samples = {section: single(data.block(0)[section][:6]) for section in model.shapes}
        made = same(model, samples)
    given = {one.name: one for one in made.graph.input}
    assert {*given} == {*model.shapes}
    (tmp_path / "it.onnx").write_bytes(made.SerializeToString())
    found, network = FromFile(tmp_path / "it.onnx").arrays(), model.inference()
    for name in (name.removeprefix("network.layers.") for name in network.step(1).state):
        np.testing.assert_array_equal(found[name], network.arrays[name])
