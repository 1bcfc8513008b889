"""``sigma plugins``: list, show and check the installed plugins."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from sigma_kernel.errors import SigmaPluginError, printable
from sigma_kernel.plugins.catalogue import catalogue, list_disabled
from sigma_kernel.plugins.discovery import Plugin, find, list_installed
from sigma_kernel.plugins.rooms import offers
from sigma_run.launcher.indexed import install, search
from sigma_run.launcher.later import lazy_function
from sigma_run.launcher.output import document, json_option, say, table
from sigma_run.launcher.scaffold import Owner, create, templates
from sigma_training.optional import optional

watch_imports = lazy_function("sigma_run.published.watching:watch_imports")
check_project = lazy_function("sigma_run.launcher.project:check_project")
problems_of = lazy_function("sigma_run.launcher.doctor:problems")  # heavy imports that lists do not need
notes_of = lazy_function("sigma_run.launcher.doctor:notes")
unreachable_commands = lazy_function("sigma_run.launcher.doctor:unreachable_commands")
former_names_of = lazy_function("sigma_run.launcher.written:former_names")


@click.group(invoke_without_command=True)
@json_option
@click.pass_context
def plugins(context: click.Context, as_json: bool) -> None:
    """List, show and check the installed plugins."""
    if context.invoked_subcommand is None:
        _list(as_json)


@plugins.command("list")
@json_option
def list_(as_json: bool) -> None:
    """List the installed plugins and their state."""
    _list(as_json)


@plugins.command()
@click.argument("name")
@json_option
def show(name: str, as_json: bool) -> None:
    """Show one plugin: its components, or why it cannot be used."""
    plugin = catalogue().plugin(name)
    if as_json:
        document(_as_document(plugin) | {"traceback": plugin.traceback})
        return
    title = f"{plugin.name} {plugin.version} ({plugin.state})"
    for text in filter(None, (title, plugin.reason, plugin.warning, plugin.traceback.rstrip())):
        click.echo(printable(text))
    table((component.kind, component.name, component.summary) for component in plugin.components)


@plugins.command()
@json_option
def doctor(as_json: bool) -> int:
    """Check every plugin: its import, requirements, components, names; exit with code 3 if any is broken.

    Each of other authors is first imported in a process of its own, which finds what that takes, prints and changes.
    """
    watched = watch_imports(sorted(list_installed() - {*list_disabled()} - offers().keys()))
    lethal = [name for name, report in watched.items() if report.ends]
    every = find([*list_disabled(), *lethal])
    reports = {name: ([*report.faults], [*report.notes]) for name, report in watched.items() if report.ends}
    for plugin in (plugin for plugin in every if plugin.name not in lethal):
        report = watched.get(plugin.name)
        faults, notes = (report.faults, report.notes) if report else ([], [])
        broken = [*problems_of(plugin), *faults, *unreachable_commands(plugin)]
        reports[plugin.name] = broken, [*notes_of(plugin, every), *notes]
    reports = dict(sorted(reports.items()))
    if as_json:
        rows = [{"name": name, "problems": broken, "notes": notes} for name, (broken, notes) in reports.items()]
        document({"plugins": rows})
    else:
        table((name, _diagnosis(*report)) for name, report in reports.items())
    return SigmaPluginError.exit_code if any(broken for broken, _ in reports.values()) else 0


def _diagnosis(problems: list[str], notes: list[str]) -> str:
    state = ["broken:", *problems] if problems else ["ok"]
    return "\n    ".join([*state, *(f"note: {note}" for note in notes)])


@plugins.command()
@click.argument("name")
@click.option("--kind", type=click.Choice(templates()), default="layer", show_default=True, help="Of its component.")
@click.option(
    "--component",
    metavar="NAME",
    default="",
    help="Its name. [default: the last word of NAME; all words if that hides another]",
)
@click.option("--summary", metavar="TEXT", default="", help="What it does, in a sentence. [default: the template's]")
@click.option("--folder", type=click.Path(path_type=Path), default=Path(), help="Write below this directory.")
@click.option("--author", default="", help="Of the licence. [default: The NAME authors]")
@click.option(
    "--repository", metavar="URL", default="", help="[default: https://github.com/ and NAME's first word, NAME]"
)
def new(name: str, kind: str, component: str, summary: str, folder: Path, author: str, repository: str) -> None:
    """Write a plugin, the distribution NAME, with a component, its tests, a licence and CI."""
    owner = Owner(author, repository).complete(name)
    project = create(folder, name, kind, component, owner, summary)
    say(f"wrote {project}; next: cd {project} && python -m pip install -e '.[test]' && python -m pytest")
    if not repository:
        say(f"its metadata name {owner.repository}; --repository names another address")


@plugins.command("check")
@click.argument("project", default=Path(), type=click.Path(path_type=Path))
@json_option
def check(project: Path, as_json: bool) -> int:
    """Check the plugin in the directory PROJECT: metadata, imports, components, tests, wheel."""
    optional("plugins check", "pytest")
    failed, reports = False, {}
    for what, problems in check_project(project):
        failed, reports[what] = failed or bool(problems), problems
        if not as_json:
            text = "\n    ".join(["failed:", *problems]) if problems else "ok"
            click.echo(f"{what:<12}  {text}")
    if as_json:
        document({"ok": not failed, "checks": reports})
    return SigmaPluginError.exit_code if failed else 0


plugins.add_command(search)
plugins.add_command(install)


def _list(as_json: bool) -> None:
    every = catalogue().plugins
    if as_json:
        document({"plugins": [_as_document(plugin) for plugin in every]})
    else:
        table((plugin.name, plugin.version, plugin.state, _remark(plugin)) for plugin in every)


def _remark(plugin: Plugin) -> str:
    count = len(plugin.components)
    former = former_names_of(plugin) if plugin.is_older else []  # imports its components
    return plugin.reason or plugin.warning or " ".join(former) or f"{count} component{'' if count == 1 else 's'}"


def _as_document(plugin: Plugin) -> dict[str, Any]:
    return {
        "name": plugin.name,
        "version": plugin.version,
        "state": plugin.state,
        "api": plugin.api,
        "reason": plugin.reason,
        "warning": plugin.warning,
        "components": [component._asdict() for component in plugin.components],
    }
