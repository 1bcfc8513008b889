"""The suite of panels catches what a dashboard would refuse."""

from __future__ import annotations

import shutil

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
    "style": evolve(GOOD, script=GOOD.script + "const node = {}; node.style = 'color: red';"),
    "timer": evolve(GOOD, script=GOOD.script + "setInterval(() => 0, 10);"),
    "html": evolve(GOOD, script=GOOD.script + "const node = {}; node.innerHTML = 1;"),
}


needs_node = pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed, which runs panels")


def suite(panel: Panel) -> PanelSuite:
    """Return the suite of a panel."""

    class Suite(PanelSuite):
        def make(self) -> Panel:
            return panel

    return Suite()


def said(script: str) -> str:
    """Return the failure of a script that is run."""
    with pytest.raises(AssertionError) as caught:
        suite(evolve(GOOD, script=script)).test_its_script_draws_and_updates_without_an_error()
    return str(caught.value)


def failures(panel: Panel) -> list[str]:
    """Return the names of the tests that a panel fails."""
    own, found = suite(panel), []
    for name in (name for name in dir(own) if name.startswith("test_")):
        try:
            getattr(own, name)()
        except AssertionError:
            found.append(name)
        except pytest.skip.Exception:  # where node is not installed
            continue
    return found


def test_a_good_panel_passes() -> None:
    assert failures(GOOD) == []


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_in_a_panel_is_caught_by_one_test(fault: str) -> None:
    assert len(failures(FAULTS[fault])) == 1


RUNS = """\
export default function panel({{ html, hooks, ask, follow, trainer }}) {{
  const [last, show] = hooks.useState(null), [pixels] = [hooks.useRef(null)];
  {drawn}
  hooks.useEffect(() => {{
    pixels.current.getContext("2d").fillRect(0, 0, 1, 1);
    ask("layers", {{ trainer }}).then((answer) => answer.nowhere.at(0));
    ask("get", {{ pattern: "**" }}).then((found) => {{ {read} }});
    const end = follow([trainer], (curves) => {{
      const branch = Object.values(curves[trainer] ?? {{}}).at(-1);
      {update}
      show(branch?.values.at(-1) ?? null);
    }});
    return () => {{ {closed} end(); }};
  }}, [trainer]);
  return html`<canvas ref=${{pixels}} title=${{last?.toPrecision(2)}} />`;
}}
"""
ERRORS = {
    "drawn": ("last.toPrecision(2);", "when it is drawn: TypeError: Cannot read properties of null"),
    "update": ("if (branch) branch.losses.at(-1);", "at an update: TypeError: Cannot read properties of undefined"),
    "read": ("Object.values(found)[0].toPrecision(4);", "at an update: TypeError: Cannot read properties of undefined"),
    "closed": ("missing();", "when it is closed: ReferenceError: missing is not defined"),
}


@needs_node
def test_a_script_that_throws_is_found_wherever_it_does() -> None:
    nothing = dict.fromkeys(ERRORS, "")
    assert failures(evolve(GOOD, script=RUNS.format(**nothing))) == []
    for where, (code, words) in ERRORS.items():
        assert words in said(RUNS.format(**{**nothing, where: code}))
    drawn_later = RUNS.format(**nothing | {"drawn": "if (last > 1) null.x;"})
    assert "at an update: TypeError: Cannot read properties of null" in said(drawn_later)
    assert "at an update: Error: late" in said(
        RUNS.format(**nothing | {"update": 'if (branch) Promise.reject(new Error("late"));'})
    )
    endless = RUNS.format(**nothing).replace("end();", "")
    assert "when it is closed: Error: it still follows curves. Return the function" in said(endless)
    assert "when it is imported: SyntaxError" in said("export default function () { return }}")


def test_without_node_the_script_is_not_run_and_the_suite_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.raises(pytest.skip.Exception, match="node is not installed, so that the script .* was not run"):
        suite(GOOD).test_its_script_draws_and_updates_without_an_error()
