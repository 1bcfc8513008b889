"""Read the body of a request as rows to predict from: JSON, or a table in CSV."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from math import prod
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from attrs import frozen

from sigma_kernel.errors import SigmaDataError, SigmaError
from sigma_run import Trained

JSON, CSV = "application/json", "text/csv"
OTHERS = 100  # columns beside those of the network, such as its target
HINT = 'Send {"rows": [...]}, or the list alone'


@frozen
class BodyError(Exception):
    """A body that cannot be predicted from: the HTTP status, and a sentence."""

    status: int
    why: str


@frozen
class NamedRows:
    """Columns by name, as networks that were trained on named columns read them."""

    by_name: Mapping[str, Sequence[Any]]

    @property
    def columns(self) -> list[str]:
        """Return the names."""
        return [*self.by_name]

    def __getitem__(self, name: str) -> np.ndarray:
        column = np.empty(len(self.by_name[name]), object)
        column[:] = self.by_name[name]
        return column


def read_body(model: Trained, kind: str, body: bytes, most: int) -> dict[str, np.ndarray]:
    """Return the rows of a body by section, at most this many; raise BodyError if they do not fit the network."""
    try:
        sections = _read_csv(model, body, most) if kind == CSV else _read_json(model, body, most)
    except SigmaError as error:
        raise BodyError(422, _shorten(str(error))) from error
    return sections


def _shorten(sentence: str) -> str:
    """Return an error of the data without the names of a frame and a file, which no client has sent."""
    for prefix in ("data: ", "predict: ", "frame: ", "table: "):
        sentence = sentence.removeprefix(prefix)
    return sentence


# -- JSON --------------------------------------------------------------------------------------------------------------
def _read_json(model: Trained, body: bytes, most: int) -> dict[str, np.ndarray]:
    document, names = _parse_json(body), [*model.shapes]
    if len(names) == 1:
        rows = document.get("rows") if isinstance(document, dict) and document.keys() == {"rows"} else document
        return {names[0]: _read_rows(model, names[0], rows, most)}
    if not isinstance(document, dict) or document.keys() != {*names}:
        raise BodyError(422, f"the network reads several sections: send an object with the rows of {', '.join(names)}.")
    return {name: _read_rows(model, name, document[name], most) for name in names}


def _refuse_constant(name: str) -> float:
    raise ValueError(f"{name} is not a number of JSON")


def _parse_json(body: bytes) -> Any:
    try:
        return json.loads(body.decode("utf-8"), parse_constant=_refuse_constant)
    except RecursionError:
        raise BodyError(400, "the body is nested too deeply. Send a list of rows.") from None
    except UnicodeDecodeError as error:
        raise BodyError(400, f"the body is not UTF-8: byte {error.start} is not. Encode it as UTF-8.") from None
    except ValueError as error:
        raise BodyError(400, f"the body is not JSON: {str(error).partition('; use sys.')[0]}. {HINT}.") from None


def _read_rows(model: Trained, section: str, rows: Any, most: int) -> np.ndarray:
    if not isinstance(rows, list):
        raise BodyError(422, f"the body must be a list of rows (got {_describe(rows)}). {HINT}.")
    if not rows:
        raise BodyError(422, f"there is no row. {HINT}.")
    check_count(len(rows), most)
    if isinstance(rows[0], str):
        return _read_texts(model, section, rows)
    if isinstance(rows[0], dict):
        return model.arrays({section: _read_objects(model, section, rows)})[section]
    return _read_lists(rows, model.shapes[section])


def _read_texts(model: Trained, section: str, rows: list[Any]) -> np.ndarray:
    """Return rows that are texts, of a network that was trained on a column of these."""
    if len(columns := column_names(model, section)) != 1:
        wanted = f"the columns {', '.join(columns)}: send objects" if columns else "numbers: send lists"
        raise BodyError(422, f"row 0 is a text; the network reads {wanted}.")
    if wrong := next((number for number, row in enumerate(rows) if not isinstance(row, str)), 0):
        raise BodyError(422, f"row {wrong} is {_describe(rows[wrong])}, and row 0 a text. Send all rows alike.")
    return model.arrays({section: rows})[section]


def check_count(count: int, most: int) -> None:
    """Raise BodyError for more rows than a request may have."""
    if count > most:
        raise BodyError(413, f"there are more than {most:,} rows. Send several requests, or raise --most-rows.")


def _read_objects(model: Trained, section: str, rows: list[Any]) -> NamedRows:
    """Return rows that are objects as columns; what an object lacks is missing."""
    if section not in model.columns:
        raise BodyError(422, "the network was not trained on columns with names. Send each row as a list.")
    for number, row in enumerate(rows):
        if not isinstance(row, dict):
            raise BodyError(422, f"row {number} is {_describe(row)}, and row 0 an object. Send all rows alike.")
    names, columns = dict.fromkeys(name for row in rows for name in row), {*column_names(model, section)}
    others = [name for name in names if name not in columns][:OTHERS]  # the first wrong one is refused
    return NamedRows({name: [row.get(name) for row in rows] for name in names if name in columns or name in others})


def column_names(model: Trained, section: str) -> list[str]:
    """Return the columns of a section as the data have them, before any is encoded; none if they had no names."""
    frames = model.checkpoint.values.get("learned", {}).get("frames", {})
    columns = frames.get(section, {}).get("columns", model.columns.get(section, ()))
    return [str(column["name"] if isinstance(column, dict) else column) for column in columns]  # with an encoder


def _read_lists(rows: list[Any], shape: tuple[int, ...]) -> np.ndarray:
    """Return rows that are lists as an array; a flat list is brought to the shape of a sample."""
    try:
        values = np.array(rows)
    except ValueError:
        raise BodyError(422, f"the rows have different lengths. Send {prod(shape)} numbers in each.") from None
    except OverflowError:
        raise BodyError(422, "a row holds an integer that is too large. Send it as a decimal number.") from None
    if values.dtype.kind not in "biuf" or values.dtype == np.uint64:
        raise BodyError(422, f"the rows must hold numbers alone: {_describe_wrong(rows)}")
    values = values.astype(np.float32) if values.dtype.kind == "b" else values
    flat = values.ndim == 2 and len(shape) > 1 and values.shape[1] == prod(shape)
    values = values.reshape(-1, *shape) if flat else values
    if values.shape[1:] != shape:
        raise BodyError(
            422, f"each row must have the shape {list(shape)} (got {list(values.shape[1:])}). Send its numbers so."
        )
    return values


def _describe_wrong(rows: list[Any]) -> str:
    """Return where lists hold a value that is not a number, or a number that is too large."""
    for number, row in enumerate(rows):
        values = [row]
        while values:
            value = values.pop()
            if isinstance(value, list):
                values.extend(reversed(value))
            elif not isinstance(value, int | float):
                return f"row {number} holds {_describe(value)}. Send a number instead."
            elif isinstance(value, int) and not -(2**63) <= value < 2**63:
                return f"row {number} holds an integer that is too large. Send it as a decimal number."
    return "they mix kinds. Send numbers."


def _describe(value: Any) -> str:
    """Return what kind of JSON a value is."""
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    kinds: dict[type, str] = {dict: "an object", list: "a list", str: "a text"}
    return kinds.get(type(value), "a number")


# -- CSV ---------------------------------------------------------------------------------------------------------------
def _read_csv(model: Trained, body: bytes, most: int) -> dict[str, np.ndarray]:
    """Return the rows of a table; it is read as ``sigma predict`` reads a file."""
    if len(model.shapes) != 1:
        raise BodyError(422, f"the network reads several sections, {', '.join(model.shapes)}: send JSON.")
    if not body.strip():
        raise BodyError(422, "there is no row. Send a line for each.")
    check_count(body.count(b"\n") - 1, most)  # a header, and line feeds
    with TemporaryDirectory(prefix="sigma-serve-") as folder:
        path = Path(folder) / "body.csv"
        path.write_bytes(body)
        try:
            values = model.read(path)
        except SigmaDataError as error:
            raise BodyError(422, str(error).replace(str(path), "body")) from error
    check_count(len(values), most)
    return {next(iter(model.shapes)): values}
