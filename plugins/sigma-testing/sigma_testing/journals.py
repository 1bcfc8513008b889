"""Forge journals with valid hashes, and metrics, to test what a replay detects beyond the hash chain."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from sigma_store.chain import chain_row, hash_of
from sigma_store.checkpoints.store import MANIFEST, SEAL
from sigma_store.curves import rows as metric_rows
from sigma_store.curves_file import CurvesFile
from sigma_store.files import digest
from sigma_store.folders import CURVES

Rows = list[dict[str, Any]]


def read_journal(run: Path) -> Rows:
    """Return the rows of a journal without their hashes."""
    rows: Rows = [json.loads(line) for line in (run / "journal.jsonl").read_text().splitlines()[1:]]
    for row in rows:
        del row["hash"]
    return rows


def forge_journal(run: Path, change: Callable[[Rows], Any]) -> None:
    """Change the rows of a journal, including the first line, and recompute all hashes."""
    path = run / "journal.jsonl"
    rows: Rows = [json.loads(line) for line in path.read_text().splitlines()]
    change(rows)
    reseal_journal(path, [json.dumps({name: row[name] for name in row if name != "hash"}) for row in rows])


def reseal_journal(path: Path, rows: list[str]) -> None:
    """Write rows of JSON as a journal with a valid hash chain, and drop the chain from its checkpoints."""
    before, text = "", ""
    for row in rows:
        line = chain_row(before, row)
        before, text = hash_of(line), f"{text}{line}\n"
    path.write_text(text)
    for manifest in path.parent.glob(f"checkpoints/*/*/{MANIFEST}"):
        values = json.loads(manifest.read_text())
        manifest.write_text(json.dumps({**values, "chain": {}}))
        (manifest.parent / SEAL).write_text(f"{digest(manifest.read_bytes())}  {MANIFEST}\n")


def forge_metrics(run: Path, change: Callable[[Rows], Any]) -> None:
    """Change the rows of metrics, and write them anew."""
    rows: Rows = [dict(row) for row in metric_rows(run, print)]
    change(rows)
    replace_metrics(run, rows)


def replace_metrics(run: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    """Write rows in place of the metrics of a run."""
    (run / CURVES).unlink()
    file = CurvesFile(run / CURVES)
    for row in rows:
        file.append(row)
