"""Inspect texts, in a column of a table or in files, and draft configurations for them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
from attrs import evolve, frozen

from sigma_data.examining.inspecting import DataInspector
from sigma_data.examining.rules import apply_rules
from sigma_data.examining.tables import gather_file
from sigma_data.pictures.archive import is_archive, strip_end
from sigma_data.pictures.folder import list_pictures
from sigma_data.profiling.drafting import PredictionTask, choose_task, quote
from sigma_data.profiling.inspectors import TableInspector
from sigma_data.profiling.kinds import list_names, pick_example, shorten
from sigma_data.profiling.profile import profile_table
from sigma_data.profiling.prose import is_prose
from sigma_data.sampling import mix
from sigma_data.tables import RecordBatches, open_table
from sigma_kernel import ConfigurationDraft, Dataset, Finding, Inspection, Inspector, SigmaConfigError, SigmaDataError
from sigma_kernel.errors import suggest_name
from sigma_text.datasets.encoded_texts import LabelledTexts
from sigma_text.datasets.texts import Texts
from sigma_text.profile import TextProfile, describe_running, describe_texts
from sigma_text.profiling.drafting import TextDraft
from sigma_text.profiling.language_drafting import LanguageDraft

END = ".txt"


@frozen
class TextInspector(Inspector):
    """Inspect texts: a folder of text files for each class, running text, or the column ``text`` of a table."""

    wishes: ClassVar[tuple[str, ...]] = ("target", "text")

    def takes(self, place: Path) -> bool:
        """Return whether a folder or an archive has text files, a file is running text, or its name is a table's."""
        tables = TableInspector()
        if is_archive(place) and not tables.takes(place):
            return bool(list_pictures(place, (END,)).pictures) and not list_pictures(place).pictures
        if not place.is_dir():
            return tables.takes(place) or is_prose(place)
        if tables.takes(place) or not any(place.glob(f"**/*{END}")):
            return False
        return not list_pictures(place).pictures

    def inspect(self, place: Path) -> Inspection:
        """Return the lengths and the words of texts by class; of a table, its profile."""
        if not _holds_files(place):
            return TableInspector().inspect(place)
        return Texts(place).profile()

    def draft(self, place: Path, written: str, wishes: Mapping[str, str]) -> ConfigurationDraft:
        """Return a configuration that predicts the class of files, the next token, or the ``target`` from a column."""
        if unknown := {*wishes} - {*self.wishes}:
            raise SigmaConfigError(f"--{sorted(unknown)[0]}: does not fit texts. Give --text and --target.")
        draft = _draft_texts if _holds_files(place) else _draft_table
        return draft(place, written, wishes)

    def examine(self, data: Any, splits: Mapping[str, Dataset] | None = None, quick: bool = False) -> Sequence[Finding]:
        """Return what the rules find in texts of files, such as equal ones, or in other data."""
        if not isinstance(data, Path) or not _holds_files(data):
            return DataInspector().examine(data, splits, quick)
        if not Texts(data).has_classes:
            return ()
        listed = Texts(data).read()
        paths = [file.path for file in list_pictures(data, (END,)).pictures]
        rows = gather_file(open_table(pa.table({"text": pa.array(listed.texts, pa.string())})))
        names, goal = np.unique(listed.classes, return_inverse=True)
        targets: dict[str, Any] = {"goal": goal.astype(np.int64), "labels": names.tolist()}
        keys = mix(goal.astype(np.uint64) + np.uint64(1))
        rows = evolve(rows, name=str(data), place=paths.__getitem__, splits=listed.parts, target_keys=keys, **targets)
        return apply_rules(rows, quick)


def _holds_files(place: Path) -> bool:
    """Return whether a place is a folder or an archive of texts, or running text, and no table."""
    return place.is_dir() or (is_archive(place) and not TableInspector().takes(place)) or is_prose(place)


def _draft_texts(place: Path, written: str, wishes: Mapping[str, str]) -> ConfigurationDraft:
    texts = Texts(place)
    if wishes and not texts.has_classes:
        raise SigmaConfigError(f"--{min(wishes)}: is for tables; {place} is running text. Leave it out.")
    if texts.has_classes:
        return _draft_folder(place, written, wishes)
    listed = texts.read_documents()
    profile = TextProfile.from_column(pa.array(listed.texts, pa.large_string()))
    head = f"{place.name}: {describe_running(listed.texts, profile)}"
    lines = ('dataset = "texts"', f"folder = {quote(written)}")
    notes = [*listed.notes, *describe_texts(listed.texts, profile)]
    name = place.stem if place.is_file() and not is_archive(place) else strip_end(place.name)
    draft = LanguageDraft(name or "texts", head, lines, listed.texts, bool(listed.parts), notes)
    return ConfigurationDraft(draft.name, draft.text, draft.notes)


def _draft_folder(place: Path, written: str, wishes: Mapping[str, str]) -> ConfigurationDraft:
    if wishes:
        raise SigmaConfigError(f"--{min(wishes)}: is for tables; folders in {place} are the classes. Leave it out.")
    texts = Texts(place)
    listed: LabelledTexts = texts.read()
    profile = TextProfile.from_column(pa.array(listed.texts, pa.large_string()))
    counts = Counter(listed.classes)
    task = PredictionTask("", len(counts), "a folder for each class")
    head = f"{place.name}: {profile.rows:,} texts in {len(counts)} classes, of {profile.sentence}"
    lines = ('dataset = "texts"', f"folder = {quote(written)}")
    notes = [*listed.notes, *describe_texts(listed.texts, profile)]
    smallest = min(counts.values())
    draft = TextDraft(
        strip_end(place.name) or "texts", head, lines, profile, task, smallest, notes=notes,
        has_splits=bool(listed.parts),
    )  # fmt: skip
    return ConfigurationDraft(draft.name, draft.text, draft.notes)


def _draft_table(place: Path, written: str, wishes: Mapping[str, str]) -> ConfigurationDraft:
    lines = ('dataset = "table"', f"path = {quote(written)}")
    return draft_texts(open_table(place), place, lines, wishes)


def draft_texts(
    source: RecordBatches, place: Path, lines: Sequence[str], wishes: Mapping[str, str], has_splits: bool = False
) -> ConfigurationDraft:
    """Return the draft for a column of texts in a table; ``lines`` name the data set and its place."""
    names = source.schema.names
    column, target = (_find_column(wishes, role, names, place) for role in ("text", "target"))
    table = source.read([column, target] if column != target else [column])
    if column == target or not _is_text(table[column].type):
        raise SigmaConfigError(f"--text {column!r}: is the target, or holds no texts. Name another column.")
    profile = profile_table(table, place.name)
    task = choose_task(profile, target)
    there = table.filter(table[target].is_valid())
    texts = TextProfile.from_column(there[column].combine_chunks())
    counts = [rows for _, rows in profile[target].counts]
    smallest = min(counts) if task.classes and len(counts) == task.classes else 0
    lines = [*lines, f"target = {quote(target)}".ljust(32) + f"# {task.reason}"]
    lines += [f'targets = "{"classes" if task.classes else "numbers"}"']
    if missing := profile[target].missing:
        lines.append('missing_targets = "drop"'.ljust(32) + f"# {missing:,} rows have none")
    notes = [*filter(None, [task.unsure]), *describe_texts(there[column].to_pylist(), texts)]
    others = [name for name in names if name not in (column, target)]
    if others:
        notes.append(f"other columns were left out: {shorten(', '.join(others), 60)}.")
    draft = TextDraft(
        place.name.partition(".")[0] or "texts",
        f"{place.name}: {table.num_rows:,} rows, texts of {texts.sentence}",
        lines, texts, task, smallest, column, others, notes, has_splits,
    )  # fmt: skip
    return ConfigurationDraft(draft.name, draft.text, draft.notes)


def _find_column(wishes: Mapping[str, str], role: str, names: list[str], place: Path) -> str:
    """Return the column of a role; raise SigmaConfigError if it is not named, and SigmaDataError if there is none."""
    listed = list_names(names)
    if role not in wishes:
        what = {"text": "holds the texts", "target": "is to be predicted"}[role]
        raise SigmaConfigError(
            f"{place}: which column {what}? Name it: --{role} {pick_example(names)}. There are: {listed}."
        )
    if wishes[role] not in names:
        hint = suggest_name(wishes[role], names) or f" There are: {listed}."
        raise SigmaDataError(f"{place}: there is no column {wishes[role]!r}.{hint}")
    return wishes[role]


def _is_text(type_: Any) -> bool:
    return bool(pa.types.is_string(type_) or pa.types.is_large_string(type_) or pa.types.is_dictionary(type_))
