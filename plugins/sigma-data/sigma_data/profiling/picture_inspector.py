"""Inspect folders of pictures, and draft configurations for them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from attrs import frozen

from sigma_data.pictures.archive import is_archive, strip_end
from sigma_data.pictures.labelled import read_folders
from sigma_data.profiling.kinds import shorten
from sigma_data.profiling.picture_drafting import PictureDraft
from sigma_data.profiling.picture_labels import PictureTask, find_table, read_task
from sigma_data.profiling.pictures import PictureProfile, holds_pictures, inspect_pictures, profile_pictures
from sigma_kernel import ConfigurationDraft, Inspection, Inspector, SigmaConfigError, SigmaDataError


@frozen
class PictureInspector(Inspector):
    """Inspect folders of pictures, or archives of them: one for each class, or with a table of paths and labels.

    Needs Pillow: ``python -m pip install "sigma-data[images]"``.
    """

    def takes(self, place: Path) -> bool:
        """Return whether a folder, one below it, or a zip or tar archive has a file with the name of a picture."""
        return (place.is_dir() or is_archive(place)) and holds_pictures(place)

    def inspect(self, place: Path) -> Inspection:
        """Return the profile of a folder of pictures, with samples of each class."""
        return inspect_pictures(place)

    def draft(self, place: Path, written: str, wishes: Mapping[str, str]) -> ConfigurationDraft:
        """Return a configuration that predicts the classes of the folders, or the ``target`` in a table of labels."""
        if unknown := {*wishes} - {"target"}:
            raise SigmaConfigError(f"--{sorted(unknown)[0]}: does not fit a folder of pictures. Give --target.")
        profile = profile_pictures(place)
        if not profile.usable:
            path, fault = next(iter(profile.faults.items()), (place, "has no pictures"))
            raise SigmaDataError(f"{place}: no picture can be used. {path}: {fault}.")
        task = choose_task(place, profile, wishes.get("target"))
        name = strip_end(place.resolve().name) or "pictures"
        rows = sum(task.counts.values()) if task.kind == "classes" else len(profile.labels)
        draft = PictureDraft(written, name, profile, task, rows)
        return ConfigurationDraft(name, draft.text, draft.notes)


def choose_task(place: Path, profile: PictureProfile, target: str | None) -> PictureTask:
    """Return what to predict: by the table of labels in a folder, or the classes of the folders."""
    table = find_table(place, profile.others) if place.is_dir() else None
    if table is not None and (target is not None or "" in profile.counts or len(profile.counts) < 2):
        return read_task(place, table, target)
    if target is not None:
        raise SigmaConfigError(f"--target: there is no table of labels in {place}. Drop it, or add one with paths.")
    labelled = read_folders(place)
    names = labelled.labels.class_names("targets")
    if len(names) < 2:
        raise SigmaConfigError(f"{place}: all pictures are of one class, {names[0]!r}. Add a folder with others.")
    counts = profile.counts
    listed = shorten(", ".join(f"{name} ({count:,})" for name, count in counts.items()), 90)
    return PictureTask("classes", len(counts), f"{len(counts)} classes, the folders: {listed}", counts)
