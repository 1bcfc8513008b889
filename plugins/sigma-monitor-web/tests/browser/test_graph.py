"""The drawn network: where boxes and arrows are, what is folded, and how one moves through it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import combinations
from typing import Any

import pytest

from sigma_kernel import catalogue
from sigma_kernel.contracts import LayerEntry, WorkEntry
from sigma_kernel.errors import SigmaError
from sigma_run.config import build, load_configuration
from sigma_run.launcher import open_document
from sigma_testing import FakeView

from .serving import serve_view

RECIPES = [component.name for component in catalogue().components("recipe")]
DRAW = """async ({ layers, optimisers, fold, down }) => {
    const { foldedAtFirst, graphOf, groupsOf } = await import("./network/groups.js");
    const { place } = await import("./network/layout.js"), groups = groupsOf(layers);
    const choices = { all: () => new Set(groups.map((one) => one.id)), none: () => new Set() };
    const folded = (choices[fold] ?? (() => foldedAtFirst(layers, groups)))();
    const graph = graphOf(layers, optimisers, groups, folded);
    const sizes = ({ layers: [first] }) => (first ? [140, 40 + ((8 * first.name.length) % 40)] : [120, 48]);
    return { ...place(graph, sizes, down), shared: graph.shared, groups, folded: [...folded] };
}"""


def layer(name: str, *sources: str, component: str = "", shape: tuple[int, ...] = (8,), **more: Any) -> dict[str, Any]:
    kind = component or re.sub(r"^\d+-", "", name)
    settings = {"targets": "targets"} if kind.endswith("entropy") else {}
    entry = {"name": name, "component": kind, "sources": list(sources), "shape": shape, "parameters": {}, "shared": {}}
    return {**entry, "settings": settings, **more}


def chain(*kinds: str) -> list[dict[str, Any]]:
    """Return layers of these kinds, one after another."""
    names = [f"{i}-{kind}" for i, kind in enumerate(kinds)]
    return [layer(name, *names[i - 1 : i]) for i, name in enumerate(names)]


def network_of(recipe: str) -> dict[str, list[dict[str, Any]]]:
    """Return the layers of each trainer of a recipe, with the shapes that are known without its data."""
    with build(load_configuration(open_document(recipe, ()), catalogue()), catalogue()) as environment:
        return {
            name: [layer(row.name, *row.sources, shape=row.shape or ()) for row in trainer.summary().rows]
            for name, trainer in environment.trainers.items()
        }


@pytest.fixture(scope="module")
def draw(chromium: Any, browsers: Any) -> Iterator[Any]:
    """Return a function that draws layers on the page of the dashboard, and returns boxes and arrows."""
    with serve_view(FakeView()) as link:
        window = browsers.Visit.begin(chromium)
        window.page.goto(link)

        def draw(layers: Any, optimisers: Any = (), fold: str = "", down: bool = False) -> Any:
            given = {"layers": layers, "optimisers": list(optimisers), "fold": fold, "down": down}
            return window.page.evaluate(DRAW, json.loads(json.dumps(given)))

        yield draw
        window.end()


def overlap(one: dict[str, float], other: dict[str, float]) -> bool:
    return all(
        one[at] < other[at] + other[size] and other[at] < one[at] + one[size]
        for at, size in (("x", "width"), ("y", "height"))
    )


def check(drawn: Any, layers: Any, down: bool) -> None:
    """Check that all layers are there, no boxes overlap, arrows lead on, and frames hold their layers alone."""
    boxes = {box["id"]: box for box in drawn["boxes"]}
    assert sorted(one["name"] for box in boxes.values() for one in box["layers"]) == sorted(x["name"] for x in layers)
    assert [(one["id"], other["id"]) for one, other in combinations(boxes.values(), 2) if overlap(one, other)] == []
    at, size = ("y", "height") if down else ("x", "width")
    for arrow in drawn["arrows"]:
        before, after = boxes[arrow["from"]], boxes[arrow["to"]]
        assert before[at] + before[size] < after[at], f"{arrow['from']} -> {arrow['to']}"
        places = [point[1 if down else 0] for point in arrow["points"]]
        assert places == sorted(places)
    for frame in drawn["frames"]:
        inside = {box["id"] for box in boxes.values() if overlap(frame, box)}
        assert inside == {*frame["names"]}
    for box in boxes.values():
        assert 0 <= box["x"] <= drawn["width"] - box["width"]
        assert 0 <= box["y"] <= drawn["height"] - box["height"]


# -- layouts -----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("recipe", RECIPES)
def test_every_recipe_is_drawn(draw: Any, recipe: str) -> None:
    for layers in network_of(recipe).values():
        for fold in ("", "all", "none"):
            for down in (False, True):
                check(draw(layers, fold=fold, down=down), layers, down)


def test_a_network_of_many_blocks_with_jumps_is_drawn(draw: Any) -> None:
    layers = [layer("0-input")]
    for n in range(1, 160, 4):  # a dense layer, beside it another, and their sum, with a jump over each block
        last = layers[-1]["name"]
        layers += [layer(f"{n}-dense", last), layer(f"{n + 1}-tanh", last), layer(f"{n + 2}-norm", f"{n}-dense")]
        layers += [layer(f"{n + 3}-add", f"{n + 2}-norm", f"{n + 1}-tanh", last, shape=(n,))]
    check(draw(layers, fold="none"), layers, False)


def test_blocks_that_are_repeated_are_one_box_with_their_number(draw: Any) -> None:
    layers = chain("input", *12 * ("attention", "dense"), "output", "softmax_cross_entropy")
    drawn = draw(layers)
    (group,) = drawn["groups"]
    assert (group["times"], group["period"], len(group["names"])) == (12, 2, 24)
    assert drawn["folded"] == [group["id"]]
    assert [box["id"] for box in drawn["boxes"]] == ["0-input", group["id"], "25-output", "26-softmax_cross_entropy"]
    whole = draw(layers, fold="none")
    assert len(whole["boxes"]) == len(layers)
    assert [frame["names"] for frame in whole["frames"]] == [group["names"]]


def test_layers_of_another_size_are_no_repetition(draw: Any) -> None:
    layers = [*chain("input", "dense", "dense", "dense"), layer("4-dense", "3-dense", shape=(9,))]
    assert [group["names"] for group in draw(layers)["groups"]] == [["1-dense", "2-dense", "3-dense"]]


def test_a_repeated_block_may_have_branches(draw: Any) -> None:
    layers = [layer("x")]
    for n in range(3):
        last = layers[-1]["name"]
        layers += [layer(f"a{n}", last, component="dense"), layer(f"s{n}", f"a{n}", last, component="add")]
    (group,) = draw(layers)["groups"]
    assert (group["times"], group["period"]) == (3, 2)


def test_chains_are_folded_only_where_there_are_branches(draw: Any) -> None:
    assert draw(chain("input", "flatten", "dense", "tanh", "output", "softmax_cross_entropy"))["groups"] == []
    layers = [
        *chain("input", "a", "b", "c", "d"),
        layer("left", "4-d"), layer("l2", "left"), layer("l3", "l2"), layer("l4", "l3"),
        layer("right", "4-d"),
    ]  # fmt: skip
    groups = draw(layers)["groups"]
    assert [group["names"] for group in groups] == [["0-input", "1-a", "2-b", "3-c", "4-d"], ["left", "l2", "l3", "l4"]]
    folded = draw(layers, fold="all")
    assert [(arrow["from"], arrow["to"]) for arrow in folded["arrows"]] == [
        (groups[0]["id"], groups[1]["id"]),
        (groups[0]["id"], "right"),
    ]


def test_sharing_and_optimisers_are_drawn(draw: Any) -> None:
    layers = [
        layer("0-input"),
        layer("first", "0-input"),
        layer("second", "first", shared={"weights": "trainer.network.layers.first.weights"}),
        layer("cost", "second", component="softmax_cross_entropy"),
    ]
    optimisers = [{"name": "optimiser", "component": "adam", "updates": ["first"], "minimises": ["cost"]}]
    drawn = draw(layers, optimisers)
    assert drawn["shared"] == [{"from": "first", "to": "second"}]
    assert {"from": "cost", "to": "optimiser", "kind": "minimises"}.items() <= drawn["arrows"][-1].items()


# -- moving through it -------------------------------------------------------------------------------------------------
@pytest.fixture
def page(training: Any, visit: Any) -> Iterator[Any]:
    """Return the view of the network of a run that trains."""
    window = visit()
    window.page.goto(training.link)
    window.page.get_by_text("connected", exact=True).wait_for()
    window.page.get_by_role("navigation").get_by_role("link", name="Network").click()
    window.page.locator("[data-box='2-dense'] .share").first.wait_for(state="attached")
    yield window.page
    assert window.complaints == []


def graph(page: Any) -> Any:
    return page.get_by_role("group", name=re.compile("^The network as a graph"))


def seen_part(page: Any) -> list[float]:
    return [float(number) for number in graph(page).locator("svg").get_attribute("viewBox").split()]


def test_arrow_keys_follow_the_arrows_and_enter_opens_the_layer(page: Any) -> None:
    graph(page).focus()
    page.keyboard.press("Home")
    said = page.get_by_role("status").filter(has_text=re.compile("^0-input"))
    said.wait_for()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    page.get_by_role("status").filter(has_text=re.compile(r"^3-output, .*% time.*leads to 4-softmax")).wait_for()
    page.keyboard.press("Enter")
    output = page.get_by_role("region", name="3-output")
    output.get_by_role("img", name=re.compile("Values at epoch")).wait_for()
    output.get_by_text("Operations, estimated").wait_for()
    page.keyboard.press("ArrowLeft")
    page.get_by_role("status").filter(has_text=re.compile("^2-dense")).wait_for()
    page.keyboard.press("End")
    page.get_by_role("status").filter(has_text=re.compile("^adam, updates 2 layers")).wait_for()
    assert "Training" in page.get_by_role("region", name="Playback").inner_text(), "no key has stepped or paused"


def test_a_press_opens_a_layer_and_a_drag_moves(page: Any) -> None:
    box = page.locator("[data-box='3-output']")
    box.click()
    page.get_by_role("region", name="3-output").wait_for()
    place, before = box.bounding_box(), seen_part(page)
    page.mouse.move(place["x"] + 20, place["y"] + 10)
    page.mouse.down()
    page.mouse.move(place["x"] - 30, place["y"] + 10, steps=4)
    page.mouse.up()
    assert seen_part(page)[0] == pytest.approx(before[0] + 50, abs=2)
    page.locator("[data-box='2-dense']").click()
    page.get_by_role("region", name="2-dense").wait_for()


def test_keys_buttons_and_the_wheel_zoom(page: Any) -> None:
    whole = seen_part(page)
    graph(page).focus()
    page.keyboard.press("+")
    assert seen_part(page)[2] == pytest.approx(whole[2] / 1.25)
    page.keyboard.press("Shift+ArrowRight")
    moved = seen_part(page)
    page.keyboard.press("0")
    assert seen_part(page) == whole
    assert moved[0] > whole[0]
    page.get_by_role("button", name="Further away").click()
    assert seen_part(page)[2] == pytest.approx(whole[2] * 1.25)
    page.get_by_role("button", name="Whole network").click()
    place = graph(page).bounding_box()
    page.mouse.move(place["x"] + 100, place["y"] + 50)
    page.keyboard.down("Control")
    page.mouse.wheel(0, -100)
    page.keyboard.up("Control")
    near = seen_part(page)
    assert near[2] < whole[2]
    scale = whole[2] / place["width"]
    assert near[0] + 100 * near[2] / place["width"] == pytest.approx(whole[0] + 100 * scale, abs=1)  # it stays there


def test_two_fingers_zoom_and_one_moves_on_a_phone(browsers: Any, training: Any, visit: Any) -> None:
    window = visit(browsers.PHONE)
    window.page.goto(training.link)
    window.page.get_by_role("navigation").get_by_role("link", name="Network").click()
    page = window.page
    page.locator("[data-box='2-dense'] .share").first.wait_for(state="attached")
    boxes = [page.locator(f"[data-box='{name}']").bounding_box() for name in ("2-dense", "3-output")]
    assert boxes[0]["y"] + boxes[0]["height"] < boxes[1]["y"], "arrows go down"
    graph(page).scroll_into_view_if_needed()
    whole, place = seen_part(page), graph(page).bounding_box()
    touch = page.context.new_cdp_session(page)

    def fingers(kind: str, *points: tuple[float, float]) -> None:
        touches = [{"x": place["x"] + x, "y": place["y"] + y, "id": n} for n, (x, y) in enumerate(points)]
        touch.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": touches})

    fingers("touchStart", (150, 60), (210, 60))
    for apart in (10, 20, 30):
        fingers("touchMove", (150 - apart, 60), (210 + apart, 60))
    fingers("touchEnd")
    assert seen_part(page)[2] == pytest.approx(whole[2] / 2, rel=0.1)
    assert window.complaints == []


def test_groups_are_folded_and_unfolded_by_keys_and_buttons(visit: Any) -> None:
    given = chain("input", *12 * ("attention", "dense"), "output", "softmax_cross_entropy")
    entries = [
        LayerEntry(x["name"], x["component"], tuple(x["sources"]), x["shape"], {}, x["settings"], {}) for x in given
    ]
    work = [WorkEntry(x["name"], 10, {"parameters": 100}) for x in given]
    with serve_view(FakeView(layers=entries, worked=work, values={"trainer.iteration": 1})) as link:
        window = visit()
        page = window.page
        page.goto(link)
        page.get_by_role("navigation").get_by_role("link", name="Network").click()
        group = page.locator("[data-box='repeat-1']")
        group.locator(".name", has_text=re.compile(r"^12 . \(attention \+ dense\)")).wait_for()
        assert page.locator("[data-box]").count() == 4
        group.get_by_text("89 % time").wait_for()
        graph(page).focus()
        for key in ("Home", "ArrowRight", "Enter"):
            page.keyboard.press(key)
        page.locator("[data-box='24-dense']").wait_for()
        assert page.locator("[data-box]").count() == len(given)
        page.keyboard.press("Backspace")
        group.wait_for()
        page.get_by_role("button", name="Unfold groups").click()
        page.locator("[data-box='1-attention']").wait_for()
        page.get_by_role("button", name="Fold groups").click()
        group.wait_for()
        assert window.complaints == []


def test_paper_has_the_whole_network_in_any_theme_of_the_system(page: Any) -> None:
    graph(page).focus()
    for _ in range(4):
        page.keyboard.press("+")
    part = seen_part(page)
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    paper = seen_part(page)
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert paper[:2] == [0, 0]
    assert paper[2] > part[2]
    assert seen_part(page) == part
    page.emulate_media(forced_colors="active")
    stroke = page.locator("[data-box='2-dense'] .face").evaluate("one => getComputedStyle(one).stroke")
    assert stroke != "none"


def test_an_error_of_the_estimate_leaves_the_graph(visit: Any) -> None:
    class Refusing(FakeView):
        def trainer(self, name: str) -> Any:
            shown = super().trainer(name)
            return type("Shown", (type(shown),), {"work": lambda self: (_ for _ in ()).throw(SigmaError("no step"))})(
                self
            )

    entries = [LayerEntry("0-input", "input", (), (3,), {}, {})]
    with serve_view(Refusing(layers=entries, values={"trainer.iteration": 1})) as link:
        window = visit()
        window.page.goto(link)
        window.page.get_by_role("navigation").get_by_role("link", name="Network").click()
        window.page.locator("[data-box='0-input']").wait_for()
        assert not window.page.get_by_text("are estimates").count()
        assert window.complaints == []
