"""The results of a search, read from the folder of its study."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from math import nan
from pathlib import Path
from shlex import quote
from typing import Any

from attrs import frozen

from sigma_kernel.errors import SigmaConfigError, SigmaError
from sigma_run.config import open_run
from sigma_run.study import Member, Study, read_study
from sigma_search.hook import RECORD
from sigma_search.protocol import FAILED, Outcome


def read_values(member: Member, addresses: tuple[str, ...]) -> dict[str, Any]:
    """Return the values that a trial was asked for, by address."""
    texts = dict(override.partition("=")[::2] for override in member.overrides)
    return {address: tomllib.loads(f"value = {texts[address]}")["value"] for address in addresses}


def read_outcome(run: Path, member: Member, address: str) -> Outcome:
    """Return the outcome of a trial that has ended; it has failed if it did not reach a finite value.

    Raises SigmaConfigError if the values that it recorded are missing.
    """
    value = member.metrics.get(address)
    if member.status == FAILED or value is None:
        return Outcome(FAILED)
    return Outcome("pruned" if member.status == "pruned" else "finished", value, _read_record(run))


def _read_record(run: Path) -> tuple[tuple[int, int, float], ...]:
    try:
        rows = json.loads(open_run(run, lambda text: None).read(RECORD) or b"")["values"]
        return tuple((int(at), int(epoch), nan if value is None else float(value)) for at, epoch, value in rows)
    except (SigmaError, ValueError, TypeError, KeyError, RecursionError) as error:
        raise SigmaConfigError(
            f"{run / RECORD}: the values of this trial are missing or damaged: {error!r:.100}. Restore the file, or "
            "remove the folder: the trial is trained again."
        ) from None


@frozen(eq=False)
class SearchResults:
    """The trials of a search, and the best of them."""

    folder: Path
    study: Study

    @classmethod
    def read(cls, folder: Path | str) -> SearchResults:
        """Return the results in the folder of a search; raise SigmaConfigError if it is none."""
        study = read_study(Path(folder))
        if not study.search:
            raise SigmaConfigError(f"{folder}: is not a search. Pass a folder that `sigma search` wrote.")
        return cls(Path(folder), study)

    @property
    def value(self) -> str:
        """Return the address of the value that is maximised or minimised."""
        return str(self.study.goal)

    @property
    def status(self) -> str:
        """Return how the search stands: finished, failed, interrupted, running or unfinished."""
        return self.study.status

    @property
    def trials(self) -> list[dict[str, Any]]:
        """Return a row for each trial, for ``pandas.DataFrame`` and its likes: number, status, value, settings."""
        return [self._row(member) for member in self.study.members]

    @property
    def best(self) -> dict[str, Any] | None:
        """Return the row of the finished trial with the best value; the first of equal ones, None if there is none."""
        member = self.study.best
        return None if member is None else self._row(member)

    @property
    def commands(self) -> list[str]:
        """Return the best trial in a sentence, and the commands that replay it and train it alone."""
        if (best := self.best) is None:
            return []
        values = {address: best[address] for address in self.study.varies}
        words = ", ".join(f"{address} = {inline(value)}" for address, value in values.items())
        return [
            f"best: trial {best['trial']}, {self.value} {best['value']:.4g} with {words}",
            f"  replay: sigma replay {best['folder']}",
            f"  train:  sigma run {self.folder / 'study.toml'} {settings_text(values)}",
        ]

    def _row(self, member: Member) -> dict[str, Any]:
        return {
            "trial": int(member.folder),
            "status": member.status,
            "value": member.metrics.get(self.value),
            **read_values(member, self.study.varies),
            "epochs": member.epochs,
            "seconds": member.seconds,
            "folder": str(self.folder / member.folder),
        }

    def __repr__(self) -> str:
        best = self.best
        reached = "" if best is None else f", best {self.value} {best['value']:.4g} of trial {best['trial']}"
        return f"SearchResults({str(self.folder)!r}, {self.status}, {len(self.study.members)} trials{reached})"


def settings_text(values: Mapping[str, Any]) -> str:
    """Return settings as words of a command."""
    return " ".join(f"--set {quote(f'{address}={inline(value)}')}" for address, value in values.items())


def inline(value: Any) -> str:
    """Return a value as TOML on one line."""
    if isinstance(value, Mapping):
        pairs = (f"{_quote_text(str(key))} = {inline(inner)}" for key, inner in value.items())
        return f"{{ {', '.join(pairs)} }}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(inline, value))}]"
    if isinstance(value, str):
        return _quote_text(value)
    return str(value).lower() if isinstance(value, bool) else str(value)


def _quote_text(text: str) -> str:
    """Return a string as TOML, which has neither the surrogates of JSON, nor the character U+007F."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
