"""Select, sort and average the rows of a list of runs, and choose the columns in which they are shown."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from math import nan
from pathlib import Path
from statistics import fmean, stdev
from typing import Any, TypeVar

from attrs import astuple

from sigma_kernel import Criterion
from sigma_kernel.clock import UNITS, Moment, TimeScale
from sigma_kernel.criteria import OWN_PACE, Both, Either, Not, Question, SameText
from sigma_kernel.errors import SigmaConfigError, suggest_name
from sigma_kernel.registry.addresses import literal, matches
from sigma_run.overview.describing import LENGTH

Row = Mapping[str, Any]
R = TypeVar("R", bound=Row)
K = TypeVar("K")
FIXED = ("status", "name", "title", "note", "starred", "archived")  # addresses that every run has
HELD = {name for name, scale in UNITS.items() if scale is not TimeScale.SAMPLE}  # which is not recorded


def values_of(row: Row) -> dict[str, Any]:
    """Return all values of a row by address: results, settings, length, status, and what a person says."""
    tags = {f"tags.{number}": tag for number, tag in enumerate(row.get("tags", ()))}
    length = {name: row[name] for name in LENGTH}
    marks = {"title": row.get("title", ""), "note": row.get("note", ""), "status": row["status"]}
    flags = {name: int(bool(row.get(name))) for name in ("starred", "archived")}
    return {**row["settings"], **row["metrics"], **length, **marks, **flags, **tags, "name": Path(row["folder"]).name}


# -- filters -----------------------------------------------------------------------------------------------------------
def select_rows(rows: Sequence[R], text: str, place: str = "--where") -> list[R]:
    """Return the rows for which a criterion holds.

    Raises SigmaConfigError for one that is invalid, asks for what changes over time, or names what no run has.
    """
    if not text.strip():
        return [*rows]
    try:
        criterion = Criterion.parse(text)
        _check_timeless(criterion)
        valued = [(row, values_of(row)) for row in rows]
        _check_names(criterion, [values for _, values in valued])
        return [row for row, values in valued if criterion.ask(partial(_look_up, values), {}, _moment(row))]
    except SigmaConfigError as error:
        raise SigmaConfigError(f"{place}: {error}") from error


def _check_timeless(criterion: Criterion) -> None:
    parts = astuple(criterion, recurse=False)
    if isinstance(criterion, Not | Both | Either):
        for part in parts:
            _check_timeless(part)
    elif not isinstance(criterion, SameText) and (not isinstance(criterion, Question) or criterion.verb in OWN_PACE):
        remedy = "Ask for numbers by reaches, falls to, above, below and equals, and for texts by equals"
        raise SigmaConfigError(f"{criterion}: a run in a list has one moment. {remedy}.")


def _check_names(criterion: Criterion, rows: Sequence[Mapping[str, Any]]) -> None:
    names = {*FIXED, *(name for values in rows for name in values)}
    for address in criterion.addresses():
        is_tag = address.startswith("tags.")  # one that nobody has given is no mistake
        if rows and not is_tag and address not in HELD and not any(matches(address, name) for name in names):
            raise SigmaConfigError(f"{address!r}: no run has this value.{suggest_name(address, sorted(names))}")


def _look_up(values: Mapping[str, Any], address: str) -> Any:
    """Return the value at an address; of a pattern, all values that match."""
    if literal(address):
        return values.get(address)
    return {name: value for name, value in values.items() if matches(address, name)}


def _moment(row: Row) -> Moment:
    """Return the end of a run; what is not known of it is NaN, of which criteria know nothing."""
    counts: dict[str, Any] = {name[:-1]: nan if row[name] is None else row[name] for name in LENGTH}
    return Moment(**counts)


# -- order -------------------------------------------------------------------------------------------------------------
def sort_rows(rows: Sequence[R], address: str, descending: bool = False, place: str = "--sort") -> list[R]:
    """Return rows by the value at an address: numbers, then texts; rows without it come last.

    Raises SigmaConfigError for an address that no row has.
    """
    values = [values_of(row) for row in rows]
    if rows and not any(address in own for own in values):
        names = sorted({name for own in values for name in own})
        raise SigmaConfigError(f"{place}: {address!r:.100}: no run has this value.{suggest_name(address, names)}")
    keyed = [(own.get(address), row) for own, row in zip(values, rows, strict=True)]
    there = sorted((pair for pair in keyed if pair[0] is not None), key=lambda p: _order(p[0]), reverse=descending)
    return [row for _, row in there] + [row for value, row in keyed if value is None]


def _order(value: Any) -> tuple[int, float, str]:
    if isinstance(value, int | float):
        return 0, float(value), ""
    return 1, 0.0, value if isinstance(value, str) else json.dumps(value)


# -- columns -----------------------------------------------------------------------------------------------------------
def differing(tables: Sequence[Mapping[K, Any]]) -> list[K]:
    """Return the keys whose values are not the same everywhere."""
    keys = dict.fromkeys(key for values in tables for key in values)
    return [key for key in keys if any(values.get(key) != tables[0].get(key) for values in tables)]


def columns_of(tables: Sequence[Mapping[K, Any]]) -> list[K]:
    """Return all keys, those first whose values differ."""
    return list(dict.fromkeys([*differing(tables), *(key for values in tables for key in values)]))


# -- groups ------------------------------------------------------------------------------------------------------------
def average_rows(rows: Sequence[Row], over: Sequence[str]) -> list[dict[str, Any]]:
    """Return a row for each group of rows that differ in the settings ``over`` alone.

    Its metrics are the means, with the ``deviations`` of a sample (n-1; None for one value), and ``members`` is how
    many rows it is of. Raises SigmaConfigError for a setting that no row has.
    """
    names = sorted({name for row in rows for name in row["settings"]})
    for key in over:
        if rows and key not in names:
            raise SigmaConfigError(f"--average: {key!r:.100}: no run has this setting.{suggest_name(key, names)}")
    groups: dict[str, list[Row]] = {}
    for row in rows:
        shared = {name: value for name, value in row["settings"].items() if name not in over}
        groups.setdefault(json.dumps(shared, sort_keys=True), []).append(row)
    return [_average(json.loads(shared), members) for shared, members in groups.items()]


def _average(settings: Mapping[str, Any], members: Sequence[Row]) -> dict[str, Any]:
    statuses = {row["status"] for row in members}
    values = dict(_collect(members, "metrics"))
    return {
        "folder": members[0]["folder"],
        "status": statuses.pop() if len(statuses) == 1 else "mixed",
        **{name: _summarise([row[name] for row in members], sum if name == "seconds" else max) for name in LENGTH},
        "metrics": {name: fmean(xs) if xs else None for name, xs in values.items()},
        "deviations": {name: stdev(xs) if len(xs) > 1 else None for name, xs in values.items()},
        "settings": settings,
        "members": len(members),
    }


def _collect(members: Sequence[Row], field: str) -> Iterator[tuple[str, list[float]]]:
    for name in dict.fromkeys(name for row in members for name in row[field]):
        yield name, [value for row in members if (value := row[field].get(name)) is not None]


def _summarise(values: Sequence[float | None], how: Callable[[list[float]], float]) -> float | None:
    there = [value for value in values if value is not None]
    return how(there) if there else None
