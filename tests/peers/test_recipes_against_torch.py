"""The recipes and the same models in PyTorch, as performance.md compares them: two epochs from the same values."""

from __future__ import annotations

import tomllib
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from attrs import evolve

from sigma_kernel import catalogue

torch = pytest.importorskip("torch")

from figures import adversarial, in_torch, recipe_table, recipes  # noqa: E402

BRIEF = ["run.backend=numpy"]
FEW = {name: ["data.rows=500", "data.steps=7"] for name in ("lstm", "lstm, 8 steps")}
FEW["charmodel"] = [
    "hooks.finish.when=epoch reaches 2",
    "data.split={training=0.006, validation=0.002}",
    "data.length=10",
]
RANDOM = {"mnist", "cnn", "parkinsons, made-up table"}  # dropout draws other numbers in PyTorch
TOLERANCE = 1e-9


def files(folder: Path) -> list[str]:
    """Write made-up digits as MNIST's files."""
    draw = np.random.default_rng(0)
    for name, count in (("train", 250), ("t10k", 20)):
        for kind, shape in (("images-idx3", (count, 28, 28)), ("labels-idx1", (count,))):
            head = bytes([0, 0, 8, len(shape)]) + np.array(shape, ">i4").tobytes()
            values = draw.integers(0, 10 if len(shape) == 1 else 256, shape, np.uint8)
            (folder / f"{name}-{kind}-ubyte").write_bytes(head + values.tobytes())
    return [f"data.folder={folder}"]


def test_every_recipe_is_trained_in_torch():
    assert {name.partition(",")[0] for name in in_torch.ROWS} == recipe_table.trained()


@pytest.mark.parametrize("name", [name for name, row in in_torch.ROWS.items() if not row.train])
def test_a_recipe_has_the_scores_of_torch_after_two_epochs(name, tmp_path):
    settings = [*BRIEF, *FEW.get(name, []), *(files(tmp_path) if name == "mnist" else [])]
    row = evolve(in_torch.ROWS[name], precision="float64", ends=in_torch.epochs(2))
    with recipes.opened(row, name, 1, settings) as environment:
        (trainer,) = environment.trainers.values()
        task, module = recipes.Task(row, trainer), row.network()
        recipes.copy(module, task.values)
        theirs = recipes.scored(row, module, *task.split("validation"))
        assert recipes.evaluated(row, trainer) == pytest.approx(theirs, rel=TOLERANCE)
        if name not in RANDOM:
            theirs = recipes.in_torch(task, module, task.batches)
            trainer.fit(epochs=2)
            assert recipes.evaluated(row, trainer) == pytest.approx(theirs, rel=TOLERANCE)


def test_the_adversarial_pair_has_the_weights_and_the_score_of_torch_after_two_epochs(monkeypatch):
    name, latest = "gan, 60 epochs", list[np.ndarray]()
    text = tomllib.loads(catalogue().load("recipe", "gan").text)["network"]["architecture"]
    for random, still in (("1.0, replace=true", "0.0"), ("noise(0.1)", "noise(0.0)"), ("dropout(0.3)", "dropout(0.0)")):
        assert random in text
        text = text.replace(random, still)
    row = evolve(in_torch.ROWS[name], precision="float64", train=partial(adversarial.train, epochs=2))
    settings = [
        *BRIEF,
        f"network.architecture={text}",
        "hooks.score.every=1 epoch",
        "hooks.finish.when=epoch reaches 2",
    ]
    with recipes.opened(row, name, 1, settings) as environment:
        (trainer,) = environment.trainers.values()
        task, module = recipes.Task(row, trainer), row.network()
        recipes.copy(module, task.values)
        noise = task.split("training")[1]
        for layer in module.modules():
            if isinstance(layer, torch.nn.Dropout):
                layer.p = 0.0
        monkeypatch.setattr(torch, "randn_like", torch.zeros_like)
        monkeypatch.setattr(torch, "randn", lambda rows, size: noise[latest[-1]])

        def batches(epoch):
            for rows in task.batches(epoch):
                latest.append(rows)
                yield rows

        theirs = recipes.in_torch(task, module, batches)
        environment.run()
        assert recipes.evaluated(row, trainer) == pytest.approx(theirs, rel=1e-6)
        ours = trainer.session.host("network.layers.critic-1.weights")
        np.testing.assert_allclose(ours, module.critic[1].weight.detach().numpy().T, rtol=1e-9, atol=1e-12)


def test_the_program_keeps_scores_and_writes_the_table(tmp_path, monkeypatch, capsys):
    page = tmp_path / "page.md"
    page.write_text(f"before\n{recipe_table.BEGIN}old\n{recipe_table.END}after\n")
    monkeypatch.setattr(recipe_table, "PAGE", page)
    monkeypatch.setattr(recipe_table, "KEPT", tmp_path / "recipes.json")
    (tmp_path / "recipes.json").write_text("{}")
    monkeypatch.setitem(in_torch.ROWS, "iris", evolve(in_torch.ROWS["iris"], settings=["run.backend=numpy"]))
    assert recipes.main(["iris", "--seeds", "2"]) == 0
    assert recipe_table.read().keys() == {"iris"}
    assert len(recipe_table.read()["iris"]["own"]) == 2
    text = page.read_text()
    assert "old" not in text
    assert recipe_table.table(recipe_table.read()) in text
    assert capsys.readouterr().out.startswith("iris ")
