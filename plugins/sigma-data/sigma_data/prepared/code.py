"""Hash the code that a class runs: its package or module with those that it imports, or what was typed in."""

from __future__ import annotations

import ast
import hashlib
import inspect
import pickle
import pickletools
import site
import sys
import sysconfig
from collections.abc import Iterable, Iterator
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, packages_distributions, version
from importlib.util import find_spec
from pathlib import Path
from textwrap import dedent
from types import ModuleType
from typing import Any
from uuid import uuid4

TYPED = "__main__"  # the module of a script, or of what was typed in
ASIDE = {*sys.stdlib_module_names, "sigma_data", "sigma_kernel"}  # packages that are hashed or versioned elsewhere
SITES = (
    *site.getsitepackages(),
    site.getusersitepackages(),
    *map(sysconfig.get_path, ("stdlib", "purelib", "platlib")),
)
INSTALLED = tuple(map(Path, SITES))
CODE = (".py", ".so")
PROTOCOL = 3  # of pickle: the last one that writes the module of each function and class next to its name
UNKNOWN = (AttributeError, OSError, OverflowError, RecursionError, SyntaxError, TypeError, ValueError,
           pickle.PicklingError)  # fmt: skip # whatever is raised where a source or a value cannot be told


def hash_code(cls: type) -> str:
    """Return a hash of the package or module of a class and of all that these import; of installed ones, of versions.

    Of a class in a script or a notebook, it is a hash of its source and of all that it names there, also of the
    packages of functions and classes within values.  Imports are found in the text, also within functions, but not
    those of names that are computed.  Where there is no source, the hash is a random number.
    """
    if cls.__module__ != TYPED:
        return _hash_imports(frozenset([_find_package(cls.__module__)]))
    try:
        typed, packages = _collect_typed(cls)
    except UNKNOWN:
        return uuid4().hex
    return _hash_texts({**typed, "imports": _hash_imports(frozenset(packages)).encode()})


@lru_cache
def hash_package(name: str) -> str:
    """Return a hash of all modules of a package, or of a module."""
    return _hash_texts(_read_package(name))


@lru_cache
def _hash_imports(packages: frozenset[str]) -> str:
    """Return a hash of packages and of all that these import."""
    waiting, texts, seen = [*packages], dict[str, bytes](), set[str]()
    while waiting:
        package = waiting.pop()
        if package in seen or package in ASIDE - packages:
            continue
        seen.add(package)
        if package not in packages and _is_installed(package):
            texts[package] = _read_version(package).encode()
            continue
        own = _read_package(package)
        texts |= own
        waiting += (name for text in own.values() for name in _list_imports(text))
    return _hash_texts(texts)


def _hash_texts(texts: dict[str, bytes]) -> str:
    digest = hashlib.sha256()
    for name, text in sorted(texts.items()):
        digest.update(f"{name}\0{len(text)}\0".encode() + text)
    return digest.hexdigest()


def _find_package(module: str) -> str:
    return module.partition(".")[0]


# -- packages ----------------------------------------------------------------------------------------------------------
def _read_package(name: str) -> dict[str, bytes]:
    """Return the content of each module of a package, or of a module, by a name; nothing if it is not there."""
    roots = _list_roots(name)
    files = {path.relative_to(root): path for root in roots for path in _list_code(root)}
    return {f"{name}/{short}": path.read_bytes() for short, path in files.items()}


def _list_code(root: Path) -> list[Path]:
    """Return the files of code below a folder, hidden ones left out; or the file itself, below its folder."""
    if root.is_file():
        return [root]
    return [
        path for path in sorted(root.rglob("*"))
        if path.suffix in CODE and path.is_file() and not any(
            part.startswith(".") or part == "site-packages" for part in path.relative_to(root).parts
        )
    ]  # fmt: skip


def _list_roots(name: str) -> list[Path]:
    """Return the folders of a package, or the file of a module; none of one that is not there or has no file."""
    module: Any = sys.modules.get(name)
    spec = getattr(module, "__spec__", None)
    if module is None:
        try:
            spec = find_spec(name)
        except (ImportError, ValueError):
            return []
    folders = getattr(module, "__path__", None) or getattr(spec, "submodule_search_locations", None)
    file = getattr(module, "__file__", None) or getattr(spec, "origin", None)
    return [Path(path) for path in folders or filter(None, [file]) if Path(path).exists()]


def _is_installed(name: str) -> bool:
    return any(root.is_relative_to(folder) for root in _list_roots(name) for folder in INSTALLED)


def _read_version(package: str) -> str:
    """Return the version of an installed package; empty if none is known."""
    try:
        return version(package)
    except PackageNotFoundError:
        return " ".join(map(version, sorted({*packages_distributions().get(package, ())})))


def _list_imports(text: bytes) -> Iterator[str]:
    """Yield the packages that the text of a module imports; nothing of what is no Python."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (_find_package(alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield _find_package(node.module)


# -- what was typed in -------------------------------------------------------------------------------------------------
def _collect_typed(cls: type) -> tuple[dict[str, bytes], set[str]]:
    """Return the sources and values that a class in a script names, by name, and the packages that it names."""
    names = vars(sys.modules[TYPED])
    waiting: list[tuple[str, Any]] = [(cls.__name__, cls)]
    texts, packages = dict[str, bytes](), set[str]()
    while waiting:
        name, value = waiting.pop()
        if name in texts:
            continue
        value = inspect.unwrap(value) if callable(value) else value
        home = value.__name__ if isinstance(value, ModuleType) else getattr(value, "__module__", None)
        if inspect.isclass(value) or inspect.isfunction(value) or isinstance(value, ModuleType):
            if home != TYPED:
                packages.add(_find_package(str(home)))
                continue
            source = dedent(inspect.getsource(value))
            texts[name] = source.encode()
            packages |= {*_list_imports(texts[name])}
            waiting += ((other, names[other]) for other in _list_names(source) if other in names)
        else:
            texts[name] = pickled = _pickle(_order_sets(value))
            if TYPED.encode() in pickled:  # an object of a class that was typed in, whose source is not told
                raise pickle.PicklingError(name)
            named = _list_pickled(pickled) - ASIDE
            texts |= {f"{package} version": _read_version(package).encode() for package in filter(_is_installed, named)}
            packages |= {package for package in named if not _is_installed(package)}
    return texts, packages


def _pickle(value: Any) -> bytes:
    return pickle.dumps(value, PROTOCOL)


def _order_sets(value: Any) -> Any:
    """Return a value with lists for the sets within, whose order differs from one process to the next."""
    kind = type(value)
    if kind in (set, frozenset):
        return kind, sorted(map(_order_sets, value), key=_pickle)
    if kind is dict:
        return kind, [(_order_sets(key), _order_sets(own)) for key, own in value.items()]
    return kind(map(_order_sets, value)) if kind in (list, tuple) else value


def _list_pickled(pickled: bytes) -> set[str]:
    """Return the packages of the functions and classes that a pickle refers to."""
    operations = pickletools.genops(pickled)
    return {_find_package(str(names).partition(" ")[0]) for code, names, _ in operations if code.name == "GLOBAL"}


def _list_names(source: str) -> Iterable[str]:
    return {node.id for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Name)}
