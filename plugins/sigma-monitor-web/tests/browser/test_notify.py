"""The browser tells of an end, a failure and a plateau, once a person has asked it to, and never by itself."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

RECORD = """() => {
    window.shown = [];
    window.Notification = class {
        static permission = "default";
        static asked = 0;
        static async requestPermission() { this.asked += 1; return (this.permission = "granted"); }
        constructor(title, { body }) { window.shown.push([title, body]); }
    };
}"""
NEWS = """async ([before, now]) => {
    const { news } = await import("./notify.js");
    const whole = { journal: [], hooks: [], hello: {}, status: { status: "running" } };
    return news({ ...whole, ...before }, { ...whole, ...now });
}"""
HOOKS = [
    {"name": "tell", "component": "sigma-hooks:webhook"},
    {"name": "slow", "component": "sigma-hooks:reduce_on_plateau"},
    {"name": "other", "component": "histogram"},
]


def test_notifications_are_asked_for_by_a_press_and_then_tell_the_end(browsers: Any, visit: Any, tmp_path: Any) -> None:
    with browsers.run(tmp_path, "digits", *browsers.ENDLESS, *browsers.SLOWLY) as run:
        window = visit()
        page = window.page
        page.add_init_script(f"({RECORD})()")
        page.goto(run.link)
        page.get_by_text("connected", exact=True).wait_for()
        page.get_by_role("button", name="Share", exact=True).click()
        box = page.get_by_label("Notify me of the end, a failure, a plateau")
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
    assert page.get_by_label("Notify me of the end, a failure, a plateau").is_disabled()
    assert window.complaints == []


def test_what_is_told_is_what_is_new(training: Any, visit: Any) -> None:
    page = visit().page
    page.goto(training.link)
    page.get_by_text("connected", exact=True).wait_for()
    running = {"status": {"status": "running"}, "hooks": HOOKS}
    failed = {"status": {"status": "failed", "why": "the loss is nan"}}
    assert page.evaluate(NEWS, [running, failed]) == [["failure", "the loss is nan"]]
    assert page.evaluate(NEWS, [failed, failed]) == []
    assert page.evaluate(NEWS, [{"status": None}, failed]) == []  # a page that is opened later
    rows = [
        [1, {"event": "background", "hook": "tell", "logged": []}],
        [2, {"command": "set", "by": "other"}],
        [3, {"command": "set"}],
    ]
    assert page.evaluate(NEWS, [running, {**running, "journal": rows}]) == []
    told = [*rows, [4, {"event": "background", "hook": "tell", "logged": ["plateau: it holds"]}]]
    assert page.evaluate(NEWS, [{**running, "journal": rows}, {**running, "journal": told}]) == [
        ["plateau", "plateau: it holds"]
    ]
    less = [*told, [5, {"command": "set", "by": "slow"}]]
    (news,) = page.evaluate(NEWS, [{**running, "journal": told}, {**running, "journal": less}])
    assert news == ["plateau", "found by the hook slow"]
