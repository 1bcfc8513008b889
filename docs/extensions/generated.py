"""Replace blocks such as a fence ``{generated} components layer`` by text that is generated from the code."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from extensions import commands, components, contracts, functions, gallery, published, rules

BLOCK = re.compile(r"^```\{generated\} (\w++) *+(.*+)\n```$", re.MULTILINE)
TEXTS: dict[str, Callable[[str], str]] = {
    "commands": commands.text,
    "components": components.text,
    "contract": contracts.text,
    "functions": functions.text,
    "kinds": contracts.table,
    "gallery": gallery.text,
    "ops": functions.table_of_ops,
    "published": published.text,
    "rules": rules.text,
    "template": contracts.template,
}


def expanded(page: str) -> str:
    """Return the text of a page with every block replaced by what it names, as MyST."""
    return BLOCK.sub(lambda found: TEXTS[found[1]](found[2]), page)


def _read(app: Any, name: str, source: list[str]) -> None:
    source[0] = expanded(source[0])


def _outdated(app: Any, env: Any, added: set[str], changed: set[str], removed: set[str]) -> list[str]:
    """Return the pages with such blocks: what they are generated from may have changed."""
    return [name for name in env.found_docs if BLOCK.search(Path(env.doc2path(name)).read_text("utf-8"))]


def setup(app: Any) -> dict[str, Any]:
    """Register the extension."""
    app.connect("source-read", _read)
    app.connect("env-get-outdated", _outdated)
    return {"parallel_read_safe": True}
