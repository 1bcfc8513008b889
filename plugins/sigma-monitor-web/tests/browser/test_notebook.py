"""A run in a cell of a notebook: the module of the widget on an empty page, with a model that a kernel answers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from queue import Empty, SimpleQueue
from typing import Any

import sigma_ml as sm
from sigma_monitor_web.notebook import watch

RATE = "trainer.optimiser.learning_rate"
PAGE = "http://notebook.example/"
HTML = """<!doctype html>
<html lang="en"><title>A notebook</title><body style="margin: 16px; background: %s"><div id="cell"></div>
<script type="module">
import widget from "./widget.js";
const given = await exchange(null), heard = new Set();
window.keys = [];
addEventListener("keydown", (event) => keys.push(event.key));
const model = {
  get: (name) => given[name],
  send: (message) => exchange(message).then(hear),
  on: (name, hear) => heard.add(hear),
  off: (name, hear) => heard.delete(hear),
};
const hear = (messages) => { for (const message of messages) for (const one of [...heard]) one(message); };
window.end = await widget.render({ model, el: document.querySelector("#cell") });
setInterval(() => exchange("").then(hear), 30);
</script>"""


@contextmanager
def shown(
    visit: Callable[..., Any], widget: Any, paper: str = "#fff", size: tuple[int, int] = (1280, 1400)
) -> Iterator[Any]:
    """Show a widget on a page of its own; yield the window."""
    window, messages = visit(size), SimpleQueue[Any]()
    widget.viewers.send = messages.put

    def exchange(message: Any) -> Any:
        if message is None:
            return {"about": widget.about, "tabs": widget.tabs}
        widget.viewers.take(message)
        found = []
        while True:
            try:
                found.append(messages.get_nowait())
            except Empty:
                return found

    def serve(route: Any) -> None:
        module = route.request.url.endswith("widget.js")
        kind, body = ("text/javascript", widget._esm) if module else ("text/html", HTML % paper)
        route.fulfill(status=200, content_type=kind, body=str(body))

    window.page.expose_function("exchange", exchange)
    window.page.route(f"{PAGE}**", serve)
    window.page.goto(PAGE)
    yield window
    window.page.evaluate("end()")
    assert window.complaints == []
    assert {url for url in window.requests if not url.startswith(("blob:", "data:"))} <= {
        PAGE,
        f"{PAGE}widget.js",
        f"{PAGE}favicon.ico",
    }
    widget.close()


def trained(**settings: Any) -> Any:
    """Return an environment with a trainer of the digits."""
    sigma = sm.Environment("digits", seed=0)
    sigma.create_trainer(
        data="digits",
        network="input(8, 8) + flatten() + dense(16, activation='relu') + output(10) + softmax_cross_entropy()",
        **{
            "optimiser": "adam",
            "epochs": 20,
            "hooks": {"score": {"type": "accuracy", "on": "validation", "every": "1 epoch"}},
            **settings,
        },
    )
    return sigma


def then(page: Any, address: str) -> str:
    """Return the value of an address at the moment that is picked."""
    row = page.get_by_role("row").filter(has=page.get_by_role("rowheader", name=address, exact=True))
    return str(row.get_by_role("cell").first.text_content())


def drag_to(page: Any, iteration: int) -> None:
    page.get_by_role("slider", name="Moment of the run").fill(str(iteration))
    page.get_by_text(f"iteration {iteration}", exact=False).first.wait_for()


def test_a_cell_draws_curves_plays_the_run_and_sets_a_value_within_its_bounds(visit: Any) -> None:
    sigma = trained()
    trainer = sigma.trainer("trainer")
    trainer.fit(epochs=5)
    sigma.set(RATE, 0.004)
    trainer.fit(epochs=5)
    accuracy = trainer.history.curve("validation.accuracy")
    with shown(visit, watch(trainer)) as window:
        page = window.page
        page.get_by_role("img", name="Accuracy: validation").wait_for()
        for at, rate in ((30, "0.001"), (120, "0.004")):
            drag_to(page, at)
            (value,) = accuracy.values[accuracy.iterations == at]
            page.get_by_role("row", name="trainer.validation.accuracy").get_by_text(
                f"{value:.3f}", exact=True
            ).first.wait_for()
            assert then(page, RATE) == rate
        page.get_by_role("button", name="Back to now").click()
        page.get_by_label("Kept states a second").select_option("10")
        page.get_by_role("button", name="Play the history").click()
        page.get_by_role("heading", name="Values at the moment").wait_for()
        page.get_by_role("heading", name="Values at the moment").wait_for(state="detached")  # it ends at now by itself
        page.get_by_role("button", name="Play the history").wait_for()
        field = page.get_by_label("Learning rate", exact=True).and_(page.locator("input[type=text]"))
        field.fill("-1")
        field.press("Enter")
        page.get_by_text("must be", exact=False).first.wait_for()
        assert sigma.get(RATE) == 0.004
        field.fill("0.02")
        field.press("Enter")
        page.get_by_text("applied @ 150").or_(page.get_by_text("applied", exact=True)).first.wait_for()
        assert sigma.get(RATE) == 0.02
        assert page.evaluate("keys") == []  # those of the notebook are not pressed
        page.get_by_role("button", name="Display").click()
        page.get_by_label("Tight scales").click()
        page.get_by_role("group", name="Display").wait_for()  # the menu stays open
        assert page.title() == "A notebook"
        assert page.evaluate("location.hash") == ""


def test_a_cell_follows_training_in_another_thread_and_is_as_dark_as_its_notebook(visit: Any) -> None:
    sigma = trained(epochs=100_000)
    with shown(visit, watch(sigma, ["training.loss"]), "#111", (800, 900)) as window:
        page = window.page
        page.get_by_role("heading", name="Live values").wait_for()
        handle = sigma.run_async()
        page.get_by_text("Training", exact=True).wait_for()
        page.get_by_role("img", name="training now").first.wait_for()
        assert page.get_by_role("heading", name="Accuracy").count() == 0  # the charts that were asked for
        assert page.evaluate("document.querySelector('#cell > div').dataset.theme") == "dark"
        page.get_by_role("button", name="Stop").click()
        handle.result(60)
        page.get_by_text("Stopped", exact=False).first.wait_for()
