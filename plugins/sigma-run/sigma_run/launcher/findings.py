"""What the examiner of data finds: in the data of a configuration, as text and as JSON."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

from attrs import asdict

from sigma_kernel.contracts import Finding, Inspector
from sigma_kernel.environment import Environment
from sigma_kernel.plugins.catalogue import catalogue
from sigma_run.config import build, prepare
from sigma_run.launcher.configured import open_document, understood
from sigma_run.launcher.output import say
from sigma_training.data.inference import list_inspectors
from sigma_training.trainer import NetworkTrainer, expect_trainer

COLOURS = {"error": "red", "warning": "yellow", "note": None}
SERIOUS = ("error", "warning")


def examine_place(place: Path) -> list[Finding]:
    """Return what an inspector that examines data itself finds in a file or folder that it takes, or the examiner."""
    own = (x for x in list_inspectors(catalogue()) if type(x).examine is not Inspector.examine)
    return [*next((x for x in own if x.takes(place)), load_examiner()).examine(place)]


def examine_configuration(what: str, overrides: tuple[str, ...]) -> list[Finding]:
    """Return what the examiner finds in the data of a recipe or configuration, and repeat other warnings."""
    with warnings.catch_warnings(record=True) as caught:
        configuration = understood(open_document(what, overrides))
        with build(configuration, catalogue()) as environment:
            prepare(configuration, environment, begins=True)
            findings = [*chain(*(examine_trainer(trainer) for trainer in list_trainers(environment)))]
    for warning in caught:
        if not any(finding.text in str(warning.message) for finding in findings):
            warnings.warn_explicit(warning.message, warning.category, warning.filename, warning.lineno)
    return findings


def list_trainers(environment: Environment) -> Iterator[NetworkTrainer]:
    """Yield the trainers of an environment."""
    return map(expect_trainer, environment.trainers.values())


def examine_trainer(trainer: NetworkTrainer, quick: bool = False) -> Sequence[Finding]:
    """Return what the examiner finds in the data of a prepared trainer."""
    setup = trainer.session.setup
    return load_examiner().examine(setup.settings.data, setup.factory.splits, quick)


def load_examiner() -> Inspector:
    """Return the inspector that examines data of any form."""
    examiner: Any = catalogue().load("inspector", "default:examiner")
    inspector: Inspector = examiner()
    return inspector


def show_findings(findings: Iterable[Finding]) -> None:
    """Print findings on stderr, each with the places of rows."""
    for finding in findings:
        places = f" ({'; '.join(finding.examples)})" if finding.examples else ""
        say(f"{finding.severity}: {finding.text}{places} [{finding.rule}]", COLOURS[finding.severity])


def describe_findings(findings: Iterable[Finding]) -> list[dict[str, Any]]:
    """Return findings as plain values."""
    return [{**asdict(finding), "examples": [*finding.examples]} for finding in findings]
