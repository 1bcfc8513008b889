"""The errors of Sigma: one family, and each message is a sentence.

Every error that a user can cause is a :class:`SigmaError`. Its message gives the location, the problem and the remedy;
``exit_code`` is what the ``sigma`` command returns for it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from contextlib import AbstractContextManager, nullcontext
from difflib import get_close_matches

LONGEST = 100  # characters of a name to look for similar ones; this takes quadratic time


class SigmaError(Exception):
    """An error that the user can correct; the message says how."""

    exit_code = 1


class SigmaGraphError(SigmaError):
    """A graph cannot be built or transformed: wrong shapes or dtypes, or an unknown op."""


class SigmaNetworkError(SigmaError):
    """An architecture is invalid."""

    exit_code = 2


class SigmaAddressError(SigmaError, KeyError):
    """An address does not exist, or its value cannot be set to what was given."""

    exit_code = 2

    def __str__(self) -> str:
        return str(self.args[0]) if self.args else ""


class SigmaConfigError(SigmaError):
    """A configuration or a command line is invalid; the message has one line per mistake."""

    exit_code = 2


class SigmaPluginError(SigmaError):
    """A plugin is missing, broken, or written for another version of the kernel."""

    exit_code = 3


class SigmaDataError(SigmaError):
    """Data cannot be read, or does not match its declaration."""


class SigmaStateError(SigmaError):
    """An operation is not possible in the current state."""


class SigmaTrainingError(SigmaError):
    """Training failed: the loss is not finite, or a hook raised an error."""


class SigmaCheckpointError(SigmaError):
    """A checkpoint is damaged, incomplete or incompatible."""


def said(error: BaseException) -> str:
    """Return the message of an error, with the class in front unless it is a SigmaError."""
    return str(error) if isinstance(error, SigmaError) else f"{type(error).__name__}: {error}"


def near(name: str, known: Iterable[str], listed: str = "") -> str:
    """Return `` Did you mean 'x'?`` if a known name is similar; otherwise all of them after the words ``listed``.

    Upper and lower case are the same: ``ReLU`` is similar to ``relu``.
    """
    names = list(known)
    lower = {one.lower(): one for one in names}
    if len(name) <= LONGEST and (found := get_close_matches(name.lower(), lower, n=1)):
        return f" Did you mean {lower[found[0]]!r}?"
    return f" {listed} {', '.join(names) or 'none'}." if listed else ""


def refuse_unknown(
    where: str, settings: Iterable[str], known: Collection[str], error: type[SigmaError] = SigmaConfigError
) -> None:
    """Raise an error for a setting that is not among those known, with a similar one or all of them."""
    for name in settings:
        if name not in known:
            raise error(f"{where}: has no setting {name!r}.{near(name, known, 'It has')}")


class Mistakes:
    """Raise the first mistake in a set of settings; a subclass may collect all of them instead."""

    def at(self, *path: str | int) -> AbstractContextManager[None]:
        """Return a context in which errors belong to this path of the settings."""
        return nullcontext()


FIRST = Mistakes()
