"""Problems of an installed plugin, for ``sigma plugins doctor`` and ``sigma plugins check``."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterable, Iterator
from functools import cache
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path

from packaging.requirements import Requirement

from sigma_kernel.graph.node import MEANINGS, OPS
from sigma_kernel.plugins.discovery import Plugin, normal, requires
from sigma_kernel.plugins.kinds import problems as broken
from sigma_kernel.plugins.rooms import install, names, offers
from sigma_kernel.plugins.specs import VERBS, Component
from sigma_run.launcher.group import COMMANDS
from sigma_run.launcher.written import folders, former_imports, former_names


def problems(plugin: Plugin) -> list[str]:
    """Return why a plugin, or one of its components, cannot be used; its components are imported."""
    lacks = [*unmet(plugin.name)]
    moved = former_imports(path for folder in folders(plugin) for path in sorted(folder.rglob("*.py")))
    if plugin.reason:
        remedy = f"Update it ({install(plugin.name, '-U')}) or uninstall it."
        if plugin.reason.endswith(kernel := "sigma-kernel"):  # of a newer API
            remedy = f"{install(kernel, '-U')}"
        said = f"{plugin.name}: {plugin.reason}{'' if plugin.reason.endswith(('?', '!')) else '.'} {remedy}"
        return [said, *lacks, *moved]
    messages: list[str] = broken(plugin.components)
    return [*lacks, *(messages or unusable(plugin.components)), *moved]


def notes(plugin: Plugin, others: Iterable[Plugin]) -> list[str]:
    """Return warnings that do not prevent the use of a plugin."""
    warned = [f"{plugin.name}: {plugin.warning}"] if plugin.warning else []
    return [*warned, *former_names(plugin), *clashes(plugin, others), *undeclared_imports(plugin)]


# -- components --------------------------------------------------------------------------------------------------------
def unusable(components: Iterable[Component]) -> Iterator[str]:
    """Yield the ops among imported components that no backend could compute."""
    offered = list(components)
    kernels = {c.name.partition(".")[0] for c in offered if c.kind == "lowering"}
    for c in (c for c in offered if c.kind == "op"):
        row = OPS.get(c.full_name)
        if row is None:
            yield f"op {c.full_name!r}: {c.path} defines no op of this name. Pass {c.full_name!r} to op()."
        elif row.expansion is None and row.name not in MEANINGS and c.name not in kernels:
            yield f"op {c.full_name!r}: it has no expansion, meaning or lowering. Give it one of them."


def clashes(plugin: Plugin, others: Iterable[Plugin]) -> Iterator[str]:
    """Yield the names of a plugin that other plugins offer as well."""
    offered = {(c.kind, c.name): c for c in plugin.components}
    for c in (c for other in others if other.name != plugin.name for c in other.components):
        if mine := offered.get((c.kind, c.name)):
            yield f"{c.kind} {c.name!r}: {c.distribution} offers it, too. Write {mine.full_name!r} in a file."


# -- commands ----------------------------------------------------------------------------------------------------------
def unreachable_commands(plugin: Plugin) -> Iterator[str]:
    """Yield the commands of a plugin that its users cannot call as it offers them."""
    verbs = {c.name: c.path for c in plugin.components if c.kind == "verb"}
    declared = {e.name: e.value for e in metadata.entry_points(group=VERBS) if _is_of(e, plugin)}
    own = {*COMMANDS, *names("verb")} if plugin.name not in offers() else {*COMMANDS}
    for c in plugin.components:
        if c.kind in ("verb", "command") and c.name in own:
            yield (
                f"{c.kind} {c.full_name!r}: `sigma {c.name}` is a command of Sigma's own, and this one is "
                f"`sigma {c.full_name}`. Give it another name."
            )
    for name, path in declared.items() if plugin.state == "ready" else ():
        if verbs.get(name) != path:
            yield (
                f"{plugin.name}: its metadata declare the command {name!r}, but no record of the kind verb has this "
                f"name and the path {path}. Add the record, or remove the entry point."
            )


def _is_of(entry: metadata.EntryPoint, plugin: Plugin) -> bool:
    return entry.dist is not None and normal(entry.dist.metadata["Name"]) == plugin.name


# -- requirements ------------------------------------------------------------------------------------------------------
def requirements(name: str) -> list[Requirement]:
    """Return the requirements of an installed distribution, extras included; none without metadata."""
    try:
        return [Requirement(text) for text in metadata.requires(name) or ()]
    except metadata.PackageNotFoundError:
        return []


def unmet(name: str) -> Iterator[str]:
    """Yield the requirements of a distribution that are not installed in a version that fits."""
    for needed in requirements(name):
        if needed.marker is None or needed.marker.evaluate({"extra": ""}):
            try:
                version = metadata.version(needed.name)
            except metadata.PackageNotFoundError:
                yield f"{name}: requires {needed.name}, which is not installed. {_remedy(needed)}"
                continue
            if not needed.specifier.contains(version, prereleases=True):
                yield f"{name}: requires {needed.name} {needed.specifier}; {version} is installed. {_remedy(needed)}"


def _remedy(needed: Requirement) -> str:
    room = normal(needed.name) in offers()
    return install(normal(needed.name)) if room else f"python -m pip install '{needed.name}{needed.specifier}'"


def undeclared_imports(plugin: Plugin) -> Iterator[str]:
    """Yield the installed distributions that a plugin imports and does not require.

    Requirements of an extra may be imported in functions, and in modules that define no component.
    """
    declared = {plugin.name, *requires(plugin.name)}
    optional = {normal(needed.name) for needed in requirements(plugin.name)} - declared
    own = {re.split("[.:]", c.path)[0] for c in plugin.components}
    try:
        begun = filter(None, map(find_spec, {c.path.partition(":")[0] for c in plugin.components}))
        at_once = imported_modules((Path(spec.origin) for spec in begun if spec.origin), inner=False)
        folders = (folder for spec in map(find_spec, own) if spec for folder in spec.submodule_search_locations or ())
        modules = imported_modules(path for folder in folders for path in Path(folder).rglob("*.py"))
    except SyntaxError as error:
        yield f"{plugin.name}: {error.filename}, line {error.lineno}: {error.msg}. Update it."
        return
    for module in sorted(modules - own - sys.stdlib_module_names):
        providers = {normal(name) for name in _providers().get(module, ())}
        if providers and not providers & (declared if module in at_once else declared | optional):
            extra = "" if module in at_once else ", or those of an extra"
            text = f"imports {module} without requiring {min(providers)}. Add it to the dependencies{extra}"
            yield f"{plugin.name}: {text}, and install the plugin again."


def imported_modules(files: Iterable[Path], inner: bool = True) -> set[str]:
    """Return the top-level names of the modules that Python files import, ``inner``: also in functions."""
    trees = [ast.parse(path.read_bytes(), path) for path in files]
    nodes = [node for tree in trees for node in (ast.walk(tree) if inner else tree.body)]
    plain = {name.name for node in nodes if isinstance(node, ast.Import) for name in node.names}
    named = {node.module for node in nodes if isinstance(node, ast.ImportFrom) and node.module and not node.level}
    return {name.partition(".")[0] for name in plain | named}


@cache
def _providers() -> dict[str, list[str]]:
    return dict(metadata.packages_distributions())
