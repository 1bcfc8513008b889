"""Edit the rows of a run: leave rows out, take them back, give them other labels."""

from __future__ import annotations

import json
import re
from abc import abstractmethod
from collections.abc import Iterable, Mapping
from numbers import Integral
from typing import Any

import numpy as np
from attrs import evolve, field, frozen

from sigma_curation import edits
from sigma_kernel import settings
from sigma_kernel.contracts.commanding import Command, CommandedRun, CommandPlan
from sigma_kernel.errors import SigmaConfigError, SigmaDataError, SigmaStateError, suggest_name
from sigma_training.components import check_split
from sigma_training.data.dataset import check_rows, gather_rows
from sigma_training.session.changes import Changes, update_changes
from sigma_training.session.epochal import foresee
from sigma_training.session.planning import PlannedRun
from sigma_training.session.state import Setup

FIRST = re.compile(r"\brow 0\b")  # in errors about a block of one row, which has another number in its split
TEXT = settings.instance_of(str, "a string")
Label = str | bool | float | list[Any] | dict[str, Any] | None


# -- fields ------------------------------------------------------------------------------------------------------------
def hold_rows(made: Any, attribute: Any, rows: Any) -> None:
    """Hold the numbers of rows as the journal does, in order and each once."""
    plain = rows.tolist() if hasattr(rows, "tolist") else rows
    listed = [plain] if isinstance(plain, Integral) else plain
    listed = [*listed] if isinstance(listed, Iterable) and not isinstance(listed, str | Mapping) else []
    if not listed or not all(settings.is_whole(row, 0) for row in listed):
        raise SigmaConfigError(
            f"{type(made).__name__}.{attribute.name}: must be the number of a row, or several, counted from 0 (got "
            f"{rows!r:.80})."
        )
    object.__setattr__(made, attribute.name, sorted({int(row) for row in listed}))


def hold_label(made: Any, attribute: Any, label: Any) -> None:
    """Hold a label as the journal does."""
    try:
        plain = json.loads(json.dumps(label, allow_nan=False, default=lambda value: value.tolist()))
    except (AttributeError, TypeError, ValueError):  # AttributeError: neither plain nor an array
        raise SigmaConfigError(
            f"{type(made).__name__}.{attribute.name}: must be a word, finite numbers, or a table of these by section "
            f"(got {label!r:.80})."
        ) from None
    object.__setattr__(made, attribute.name, plain)


# -- commands ----------------------------------------------------------------------------------------------------------
@frozen
class Edit(Command):
    """Change rows of a split, from the next epoch on.

    Args:
        rows: Numbers of rows in their split, from 0, before they are shuffled.
        split: The split that has the rows.
    """

    already = ""  # the reason if nothing changes
    rows: list[int] = field(validator=hold_rows)
    split: str = field(default="training", validator=TEXT, kw_only=True)

    def check(self, run: CommandedRun) -> None:
        """Check the rows, and compile for the number of remaining rows."""
        self._changes(run.internals)

    def plan(self, run: CommandedRun) -> CommandPlan:
        """Add the edits to those that act at the next epoch."""
        now: PlannedRun = run.internals
        state = evolve(now.present.state, changes=self._changes(now))
        return CommandPlan(now.with_present(now.present.with_state(state)))

    def _changes(self, run: PlannedRun) -> Changes:
        """Return changes with these edits.

        Raises a SigmaError if the command does not fit the data, if too few rows would be left, or if nothing changes.
        """
        name, split, setup = self.command, self.split, run.present.setup
        splits = setup.evaluator.splits
        check_split(name, split, splits)
        if not splits[split].has_row_numbers:
            raise SigmaDataError(
                f"{name}: the rows of {split!r} have no numbers that stay the same, as a generator makes them. Collect "
                "them in arrays first."
            )
        check_rows(f"{name}: {split!r}", self.rows, len(splits[split]))
        by_split = run.changes.get("edits", {})
        before = by_split.get(split, {})
        after = self.edit(setup, before)
        if after == before:
            raise SigmaStateError(f"{name}: changes nothing, as {self.already}. Name other rows.")
        changes = update_changes(
            run.changes, edits={part: each for part, each in {**by_split, split: after}.items() if each}
        )
        foresee(setup, changes, run.present.state.moment.iteration)
        return changes

    @abstractmethod
    def edit(self, setup: Setup, before: edits.Edits) -> edits.Edits:
        """Return the edits of the split after those before."""


@frozen
class Exclude(Edit):
    """Exclude rows of a split from the next epoch on."""

    command = "exclude"
    already = "these rows are left out already"

    def edit(self, setup: Setup, before: edits.Edits) -> edits.Edits:
        """Leave the rows out."""
        return edits.exclude_rows(before, self.rows)


@frozen
class Include(Edit):
    """Take rows of a split back that were left out, from the next epoch on."""

    command = "include"
    already = "none of these rows is left out"

    def edit(self, setup: Setup, before: edits.Edits) -> edits.Edits:
        """Take the rows back."""
        return edits.include_rows(before, self.rows)


@frozen
class Relabel(Edit):
    """Give rows of a split another label, from the next epoch on.

    Args:
        label: The label as it is in the data; of several sections, a table by section; None for that of the data.
    """

    command = "relabel"
    already = "these rows have this label already"
    label: Label = field(validator=hold_label)

    def edit(self, setup: Setup, before: edits.Edits) -> edits.Edits:
        """Give the rows the label."""
        return edits.relabel_rows(before, self.rows, _labels(setup, self))


# -- labels ------------------------------------------------------------------------------------------------------------
def _labels(setup: Setup, command: Relabel) -> Mapping[str, Any] | None:
    """Return the label by section, checked on the first row as training will read it; None for that of the data."""
    if command.label is None:
        return None
    evaluator, given = setup.evaluator, _by_section(setup, command.label)
    dataset = evaluator.splits[command.split]
    row = gather_rows(dataset, command.rows[:1])
    try:
        for section, label in given.items():
            stored = edits.as_stored(dataset, section, label, evaluator.classes)
            edits.check_stored(section, stored, row[section])
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
    targets = [*dict.fromkeys(cost.layer.targets for cost in network.targeted_costs)]
    if isinstance(label, Mapping):
        sections = targets or [*setup.model.sections]
        if unknown := next((name for name in label if name not in sections), None):
            hint = suggest_name(unknown, sections, "They are in:")
            raise SigmaConfigError(f"relabel: no labels are in {unknown!r}.{hint}")
        return label
    if len(targets) > 1:
        form = ", ".join(f"{name!r}: ..." for name in targets)
        raise SigmaConfigError(
            f"relabel: there are labels in {len(targets)} sections. Give them by section: {{{form}}}."
        )
    return {targets[0] if targets else "targets": label}
