"""PNG, which matplotlib draws."""

from __future__ import annotations

from io import BytesIO

import numpy as np
import pytest

from sigma_kernel import Chart
from sigma_plot import Figure
from sigma_plot.charts import Line
from sigma_plot.drawing import picture
from sigma_testing import ChartSuite

pytest.importorskip("matplotlib")
images = pytest.importorskip("PIL.Image")


@pytest.mark.parametrize("y", [[1.0, 0.5, 0.25], [np.nan, 1.0, np.inf], []])
def test_charts_are_drawn_as_png(y: list[float]) -> None:
    line = Line("training", np.arange(len(y)), *[np.array(y)] * 3)
    with images.open(BytesIO(picture("a", {"loss": [line], "accuracy": [line]}, "iteration"))) as image:
        assert image.size == (1200, 870)
        assert len(image.convert("RGB").getcolors(1 << 24)) > 20  # text and axes


def test_no_charts_are_a_picture_as_well() -> None:
    assert picture("a", {}, "iteration")


class TestFigure(ChartSuite):
    def make(self) -> Chart:
        return Figure()
