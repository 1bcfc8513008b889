"""The errors of Sigma: one family, and each message is a sentence.

Every error that a user can cause is a :class:`SigmaError`. Its message gives the location, the problem and the remedy;
``exit_code`` is what the ``sigma`` command returns for it.
"""

from __future__ import annotations

import re
import sys
import warnings
from collections.abc import Collection, Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from difflib import get_close_matches
from types import FrameType
from typing import Any

LONGEST, MOST = 100, 3  # characters of a name to look for similar ones, in quadratic time; suggestions for its end


HEAD, TAIL = 1_200, 800  # characters of a longer line of a message that are kept: its location, and its remedy


class SigmaError(Exception):
    """An error that the user can correct; the message states the remedy.

    A line that quotes a very long value is shortened in its middle.
    """

    exit_code = 1

    def __init__(self, *args: object) -> None:
        super().__init__(*(_shorten_lines(arg) if isinstance(arg, str) else arg for arg in args))


def _shorten_lines(text: str) -> str:
    """Replace the middle of every line that is longer than HEAD and TAIL together by its number of characters."""
    if len(text) <= HEAD + TAIL:
        return text
    return "\n".join(
        f"{line[:HEAD]}... ({len(line) - HEAD - TAIL:,} more characters) ...{line[-TAIL:]}"
        if len(line) > HEAD + TAIL + 100  # a line that is shortened is not shortened again
        else line
        for line in text.split("\n")
    )


class SigmaGraphError(SigmaError):
    """A graph cannot be built or transformed: wrong shapes or dtypes, or an unknown op."""


class SigmaNetworkError(SigmaError):
    """An architecture is invalid."""

    exit_code = 2


class SigmaAddressError(SigmaError, KeyError):
    """An address does not exist, or cannot be set to the given value."""

    exit_code = 2

    def __str__(self) -> str:
        return str(self.args[0]) if self.args else ""


class SigmaConfigError(SigmaError):
    """A configuration or a command line is invalid; the message has one line per mistake."""

    exit_code = 2


class SigmaPluginError(SigmaError):
    """A plugin is missing, broken, or written for another version of the kernel."""

    exit_code = 3


class SigmaComponentError(SigmaPluginError):
    """A component's code raised an error, or returned what its contract does not allow; the message names it."""


class SigmaDataError(SigmaError):
    """Data cannot be read, or does not match its declaration.

    ``row`` is the number of the first row to blame, from 0 in what was given, where a caller can name its place.
    """

    def __init__(self, *args: object, row: int | None = None) -> None:
        super().__init__(*args)
        self.row = row

    def __str__(self) -> str:
        text = super().__str__()
        return text if self.row is None else f"row {self.row}: {text}"


class SigmaStateError(SigmaError):
    """An operation is not possible in the current state."""


class SigmaTrainingError(SigmaError):
    """Training failed: the loss is not finite, or a hook raised an error."""


class SigmaDifferenceError(SigmaTrainingError):
    """A backend has computed wrong numbers: no state since the last checkpoint counts as good, so none is saved."""


class SigmaMemoryError(SigmaError, MemoryError):
    """Out of memory, on a device of a backend or for a component."""


class SigmaCheckpointError(SigmaError):
    """A checkpoint is damaged, incomplete or incompatible."""


class SigmaWarning(UserWarning):
    """A warning about a run that begins nevertheless."""


def warn(text: str) -> None:
    """Give a SigmaWarning, at the line of the first caller that is no package of Sigma."""
    frame: FrameType | None = sys._getframe(1)
    level = 2
    while frame is not None and frame.f_globals.get("__name__", "").startswith("sigma_"):
        frame, level = frame.f_back, level + 1
    warnings.warn(text, SigmaWarning, stacklevel=level)


def error_text(error: BaseException) -> str:
    """Return the message of an error, with the class in front unless it is a SigmaError."""
    text = str(error) if isinstance(error, SigmaError) else f"{type(error).__name__}: {error}"
    return " ".join([text, *getattr(error, "__notes__", ())])


def scarce(error: MemoryError) -> str:
    """Return the message for a failed allocation; NumPy's errors state the size."""
    much = str(error).rstrip(".") or "an array could not be allocated"
    return f"out of memory: {much}. Choose a smaller batch_size, shorter sequences, or fewer units."


# -- whose error it is -------------------------------------------------------------------------------------------------
_NAMES: dict[str, str] = {}  # full names of plugins' components by the path of their object
# names of Sigma by those of other libraries, in lower case and without _
_ELSEWHERE = {"lr": ["learning_rate"], "model": ["network"], "callbacks": ["hooks"], "valacc": ["validation.accuracy"]}


def name_components(records: Iterable[Any]) -> None:
    """Let :func:`introduce_errors` name these components, and :func:`suggest_name` suggest them and their settings."""
    for record in records:
        _NAMES[record.path] = record.full_name
        for theirs, _, ours in (pair.partition("=") for pair in record.also_known_as.split()):
            _ELSEWHERE.setdefault(theirs.lower().replace("_", ""), []).append(ours or record.name)


def component_name(component: object) -> str:
    """Return ``distribution:name`` of a plugin's component, or ``module.Object`` of one's own code."""
    thing: Any = component if hasattr(component, "__qualname__") else type(component)
    place = f"{thing.__module__}:{thing.__qualname__}"
    return _NAMES.get(place, place.replace(":", "."))


def expect(holds: bool, rule: str, value: Any) -> None:
    """Raise SigmaComponentError with a rule of the contract, and the actual result, unless it holds."""
    if not holds:
        raise SigmaComponentError(f"{rule} (got {_describe_value(value)}).")


def _describe_value(value: Any) -> str:
    """Describe a value: dtype and shape of an array, the types in a tuple or a mapping, the type of anything else."""
    if hasattr(value, "dtype") and hasattr(value, "shape"):
        return f"{value.dtype} of shape {value.shape}"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{name!r}: {_describe_value(item)}' for name, item in value.items())}}}"
    return f"({', '.join(map(_describe_value, value))})" if isinstance(value, tuple) else type(value).__name__


class _Inside:
    """The context of a component's code: a class, since a generator would cost a microsecond in each burst."""

    __slots__ = ("component", "what")

    def __init__(self, what: str, component: object) -> None:
        self.what = what
        self.component = component

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        own = isinstance(error, SigmaComponentError)
        if isinstance(error, Exception) and (own or not isinstance(error, SigmaError)):
            raise self._introduce(error, f"{self.what} ({component_name(self.component)})", own) from error

    def _introduce(self, error: Exception, where: str, own: bool) -> SigmaError:
        if isinstance(error, MemoryError):
            return SigmaMemoryError(f"{where}: {scarce(error)}")
        if own:
            return SigmaComponentError(f"{where}: {error}")
        distribution, colon, _ = component_name(self.component).partition(":")
        whose = f", or tell the authors of {distribution}" if colon else ""
        return SigmaComponentError(f"{where}: {error_text(error).rstrip('.')}. Correct its code{whose}.")


def introduce_errors(what: str, component: object) -> AbstractContextManager[None]:
    """Introduce the errors of a component's code by its name: ``layer 2-gate (acme-sigma:gate): KeyError: 'w'``.

    Use :func:`expect` inside for results that the contract does not allow. An exception that is no SigmaError becomes
    the cause of a SigmaComponentError, a MemoryError that of a SigmaMemoryError; other SigmaErrors pass unchanged.
    """
    return _Inside(what, component)


def suggest_name(name: str, known: Iterable[str], listed: str = "") -> str:
    """Return `` Did you mean 'x'?`` if a known name is similar; otherwise all of them after the words ``listed``.

    Upper and lower case are the same: ``ReLU`` is similar to ``relu``. The last levels of an address are similar to it.
    For a name of another library, it is `` Sigma calls it 'x'.``
    """
    names = list(known)
    if theirs := [candidate for candidate in _ELSEWHERE.get(name.lower().replace("_", ""), ()) if candidate in names]:
        return f" Sigma calls it {theirs[0]!r}."
    lower, name = {candidate.lower(): candidate for candidate in names}, name.lower()
    ends = [candidate for candidate in lower if candidate.endswith(f".{name}")][:MOST]
    if matches := ends or get_close_matches(name if len(name) <= LONGEST else "", lower, n=1):
        return f" Did you mean {' or '.join(repr(lower[candidate]) for candidate in matches)}?"
    return f" {listed} {', '.join(names) or 'none'}." if listed else ""


def refuse_unknown(
    where: str, settings: Iterable[str], known: Collection[str], error: type[SigmaError] = SigmaConfigError,
    remedies: Mapping[str, str] | None = None,
) -> None:  # fmt: skip
    """Raise an error for a setting that is not among those known, with its remedy, a similar one or all of them."""
    for name in settings:
        if name not in known:
            remedy = f" {remedies[name]}" if remedies and name in remedies else suggest_name(name, known, "It has")
            raise error(f"{where}: has no setting {name!r}.{remedy}")


class Mistakes:
    """Raise the first mistake in a set of settings; a subclass may collect all of them instead."""

    def locate(self, *path: str | int) -> AbstractContextManager[None]:
        """Return a context in which errors belong to this path of the settings."""
        return nullcontext()


FIRST = Mistakes()


_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")


def printable(text: str) -> str:
    """Return a text whose control characters, but tabs and new lines, are written as escapes of JSON.

    Those of direction are among them. A terminal would act on them, so that a stranger's file could hide or forge text.
    """
    return _CONTROL.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
