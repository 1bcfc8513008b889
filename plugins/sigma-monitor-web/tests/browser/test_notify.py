"""The browser tells of an end, a failure and a plateau, once a person has asked it to, and never by itself."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

RECORD = """(answer) => {
    window.shown = [];
    window.Notification = class {
        static permission = "default";
        static asked = 0;
        static async requestPermission() { this.asked += 1; return (this.permission = answer); }
        constructor(title, { body }) { window.shown.push([title, body]); }
    };
}"""
UNABLE = """() => {
    window.Notification = class extends window.Notification {
        constructor(title, more) { super(title, more); throw new TypeError("Illegal constructor"); }
    };
}"""
FAIL = """async () => {
    const { store } = await import("./store.js");
    store.set(({ status }) => ({ status: { ...status, status: "failed" } }));
}"""
NEWS = """async ([before, now, hooks]) => {
    const { news } = await import("./notify.js");
    const whole = { journal: [], hello: {}, status: { status: "running" } };
    return news({ ...whole, ...before }, { ...whole, ...now }, hooks);
}"""
HOOKS = {
    "trainer": [
        {"name": "tell", "component": "sigma-hooks:webhook"},
        {"name": "slow", "component": "sigma-hooks:reduce_on_plateau"},
        {"name": "other", "component": "histogram"},
    ],
    "beside": [{"name": "slow", "component": "histogram"}],
}
NAME = "Notify me of the end, a failure, a plateau"


def share(window: Any, link: str) -> Any:
    """Open a page, and what it shares; return the page."""
    window.page.goto(link)
    window.page.get_by_role("region", name="Playback").get_by_text("Training", exact=True).wait_for()
    window.page.get_by_role("button", name="Share", exact=True).click()
    return window.page


def row(number: int, trainer: str = "trainer", **more: Any) -> list[Any]:
    """Return a row of the journal with its number."""
    return [number, {"trainer": trainer, **more}]


def test_notifications_are_asked_for_by_a_press_and_then_tell_the_end(browsers: Any, visit: Any, tmp_path: Any) -> None:
    with browsers.run(tmp_path, "digits", *browsers.ENDLESS, *browsers.SLOWLY) as run:
        window = visit()
        page = window.page
        page.add_init_script(f"({RECORD})('granted')")
        page.goto(run.link)
        page.get_by_text("connected", exact=True).wait_for()
        page.get_by_role("button", name="Share", exact=True).click()
        box = page.get_by_label(NAME)
        assert not box.is_checked()
        assert page.evaluate("Notification.asked") == 0
        box.check()
        page.wait_for_function("() => Notification.asked === 1")
        page.keyboard.press("Escape")
        run.sigma("stop", "--run", str(run.results))
        page.wait_for_function("() => window.shown.length > 0")
        (told,) = page.evaluate("window.shown")
        assert told[0] == "digits: training has ended"
        window.end()  # the run has ended, and serves as long as its page is open


def test_a_refusal_is_told_with_the_remedy(training: Any, visit: Any) -> None:
    window = visit()
    page = window.page
    page.context.grant_permissions([], origin=f"http://{urlsplit(training.link).netloc}")
    page.goto(training.link)
    page.get_by_text("connected", exact=True).wait_for()
    page.get_by_role("button", name="Share", exact=True).click()
    state = page.evaluate("Notification.permission")
    assert state == "denied", "a headless browser refuses all"
    page.get_by_text("The browser refuses notifications of this page.").wait_for()
    assert page.get_by_label(NAME).is_disabled()
    assert window.complaints == []


def test_who_refuses_when_asked_has_an_empty_box_and_the_reason(training: Any, visit: Any) -> None:
    window = visit()
    window.page.add_init_script(f"({RECORD})('denied')")
    page = share(window, training.link)
    box = page.get_by_label(NAME)
    box.click()
    page.get_by_text("The browser refuses notifications of this page.").wait_for()
    assert (box.is_checked(), box.is_disabled()) == (False, True)


def test_a_browser_that_shows_none_of_a_page_is_told(training: Any, visit: Any) -> None:
    window = visit()
    window.page.add_init_script(f"({RECORD})('granted'); ({UNABLE})();")
    page = share(window, training.link)
    page.get_by_label(NAME).check()
    page.wait_for_function("() => Notification.asked === 1")
    page.keyboard.press("Escape")
    page.wait_for_function("() => localStorage.getItem('sigma.notify') === 'true'")
    page.evaluate(FAIL)
    page.get_by_role("button", name="Share", exact=True).click()
    page.get_by_text("This browser shows no notifications of pages").wait_for()
    assert not page.get_by_label(NAME).is_checked()


def test_what_is_told_is_what_is_new(training: Any, visit: Any) -> None:
    page = visit().page
    page.goto(training.link)
    page.get_by_text("connected", exact=True).wait_for()
    running = {"status": {"status": "running"}}
    failed = {"status": {"status": "failed", "why": "the loss is nan"}}
    assert page.evaluate(NEWS, [running, failed, HOOKS]) == [["failure", "the loss is nan"]]
    assert page.evaluate(NEWS, [failed, failed, HOOKS]) == []
    assert page.evaluate(NEWS, [{"status": None}, failed, HOOKS]) == []  # a page that is opened later
    rows = [
        row(1, event="background", hook="tell", logged=[]),
        row(2, command="set", by="other"),
        row(3, command="set"),
        row(4, "beside", command="set", by="slow"),  # of this name, there is another hook
        row(5, "nowhere", command="set", by="slow"),
    ]
    assert page.evaluate(NEWS, [running, {**running, "journal": rows}, HOOKS]) == []
    told = [*rows, row(6, event="background", hook="tell", logged=["plateau: it holds"])]
    assert page.evaluate(NEWS, [{**running, "journal": rows}, {**running, "journal": told}, HOOKS]) == [
        ["plateau", "plateau: it holds"]
    ]
    less = [*told, row(7, command="set", by="slow")]
    (news,) = page.evaluate(NEWS, [{**running, "journal": told}, {**running, "journal": less}, HOOKS])
    assert news == ["plateau", "found by the hook slow"]
