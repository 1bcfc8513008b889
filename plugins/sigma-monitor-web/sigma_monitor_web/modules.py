"""Put the modules of the page together as the one module of a widget, for notebooks, which have no server of them.

A module imports others by addresses. Here they are files in memory: each gets an address when the widget is drawn,
after those that it imports. Each view has modules of its own, and so a state of its own.
"""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Iterator, Mapping

from sigma_monitor_web.files import WORDS, PageFile, page

ROOT = "notebook.js"
REPLACED = {"entering.js": "notebook/entering.js"}  # what a server does elsewhere
LANGUAGES = "languages.js"
SHEETS = ("tokens", "controls", "shell", "train", "lists", "media")  # of ``styles/``, in their order
TARGET = re.compile(r'(?<=from)\s*+"(\.{1,2}+/[^"]++)"')
SCRIPT = """// The page of Sigma in a notebook: modules in their order of import, and styles.
const MODULES = %s;
const STYLES = %s;

// Give each module an address, and import the last one.
async function load() {
  const addresses = new Map();
  for (const [path, text] of MODULES) {
    const linked = text.replace(/"@([^"]+)@"/g, (_, target) => JSON.stringify(addresses.get(target)));
    addresses.set(path, URL.createObjectURL(new Blob([linked], { type: "text/javascript" })));
  }
  const root = await import(addresses.get(MODULES.at(-1)[0]));
  for (const address of addresses.values()) URL.revokeObjectURL(address);
  return root;
}

export default { render: async (given) => (await load()).draw(given, STYLES) };
"""


def assemble_module(files: Mapping[str, PageFile] | None = None) -> str:
    """Return the text of the module of a widget."""
    files = page() if files is None else files
    modules = [[path, _link(path, _text(path, files))] for path in order_modules(ROOT, files)]
    styles = _scope("\n".join(files[f"styles/{name}.css"].body.decode() for name in SHEETS))
    return SCRIPT % (json.dumps(modules, ensure_ascii=False), json.dumps(styles, ensure_ascii=False))


def order_modules(root: str, files: Mapping[str, PageFile]) -> list[str]:
    """Return a module and all that it imports, each after those that it imports itself."""
    order: dict[str, None] = {}

    def visit(path: str) -> None:
        for target in _targets(path, _text(path, files)):
            if target not in order:
                visit(target)
        order.setdefault(path)

    visit(root)
    return [*order]


def _text(path: str, files: Mapping[str, PageFile]) -> str:
    """Return the text of a module; that of the languages has them in it."""
    if path == LANGUAGES:
        return f"export const KNOWN = {files[WORDS].body.decode()};\n"
    return files[path].body.decode()


def _resolve(path: str, target: str) -> str:
    """Return what a module imports, as a path of the page."""
    full = posixpath.normpath(posixpath.join(posixpath.dirname(path), target))
    return REPLACED.get(full, full)


def _targets(path: str, text: str) -> Iterator[str]:
    return (_resolve(path, target) for target in TARGET.findall(text))


def _link(path: str, text: str) -> str:
    """Return a module with the paths of what it imports, as places for their addresses."""
    return TARGET.sub(lambda match: f'"@{_resolve(path, match[1])}@"', text)


def _scope(styles: str) -> str:
    """Return styles of a page as those of a shadow root: its host is their root."""
    styles = re.sub(r':root\[(data-theme="\w++")\]', r":host([\1])", styles)
    return re.sub(r"^(?:html|body) (?=\{)", ":host ", styles.replace(":root", ":host"), flags=re.MULTILINE)
