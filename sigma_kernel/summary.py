"""The summary of a run: status, metrics and counts, for ``summary.json``."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from attrs import asdict, evolve, field, frozen

from sigma_kernel.contracts.running import Lifecycle
from sigma_kernel.plain import strict

OPTIONAL = ("edited", "why", "baselines", "advice")


@frozen
class Summary:
    """The summary of a run; ``status`` is finished, stopped, interrupted or failed, or the state of an ongoing run.

    A hook that ends training may say how: the search, for instance, ends trials as ``pruned``.

    ``seconds`` are those of training, summed over all resumes.  ``edited`` counts the rows of each split with edits in
    force, and ``why`` holds the reason of a failure, or that of such a hook.  ``baselines`` have the metrics of
    predictions without a network, by name and address, and ``advice`` what a user should know about the results.  Each
    of these is left out if empty.
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
    parameters_sha256: str | None  # None after an abort, when trainers do not answer
    edited: dict[str, dict[str, int]] = field(factory=dict)
    why: str = ""
    baselines: dict[str, dict[str, float]] = field(factory=dict, repr=False)
    advice: list[str] = field(factory=list, repr=False)

    def to_dict(self) -> dict[str, Any]:
        """Return the summary as strict JSON values: a metric that is not finite is None."""
        return {name: x for name, x in strict(asdict(self)).items() if x or name not in OPTIONAL}


def summarise(trainers: Mapping[str, Lifecycle], reachable: bool = True, **about: Any) -> Summary:
    """Summarise what prepared trainers have reached; ``about`` are the fields that they do not know.

    Addresses of metrics, and names of edited splits, start at the trainer if there are several.
    """
    reports = {name: trainer.report() for name, trainer in trainers.items()}
    moments = [report.moment for report in reports.values()]
    metrics, edited = dict[str, float](), dict[str, dict[str, int]]()
    baselines, advice = dict[str, dict[str, float]](), list[str]()
    for name, report in reports.items():
        head = f"{name}." if len(reports) > 1 else ""
        metrics |= {head + address: value for address, value in report.metrics.items()}
        edited |= {head + split: dict(counts) for split, counts in report.edited.items()}
        advice += [head + text for text in report.advice]
        for baseline, values in report.baselines.items():
            baselines.setdefault(baseline, {}).update({head + address: value for address, value in values.items()})
    summary = Summary(
        backend=", ".join(dict.fromkeys(report.backend for report in reports.values())),
        epochs=max((moment.epoch for moment in moments), default=0),
        iterations=max((moment.iteration for moment in moments), default=0),
        seconds=round(max((moment.second for moment in moments), default=0.0), 3),
        metrics=metrics,
        parameters_sha256=_digest(trainers) if reachable else None,
        edited=edited,
        baselines=baselines,
        advice=advice,
        **about,
    )
    return _name_cause(summary, next((report.cause for report in reports.values() if report.cause), ""))


def _name_cause(summary: Summary, cause: str) -> Summary:
    """Return the summary with the status and the reason of a hook that ended training, if it gave them."""
    status, _, why = cause.partition(": ")
    return evolve(summary, status=status, why=why) if cause and summary.status == "finished" else summary


def describe_end(trainers: Mapping[str, Lifecycle], signal: int | None) -> str:
    """Return how training that did not fail ended: finished as planned, stopped by command, or interrupted."""
    stopped = any(trainer.is_interrupted for trainer in trainers.values())
    return "interrupted" if signal is not None else "stopped" if stopped else "finished"


def select_status(trainers: Mapping[str, Lifecycle], state: str, signal: int | None) -> str:
    """Return the status of a run: how it ended if every trainer that began has ended, else ``state``."""
    begun = {trainer.status for trainer in trainers.values()} - {"prepared"}
    if state in ("running", "paused", "failed") or not begun:
        return state
    return next(
        (status for status in ("failed", "running", "paused") if status in begun), describe_end(trainers, signal)
    )


def _digest(trainers: Mapping[str, Lifecycle]) -> str:
    digest = hashlib.sha256()
    for trainer in trainers.values():
        trainer.digest_parameters(digest.update)
    return digest.hexdigest()
