"""Describe and examine the data of a run: ``python -m sigma_monitor_web.describing``, a process of its own.

A line of JSON on its input says which data; it answers with a line for the profile, and one for the findings, and ends
with the process that asked.  Others go before it where the processor is busy, and it is the first to end where memory
is short, so that it does not disturb training.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import warnings
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, TextIO

import numpy as np
from attrs import frozen

from sigma_kernel import Dataset, Inspection, Inspector
from sigma_kernel.errors import SigmaError, error_text
from sigma_kernel.graph import DTYPES, Spec
from sigma_monitor_control.protocol.pictures import picture
from sigma_monitor_web.reading import OFFLINE, bound, limit_time
from sigma_run.config import open_data
from sigma_run.launcher import describe_findings, load_examiner

COLUMNS, ROWS, NOTES = 400, 400, 100  # of an answer
LARGEST = 64  # pixels of a side of a picture

Splits = Mapping[str, Dataset]


@frozen(eq=False)
class SavedRows(Dataset):
    """The first rows of a split, as a run has them in memory."""

    arrays: Mapping[str, np.ndarray]
    classes: tuple[str, ...]  # of the targets
    columns: Mapping[str, list[str]]

    @property
    def sections(self) -> Mapping[str, Spec]:
        """Return the shape and dtype of one sample of each section."""
        return {name: Spec(values.shape[1:], _name_dtype(values.dtype)) for name, values in self.arrays.items()}

    @property
    def blocks(self) -> int:
        """Return 1."""
        return 1

    def rows(self, block: int) -> int:
        """Return the number of rows."""
        return len(next(iter(self.arrays.values())))

    def block(self, block: int) -> Mapping[str, np.ndarray]:
        """Return the rows."""
        return self.arrays

    def class_names(self, section: str) -> tuple[str, ...]:
        """Return the labels of the targets by index."""
        return self.classes if section == "targets" else ()

    def column_names(self, section: str) -> list[str]:
        """Return the names of the columns of a section."""
        return self.columns.get(section, [])


def _name_dtype(dtype: np.dtype[Any]) -> str:
    """Return the dtype of the graph that holds values of a dtype: of bytes and short integers, int32."""
    return dtype.name if dtype.name in DTYPES else "int32" if dtype.itemsize < 4 else "int64"


# -- data --------------------------------------------------------------------------------------------------------------
def open_folder(folder: str, trainer: str | None = None, data: str | None = None) -> tuple[Any, Splits]:
    """Return the data set of a trainer of a run folder, and its splits; nothing is trusted, nor downloaded.

    Raises a SigmaError if that is impossible.
    """
    os.environ[OFFLINE] = "1"
    return open_data(Path(folder), trainer, None if data is None else Path(data))


def open_rows(rows: str, classes: list[str], columns: Mapping[str, list[str]]) -> tuple[Any, Splits]:
    """Return the rows that a run has saved, by split, as a data set."""
    splits: dict[str, dict[str, np.ndarray]] = {}
    with np.load(rows, allow_pickle=False) as arrays:
        for key in arrays.files:
            split, _, section = key.partition("/")
            splits.setdefault(split, {})[section] = arrays[key]
    held: Splits = {name: SavedRows(own, tuple(classes), columns) for name, own in splits.items()}
    return next(iter(held.values())), held


OPENS: Mapping[str, Callable[..., tuple[Any, Splits]]] = {"folder": open_folder, "rows": open_rows}


# -- answers -----------------------------------------------------------------------------------------------------------
def present_profile(inspection: Inspection) -> dict[str, Any]:
    """Return a profile as a page shows it; of many columns, rows or notes the first."""
    document = inspection.document
    columns = document.get("columns", [])
    head, *rows = inspection.table
    return {
        "head": inspection.head,
        "notes": [*inspection.findings][:NOTES],
        "rows": document.get("rows", document.get("pictures", 0)),
        "duplicates": document.get("duplicates"),
        "columns": columns[:COLUMNS],
        "width": len(columns),
        "samples": [row[:COLUMNS] for row in document.get("samples", [])],
        "table": [[*row] for row in [head, *rows[:ROWS]]] if head else [],
        "lengths": {**document["lengths"], "histogram": document["histogram"]} if "lengths" in document else None,
        "pictures": [{"label": name, "pictures": [*map(_draw, some)]} for name, some in inspection.samples.items()],
        "parts": document.get("parts", {}),
        "classes": document.get("classes_of_parts", {}),
    }


def _draw(values: np.ndarray) -> dict[str, Any]:
    step = -(-max(values.shape[1:]) // LARGEST)
    is_grey = bool((values == values[:1]).all())
    return picture(values[: 1 if is_grey else 3, ::step, ::step], 0.0, 255.0)


def answer(request: Mapping[str, Any], send: Callable[[Any], None]) -> None:
    """Send the profile of the data of a request, then what the examiner finds in them; errors in their places."""
    examiner: Inspector = load_examiner()
    try:
        about = {name: value for name, value in request.items() if name not in ("limits", "kind")}
        data, splits = OPENS[request["kind"]](**about)
        send({"result": present_profile(examiner.describe(data, splits))})
    except SigmaError as error:
        send({"error": str(error)})
        return
    except Exception as error:  # of a data set, or of an inspector
        send({"error": error_text(error)})
        return
    try:
        send({"result": describe_findings(examiner.examine(data, splits))})
    except Exception as error:
        send({"error": error_text(error)})


# -- the process -------------------------------------------------------------------------------------------------------
def main(input: TextIO = sys.stdin) -> None:
    """Answer the request on the input, and write nothing else."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # for whatever prints
    request = json.loads(input.readline())
    threading.Thread(target=_end_with, args=(input,), daemon=True).start()
    give_way()
    bound(request["limits"]["memory"])
    warnings.simplefilter("ignore")

    def send(document: Any) -> None:
        answers.write(f"{json.dumps(document)}\n")
        answers.flush()

    with limit_time(request["limits"]["seconds"]):
        answer(request, send)


def _end_with(input: TextIO) -> None:
    input.read()
    os._exit(0)


def give_way() -> None:
    """Leave processor and memory to others, as far as the system lets a process do so."""
    with suppress(OSError, AttributeError):
        os.nice(10)
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000")


if __name__ == "__main__":
    try:
        main()
    except MemoryError:
        os._exit(75)
