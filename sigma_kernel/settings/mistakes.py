"""Mistakes in settings: sentences that are the same wherever a setting is given, and their places."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from attrs import field, frozen

from sigma_kernel.errors import Mistakes, SigmaError, near

Place = tuple[str | int, ...]  # the keys of tables, and the indices of lists, that lead to a setting


class Mismatch(TypeError):
    """A value of the wrong type."""

    def __init__(self, expected: str, got: Any, hint: str = "") -> None:
        super().__init__(f"must be {expected} (got {shown(got)}){hint and '.' + hint}")
        self.expected, self.hint = expected, hint


def shown(value: Any) -> str:
    """Format a value for a message, shortened."""
    text = "a table" if isinstance(value, dict) else str(value).lower() if isinstance(value, bool) else repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


class Wrong(Exception):
    """The mistakes in a table or a list, each with its path."""

    def __init__(self, found: list[tuple[Place, Exception]]) -> None:
        super().__init__(found)
        self.found = found


@frozen
class Faults(Mistakes):
    """Collect mistakes, each with its path."""

    found: list[tuple[Place, Exception]] = field(factory=list)

    @contextmanager
    def at(self, *path: str | int) -> Iterator[None]:
        """Collect what is raised inside, under this path."""
        try:
            yield
        except Wrong as wrong:
            self.found.extend(((*path, *inner), error) for inner, error in wrong.found)
        except (ValueError, TypeError, SigmaError) as error:
            self.found.append((path, error))

    def done(self) -> None:
        """Raise all mistakes collected, if any."""
        if self.found:
            raise Wrong(self.found)


class Unknown(ValueError):
    """An unknown key of a table."""

    def __init__(self, key: str, known: Iterable[str]) -> None:
        self.key, self.known = key, list(known)
        super().__init__(f"unknown key.{near(key, self.known, 'Known here:')}")


def dotted(path: Place) -> str:
    """Format a path: ``trainer.optimiser``, ``data.sources[1]``."""
    return "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in path).lstrip(".")


class Override(str):
    """A string from the command line: a relative path in it starts in the working directory, not the file's."""

    __slots__ = ()
