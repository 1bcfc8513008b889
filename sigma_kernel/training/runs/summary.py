"""What a run came to, as one document."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from functools import partial
from typing import Any

from attrs import asdict, frozen

from sigma_kernel.training.history.journal import strict
from sigma_kernel.training.step.model import LAYERS
from sigma_kernel.training.trainer import Trainer


@frozen
class Summary:
    """What a run came to; ``status`` is finished, stopped, interrupted or failed, or how far a run is that goes on.

    ``seconds`` are those of training, over all processes that a run was resumed in.
    """

    run: str
    folder: str | None
    status: str
    backend: str
    seed: int
    epochs: int
    iterations: int
    seconds: float
    metrics: dict[str, float]
    parameters_sha256: str | None  # None after an abort, when nobody answers any more

    def to_dict(self) -> dict[str, Any]:
        """Return the summary as JSON can hold it: a metric that is not finite is None."""
        return dict(strict(asdict(self)))


def summarise(trainers: Mapping[str, Trainer], reachable: bool = True, **about: Any) -> Summary:
    """Return what trainers have come to; ``about`` are the fields that they do not know."""
    moments = [trainer.session.clock.moment for trainer in trainers.values()]
    return Summary(
        backend=", ".join(dict.fromkeys(trainer.backend_name for trainer in trainers.values())),
        epochs=max((moment.epoch for moment in moments), default=0),
        iterations=max((moment.iteration for moment in moments), default=0),
        seconds=round(max((moment.second for moment in moments), default=0.0), 3),
        metrics=_metrics(trainers),
        parameters_sha256=_digest(trainers) if reachable else None,
        **about,
    )


def reached(trainers: Mapping[str, Trainer], state: str, ended_by: str) -> str:
    """Return how far trainers have come: the environment's state, until each has ended that ever began."""
    begun = {trainer.session.control.status for trainer in trainers.values()} - {"prepared"}
    if state in ("running", "paused", "failed") or not begun:
        return state
    return next((status for status in ("failed", "running", "paused") if status in begun), ended_by)


def _metrics(trainers: Mapping[str, Trainer]) -> dict[str, float]:
    """Return the last values of all numbers; addresses start at the trainer if there is only one."""
    return {
        address if len(trainers) == 1 else f"{name}.{address}": value
        for name, trainer in trainers.items()
        for address, value in dict(trainer.session.published).items()
        if isinstance(value, int | float) and not isinstance(value, bool) and not address.startswith("workers.")
    }


def _digest(trainers: Mapping[str, Trainer]) -> str:
    digest = hashlib.sha256()
    for trainer in trainers.values():
        for name in sorted(LAYERS + address for address in trainer.session.model.shapes.parameters):
            values = trainer.session.control.ask(partial(trainer.session.host, name))
            digest.update(values.astype(values.dtype.newbyteorder("<")).tobytes())
    return digest.hexdigest()
