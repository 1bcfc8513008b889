"""Write the rows of scripted runs as text, without what differs between machines and between identical runs."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

from tests.proofs.folders import commands, failed, resumed
from tests.proofs.parameters import empty_folder

FILE = Path(__file__).with_name("journal.txt")
SCRIPTS = (commands, failed, resumed)
# the wall clock, the chain of rows, and a number of rows with digests
DIFFERENT = ("seconds", "time", "to_seconds", "hash", "at")


@cache
def written(script: Callable[[], Path]) -> tuple[str, str]:
    """Run a script, and return the rows of its journal as text, and its configuration."""
    with empty_folder():
        run = script()
        return "\n".join(rows(run)), (run / "config.toml").read_text("utf-8")


def rows(run: Path) -> Iterator[str]:
    """Yield the rows of a run, but for digests: how many there are depends on the wall clock."""
    for line in (run / "journal.jsonl").read_text("utf-8").splitlines():
        row = json.loads(line)
        if row.get("event") != "digest":
            yield json.dumps({name: "..." if name in DIFFERENT else value for name, value in row.items()})


def text() -> str:
    """Return the rows of all scripts."""
    return "\n".join(f"# {script.__name__}: {script.__doc__}\n{written(script)[0]}\n" for script in SCRIPTS)


def record() -> Path:
    """Write the file."""
    FILE.write_text(text(), encoding="utf-8")
    return FILE
