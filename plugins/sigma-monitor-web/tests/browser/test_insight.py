"""What a person sees and mends in the views of the network, of the data and of a sample by hand."""

from __future__ import annotations

import re
from typing import Any

import pytest


@pytest.fixture
def page(training: Any, visit: Any) -> Any:
    """Return the dashboard of a run that trains."""
    window = visit()
    window.page.goto(training.link)
    window.page.get_by_text("connected", exact=True).wait_for()
    yield window.page
    assert window.complaints == []


def open_view(page: Any, name: str) -> None:
    page.get_by_role("navigation").get_by_role("link", name=name).click()


def test_a_layer_shows_its_values_and_its_filters(page: Any) -> None:
    open_view(page, "Network")
    layer = page.get_by_role("region", name="2-dense")
    layer.get_by_role("img", name=re.compile("Values at epoch")).wait_for()
    layer.get_by_role("img", name=re.compile("The weights of 64 units")).wait_for()
    page.get_by_role("button", name=re.compile("^1-flatten")).click()
    page.get_by_text("This layer has no parameters").wait_for()


def test_a_row_that_is_excluded_says_so(page: Any) -> None:
    open_view(page, "Data")
    rows = page.get_by_role("region", name="Rows, worst first")
    rows.get_by_role("button", name=re.compile(r"row \d+, label")).first.click()
    rows.get_by_text("1 chosen").wait_for()
    rows.get_by_role("button", name="Exclude", exact=True).click()
    rows.get_by_text(re.compile("applied @")).wait_for()
    rows.get_by_label("Order").select_option("excluded")
    page.get_by_role("button", name=re.compile("row .* excluded")).wait_for()


def test_a_cell_of_the_confusion_matrix_opens_its_rows(page: Any) -> None:
    open_view(page, "Data")
    page.get_by_role("region", name="Confusion").get_by_role("button", name=re.compile("^0 read as 0")).click()
    rows = page.get_by_role("region", name="Rows, worst first")
    rows.get_by_role("button", name=re.compile("row .* label 0, read as 0")).first.wait_for()
    assert rows.get_by_label("Split").input_value() == "validation"


def test_what_is_drawn_is_answered_and_so_is_a_row_of_the_data(page: Any) -> None:
    open_view(page, "Try it")
    page.get_by_text("nothing yet").wait_for()
    box = page.get_by_role("img", name=re.compile("Pad to draw")).bounding_box()
    x, top = box["x"] + box["width"] / 2, box["y"] + box["height"] * 0.2
    page.mouse.move(x, top)
    page.mouse.down()
    page.mouse.move(x, top + box["height"] * 0.6, steps=12)
    page.mouse.up()
    page.get_by_role("img", name=re.compile("what it sees")).wait_for()
    said = page.get_by_text(re.compile(r"(sure|guess), \d+ %"))
    said.wait_for()
    page.get_by_role("button", name="Clear").click()
    page.get_by_text("nothing yet").wait_for()
    page.get_by_role("button", name="The next row").click()
    page.get_by_text("label 6").wait_for()
    said.wait_for()
