"""Look through built pages: targets of links, alternatives of images, and what small screens need."""

from __future__ import annotations

from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class Page(HTMLParser):
    """The links, anchors and images of a page, and whether it has a viewport."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.anchors: set[str] = set()
        self.silent: list[str] = []
        self.viewport = False
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note what a tag says."""
        given = {name: value or "" for name, value in attrs}
        self.anchors |= {given["id"]} if "id" in given else set()
        self.links += [given["href"]] if tag == "a" and "href" in given else []
        self.silent += [given.get("src", "")] if tag == "img" and not given.get("alt") else []
        self.viewport |= tag == "meta" and given.get("name") == "viewport" and "device-width" in given["content"]


def faults(folder: Path) -> Iterator[str]:
    """Yield what is wrong with the pages of a folder; those with source code are Sphinx's own."""
    written = (path.resolve() for path in folder.rglob("*.html") if "_modules" not in path.parts)
    pages = {path: Page(path.read_text("utf-8")) for path in written}
    for path, page in pages.items():
        name = path.relative_to(folder.resolve())
        yield from (f"{name}: no text for the image {source[:60]}" for source in page.silent)
        if not page.viewport:
            yield f"{name}: no viewport for small screens"
        for link in page.links:
            address = urlsplit(link)
            target = (path.parent / unquote(address.path)).resolve() if address.path else path
            if address.scheme or address.netloc:
                continue
            if not target.exists():
                yield f"{name}: {link} leads nowhere"
            elif address.fragment and target in pages and unquote(address.fragment) not in pages[target].anchors:
                yield f"{name}: {link} has no such place"
