"""The page about publishing a plugin, as steps: files to write, and commands to run in a folder."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "publish.md"
PART = re.compile(
    r"^```\{code-block\} \w+\n:caption: (?P<path>\S+)\n\n(?P<text>.*?)^```$|^(?P<lines>(?:    \S[^\n]*+\n)+)",
    re.M | re.S,
)


def read_steps(page: Path = PAGE) -> Iterator[tuple[str, str]]:
    """Yield the path and the text of each file that the page shows, and ``""`` with each of its commands, in order."""
    for part in PART.finditer(page.read_text("utf-8")):
        if part["path"]:
            yield part["path"], part["text"]
        else:
            yield from (("", line.strip()) for line in part["lines"].splitlines())
