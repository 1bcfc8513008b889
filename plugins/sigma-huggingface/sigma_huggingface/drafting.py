"""Draft configurations that train on saved datasets as they are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from sigma_data.examining.sound_inspector import BEGINNING, look_at_sounds
from sigma_data.profiling.drafting import (
    PredictionTask,
    TableDraft,
    choose_task,
    quote,
)
from sigma_data.profiling.leaks import find_groups, find_leaks
from sigma_data.profiling.picture_drafting import PictureDraft
from sigma_data.profiling.picture_labels import PictureTask
from sigma_data.profiling.step_drafting import StepDraft
from sigma_huggingface.folder import open_saved
from sigma_huggingface.nested import Sequences
from sigma_huggingface.profile import SavedProfile
from sigma_kernel import ConfigurationDraft, SigmaDataError
from sigma_text.profiling.inspector import draft_texts

TIMES = 0.95  # share of lists that are not cut off
LONGEST = 256  # steps of lists that are read
REST = "{ training = 0.85, validation = 0.15 }"  # of the split for training


def draft_saved(saved: SavedProfile, written: str, wishes: Mapping[str, str]) -> ConfigurationDraft:
    """Return a configuration that predicts the target from pictures, sounds, texts, lists, or a table."""
    target = saved.choose_target(wishes.get("target"))
    kind, column = saved.choose_inputs(target)
    task = choose_task(saved.profile, target)
    text = wishes.get("text") or (_find_text(saved, target) if kind == "table" else None)
    if text is not None:
        return _draft_texts(saved, written, {"target": target, "text": text})
    if kind == "picture":
        return _draft_pictures(saved, written, column, task)
    if kind in ("sound", "sequence"):
        lines = _write_sounds(saved, column) if kind == "sound" else _write_sequences(saved, column)
        return _draft_steps(saved, written, task, lines)
    return _draft_table(saved, written, task)


def _find_text(saved: SavedProfile, target: str) -> str | None:
    """Return the column of texts, if there is one and no other input."""
    others = [column for column in saved.profile.columns if column.name != target]
    texts = [column.name for column in others if column.kind == "text"]
    return texts[0] if texts and not any(column.encoder for column in others) else None


def _draft_texts(saved: SavedProfile, written: str, wishes: Mapping[str, str]) -> ConfigurationDraft:
    lines = ['dataset = "huggingface"', f"folder = {quote(written)}"]
    lines += [f"split = {REST}"] if _lacks_validation(saved) else []
    return draft_texts(open_saved(saved.training_folder), saved.folder, lines, wishes, bool(saved.parts))


def _draft_table(saved: SavedProfile, written: str, task: PredictionTask) -> ConfigurationDraft:
    source = open_saved(saved.training_folder)
    inputs = tuple(c.name for c in saved.profile.columns if c.name != task.target and c.encoder is not None)
    leaks = find_leaks(source.read([*inputs, task.target]), task.target, bool(task.classes), inputs)
    settings = {"split": REST} if _lacks_validation(saved) else {}
    place: dict[str, Any] = {"dataset": "huggingface", "key": "folder", "has_splits": bool(saved.parts)}
    groups = find_groups(saved.profile, task.target)
    draft = TableDraft(written, saved.profile.name, saved.profile, task, leaks, groups, settings, **place)
    return ConfigurationDraft(draft.name, draft.text, draft.notes)


def _draft_pictures(saved: SavedProfile, written: str, column: str, task: PredictionTask) -> ConfigurationDraft:
    profile = saved.pictures[column]
    if not profile.usable:
        path, fault = next(iter(profile.faults.items()))
        raise SigmaDataError(f"{saved.folder}: no picture can be used. {path}: {fault}.")
    counts = {label: count for label, count in profile.counts.items() if label} if task.classes else {}
    settings = {"column": column, "target": task.target}
    if saved.profile[task.target].missing:
        settings["missing_targets"] = "drop"
    kind, outputs = ("classes", task.classes) if task.classes else ("numbers", 1)
    what = PictureTask(kind, outputs, task.reason, counts, "", settings, task.unsure)
    draft = PictureDraft(written, saved.profile.name, profile, what, _count_rows(saved, task), "huggingface_pictures")
    return ConfigurationDraft(saved.profile.name, draft.text, draft.notes)


def _lacks_validation(saved: SavedProfile) -> bool:
    return bool(saved.parts) and "validation" not in saved.parts


def _count_rows(saved: SavedProfile, task: PredictionTask) -> int:
    return saved.profile.rows - saved.profile[task.target].missing


# -- sequences ---------------------------------------------------------------------------------------------------------
def _write_sounds(saved: SavedProfile, column: str) -> tuple[list[str], str]:
    """Return the lines of the data, and the beginning of a network, for sounds as mel spectrograms."""
    facts = look_at_sounds(saved.sounds[column].pictures, saved.sounds[column].open_all())
    if not facts.seconds:
        raise SigmaDataError(f"{saved.folder}: no sound of column {column!r} can be used. Save them as WAV or FLAC.")
    return ['dataset = "huggingface_sounds"', f"column = {quote(column)}", *facts.lines], BEGINNING


def _write_sequences(saved: SavedProfile, column: str) -> tuple[list[str], str]:
    """Return the lines of the data, and the beginning of a network, for lists of numbers."""
    source = open_saved(saved.training_folder)
    rows = Sequences.from_column(source.read([column])[column], column, source.place)
    rows.check_filled(column, str(saved.folder))
    lines = ['dataset = "huggingface_sequences"', f"column = {quote(column)}"]
    length = max(1, min(LONGEST, int(np.quantile(rows.lengths, TIMES))))
    if rows.shape is None:
        lines.append(f"length = {length}".ljust(32) + "# longer lists are cut off, shorter ones padded with zeros")
    if rows.numbers.dtype == np.int32 and rows.numbers.ndim == 1 and rows.numbers.min(initial=0) >= 0:
        most = int(rows.numbers.max(initial=1))
        return lines, f'input(none, dtype="int32") + embedding({most + 1}, 32) + permute(2, 1)'
    lines.append('preprocessors.scale = "standardise"')
    steps = rows.shape[0] if rows.shape else length
    return lines, f"input() + {f'reshape(1, {steps})' if rows.numbers.ndim == 1 else 'permute(2, 1)'}"


def _draft_steps(
    saved: SavedProfile, written: str, task: PredictionTask, parts: tuple[list[str], str]
) -> ConfigurationDraft:
    (dataset, *lines), beginning = parts
    lines = [dataset, f"folder = {quote(written)}", *lines]
    lines.append(f"target = {quote(task.target)}".ljust(32) + f"# {task.reason}")
    if saved.profile[task.target].missing:
        lines.append('missing_targets = "drop"')
    counts = [rows for _, rows in saved.profile[task.target].counts]
    smallest = min(counts) if task.classes and len(counts) == task.classes else 0
    head = f"{saved.profile.name}: {saved.profile.rows:,} rows"
    rows = _count_rows(saved, task)
    draft = StepDraft(saved.profile.name, head, lines, beginning, task, rows, smallest, [*saved.parts])
    return ConfigurationDraft(saved.profile.name, draft.text, [*filter(None, [task.unsure])])
