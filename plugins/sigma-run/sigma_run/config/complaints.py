"""Error messages of configuration files: locate each mistake (file, line, key), and raise one error for all."""

from __future__ import annotations

import pathlib
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from sigma_kernel.errors import SigmaConfigError, SigmaDataError, SigmaError, SigmaPluginError
from sigma_kernel.plugins import rooms
from sigma_kernel.settings import phrase
from sigma_kernel.settings.mistakes import place_of
from sigma_run.config.document import Document, Path as Place
from sigma_training.preparation import DATASET

MOST = 50  # mistakes that are listed
IN_TRAINER = ("optimiser", "optimisers", "order", "epochs")  # begin the paths of what `[trainer]` holds


class InText(SigmaError):
    """An error at a line within the architecture's text."""

    def __init__(self, line: int, text: str, error: SigmaError) -> None:
        super().__init__(text)
        self.line, self.error = line, error


def complaint(document: Document, wrong: Iterable[tuple[Place, Exception]]) -> SigmaError:
    """Return one error that lists all mistakes in the order of the file, the first ``MOST`` of more.

    It is a SigmaPluginError or a SigmaDataError if all of the mistakes are, else a SigmaConfigError.
    """
    lines, causes = set(), list[Exception]()
    for path, error in wrong:
        line, cause = (error.line, error.error) if isinstance(error, InText) else (0, error)
        sentence = in_words_of_files(phrase(error)) + _share(document.values, path, phrase(error))
        sentence = sentence.removeprefix(f"{path[-1]}: ") if path else sentence  # the path says it already
        lines.add(document.describe(path, sentence, line, place_of(path, error)))
        causes.append(cause)
    listed, more = [text for _, text in sorted(lines, key=_in_order)], len(lines) - MOST
    text = "\n".join(listed if more <= 0 else [*listed[:MOST], f"... and {more:,} more. Correct these first."])
    kinds = (kind for kind in (SigmaPluginError, SigmaDataError) if all(isinstance(cause, kind) for cause in causes))
    return next(kinds, SigmaConfigError)(text)


def _in_order(found: tuple[int, str]) -> tuple[int, list[tuple[int, str]]]:
    """Return a sort key of a line's number and text, in which column 3 is before column 12."""
    return found[0], [(int(part) if part.isdecimal() else -1, part) for part in re.split(r"(\d++)", found[1])]


def in_words_of_files(text: str) -> str:
    """Return a message in the words of a file: its layers are those of the text of an architecture, not of Python."""
    for name in rooms.names("layer"):
        class_name = "".join(word.capitalize() for word in name.split("_"))
        text = re.sub(rf"\b{class_name}(?=\()", name, text)
    return text.replace("Set data, such as Arrays(inputs=...).", "Give it a share in `split`.")


def _share(values: Mapping[str, Any], path: Place, text: str) -> str:
    """Return how a file gets a split that its data lacks, if it says how to divide them."""
    data = _look_up(values, (*(path[:2] if path[:1] == ("trainers",) else ()), "data"))
    lacks = "the data has no split" in text and isinstance(data, Mapping) and "split" in data
    return " Give it a share, such as split = { training = 0.8, validation = 0.2 } in [data]." if lacks else ""


def locate_mistake(values: Mapping[str, Any], head: Place, path: Place, error: Exception) -> tuple[Place, Exception]:
    """Return a trainer's mistake with its path in the file, where the trainer's tables are below ``head``.

    The path is made as precise as the message allows: the message may begin with an address, quote a value, or name a
    file.
    """
    place = _absolute(head, path)
    address, colon, text = phrase(error).partition(": ")
    parts = tuple(address.split(".")) if colon else ()
    # the settings of a dataset may be next to its name
    within = place[:-1] if path == DATASET else place
    meant = list(_meant(head, path, parts))
    exact = next((p for p in meant if p[: len(within)] == within and holds(values, p)), None)
    said = parts == (head or ("trainer",))[-1:] or any(p == place[: len(p)] for p in meant)
    text = text if said or exact is not None else phrase(error)
    place = exact or place
    base = within if exact is None else place
    named = next(_find_quoted(_look_up(values, base), text), ())
    place = base if named else place
    unexplained = isinstance(error, SigmaDataError) and path == DATASET and not named and exact is None
    own = unexplained or isinstance(error, SigmaPluginError)
    return (*place, *named), type(error)(text) if own else SigmaConfigError(text)


def _absolute(head: Place, path: Place) -> Place:
    if path[:1] == ("run",):
        return path
    return (*(head or ("trainer",)), *path) if path and path[0] in IN_TRAINER else (*head, *path)


def _meant(head: Place, path: Place, parts: Place) -> Iterator[Place]:
    """Yield the paths that an address may refer to: absolute, or relative to the trainer."""
    for inner in (parts, parts[1:], (*path[:1], *parts)):
        if parts and inner:
            yield _absolute(head, inner)


def holds(values: Any, path: Place) -> bool:
    """Return whether a file contains a path."""
    return not path or (isinstance(values, Mapping) and path[0] in values and holds(values[path[0]], path[1:]))


def _look_up(values: Any, path: Place) -> Any:
    for key in path:
        values = values.get(key) if isinstance(values, Mapping) else None
    return values


def _find_quoted(table: Any, text: str) -> Iterator[Place]:
    """Yield the paths of strings that a message quotes, then of files that it begins with."""
    leaves = [(path, leaf) for path, leaf in _leaves(table) if path and path[-1] not in ("type", "dataset")]
    yield from (path for path, leaf in leaves if repr(str(leaf)) in text)
    files = re.split(r"[/\\:]", text.partition(": ")[0])
    yield from (path for path, leaf in leaves if pathlib.PurePath(leaf).name in files)


def _leaves(value: Any) -> Iterator[tuple[Place, str]]:
    if isinstance(value, str):
        yield (), value
    inner = value.items() if isinstance(value, Mapping) else enumerate(value) if isinstance(value, list) else ()
    for key, below in inner:
        yield from (((key, *path), leaf) for path, leaf in _leaves(below))
