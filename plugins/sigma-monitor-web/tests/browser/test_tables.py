"""Rows that are numbers or texts: columns have the names that the data have, and texts are read and written."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

CODE = '''
import numpy as np
from sigma_kernel import Dataset, Preprocessor
from sigma_kernel.graph import Spec

LINES = ("rain and wind", "snow, then <b>fog</b>", "soup with bread", "rice and beans")


class Lines(Dataset):
    """Lines about the weather or about food."""

    sections = {"inputs": Spec((), "int32"), "targets": Spec((), "int32")}
    blocks = 1

    def rows(self, block):
        return 40

    def block(self, block):
        return {"inputs": np.array(LINES * 10), "targets": np.array([0, 0, 1, 1] * 10, np.int32)}

    def class_names(self, section):
        return ("weather", "food") if section == "targets" else ()


class Letters(Preprocessor):
    """How often each letter occurs."""

    section = "inputs"

    def fit(self, blocks):
        return {}

    def apply(self, values, state):
        return np.array([[text.count(chr(97 + n)) for n in range(26)] for text in values.tolist()], np.float32)
'''
RECIPE = """
format = 1
[run]
name = "lines"
[data]
batch_size = 10
[data.dataset]
python = "lines:Lines"
[data.preprocessors.letters]
python = "lines:Letters"
[network]
architecture = "input(26) + output(2) + softmax_cross_entropy()"
[trainer]
optimiser = { type = "adam", learning_rate = 0.01 }
[hooks.finish]
type = "stop"
when = "epoch reaches 1000000"
"""
TEXT = re.compile(r"^row \d+, label (weather|food)")


@pytest.fixture(scope="module")
def flowers(browsers: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Return a run on a table."""
    with browsers.run(tmp_path_factory.mktemp("run"), "iris", *browsers.ENDLESS) as run:
        yield run


@pytest.fixture(scope="module")
def lines(browsers: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Return a run on texts, with a data set and a preprocessor of its own."""
    folder = tmp_path_factory.mktemp("run")
    (folder / "lines.py").write_text(CODE)
    (folder / "lines.toml").write_text(RECIPE)
    with browsers.run(folder, "lines.toml", "--trust", "lines") as run:
        yield run


@pytest.fixture
def enter(visit: Any) -> Iterator[Any]:
    """Return a function that opens a view of the dashboard of a run."""
    windows = []

    def opened(run: Any, view: str) -> Any:
        windows.append(visit())
        windows[-1].page.goto(run.link)
        windows[-1].page.get_by_text("connected", exact=True).wait_for()
        windows[-1].page.get_by_role("navigation").get_by_role("link", name=view).click()
        return windows[-1].page

    yield opened
    assert [window.complaints for window in windows] == [[]] * len(windows)


def test_a_table_has_the_names_of_its_columns_and_its_rows_can_be_chosen(flowers: Any, enter: Any) -> None:
    page = enter(flowers, "Data")
    table = page.get_by_role("group", name="Rows").get_by_role("table")
    table.get_by_role("columnheader", name="sepal length (cm)").wait_for()
    heads = table.get_by_role("columnheader").all_inner_texts()
    assert heads == ["Row", "Label", "Predicted", "Loss", "sepal length (cm)", "sepal width (cm)",
                     "petal length (cm)", "petal width (cm)"]  # fmt: skip
    first = table.get_by_role("row").nth(1)
    assert len(first.get_by_role("cell").all_inner_texts()) == len(heads) - 1, "the row itself is a head"
    first.get_by_role("cell").last.click()  # anywhere on the row
    button = first.get_by_role("button")
    assert button.get_attribute("aria-pressed") == "true"
    button.press("ArrowDown")
    page.keyboard.press("Enter")
    page.get_by_text("2 selected").wait_for()


def test_sliders_have_the_names_and_the_ranges_of_the_columns(flowers: Any, enter: Any) -> None:
    page = enter(flowers, "Try it")
    slider = page.get_by_role("slider", name="petal length (cm)")
    slider.wait_for()
    assert [float(slider.get_attribute(end)) for end in ("min", "max")] == pytest.approx([1.0, 6.9])
    for name in ("length", "width"):
        page.get_by_role("slider", name=f"petal {name}").press("Home")
    small = "['setosa', 'versicolor'].includes(document.querySelector('.huge b').textContent)"
    page.wait_for_function(f"() => {small}")  # after thousands of epochs, the petals alone do not tell which of the two
    for name in ("length", "width"):
        page.get_by_role("slider", name=f"petal {name}").press("End")
    page.wait_for_function("() => document.querySelector('.huge b').textContent === 'virginica'")
    page.get_by_role("navigation").get_by_role("link", name="Network").click()
    page.get_by_role("button", name="From Try it").click()
    page.get_by_text("as entered there").wait_for()
    page.get_by_role("navigation").get_by_role("link", name="Try it").click()
    assert float(slider.input_value()) == pytest.approx(6.9), "what was entered stays"


def test_rows_of_text_are_read_as_they_are(lines: Any, enter: Any) -> None:
    page = enter(lines, "Data")
    table = page.get_by_role("group", name="Rows").get_by_role("table")
    table.get_by_role("columnheader", name="Text").wait_for()
    table.get_by_role("cell", name="snow, then <b>fog</b>").first.wait_for()
    table.get_by_role("button", name=TEXT).first.click()
    page.get_by_text("1 selected").wait_for()


def test_a_text_is_written_and_answered(lines: Any, enter: Any) -> None:
    page = enter(lines, "Try it")
    box = page.get_by_label("Text")
    box.fill("soup with rice")
    page.wait_for_function("() => document.querySelector('.huge b').textContent === 'food'")
    page.get_by_role("button", name="The next row").click()
    page.wait_for_function("() => document.querySelector('.huge b').textContent === 'weather'")
    assert box.input_value() == "rain and wind"
    page.get_by_role("navigation").get_by_role("link", name="Network").click()
    page.get_by_role("region", name="1-output").get_by_text("rain and wind").wait_for()
    page.get_by_role("button", name="From Try it").click()
    page.get_by_role("img", name=re.compile("^2 values from")).wait_for()
