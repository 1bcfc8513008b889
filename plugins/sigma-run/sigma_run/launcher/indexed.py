"""``sigma plugins search`` and ``install``: find plugins in the index, and install them beside this interpreter."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from shlex import join, split
from shutil import which
from typing import TYPE_CHECKING

import click

from sigma_kernel.errors import SigmaPluginError
from sigma_kernel.plugins.discovery import list_installed
from sigma_kernel.plugins.rooms import origin
from sigma_run.launcher.later import lazy_function
from sigma_run.launcher.output import document, json_option, say, table

if TYPE_CHECKING:
    from sigma_run.published.index import IndexedPlugin

PATH = Path(__file__).parents[1] / "published" / "index.json"
check_api = lazy_function("sigma_run.published.index:check_api")  # heavy imports that lists do not need
find_row = lazy_function("sigma_run.published.index:find_row")
read_index = lazy_function("sigma_run.published.index:read_index")
search_index = lazy_function("sigma_run.published.index:search_index")

index_option = click.option(
    "--index",
    metavar="FILE",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    default=PATH,
    help="Another index than that of Sigma.",
)
STATE = "import sys; from sigma_run.launcher import main; sys.exit(main(['plugins', 'show', sys.argv[1]]))"


@click.command()
@click.argument("words", metavar="[WORD]...", nargs=-1)
@index_option
@json_option
def search(words: tuple[str, ...], index: Path, as_json: bool) -> None:
    """Search the index for plugins with all WORDs in their names, kinds, components or summaries."""
    rows, here = search_index(read_index(index), words), list_installed()
    if as_json:
        document({"plugins": [_describe(row, here) for row in rows]})
    elif not rows:
        say(f"No plugin of the index has {' and '.join(words)}. Search for one word, such as a kind: layer.")
    else:
        table(_columns(row, here) for row in rows)


def _columns(row: IndexedPlugin, here: set[str]) -> tuple[str, ...]:
    state = "installed" if row.distribution in here else ""
    return row.distribution, row.version, state, ", ".join(row.kinds), row.summary


def _describe(row: IndexedPlugin, here: set[str]) -> dict[str, object]:
    return {
        "name": row.name,
        "distribution": row.distribution,
        "version": row.version,
        "api": row.api,
        "summary": row.summary,
        "kinds": {kind: names.split() for kind, names in row.kinds.items()},
        "installed": row.distribution in here,
    }


@click.command()
@click.argument("name")
@index_option
@click.option("--yes", is_flag=True, help="Do not ask.")
def install(name: str, index: Path, yes: bool) -> int:
    """Install the plugin NAME of the index beside this Python, by pip or uv, and show what it offers."""
    row = find_row(read_index(index), name)
    check_api(row)
    if row.distribution in list_installed():
        say(f"{row.distribution} is installed; `sigma plugins show {row.distribution}` says which version.")
        return 0
    command = [*choose_installer(), *split(origin(row.distribution, row.version))]
    if not yes:
        if not sys.stdin.isatty():
            raise click.UsageError(f"nobody can be asked here. Pass --yes to run: {join(command)}")
        click.confirm(f"{row.summary}\nRun {join(command)}?", abort=True, err=True)
    if code := subprocess.run(command, stdout=2, check=False).returncode:
        raise SigmaPluginError(
            f"{row.distribution}: the installer ended with exit code {code}. See what it says above."
        )
    return subprocess.run([sys.executable, "-P", "-c", STATE, row.distribution], check=False).returncode


def choose_installer() -> list[str]:
    """Return the command that installs packages for this interpreter; raises SigmaPluginError if there is none."""
    if find_spec("pip"):
        return [sys.executable, "-P", "-m", "pip", "install"]
    if uv := which("uv"):
        return [uv, "pip", "install", "--python", sys.executable]
    raise SigmaPluginError(f"{sys.executable}: has no pip, and there is no uv. Run {sys.executable} -m ensurepip.")
