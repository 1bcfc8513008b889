"""Run the example of the first page, and draw what it measured."""

from __future__ import annotations

import re

import numpy as np

from figures import FOLDER
from sigma_plot.charts import Line, panels, svg

PAGE = FOLDER.parent / "index.md"


def first() -> str:
    """Return the chart of the first page: its losses, its accuracy, and the learning rate of each epoch."""
    names: dict[str, object] = {}
    exec(
        compile(re.findall(r"^```python\n(.*?)^```", PAGE.read_text("utf-8"), re.M | re.S)[0], PAGE.name, "exec"), names
    )
    trainer, sigma = names["trainer"], names["sigma"]
    found = panels({"": trainer.history.curves()}, "epoch")
    after, before = sigma.get("trainer.optimiser.learning_rate"), trainer.optimiser["learning_rate"]
    epochs = np.array([1.0, 10.0, 10.0, 30.0])
    rates = np.array([before, before, after, after])
    found["learning rate"] = [Line("live", epochs, rates, rates, rates)]
    return svg("A live change of the learning rate, after 10 epochs", found, "epoch")
