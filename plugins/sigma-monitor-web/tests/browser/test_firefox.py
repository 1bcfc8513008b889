"""The dashboard in Firefox: each view opens, the charts are drawn, a value is set, and the console is silent.

Everything else is tested in Chromium alone.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from importlib import import_module
from typing import Any

import pytest

RATE = "trainer.optimiser.learning_rate"
VIEWS = """return [...document.querySelectorAll("header nav a")].map((link) => link.getAttribute("href"));"""
SHOWN = """const view = document.querySelector(`#v-${location.hash.slice(1).split("?")[0]}`);
    return view !== null && view.innerText.trim().length > 40 && !view.querySelector(".failed");"""
COLOURS = """const canvas = document.querySelector(".cells .plot canvas"), { width, height } = canvas;
    const data = new Uint32Array(canvas.getContext("2d").getImageData(0, 0, width, height).data.buffer);
    return data.reduce((sum, pixel) => sum + (pixel !== data[0]), 0) / data.length;"""
VALUE = f"""const {{ store }} = await import("./store.js");
    return store.get().entries.find(({{ address }}) => address === "{RATE}")?.value;"""


@pytest.fixture(scope="module")
def window(browsers: Any, training: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Return a window of Firefox with the dashboard of a run that trains."""
    driver = import_module("figures.firefox")
    try:
        driver.FIREFOX.executable()
    except browsers.NoBrowserError as error:
        if os.environ.get("CI"):
            pytest.fail(str(error), pytrace=False)
        pytest.skip(str(error))
    with driver.firefox(tmp_path_factory.mktemp("firefox")) as found:
        found.go_to(training.link)
        found.wait_for("""return document.body.innerText.includes("connected");""")
        yield found


def test_every_view_opens_and_the_console_is_silent(window: Any) -> None:
    views = window.evaluate(VIEWS)
    assert {"#train", "#network", "#data", "#try", "#journal"} <= {*views}
    for view in views:
        window.evaluate(f"location.hash = '{view}';")
        window.wait_for(SHOWN)
    assert window.complaints == []
    assert "token" not in window.evaluate("return location.href;")


def test_the_charts_are_drawn_and_grow(window: Any) -> None:
    window.evaluate("location.hash = '#train';")
    said = (
        """return document.querySelector(".cells canvas")?.getAttribute("aria-label")?.match(/[\\d,]+ points/)?.[0];"""
    )
    before = window.wait_for(said)
    window.wait_for(f"const now = (() => {{ {said} }})(); return now && now !== '{before}';")
    window.wait_for(
        f"const part = (() => {{ {COLOURS} }})(); return part > 0.001 && part < 0.9;"
    )  # drawn after its label
    assert window.complaints == []


def test_a_value_is_set_by_the_keyboard(window: Any, training: Any) -> None:
    window.evaluate("location.hash = '#train'; document.activeElement?.blur();")
    window.wait_for("return document.querySelector('.live, .knobs, #k-trainer-optimiser-learning_rate') !== null;")
    before = window.evaluate(VALUE)
    window.press("l")
    window.wait_for("return document.activeElement?.tagName === 'INPUT';")
    window.evaluate("document.activeElement.select();")
    window.press(*"0.00007", "\ue007")
    window.wait_for(f"return (await (async () => {{ {VALUE} }})()) === 0.00007;")
    assert before != 0.00007
    assert '"value": 7e-05' in (training.results / "journal.jsonl").read_text()
    assert window.complaints == []


def test_what_the_console_says_is_heard(window: Any) -> None:
    window.evaluate("console.error('first'); setTimeout(() => { throw new Error('second'); });")
    window.wait_for("return new Promise((done) => setTimeout(() => done(true), 200));")
    assert [text.split(": ")[-1] for text in window.complaints] == ["first", "second"]
    with pytest.raises(RuntimeError, match="third"):
        window.evaluate("throw new Error('third');")
