"""Draw the pictures of the dashboard: ``python -m figures.dashboard`` in the folder ``docs``, for a minute.

A run of the digits is steered as a person would, then every view is photographed in both themes, wide and on a phone.
"""

from __future__ import annotations

import io
import re
import sys
import tempfile
from pathlib import Path

from PIL import Image

from figures import FOLDER
from figures.browser import ENDLESS, PATIENCE, PHONE, WIDE, Run, Visit, browser, run

PICTURES = FOLDER / "dashboard"
SIZES = {"wide": WIDE, "phone": PHONE}
THEMES = ("light", "dark")
COLOURS = 256  # of a picture: small files, and no more are to be seen
RATES = (0.00002, 0.0005, 0.0001)  # learning rates
SHOWN = 1.5  # seconds that a view has to show what it can
FOUND = re.compile("Nothing odd|Note|Warning|Error")  # by the examiner


def steer(begun: Run, window: Visit) -> None:
    """Do what leaves marks: raise the learning rate, save, go back, raise it less; then pause."""
    page, which = window.page, ("--run", str(begun.results))
    page.goto(begun.link)
    page.get_by_text("connected", exact=True).wait_for()
    for words in (
        ["set", "learning_rate", str(RATES[1])],
        ["save"],
        ["pause"],
    ):
        page.wait_for_timeout(1500)
        begun.sigma(*words, *which)
    page.get_by_role("button", name="Rewind", exact=True).click()
    page.get_by_role("group", name="Rewind").get_by_role("button", name="Rewind").click()
    page.get_by_role("region", name="Timeline").get_by_role("img", name=re.compile("branch 1 from")).wait_for()
    begun.sigma("set", "learning_rate", str(RATES[2]), *which)
    begun.sigma("go", *which)
    page.wait_for_timeout(3000)
    begun.sigma("pause", *which)


def views(window: Visit) -> list[str]:
    """Return the views in the order of the header."""
    links = window.page.get_by_role("navigation", name="Views").get_by_role("link")
    links.first.wait_for()
    return [(link.get_attribute("href") or "")[1:] for link in links.all()]


def open_profile(window: Visit) -> None:
    """Open the profile of the data, and wait for it."""
    window.page.evaluate("location.hash = 'data'")
    window.page.get_by_role("button", name="Profile").click()
    window.page.get_by_role("region", name="Findings").get_by_text(FOUND).wait_for(timeout=PATIENCE * 1000)


def photograph(window: Visit, view: str = "") -> bytes:
    """Return a view, or the one that is open, as a picture."""
    if view:
        window.page.evaluate("view => { location.hash = view; }", view)
    window.page.wait_for_timeout(SHOWN * 1000)
    made = Image.open(io.BytesIO(window.page.screenshot(animations="disabled")))
    kept = io.BytesIO()
    made.convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE).save(kept, "PNG", optimize=True)
    return kept.getvalue()


def main(folder: Path = PICTURES) -> None:
    """Draw every view."""
    folder.mkdir(parents=True, exist_ok=True)
    slow = ("--set", f"trainer.optimiser.learning_rate={RATES[0]}")
    with (
        tempfile.TemporaryDirectory() as place,
        run(Path(place), "digits", *ENDLESS, *slow) as begun,
        browser() as found,
    ):
        first = Visit.begin(found)
        steer(begun, first)
        for theme in THEMES:
            for name, size in SIZES.items():
                window = Visit.begin(found, size, theme)
                window.page.goto(begun.link)
                for view in views(window):
                    (folder / f"{view}-{theme}-{name}.png").write_bytes(photograph(window, view))
                open_profile(window)
                (folder / f"profile-{theme}-{name}.png").write_bytes(photograph(window))
                window.end()
        first.end()


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
