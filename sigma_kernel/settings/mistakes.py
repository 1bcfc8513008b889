"""Mistakes in settings: one sentence per mistake, independent of the source of the setting, and its place."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType
from typing import Any

from attrs import field, frozen

from sigma_kernel.errors import Mistakes, SigmaConfigError, SigmaError, suggest_name
from sigma_kernel.settings import phrase

Place = tuple[str | int, ...]  # the keys of tables, and the indices of lists, that lead to a setting


class Mismatch(TypeError):
    """A value of the wrong type."""

    def __init__(self, expected: str, got: Any, hint: str = "") -> None:
        super().__init__(f"must be {expected} (got {format_value(got)}){hint and '.' + hint}")
        self.expected, self.hint = expected, hint


def format_value(value: Any) -> str:
    """Format a value for a message, shortened."""
    text = "a table" if isinstance(value, dict) else str(value).lower() if isinstance(value, bool) else repr(value)
    text = type(value).__name__ if text.startswith("<") else text  # an object without a description
    return text if len(text) <= 60 else f"{text[:57]}..."


class Fragment(dict[Any, Any]):
    """The parts of a table or a list that could be read although it has mistakes; others are fragments themselves."""


class Wrong(Exception):
    """The mistakes in a table or a list, each with its path, and the parts that could be read."""

    def __init__(self, found: list[tuple[Place, Exception]], parts: Mapping[Any, Any] = MappingProxyType({})) -> None:
        super().__init__(found)
        self.found, self.parts = found, Fragment(parts)


@frozen
class Faults(Mistakes):
    """Collect mistakes, each with its path, and the fragments of the tables in which they are."""

    found: list[tuple[Place, Exception]] = field(factory=list)
    fragments: Fragment = field(factory=Fragment)

    @contextmanager
    def locate(self, *path: str | int) -> Iterator[None]:
        """Collect errors raised inside, under this path."""
        try:
            yield
        except (Wrong, ValueError, TypeError, SigmaError) as error:
            wrong = error if isinstance(error, Wrong) else Wrong([((), error)])
            self.found.extend(((*path, *inner), mistake) for inner, mistake in wrong.found)
            self.fragments.update({path[0]: wrong.parts} if path else wrong.parts)

    def raise_all(self, values: Mapping[Any, Any] = MappingProxyType({})) -> None:
        """Raise all mistakes collected, if any, with the ``values`` that could be read."""
        if self.found:
            raise Wrong(self.found, {**self.fragments, **values})


class Unknown(ValueError):
    """An unknown setting of a table; its place is the table's, and the name of the setting."""

    def __init__(self, key: str, known: Iterable[str]) -> None:
        self.key, self.known = key, list(known)
        super().__init__(f"has no setting {key!r}.{suggest_name(key, self.known, 'It has')}")


def place_of(path: Place, error: Exception) -> Place:
    """Return the place of a sentence: the table's, for an unknown setting."""
    return path[:-1] if isinstance(error, Unknown) else path


def combine(where: str, found: Iterable[tuple[Place, Exception]]) -> SigmaError:
    """Return one error for mistakes in the settings at a place, with a line for each; of their type if they share one.

    Mistakes that are no SigmaErrors count as SigmaConfigErrors.
    """
    lines, kinds = list[str](), set[type[SigmaError]]()
    for path, error in found:
        place = format_path((where, *place_of(path, error)))
        text = phrase(error).removeprefix(f"{place.rpartition('.')[2]}: ")  # the place already names it
        lines.append(f"{place}: {text}" if place else text)
        kinds.add(type(error) if isinstance(error, SigmaError) else SigmaConfigError)
    return (kinds.pop() if len(kinds) == 1 else SigmaConfigError)("\n".join(lines))


def format_path(path: Place) -> str:
    """Format a path: ``trainer.optimiser``, ``data.sources[1]``."""
    return "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in path).lstrip(".")


class Override(str):
    """A string from the command line: a relative path in it starts in the working directory, not the file's."""

    __slots__ = ()
