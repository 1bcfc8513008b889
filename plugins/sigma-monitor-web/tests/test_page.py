"""The page as files: what it is made of, what it may load, and that every text exists in each language."""

from __future__ import annotations

import hashlib
import json
import re
from html.parser import HTMLParser
from importlib.resources import files
from pathlib import Path

import pytest

from sigma_monitor_web.files import page

PAGE = Path(str(files("sigma_monitor_web"))) / "page"
VENDOR = PAGE / "vendor"
OWN = sorted(path for path in PAGE.rglob("*.js") if not path.is_relative_to(VENDOR))
LICENCES = {"MIT": "Permission is hereby granted, free of charge", "Apache-2.0": "Apache License"}
MANIFEST = json.loads((VENDOR / "manifest.json").read_text())["files"]
MODULES = pytest.mark.parametrize("path", OWN, ids=lambda path: str(path.relative_to(PAGE)))
IMPORT = re.compile(r'^(?:import|export)\s[^;]*?from "([^"]++)";', re.MULTILINE)
CALL = re.compile(r'\bt\("([a-z0-9._]++)"')
EITHER = re.compile(r'\bt\([^"`)]++ \? "([a-z0-9._]++)" : (?:[a-z. ]++\? "([a-z0-9._]++)" : )?"([a-z0-9._]++)"')
MADE = re.compile(r"\bt(?:\.has)?\(`([a-z0-9._]*+)\$\{[^}]++\}([a-z0-9._]*+)`")
LANGUAGES = sorted((PAGE / "words").glob("*.json"))
LANGUAGE = pytest.mark.parametrize("path", LANGUAGES, ids=lambda path: path.stem)
WORDS = json.loads((PAGE / "words" / "en.json").read_text("utf-8"))["words"]


class Elements(HTMLParser):
    """All elements of a document with their attributes."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


ELEMENTS = Elements((PAGE / "index.html").read_text("utf-8")).found


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def test_every_vendored_file_is_in_the_manifest_with_its_hash_and_licence():
    named = {row["file"] for row in MANIFEST} | {row["licence_file"] for row in MANIFEST} | {"manifest.json"}
    assert {path.name for path in VENDOR.iterdir()} == named
    for row in MANIFEST:
        assert sha256((VENDOR / row["file"]).read_bytes()) == row["sha256"], row["file"]
        licence = (VENDOR / row["licence_file"]).read_text()
        assert {"MIT": "Permission is hereby granted, free of charge", "Apache-2.0": "Apache License"}[
            row["licence"]
        ] in licence


def test_a_changed_vendored_file_is_the_published_one_but_for_the_named_change():
    for row in (row for row in MANIFEST if "changed" in row):
        text, change = (VENDOR / row["file"]).read_text("utf-8"), row["changed"]
        assert text.count(change["to"]) == 1
        assert sha256(text.replace(change["to"], change["from"]).encode()) == change["sha256"]


def test_the_page_has_no_inline_script_or_style_and_loads_its_own_files_alone():
    for tag, attributes in ELEMENTS:
        assert tag != "style"
        assert not any(name.startswith("on") or name == "style" for name in attributes), tag
        source = attributes.get("src") or (attributes.get("href") if tag == "link" else None)
        assert tag != "script" or source is not None
        if source is not None:
            assert (PAGE / source).is_file(), source


def test_every_style_sheet_is_linked_and_loads_nothing():
    linked = [attributes["href"] for tag, attributes in ELEMENTS if tag == "link" and attributes["rel"] == "stylesheet"]
    assert sorted(str(path.relative_to(PAGE)) for path in PAGE.rglob("*.css")) == sorted(map(str, linked))
    assert linked[-1] == "styles/narrow.css"  # the rules of narrow screens win
    for path in PAGE.rglob("*.css"):
        assert not re.search(r"url\(|@import|https?:", path.read_text("utf-8")), path


def test_every_custom_property_that_is_used_is_defined():
    sheets = "".join(path.read_text("utf-8") for path in PAGE.rglob("*.css"))
    scripts = "".join(path.read_text("utf-8") for path in OWN)
    defined = set(re.findall(r"(--[\w-]++):", sheets)) | set(re.findall(r'"(--[\w-]++)"', scripts))
    assert set(re.findall(r"var\((--[\w-]++)", sheets)) <= defined


@MODULES
def test_a_module_names_no_other_host_and_nothing_that_the_security_policy_forbids(path):
    text = path.read_text("utf-8")
    assert not re.search(r"https?://", text.replace("http://www.w3.org/2000/svg", ""))
    assert not re.search(r"\beval\(|new Function\(|innerHTML|outerHTML|insertAdjacentHTML|document\.write\(", text)
    assert not re.search(r"setAttribute\(\"style\"|\sstyle=", text)
    assert "dangerouslySetInnerHTML" not in text


@MODULES
def test_every_import_of_a_module_exists_and_is_used(path):
    text = path.read_text("utf-8")
    for target in IMPORT.findall(text):
        assert target.startswith(("./", "../")), target
        assert (path.parent / target).resolve().is_file(), target
    for names, target in re.findall(r'^import \{([^}]++)\} from "([^"]++)";', text, re.MULTILINE):
        exported = (path.parent / target).resolve().read_text("utf-8")
        for name in (name.strip().partition(" as ")[0] for name in names.split(",")):
            assert re.search(rf"export (?:async )?(?:function|const|class) {name}\b", exported) or re.search(
                rf"export ?\{{[^}}]*\b{name}\b", exported
            ), f"{target} exports no {name}"
            assert len(re.findall(rf"\b{name}\b", text)) > 1, f"{name} is imported in vain"


def test_the_modules_import_each_other_without_a_cycle():
    graph = {
        path: [(path.parent / target).resolve() for target in IMPORT.findall(path.read_text("utf-8"))] for path in OWN
    }
    done: set[Path] = set()

    def visit(path: Path, above: tuple[Path, ...]) -> None:
        assert path not in above, " -> ".join(one.name for one in (*above, path))
        for target in graph.get(path, []) if path not in done else []:
            visit(target, (*above, path))
        done.add(path)

    for path in OWN:
        visit(path, ())


@MODULES
def test_a_module_is_short_and_begins_with_what_it_is_for(path):
    lines = path.read_text("utf-8").splitlines()
    assert lines[0].startswith("// ")
    assert len(lines) <= 300


def test_the_page_speaks_three_languages_at_least():
    assert {path.stem for path in LANGUAGES} >= {"en", "de", "fr"}


@LANGUAGE
def test_a_language_has_every_text_with_the_same_blanks_and_forms(path):
    about = json.loads(path.read_text("utf-8"), object_pairs_hook=without_doubles)
    assert [*about] == ["name", "in", "locale", "words"]
    assert all(about.values())
    assert about["locale"].partition("-")[0] == path.stem.partition("-")[0]
    assert [*about["words"]] == [*WORDS]  # in the same order, so that files are read side by side
    for key, text in about["words"].items():
        assert text.strip() == text != "", key
        assert set(re.findall(r"\{(\w+)\}", text)) == set(re.findall(r"\{(\w+)\}", WORDS[key])), key
        assert text.count("|") == WORDS[key].count("|") <= 1, key


@LANGUAGE
def test_a_language_is_more_than_a_copy_of_english(path):
    words = json.loads(path.read_text("utf-8"))["words"]
    alike = [key for key in WORDS if words[key] == WORDS[key]]
    assert path.stem == "en" or len(alike) < len(WORDS) / 10


def without_doubles(pairs):
    assert len({key for key, _ in pairs}) == len(pairs), "a key is there twice"
    return dict(pairs)


def test_a_language_is_found_by_its_file(tmp_path):
    (tmp_path / "words").mkdir()
    for code in ("en", "eo"):
        (tmp_path / "words" / f"{code}.json").write_text(json.dumps({"name": code}))
    assert json.loads(page(tmp_path)["words.json"].body) == {"en": {"name": "en"}, "eo": {"name": "eo"}}


def test_every_text_that_a_module_asks_for_exists_and_every_text_is_asked_for():
    asked: set[str] = set()
    for path in OWN:
        text = path.read_text("utf-8")
        asked |= set(CALL.findall(text))
        asked |= {name for found in EITHER.findall(text) for name in found if name}
        asked |= set(re.findall(r'"([a-z]++(?:\.[a-z0-9_]++)++)"', text)) & set(WORDS)  # in tables
        for head, tail in MADE.findall(text):
            made = {key for key in WORDS if key.startswith(head) and key.endswith(tail) and len(key) > len(head + tail)}
            assert made, f"{path.name}: {head}"
            asked |= made
    assert asked - set(WORDS) == set()
    assert set(WORDS) - asked == set()


def test_the_page_lists_its_views_each_with_a_name():
    listed = re.findall(r'name: "(\w+)"', (PAGE / "views" / "index.js").read_text("utf-8"))
    assert listed[0] == "train"
    assert {f"view.{name}" for name in listed} <= set(WORDS)
