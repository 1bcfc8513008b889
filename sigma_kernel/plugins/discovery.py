"""Discover installed plugins, and quarantine broken ones.

Discovery happens once per process and costs one light import per plugin. A plugin that raises any exception is
*quarantined*: it is left out, the reason is kept, and errors mention it if it may offer a missing component.
"""

from __future__ import annotations

import re
import sys
import threading
import traceback
import warnings
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager, redirect_stdout
from functools import cache
from importlib import metadata
from typing import Any, NamedTuple

from pluggy import PluginManager

from sigma_kernel.errors import SigmaPluginError, error_text
from sigma_kernel.plugins import rooms, specs
from sigma_kernel.plugins.specs import API_VERSION, FORMS, GROUP, VERBS, Component, check_component

SLOW = 5  # seconds of an import after which a plugin is named
WITHOUT = "To go on without it, pass --no-plugin"
_IMPORTED = re.compile(
    r"No module named '(?P<module>[\w.]++)'|cannot import name '(?P<name>\w++)' from '(?P<place>[\w.]++)'"
)
_ONE = threading.RLock()  # held during the import of a plugin, as all threads share stdout


class Plugin(NamedTuple):
    """A distribution that offers components; ``reason`` is why it is quarantined, or empty."""

    name: str
    version: str = ""
    components: tuple[Component, ...] = ()
    disabled: bool = False
    reason: str = ""
    traceback: str = ""
    warning: str = ""
    api: str = ""  # the version of the API that it states
    hooks: Any = None  # of pluggy, to call its implementations of hookspecs

    def __repr__(self) -> str:
        return f"Plugin({self.name!r}, {self.version!r}, {self.state}, {len(self.components)} components)"

    @property
    def state(self) -> str:
        """Return ``ready``, ``disabled`` or ``quarantined``."""
        return "quarantined" if self.reason else "disabled" if self.disabled else "ready"

    @property
    def is_older(self) -> bool:
        """Return whether it was written for an older version of the API, which this kernel has as well."""
        return self.state == "ready" and _version(self.api) < _version(API_VERSION)


# -- finding -----------------------------------------------------------------------------------------------------------
@cache
def normal(name: str) -> str:
    """Return the normalised name of a distribution, for comparisons."""
    return re.sub(r"[-_.]++", "-", name).lower()


def requires(name: str, extras: bool = False) -> list[str]:
    """Return the normalised names of the distributions that an installed one requires; none if it is not installed.

    Those of its extras are left out unless ``extras`` is True.
    """
    try:
        stated = metadata.requires(name) or []
    except metadata.PackageNotFoundError:
        return []
    return [normal(re.split(r"[^\w.-]", text, maxsplit=1)[0]) for text in stated if extras or "extra ==" not in text]


def list_installed() -> set[str]:
    """Return the normalised names of the distributions with plugins, without importing them."""
    entries, broken = _entries()
    return {normal(name) for name in (*(about["Name"] for _, about in entries), *(plugin.name for plugin in broken))}


def commands() -> list[tuple[str, str, str]]:
    """Return the commands that plugins declare, with the names and summaries of their distributions, sorted."""
    verbs = [(entry.name, normal(about["Name"]), about["Summary"] or "") for entry, about in _entries(VERBS)[0]]
    return sorted(verb for verb in verbs if re.fullmatch(FORMS["name"][0], verb[0]))


def find(disabled: Iterable[str] = (), only: Collection[str] = ()) -> tuple[Plugin, ...]:
    """Return the installed plugins, or ``only`` some, sorted by name; an error in one does not affect the others."""
    left_out = {normal(name) for name in disabled}
    entries, plugins = _entries()
    for entry, about in entries:
        if not only or normal(about["Name"]) in only:
            plugins.append(_examine(entry, Plugin(normal(about["Name"]), about["Version"]), left_out))
    return tuple(sorted(plugins, key=lambda plugin: plugin.name))


def _read_metadata(distribution: metadata.Distribution | None) -> Any:
    """Return the metadata of a distribution; raises an exception of any kind if they cannot be read."""
    about: Any = distribution and distribution.metadata  # reads a file each time
    if not about["Name"]:
        raise SigmaPluginError("it has no name")
    return about


def _entries(group: str = GROUP) -> tuple[list[tuple[metadata.EntryPoint, Any]], list[Plugin]]:
    """Return entry points with the metadata of their distributions, and distributions with broken ones, quarantined."""
    try:
        return [(entry, _read_metadata(entry.dist)) for entry in metadata.entry_points(group=group)], []
    except Exception:  # one distribution is broken: read them one by one, which is slower
        by_distribution, broken = dict[str, list[tuple[metadata.EntryPoint, Any]]](), []
        for distribution in metadata.distributions():
            try:
                about, own = _read_metadata(distribution), distribution.entry_points.select(group=group)
                by_distribution.setdefault(normal(about["Name"]), [(entry, about) for entry in own])
            except Exception as error:
                where = str(getattr(distribution, "_path", distribution))
                why = f"its metadata cannot be read: {where} ({reason(error)}). Remove or reinstall it"
                broken.append(Plugin(re.split(r"[/\\]", where)[-1], reason=why))
        return [pair for own in by_distribution.values() for pair in own], broken


@contextmanager
def _warn_if_slow(name: str) -> Iterator[None]:
    """Warn of a plugin whose import does not end, with the way to leave it out."""
    said = f"plugin {name}: its import has taken {SLOW} seconds. {WITHOUT} {name}."
    timer = threading.Timer(SLOW, warnings.warn, [said])
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _examine(entry: metadata.EntryPoint, plugin: Plugin, disabled: set[str]) -> Plugin:
    if plugin.name in disabled:
        return plugin._replace(disabled=True)
    try:
        with _ONE, _warn_if_slow(plugin.name), redirect_stdout(sys.stderr):  # stdout is for results
            module = entry.load()
        api, warning = _agree(module)
        hooks = _register(module)
        return plugin._replace(api=api, warning=warning, components=_components(hooks, plugin.name), hooks=hooks)
    except BaseException as error:  # also SystemExit: a plugin must not end the command
        if type(error) is KeyboardInterrupt:
            warnings.warn(
                f"plugin {plugin.name}: interrupted during its import. {WITHOUT} {plugin.name}.", stacklevel=2
            )
            raise
        return plugin._replace(reason=reason(error), traceback="".join(traceback.format_exception(error)))


def reason(error: BaseException) -> str:
    """Return the message of an error on one line, without final punctuation; of an import, also what has moved."""
    text = " ".join(error_text(error).split()).rstrip(".: ")
    if isinstance(error, ImportError) and (match := _IMPORTED.search(text)):
        name = match["module"] or f"{match['place']}.{match['name']}"
        if now := rooms.current_import(name):
            return f"{text}. `{name}` is `{now}`"
    return text


def _version(text: str) -> tuple[int, ...]:
    return tuple(map(int, text.split(".")))


def _agree(module: object) -> tuple[str, str]:
    """Return the API that a plugin was written for, and a warning if it is newer than the kernel's.

    Raises SigmaPluginError for another major version.
    """
    stated = getattr(module, "SIGMA_API", None)
    if not isinstance(stated, str) or not re.fullmatch(r"\d++\.\d++", stated):
        raise SigmaPluginError(f"SIGMA_API is {stated!r}. State the version of the API: SIGMA_API = {API_VERSION!r}.")
    theirs, ours = _version(stated), _version(API_VERSION)
    written = f"It was written for API {stated}, this kernel has {API_VERSION}. Update"
    if theirs[0] != ours[0]:
        raise SigmaPluginError(f"{written} {'the plugin' if theirs < ours else 'sigma-kernel'}.")
    return stated, f"{written} sigma-kernel." if theirs > ours else ""


def _register(module: object) -> Any:
    """Return what calls a plugin's implementations of hookspecs."""
    manager = PluginManager("sigma_kernel")  # one per plugin, to isolate them
    manager.add_hookspecs(specs)
    manager.register(module)
    manager.check_pending()
    return manager.hook


def _components(hooks: Any, distribution: str) -> tuple[Component, ...]:
    answers = hooks.sigma_components()
    if not answers:
        raise SigmaPluginError("It has no sigma_components() marked with @hookimpl.")
    records = [record for answer in answers for record in answer]
    by_name: dict[tuple[str, str], Component] = {}
    for record in records:
        check_component(record)
        if (record.kind, record.name) in by_name:
            raise SigmaPluginError(f"It offers {record.kind} {record.name!r} twice.")
        by_name[record.kind, record.name] = record._replace(distribution=distribution)
    return tuple(by_name.values())
