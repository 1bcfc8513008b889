"""The charts of the machine: folded at first, on the axis of the others, with their units and shares."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

from sigma_kernel.contracts import AddressEntry
from sigma_testing import FakeView

from .serving import serve_view

POINTS = 50
MEASURED = {
    "training.loss": 2 / np.arange(1, POINTS + 1),
    "system.speed.iterations": np.full(POINTS, 900.0),
    "system.phases.burst": np.full(POINTS, 0.8),
    "system.phases.data": np.full(POINTS, 0.125),
    "system.memory.run": np.full(POINTS, 0.5),
    "system.memory.machine": np.full(POINTS, 3.5),
    "system.gpu0.busy": np.full(POINTS, 0.75),
}
SURFACE = """async () => (await import("./charts/palette.js")).palette().surface"""


@contextmanager
def shown(visit: Any, *trainers: str) -> Iterator[Any]:
    """Return the view Train of a run whose machine was measured by each of its trainers."""
    measured = {f"{trainer}.{name}": values for trainer in trainers for name, values in MEASURED.items()}
    entries = {name: AddressEntry(name, "number", float(values[-1])) for name, values in measured.items()}
    values = {name: float(values[-1]) for name, values in measured.items()}
    moment = {"iteration": POINTS, "epoch": 5, "second": POINTS / 10}
    moments = {f"{trainer}.{name}": value for trainer in trainers for name, value in moment.items()}
    view = FakeView(measured=measured, entries_of=entries, values={**values, **moments}, names=[*trainers])
    with serve_view(view) as link:
        window = visit()
        window.page.goto(link)
        yield window.page
        assert window.complaints == []


@pytest.fixture
def page(visit: Any) -> Iterator[Any]:
    """Return the view Train of a run of one trainer whose machine was measured."""
    with shown(visit, "trainer") as found:
        yield found


def test_the_machine_is_a_section_that_unfolds_on_the_axis_of_the_curves(page: Any) -> None:
    section = page.get_by_role("button", name="System", exact=True)
    section.wait_for()
    assert section.get_attribute("aria-expanded") == "false"
    assert not page.locator("[data-plot^='system.']").count()
    section.click()
    speed = page.get_by_role("region", name="Iterations per second")
    speed.get_by_role("img", name=re.compile("now 900, 50 points")).wait_for()
    phases = page.get_by_role("region", name="Time by phase")
    phases.get_by_role("img", name=re.compile(r"burst now 80\.00.*data now 12\.50")).wait_for()
    page.get_by_role("region", name="Memory, GiB").get_by_role("img", name=re.compile("run now 0.5")).wait_for()
    page.get_by_role("region", name="GPU at work").get_by_role("img", name=re.compile(r"now 75\.00")).wait_for()
    assert not page.get_by_role("region", name="Threads").count(), "what was not measured has no chart"
    lefts = page.evaluate("""() => [...document.querySelectorAll('[data-plot]')].map((one) => {
        const box = one.getBoundingClientRect();
        return `${box.left} ${box.width}`;
    })""")
    assert len(set(lefts)) == 1, "all plots have one axis"
    section.click()
    page.locator("[data-plot^='system.']").first.wait_for(state="detached")


def test_a_chart_of_the_machine_can_be_changed_and_stays_in_its_section(page: Any) -> None:
    page.get_by_role("button", name="System", exact=True).click()
    memory = page.get_by_role("region", name="Memory, GiB")
    memory.get_by_role("button", name=re.compile("^machine")).click()
    memory.get_by_role("button", name=re.compile("^machine"), pressed=False).wait_for()
    memory.get_by_role("button", name="Options of Memory, GiB").click()
    menu = memory.get_by_role("group", name="Options of Memory, GiB")
    assert not menu.get_by_role("button", name="Remove").count()
    assert menu.get_by_role("button", name="CSV").count() == 1


def test_a_change_of_a_chart_of_the_machine_is_of_its_trainer(visit: Any) -> None:
    with shown(visit, "one", "two") as page:
        page.get_by_role("button", name="System", exact=True).click()
        machine = page.get_by_role("region", name="Memory, GiB").get_by_role("button", name=re.compile("^machine"))
        machine.click()
        for now, then, pressed in (("one", "two", "true"), ("two", "one", "false")):
            page.get_by_role("button", name=now, exact=True).click()
            page.get_by_role("group", name="Another trainer").get_by_role("button", name=then).click()
            page.get_by_role("button", name=then, exact=True).wait_for()
            machine.wait_for()
            assert machine.get_attribute("aria-pressed") == pressed


def test_colours_follow_the_theme_in_every_view(page: Any) -> None:
    page.get_by_role("link", name="Journal", exact=True).click()
    light = page.evaluate(SURFACE)
    for _ in ("light", "dark"):
        page.keyboard.press("t")
    dark = page.evaluate(SURFACE)
    assert dark != light
    page.keyboard.press("t")  # as the system
    assert page.evaluate(SURFACE) == light
    page.emulate_media(color_scheme="dark")
    page.wait_for_function(f"dark => ({SURFACE})().then((now) => now === dark)", arg=dark)
