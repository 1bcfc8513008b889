"""``sigma data check``: examine data for what users get silently wrong."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import click

from sigma_kernel.contracts import Finding
from sigma_kernel.errors import SigmaConfigError, SigmaDataError
from sigma_kernel.plugins.catalogue import catalogue
from sigma_run.config.stores import CONFIGURATION, is_run_folder
from sigma_run.launcher.findings import (
    SERIOUS,
    describe_findings,
    examine_configuration,
    examine_place,
    show_findings,
)
from sigma_run.launcher.output import document, json_option, say


@click.command()
@click.argument("what", metavar="RECIPE|FILE|RUN|DATA")
@click.option("--set", "overrides", metavar="KEY=VALUE", multiple=True, help="Override one key (repeatable).")
@json_option
@click.pass_context
def check(context: click.Context, what: str, overrides: tuple[str, ...], as_json: bool) -> None:
    """Examine the data of a configuration or a run, or DATA, a file or a folder, for what users get silently wrong.

    Equal rows, rows of two splits, pictures that are nearly the same, labels that disagree, columns that give the
    answer away or differ between splits, and more. The exit code is 1 if there are errors or warnings.
    """
    findings = _examine(what, overrides)
    if as_json:
        document({"ok": not _are_serious(findings), "findings": describe_findings(findings)})
    else:
        show_findings(findings)
        counts = Counter(finding.severity for finding in findings)
        listed = ", ".join(f"{count} {name}{'s' * (count > 1)}" for name, count in counts.items())
        say(f"{what}: {listed or 'nothing odd'}")
    context.exit(int(_are_serious(findings)))


def _examine(what: str, overrides: tuple[str, ...]) -> list[Finding]:
    place = Path(what)
    if is_run_folder(place):
        return examine_configuration(str(place / CONFIGURATION), overrides)
    if what.endswith(".toml") or (not place.exists() and catalogue().offers("recipe", what)):
        return examine_configuration(what, overrides)
    if not place.exists():
        raise SigmaConfigError(f"{what}: there is no such file, folder or recipe. Check the path.")
    if overrides:
        raise SigmaConfigError("--set: changes a configuration, and these are data. Leave it out.")
    try:
        return examine_place(place)
    except SigmaDataError as error:
        raise SigmaConfigError(str(error)) from error


def _are_serious(findings: list[Finding]) -> bool:
    return any(finding.severity in SERIOUS for finding in findings)
