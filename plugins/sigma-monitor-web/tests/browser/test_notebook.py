"""A run in a cell of a notebook: the module of the widget on an empty page, with a model that a kernel answers."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from queue import Empty, SimpleQueue
from typing import Any

import sigma_ml as sm
from sigma_monitor_web.notebook import watch

RATE = "trainer.optimiser.learning_rate"
PATIENCE = 600  # times 50 ms
PAGE = "http://notebook.example/"
HTML = """<!doctype html>
<html lang="en"><title>A notebook</title><body style="margin: 16px; background: %s">
<script type="module">
import widget from "./widget.js";
window.keys = [];
addEventListener("keydown", (event) => keys.push(event.key));
const cells = await exchange(-1, null), ends = [];
for (const [i, given] of cells.entries()) {
  const heard = new Set(), el = document.createElement("div");
  const hear = (messages) => { for (const message of messages) for (const one of [...heard]) one(message); };
  const model = {
    get: (name) => given[name],
    send: (message) => exchange(i, message).then(hear),
    on: (name, hear) => heard.add(hear),
    off: (name, hear) => heard.delete(hear),
  };
  el.id = `cell-${i}`;
  document.body.append(el);
  ends.push(await widget.render({ model, el }));
  setInterval(() => exchange(i, "").then(hear), 30);
}
window.end = () => { for (const end of ends) end(); };
</script>"""

NOW = """async () => {
  const { valueNow } = await import("./notebook/values.js"), { curves } = await import("./series.js");
  const address = "trainer.loss", moments = { branch: 0, iteration: [4, 8], epoch: [1, 2], second: [1, 2] };
  const rows = { ...moments, value: [0.5, 0.25], low: [0.5, 0.25], high: [0.5, 0.25] };
  curves.take({ [address]: { next: 2, whole: true, stretches: [rows, { ...rows, branch: 1, value: [0.6, 0.7] }] } });
  const alive = [{ number: 0, from: 0, to: Infinity }];
  return [address, "trainer.epochs"].map((one) => valueNow({ address: one, value: 0.5 }, alive));
}"""


def wait_for(page: Any, done: Callable[[], bool]) -> None:
    """Wait until a function returns true, while the page goes on."""
    for _ in range(PATIENCE):
        if done():
            return
        page.wait_for_timeout(50)
    raise AssertionError


@contextmanager
def shown(
    visit: Callable[..., Any], *widgets: Any, paper: str = "#fff", size: tuple[int, int] = (1280, 1400)
) -> Iterator[Any]:
    """Show widgets on a page, a cell each; yield the window."""
    window, messages = visit(size), [SimpleQueue[Any]() for _ in widgets]
    for widget, queue in zip(widgets, messages, strict=True):
        widget.viewers.send = queue.put

    def exchange(cell: int, message: Any) -> Any:
        if message is None:
            return [{"about": widget.about, "tabs": widget.tabs} for widget in widgets]
        widgets[cell].viewers.take(message)
        found = []
        while True:
            try:
                found.append(messages[cell].get_nowait())
            except Empty:
                return found

    def serve(route: Any) -> None:
        module = route.request.url.endswith("widget.js")
        kind, body = ("text/javascript", widgets[0]._esm) if module else ("text/html", HTML % paper)
        route.fulfill(status=200, content_type=kind, body=str(body))

    window.page.expose_function("exchange", exchange)
    window.page.route(f"{PAGE}**", serve)
    window.page.goto(PAGE)
    yield window
    window.page.evaluate("end()")
    wait_for(window.page, lambda: not any(widget.viewers.count for widget in widgets))  # the views have left
    assert window.complaints == []
    assert {url for url in window.requests if not url.startswith(("blob:", "data:"))} <= {
        PAGE,
        f"{PAGE}widget.js",
        f"{PAGE}favicon.ico",
    }
    for widget in widgets:
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


def figure(value: float) -> str:
    """Return a number as the page writes it, in three digits at least."""
    return f"{value:.{3 - max(0, math.ceil(math.log10(value)))}f}"


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
        for at, rate in ((31, "0.001"), (120, "0.004")):
            drag_to(page, at)
            *_, value = accuracy.values[accuracy.iterations <= at]
            page.get_by_role("row", name="trainer.validation.accuracy").get_by_text(
                f"{value:.3f}", exact=True
            ).first.wait_for()
            assert then(page, RATE) == rate
        page.get_by_role("slider", name="Moment of the run").press("Escape")
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


def test_training_goes_on_from_a_kept_state_and_from_no_moment_between(visit: Any) -> None:
    sigma = trained()
    trainer = sigma.trainer("trainer")
    trainer.fit(epochs=4)
    kept = [state.iteration for state in trainer.view.states()]
    assert 0 in kept
    between = next(at for at in range(59, 0, -1) if at not in kept)
    with shown(visit, watch(trainer)) as window:
        page, ask = window.page, window.page.get_by_role("group", name="Rewind", exact=True)
        slider = page.get_by_role("slider", name="Moment of the run")
        drag_to(page, between)
        ask.get_by_text("where no state is kept").wait_for()
        assert ask.get_by_role("button").all_text_contents() == ["Back to now"]
        slider.press("Enter")
        slider.press("ArrowLeft")  # to the kept state before
        before = max(at for at in kept if at < between)
        ask.get_by_text(f"Rewind to {before},").wait_for()
        assert [branch.number for branch in trainer.view.branches()] == [0]
        slider.press("Enter")
        page.get_by_text("branch 1", exact=True).first.wait_for()
        assert [branch.start for branch in trainer.view.branches() if branch.number] == [before]


def test_a_cell_follows_training_in_another_thread_and_is_as_dark_as_its_notebook(visit: Any) -> None:
    sigma = trained(epochs=100_000, optimiser={"type": "gradient_descent", "learning_rate": 0.01})
    with shown(visit, watch(sigma, ["training.loss"]), paper="#111", size=(800, 900)) as window:
        page = window.page
        page.get_by_role("heading", name="Live values").wait_for()
        handle = sigma.run_async()
        page.get_by_text("Training", exact=True).wait_for()
        page.get_by_role("img", name="training now").first.wait_for()
        assert page.get_by_role("heading", name="Accuracy").count() == 0  # the charts that were asked for
        assert page.evaluate("document.querySelector('#cell-0 > div').dataset.theme") == "dark"
        drag_to(page, int(sigma.trainer("trainer").history.curve("training.loss").iterations[0]))
        row = page.get_by_role("row", name="trainer.training.loss").get_by_role("cell")
        page.get_by_role("button", name="Stop").click()
        handle.result(60)
        page.get_by_text("Stopped", exact=False).first.wait_for()
        first, *_, last = sigma.trainer("trainer").history.curve("training.loss").values
        row.nth(1).get_by_text(figure(last), exact=True).wait_for()
        assert row.first.text_content() == figure(first)


def test_two_cells_show_their_own_runs_and_each_sets_its_own(visit: Any) -> None:
    runs = [trained(), trained(optimiser={"type": "gradient_descent", "learning_rate": 0.25})]
    for run, epochs in zip(runs, (1, 2), strict=True):
        run.trainer("trainer").fit(epochs=epochs)
    with shown(visit, *map(watch, runs), size=(800, 900)) as window:
        cells = [window.page.locator(f"#cell-{at}") for at in range(2)]
        fields = [
            cell.get_by_label("Learning rate", exact=True).and_(cell.locator("input[type=text]")) for cell in cells
        ]
        for field, cell, rate, done in zip(fields, cells, ("0.001", "0.25"), ("15", "30"), strict=True):
            field.wait_for()
            assert field.input_value() == rate
            cell.locator(".stats").get_by_text(done, exact=True).first.wait_for()
        fields[1].fill("0.125")
        fields[1].press("Enter")
        cells[1].get_by_text("applied", exact=False).first.wait_for()
        assert [run.get(RATE) for run in runs] == [0.001, 0.125]
        assert fields[0].input_value() == "0.001"


def test_a_value_is_now_the_newest_point_of_its_curve_on_the_branch_that_counts(training: Any, visit: Any) -> None:
    window = visit()
    window.page.goto(training.link)
    assert window.page.evaluate(NOW) == [0.25, 0.5]
