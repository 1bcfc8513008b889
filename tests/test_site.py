"""The site: generated pages are complete, figures show what was measured, and wide things fit small screens."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from itertools import chain
from pathlib import Path
from xml.etree import ElementTree

import pytest

pytest.importorskip("sigma_plot", reason="the figures have the colours of this room's charts")

from extensions import cells, commands, components, functions, gallery, generated, links
from figures import FOLDER, benchmarks, diagrams, drawing, first
from sigma_data.examining.rules import RULES
from sigma_kernel import catalogue
from sigma_kernel.graph import OPS, Op
from sigma_kernel.plugins import rooms
from sigma_kernel.plugins.specs import KINDS
from sigma_run import describe

pytestmark = pytest.mark.rooms
ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.glob("**/*.md"))
HOW_TO = [page for page in sorted(DOCS.glob("how-to/*.md")) if page.name != "index.md"]
FIGURES = sorted(DOCS.glob("figures/**/*.svg"))
GENERATED = {**diagrams.DIAGRAMS, **benchmarks.CHARTS}
NUMBER = re.compile(r"\d++(?:\.\d++)?(?:e-?\d++)?")

by_figure = pytest.mark.parametrize("figure", FIGURES, ids=lambda path: path.stem)


# -- pages generated from the code -------------------------------------------------------------------------------------
@pytest.mark.rooms
def test_every_component_of_the_rooms_has_a_section():
    written = "\n".join(page.read_text() for page in DOCS.glob("components/*.md"))
    kinds = {one.kind for one in catalogue().components()} - {"verb", "op", "lowering"}
    assert set(re.findall(r"^```{generated} components (\w+)$", written, re.MULTILINE)) == kinds
    pages = generated.expanded(written)
    shown = set(re.findall(r"^### `(.*)`$", pages, re.MULTILINE))
    assert shown == {one.name for kind in kinds for one in components.offered(kind)}
    assert "- `patience` (a whole number, default `5`): Firings without an improvement" in pages


def test_every_kind_of_component_leads_to_its_page_or_section():
    page = generated.expanded((DOCS / "kinds" / "index.md").read_text())
    links = dict(re.findall(r"^\| \[`(\w+)`\]\((\S+)\) \|", page, re.MULTILINE))
    assert links.keys() == KINDS.keys()
    headings = re.findall(r"^##+ (.*)$", (DOCS / "plugins.md").read_text(), re.MULTILINE)
    sections = {f"../plugins.md#{heading.lower().replace(' ', '-')}" for heading in headings}
    pages = sorted(path.name for path in DOCS.glob("kinds/*.md") if path.name != "index.md")
    assert {*links.values()} <= {*sections, *pages}
    assert re.findall(r"^\| \[\]\(([a-z]+\.md)\) \|", page, re.MULTILINE) == pages
    assert [f"{name}.md" for name in page.partition(":hidden:")[2].split()[:-1]] == pages


@pytest.mark.rooms
def test_every_rule_of_data_is_in_the_table_of_its_page():
    page = generated.expanded((DOCS / "how-to" / "check-data.md").read_text())
    assert [line.split("`")[1] for line in page.splitlines() if line.startswith("| `")] == [rule.name for rule in RULES]


def test_every_live_command_is_in_the_table_with_its_fields():
    table = commands.text()
    assert table in generated.expanded((DOCS / "steering.md").read_text())
    shown = re.findall(r"^\| `(?:send\(\")?(\w+)", table, re.MULTILINE)
    assert shown == [one.name for one in components.offered("command")]
    assert '| `rewind(to, scale="iteration")` | Go back to the newest state at or before a moment' in table
    assert '| `save(name="", note="")` |' in table  # without the fields that only hooks choose
    assert '| `relabel(rows, label, split="training")` | Give rows' in table
    assert re.findall(r"^\| `(?:set|stop)\(.*\| (yes|no) \|$", table, re.MULTILINE) == ["yes", "no"]


@pytest.mark.rooms
def test_every_layer_belongs_to_one_family():
    rows = re.findall(r"^\| [\w ,]+ \| (`.*`) \|$", (DOCS / "components" / "layers.md").read_text(), re.MULTILINE)
    listed = [name for row in rows for name in re.findall(r"`(\w+)`", row)]
    assert sorted(listed) == [one.name for one in components.offered("layer")]


@pytest.mark.rooms
def test_every_layer_has_shapes_and_a_source():
    docs = {one.name: describe("layer", f"{one.distribution}:{one.name}")["doc"] for one in components.offered("layer")}
    assert [name for name, doc in docs.items() if "Shapes: " not in doc] == []
    unsourced = {name for name, doc in docs.items() if not re.search(r"\b(18|19|20)\d\d\b|arXiv|`(torch|keras)\.", doc)}
    own = {"function", "function_cost", "input", "output", "pick", "repeat", "subnetwork"}  # what users give them
    assert unsourced == own


@pytest.mark.rooms
def test_every_hook_has_a_purpose():
    table = (DOCS / "configuration.md").read_text().partition("| purpose | hooks |")[2].partition("\n\n")[0]
    assert sorted(re.findall(r"`(\w+)`", table)) == sorted(rooms.names("hook"))


@pytest.mark.rooms
def test_settings_that_all_components_of_a_kind_share_are_listed_once():
    text = components.text("hook")
    assert text.count("- `over_budget`") == 1
    assert text.count("- `every`") > 1  # their defaults differ
    assert components.shared([[{"name": "a"}], [{"name": "a"}]]) == []


def test_a_docstring_becomes_myst():
    doc = "Return :class:`~sigma.Node`, as in::\n\n    a = 1\n\n      b\n\nor ``x``."
    assert components.markdown(doc) == "Return `sigma.Node`, as in:\n\n```text\na = 1\n\n  b\n```\nor ``x``."


def test_every_graph_function_is_listed():
    text = functions.text()
    for name in functions.public():
        assert re.search(rf"^\| (?:{{py:func}})?`{name}\(", text, re.MULTILINE), name
    assert {"relu", "where", "matmul", "one_hot", "scan", "gradient"} <= functions.public().keys()
    assert "axes" not in functions.public()  # which the module uses, and does not export
    rows = {name for name, one in functions.public().items() if isinstance(one, Op)}
    assert functions.described().keys() == rows


def test_every_op_is_listed_with_the_source_of_its_gradient():
    table = functions.table_of_ops()
    assert re.findall(r"^\| `(\w+)`", table, re.MULTILINE) == [name for name in OPS if ":" not in name]
    assert "| `tanh` | elementwise, primitive | a rule |" in table
    assert "| `gelu` | elementwise, composite | of its expansion |" in table
    assert "| `argmax` | primitive | zero |" in table


@pytest.mark.rooms
def test_every_generated_block_is_known():
    for page in PAGES:
        assert "{generated}" not in generated.expanded(page.read_text())


# -- figures -----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", GENERATED)
def test_a_figure_is_up_to_date(name):
    drawn = GENERATED[name]()
    assert (FOLDER / name).read_text("utf-8") == drawn, "Run python -m figures in docs/"


@pytest.mark.rooms
def test_the_figure_of_the_first_page_shows_its_run():
    shown, drawn = ((FOLDER / "first.svg").read_text("utf-8"), first.first())
    before, after = (re.findall(r'class="key s\d"[^>]*+>(\w+) ([\d.e-]+)<', text) for text in (shown, drawn))
    assert [name for name, _ in before] == [name for name, _ in after]
    assert [name for name, _ in after] == ["training", "validation", "validation", "live"]
    for (_, old), (_, new) in zip(before, after, strict=True):
        assert float(old) == pytest.approx(float(new), abs=0.03)


@by_figure
def test_a_figure_is_readable_in_the_light_and_in_the_dark(figure):
    root = ElementTree.fromstring(figure.read_text("utf-8"))
    space = "{http://www.w3.org/2000/svg}"
    assert root.find(f"{space}title").text
    assert "prefers-color-scheme:dark" in root.find(f"{space}style").text
    assert root.find(f"{space}rect").get("class") == "ground"  # of its own, whatever page it is on


@pytest.mark.rooms
def test_every_figure_is_shown_and_has_an_alternative():
    text = "\n".join(generated.expanded(page.read_text()) for page in PAGES)
    shown = dict(re.findall(r"^```\{figure\} (\S+)\n:alt: (.*)$", text, re.MULTILINE))
    assert {DOCS / name for name in shown} == set(FIGURES)
    assert all(len(words) > 40 for words in shown.values())
    assert text.count("```{figure}") == len(shown)


def test_words_that_do_not_fit_their_box_are_refused():
    with pytest.raises(ValueError, match="wider than its box"):
        drawing.box((0, 0), (60, 60), "much too long")
    with pytest.raises(ValueError, match="higher than their box"):
        drawing.box((0, 0), (90, 30), "one", "two")


# -- the gallery -------------------------------------------------------------------------------------------------------
@pytest.mark.rooms
def test_the_gallery_shows_every_recipe_as_it_was_measured():
    found = json.loads(gallery.RESULTS.read_text("utf-8"))["recipes"]
    assert found.keys() == {one.name for one in components.offered("recipe")}
    text = generated.expanded((DOCS / "gallery.md").read_text())
    for name, one in found.items():
        assert one["status"] == "finished"
        assert f"sigma run {name}" in one["command"]
        drawn = (DOCS / "figures" / "gallery" / f"{name}.svg").read_text("utf-8")
        assert all(f"{key.rpartition('.')[0]} {value:.4g}<" in drawn for key, value in one["curves"].items()), name
        assert all(f"`{key}` {value:.4g}" in text for key, value in one["metrics"].items()), name
        assert gallery.is_restored(one) == ("restore = true" in _recipe(name))


def _recipe(name: str) -> str:
    return (ROOT / "plugins" / "sigma-recipes" / "sigma_recipes" / f"{name}.toml").read_text("utf-8")


@pytest.fixture(scope="module")
def digits(tmp_path_factory):
    """Return what `sigma run digits` prints, and its summary."""
    folder = tmp_path_factory.mktemp("run")
    command = [sys.executable, "-m", "sigma_run", "run", "digits"]
    made = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    return made.stderr, json.loads(next(folder.glob("runs/*/summary.json")).read_text("utf-8"))


@pytest.mark.rooms
def test_a_recipe_still_comes_to_what_the_gallery_says(digits):
    shown, found = json.loads(gallery.RESULTS.read_text("utf-8"))["recipes"]["digits"], digits[1]
    assert (found["epochs"], found["iterations"]) == (shown["epochs"], shown["iterations"])
    assert found["metrics"] == pytest.approx(shown["metrics"], abs=0.03)


# -- pages -------------------------------------------------------------------------------------------------------------
@pytest.mark.rooms
def test_the_first_page_shows_the_output_of_its_command(digits):
    shown = re.findall(r"^```text\n(.*?)^```", (DOCS / "index.md").read_text(), re.MULTILINE | re.DOTALL)[0]
    assert "\n".join(_words(shown)) in "\n".join(_words(digits[0]))


def _words(text: str) -> list[str]:
    """Return the lines of an output without its numbers."""
    return [NUMBER.sub("0", line) for line in text.strip().split("\n")]


@pytest.mark.parametrize("page", HOW_TO, ids=lambda page: page.stem)
def test_a_how_to_answers_in_its_first_lines(page):
    head = page.read_text().split("\n")[:12]
    assert head[0].startswith("# ")
    assert {"```python", "```{code-block} python"} & {*head}  # the second is run where its room is installed


def test_every_how_to_is_listed():
    index = (DOCS / "how-to" / "index.md").read_text()
    assert re.findall(r"\]\((.*)\.md\) \|$", index, re.MULTILINE) == index.split("toctree}\n:hidden:\n")[1].split()[:-1]
    assert sorted(re.findall(r"\((.*\.md)\)", index)) == [page.name for page in HOW_TO]


def test_the_code_of_other_frameworks_is_python():
    blocks = re.findall(r"^```\{code-block\} python\n(.*?)^```", (DOCS / "coming-from.md").read_text(), re.M | re.S)
    assert len(blocks) == 3
    for block in blocks:
        ast.parse(block)


def test_a_notebook_becomes_a_page():
    output = {"data": {"text/plain": ["a < b"]}}
    printed = {"output_type": "stream", "text": ["\x1b[1mbold\x1b[0m\n"]}
    code = {"cell_type": "code", "source": ["1\n", "2"], "outputs": [output, printed]}
    found = cells.markdown({"cells": [{"cell_type": "markdown", "source": ["# Title"]}, code]})
    assert found.startswith("# Title\n\n```{code-block} python\n1\n2\n```\n\n````{raw} html")
    assert "<pre>a &lt; b</pre>" in found
    assert "<pre>bold\n</pre>" in found


def test_wide_things_scroll_in_their_own_boxes():
    rules = (DOCS / "static" / "site.css").read_text()
    scrolling = re.search(r"^([^{}/]*)\{ overflow-x: auto; \}", rules, re.MULTILINE)[1]
    assert {name.strip() for name in scrolling.split(",")} >= {"pre", ".table-wrapper", "figure.chart"}
    widths = [float(rem) * 16 for rem in re.findall(r"minmax\(min\(100%, ([\d.]+)rem\)", rules)]
    assert widths
    assert "min-width: 36rem" in rules  # of what scrolls; nothing else has a width
    assert len(list(chain(re.findall(r"[^-]width: \d", rules)))) == 0


def test_faults_of_built_pages_are_found(tmp_path):
    head = '<meta name="viewport" content="width=device-width">'
    good = f'{head}<h1 id="top">A</h1><a href="b.html">b</a><a href="#top">up</a><a href="https://a.b/c">c</a>'
    (tmp_path / "a.html").write_text(good)
    (tmp_path / "b.html").write_text(f'{head}<a href="a.html#top">a</a><img alt="a" src="a.png">')
    assert list(links.faults(tmp_path)) == []
    (tmp_path / "b.html").write_text('<a href="a.html#bottom"></a><a href="c.html"></a><img src="a.png">')
    assert [fault.partition(": ")[2] for fault in links.faults(tmp_path)] == [
        "no text for the image a.png",
        "no viewport for small screens",
        "a.html#bottom has no such place",
        "c.html leads nowhere",
    ]
