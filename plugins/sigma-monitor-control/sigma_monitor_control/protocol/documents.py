"""Documents of the protocol: requests from JSON; answers, events and errors as JSON, one to a line."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any, NoReturn

from attrs import frozen

from sigma_kernel.errors import SigmaConfigError, error_text

PROTOCOL = 1
LONGEST = 4 << 20  # bytes of a document
LONGEST_ID = 100  # characters
NOT_FINITE = {"nan": float("nan"), "inf": float("inf"), "-inf": float("-inf")}  # as values; in series they are null

Id = int | str | None


@frozen
class ClientRequest:
    """A request: ``{"id": 7, "do": "get", "pattern": "**.accuracy"}``; all other fields are its arguments."""

    id: Id
    do: str
    arguments: Mapping[str, Any]


# -- reading -----------------------------------------------------------------------------------------------------------
def parse_document(text: str | bytes) -> dict[str, Any]:
    """Return the JSON object that a line or a message holds; raises SigmaConfigError for anything else."""
    try:
        document = json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise SigmaConfigError(f"document: is not JSON: {error!s:.100}. Send one JSON object to a line.") from None
    if not isinstance(document, dict):
        raise SigmaConfigError('document: is not a JSON object. Send one, such as {"id": 1, "do": "status"}.')
    return document


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON number")


def identity(document: Mapping[str, Any]) -> Id:
    """Return the id of a document, which its answer repeats; None if it has none that can be repeated."""
    identifier = document.get("id")
    if isinstance(identifier, bool) or not isinstance(identifier, int | str) or len(str(identifier)) > LONGEST_ID:
        return None
    return identifier


def request(document: Mapping[str, Any]) -> ClientRequest:
    """Return the request in a document; raises SigmaConfigError if it has no id, or nothing to do."""
    identifier, do = identity(document), document.get("do")
    if identifier is None:
        raise SigmaConfigError(
            f"document: needs an 'id': a whole number, or a string of at most {LONGEST_ID} characters."
        )
    if not isinstance(do, str):
        raise SigmaConfigError("document: needs 'do', the name of a function, such as 'status'.")
    return ClientRequest(identifier, do, {name: value for name, value in document.items() if name not in ("id", "do")})


# -- numbers -----------------------------------------------------------------------------------------------------------
def number(value: float) -> float | str:
    """Return a number, or the string of one that is not finite: ``nan``, ``inf`` or ``-inf``."""
    if math.isfinite(value):
        return value
    return "nan" if math.isnan(value) else "inf" if value > 0 else "-inf"


def sendable(value: Any) -> Any:
    """Return an argument as JSON values: numbers that are not finite as strings, NumPy's as Python's."""
    if isinstance(value, Mapping):
        return {str(name): sendable(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [sendable(inner) for inner in value]
    plain = value.tolist() if hasattr(value, "tolist") else value
    return number(plain) if isinstance(plain, float) else plain


# -- writing -----------------------------------------------------------------------------------------------------------
def request_line(id: Id, do: str, arguments: Mapping[str, Any]) -> str:
    """Return the line of a request."""
    return _line({**arguments, "id": id, "do": do})


def answer_line(id: Id, result: Any) -> str:
    """Return the line of an answer; if it is too long, the line of an error."""
    return _limit_line(id, "result", result)


def event_line(id: Id, event: Any) -> str:
    """Return the line of an event of a subscription."""
    return _limit_line(id, "event", event)


def error_line(id: Id, error: BaseException) -> str:
    """Return the line of an error."""
    return _line({"id": id, "error": {"kind": type(error).__name__, "message": error_text(error)}})


def _limit_line(id: Id, key: str, value: Any) -> str:
    line = _line({"id": id, key: value})
    if len(line) <= LONGEST:
        return line
    return error_line(id, SigmaConfigError(f"the answer has {len(line):,} bytes, more than {LONGEST:,}. Ask for less."))


def _line(document: Mapping[str, Any]) -> str:
    return json.dumps(document, allow_nan=False, separators=(",", ":")) + "\n"
