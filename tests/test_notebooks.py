"""The notebooks of the documentation, executed by a kernel of Jupyter."""

from __future__ import annotations

from pathlib import Path

import pytest

from figures.notebook import NOTEBOOKS, executed
from sigma_data import Digits

DOCS = Path(__file__).parents[1] / "docs"


@pytest.fixture(scope="module")
def outputs():
    """Return the outputs of the cells of the first training, by source."""
    found = executed(DOCS / "first-training.ipynb")
    return {cell.source: cell.outputs for cell in found.cells if cell.cell_type == "code"}


def seen(outputs, source):
    """Return all texts that the cell with this source has shown."""
    cell = next(shown for code, shown in outputs.items() if source in code)
    return "\n".join(str(output.get("text", "")) + str(output.get("data", "")) for output in cell)


def test_a_first_training_draws_its_curves(outputs):
    assert "data:image/svg+xml" in seen(outputs, "history = trainer.fit(")


def test_a_live_change_ends_the_training_in_the_background(outputs):
    assert "0.003" in seen(outputs, "sigma.set(")


def test_the_trained_network_predicts(outputs):
    assert len(Digits()["validation"].block(0)["targets"]) > 300
    assert "array([" in seen(outputs, "trainer.predict(")


def test_every_notebook_is_saved_with_its_outputs():
    assert [path.name for path in NOTEBOOKS] == ["first-training.ipynb"]
    assert all('"output_type"' in path.read_text("utf-8") for path in NOTEBOOKS)
