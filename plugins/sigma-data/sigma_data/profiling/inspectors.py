"""Inspect tables, and draft configurations for them."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar

from attrs import frozen

from sigma_data.profiling.drafting import TableDraft, choose_task, count_rows
from sigma_data.profiling.kinds import list_names, pick_example
from sigma_data.profiling.leaks import find_groups, find_leaks
from sigma_data.profiling.pictures import holds_pictures
from sigma_data.profiling.profile import MOST, Profile, profile_table
from sigma_data.profiling.prose import is_prose
from sigma_data.readers.csv import suggest_texts
from sigma_data.tables import InMemory, RecordBatches, open_table
from sigma_kernel import CachedData, ConfigurationDraft, Inspection, Inspector, SigmaConfigError

SUFFIXES = {
    ".csv", ".tsv", ".txt", ".data", ".parquet", ".pq", ".feather", ".arrow", ".ipc", ".jsonl", ".ndjson", ".json",
    ".orc", ".db", ".sqlite", ".sqlite3", ".xlsx", ".ods",
}  # fmt: skip
SAVED = ("state.json", "dataset_dict.json")  # of a dataset of Hugging Face, which sigma-huggingface reads
PACKED = {".gz", ".bz2", ".xz", ".zst", ".zip", ".tar", ".tgz"}


@frozen
class TableInspector(Inspector):
    """Inspect tables: files with rows and named columns, and folders of these; with a ``time``, series."""

    wishes: ClassVar[tuple[str, ...]] = ("target", "time", "ahead", "past")

    def takes(self, place: Path) -> bool:
        """Return whether the name is that of a table, or a folder has files with such names."""
        if place.is_dir():
            if any((place / name).is_file() for name in SAVED):
                return False
            files = [file for file in place.rglob("*") if not file.name.startswith(".") and _is_table(file)]
            texts = all(_is_text_of_class(file, place) for file in files) or is_prose(*files)
            return not texts and not holds_pictures(place)  # of which it may have the labels
        return _is_table(place) and not is_prose(place)

    def hold(self, given: Any) -> Any:
        """Return a frame, or anything that Arrow reads, as a table of Arrow."""
        return open_table(given).read()

    def inspect(self, place: Path | InMemory) -> Inspection:
        """Return the profile of a table."""
        return inspect_table(open_table(place), _name(place))

    def list_cached(self, folder: Path | None = None) -> list[CachedData]:
        """Return the tables that are prepared in blocks."""
        entries: Any = import_module("sigma_data.prepared.entries")
        return [
            CachedData(entry.folder.name, entry.source, entry.size, entry.last_use, entry.remove)
            for entry in entries.list_entries(folder)
        ]

    def draft(self, place: Path | InMemory, written: str, wishes: Mapping[str, str]) -> ConfigurationDraft:
        """Return a configuration that predicts the ``target`` from the other columns."""
        if unknown := {*wishes} - {*self.wishes}:
            raise SigmaConfigError(f"--{sorted(unknown)[0]}: does not fit a table. Give --target.")
        if {*wishes} - {"target"}:
            return draft_series(place, written, wishes)
        source = open_table(place)
        if "target" not in wishes:
            raise SigmaConfigError(_ask_for_target(source, place))
        table, rows = source.read_first(MOST)
        profile = profile_table(table, _name(place), rows)
        task = choose_task(profile, wishes["target"])
        inputs = tuple(c.name for c in profile.columns if c.name != task.target and c.encoder is not None)
        leaks = find_leaks(table, task.target, bool(task.classes), inputs)
        name = profile.name.partition(".")[0] or "table"
        draft = TableDraft(written, name, profile, task, leaks, find_groups(profile, task.target))
        return ConfigurationDraft(name, draft.text, draft.notes)


def _ask_for_target(source: RecordBatches, place: Path | InMemory) -> str:
    names, example = source.schema.names, pick_example(source.schema.names)
    shell = f"--target {example}, or from Python " if isinstance(place, Path) else ""
    return (
        f"{source.name}: which column is to be predicted? Name it: {shell}trainer.target = {example}. There are: "
        f"{list_names(names)}.{suggest_texts(_name(place))}"
    )


def inspect_table(source: RecordBatches, name: str) -> Inspection:
    """Return the profile of a table that is open."""
    table, rows = source.read_first(MOST)
    profile = profile_table(table, name, rows)
    head = f"{source.name}: {profile.rows:,} rows, {len(profile.columns):,} columns"
    return Inspection(head, [*profile.table()], describe_oddities(profile), profile.to_json())


def _name(place: Path | InMemory) -> str:
    return place.name if isinstance(place, Path) else "table"


def draft_series(place: Path | InMemory, written: str, wishes: Mapping[str, str]) -> ConfigurationDraft:
    """Return a configuration that predicts the next steps of a series."""
    for wish, why in (("time", "which column holds the times"), ("target", "which column is to be predicted")):
        if wish not in wishes:
            raise SigmaConfigError(f"{_name(place)}: {why}? Name it: --{wish} COLUMN.")
    draft: Any = import_module("sigma_data.series.drafting").read_draft(open_table(place), place, written, wishes)
    return ConfigurationDraft(draft.name, draft.text, draft.notes)


def describe_oddities(profile: Profile) -> list[str]:
    """Return a sentence for each column of which the kind is unsure or that says nothing, and one for equal rows."""
    findings = [f"column {c.name!r}: {c.inferred.unsure}." for c in profile.columns if c.inferred.unsure]
    constant = [repr(column.name) for column in profile.columns if column.kind == "constant"]
    if constant:
        findings.append(f"nothing can be learned from {', '.join(constant)}: one value in all rows, or none.")
    if profile.duplicates:
        findings.append(f"{count_rows(profile.duplicates)} equal to an earlier one.")
    return findings


def _is_text_of_class(path: Path, root: Path) -> bool:
    """Return whether a file is a text in the folder of a class, and not a part of a table."""
    return path.suffix.lower() == ".txt" and path.parent != root and "=" not in path.parent.name


def _is_table(path: Path) -> bool:
    ends = [end.lower() for end in path.suffixes]
    while ends and ends[-1] in PACKED:
        ends.pop()
    return bool(ends) and ends[-1] in SUFFIXES
