"""Draft configurations that train on saved datasets as they are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from sigma_data.profiling.drafting import (
    FEWEST,
    SHARES,
    PredictionTask,
    TableDraft,
    choose_batch_size,
    choose_task,
    quote,
)
from sigma_data.profiling.leaks import find_groups, find_leaks
from sigma_data.profiling.picture_drafting import PictureDraft
from sigma_data.profiling.picture_labels import PictureTask
from sigma_data.sound.decoding import FAULTS, soundfile
from sigma_huggingface.folder import open_saved
from sigma_huggingface.nested import Sequences
from sigma_huggingface.profile import SavedProfile
from sigma_kernel import ConfigurationDraft, SigmaDataError
from sigma_text.profiling.inspector import draft_texts

TIMES = 0.95  # share of sounds that are not cut off
RATE = 16_000
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
        lines = _write_sounds(saved, column, task) if kind == "sound" else _write_sequences(saved, column, task)
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
def _write_sounds(saved: SavedProfile, column: str, task: PredictionTask) -> tuple[list[str], str]:
    """Return the lines of the data, and the beginning of a network, for sounds as mel spectrograms."""
    seconds = _measure_seconds(saved, column)
    lines = [
        'dataset = "huggingface_sounds"',
        f"column = {quote(column)}",
        f"seconds = {seconds}".ljust(32) + "# longer sounds are cut off, shorter ones padded with silence",
        f"rate = {RATE}",
        'preprocessors.scale = "standardise"',
    ]
    return lines, "input() + permute(2, 1)"


def _measure_seconds(saved: SavedProfile, column: str) -> float:
    """Return the length that most sounds do not exceed, of those that can be decoded."""
    lengths = []
    with saved.sounds[column].open_all() as open_sound:
        for sound in saved.sounds[column].pictures[:1000]:
            try:
                with open_sound(sound) as stream:
                    about = soundfile().info(stream)
                lengths.append(about.frames / about.samplerate)
            except FAULTS:
                continue
    if not lengths:
        raise SigmaDataError(f"{saved.folder}: no sound of column {column!r} can be used. Save them as WAV or FLAC.")
    return max(0.1, round(float(np.quantile(lengths, TIMES)), 2))


def _write_sequences(saved: SavedProfile, column: str, task: PredictionTask) -> tuple[list[str], str]:
    """Return the lines of the data, and the beginning of a network, for lists of numbers."""
    source = open_saved(saved.training_folder)
    rows = Sequences.from_column(source.read([column])[column], column, source.place)
    lines = ['dataset = "huggingface_sequences"', f"column = {quote(column)}"]
    length = max(1, min(LONGEST, int(np.quantile(rows.lengths, TIMES))))
    if rows.shape is None:
        lines.append(f"length = {length}".ljust(32) + "# longer lists are cut off, shorter ones padded with zeros")
    if rows.numbers.dtype == np.int32 and rows.numbers.ndim == 1 and rows.numbers.min(initial=0) >= 0:
        return (
            lines,
            f'input(none, dtype="int32") + embedding({int(rows.numbers.max(initial=1)) + 1}, 32) + permute(2, 1)',
        )
    lines.append('preprocessors.scale = "standardise"')
    steps = rows.shape[0] if rows.shape else length
    return lines, f"input() + {f'reshape(1, {steps})' if rows.numbers.ndim == 1 else 'permute(2, 1)'}"


def _draft_steps(
    saved: SavedProfile, written: str, task: PredictionTask, parts: tuple[Sequence[str], str]
) -> ConfigurationDraft:
    return ConfigurationDraft(
        saved.profile.name, "\n".join(_write_steps(saved, written, task, *parts)), [*filter(None, [task.unsure])]
    )


def _write_steps(
    saved: SavedProfile, written: str, task: PredictionTask, lines: Sequence[str], beginning: str
) -> Iterator[str]:
    """Yield the lines of a configuration of convolutions over steps."""
    (dataset, *others), rows = lines, _count_rows(saved, task)
    yield f"# {saved.profile.name}: {saved.profile.rows:,} rows."
    yield from ("", "format = 1", "", "[run]", f"name = {quote(saved.profile.name)}", "seed = 0", "", "[data]", dataset)
    yield f"folder = {quote(written)}"
    yield from others
    yield f"target = {quote(task.target)}".ljust(32) + f"# {task.reason}"
    if saved.profile[task.target].missing:
        yield 'missing_targets = "drop"'
    yield from [f"split = {REST}"] if _lacks_validation(saved) else []
    yield from () if saved.parts else _write_split(saved, task)
    yield from (f"batch_size = {choose_batch_size(rows)}", "")
    ends = f"output({task.classes}) + softmax_cross_entropy()" if task.classes else "output(1) + squared_difference()"
    yield from (f"[network]                       # of a size for {rows:,} rows", 'architecture = """', beginning)
    yield '+ conv1d(32, 5, padding="same") + activation("relu") + conv1d(32, 5, padding="same") + activation("relu")'
    yield from (f"+ global_average_pool() + dropout(0.2) + {ends}", '"""', "", "[trainer]")
    yield from (
        'optimiser = { type = "adamw", learning_rate = 0.003 }',
        f"epochs = {max(20, min(200, 200_000 // rows))}",
    )
    score = "accuracy" if task.classes else "r_squared"
    yield from ("", "[hooks.score]", f'type = "{score}"', 'on = "validation"', 'every = "1 epoch"', "")
    yield "[hooks.finish]                  # the best parameters are restored"
    yield from ('type = "early_stop"', 'value = "validation.loss"', "patience = 20", "restore = true", "")


def _write_split(saved: SavedProfile, task: PredictionTask) -> Iterator[str]:
    yield SHARES
    counts = [rows for _, rows in saved.profile[task.target].counts]
    if task.classes and len(counts) == task.classes and min(counts) >= FEWEST:
        yield 'split_by = "stratified"'
