"""Generate stub files (``.pyi``) for lazy exports, and the table of the rooms' components.

Run this in the root of a project whose packages are installed in editable mode (``pip install -e``)::

    python -m sigma_testing.generate

Every package with lazy exports gets an ``__init__.pyi``, which shows its names to type checkers and editors. In
Sigma's own project, the names of the rooms' components and the summaries of their commands are written to
``sigma_kernel/plugins/rooms.json``, and those of elementwise ops to ``sigma_kernel/functions.py``; the index of plugins
gets their rows.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from pkgutil import walk_packages
from textwrap import fill

from sigma_kernel import functions
from sigma_kernel.graph import ops
from sigma_kernel.lazy import HEADER, Exports
from sigma_kernel.plugins import rooms
from sigma_kernel.plugins.catalogue import catalogue
from sigma_kernel.plugins.discovery import Plugin, requires


def packages() -> Iterator[str]:
    """Yield the packages of the kernel, of the suites, of what users import, and of all ready plugins."""
    yield from (name for name in ("sigma_kernel", "sigma_testing", "sigma_ml", "sigma_step") if find_spec(name))
    for plugin in catalogue().plugins:
        yield from {component.path.partition(".")[0]: None for component in plugin.components}


def package_names(package: str) -> Iterator[str]:
    """Yield the names of a package and its subpackages."""
    yield package
    inside = walk_packages(import_module(package).__path__, f"{package}.")
    yield from (module.name for module in inside if module.ispkg)


def stubs(package: str) -> dict[Path, str]:
    """Return the text of every stub of a package and its subpackages, by path."""
    names = [vars(import_module(name)) for name in package_names(package)]
    return {
        Path(namespace["__file__"]).with_suffix(".pyi"): stub(namespace["__getattr__"], "__version__" in namespace)
        for namespace in names
        if isinstance(namespace.get("__getattr__"), Exports)
    }


def stub(exports: Exports, versioned: bool = False) -> str:
    """Return the stub of a package: its lazy exports as imports."""
    rows = sorted((module, name) for name, module in exports.places.items())
    version = "\n__version__: str\n" if versioned else ""
    return HEADER + "".join(f"from {module} import {name} as {name}\n" for module, name in rows) + version


def table(plugins: Iterable[Plugin]) -> str:
    """Return the text of ``rooms.json``, updated with the components of some rooms; other entries are unchanged."""
    document = json.loads(rooms.PATH.read_text("utf-8"))
    plugins = [*plugins]
    for plugin in plugins:
        kinds: dict[str, list[str]] = {}
        for record in plugin.components:
            kinds.setdefault(record.kind, []).append(record.name)
        document["offered"][plugin.name] = {kind: " ".join(names) for kind, names in kinds.items()}
        document["planned"].pop(plugin.name, None)
        called = [record for record in plugin.components if record.kind in ("verb", "command")]
        if called:
            document["commands"][plugin.name] = {record.name: record.summary for record in called}
    for record in (record for plugin in plugins for record in plugin.components if record.default_for):
        document["defaults"].setdefault(record.kind, {})[record.default_for] = record.full_name
    for record in (record for plugin in plugins for record in plugin.components if record.formerly):
        document["moved"].setdefault(record.kind, {})[record.formerly] = record.full_name
    if required := requires("sigma-ml"):
        document["default_set"] = " ".join(name for name in sorted(required) if name in document["offered"])
    for part in ("commands", "defaults", "moved", "offered"):
        document[part] = dict(sorted(document[part].items()))
    return json.dumps(document, indent=2) + "\n"


def reexports() -> str:
    """Return the text of the module of graph functions, with the list of elementwise ops that type checkers read."""
    names = " ".join(f"{name}|as|{name}," for name in sorted(row.name for row in ops.without_attributes()))
    listed = fill(names, 120, initial_indent=" " * 8, subsequent_indent=" " * 8, break_on_hyphens=False)
    begin = "if TYPE_CHECKING:"
    head, rest = Path(str(functions.__file__)).read_text("utf-8").split(begin)
    opening, _, old = rest.partition("import (\n")
    after = old.partition("    )  #")[2]
    return "".join([head, begin, opening, "import (\n", listed.replace("|", " "), "\n    )  #", after])


def generated_files(root: Path) -> dict[Path, str]:
    """Return the text of every generated file of the packages below a directory, by path."""
    texts = {path: text for package in packages() for path, text in stubs(package).items()}
    texts[Path(str(functions.__file__))] = reexports()
    own = catalogue().plugins
    texts[rooms.PATH] = table(plugin for plugin in own if _lies_below(plugin, root))
    if find_spec("sigma_run") and rooms.PATH.is_relative_to(root):
        index = import_module("sigma_run.published.index")
        texts[index.PATH] = index.update_index(rooms.CLONE, json.loads(texts[rooms.PATH])["offered"])
    return {path: text for path, text in texts.items() if path.is_relative_to(root)}


def _lies_below(plugin: Plugin, root: Path) -> bool:
    packages = {component.path.partition(".")[0] for component in plugin.components}  # empty for a broken plugin
    return any(Path(str(import_module(name).__file__)).is_relative_to(root) for name in packages)


if __name__ == "__main__":
    for file, text in generated_files(Path.cwd()).items():
        if not file.exists() or file.read_text("utf-8") != text:
            file.write_text(text, "utf-8")
            print(file)
