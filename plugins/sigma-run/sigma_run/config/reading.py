"""Read a configuration from a file or a recipe's text; raise one error that lists every mistake."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from attrs import asdict

from sigma_kernel.errors import SigmaConfigError, SigmaError
from sigma_kernel.plugins.catalogue import Catalogue, catalogue as installed
from sigma_kernel.plugins.dumping import Dumper
from sigma_kernel.settings.mistakes import Faults, Fragment, Mismatch, Wrong
from sigma_run.config.complaints import InText, complaint
from sigma_run.config.document import Document, Path as Place, override, parse, read
from sigma_run.config.loading import FileLoader
from sigma_run.config.schema import ArchitectureText, Configuration, Several, Single
from sigma_run.config.writing import UNWRITTEN
from sigma_training import notation

T = TypeVar("T")
OF_COMMANDS = ("search",)  # tables of a file that commands of plugins read, and check by their option ``--check``
_IN_TEXT = re.compile(r"architecture, line (?P<line>\d++), column (?P<column>\d++): ")


def load(
    source: Path | str, overrides: Iterable[str] = (), *, catalogue: Catalogue | None = None, name: str = "text"
) -> Configuration:
    """Read a configuration from a file (a path) or a text called ``name``, after overrides ``a.b.c=value``.

    Raises one SigmaConfigError with a line ``file:line: dotted.path: what is wrong`` for every mistake, or
    SigmaPluginError if the only mistakes are missing or broken plugins.
    """
    document = read(source) if isinstance(source, Path) else parse(source, name)
    for assignment in overrides:
        document = override(document, assignment)
    return load_configuration(document, catalogue or installed())


def load_configuration(
    document: Document,
    catalogue: Catalogue,
    beyond: Callable[[Catalogue, Mapping[str, Any], Fragment], list[tuple[Place, Exception]]] | None = None,
) -> Configuration:
    """Return the configuration of a document; if it has mistakes, ``beyond`` may find more in what could be read."""
    values = {name: value for name, value in document.values.items() if name not in OF_COMMANDS}
    catalogue = catalogue.recalling(document.plugins)
    if isinstance(left := values.get(UNWRITTEN), dict):
        what = "; ".join(f"{place}: {why}" for place, why in left.items())
        raise SigmaConfigError(
            f"{document.name}: some settings of this run could not be written: {what} Create its trainers again in "
            "Python, then call Environment.resume(RUN) and run()."
        )
    if isinstance(run := values.get("run", {}), dict):
        values["run"] = {"operator": "default:operator", **run}
        if "backend" not in run:
            values["run"]["backend"] = catalogue.default_computation()
    faults = Faults()
    with faults.locate("run", "prefer"):
        catalogue = catalogue.preferring(_read_preferences(values.get("run")))
    loader = _Loader(catalogue, document.folder)
    with faults.locate():
        cls = Several if "trainers" in values else Single
        configuration: Configuration = loader.load_record(values, cls)
        configuration.document = document
        if not faults.found:
            return configuration
        faults.fragments.update(asdict(configuration, recurse=False))
    more = beyond(catalogue, values, faults.fragments) if beyond else []
    raise complaint(document, [*faults.found, *more])


def load_table(document: Document, name: str, cls: type[T]) -> T:
    """Return a table of a document that is none of a configuration as an object of an attrs class.

    Raises one SigmaConfigError with a line for every mistake.
    """
    faults = Faults()
    with faults.locate(name):
        loaded: T = _Loader(installed(), document.folder).load_record(document.values.get(name, {}), cls)
        return loaded
    raise complaint(document, faults.found)


def _read_preferences(run: Any) -> Sequence[str]:
    """Return ``prefer`` of a table ``[run]``; other types are reported when the table is read."""
    names = run.get("prefer", ()) if isinstance(run, dict) else ()
    return names if isinstance(names, list) and all(isinstance(name, str) for name in names) else ()


class _Loader(FileLoader):
    """A reader of files that also parses architectures."""

    def load(self, value: Any, type_: Any) -> Any:
        """Load a value as a type."""
        return self._architecture(value) if type_ is ArchitectureText else super().load(value, type_)

    def _architecture(self, text: Any) -> ArchitectureText:
        """Return the text with every layer as ``distribution:name``; errors keep their line and column."""
        if not isinstance(text, str):
            raise Mismatch("a string", text)
        faults = Faults()
        with faults.locate():
            ends = notation.parse(text, self.look_up, faults)
        if faults.found:
            raise Wrong([(path, _in_text(error)) for path, error in faults.found])
        architecture = ArchitectureText(Dumper(self.catalogue).architecture(ends))
        architecture.ready.append(ends)
        return architecture


def _in_text(error: Exception) -> Exception:
    """Return an error in the text of an architecture with its line apart, so that the line of the file can be named."""
    match = _IN_TEXT.match(str(error))
    if match is None or not isinstance(error, SigmaError):
        return error
    return InText(int(match["line"]), f"column {match['column']}: {str(error)[match.end() :]}", error)
