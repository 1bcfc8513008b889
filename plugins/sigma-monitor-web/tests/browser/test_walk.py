"""What a person does with the dashboard, from the link to the replay of all of it."""

from __future__ import annotations

import json
import math
import re
from typing import Any

import pytest

LOSS = r"{} now ([\d.,]+)(?:·10([⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+))?"
RAISED = str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")


class Desk:
    """The dashboard as its words and roles tell it, and never its style classes."""

    def __init__(self, window: Any) -> None:
        self.page = window.page

    def press(self, name: str) -> None:
        self.page.get_by_role("button", name=name, exact=True).click()

    def view(self, name: str) -> Any:
        self.page.get_by_role("navigation").get_by_role("link", name=name).click()
        return self.page.get_by_role("region", name=name, exact=True).first

    def state(self, word: str) -> None:
        self.page.get_by_role("region", name="Playback").get_by_text(word, exact=True).wait_for()

    def iteration(self) -> int:
        told = self.page.get_by_role("term").filter(has_text="Iteration").locator("xpath=following-sibling::dd")
        return int(told.inner_text().split()[0].replace(",", ""))

    def loss(self, of: str = "training") -> float:
        """Return what the chart tells those who cannot see it."""
        region = self.page.get_by_role("region", name="Loss", exact=True)
        told = region.get_by_role("img", name=re.compile(f"{of} now [0-9]")).get_attribute("aria-label")
        number, power = re.search(LOSS.format(of), told).groups()
        return float(number.replace(",", "")) * 10 ** int((power or "⁰").translate(RAISED))

    def says(self, text: str) -> None:
        """Wait until a chart marks a change: charts tell their marks to those who cannot see them."""
        self.page.get_by_role("region", name="Timeline").get_by_role("img", name=re.compile(text)).wait_for()

    def wait(self, holds: Any, *, patience: float = 120_000) -> None:
        for _ in range(int(patience / 50)):
            if holds():
                return
            self.page.wait_for_timeout(50)
        raise AssertionError("waited too long")


def got(training: Any, address: str) -> Any:
    """Return what ``sigma get`` says in another shell."""
    (value,) = json.loads(training.sigma("get", address, "--json", "--run", str(training.results))).values()
    return value


def exclude_the_worst(desk: Desk, count: int) -> None:
    """Choose the first rows of the list, which is sorted by loss, and leave them out."""
    data = desk.view("Data")
    rows = data.get_by_role("list", name="Rows").get_by_role("button")
    rows.nth(count).wait_for()
    losses = [float(re.search(r"loss ([\d.]+)", row.text_content())[1]) for row in rows.all()[:count]]
    assert losses == sorted(losses, reverse=True)
    for at in range(count):
        rows.nth(at).click()
    data.get_by_text(f"{count} selected", exact=True).wait_for()
    data.get_by_role("button", name="Exclude", exact=True).click()
    data.get_by_text(f"{count} selected", exact=True).wait_for(state="detached")


def draw_a_zero(desk: Desk) -> None:
    """Draw a digit as a hand does, and wait until the network reads it."""
    room = desk.view("Try it")
    box, mouse = room.get_by_role("img", name=re.compile("^Pad")).bounding_box(), desk.page.mouse
    turns = [angle * math.pi / 20 for angle in range(41)]
    way = [
        (
            box["x"] + box["width"] * (0.5 + 0.2 * math.sin(turn)),
            box["y"] + box["height"] * (0.5 - 0.36 * math.cos(turn)),
        )
        for turn in turns
    ]
    mouse.move(*way[0])
    mouse.down()
    for place in way[1:]:
        mouse.move(*place)
    mouse.up()
    room.get_by_role("paragraph").filter(has_text=re.compile(r"^\s*0\s*(quite|fairly) sure")).wait_for()


def test_all_that_a_person_steers_in_the_browser_is_done_again_by_a_replay(training: Any, visit: Any) -> None:
    window = visit()
    window.page.goto(training.link)
    desk = Desk(window)

    first = desk.loss()  # watch it fall
    desk.wait(lambda: desk.loss() < 0.8 * first)

    desk.press("Pause")
    desk.state("Paused")
    stands = desk.iteration()
    desk.press("Iteration")
    desk.wait(lambda: desk.iteration() == stands + 1)
    desk.state("Paused")

    rate = desk.page.get_by_role("textbox", name="Learning rate")
    rate.fill("0.002")
    rate.press("Enter")
    steer = desk.page.get_by_role("region", name="Live values")
    steer.get_by_text(re.compile("applied")).wait_for()
    desk.says("0.002")  # on the chart, too
    assert got(training, "learning_rate") == 0.002

    rate.fill("-1")  # refused with the kernel's reason, and nothing changes
    rate.press("Enter")
    steer.get_by_text(re.compile("refused")).wait_for()
    assert got(training, "learning_rate") == 0.002
    rate.press("Escape")

    desk.press("Save")
    desk.page.get_by_role("region", name="Playback").get_by_text(re.compile("saved @")).wait_for()
    desk.press("Epoch")
    desk.wait(lambda: desk.iteration() > stands + 1)
    desk.state("Paused")
    further = desk.iteration()
    desk.press("Rewind")
    desk.page.get_by_role("group", name="Rewind").get_by_role("button", name="Rewind").click()
    desk.wait(lambda: desk.iteration() < further)
    desk.says("branch 0, left at")

    exclude_the_worst(desk, 10)
    desk.press("Continue")
    desk.wait(lambda: got(training, "data.training.excluded") == 10)
    desk.view("Train")
    accuracy = desk.page.get_by_role("region", name="Accuracy").get_by_role("img", name=re.compile(r"now 9[5-9]"))
    accuracy.wait_for(timeout=120_000)
    desk.wait(lambda: desk.loss() < desk.loss("validation"))  # by now; it was the other way round at first
    desk.press("Pause")
    desk.state("Paused")
    measured = got(training, "validation.loss")
    desk.wait(lambda: desk.loss("validation") == pytest.approx(measured, rel=0.02))
    draw_a_zero(desk)

    journal = desk.view("Journal")
    commands = journal.get_by_role("table").get_by_role("row")
    desk.wait(lambda: commands.count() >= 6)
    assert [
        word for word in ("pause", "step", "set", "save", "rewind", "exclude") if word not in journal.inner_text()
    ] == []

    went = commands.filter(has=desk.page.get_by_role("cell", name="rewind", exact=True))  # not what it then saved
    back = went.inner_text()  # where it acted: the iteration that it went back to
    assert re.search(rf"from {further:,} to (?P<to>[\d,]+)\b", back), back
    assert re.match(r"\S.*\t(?P<at>[\d,]+)\t1\t", back, re.DOTALL)["at"] in back.partition(" to ")[2]

    desk.press("Stop")
    desk.state("Stopped")
    assert window.complaints == []
    window.end()  # the run's process stays while somebody looks at it
    training.process.wait(60)
    assert "replay is identical" in training.sigma("replay", "--check", str(training.results))
