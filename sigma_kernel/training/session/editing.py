"""Commands that edit the rows that a session trains on."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from sigma_kernel.errors import SigmaConfigError, SigmaDataError, SigmaStateError, near
from sigma_kernel.training.commands.changes import Changes, updated
from sigma_kernel.training.commands.types import NAMES, Edit, Exclude, Include, Relabel
from sigma_kernel.training.components import check_split
from sigma_kernel.training.data import edits as rows
from sigma_kernel.training.data.dataset import check_rows, gathered
from sigma_kernel.training.session.state import Setup

FIRST = re.compile(r"\brow 0\b")  # in errors about a block of one row, which has another number in its split


def edited(setup: Setup, changes: Changes, command: Edit) -> Changes:
    """Return changes after a command that edits rows.

    Raises a SigmaError if the command does not fit the data, if too few rows would be left, or if it changes nothing.
    """
    name, split, splits = NAMES[type(command)], command.split, setup.evaluator.splits
    check_split(name, split, splits)
    if not splits[split].numbered:
        raise SigmaDataError(
            f"{name}: the rows of {split!r} have no numbers that stay the same, as a generator makes them. Collect "
            "them in arrays first."
        )
    check_rows(f"{name}: {split!r}", command.rows, len(splits[split]))
    known = changes.get("edits", {})
    before = known.get(split, {})
    after, already = _edited(setup, before, command)
    if after == before:
        raise SigmaStateError(f"{name}: changes nothing, as {already}. Name other rows.")
    return updated(changes, edits={one: each for one, each in {**known, split: after}.items() if each})


def _edited(setup: Setup, before: rows.Edits, command: Edit) -> tuple[rows.Edits, str]:
    """Return the edits after a command, and what is so already if they are the same as before."""
    match command:
        case Exclude():
            return rows.excluded(before, command.rows), "these rows are left out already"
        case Include():
            return rows.included(before, command.rows), "none of these rows is left out"
        case Relabel():
            label = _labels(setup, command)
            return rows.relabelled(before, command.rows, label), "these rows have this label already"
    raise TypeError(command)


def _labels(setup: Setup, command: Relabel) -> Mapping[str, Any] | None:
    """Return the label by section, checked on the first row as training will read it; None for that of the data."""
    if command.label is None:
        return None
    evaluator, given = setup.evaluator, _by_section(setup, command.label)
    dataset = evaluator.splits[command.split]
    row = gathered(dataset, command.rows[:1])
    try:
        for section, label in given.items():
            stored = rows.as_stored(dataset, section, label, evaluator.classes)
            rows.check_stored(section, stored, row[section])
            row[section] = np.asarray([stored], row[section].dtype)
        weights = setup.model.network.weights(row) if setup.model.network.costs else ()
        evaluator.ready({name: values for name, values in row.items() if name not in weights})
    except SigmaDataError as error:
        why = FIRST.sub(f"row {command.rows[0]}", str(error))
        raise SigmaDataError(f"relabel: the label does not fit: {why}") from error
    return given


def _by_section(setup: Setup, label: Any) -> Mapping[str, Any]:
    """Return labels by section; raise SigmaConfigError for a section without labels."""
    network = setup.model.network
    targets = [*dict.fromkeys(cost.layer.targets for cost in network.targeted)]
    if isinstance(label, Mapping):
        known = targets or [*setup.model.sections]
        if unknown := next((name for name in label if name not in known), None):
            raise SigmaConfigError(f"relabel: no labels are in {unknown!r}.{near(unknown, known, 'They are in:')}")
        return label
    if len(targets) > 1:
        form = ", ".join(f"{name!r}: ..." for name in targets)
        raise SigmaConfigError(
            f"relabel: there are labels in {len(targets)} sections. Give them by section: {{{form}}}."
        )
    return {targets[0] if targets else "targets": label}
