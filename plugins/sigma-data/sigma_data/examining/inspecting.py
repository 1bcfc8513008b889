"""Inspect tables, and examine data of any form."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from attrs import evolve, frozen

from sigma_data.examining.gathering import gather, gather_place
from sigma_data.examining.rules import apply_rules
from sigma_data.profiling.inspectors import TableInspector
from sigma_data.profiling.sections import count_classes, profile_splits
from sigma_kernel import Dataset, Finding, Inspection


@frozen
class DataInspector(TableInspector):
    """Inspect tables: files with rows and named columns, and folders of these; and examine data of any form."""

    def examine(self, data: Any, splits: Mapping[str, Dataset] | None = None, quick: bool = False) -> Sequence[Finding]:
        """Return what the rules find in a table, a folder of pictures, or a data set in splits."""
        if isinstance(data, Path):
            return apply_rules(gather_place(data), quick)
        return apply_rules(gather(data, data if splits is None else splits, quick), quick)

    def describe(self, data: Any, splits: Mapping[str, Dataset]) -> Inspection:
        """Return the profile of a data set: its own, as of a file, or that of the sections of its training rows.

        The document also has the number of rows of each split, as ``parts``, and ``classes_of_parts``, if there are
        any.
        """
        own = getattr(data, "profile", None)
        inspection = profile_splits(type(data).__name__.lower(), splits) if own is None else own()
        parts = {name: len(split) for name, split in splits.items()}
        return evolve(
            inspection,
            document={**inspection.document, "parts": parts, "classes_of_parts": count_classes(splits)},
        )
