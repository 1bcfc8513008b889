"""Hold the files of the page in memory, with their checksums; the files of words are one."""

from __future__ import annotations

import json
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path

from attrs import frozen

PAGE = Path(__file__).with_name("page")
WORDS = "words.json"  # of all languages, by their codes: each is a file of the folder ``words``
TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".woff2": "font/woff2",
}


@frozen
class PageFile:
    """A file, its media type and its ETag."""

    body: bytes
    type: str
    tag: str


def page(folder: Path = PAGE) -> Mapping[str, PageFile]:
    """Return the files of the page by their relative paths; no others are served."""
    paths = (path for path in sorted(folder.rglob("*")) if path.is_file() and path.suffix in TYPES)
    files = {path.relative_to(folder).as_posix(): file(path.read_bytes(), path.suffix) for path in paths}
    languages = {path.stem: json.loads(path.read_bytes()) for path in sorted(folder.glob("words/*.json"))}
    return {**files, WORDS: file(json.dumps(languages, ensure_ascii=False).encode(), ".json")}


def file(body: bytes, suffix: str) -> PageFile:
    """Return a file of the given content."""
    return PageFile(body, TYPES[suffix], f'"{sha256(body).hexdigest()[:32]}"')
