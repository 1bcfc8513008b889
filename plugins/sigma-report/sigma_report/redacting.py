"""Leave out what belongs to one machine or one person: tokens, monitors, hooks that tell people, absolute paths."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, MutableMapping
from pathlib import Path
from typing import Any

from attrs import define, field

from sigma_kernel.errors import SigmaError
from sigma_report.outward import acts_outside

SECRET = re.compile(r"password|passwd|secret|credential|api_?key|webhook|authorization", re.IGNORECASE)
TOKEN = re.compile(r"tokens?\Z", re.IGNORECASE)  # if it is a text: a number is an index in a vocabulary
LOGIN = re.compile(r"(?<=://)[^/@\s\"']++@")  # in front of a host
ABSOLUTE = re.compile(r"(?<![\w/.:~-])~?(?:/[^\s/\"'`<>|:;,()\\]++)++/?+")
BELOW = re.compile(r"(?:/[^\s/\"'`<>|:;,()\\]++)*+/?+")  # what follows a folder in a path


@define
class Redactor:
    """What replaces texts of a run for others, and the list of what was left out.

    Args:
        private: Folders of this machine, absolute: whatever is below them is named by its last part alone.
    """

    private: tuple[str, ...]
    left_out: dict[str, str] = field(factory=dict, init=False)  # what, and what is in its place

    @classmethod
    def of_run(cls, run: Path) -> Redactor:
        """Return the one for a run: the home directory, this directory, and that of the run are private."""
        home = Path(os.path.expanduser("~"))
        places = [home, Path.cwd(), run.absolute(), run.resolve(), run.absolute().parent, run.resolve().parent]
        longest = sorted({str(place) for place in places if len(place.parts) > 1}, key=len, reverse=True)
        return cls(tuple(longest))

    def secret(self) -> list[bytes]:
        """Return the private folders as they stand in files."""
        return [place.encode() for place in self.private]

    @property
    def hooks(self) -> list[str]:
        """Return the names of the hooks that were left out."""
        places = [what.split(".") for what in self.left_out]
        return [place[-1] for place in places if place[-2:-1] == ["hooks"]]

    # -- texts ---------------------------------------------------------------------------------------------------------
    def json(self, text: str) -> str:
        """Return a JSON text without private folders and logins; any other absolute path may be a part of the data."""
        for place in self.private:
            first, *rest = text.split(json.dumps(place)[1:-1])
            if rest:
                self.left_out.setdefault("folders of this machine", "the last part of their paths")
                text = first + "".join(_shorten(place, piece) for piece in rest)
        return LOGIN.sub("", text)

    def text(self, text: str) -> str:
        """Return a text with the last part of each absolute path in its place, and without logins."""
        if ABSOLUTE.search(text):
            self.left_out.setdefault("absolute paths", "the last part of each")
        return LOGIN.sub("", ABSOLUTE.sub(_last_part, text))

    def redact_values(self, value: Any) -> Any:
        """Return plain values with all of their texts replaced."""
        if isinstance(value, Mapping):
            return {self.text(str(name)): self.redact_values(inner) for name, inner in value.items()}
        if isinstance(value, list | tuple):
            return [self.redact_values(inner) for inner in value]
        return self.text(value) if isinstance(value, str) else value

    # -- configurations ------------------------------------------------------------------------------------------------
    def clear(self, table: MutableMapping[str, Any], place: str = "") -> None:
        """Change a configuration: remove what acts outside or is named like a secret, and shorten absolute paths."""
        for name in [*table]:
            value, key = table[name], f"{place}{name}"
            if key == "monitors" or _is_secret(name, value) or (f".{place}".endswith(".hooks.") and _tells(value)):
                del table[name]
                self.left_out[key] = "nothing"
            elif isinstance(value, MutableMapping):
                self.clear(value, f"{key}.")
            elif isinstance(value, list):
                self._clear_list(value, key)
            elif isinstance(value, str) and (new := self._path(value, key)) != value:
                table[name] = new

    def _clear_list(self, values: list[Any], key: str) -> None:
        for i, value in enumerate(values):
            if isinstance(value, MutableMapping):
                self.clear(value, f"{key}.")
            elif isinstance(value, str) and (new := self._path(value, key)) != value:
                values[i] = new

    def _path(self, value: str, key: str) -> str:
        """Return a setting; of an absolute path its last part, as a path relative to the run folder."""
        text = LOGIN.sub("", value)
        if text.startswith(("/", "~")) and "\n" not in text:
            text = ".." if key == "run.folder" else Path(text).name
        else:
            text = json.loads(self.json(json.dumps(text)))
        if text != value:
            self.left_out[key] = repr(text)
        return text


def _is_secret(name: str, value: Any) -> bool:
    """Return whether a setting is named like a secret, and may be one."""
    texts = [x for x in (value if isinstance(value, list) else [value]) if isinstance(x, str)]
    return bool(SECRET.search(name) or (TOKEN.search(name) and texts))


def _tells(hook: Any) -> bool:
    """Return whether a hook acts on the world outside; not if its plugin is not here, as then nobody knows."""
    try:
        return acts_outside(hook)
    except SigmaError:
        return False


def _last_part(match: re.Match[str]) -> str:
    return match[0].rstrip("/").rpartition("/")[2]


def _shorten(place: str, text: str) -> str:
    """Return the last part of a path that begins with a folder, and what follows it in a JSON text."""
    end = match.end() if (match := BELOW.match(text)) else 0
    last = f"{place}{text[:end]}".rstrip("/").rpartition("/")[2]
    return json.dumps(last)[1:-1] + text[end:]
