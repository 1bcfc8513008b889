"""The public signatures of the API, as a file that a test compares: ``python tests/signatures.py`` writes it again.

The file ``tests/api/<API_VERSION>.txt`` has one line for each public name, with its arguments. The command says what
has changed since it was written, and which version that asks for: *minor* for what is new, *major* if code that was
right may stop working. Until a version is released, its file is written again; a released one does not change, and
``API_VERSION`` rises first. ``--check`` writes nothing.

Where two branches have changed the file, merge the code, and run the command.
"""

from __future__ import annotations

import argparse
import ast
import inspect
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from importlib import import_module
from inspect import ismodule
from pathlib import Path
from typing import Any, NamedTuple

from sigma_kernel.graph import OPS
from sigma_kernel.plugins import specs
from sigma_kernel.plugins.specs import API_VERSION, KINDS
from sigma_kernel.renaming import Alias

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "tests" / "api"
GUIDE = ROOT / "docs" / "plugins.md"
VERSIONS = ROOT / "docs" / "api-versions.md"
COMMAND = "python tests/signatures.py"
EMPTY = inspect.Parameter.empty
CONTRACTS = {name for names in KINDS.values() for name in names.split()}


class Change(NamedTuple):
    """A difference of two snapshots, and the version that it asks for: ``minor`` or ``major``."""

    level: str
    text: str


# -- what there is -----------------------------------------------------------------------------------------------------
def modules() -> list[str]:
    """Return the modules that a plugin and its tests may import, as the guide lists them."""
    table = GUIDE.read_text("utf-8").partition("## What to import")[2].partition("\n## ")[0]
    names = [*re.findall(r"^\| `([\w.]+)` \|", table, re.MULTILINE), "sigma_testing"]
    there = {name: import_module(name) for name in names}
    inner = [
        value.__name__
        for m in there.values()
        for name in getattr(m, "__all__", ())
        if ismodule(value := getattr(m, name))
    ]
    return [*{*names, *inner}]


def snapshot(names: Iterable[str] = ()) -> dict[str, str]:
    """Return what is public in modules, by default all that plugins may import: descriptions by name, sorted."""
    rows: dict[str, str] = {}
    places: dict[int, str] = {}
    for module in names or sorted(
        modules(), key=lambda name: (-name.count("."), name)
    ):  # a thing belongs to the deepest
        for name, thing in public(module):
            place = places.setdefault(id(thing), f"{module}.{name}") if callable(thing) else f"{module}.{name}"
            rows[f"{module}.{name}"] = "= " + place if place != f"{module}.{name}" else describe(name, thing)
            if inspect.isclass(thing) and place == f"{module}.{name}":
                rows |= {f"{place}.{member}": text for member, text in members(thing)}
    return dict(sorted((rows if names else rows | table()).items()))


def public(module: str) -> Iterator[tuple[str, Any]]:
    """Yield the public names of a module: those that it exports, or else those that it defines or imports ``as``."""
    there = import_module(module)
    defined = there.__all__ if hasattr(there, "__all__") else _defined(Path(str(there.__file__)))
    for name in sorted({*defined}):
        if not name.startswith("_") and not ismodule(getattr(there, name)):
            yield name, getattr(there, name)


def _defined(path: Path) -> Iterator[str]:
    body = ast.parse(path.read_text("utf-8")).body
    for node in (*body, *(inner for outer in body if isinstance(outer, ast.If) for inner in outer.body)):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.ImportFrom):
            yield from (alias.asname for alias in node.names if alias.asname == alias.name)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            yield from (part.id for each in targets for part in ast.walk(each) if isinstance(part, ast.Name))


def describe(name: str, thing: Any) -> str:
    """Describe a public object: a class that plugins fulfil, another class, a function, or a value."""
    if is_row(thing):
        return f"op {arguments(thing.shape)}"
    if inspect.isclass(thing):
        form = "protocol" if is_protocol(thing) else "contract" if is_fulfilled(name, thing) else "class"
        return f"{form} {'' if is_protocol(thing) or issubclass(thing, BaseException) else arguments(thing)}".rstrip()
    return f"function {arguments(thing)}{_former(thing)}" if callable(thing) else "value"


def is_protocol(thing: type) -> bool:
    """Return whether a class describes what the kernel passes to plugins; they need not inherit from it."""
    return getattr(thing, "_is_protocol", False)


def is_row(thing: Any) -> bool:
    """Return whether an object is a row of the op table."""
    return getattr(thing, "name", None) in OPS and OPS[thing.name] is thing


def is_fulfilled(name: str, thing: type) -> bool:
    """Return whether plugins define classes of this kind: it has abstract methods, or is the contract of a kind."""
    return name in CONTRACTS or bool(getattr(thing, "__abstractmethods__", ()))


def members(cls: type) -> Iterator[tuple[str, str]]:
    """Yield the public methods and attributes of a class, also those of its bases, but not tests of suites."""
    own = [base for base in cls.__mro__ if base.__module__.startswith("sigma_")]
    names = {name for base in own for name in (*vars(base), *inspect.get_annotations(base))}
    for name in sorted(names):
        if not name.startswith(("_", "test_")):
            yield name, _describe_member(inspect.getattr_static(cls, name, None))


def _describe_member(member: Any) -> str:
    abstract = "abstract " if getattr(member, "__isabstractmethod__", False) else ""
    if isinstance(member, Alias):
        return f"alias of {member.rename.new}"
    if isinstance(member, classmethod | staticmethod):
        return f"{abstract}{type(member).__name__.removesuffix('method')} method {arguments(member.__func__)}"
    is_method = inspect.isfunction(member)
    return f"{abstract}method {arguments(member)}{_former(member)}" if is_method else f"{abstract}attribute"


def _former(function: Any) -> str:
    """Return which arguments also have former names."""
    return "".join(f" formerly {old}={new}" for old, new in getattr(function, "former", {}).items())


def arguments(thing: Any) -> str:
    """Return the arguments of a function or a class without types: ``(x, *, axis=...)``; those of others are open."""
    try:
        parameters = [*inspect.signature(thing).parameters.values()]
    except (TypeError, ValueError):
        return "(*_, **__)"
    shown = [p.replace(annotation=EMPTY, default=EMPTY if p.default is EMPTY else Dots()) for p in parameters]
    return str(inspect.Signature([p for p in shown if p.name not in ("self", "cls")]))


class Dots:
    """The default value of an argument, whatever it is."""

    def __repr__(self) -> str:
        return "..."


def table() -> dict[str, str]:
    """Return the rows of the op table, the kinds of components, and the hook specifications."""
    ops = {f"op {name}": arguments(row.shape) for name, row in OPS.items() if ":" not in name}
    kinds = {f"kind {kind}": f"fulfils {contracts or 'a callable'}" for kind, contracts in KINDS.items()}
    hooks = {name: spec for name, spec in vars(specs).items() if hasattr(spec, "sigma_kernel_spec")}
    return ops | kinds | {f"hookspec {name}": arguments(spec) for name, spec in hooks.items()}


# -- what has changed --------------------------------------------------------------------------------------------------
def compare(old: Mapping[str, str], new: Mapping[str, str]) -> list[Change]:
    """Return the changes from one snapshot to another, by name."""
    changes = [Change("major", f"{name} is gone") for name in old if name not in new]
    for name, text in new.items():
        if name not in old:
            owner = name.rpartition(".")[0]
            breaks = text.startswith("abstract") and owner in old
            rule = f", and {owner} cannot be made without it" if breaks else ""
            changes.append(Change("major" if breaks else "minor", f"{name} is new: {text}{rule}"))
        elif text != old[name]:
            fulfilled = new.get(name.rpartition(".")[0], "").startswith("contract")
            level = "minor" if still_works(old[name], text, fulfilled) else "major"
            changes.append(Change(level, f"{name} was {old[name]}, and is {text}"))
    return sorted(changes, key=lambda change: change.text)


def still_works(old: str, new: str, fulfilled: bool) -> bool:
    """Return whether code for an old description works with a new one: callers, and those who ``fulfil`` a method."""
    for former, now in re.findall(r" formerly (\w+)=(\w+)", new):
        old = re.sub(rf"\b{former}\b", now, old)
    old, new = (text.partition(" formerly")[0] for text in (old, new))
    (before, _, given), (after, _, taken) = old.partition("("), new.partition("(")
    if after.startswith("alias"):  # the old name goes on
        return True
    if before.removeprefix("abstract ") != after:  # another form, or abstract now
        return False
    return given == taken or (not fulfilled and _takes_more(f"({given}", f"({taken}"))


def _takes_more(old: str, new: str) -> bool:
    """Return whether every call with the old arguments is one with the new arguments, too."""
    before, after = (ast.parse(f"def f{text}: ...").body[0].args for text in (old, new))  # type: ignore[attr-defined]
    names, others = ([x.arg for x in (*a.posonlyargs, *a.args)] for a in (before, after))
    required, needed = len(names) - len(before.defaults), len(others) - len(after.defaults)
    by_name, optional = _by_name(before), {n for n, has in _by_name(after).items() if has} | {*others[needed:]}
    return (
        others[: len(names)] == names
        and needed <= required
        and {*by_name} <= {*others, *_by_name(after)}
        and {n for n, has in by_name.items() if has} <= optional
        and {n for n, has in _by_name(after).items() if not has} <= {n for n, has in by_name.items() if not has}
        and (before.vararg is None or after.vararg is not None)
        and (before.kwarg is None or after.kwarg is not None)
    )


def _by_name(arguments: ast.arguments) -> dict[str, bool]:
    """Return whether each argument that is given by name alone has a default."""
    return {x.arg: has is not None for x, has in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)}


def required_level(changes: Iterable[Change]) -> str:
    """Return the version that changes ask for together; empty if there are none."""
    levels = {change.level for change in changes}
    return "major" if "major" in levels else "minor" if levels else ""


# -- files -------------------------------------------------------------------------------------------------------------
def read(version: str) -> dict[str, str]:
    """Return the snapshot of a version of the API; empty if it has none yet."""
    path = FOLDER / f"{version}.txt"
    lines = path.read_text("utf-8").splitlines() if path.exists() else ()
    return {name: text for name, _, text in (line.partition(": ") for line in lines)}


def write(rows: Mapping[str, str]) -> None:
    """Write the snapshot of this version of the API."""
    lines = "".join(f"{name}: {text}\n" for name, text in rows.items())
    (FOLDER / f"{API_VERSION}.txt").write_text(lines, "utf-8")


def releases() -> dict[str, tuple[str, bool]]:
    """Return the versions of the API by those of the kernel, and whether these are released, as the docs say."""
    rows = re.findall(r"^\| ([\d.]+) \| ([\d.]+) \| (.+?) \|$", VERSIONS.read_text("utf-8"), re.MULTILINE)
    return {kernel: (version, when != "not released") for kernel, version, when in rows}


def main(given: list[str]) -> int:
    """Say what has changed, and write the snapshot again."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing; exit with 1 if something has changed")
    check, rows = parser.parse_args(given).check, snapshot()
    changes = compare(read(API_VERSION), rows)
    for change in changes:
        print(f"{change.level}: {change.text}")
    if changes and not check and (API_VERSION, True) in releases().values():
        print(f"API {API_VERSION} is released. Raise API_VERSION: these changes are {required_level(changes)}.")
        return 1
    if not check:
        write(rows)
    return int(check and bool(changes))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
