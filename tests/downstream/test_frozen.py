"""The plugins that stand for those of third parties are unchanged."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path

HERE = Path(__file__).parent
MADE = {"__pycache__", "dist", ".pytest_cache"}


def test_the_plugins_of_third_parties_are_what_was_published():
    files = (path.relative_to(HERE) for path in HERE.glob("*-*/**/*") if path.is_file())
    kept = sorted(path.as_posix() for path in files if MADE.isdisjoint(path.parts))
    now = "".join(f"{sha256((HERE / path).read_bytes()).hexdigest()}  {path}\n" for path in kept)
    assert now == (HERE / "digests.txt").read_text(), "They stand for code of others: see README.md."
