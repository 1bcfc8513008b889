"""The summary of a run: status, metrics and counts, for ``summary.json``."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from functools import partial
from typing import Any

from attrs import asdict, field, frozen

from sigma_kernel.plain import strict
from sigma_kernel.training.history.digests import little_endian
from sigma_kernel.training.session.session import Session
from sigma_kernel.training.step.model import EPOCH, LAYERS


@frozen
class Summary:
    """The summary of a run; ``status`` is finished, stopped, interrupted or failed, or the state of an ongoing run.

    ``seconds`` are those of training, summed over all resumes.  ``edited`` counts the rows of each split
    with edits in force, and ``why`` tells why training failed; each is left out where there is nothing to say.
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
    parameters_sha256: str | None  # None after an abort, when sessions do not answer
    edited: dict[str, dict[str, int]] = field(factory=dict)
    why: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return the summary as strict JSON values: a metric that is not finite is None."""
        return {name: x for name, x in strict(asdict(self)).items() if x or name not in ("edited", "why")}


def summarise(sessions: Mapping[str, Session], reachable: bool = True, **about: Any) -> Summary:
    """Summarise sessions; ``about`` are the fields that they do not know.

    Addresses of metrics, and names of edited splits, start at the trainer if there are several.
    """
    moments = [session.moment for session in sessions.values()]
    metrics, edited = dict[str, float](), dict[str, dict[str, int]]()
    for name, session in sessions.items():
        head = f"{name}." if len(sessions) > 1 else ""
        metrics |= {head + address: value for address, value in _metrics(session).items()}
        edited |= {head + split: session.setup.counts(split) for split in session.state.data.get("edits", ())}
    return Summary(
        backend=", ".join(dict.fromkeys(session.current.backend_name for session in sessions.values())),
        epochs=max((moment.epoch for moment in moments), default=0),
        iterations=max((moment.iteration for moment in moments), default=0),
        seconds=round(max((moment.second for moment in moments), default=0.0), 3),
        metrics=metrics,
        parameters_sha256=_digest(sessions) if reachable else None,
        edited=edited,
        **about,
    )


def reached(sessions: Mapping[str, Session], state: str, ended_by: str) -> str:
    """Return the status of a run: ``ended_by`` if every session that began has ended, else ``state``."""
    begun = {session.status for session in sessions.values()} - {"prepared"}
    if state in ("running", "paused", "failed") or not begun:
        return state
    return next((status for status in ("failed", "running", "paused") if status in begun), ended_by)


def _metrics(session: Session) -> dict[str, float]:
    """Return the last value of each metric, of training the mean over the last epoch, or over its part so far."""
    last = dict(session.state.published)  # to which the training thread may add
    there = [address for address in last if not address.startswith(("workers.", EPOCH))]
    found = {address: last.get(address.replace("training.", EPOCH, 1), last[address]) for address in there}
    return {name: x for name, x in found.items() if isinstance(x, int | float) and not isinstance(x, bool)}


def _digest(sessions: Mapping[str, Session]) -> str:
    digest = hashlib.sha256()
    for session in sessions.values():
        for name in sorted(LAYERS + address for address in session.setup.model.shapes.parameters):
            digest.update(little_endian(session.ask(partial(session.host, name))))
    return digest.hexdigest()
