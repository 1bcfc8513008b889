"""The workers of a group have a row each, while a run trains by one."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

PATIENCE = 120_000  # milliseconds: workers are processes that start


def test_each_worker_has_a_row_in_the_view_that_trains(browsers: Any, visit: Any, tmp_path: Path) -> None:
    operator = ("--operator", "processes", "--workers", "2", "--set", "run.operator.shards=3")
    with browsers.run(tmp_path, "digits", *browsers.ENDLESS, *operator) as run:
        page = visit().page
        page.goto(run.link)
        page.get_by_text("connected", exact=True).wait_for()
        table = page.get_by_role("group", name="Workers").get_by_role("table")
        for number, shards in ((0, 2), (1, 1)):  # of three
            row = table.get_by_role("row", name=re.compile(rf"^{number} \S+ {shards} \d+ \S+$"))
            row.wait_for(timeout=PATIENCE)
        head = table.get_by_role("row").first
        assert head.inner_text().split("\t") == ["Worker", "Rows/s", "Shards", "Generation", "Seen, s ago"]
