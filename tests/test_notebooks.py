"""The notebooks of the documentation, executed by a kernel of Jupyter."""

from __future__ import annotations

import re
from pathlib import Path

import nbformat
import pytest

import sigma_ml
from figures.notebook import NOTEBOOKS, executed
from sigma_data import Digits
from sigma_monitor_web.notebook import watch

DOCS = Path(__file__).parents[1] / "docs"
TRAINING = """
import numpy as np

from sigma_kernel import Environment
from sigma_layers import Dense, Input, Output, SoftmaxCrossEntropy
from sigma_monitor_console import ConsoleMonitor

inputs = np.random.default_rng(0).normal(size=(2000, 4)).astype("float32")
sigma = Environment("notebook", monitors={"console": ConsoleMonitor()})
trainer = sigma.create_trainer(batch_size=20, epochs=30, optimiser="adam", backend="numpy")
trainer.network = Input(4) + Dense(8, "tanh") + Output(2) + SoftmaxCrossEntropy()
trainer.data = {"inputs": inputs, "targets": (inputs.sum(1) > 0).astype("int32")}
done = sigma.run()
"""


@pytest.fixture(scope="module")
def outputs():
    """Return the outputs of the cells of the first training, by source."""
    found = executed(DOCS / "first-training.ipynb")
    return {cell.source: cell.outputs for cell in found.cells if cell.cell_type == "code"}


def seen(outputs, source):
    """Return all texts that the cell with this source has shown."""
    cell = next(shown for code, shown in outputs.items() if source in code)
    return "\n".join(str(output.get("text", "")) + str(output.get("data", "")) for output in cell)


def test_a_first_training_shows_its_progress_and_draws_its_curves(outputs):
    shown = seen(outputs, "history = trainer.fit(")
    assert "epoch 10  ━━━" in shown
    assert "data:image/svg+xml" in shown


def test_a_live_change_ends_the_training_in_the_background(outputs):
    assert "trainer.optimiser.learning_rate" in seen(outputs, "sigma.set(")
    reached = re.search(r"validation.accuracy ([\d.]+) \((\d+)\)", seen(outputs, "trainer.history"))
    assert float(reached[1]) >= 0.97
    assert int(reached[2]) < 200  # epochs; without the change it takes many hundreds


def test_the_trained_network_predicts(outputs):
    found, known = re.findall(r"array\(\[([\d, ]+)\]", seen(outputs, "trainer.predict("))
    assert sum(a == b for a, b in zip(found.split(), known.split(), strict=True)) >= 6
    assert known.split(", ") == [str(digit) for digit in Digits()["validation"].block(0)["targets"][:8]]


def test_a_run_is_watched_and_steered_in_a_cell():
    found = executed(DOCS / "watched-training.ipynb")
    outputs = {cell.source: cell.outputs for cell in found.cells if cell.cell_type == "code"}
    assert "RunWidget('digits')" in seen(outputs, "sm.watch(sigma)")
    assert "trainer.optimiser.learning_rate" in seen(outputs, "sigma.set(")
    assert "validation.accuracy" in seen(outputs, "training.result()")
    assert "RunWidget('digits-" in seen(outputs, "sm.watch(sigma.run_folder)")


def test_every_notebook_is_saved_with_its_outputs():
    assert [path.name for path in NOTEBOOKS] == ["first-training.ipynb", "watched-training.ipynb"]
    assert all('"output_type"' in path.read_text("utf-8") for path in NOTEBOOKS)


def test_progress_is_one_output_that_ends_with_the_last_state_and_a_network_is_shown_as_a_table(tmp_path):
    cells = [nbformat.v4.new_code_cell(text) for text in (TRAINING, "trainer.network")]
    nbformat.write(nbformat.v4.new_notebook(cells=cells), tmp_path / "training.ipynb")
    progress, layers = (cell.outputs for cell in executed(tmp_path / "training.ipynb").cells)
    assert len(progress) == 1, progress
    assert progress[0]["data"]["text/plain"].startswith("epoch 30/30  ━━━━━━")
    assert progress[0]["data"]["text/plain"].endswith("finished")
    assert "<pre" in progress[0]["data"]["text/html"]
    assert "1-dense" in layers[0]["data"]["text/html"]
    assert "\n" not in layers[0]["data"]["text/plain"]


def test_users_watch_runs_in_cells_with_the_default_set() -> None:
    assert sigma_ml.watch is watch
