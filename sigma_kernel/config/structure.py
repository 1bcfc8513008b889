"""From plain values to choices: a field's type says what a file may put there; all mistakes are found at once."""

from __future__ import annotations

import re
import types
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import NoneType, SimpleNamespace
from typing import Any, Literal, Union, get_args, get_origin

import attrs
from attrs import evolve, field, frozen
from cattrs import Converter, cols
from cattrs.errors import AttributeValidationNote, BaseValidationError, ClassValidationError, IterableValidationError

from sigma_kernel import contracts
from sigma_kernel.clock import TimeStep
from sigma_kernel.config.choice import REQUIRED, Choice, Setting, plain, settings
from sigma_kernel.config.document import Path as Place
from sigma_kernel.errors import SigmaError, near
from sigma_kernel.plugins import Catalogue
from sigma_kernel.training.criteria import Criterion

KINDS: dict[type, str] = {
    contracts.Backend: "backend", contracts.Optimiser: "optimiser", contracts.Schedule: "schedule",
    contracts.Transform: "modifier", contracts.Modifier: "modifier", contracts.Initialiser: "initialiser",
    contracts.Source: "source", contracts.Reader: "reader", contracts.Extractor: "extractor",
    contracts.Preprocessor: "preprocessor", contracts.Dataset: "dataset", contracts.Order: "iterator",
    contracts.Hook: "hook", contracts.Metric: "metric", contracts.Operator: "operator", contracts.Monitor: "monitor",
}  # fmt: skip
WRONG = (ValueError, TypeError, SigmaError, BaseValidationError)  # what a value that does not do may raise
_WORDS: dict[Any, str] = {
    bool: "true or false", int: "a whole number", float: "a number", str: "text", Path: "a path",
    TimeStep: 'a time step such as "1 epoch"', Criterion: 'a criterion such as "epoch reaches 10"',
}  # fmt: skip
_ATTRS = re.compile(r"'\w+' (must (?:be|match) .*): (.*)")  # how the validators of attrs speak
_OWNED = re.compile(r"[A-Za-z_]\w*\.\w+: (?=must )")  # how live settings name their owner, which the path does already


class Mismatch(TypeError):
    """A value of a type that cannot stand where it is."""

    def __init__(self, expected: str, got: Any) -> None:
        super().__init__(f"must be {expected} (got {shown(got)})")
        self.expected = expected


def shown(value: Any) -> str:
    """Return a value as people wrote it, shortened."""
    text = "a table" if isinstance(value, dict) else str(value).lower() if isinstance(value, bool) else repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


# -- mistakes ----------------------------------------------------------------------------------------------------------
@frozen
class Faults:
    """Collect what is wrong with a table, each mistake with the key that it belongs to."""

    found: list[Exception] = field(factory=list)

    @contextmanager
    def at(self, key: str | int | None) -> Iterator[None]:
        """Keep an error that is raised inside, as one about a key (None: about the table itself)."""
        try:
            yield
        except WRONG as error:
            if key is not None:
                error.add_note(_note(key))
            self.found.append(error)

    def done(self) -> None:
        """Raise everything that was found."""
        if self.found:
            raise ClassValidationError("", self.found, object)


def _note(key: str | int) -> AttributeValidationNote:
    return AttributeValidationNote("", key, Any)  # type: ignore[arg-type]  # an index does as well


def mistakes(error: Exception) -> Iterator[tuple[Place, Exception]]:
    """Yield each single mistake with its path."""
    if not isinstance(error, ClassValidationError | IterableValidationError):
        yield (), error
        return
    placed, loose = error.group_exceptions()
    for inner, note in placed:
        key = note.name if isinstance(note, AttributeValidationNote) else note.index
        yield from (((key, *path), mistake) for path, mistake in mistakes(inner))
    for inner in loose:
        yield from mistakes(inner)


def located(error: Exception, path: Place) -> Exception:
    """Return a single mistake as one that belongs to a path."""
    error.__notes__ = []
    for key in reversed(path):
        error.add_note(_note(key))
        error = ClassValidationError("", [error], object)
    return error


def sentence(error: Exception) -> str:
    """Return what an error says, in the words of a configuration."""
    text = _OWNED.sub("", str(error.args[0]) if error.args else str(error), count=1)
    return f"{found[1]} (got {found[2]})" if (found := _ATTRS.fullmatch(text)) else text


# -- tables and components ---------------------------------------------------------------------------------------------
def filled(
    known: Mapping[str, Setting], table: Mapping[str, Any], converter: Converter, beside: Iterable[str] = ()
) -> dict[str, Any]:
    """Return the settings that a table gives, with the defaults of those that it leaves out.

    ``beside`` are keys that may stand in the same table and belong to something else.
    """
    faults, values, names = Faults(), dict[str, Any](), [*beside, *known]
    for name in table.keys() - known.keys():
        with faults.at(name):
            raise ValueError(f"unknown key.{near(name, names) or ' Known here: ' + ', '.join(names) + '.'}")
    for name, setting in known.items():
        with faults.at(name):
            if name in table:
                values[name] = converter.structure(table[name], setting.type)
            elif setting.default is REQUIRED:
                raise ValueError(f"is missing. Give it {_words(setting.type)}.")
            elif _written(setting.default):
                values[name] = setting.default
    for name in table.keys() & values.keys():
        with faults.at(name):
            _check(known[name], values)
    faults.done()
    return values


def _check(setting: Setting, values: Mapping[str, Any]) -> None:
    if setting.check is None or isinstance(values[setting.name], Choice):
        return
    try:
        setting.check(SimpleNamespace(**values), values[setting.name])
    except AttributeError:  # it looks at more than settings that are right: left to the constructor
        return


def _written(default: Any) -> bool:
    try:
        return default is not None and plain(default) is not None
    except TypeError:  # an object that no file can name: the component's own code provides it
        return False


def component(
    value: Any, contract: type, converter: Converter, catalogue: Catalogue, beside: Iterable[str] = ()
) -> Choice:
    """Return what a name, or a table with a ``type`` and settings, chooses."""
    kind, faults = kind_of(contract) or "", Faults()
    if not isinstance(value, str | dict):
        raise Mismatch(f"the name of {_article(kind)}, or a table with its `type`", value)
    with faults.at("type" if isinstance(value, dict) else None):
        name = _name(value, kind)
        factory: Any = catalogue.load(kind, name)
        fitting = (contract, Mapping) if kind == "dataset" else contract  # a dataset may come in splits, by name
        if isinstance(factory, type) and not issubclass(factory, fitting):
            raise ValueError(f"{name!r} cannot stand here: it is no {contract.__name__}.")
    faults.done()
    known = settings(factory)
    if kind == "hook" and "when" in known:  # contracts cannot name what stands right of them
        known["when"] = evolve(known["when"], type=Criterion)
    given = {key: inner for key, inner in value.items() if key != "type"} if isinstance(value, dict) else {}
    full_name = catalogue.resolve(kind, name).full_name
    choice = Choice(full_name, filled(known, given, converter, beside), factory)
    choice.make()  # its own checks
    return choice


def _name(value: str | dict[str, Any], kind: str) -> str:
    name = value if isinstance(value, str) else value.get("type")
    if name is None:
        raise ValueError(f"is missing. Give it the name of {_article(kind)}; `sigma components {kind}` lists them.")
    if not isinstance(name, str):
        raise Mismatch(f"the name of {_article(kind)}", name)
    return name


def _article(kind: str) -> str:
    return f"an {kind}" if kind[0] in "aeiou" else f"a {kind}"


def _words(type_: Any) -> str:
    """Return what may stand somewhere, in words."""
    if type_ in _WORDS or get_origin(type_) is Literal:
        return _WORDS.get(type_) or " or ".join(map(shown, get_args(type_)))
    if (kind := kind_of(type_)) is not None:
        return _article(kind)
    if attrs.has(type_) or cols.is_mapping(type_):
        return "a table"
    return "a list" if cols.is_sequence(type_) else "a value"


# -- types -------------------------------------------------------------------------------------------------------------
def kind_of(type_: Any) -> str | None:
    """Return the kind of component that a contract, or a class that fulfils one, stands for."""
    return next((kind for cls, kind in KINDS.items() if isinstance(type_, type) and issubclass(type_, cls)), None)


def make_converter(catalogue: Catalogue) -> Converter:
    """Return a converter that turns what a file says into settings and choices."""
    converter = Converter(structure_fallback_factory=_fallback, forbid_extra_keys=True)
    for type_, accepted in {bool: bool, int: int, float: (int, float), str: str}.items():
        converter.register_structure_hook(type_, _strictly(accepted, type_, type_))
    for type_, read in {Path: _path, TimeStep: TimeStep.parse, Criterion: Criterion.parse}.items():
        converter.register_structure_hook(type_, _strictly(str, type_, read))
    list_, dict_ = _checked(cols.list_structure_factory, list), _checked(cols.mapping_structure_factory, dict)
    by_type: list[tuple[Callable[[Any], bool], Callable[[Any, Any], Any]]] = [
        (lambda t: t is Any, lambda value, _: value),
        (lambda t: get_origin(t) is tuple, lambda value, t: _tuple(value, t, converter)),
        (lambda t: get_origin(t) is Literal, _literal),
        (lambda t: get_origin(t) in (Union, types.UnionType), lambda value, t: _union(value, t, converter)),
        (lambda t: kind_of(t) is not None, lambda value, t: component(value, t, converter, catalogue)),
    ]
    converter.register_structure_hook_factory(cols.is_sequence, list_)
    converter.register_structure_hook_factory(cols.is_mapping, dict_)
    for holds, hook in by_type:
        converter.register_structure_hook_func(holds, hook)
    return converter


def _strictly(accepted: Any, type_: type, make: Callable[[Any], Any]) -> Callable[[Any, Any], Any]:
    def structure(value: Any, _: Any) -> Any:
        if not isinstance(value, accepted) or (isinstance(value, bool) and accepted is not bool):
            raise Mismatch(_WORDS[type_], value)
        return make(value)

    return structure


def _path(text: str) -> Path:
    return Path(text).expanduser().absolute()


def _checked(factory: Any, accepted: type) -> Callable[[Any, Converter], Any]:
    def make(type_: Any, converter: Converter) -> Callable[[Any, Any], Any]:
        inner = factory(type_, converter)

        def structure(value: Any, _: Any) -> Any:
            if not isinstance(value, accepted):
                raise Mismatch("a list" if accepted is list else "a table", value)
            return inner(value, type_)

        return structure

    return make


def _tuple(value: Any, type_: Any, converter: Converter) -> tuple[Any, ...]:
    if not isinstance(value, list):
        raise Mismatch("a list", value)
    kinds = get_args(type_)
    kinds = (kinds[0],) * len(value) if kinds[-1] is Ellipsis else kinds
    if len(value) != len(kinds):
        raise Mismatch(f"a list of {len(kinds)} values", value)
    faults, values = Faults(), []
    for index, (inner, kind) in enumerate(zip(value, kinds, strict=True)):
        with faults.at(index):
            values.append(converter.structure(inner, kind))
    faults.done()
    return tuple(values)


def _literal(value: Any, type_: Any) -> Any:
    allowed = get_args(type_)
    if value not in allowed or isinstance(value, bool):
        hint = near(value, [a for a in allowed if isinstance(a, str)]) if isinstance(value, str) else ""
        raise ValueError(f"must be {_words(type_)} (got {shown(value)}){hint and '.' + hint}")
    return value


def _union(value: Any, type_: Any, converter: Converter) -> Any:
    deeper: Exception | None = None
    expected = []
    for member in get_args(type_):
        if member is not NoneType:
            try:
                return converter.structure(value, member)
            except Mismatch as error:
                expected.append(error.expected)
            except WRONG as error:
                deeper = deeper or error
    raise deeper or Mismatch(" or ".join(expected), value)


def _fallback(type_: Any) -> Callable[[Any, Any], Any]:
    def structure(value: Any, _: Any) -> Any:
        raise Mismatch(f"{getattr(type_, '__name__', type_)}, which a file cannot say: set it from Python", value)

    return structure
