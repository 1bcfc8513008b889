"""What a plugin was written for: former names that its classes define, and imports of what has moved."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path

from sigma_kernel.plugins.discovery import Plugin, normal
from sigma_kernel.plugins.kinds import problems
from sigma_kernel.plugins.rooms import current_import
from sigma_kernel.plugins.specs import API_VERSION, GROUP
from sigma_kernel.renaming import USES


def former_names(plugin: Plugin) -> list[str]:
    """Return a sentence for each member or argument that a class of a plugin has by a former name.

    Its components are imported: their classes say so, whatever version of the API the plugin states.
    """
    problems(plugin.components)  # of which another check tells
    own = {component.path.partition(".")[0] for component in plugin.components}
    uses = [
        (place.replace(":", "."), name)
        for place, names in USES.items()
        for name in names
        if place.partition(".")[0] in own
    ]
    stated = f"{plugin.name}: written for API {plugin.api}"
    return [
        f"{stated}: {name} ({place}). Use the new name, and state SIGMA_API = {API_VERSION!r}." for place, name in uses
    ]


def former_imports(files: Iterable[Path]) -> Iterator[str]:
    """Yield a sentence with the present line for each import, in Python files, of what has moved."""
    for path in files:
        for node in _nodes(path):
            if lines := [*_present_lines(node)]:
                yield f"{path}, line {node.lineno}: write {', '.join(lines)} for `{ast.unparse(node)}`."  # type: ignore[attr-defined]


def _nodes(path: Path) -> Iterator[ast.AST]:
    """Return the nodes of a Python file; none of another one, of which other checks tell."""
    try:
        return ast.walk(ast.parse(path.read_bytes(), path))
    except SyntaxError:
        return iter(())


def _present_lines(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.ImportFrom) and node.module and not node.level:
        by_module: dict[str, list[str]] = {}
        moved = [(name, current_import(f"{node.module}.{name.name}")) for name in node.names]
        for name, place in moved if any(place for _, place in moved) else ():
            module, _, now = (place or f"{node.module}.{name.name}").rpartition(".")
            local = name.asname or name.name
            by_module.setdefault(module, []).append(now if now == local else f"{now} as {local}")
        yield from (f"`from {module} import {', '.join(names)}`" for module, names in by_module.items())
    elif isinstance(node, ast.Import):
        moved = [(name, current_import(name.name)) for name in node.names]
        yield from (f"`import {place}{f' as {n.asname}' if n.asname else ''}`" for n, place in moved if place)


def folders(plugin: Plugin) -> Iterator[Path]:
    """Yield the folders of a plugin's packages, also of one that is quarantined; nothing of it is imported."""
    paths = [component.path for component in plugin.components]
    entries = (
        e for e in metadata.entry_points(group=GROUP) if e.dist and normal(e.dist.metadata["Name"]) == plugin.name
    )
    own = {path.partition(":")[0].partition(".")[0] for path in (*paths, *(entry.value for entry in entries))}
    for spec in map(find_spec, sorted(own)):
        yield from map(Path, (spec and spec.submodule_search_locations) or ())
