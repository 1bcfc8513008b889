"""The index of plugins: what has been published, with its kinds of component, its API and its version.

``index.json`` has a row for each plugin, sorted by distribution: the project's own rooms, generated from their records,
and those of other authors, written by hand. Nothing is read from a network.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from attrs import asdict, field, frozen

from sigma_kernel.errors import SigmaConfigError, suggest_name
from sigma_kernel.plugins.discovery import normal
from sigma_kernel.plugins.specs import API_VERSION, place_of

PATH = Path(__file__).with_name("index.json")
FORMS = {
    "name": re.compile(r"[a-z0-9]++(?:-[a-z0-9]++)*+"),
    "distribution": re.compile(r"[a-z0-9]++(?:-[a-z0-9]++)*+"),
    "version": re.compile(r"\d[\w.!+-]{0,50}"),
    "api": re.compile(r"\d++\.\d++"),
    "summary": re.compile(r"[^\n]{1,200}"),
}


@frozen
class IndexedPlugin:
    """A row of the index: names and version of a plugin, its API, and its components' names by kind."""

    name: str
    distribution: str
    version: str
    api: str
    summary: str
    kinds: Mapping[str, str] = field(factory=dict)

    @property
    def text(self) -> str:
        """Return all words that a search looks at."""
        kinds = (f"{kind} {names}" for kind, names in self.kinds.items())
        return " ".join([self.name, self.distribution, self.summary, *kinds]).lower()

    @property
    def release(self) -> str:
        """Return what an installer is asked for."""
        return f"{self.distribution}=={self.version}"


def read_index(path: Path = PATH) -> list[IndexedPlugin]:
    """Return the rows of an index; raises SigmaConfigError if the file is none."""
    try:
        document = json.loads(path.read_text("utf-8"))
        rows = document["plugins"] if document["format"] == 1 else None
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise SigmaConfigError(f"{path}: is not an index of plugins: {error!r:.100}. Pass another --index.") from error
    if not isinstance(rows, list):
        raise SigmaConfigError(f"{path}: is an index of another format than 1. Update sigma-run.")
    return [_read_row(row, f"{path}: plugins[{number}]") for number, row in enumerate(rows)]


def _read_row(row: Any, where: str) -> IndexedPlugin:
    """Return a row; raises SigmaConfigError for a malformed one, before an installer is given anything of it."""
    if not isinstance(row, dict) or row.keys() != {*FORMS, "kinds"}:
        raise SigmaConfigError(f"{where}: must have {', '.join(FORMS)} and kinds. Correct it.")
    for name, form in FORMS.items():
        if not isinstance(row[name], str) or not form.fullmatch(row[name]):
            raise SigmaConfigError(f"{where}.{name}: {row[name]!r:.60} is not of the form {form.pattern}. Correct it.")
    kinds = row["kinds"]
    if not row["summary"].isprintable():
        raise SigmaConfigError(f"{where}.summary: {row['summary']!r:.60} is not printable text. Correct it.")
    if not isinstance(kinds, dict) or not all(isinstance(names, str) for names in kinds.values()):
        raise SigmaConfigError(
            f'{where}.kinds: must have the names of components by kind, such as {{"layer": "gate"}}. Correct it.'
        )
    return IndexedPlugin(**row)


def search_index(rows: Iterable[IndexedPlugin], words: Sequence[str]) -> list[IndexedPlugin]:
    """Return the rows that have all words in their names, kinds, components or summaries, in any case."""
    return [row for row in rows if all(word.lower() in row.text for word in words)]


def find_row(rows: Sequence[IndexedPlugin], name: str) -> IndexedPlugin:
    """Return the row of a plugin by its distribution, or else its name; raises SigmaConfigError unless there is one."""
    wanted = normal(name)
    fitting = [row for row in rows if row.distribution == wanted] or [row for row in rows if row.name == wanted]
    if len(distributions := {row.distribution for row in fitting}) > 1:
        raise SigmaConfigError(
            f"plugin {name!r}: {' and '.join(sorted(distributions))} have this name. Write the one that you want."
        )
    if fitting:
        return fitting[0]
    hint = suggest_name(name, [row.distribution for row in rows]) or " `sigma plugins search WORD` lists some."
    raise SigmaConfigError(f"plugin {name!r}: the index has none of this name.{hint}")


def check_api(row: IndexedPlugin) -> None:
    """Raise SigmaConfigError if a plugin is for another major version of the API."""
    if row.api.partition(".")[0] != API_VERSION.partition(".")[0]:
        raise SigmaConfigError(
            f"{row.distribution} {row.version}: is for API {row.api}, this kernel has {API_VERSION}. Install another "
            "version of either."
        )


def list_rooms(folder: Path, offered: Mapping[str, Mapping[str, str]]) -> Iterator[IndexedPlugin]:
    """Yield the rows of the project's own rooms, given their folder in a clone, and what they offer."""
    for distribution, kinds in offered.items():
        project = tomllib.loads((folder / distribution / "pyproject.toml").read_text("utf-8"))["project"]
        name, about = distribution.removeprefix("sigma-"), project["description"]
        yield IndexedPlugin(name, distribution, project["version"], API_VERSION, about, kinds)


def update_index(folder: Path, offered: Mapping[str, Mapping[str, str]], path: Path = PATH) -> str:
    """Return the text of an index with the rows of the project's own rooms; those of others are unchanged."""
    rows = {row["distribution"]: row for row in json.loads(path.read_text("utf-8"))["plugins"]}
    rows |= {row.distribution: asdict(row) for row in list_rooms(folder, offered)}
    for row in rows.values():
        row["kinds"] = dict(sorted(row["kinds"].items(), key=lambda pair: place_of(pair[0])))
    return json.dumps({"format": 1, "plugins": [rows[name] for name in sorted(rows)]}, indent=1) + "\n"
