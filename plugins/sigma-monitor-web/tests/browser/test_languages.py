"""The page in other languages: no text of its own stays English, on any view; and which language is chosen."""

from __future__ import annotations

import json
import re
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

SAID = """() => {
    const found = new Set(), seen = (one) => one.checkVisibility({ visibilityProperty: true }) && !one.closest("code");
    const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    for (let at = texts.nextNode(); at; at = texts.nextNode()) if (seen(at.parentElement)) found.add(at.data.trim());
    for (const name of ["aria-label", "title", "placeholder", "alt"])
        for (const one of document.querySelectorAll(`[${name}]`))
            if (seen(one)) found.add(one.getAttribute(name).trim());
    return [...found];
}"""
CUT = """() => [".top", ".deck", ".score-bar"].filter((bar) => {
    const right = document.querySelector(bar).getBoundingClientRect().right + 1;
    return [...document.querySelectorAll(`${bar} button`)].some((one) => one.getBoundingClientRect().right > right);
})"""
WORD = re.compile(r"[A-Za-zÄÖÜäöüß]{3,}+")
PAGE = Path(str(files("sigma_monitor_web"))) / "page"
KERNEL = (  # what the run has names for, and what the kernel says
    r"[\w.*-]*[._*/-][\w.*-]*|<[\w*]+>|/.*|\w+\(.*|sigma.*|when .*|\w+ (before|after) \w+: .*|epoch reaches \d+|"
    r"(every )?\d+ (epochs?|iterations?|seconds?)|digits|training|validation|loss|accuracy|adam|optimiser|dense|input|"
    r"output|flatten|relu|weights|biases|score|finish|stop|numba|shuffle|min|CSV|PNG|SVG"
)
SIGNS = ("; ", ": ", " · ", ", ")  # between texts that are joined
DOCS = (  # of settings, as the kernel has them
    "Step size, roughly its upper bound, in units of the parameter.",
    "Rows of a batch, from the next epoch on.",
    "The total number of epochs.",
)


def texts_of(language: str) -> list[str]:
    """Return the texts of a language, those for one and for many apart; names also as titles, and all languages."""
    known = {path.stem: json.loads(path.read_text("utf-8")) for path in (PAGE / "words").glob("*.json")}
    words = known[language]["words"]
    titles = [text[:1].upper() + text[1:] for key, text in words.items() if key.startswith("name.")]
    others = [f"{code.upper()}: {about['in']}" for code, about in known.items()]
    return [*(text for both in words.values() for text in both.split("|")), *titles, *others]


@pytest.mark.parametrize(("language", "turns", "connected"), [
    ("de", ["DE: auf Deutsch"], "verbunden"), ("fr", ["DE: auf Deutsch", "FR: en français"], "connecté"),
])  # fmt: skip
def test_no_view_has_a_text_in_english(
    training: Any, visit: Any, language: str, turns: list[str], connected: str
) -> None:
    window = visit()
    page = window.page
    page.goto(training.link)
    page.get_by_text("connected", exact=True).wait_for()
    for turn in turns:
        page.get_by_role("button", name=turn).click()
    page.reload()
    page.get_by_text(connected, exact=True).wait_for()
    assert page.locator("html").get_attribute("lang") == language
    page.set_viewport_size({"width": 1280, "height": 900})
    page.wait_for_timeout(500)
    assert page.evaluate(CUT) == []
    own = [pattern(text) for text in texts_of(language)]
    left: dict[str, list[str]] = {}
    links = page.locator("header nav").get_by_role("link")
    for view in [link.get_attribute("href") for link in links.all()]:
        page.evaluate("view => { location.hash = view; }", view)
        page.wait_for_timeout(1000)
        page.wait_for_function(f"() => ({SAID})().length > 20")  # a slow machine draws late
        said = page.evaluate(SAID)
        assert len(said) > 20, view
        left[view] = [one for one in said if one not in DOCS and not known(one, own)]
    assert {view: found for view, found in left.items() if found} == {}
    assert window.complaints == []


@pytest.mark.parametrize(("locale", "language"), [("fr-CA", "fr"), ("de-AT", "de"), ("en-GB", "en"), ("pt-BR", "en")])
def test_the_language_is_that_of_the_browser_if_there_is_a_file_of_it(
    training: Any, chromium: Any, locale: str, language: str
) -> None:
    context = chromium.new_context(locale=locale)
    page = context.new_page()
    page.goto(training.link)
    page.locator(f"html[lang={language}]").wait_for(state="attached")
    context.close()


def test_one_and_many_go_by_the_rules_of_the_language(training: Any, visit: Any) -> None:
    page = visit().page
    page.goto(training.link)
    said = page.evaluate("""async () => {
        const { setLanguage, t } = await import("./words.js");
        const say = (language) => {
            setLanguage(language);
            return [0, 1, 2, "1,234"].map((n) => t("find.count", { n }));
        };
        return [say("en"), say("fr"), say("none")];
    }""")
    english = ["0 results", "one result", "2 results", "1,234 results"]
    assert said == [english, ["un résultat", "un résultat", "2 résultats", "1,234 résultats"], english]


def pattern(text: str) -> re.Pattern[str]:
    """Return what a text may have become once its blanks are filled in."""
    parts = [re.escape(part) for part in re.split(r"\{\w+\}", text)]
    return re.compile("(.*?)".join(parts), re.DOTALL)


def known(text: str, german: list[re.Pattern[str]]) -> bool:
    """Return whether a text is made of German texts, and of names of the run."""
    if not WORD.search(text) or re.fullmatch(KERNEL, text, re.IGNORECASE):
        return True
    matched = (one.fullmatch(text) for one in german if WORD.search(one.pattern))
    if any(all(known(blank, german) for blank in one.groups()) for one in matched if one):
        return True
    bare = re.sub(r" \((?:Strg |Ctrl )?[^()]{1,2}\)$|^· |\.$", "", text)  # keys and signs
    ways = [[bare]] if bare != text else [parts for by in SIGNS if len(parts := text.split(by)) > 1]
    return any(all(known(part, german) for part in parts) for parts in ways)


@pytest.mark.parametrize(("text", "right"), [
    ("verbunden", True), ("connected", False), ("Zeile 7", True), ("row 7", False), ("2-dense", True),
    ("Zeile 7 of them", False), ("Verbunden · Zeile 7 (T)", False), ("verbunden · Zeile 7 (T)", True),
])  # fmt: skip
def test_english_is_told_from_german(text: str, right: bool) -> None:
    assert known(text, [pattern("verbunden"), pattern("Zeile {n}")]) is right
