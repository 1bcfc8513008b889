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


def test_a_layer_is_seen_at_work_on_a_row_and_on_what_was_drawn(page: Any) -> None:
    open_view(page, "Network")
    layer = page.get_by_role("region", name="2-dense")
    layer.get_by_role("img", name=re.compile("^128 values from .*, the greatest at")).wait_for()
    layer.get_by_role("img", name="The sample").wait_for()
    layer.get_by_text("label 6").wait_for()
    layer.get_by_role("button", name="The next row").click()
    layer.get_by_text("label 0").wait_for()
    assert layer.get_by_role("button", name="From Try it").is_disabled()
    page.get_by_role("button", name=re.compile("^0-input")).click()
    page.get_by_role("img", name=re.compile("^A picture of values from 0 to")).wait_for()
    page.get_by_role("region", name="0-input").get_by_text("label 0").wait_for()
    open_view(page, "Try it")
    draw(page)
    page.get_by_text(re.compile(r"(sure|guess), \d+ %")).wait_for()
    open_view(page, "Network")
    page.get_by_role("button", name="From Try it").click()
    page.get_by_role("button", name=re.compile("^3-output")).click()
    output = page.get_by_role("region", name="3-output")
    output.get_by_role("img", name=re.compile(r"^10 values from .*, the greatest at \d$")).wait_for()
    assert not output.get_by_role("button", name="The next row").count()
    page.get_by_role("button", name=re.compile("^4-softmax")).click()
    page.get_by_role("region", name="4-softmax").get_by_text("This layer has no parameters").wait_for()
    assert not page.get_by_text("Activations").count(), "a cost judges, and makes nothing of a sample"


def worst(page: Any) -> Any:
    open_view(page, "Data")
    rows = page.get_by_role("region", name=re.compile("^Rows"))
    rows.get_by_role("button", name=re.compile(r"row \d+, label")).first.wait_for()
    return rows


def number(button: Any) -> str:
    """Return the number of a row by what its button says."""
    return str(re.search(r"row (\d+),", button.inner_text())[1])  # type: ignore[index]


def hatched(button: Any) -> bool:
    return "repeating-linear-gradient" in button.evaluate("one => getComputedStyle(one).backgroundImage")


def test_rows_that_are_excluded_are_hatched_until_they_are_taken_back(page: Any) -> None:
    rows = worst(page)
    buttons = rows.get_by_role("button", name=re.compile(r"row \d+, label"))
    names = [number(buttons.nth(place)) for place in (0, 2)]
    assert not hatched(buttons.first)
    buttons.first.click()
    buttons.nth(2).click()
    rows.get_by_text("2 selected").wait_for()
    rows.get_by_role("button", name="Exclude", exact=True).click()
    rows.get_by_text(re.compile("applied @")).wait_for()
    for name in names:
        out = rows.get_by_role("button", name=re.compile(f"row {name}, .*excluded"))
        out.wait_for()
        assert hatched(out)
    assert rows.locator(".out").count() == 2
    rows.get_by_label("Order").select_option("excluded")
    out = rows.get_by_role("button", name=re.compile(r"row \d+, .*excluded"))
    page.wait_for_function("() => document.querySelectorAll('.tile.out').length === 2")
    out.first.click()
    out.first.press("ArrowRight")
    page.keyboard.press("Enter")
    rows.get_by_role("button", name="Include").click()
    rows.get_by_text("No row of this split is excluded.").wait_for()
    rows.get_by_label("Order").select_option("worst")
    rows.get_by_role("button", name=re.compile(f"row {names[0]}, label")).wait_for()
    assert not rows.locator(".out").count()


def test_a_row_gets_another_label_and_its_own_again(page: Any) -> None:
    rows = worst(page)
    first = rows.get_by_role("button", name=re.compile(r"row \d+, label")).first
    name, label = number(first), str(re.search(r"label (\d)", first.inner_text())[1])  # type: ignore[index]
    other = str((int(label) + 1) % 10)
    first.click()
    rows.get_by_label("Relabel as").select_option(label=other)
    rows.get_by_role("button", name="Relabel", exact=True).click()
    rows.get_by_text(re.compile("applied @")).wait_for()
    rows.get_by_role("button", name=re.compile(f"row {name}, label {other}.*relabelled")).click()
    rows.get_by_role("button", name="Own label").click()
    again = rows.get_by_role("button", name=re.compile(f"row {name}, label {label}"))
    again.wait_for()
    assert "relabelled" not in again.inner_text()


def test_a_cell_of_the_confusion_matrix_opens_its_rows(page: Any) -> None:
    rows = worst(page)
    cell = page.get_by_role("region", name="Confusion").get_by_role("button", name=re.compile("^0 predicted as 0"))
    count = int(str(re.search(r": (\d+) row", cell.get_attribute("aria-label"))[1]))  # type: ignore[index]
    cell.click()
    found = rows.get_by_role("button", name=re.compile("row .* label 0, predicted 0"))
    found.first.wait_for()
    assert rows.get_by_label("Split").input_value() == "validation"
    assert cell.get_attribute("aria-pressed") == "true"
    page.wait_for_function(
        "n => Math.abs(document.querySelectorAll('.tile').length - n) < 6", arg=count
    )  # training goes on
    rows.get_by_role("button", name=re.compile("^predicted 0")).click()
    page.wait_for_function("() => document.querySelectorAll('.tile').length === 60")


def draw(page: Any) -> None:
    """Draw a line from top to bottom."""
    box = page.get_by_role("img", name=re.compile("Pad to draw")).bounding_box()
    x, top = box["x"] + box["width"] / 2, box["y"] + box["height"] * 0.2
    page.mouse.move(x, top)
    page.mouse.down()
    page.mouse.move(x, top + box["height"] * 0.6, steps=12)
    page.mouse.up()


def test_what_is_drawn_is_answered_and_so_is_a_row_of_the_data(page: Any) -> None:
    open_view(page, "Try it")
    page.get_by_text("nothing yet").wait_for()
    draw(page)
    page.get_by_role("img", name=re.compile("what it sees")).wait_for()
    said = page.get_by_text(re.compile(r"(sure|guess), \d+ %"))
    said.wait_for()
    page.get_by_role("button", name="Clear").click()
    page.get_by_text("nothing yet").wait_for()
    page.get_by_role("button", name="The next row").click()
    page.get_by_text("label 6").wait_for()
    said.wait_for()


def test_pictures_of_what_each_output_looks_for_come_as_a_grid(page: Any) -> None:
    open_view(page, "Try it")
    page.get_by_role("button", name="Attach it").click()
    pictures = page.get_by_role("region", name="Inputs that maximise each output").get_by_role("img")
    pictures.nth(9).wait_for(timeout=60_000)
    first = pictures.first.get_attribute("src")
    page.wait_for_function("old => document.querySelector('.gallery img').src !== old", arg=first, timeout=60_000)
