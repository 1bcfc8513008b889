"""The ``sigma`` command group: the table of subcommands, and how errors become messages and exit codes."""

from __future__ import annotations

import os
import signal
import sys
import traceback
import warnings
from collections.abc import Collection, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from importlib import metadata
from itertools import pairwise
from typing import TextIO

import click

from sigma_kernel import __version__
from sigma_kernel.errors import SigmaError, error_text, printable, scarce, suggest_name
from sigma_kernel.plugins import rooms
from sigma_kernel.plugins.catalogue import DISABLE, Catalogue, catalogue, list_disabled, load
from sigma_kernel.plugins.discovery import commands, find, list_installed, normal
from sigma_kernel.plugins.own import TRUST
from sigma_kernel.plugins.specs import Component
from sigma_kernel.signals import EARLY
from sigma_run.launcher.output import colours, heard, reopen, reserve_stdout, results, say, silence, takes_document

LIVE = "live"  # the role of the group of commands that are sent to a run
DEBUG = "sigma.debug"  # among the meta data of click's context
COMMANDS = {
    name: Component("verb", name, f"sigma_run.launcher.{path}", summary, "sigma-kernel")
    for name, path, summary in (
        ("run", "run:run", "Train a recipe or a configuration file."),
        ("resume", "resume:resume", "Resume a run from its newest checkpoint, bit for bit."),
        ("replay", "resume:replay", "Replay a run from its journal and compare the results."),
        ("recall", "recall:recall", "Compute any moment of a run again and save its network."),
        ("fork", "fork:fork", "Train on from any moment of a run with other values, as a run of its own."),
        ("evaluate", "evaluate:evaluate", "Compute loss and metrics of a run's newest checkpoint."),
        ("predict", "predict:predict", "Predict with a trained network."),
        ("export", "export:export", "Write a trained network in another format."),
        ("runs", "runs:runs", "List runs: filter, sort, average; results and differing settings."),
        ("mark", "mark:mark", "Name, tag, note, star or archive runs."),
        ("check", "inspect:check", "Check a configuration and report every error in it."),
        ("explain", "inspect:explain", "Explain a configuration: layers, shapes, parameters, hooks, memory."),
        ("init", "init:init", "Create a configuration file from a recipe, or from your own data."),
        ("data", "inspection:data", "Look at data before training on them, and at rows after it."),
        ("recipes", "components:recipes", "List the ready-to-run configurations."),
        ("components", "components:components", "List the components of the installed plugins."),
        ("plugins", "plugins:plugins", "List, show and check the installed plugins."),
    )
}
GROUPS = ("data", "plugins")  # among them, which have commands of their own


def _leave_out(context: click.Context, option: click.Parameter, names: tuple[str, ...]) -> None:
    """Check that there are plugins of these names, which :func:`main` has disabled before any was imported."""
    for name in names:
        Catalogue(find(list_installed())).plugin(name)  # imports none


def _trust(context: click.Context, option: click.Parameter, names: tuple[str, ...]) -> None:
    """Trust own code of packages and modules until the command has ended."""
    if names:
        _set_until_the_end(context, TRUST, names)


def _debug(context: click.Context, option: click.Parameter, wanted: bool) -> None:
    """Note that tracebacks are wanted, wherever on the command line that was said."""
    if wanted:
        context.meta[DEBUG] = True


def _set_until_the_end(context: click.Context, variable: str, names: tuple[str, ...]) -> None:
    """Add names to an environment variable, which the processes that a command starts inherit."""
    before = os.environ.get(variable, "")
    os.environ[variable] = ",".join(filter(None, [before, *names]))
    context.call_on_close(lambda: os.environ.update({variable: before}))


ANYWHERE: list[click.Parameter] = [
    click.Option(
        ["--debug"], is_flag=True, expose_value=False, callback=_debug, help="Show the traceback of an error."
    ),
    click.Option(
        ["--no-plugin"], metavar="NAME", multiple=True, expose_value=False, is_eager=True, callback=_leave_out,
        help="Disable a plugin (repeatable).",
    ),
    click.Option(
        ["--trust"], metavar="PACKAGE", multiple=True, expose_value=False, is_eager=True, callback=_trust,
        help="Import own code of this package that a file or a run names (repeatable).",
    ),
]  # fmt: skip


class Launcher(click.Group):
    """A click group that imports commands on first use; its help imports no plugin."""

    def list_commands(self, context: click.Context) -> list[str]:
        """Return the kernel's commands in the order of the table, then those that plugins declare."""
        verbs = [*COMMANDS, *_list_commands()]
        return [*verbs, *_list_live(verbs)]

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        """Import and return a command; raises SigmaPluginError if the import fails."""
        command = _load_live(context, name) if _is_live(name) else load(_record(name))
        if not isinstance(command, click.Command):
            raise TypeError(f"command {name!r} is {command!r}, which is not a click command")
        if isinstance(context.obj, ExitStack) and not takes_document(command):
            context.obj.close()
        return _accept_anywhere(command)

    def format_commands(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands, importing none of them."""
        with formatter.section("Commands"):
            verbs = {name: component.summary for name, component in COMMANDS.items()} | _list_commands()
            formatter.write_dl([*verbs.items()])
        if live := _list_live(verbs):
            with formatter.section("Commands for a run that trains"):
                formatter.write_dl([*live.items()])


def _accept_anywhere(command: click.Command) -> click.Command:
    """Accept ``--debug`` and ``--no-plugin`` anywhere on the command line."""
    command.params.extend(option for option in ANYWHERE if option not in command.params)
    for inner in command.commands.values() if isinstance(command, click.Group) else ():
        _accept_anywhere(inner)
    return command


def _list_commands() -> dict[str, str]:
    """Return the commands that plugins declare in their metadata with their summaries, or those of the plugins."""
    rows = [row for row in commands() if row[0] not in COMMANDS and row[1] not in list_disabled()]
    return {name: rooms.summary(owner, name) or printable(about) for name, owner, about in rows}


def _record(name: str) -> Component:
    """Return the record of a command: the kernel's own take precedence, ``distribution:name`` selects a plugin's.

    If plugins declare it in their metadata, only these are imported, else all.
    """
    if name in COMMANDS:
        return COMMANDS[name]
    distribution, _, short = name.rpartition(":")
    if owners := [owner for n, owner, _about in commands() if n == short and normal(distribution) in ("", owner)]:
        return catalogue(*owners).resolve("verb", f"{owners[0]}:{short}" if len(owners) == 1 else name, "command")
    hint = _suggest_call(name) or suggest_name(name, [*COMMANDS, *rooms.names("command")])
    if hint and name not in {*rooms.names("verb"), *(c.name for c in catalogue().components("verb"))}:
        raise click.UsageError(f"There is no command {name!r}.{hint}")
    return catalogue().resolve("verb", name, "command")


def _suggest_call(name: str) -> str:
    """Return the calls of the commands of groups that have a name, as a suggestion; empty if there is none."""
    calls = [f"`sigma {group} {name}`" for group in GROUPS if name in load(COMMANDS[group]).commands]
    return f" Did you mean {' or '.join(calls)}?" if calls else ""


def _list_live(verbs: Collection[str]) -> dict[str, str]:
    """Return the live commands of the project's rooms that are here and the names of no verbs, with their summaries."""
    offers = {owner: kinds["command"].split() for owner, kinds in rooms.offers().items() if "command" in kinds}
    if not _is_present(rooms.default("verb", LIVE)[0]):
        return {}
    live = [(owner, name) for owner, names in offers.items() if _is_present(owner) for name in names]
    return {name: rooms.summary(owner, name) for owner, name in live if name not in verbs}


def _is_present(room: str) -> bool:
    """Return whether a room is installed and not disabled; reading all metadata would take longer."""
    return room not in list_disabled() and any(metadata.distributions(name=room))


def _is_live(name: str) -> bool:
    """Return whether a name means a live command: no verb has it."""
    if name in COMMANDS or name in rooms.names("verb"):
        return False
    distribution, _, short = name.rpartition(":")
    if any(n == short and normal(distribution) in ("", owner) for n, owner, _ in commands()):
        return False
    if not distribution and name in rooms.names("command"):
        return True
    return catalogue().offers("command", name) and not catalogue().offers("verb", name)


def _load_live(context: click.Context, name: str) -> click.Command | None:
    """Return the verb of a live command."""
    group = load(catalogue(rooms.default("verb", LIVE)[0]).resolve("verb", f"default:{LIVE}", "command"))
    assert isinstance(group, click.Group)  # of the project's own room
    return group.get_command(context, name)


MORE = "Plugins may offer more: `sigma components command` lists all."


@click.command(cls=Launcher, context_settings={"help_option_names": ["-h", "--help"]}, params=ANYWHERE, epilog=MORE)
@click.version_option(__version__, prog_name="sigma")
def sigma() -> None:
    """Train neural networks built from plugins; watch and steer them during training."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the ``sigma`` command and return its exit code; errors go to stderr as sentences."""
    given = sys.argv[1:] if arguments is None else list(arguments)
    reopen()
    with warnings.catch_warnings(), _disable_plugins(given), _keep_stdout(given) as kept:
        warnings.showwarning = _warn
        try:
            code = sigma.main(given, prog_name="sigma", standalone_mode=False, color=colours(), obj=kept)
            results().flush()
            return code if isinstance(code, int) else 0
        except click.ClickException as error:
            with heard():
                error.show()
            return error.exit_code
        except click.Abort as abort:  # click's word for KeyboardInterrupt
            return 128 + int((*getattr(abort.__cause__, "args", ()), signal.SIGINT)[0])
        except Exception as error:
            if EARLY:  # a library turned its KeyboardInterrupt into an error, as NumPy's import does
                return 128 + EARLY.popleft()
            return fail(error, "--debug" in given)


def _keep_stdout(arguments: Sequence[str]) -> AbstractContextManager[ExitStack | None]:
    """Keep stdout for the document that ``--json`` asks for, also while plugins are imported."""
    asked = "--json" in arguments and not {"-h", "--help"} & {*arguments}
    return reserve_stdout() if asked else nullcontext()


@contextmanager
def _disable_plugins(arguments: Sequence[str]) -> Iterator[None]:
    """Disable the plugins that ``--no-plugin`` names, wherever, also for the processes that a command starts."""
    apart = [argument.partition("=")[2] for argument in arguments if argument.startswith("--no-plugin=")]
    names = [after for word, after in pairwise(arguments) if word == "--no-plugin"] + apart
    if not names:
        yield
        return
    present, before = list_installed(), os.environ.get(DISABLE)  # others are refused later
    os.environ[DISABLE] = ",".join(filter(None, [before or "", *(name for name in names if normal(name) in present)]))
    try:
        yield
    finally:
        os.environ.pop(DISABLE) if before is None else os.environ.update({DISABLE: before})


def fail(error: Exception, debug: bool) -> int:
    """Print an error as a sentence, and return the exit code."""
    if debug:
        say("".join(traceback.format_exception(error)))
    if isinstance(error, OSError) and _of_output(error):
        silence(results())
        if not isinstance(error, BrokenPipeError):  # the reader may close the pipe
            say(f"standard output: cannot be written: {error.strerror}. Redirect it elsewhere.", "red")
        return 1
    if isinstance(error, SigmaError):
        say(error_text(error), "red")
        return error.exit_code
    if isinstance(error, MemoryError):
        say(scarce(error), "red")
        return 1
    if isinstance(error, UnicodeEncodeError):
        say(f"{error.object!a}: cannot be encoded in this locale ({error.encoding}). Set PYTHONUTF8=1.", "red")
        return 1
    say(f"{type(error).__name__}: {error}", "red")
    say("This is a bug in Sigma or in a plugin, not in your input. Pass --debug for the traceback.")
    return 1


def _of_output(error: OSError) -> bool:
    """Return whether writing to standard output failed: in click, or in the final flush of :func:`main`."""
    *_, (frame, _line) = traceback.walk_tb(error.__traceback__)
    return frame.f_code in (click.echo.__code__, main.__code__) and not frame.f_locals.get("err")


def _warn(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    say(f"warning: {message}", "yellow")
