"""Inspect tables, and examine data of any form."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from attrs import frozen

from sigma_data.examining.gathering import gather, gather_place
from sigma_data.examining.rules import apply_rules
from sigma_data.profiling.inspectors import TableInspector
from sigma_kernel import Dataset, Finding


@frozen
class DataInspector(TableInspector):
    """Inspect tables: files with rows and named columns, and folders of these; and examine data of any form."""

    def examine(self, data: Any, splits: Mapping[str, Dataset] | None = None, quick: bool = False) -> Sequence[Finding]:
        """Return what the rules find in a table, a folder of pictures, or a data set in splits."""
        if isinstance(data, Path):
            return apply_rules(gather_place(data), quick)
        return apply_rules(gather(data, data if splits is None else splits, quick), quick)
