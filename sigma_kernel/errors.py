"""What can go wrong: one family of errors, each a sentence for people.

Every error that a user can cause is a :class:`SigmaError`.  Its text says where, what is wrong and what to do about
it; ``exit_code`` is what the ``sigma`` command returns for it.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AbstractContextManager, nullcontext
from difflib import get_close_matches

LONGEST = 100  # letters of a name that is compared with others: the time that this takes grows with their square


class SigmaError(Exception):
    """Something that the user can put right; the text says how."""

    exit_code = 1


class SigmaGraphError(SigmaError):
    """A graph could not be built or transformed: shapes, dtypes or an unknown op."""


class SigmaNetworkError(SigmaError):
    """An architecture does not fit together."""

    exit_code = 2


class SigmaAddressError(SigmaError, KeyError):
    """An address names nothing, or a value does not fit what it names."""

    exit_code = 2

    def __str__(self) -> str:
        return str(self.args[0]) if self.args else ""


class SigmaConfigError(SigmaError):
    """A configuration or a command line is wrong; holds one line for every mistake."""

    exit_code = 2


class SigmaPluginError(SigmaError):
    """A plugin is missing, broken or written for another kernel."""

    exit_code = 3


class SigmaDataError(SigmaError):
    """Data cannot be read, or does not fit what was declared."""


class SigmaStateError(SigmaError):
    """Something was asked for that is not possible in the present state."""


class SigmaTrainingError(SigmaError):
    """A run failed: a loss that is not finite, a hook that failed."""


class SigmaCheckpointError(SigmaError):
    """A checkpoint is damaged, incomplete or does not fit."""


def said(error: BaseException) -> str:
    """Return what an error says; one that is no SigmaError is no sentence by itself, and begins with its class."""
    return str(error) if isinstance(error, SigmaError) else f"{type(error).__name__}: {error}"


def near(name: str, known: Iterable[str]) -> str:
    """Return `` Did you mean 'x'?`` when a known name is close, else nothing."""
    found = get_close_matches(name, list(known), n=1) if len(name) <= LONGEST else []
    return f" Did you mean {found[0]!r}?" if found else ""


class Mistakes:
    """Raise the first mistake of somebody's settings; a subclass may collect them all instead."""

    def at(self, *path: str | int) -> AbstractContextManager[None]:
        """Check one thing in a ``with`` block: a mistake that is raised there belongs to this path of the settings."""
        return nullcontext()


FIRST = Mistakes()
