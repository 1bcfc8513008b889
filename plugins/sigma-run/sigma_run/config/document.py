"""Parse TOML files with the line of every key, and apply ``--set`` overrides.

The standard library's parser gives the values and the messages for invalid TOML; tomlkit, which preserves the text,
gives the line numbers.
"""

from __future__ import annotations

import pathlib
import re
import tomllib
from collections.abc import Iterable, Mapping
from io import TextIOWrapper
from typing import Any

import tomlkit
from attrs import define, evolve, field, frozen
from tomlkit.exceptions import TOMLKitError
from tomlkit.items import AoT, Array, InlineTable, Item, Table

from sigma_kernel.errors import SigmaConfigError
from sigma_kernel.graph.reprs import brief
from sigma_kernel.settings.mistakes import Override, Place, format_path
from sigma_store.regular import open_regular

Path = Place

LONGEST, MOST = 1 << 20, 10_000  # characters and lines per file: the parsers take some 0.1 ms for each line
DEEPEST = 100  # levels of a key on the command line
_PLACE = re.compile(r" \(at (?:line (?P<line>\d++), column (?P<column>\d++)|end of document)\)$")
_BETWEEN = re.compile(r"(?:[\s,]++|#[^\n]*+)*+")  # separators and comments between two values of an array


@frozen
class Document:
    """The values of a file after overrides.

    ``places`` maps each path to its line, or to the option and path that set it; ``texts`` maps each string to the line
    on which its text begins; relative paths start in ``folder``. ``plugins`` are the versions that a run has used.
    """

    name: str
    values: dict[str, Any]
    places: Mapping[Path, int | tuple[str, Path]] = field(repr=False)
    texts: Mapping[Path, int] = field(repr=False)
    folder: pathlib.Path = field(factory=pathlib.Path.cwd, repr=False)
    plugins: Mapping[str, str] = field(factory=dict, repr=False)

    __repr__ = brief

    def describe(self, path: Path, text: str, text_line: int = 0, about: Path | None = None) -> tuple[int, str]:
        """Return a line number and ``file:line: dotted.path: text``, or 0 and ``--set dotted.path: text``.

        A path that is not in the file is reported at its nearest parent; ``text_line`` is that within a string. The
        text is ``about`` the path, or about the table in which it is.
        """
        origin = next((path[:n] for n in range(len(path), 0, -1) if path[:n] in self.places), ())
        place, about = self.places.get(origin, 1), path if about is None else about
        where = f"{format_path(about)}: " if about else ""
        if isinstance(place, tuple):
            return 0, f"{place[0]}: {where if about != place[1] else ''}{text}"
        line = place if text_line == 0 else self.texts[path] + text_line - 1
        return line, f"{self.name}:{line}: {where}{text}"


def read(path: pathlib.Path, regular: bool = False) -> Document:
    """Read a TOML file; raises SigmaConfigError if it cannot be read or parsed.

    With ``regular``, as in a run folder, it must be a regular file: links are not followed, and pipes not waited for.
    """
    try:
        with TextIOWrapper(open_regular(path) if regular else path.open("rb"), "utf-8-sig") as file:
            text = file.read(LONGEST + 1)
        return evolve(parse(text, str(path)), folder=path.absolute().parent)
    except OSError as error:
        raise SigmaConfigError(f"{path}: cannot be read: {error.strerror}.") from None
    except UnicodeDecodeError:
        raise SigmaConfigError(f"{path}: is not UTF-8 text, as TOML must be.") from None


def parse(text: str, name: str) -> Document:
    """Parse TOML; raises SigmaConfigError ``file:line: what is wrong`` if it is invalid."""
    for count, most, what in (len(text), LONGEST, "characters"), (text.count("\n"), MOST, "lines"):
        if count > most:
            raise SigmaConfigError(f"{name}: has more than {most:,} {what}. Keep data in separate files.")
    walk = _Walk()
    try:
        body = tomlkit.parse(text).body  # first, as it rejects deep nesting quickly
        values = tomllib.loads(text)
        walk.body((), body)
    except (ValueError, TOMLKitError, RecursionError) as error:
        raise SigmaConfigError(_broken(text, name, error)) from None
    return Document(name, values, walk.places, walk.texts)


def _broken(text: str, name: str, error: Exception) -> str:
    if isinstance(error, RecursionError) or "nested" in str(error):
        return f"{name}: is nested too deep to be a configuration."
    try:
        tomllib.loads(text)
    except ValueError as plainer:
        error = plainer
    place = _PLACE.search(str(error))
    line, column = (place["line"], place["column"]) if place else (None, None)
    where = f"{name}:{line or text.count(chr(10)) + 1}: invalid TOML"
    return f"{where}: {_PLACE.sub(f' (column {column})' if column else '', str(error))}"


@define
class _Walk:
    """Walk the items of a document in the order of its text, counting lines."""

    line: int = 1
    places: dict[Path, int | tuple[str, Path]] = field(factory=dict)
    texts: dict[Path, int] = field(factory=dict)

    def skip(self, text: str) -> None:
        self.line += text.count("\n")

    def note(self, path: Path) -> None:
        for depth in range(1, len(path) + 1):
            self.places.setdefault(path[:depth], self.line)

    def body(self, path: Path, body: Iterable[tuple[Any, Item]]) -> None:
        for key, item in body:
            if key is None:
                self.skip(item.as_string())
            elif isinstance(item, AoT):
                for index, table in enumerate(item.body):
                    self.table((*path, key.key, index), table)
            elif isinstance(item, Table):
                self.table((*path, key.key), item)
            else:
                self.skip(item.trivia.indent)
                self.note((*path, key.key))
                self.value((*path, key.key), item)
                self.skip(item.trivia.trail)

    def table(self, path: Path, table: Table) -> None:
        if table.display_name is not None:  # else it has no header: only nested headers or dotted keys name it
            self.skip(table.trivia.indent)
            self.note(path)
            self.places[path] = self.line  # also if a nested table came first
            self.skip(table.trivia.trail)
        self.body(path, table.value.body)

    def value(self, path: Path, item: Item) -> None:
        text = item.as_string()
        if isinstance(item, InlineTable):
            self.body(path, item.value.body)
        elif isinstance(item, Array):
            self.array(path, item, text)
        else:
            self.texts[path] = self.line + bool(re.match(r"(\"\"\"|''')\r?\n", text))
            self.skip(text)

    def array(self, path: Path, array: Array, text: str) -> None:
        at = 1
        for index, item in enumerate(array):
            between = _BETWEEN.match(text, at)
            assert between
            self.skip(between[0])
            self.note((*path, index))
            self.value((*path, index), item)
            at = between.end() + len(item.as_string())
        self.skip(text[at:])


# -- overrides ---------------------------------------------------------------------------------------------------------
def override(document: Document, assignment: str, option: str = "") -> Document:
    """Return the document with ``a.b.c=value`` applied; a component's name that gets settings becomes a table.

    ``option`` is the command-line option to name in errors, if it is not ``--set``.
    """
    key, equals, text = assignment.partition("=")
    if not equals or not key.strip():
        raise SigmaConfigError(f"--set {assignment}: expected KEY=VALUE, such as trainer.optimiser.learning_rate=0.1")
    path = parse_key(key.strip())
    values = _put(document.values, path, _value(format_path(path), text.strip()), format_path(path))
    kept = {place: line for place, line in document.places.items() if place[: len(path)] != path}
    above = [path[:n] for n in range(1, len(path) + 1) if path[:n] not in kept]  # including new tables
    said = (option or f"--set {format_path(path)}", path)
    return evolve(document, values=values, places={**kept, **dict.fromkeys(above, said)})


def parse_key(key: str) -> tuple[str, ...]:
    """Return the parts of a dotted TOML key; raise SigmaConfigError if it is none."""
    if key.count(".") >= DEEPEST:
        raise SigmaConfigError(f"--set {key}: is nested too deep to be a setting. Use a key such as run.seed.")
    try:
        table: Any = tomllib.loads(f"{key} = 0")
    except tomllib.TOMLDecodeError as error:
        raise SigmaConfigError(f"--set {key}: expected a key such as run.seed: {_PLACE.sub('', str(error))}") from None
    path: tuple[str, ...] = ()
    while isinstance(table, dict):
        (name, table), *more = table.items()
        if more:
            raise SigmaConfigError(f"--set {key}: expected one key")
        path = (*path, name)
    return path


def _value(key: str, text: str) -> Any:
    try:
        table = tomllib.loads(f"value = {text}")
        if set(table) == {"value"}:
            return _mark_overrides(table["value"])
    except RecursionError:
        raise SigmaConfigError(f"--set {key}: is nested too deep to be a setting (got {text}).") from None
    except ValueError as error:  # also for integers of more than 4,300 digits
        if text.startswith(("[", "{", '"', "'")):
            raise SigmaConfigError(f"--set {key}: {_PLACE.sub('', str(error))} (got {text})") from None
    return Override(text)  # a bare word


def _mark_overrides(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _mark_overrides(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return list(map(_mark_overrides, value))
    return Override(value) if isinstance(value, str) else value


def _put(table: Mapping[str, Any], path: tuple[str, ...], value: Any, key: str) -> dict[str, Any]:
    name, *rest = path
    if not rest:
        return {**table, name: value}
    below = table.get(name, {})
    below = {"type": below} if isinstance(below, str) else below
    if not isinstance(below, dict):
        raise SigmaConfigError(f"--set {key}: {name} is not a table (got {below!r})")
    return {**table, name: _put(below, tuple(rest), value, key)}
