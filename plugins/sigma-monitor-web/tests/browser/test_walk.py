"""What a person does with the dashboard, from the link to the replay of all of it."""

from __future__ import annotations

import json
import re
from typing import Any

LOSS = re.compile(r"training now ([\d.,]+)(?:·10([⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+))?")
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

    def loss(self) -> float:
        chart = self.page.get_by_role("region", name="Loss", exact=True).get_by_role("img")
        self.page.wait_for_function("chart => /training now [0-9]/.test(chart.ariaLabel)", arg=chart.element_handle())
        number, power = LOSS.search(chart.get_attribute("aria-label")).groups()
        return float(number.replace(",", "")) * 10 ** int((power or "⁰").translate(RAISED))

    def says(self, text: str) -> None:
        """Wait until a chart marks a change: charts tell their marks to those who cannot see them."""
        self.page.get_by_role("region", name="Timeline").get_by_role("img", name=re.compile(text)).wait_for()

    def wait(self, holds: Any, *, patience: float = 30_000) -> None:
        for _ in range(int(patience / 50)):
            if holds():
                return
            self.page.wait_for_timeout(50)
        raise AssertionError("waited too long")


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
    asked = json.loads(training.sigma("get", "learning_rate", "--json", "--run", str(training.results)))
    assert asked == {"trainer.optimiser.learning_rate": 0.002}

    rate.fill("-1")  # refused with the kernel's reason, and nothing changes
    rate.press("Enter")
    steer.get_by_text(re.compile("refused")).wait_for()
    assert "0.002" in training.sigma("get", "learning_rate", "--run", str(training.results))
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

    journal = desk.view("Journal")
    commands = journal.get_by_role("table").get_by_role("row")
    desk.wait(lambda: commands.count() >= 6)
    assert [word for word in ("pause", "step", "set", "save", "rewind") if word not in journal.inner_text()] == []

    desk.press("Stop")
    desk.state("Stopped")
    assert window.complaints == []
    window.end()  # the run's process stays while somebody looks at it
    training.process.wait(60)
    assert "replay is identical" in training.sigma("replay", "--check", str(training.results))
