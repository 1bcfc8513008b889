"""Inspect saved datasets of Hugging Face, and draft configurations for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from attrs import evolve, frozen

from sigma_data.datasets.splits import Divided
from sigma_data.examining.gathering import SIZE, gather, gather_pictures
from sigma_data.examining.inspecting import DataInspector
from sigma_data.examining.rows import ExaminedRows
from sigma_data.examining.rules import apply_rules
from sigma_data.examining.tables import gather_file
from sigma_data.profiling.inspectors import describe_oddities
from sigma_data.profiling.pictures import describe_oddities as describe_pictures
from sigma_data.tables.folder import open_files
from sigma_huggingface.drafting import draft_saved
from sigma_huggingface.folder import holds_datasets, open_saved, split_saved
from sigma_huggingface.pictures import HuggingFacePictures
from sigma_huggingface.profile import SavedProfile, count_rows
from sigma_huggingface.sequences import HuggingFaceSequences
from sigma_huggingface.sounds import HuggingFaceSounds
from sigma_kernel import ConfigurationDraft, Dataset, Finding, Inspection, Inspector, SigmaConfigError

SECONDS = 1.0  # of sounds that are compared


@frozen
class HuggingFaceInspector(Inspector):
    """Inspect folders that ``save_to_disk`` of Hugging Face's library ``datasets`` has written."""

    wishes: ClassVar[tuple[str, ...]] = ("target", "text")

    def takes(self, place: Path) -> bool:
        """Return whether a folder holds a dataset, or a dictionary of these."""
        return place.is_dir() and holds_datasets(place)

    def inspect(self, place: Path) -> Inspection:
        """Return the profile of the columns, with samples of pictures."""
        saved = SavedProfile.read(place)
        findings = describe_oddities(saved.profile)
        samples: dict[str, np.ndarray] = {}
        for pictures in saved.pictures.values():
            findings += describe_pictures(pictures)
            samples |= pictures.samples()
        return Inspection(saved.head, [*saved.table()], findings, saved.to_json(), samples)

    def draft(self, place: Path, written: str, wishes: Mapping[str, str]) -> ConfigurationDraft:
        """Return a configuration that predicts the ``target``, by default the only ``ClassLabel``."""
        if unknown := {*wishes} - {*self.wishes}:
            raise SigmaConfigError(f"--{min(unknown)}: does not fit a saved dataset. Give --target or --text.")
        return draft_saved(SavedProfile.read(place), written, wishes)

    def examine(self, data: Any, splits: Mapping[str, Dataset] | None = None, quick: bool = False) -> Sequence[Finding]:
        """Return what the rules find in a saved dataset, or in a data set in splits."""
        if not isinstance(data, Path):
            return DataInspector().examine(data, splits, quick)
        return _examine(SavedProfile.read(data), quick)


def _examine(saved: SavedProfile, quick: bool) -> Sequence[Finding]:
    """Return what the rules find in the inputs that a draft would choose."""
    kind, column = saved.choose_inputs(saved.find_target())
    if kind == "table":
        return apply_rules(_gather_table(saved.folder), quick)
    target = saved.choose_target(None)
    drop: dict[str, Any] = {"missing_targets": "drop"}
    if kind == "picture":
        how: dict[str, Any] = {"size": SIZE, "fit": "stretch", "broken": "skip"}
        return apply_rules(
            gather_pictures(HuggingFacePictures(saved.folder, column=column, target=target, **how, **drop))
        )
    data: Divided
    if kind == "sound":
        how = {"seconds": SECONDS, "features": "wave", "broken": "skip"}
        data = HuggingFaceSounds(saved.folder, column=column, target=target, **how, **drop)
    else:
        data = HuggingFaceSequences(saved.folder, column, target=target, **drop)
    return apply_rules(gather(data, data, quick), quick)


def _gather_table(folder: Path) -> ExaminedRows:
    """Return the rows of a dataset, or those of all splits."""
    parts = split_saved(folder)
    if not parts:
        return gather_file(open_saved(folder))
    rows = gather_file(open_files([*parts.values()], folder, str(folder), open_saved))
    starts = np.minimum(np.cumsum([0, *map(count_rows, parts.values())]), len(rows.keys))
    return evolve(rows, splits={name: np.arange(starts[i], starts[i + 1]) for i, name in enumerate(parts)})
