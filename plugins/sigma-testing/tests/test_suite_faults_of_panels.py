"""The suite of panels catches what a dashboard would refuse."""

from __future__ import annotations

import pytest
from attrs import evolve

from sigma_kernel import Panel
from sigma_testing import PanelSuite

GOOD = Panel("Loss", "// What it draws.\nexport default ({ html }) => html`<p>1</p>`;\n")
FAULTS = {
    "title": Panel("<b>Loss</b>", GOOD.script),
    "long": evolve(GOOD, title="x" * 41),
    "empty": evolve(GOOD, title=""),
    "view": evolve(GOOD, view="My View"),
    "no export": evolve(GOOD, script="const panel = 1;"),
    "import": evolve(GOOD, script='import { h } from "preact";\n' + GOOD.script),
    "dynamic": evolve(GOOD, script=GOOD.script + "import('./more.js');"),
    "large": evolve(GOOD, script=GOOD.script + "/" * 2**20),
    "eval": evolve(GOOD, script=GOOD.script + "eval('1');"),
    "url": evolve(GOOD, script=GOOD.script + "fetch('https://x');"),
    "style": evolve(GOOD, script=GOOD.script + "node.style = 'color: red';"),
    "timer": evolve(GOOD, script=GOOD.script + "setInterval(draw, 10);"),
    "html": evolve(GOOD, script=GOOD.script + "node.innerHTML = text;"),
}


def failures(panel: Panel) -> list[str]:
    """Return the names of the tests that a panel fails."""

    class Suite(PanelSuite):
        def make(self) -> Panel:
            return panel

    found = []
    for name in (name for name in dir(Suite) if name.startswith("test_")):
        try:
            getattr(Suite(), name)()
        except AssertionError:
            found.append(name)
    return found


def test_a_good_panel_passes() -> None:
    assert failures(GOOD) == []


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_in_a_panel_is_caught_by_one_test(fault: str) -> None:
    assert len(failures(FAULTS[fault])) == 1
