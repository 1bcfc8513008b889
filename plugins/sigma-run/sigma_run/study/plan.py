"""A study as data: its members, the settings in which each differs, and their results."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import product
from math import isfinite
from statistics import fmean, stdev
from typing import Any, TypeGuard

import attrs
from attrs import evolve, field, frozen

from sigma_kernel.errors import SigmaConfigError
from sigma_run.config.schema import Configuration
from sigma_run.config.writing import toml

FORMAT = 1
ENDED = ("finished", "stopped", "pruned")  # statuses of members that need no more training
LOST = "lost"  # the status of a member whose process ended without an answer
SEED = "run.seed"
OPTIONAL = ("why", "attempts")  # of a member, left out if empty
LENGTH = ("epochs", "iterations", "seconds")
_FOLD = re.compile(r"number = (\d++), of = (\d++)")
_FOLDER = re.compile(r"[A-Za-z0-9][\w.-]*+")


@frozen(kw_only=True)
class Member:
    """One run of a study: the name of its folder, and the settings that it has in place of the study's."""

    folder: str
    overrides: tuple[str, ...]  # assignments KEY=VALUE, as --set takes them
    status: str = "planned"  # else that of the run
    epochs: float | None = None
    iterations: float | None = None
    seconds: float | None = None
    metrics: Mapping[str, float | None] = field(factory=dict)
    parameters_sha256: str | None = None
    why: str = ""
    attempts: int = 0  # to train it, if it failed or was lost in a search

    @property
    def has_ended(self) -> bool:
        """Return whether its training has ended as planned, or by command."""
        return self.status in ENDED

    def value_of(self, key: str) -> str:
        """Return the text of its value of a setting; empty if it is the study's."""
        texts = (text for name, _, text in (override.partition("=") for override in self.overrides) if name == key)
        text = next(texts, "")
        return f"{match[1]} of {match[2]}" if (match := _FOLD.search(text)) else text


@frozen(kw_only=True)
class Study:
    """The members of a study in their order, and the settings that vary between them.

    That of a ``search`` has its settings, as JSON values; members are added to it.
    """

    name: str
    varies: tuple[str, ...]
    members: tuple[Member, ...]
    search: Mapping[str, Any] = field(factory=dict)

    @property
    def status(self) -> str:
        """Return finished, failed, interrupted, running, or unfinished."""
        statuses = {member.status for member in self.members if not member.has_ended}
        if self.best is not None:  # a search does not need trials that have failed
            statuses -= {"failed"}
        if len(self.members) < self.search.get("trials", 0):
            statuses |= {"planned"}
        if not statuses:
            return "finished"
        for status in ("running", "interrupted"):
            if status in statuses:
                return status
        return "failed" if statuses == {"failed"} else "unfinished"

    @property
    def goal(self) -> str | None:
        """Return the address of the value that a search maximises or minimises; None if this is no search."""
        return self.search.get("maximise") or self.search.get("minimise")

    @property
    def best(self) -> Member | None:
        """Return the finished trial of a search with the best value, the first of equal ones; None without any."""
        values = [(m.metrics.get(self.goal or ""), m) for m in self.members if m.status == "finished"]
        finite = [(value, member) for value, member in values if _is_finite(value)]
        choose = max if "maximise" in self.search else min
        return choose(finite, key=lambda pair: pair[0])[1] if finite else None

    def replace(self, member: Member) -> Study:
        """Return the study with a new value of the member that has this folder, which may be new itself."""
        if all(other.folder != member.folder for other in self.members):
            return evolve(self, members=(*self.members, member))
        return evolve(self, members=tuple(member if m.folder == member.folder else m for m in self.members))


# -- members -----------------------------------------------------------------------------------------------------------
def plan_members(seed: int, seeds: int | None, folds: int | None, keys: Sequence[str]) -> Study:
    """Return a study without a name: every seed from ``seed`` on with every fold, which the ``keys`` set."""
    chosen = [None] if seeds is None else [f"{SEED}={seed + i}" for i in range(seeds)]
    parts: list[list[str]] = [[]] if folds is None else [_set_fold(keys, i, folds) for i in range(folds)]
    members = [
        Member(folder=str(number), overrides=(*filter(None, [which]), *fold))
        for number, (which, fold) in enumerate(product(chosen, parts))
    ]
    varies = (*([] if seeds is None else [SEED]), *([] if folds is None else [key.partition("=")[0] for key in keys]))
    return Study(name="", varies=varies, members=tuple(members))


def _set_fold(keys: Sequence[str], number: int, of: int) -> list[str]:
    return [key.replace("FOLD", f"{{ number = {number}, of = {of} }}") for key in keys]


def fold_keys(configuration: Configuration) -> list[str]:
    """Return the assignment that sets the fold ``FOLD`` of each trainer's data.

    Raises SigmaConfigError for a data set that has splits of its own.
    """
    several = "trainers" in {f.name for f in attrs.fields(type(configuration))}
    return [
        _fold_key(f"{toml_key('trainers', name)}.data" if several else "data", trainer.data)
        for name, trainer in configuration.trainers.items()
    ]


def toml_key(*names: str) -> str:
    """Return a dotted key."""
    return ".".join(toml({name: 0}).partition(" = ")[0] for name in names)


def _fold_key(head: str, data: Any) -> str:
    kind, share = data.dataset.factory, data.validation_split
    is_class = isinstance(kind, type)
    if is_class and attrs.has(kind) and "fold" in {f.name for f in attrs.fields(kind)}:
        return f"{head}.fold=FOLD"
    if is_class and issubclass(kind, Mapping):
        remedy = "Take one without predefined splits, or vary the seed: --seeds"
        raise SigmaConfigError(f"--folds: {head}: the data set {data.dataset.name!r} has fixed splits. {remedy}.")
    if isinstance(share, Mapping):
        return f"{head}.validation_split.fold=FOLD"
    return f"{head}.validation_split={{ {'' if share is None else f'split = {share!r}, '}fold = FOLD }}"


# -- results -----------------------------------------------------------------------------------------------------------
def summarise(members: Sequence[Member]) -> dict[str, dict[str, Any]]:
    """Return mean, standard deviation (of a sample: n-1) and number of values of each metric of members that ended.

    The deviation of one value is None; values that are not finite are left out.
    """
    ended = [member.metrics for member in members if member.has_ended]
    names = dict.fromkeys(name for metrics in ended for name in metrics)
    values = {name: [x for metrics in ended if _is_finite(x := metrics.get(name))] for name in names}
    return {
        name: {"mean": fmean(xs), "deviation": stdev(xs) if len(xs) > 1 else None, "count": len(xs)}
        for name, xs in values.items()
        if xs
    }


def representative(study: Study) -> dict[str, float | None]:
    """Return the metrics of a study in one row: of a search those of the best trial, else the means of the members."""
    if study.best is not None:
        return dict(study.best.metrics)
    return {} if study.search else {name: total["mean"] for name, total in summarise(study.members).items()}


def lengths(study: Study) -> dict[str, float | None]:
    """Return the most epochs and iterations of a member, and the seconds of all of them."""
    values = {name: [x for m in study.members if _is_finite(x := getattr(m, name))] for name in LENGTH}
    return {name: (sum(xs) if name == "seconds" else max(xs)) if xs else None for name, xs in values.items()}


def _is_finite(value: Any) -> TypeGuard[float]:
    return isinstance(value, int | float) and isfinite(value)


def table_of(study: Study) -> list[list[str]]:
    """Return the cells of a table: a row for each member, then mean and deviation of each metric but of a search."""
    totals, members = summarise(study.members), study.members
    ends = [] if study.search else ["mean", "deviation"]
    blank = [""] * len(ends)
    columns = [
        ["TRIAL" if study.search else "MEMBER", *(member.folder for member in members), *ends],
        ["STATUS", *(member.status for member in members), *blank],
        *([_short(key), *(member.value_of(key) for member in members), *blank] for key in study.varies),
    ]
    for name, total in totals.items():
        values = [*(member.metrics.get(name) for member in members), *(total[end] for end in ends)]
        columns.append([name, *("" if x is None else f"{x:.4g}" for x in values)])
    return [list(row) for row in zip(*columns, strict=True)]


def _short(key: str) -> str:
    return ".".join(key.split(".")[-2:])


# -- study.json --------------------------------------------------------------------------------------------------------
def to_plain(study: Study) -> dict[str, Any]:
    """Return a study as JSON values."""
    head = {"format": FORMAT, "name": study.name, "status": study.status, "varies": list(study.varies)}
    members = [{k: v for k, v in attrs.asdict(m).items() if v or k not in OPTIONAL} for m in study.members]
    search = {"search": {**study.search, **_describe_best(study)}} if study.search else {}
    return {**head, **search, "members": members, "metrics": summarise(study.members)}


def _describe_best(study: Study) -> dict[str, Any]:
    if (best := study.best) is None:
        return {}
    settings = {key: best.value_of(key) for key in study.varies}
    return {"best": {"folder": best.folder, "value": best.metrics[study.goal or ""], "settings": settings}}


def from_plain(place: str, values: Mapping[str, Any]) -> Study:
    """Return the study of JSON values; raise SigmaConfigError if they are none."""
    if (number := values.get("format")) != FORMAT:
        raise SigmaConfigError(f"{place}: has format {number!r:.40}, and this version of Sigma reads {FORMAT}. Update.")
    try:
        members = tuple(_read_member(each) for each in values["members"])
        varies, search = tuple(map(str, values["varies"])), dict(values.get("search", {}))
        return Study(name=str(values["name"]), varies=varies, members=members, search=search)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise SigmaConfigError(f"{place}: is damaged: {error!r:.100}. Restore it from a copy.") from error


def _read_member(values: Mapping[str, Any]) -> Member:
    folder, overrides = values["folder"], values["overrides"]
    if not _FOLDER.fullmatch(folder) or not all(isinstance(text, str) for text in overrides):
        raise ValueError(f"no member: {folder!r}")
    attempts = values.get("attempts", 0)
    return read_results(Member(folder=folder, overrides=tuple(overrides), attempts=int(attempts)), values)


def read_results(member: Member, values: Mapping[str, Any]) -> Member:
    """Return a member with the results in JSON values, such as those of a run's summary."""
    length: dict[str, Any] = {name: values[name] if _is_finite(values.get(name)) else None for name in LENGTH}
    metrics, digest = values.get("metrics"), values.get("parameters_sha256")
    return evolve(
        member,
        status=str(values.get("status", "unfinished"))[:100],
        metrics={str(k): v if _is_finite(v) else None for k, v in metrics.items()} if isinstance(metrics, dict) else {},
        parameters_sha256=digest if isinstance(digest, str) else None,
        why=str(values.get("why", ""))[:4000],
        **length,
    )
