"""Changes that act when an epoch begins: of the rows that a session trains on, and of its batch size.

What is wanted is among the changes of a state; what is in force is its ``data``, for which the setup is made.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attrs import evolve

from sigma_kernel.contracts import Dataset
from sigma_kernel.errors import SigmaDataError
from sigma_training.data.dataset import read
from sigma_training.session.changes import Changes
from sigma_training.session.state import Setup

EPOCHAL = ("edits", "batch_size")  # changes that act when an epoch begins


def pending_changes(changes: Changes) -> dict[str, Any]:
    """Return the changes that are in force from the next epoch on."""
    return {name: changes[name] for name in EPOCHAL if name in changes}


def fed(setup: Setup, data: Mapping[str, Any]) -> Setup:
    """Return the setup with these edits and this batch size in force."""
    evaluator = evolve(setup.evaluator, edits=data.get("edits", {}))
    size = data.get("batch_size", evaluator.batch_size)
    feed = evolve(setup.feed, dataset=evaluator.data("training"), batch_size=size)
    return evolve(setup, evaluator=evaluator, feed=feed)


def foresee(setup: Setup, changes: Changes, iteration: int) -> None:
    """Build what changes ask for from the next epoch on, and compile its steps.

    Raises a SigmaError if that fails: if too few rows are left, for instance.
    """
    new = fed(setup, pending_changes(changes))
    for split in new.evaluator.edits:
        _check_weights(new, split, new.evaluator.data(split))
    programs = new.programs.select_tier(iteration)
    for size in new.feed.sizes if new.model.optimisers else ():
        programs.compile(size, new.operator.shards)


def _check_weights(setup: Setup, split: str, data: Dataset) -> None:
    """Raise SigmaDataError if a block would be left with rows of weight 0 only."""
    names = setup.model.network.weights(setup.model.sections) if setup.model.network.costs else ()
    for sections in (read(data, block) for block in range(data.blocks) if names):
        if empty := [name for name in names if name in sections and not sections[name].any()]:
            raise SigmaDataError(f"data: rows of weight 0 only would be left of {split!r} ({empty[0]}). Keep others.")
