"""The table of published plugins, from the index that comes with Sigma."""

from __future__ import annotations

from sigma_run.published.index import read_index


def text(_: str = "") -> str:
    """Return a table of the plugins in the index, as MyST: each with its version, API, components and summary."""
    head = "| plugin | version | API | components | summary |\n|---|---|---|---|---|\n"
    rows = (
        f"| `{row.distribution}` | {row.version} | {row.api} | {count(row.kinds.values())} in {', '.join(row.kinds)} "
        f"| {row.summary} |\n"
        for row in read_index()
    )
    return head + "".join(rows)


def count(names: object) -> int:
    """Return the number of names in texts with blanks between them."""
    return sum(len(text.split()) for text in names)  # type: ignore[attr-defined]
