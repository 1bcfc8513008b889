"""Requests that read: each is a function of a view, which returns JSON values, or ``Later`` if it may have to wait."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future
from typing import Any

from attrs import frozen

import sigma_run  # for `describe`, which is imported when it is used
from sigma_kernel import Component, catalogue
from sigma_kernel.contracts import AddressEntry, Branch, Stretch, Ticket, View
from sigma_kernel.curves import Window
from sigma_kernel.errors import SigmaAddressError, SigmaConfigError, SigmaError, suggest_name
from sigma_monitor_control.protocol.documents import PROTOCOL
from sigma_monitor_control.protocol.naming import is_pattern, leading, meant, qualify_name
from sigma_monitor_control.protocol.values import column, to_json

POINTS, MOST_POINTS = 2000, 32_000  # of one series, and of all in an answer, which then is no longer than it may be
DESCRIBED = ("name", "type", "required", "default", "doc", "choices")  # of a setting
KINDS = ("hook", "optimiser", "backend", "iterator")  # of components to choose from while training
WORKER = ("rate", "shards", "generation", "seen")  # values of a worker of a group
KEY = re.compile(r"(?<=#token=)[^\s&]++")  # of a link that steers
NUMERIC = ("number", "whole")  # types of an entry
ROW_HEAD = ("trainer", "iteration", "epoch", "seconds", "time", "command", "who")  # of a command's row in the journal
MEASURED = ("training", "validation", "test")  # trainers publish their results below these


Run = Callable[[Callable[[], Any]], Future[Any]]


@frozen
class Later:
    """A result that may have to wait for training, such as arrays, which are copied between two bursts."""

    act: Callable[[], Any]
    run: Run | None = None  # what runs it, in place of the thread of all clients
    stop: Callable[[], object] = lambda: None  # ends it, once nobody waits for it any more


# -- the run -----------------------------------------------------------------------------------------------------------
def hello(view: View) -> dict[str, Any]:
    """Return the server's protocol and run."""
    return {
        "protocol": PROTOCOL,
        "version": catalogue().versions()["sigma-kernel"],
        "name": view.name,
        "folder": None if view.folder is None else str(view.folder.absolute()),
        "process": os.getpid(),
        "directory": _working_directory(),
        "trainers": view.trainers(),
        "state": view.status(),
    }


def _working_directory() -> str | None:
    """Return the working directory of the process; None if it has been removed."""
    try:
        return os.getcwd()
    except FileNotFoundError:
        return None


def status(view: View) -> dict[str, Any]:
    """Return the state of the run, and where each trainer is."""
    trainers = {name: _trainer(view, name) for name in view.trainers()}
    seconds = max((trainer["second"] or 0.0 for trainer in trainers.values()), default=0.0)
    return {"status": view.status(), "why": view.why(), "seconds": seconds, "trainers": trainers}


def _trainer(view: View, name: str) -> dict[str, Any]:
    head = f"{name}."
    entries = {entry.address.removeprefix(head): entry for entry in view.entries(f"{name}.*")}
    moment = {key: to_json(entries[key].value) if key in entries else None for key in ("iteration", "epoch", "second")}
    goals = {key: to_json(entries[key].value) if key in entries else None for key in ("epochs", "goal", "batch_size")}
    branches = view.trainer(name).branches()
    return {
        **moment,
        **goals,
        "branch": branches[-1].number if branches else 0,
        "rows": next((to_json(entry.value) for entry in view.entries(f"{name}.data.training.rows")), None),
        "values": _latest_values(view, name),
        "workers": _describe_workers(view, name),
    }


def _describe_workers(view: View, name: str) -> dict[str, dict[str, Any]]:
    """Return what is known of each worker of a group, by its number; none for other operators."""
    rows = dict[str, dict[str, Any]]()
    for entry in view.entries(f"{name}.group.*.*"):
        number, _, what = entry.address.removeprefix(f"{name}.group.").partition(".")
        if what in WORKER and number.isdecimal():  # else a hook has published it
            rows.setdefault(number, {})[what] = to_json(entry.value)
    return dict(sorted(rows.items(), key=lambda row: int(row[0])))


def _latest_values(view: View, name: str) -> dict[str, Any]:
    """Return a trainer's latest values by address."""
    measurements = (entry for split in MEASURED for entry in view.entries(f"{name}.{split}.**"))
    return {entry.address: to_json(entry.value) for entry in measurements if _is_number(entry)}


def _is_number(entry: AddressEntry) -> bool:
    return entry.type in NUMERIC and entry.value is not None


def select_trainer(view: View, name: str | None) -> str:
    """Return the name of a trainer, by default of the only one."""
    trainers = view.trainers()
    if name is None and len(trainers) == 1:
        return trainers[0]
    if name is None:
        raise SigmaConfigError(f"trainer: there are {', '.join(trainers)}. Name one.")
    if name not in trainers:
        raise SigmaConfigError(f"trainer {name!r}: there is no such trainer.{suggest_name(name, trainers, 'There is')}")
    return name


# -- values ------------------------------------------------------------------------------------------------------------
def entries(view: View, pattern: str = "**", trainer: str | None = None) -> list[Any]:
    """Return the addresses that a pattern matches, each with its kind; a plain value as well, arrays never."""
    return [to_json(entry) for entry in match_entries(view, pattern, trainer)]


def _hint_at_trainer(view: View, pattern: str) -> str:
    """Return what to write instead of a pattern that matches nothing: the same of a trainer, if that matches."""
    inside = next(iter(view.entries(f"*.{pattern}")), None)
    if inside is None:
        return " `sigma get '**'` lists all."
    return f" Did you mean '{inside.address.partition('.')[0]}.{pattern}'?"


def match_entries(view: View, pattern: str, trainer: str | None = None, settable: bool = False) -> list[AddressEntry]:
    """Return the entries that a pattern or a short name means, those alone that can be set if ``settable``.

    Raises SigmaAddressError if there is none, or if a short name could be several.
    """
    full = qualify_name(pattern, trainer)
    if is_pattern(full):
        matches = view.entries(full)
        if not matches:
            raise SigmaAddressError(f"{full}: matches no value.{_hint_at_trainer(view, full)}")
        return matches
    if exact := view.entries(full):
        return exact
    inside = view.entries("**" if trainer is None else f"{trainer}.**")
    wanted = [entry.address for entry in inside if entry.settable or not settable]
    address = meant(pattern, wanted if leading(pattern, wanted) else [entry.address for entry in inside])
    return [entry for entry in inside if entry.address == address]


def get(view: View, pattern: str, trainer: str | None = None) -> dict[str, Any] | Later:
    """Return the values that a pattern or a short name means, by their addresses; arrays as their summaries."""
    matches = match_entries(view, pattern, trainer)
    if any(entry.type == "array" for entry in matches):
        return Later(lambda: _values(view, matches))
    return _values(view, matches)


def _values(view: View, entries: Iterable[AddressEntry]) -> dict[str, Any]:
    return {entry.address: to_json(_value(view, entry)) for entry in entries}


def _value(view: View, entry: AddressEntry) -> Any:
    """Return a value; None if it is not published yet."""
    if entry.value is not None:
        return entry.value
    try:
        return view.get(entry.address)
    except SigmaAddressError:
        return None


def series(
    view: View,
    addresses: list[str],
    after: dict[str, int] | None = None,
    most: int = POINTS,
    span: list[float] | None = None,
    over: str = "iteration",
) -> dict[str, Any]:
    """Return the points of some addresses, and a cursor each: in a part of an axis, or all since a cursor.

    The more addresses there are, the fewer points have each.
    """
    if span is not None and (len(span) != 2 or not span[0] <= span[1]):
        raise SigmaConfigError(f"series: 'span' must be the first and the last place on the axis (got {span}).")
    within, since = None if span is None else (span[0], span[1]), after or {}
    window = Window(span=within, over=over, most=max(1, min(most, MOST_POINTS // max(1, len(addresses)))))
    return {address: _points(view, address, window, since.get(address, 0)) for address in addresses}


def _points(view: View, address: str, window: Window, after: int) -> dict[str, Any]:
    """Return the points since a cursor; the whole in few if those are too many, or if older ones were replaced."""
    cursor, stretches = view.points(address, window, after)
    if after and (not cursor or sum(len(stretch.curve.values) for stretch in stretches) > window.most):
        return _points(view, address, window, 0)
    return {"next": cursor, "whole": not after, "stretches": [_stretch(stretch) for stretch in stretches]}


def _stretch(stretch: Stretch) -> dict[str, Any]:
    curve = stretch.curve
    return {
        "branch": stretch.branch,
        "iteration": curve.iterations.tolist(),
        "epoch": curve.epochs.tolist(),
        "second": column(curve.seconds),
        "value": column(curve.values),
        "low": column(curve.low),
        "high": column(curve.high),
    }


# -- numbered entries --------------------------------------------------------------------------------------------------
def ticket(made: Ticket) -> dict[str, Any]:
    """Return a ticket; ``kind`` is the class of the error that refused it."""
    error = made.answer.exception() if made.state == "refused" else None
    return {
        "number": made.number,
        "command": made.command,
        "arguments": {name: to_json(value) for name, value in made.arguments.items() if name not in ("trainer", "who")},
        "trainer": made.arguments.get("trainer"),
        "who": made.arguments.get("who", ""),
        "state": made.state,
        "moments": {name: {"iteration": at.iteration, "epoch": at.epoch} for name, at in made.moments.items()},
        "why": made.why,
        "kind": type(error).__name__ if error else "",
    }


def describe_answer(view: View, made: Ticket, after: int) -> dict[str, Any]:
    """Return the ticket of its sender: each moment has a ``row``, what the journal holds besides the fields, if any.

    Its row is among those after a number.
    """
    about = ticket(made)
    for _, row in view.journal(after) if made.state == "applied" else ():
        moment = about["moments"].get(row.get("trainer"), {})
        if row.get("command") == made.command and row.get("iteration") == moment.get("iteration"):
            left_out = {*ROW_HEAD, *made.arguments}
            added = {name: value for name, value in row.items() if name not in left_out and value not in ("", None)}
            moment.update({"row": to_json(added)} if added else {})  # the newest, of several at one moment
    return about


def tickets(view: View, after: int = 0) -> list[Any]:
    """Return the commands sent after a number, by anyone, with their results."""
    return [ticket(entry) for entry in view.tickets(after)]


def journal(view: View, after: int = 0) -> list[Any]:
    """Return the rows of the journal after a number, with their numbers."""
    return [[number, to_json(row)] for number, row in view.journal(after)]


def messages(view: View, after: int = 0) -> list[Any]:
    """Return the log messages after a number, with their numbers, without the keys of links: readers get them, too."""
    return [[number, KEY.sub("...", text)] for number, text in view.messages(after)]


# -- trainers ----------------------------------------------------------------------------------------------------------
def branches(view: View, trainer: str | None = None) -> list[Any]:
    """Return the branches of a trainer's history; those before a resume from the journal."""
    name = select_trainer(view, trainer)
    own, earlier = view.trainer(name).branches(), list[Branch]()
    if own and own[0].number:
        rewinds = (row for _, row in view.journal() if row.get("trainer") == name and row.get("command") == "rewind")
        begun = {row["branch"]: Branch(row["branch"], row.get("parent"), row.get("to", 0)) for row in rewinds}
        if own[0].number in begun:
            earlier = [Branch(0), *(begun[number] for number in sorted(begun) if number <= own[0].number)]
    return [to_json(branch) for branch in [*earlier, *own[bool(earlier) :]]]


def periods(view: View, trainer: str | None = None) -> list[Any]:
    """Return when a trainer trained without a pause: branch, second of training, time, and length in seconds."""
    return [to_json(period) for period in view.trainer(select_trainer(view, trainer)).periods()]


def network(view: View, trainer: str | None = None) -> list[Any]:
    """Return the layers of a trainer."""
    return [to_json(layer) for layer in view.trainer(select_trainer(view, trainer)).network()]


def work(view: View, trainer: str | None = None) -> Later:
    """Return what the layers and the optimisers of a trainer take of a training step, estimated from its graph."""
    name = select_trainer(view, trainer)
    return Later(lambda: [to_json(entry) for entry in view.trainer(name).work()])


def hooks(view: View, trainer: str | None = None) -> list[Any]:
    """Return the hooks of a trainer in callback order."""
    return [to_json(hook) for hook in view.trainer(select_trainer(view, trainer)).hooks()]


def states(view: View, trainer: str | None = None) -> list[Any]:
    """Return the states that a trainer can be rewound to, oldest first."""
    return [to_json(state) for state in view.trainer(select_trainer(view, trainer)).states()]


def splits(view: View, trainer: str | None = None) -> Later:
    """Return the number of rows of each split of a trainer's data, which may have to be read first."""
    name = select_trainer(view, trainer)
    return Later(lambda: dict(view.trainer(name).splits()))


def classes(view: View, trainer: str | None = None) -> list[Any]:
    """Return the class names of a trainer's data by index."""
    return [to_json(class_) for class_ in view.trainer(select_trainer(view, trainer)).classes()]


def components(view: View, kind: str) -> Later:
    """Return the components of a kind that can be chosen while training, with their summaries and settings."""
    if kind not in KINDS:
        raise SigmaConfigError(f"components: 'kind' must be one of {', '.join(KINDS)} (got {kind!r:.100}).")
    return Later(lambda: [_describe_component(component) for component in catalogue().components(kind)])


def _describe_component(component: Component) -> dict[str, Any]:
    """Return the description of a component; without settings if it cannot be loaded."""
    description = {"name": component.name, "summary": component.summary}
    try:
        settings = sigma_run.describe(component.kind, component.full_name)["settings"]
    except SigmaError:
        return {**description, "settings": []}
    return {**description, "settings": to_json([{key: setting[key] for key in DESCRIBED} for setting in settings])}


def commands(view: View) -> Later:
    """Return the commands that plugins offer: their fields, and whether they can be undone."""
    return Later(lambda: [*filter(None, map(describe_command, catalogue().components("command")))])


def describe_command(component: Component) -> dict[str, Any] | None:
    """Return what people can send; None for a command that cannot be loaded."""
    try:
        command_class: Any = catalogue().load("command", component.full_name)
        about = _describe_component(component)
    except SigmaError:
        return None
    settings = [setting for setting in about["settings"] if setting["name"] not in command_class.by_hand]
    return {**about, "name": command_class.command, "settings": settings, "undoable": command_class.undoable}


READS: Mapping[str, Callable[..., Any]] = {
    one.__name__: one
    for one in (
        hello, status, entries, get, series, tickets, journal, messages, branches, periods, network, work, hooks,
        states, splits, classes, components, commands,
    )
}  # fmt: skip
