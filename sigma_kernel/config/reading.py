"""Read a configuration: a file, or the text of a recipe, becomes choices, or one error that holds every mistake."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import attrs
from cattrs import Converter

from sigma_kernel import notation
from sigma_kernel.architecture import write
from sigma_kernel.config import schema
from sigma_kernel.config.choice import Setting, settings
from sigma_kernel.config.document import Document, Path as Place, override, parse, read
from sigma_kernel.config.structure import (
    WRONG,
    Faults,
    Mismatch,
    component,
    filled,
    kind_of,
    located,
    make_converter,
    mistakes,
    sentence,
)
from sigma_kernel.errors import SigmaConfigError, SigmaError, SigmaPluginError
from sigma_kernel.plugins import Catalogue, catalogue as installed

_IN_TEXT = re.compile(r"architecture, line (?P<line>\d+), column (?P<column>\d+): ")
_TABLES = (schema.Run, schema.Network, schema.Training, schema.Trainer, schema.File, schema.Files)


def load(
    source: Path | str,
    overrides: Iterable[str] = (),
    *,
    catalogue: Catalogue | None = None,
    name: str = "configuration",
) -> schema.Configuration:
    """Return the configuration that a file (a path) or a text holds, after overrides ``a.b.c=value``.

    Raises one SigmaConfigError with a line ``file:line: dotted.path: what is wrong`` for every mistake;
    SigmaPluginError if the only mistakes are plugins that are missing or broken.
    """
    document = read(source) if isinstance(source, Path) else parse(source, name)
    for assignment in overrides:
        document = override(document, assignment)
    return structured(document, catalogue or installed())


def structured(document: Document, catalogue: Catalogue) -> schema.Configuration:
    """Return what a document means."""
    several = "trainers" in document.values
    cls: Any = schema.Files if several else schema.File
    try:
        found = _converter(catalogue).structure({"run": {}, **document.values}, cls)
    except WRONG as error:
        raise complaint(document, mistakes(error)) from None
    trainers = found.trainers if several else {"trainer": _only(found)}
    return schema.Configuration(run=found.run, trainers=trainers, monitors=found.monitors, document=document)


def _only(file: schema.File) -> schema.Trainer:
    parts = {f.name: getattr(file, f.name) for f in attrs.fields(schema.Trainer) if hasattr(file, f.name)}
    return schema.Trainer(**parts, **attrs.asdict(file.trainer, recurse=False))


# -- mistakes ----------------------------------------------------------------------------------------------------------
class InText(SigmaError):
    """An error at a line of the architecture's text."""

    def __init__(self, line: int, text: str, error: SigmaError) -> None:
        super().__init__(text)
        self.line, self.error = line, error


def complaint(document: Document, wrong: Iterable[tuple[Place, Exception]]) -> SigmaError:
    """Return one error for all mistakes, in the order of the file."""
    lines: dict[str, int] = {}
    missing = set()
    for path, error in wrong:
        line, cause = (error.line, error.error) if isinstance(error, InText) else (1, error)
        lines[document.describe(path, sentence(error), line)] = document.line(path, line)
        missing.add(isinstance(cause, SigmaPluginError))
    text = "\n".join(sorted(lines, key=lambda text: (lines[text], text)))
    return SigmaPluginError(text) if missing == {True} else SigmaConfigError(text)


# -- tables ------------------------------------------------------------------------------------------------------------
def _converter(catalogue: Catalogue) -> Converter:
    converter = make_converter(catalogue)
    for table in _TABLES:
        converter.register_structure_hook(table, partial(_table, converter))
    converter.register_structure_hook(schema.Data, partial(_shared, converter, catalogue, "dataset"))
    converter.register_structure_hook(schema.Rule, partial(_shared, converter, catalogue, "type"))
    read = partial(_architecture, catalogue)
    converter.register_structure_hook_func(lambda type_: type_ is schema.ArchitectureText, read)
    return converter


def keys(cls: Any) -> dict[str, Setting]:
    """Return what may stand in a table of the file."""
    contracts = {f.name: f.metadata["type"] for f in attrs.fields(cls) if "type" in f.metadata}
    return {n: attrs.evolve(s, type=contracts.get(n, s.type)) for n, s in settings(cls).items()}


def _table(converter: Converter, table: Any, cls: Any) -> Any:
    if not isinstance(table, dict):
        raise Mismatch("a table", table)
    known = keys(cls)
    names = {n: s.default for n, s in known.items() if kind_of(s.type) and isinstance(s.default, str)}
    return cls(**filled(known, {**names, **table}, converter))


def _shared(converter: Converter, catalogue: Catalogue, slot: str, table: Any, cls: Any) -> Any:
    """Structure a table in which the settings of one component, chosen in ``slot``, stand beside the table's own."""
    if not isinstance(table, dict):
        raise Mismatch("a table", table)
    faults, known, given = Faults(), keys(cls), table.get(slot)
    contract = known.pop(slot).type
    inner = given if isinstance(given, dict) else {} if given is None else {"type": given}
    rest = {name: value for name, value in table.items() if name not in (*known, slot)}
    values: dict[str, Any] = {}
    with faults.at(None):
        values |= filled(known, {name: value for name, value in table.items() if name in known}, converter)
    for name in rest.keys() & inner.keys():
        with faults.at(name):
            raise ValueError(f"is given twice, here and in `{slot}`.")
    try:
        values[slot] = component({**rest, **inner}, contract, converter, catalogue, known)
    except WRONG as error:
        faults.found.extend(located(e, _moved(path, rest, slot, given)) for path, e in mistakes(error))
    faults.done()
    return cls(**values)


def _moved(path: Place, rest: Mapping[str, Any], slot: str, given: Any) -> Place:
    """Return where a setting really stands: beside the slot, or in its table."""
    if isinstance(given, dict):
        return path if path and str(path[0]) in rest else (slot, *path)
    return (slot,) if path in ((), ("type",)) else path


def _architecture(catalogue: Catalogue, text: Any, cls: Any) -> Any:
    """Return the text with every layer as ``distribution:name``; what is wrong with it keeps its place."""
    if not isinstance(text, str):
        raise Mismatch("text", text)
    try:
        ends = notation.parse(text, catalogue.load)
    except SigmaError as error:
        found = _IN_TEXT.match(str(error))
        if found is None:
            raise
        raise InText(int(found["line"]), f"column {found['column']}: {str(error)[found.end() :]}", error) from None
    return write(ends, lambda name: catalogue.resolve("layer", name).full_name)
