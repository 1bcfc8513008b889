"""Inspect tables, and examine data of any form."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from attrs import evolve, frozen

from sigma_data.datasets.csv import Csv
from sigma_data.datasets.series import Series
from sigma_data.examining.gathering import gather, gather_place
from sigma_data.examining.rules import apply_rules
from sigma_data.profiling.inspectors import TableInspector, inspect_table
from sigma_data.profiling.sections import count_classes, profile_splits
from sigma_data.tables import open_table
from sigma_kernel import Dataset, Finding, Inspection
from sigma_kernel.errors import component_name


@frozen
class DataInspector(TableInspector):
    """Inspect tables: files with rows and named columns, and folders of these; and examine data of any form."""

    def examine(self, data: Any, splits: Mapping[str, Dataset] | None = None, quick: bool = False) -> Sequence[Finding]:
        """Return what the rules find in a table, a folder of pictures, or a data set in splits."""
        if isinstance(data, Path):
            return apply_rules(gather_place(data), quick)
        return apply_rules(gather(data, data if splits is None else splits, quick), quick)

    def describe(self, data: Any, splits: Mapping[str, Dataset]) -> Inspection:
        """Return the profile of a data set: its own, that of its file, or that of the sections of its training rows.

        The document also has the number of rows of each split, as ``parts``, and ``classes_of_parts``, if there are
        any.
        """
        inspection = _profile(data, splits)
        parts = {name: len(split) for name, split in splits.items()}
        return evolve(
            inspection,
            document={**inspection.document, "parts": parts, "classes_of_parts": count_classes(splits)},
        )


def _profile(data: Any, splits: Mapping[str, Dataset]) -> Inspection:
    if (own := getattr(data, "profile", None)) is not None:
        inspection: Inspection = own()
        return inspection
    if isinstance(data, Csv | Series):
        return inspect_table(open_table(data.path, **data.format), data.path.name)
    room, _, name = component_name(data).rpartition(":")
    return profile_splits(name if room else "rows in memory", splits)
