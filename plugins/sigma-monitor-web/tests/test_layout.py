"""The layout of tabs and panels: what a file may hold, and what is written to it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from sigma_kernel import Panel
from sigma_kernel.errors import SigmaConfigError, SigmaStateError
from sigma_monitor_web.application import Application
from sigma_monitor_web.files import PAGE, file
from sigma_monitor_web.keys import Keys
from sigma_monitor_web.layout import AXES, VIEWS, PageLayout, check
from sigma_monitor_web.monitor import OneRun, WebMonitor
from sigma_testing import FakeView

BASE = "http://127.0.0.1:8470"
OWN = {"x-sigma": "1", "origin": BASE, "content-type": "application/json"}
CHART = {"patterns": ["trainer.*.loss"], "title": "Loss", "hidden": ["trainer.test.loss"], "log": True, "tall": 274}
CHART |= {"bounds": [0.1, 10], "section": "Losses"}
FULL = {
    "format": 1,
    "tabs": [
        {
            "view": "train",
            "axis": "epoch",
            "log": True,
            "smoothing": 0.5,
            "columns": 3,
            "tight": True,
            "charts": [CHART],
        },
        {"view": "data", "panels": ["p"]},
    ],
}


def changed(*path: Any, to: Any) -> Any:
    """Return the full layout with another value at a place."""
    made = json.loads(json.dumps(FULL))
    here = made
    for step in path[:-1]:
        here = here[step]
    here[path[-1]] = to
    return made


# -- the format --------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("found", [FULL, {"format": 1, "tabs": []}, {"format": 1, "tabs": [{"view": "try"}]}])
def test_a_layout_is_accepted(found: Any) -> None:
    check(found, "layout.json", ["p"])


@pytest.mark.parametrize(
    ("found", "message"),
    [
        ([], "not a layout. It needs 'format': 1"),
        ({"format": 2, "tabs": []}, "not a layout. It needs 'format': 1"),
        ({"format": 1}, "needs 'tabs'"),
        ({"format": 1, "tabs": {}}, r"tabs: must be a list \(got {}\)"),
        ({"format": 1, "tabs": [], "tab": []}, "has no setting 'tab'. Did you mean 'tabs'?"),
        ({"format": 1, "tabs": ["train"]}, r"tabs\[0\]: must be an object \(got 'train'\)"),
        ({"format": 1, "tabs": [{}]}, r"tabs\[0\]: needs 'view'"),
        ({"format": 1, "tabs": [{"view": "tran"}]}, r"tabs\[0\].view: there is no 'tran'. Did you mean 'train'?"),
        ({"format": 1, "tabs": [{"view": 3}]}, r"tabs\[0\].view: there is no 3. There is train, network"),
        (changed("tabs", 1, "view", to="train"), r"tabs\[1\].view: 'train' is used twice"),
        (changed("tabs", 1, "panels", to=["q"]), r"tabs\[1\].panels\[0\]: there is no 'q'"),
        (changed("tabs", 1, "panels", to="p"), r"tabs\[1\].panels: must be a list"),
        (changed("tabs", 1, "charts", to=[]), r"tabs\[1\].charts: only 'train' has charts"),
        (changed("tabs", 1, "smoothing", to=0.5), r"tabs\[1\].smoothing: only 'train' has charts"),
        (changed("tabs", 0, "axis", to="date"), r"tabs\[0\].axis: there is no 'date'. There is iteration, epoch"),
        (changed("tabs", 0, "smoothing", to=1), r"tabs\[0\].smoothing: must be a number from 0 to 0.99 \(got 1\)"),
        (changed("tabs", 0, "smoothing", to=float("nan")), r"tabs\[0\].smoothing: must be a number"),
        (changed("tabs", 0, "smoothing", to=True), r"tabs\[0\].smoothing: must be a number"),
        (changed("tabs", 0, "log", to=1), r"tabs\[0\].log: must be true or false"),
        (changed("tabs", 0, "columns", to=4), r"tabs\[0\].columns: must be 1, 2 or 3 \(got 4\)"),
        (changed("tabs", 0, "columns", to=True), r"tabs\[0\].columns: must be 1, 2 or 3 \(got True\)"),
        (changed("tabs", 0, "tight", to="yes"), r"tabs\[0\].tight: must be true or false"),
        (changed("tabs", 1, "columns", to=2), r"tabs\[1\].columns: only 'train' has charts"),
        (changed("tabs", 0, "charts", 0, "bounds", to=3), r"charts\[0\].bounds: must be a list"),
        (
            changed("tabs", 0, "charts", 0, "bounds", to=[1]),
            r"charts\[0\].bounds: must be two numbers, the lower first",
        ),
        (changed("tabs", 0, "charts", 0, "bounds", to=[2, 1]), r"charts\[0\].bounds: must be two numbers"),
        (changed("tabs", 0, "charts", 0, "bounds", to=[1, float("nan")]), r"charts\[0\].bounds\[1\]: must be a number"),
        (changed("tabs", 0, "charts", 0, "section", to=""), r"charts\[0\].section: must be a text"),
        (changed("tabs", 0, "charts", 0, "patterns", to=[]), r"charts\[0\].patterns: is empty. Name an address"),
        (changed("tabs", 0, "charts", 0, "patterns", to=[1]), r"charts\[0\].patterns\[0\]: must be a text \(got 1\)"),
        (changed("tabs", 0, "charts", 0, "hidden", to=""), r"charts\[0\].hidden: must be a list"),
        (changed("tabs", 0, "charts", 0, "log", to=1), r"charts\[0\].log: must be true or false \(got 1\)"),
        (changed("tabs", 0, "charts", 0, "title", to=""), r"charts\[0\].title: must be a text"),
        (changed("tabs", 0, "charts", 0, "tall", to=4), r"charts\[0\].tall: must be a number from 48 to 2000"),
        (changed("tabs", 0, "charts", 0, "logs", to=True), r"charts\[0\]: has no setting 'logs'. Did you mean 'log'?"),
        (changed("tabs", 0, "charts", 0, to={"log": True}), r"charts\[0\]: needs 'patterns'"),
    ],
)
def test_a_mistake_is_named_with_its_place(found: Any, message: str) -> None:
    with pytest.raises(SigmaConfigError, match=f"^layout.json.*{message}"):
        check(found, "layout.json", ["p"])


def test_the_page_has_the_same_views_and_axes() -> None:
    (names,) = re.findall(r"export const NAMES = (\[.*?\]);", (PAGE / "tabs.js").read_text())
    assert json.loads(names) == [*VIEWS]
    assert [
        name for name, _ in re.findall(r'name: "(\w+)", component: (\w+)', (PAGE / "views/index.js").read_text())
    ] == [*VIEWS]
    assert str([*AXES]).replace("'", '"') in (PAGE / "charts/axis.js").read_text()


# -- the file ----------------------------------------------------------------------------------------------------------
def test_a_layout_is_written_as_a_whole_and_read_again(tmp_path: Path) -> None:
    path = tmp_path / "layout.json"
    layout = PageLayout(path, ["p"])
    assert json.loads(layout.shown.body) == {"format": 1, "tabs": []}  # that of the page
    assert layout.save(FULL) == path
    assert json.loads(path.read_bytes()) == json.loads(layout.shown.body) == FULL
    assert [one.name for one in tmp_path.iterdir()] == ["layout.json"]
    assert json.loads(PageLayout(path, ["p"]).shown.body) == FULL


def test_what_is_not_a_layout_changes_nothing(tmp_path: Path) -> None:
    layout = PageLayout(tmp_path / "layout.json", ["p"])
    layout.save(FULL)
    with pytest.raises(SigmaConfigError, match="tabs: must be a list"):
        layout.save({"format": 1, "tabs": 3})
    assert json.loads((tmp_path / "layout.json").read_bytes()) == json.loads(layout.shown.body) == FULL


def test_a_file_that_is_not_a_layout_is_named(tmp_path: Path) -> None:
    for text in ("{", "[" * 100_000, '{"format": 1, "tabs": 3}', " " * (1 << 20) + "[]"):
        (tmp_path / "layout.json").write_text(text)
        with pytest.raises(SigmaConfigError, match=re.escape(str(tmp_path / "layout.json"))):
            PageLayout(tmp_path / "layout.json")


def test_nothing_is_written_through_a_link_or_where_there_is_no_folder(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text('{"format": 1, "tabs": []}')
    (tmp_path / "layout.json").symlink_to(tmp_path / "secret")
    with pytest.raises(SigmaStateError, match="is a link, and nothing is written through one"):
        PageLayout(tmp_path / "layout.json", ["p"]).save(FULL)
    assert (tmp_path / "secret").read_text() == '{"format": 1, "tabs": []}'
    with pytest.raises(SigmaStateError, match="cannot be written: No such file"):
        PageLayout(tmp_path / "none" / "layout.json", ["p"]).save(FULL)
    with pytest.raises(SigmaStateError, match="this run has no folder. Name a file"):
        PageLayout(None, ["p"]).save(FULL)


def test_a_run_says_that_its_file_does_not_exist_yet(tmp_path: Path) -> None:
    view = FakeView()
    view.over.set()
    WebMonitor(open=False, layout=str(tmp_path / "mine.json")).watch(view)
    assert "mine.json does not exist yet. Saving the layout in the page writes it." in view.texts[1]


# -- the route ---------------------------------------------------------------------------------------------------------
@pytest.fixture
def application(tmp_path: Path) -> Application:
    layout = PageLayout(tmp_path / "layout.json", ["p"])
    return Application(OneRun(FakeView()), Keys(), {}, layout, {"p": (Panel("P", "1"), file(b"1", ".js"))})


@pytest.fixture
def client(application: Application) -> Iterator[TestClient]:
    with TestClient(application.guard_application(), base_url=BASE, raise_server_exceptions=False) as made:
        yield made


def test_the_page_saves_its_layout_and_gets_it_again(
    application: Application, client: TestClient, tmp_path: Path
) -> None:
    client.post("/session", json={"token": application.keys.steer}, headers=OWN)
    answer = client.post("/layout.json", json=FULL, headers=OWN)
    assert (answer.status_code, answer.json()) == (200, {"saved": str(tmp_path / "layout.json")})
    assert client.get("/layout.json").json() == FULL


@pytest.mark.parametrize(
    ("body", "why"), [(b"{", "is not JSON"), (b"\xff", "is not JSON"), (b"[]", "not a layout"), (b"[" * 60_000, "JSON")]
)
def test_a_body_that_is_no_layout_is_refused_with_the_reason(
    application: Application, client: TestClient, tmp_path: Path, body: bytes, why: str
) -> None:
    client.post("/session", json={"token": application.keys.steer}, headers=OWN)
    answer = client.post("/layout.json", content=body, headers=OWN)
    assert answer.status_code == 400
    assert why in answer.json()["error"]
    assert [*tmp_path.iterdir()] == []


def test_whoever_may_only_read_writes_no_layout(application: Application, client: TestClient, tmp_path: Path) -> None:
    assert client.post("/layout.json", json=FULL, headers=OWN).status_code == 401
    client.post("/session", json={"token": application.keys.read}, headers=OWN)
    assert client.post("/layout.json", json=FULL, headers=OWN).status_code == 403
    assert [*tmp_path.iterdir()] == []
