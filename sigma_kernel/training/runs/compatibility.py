"""Saving beside training, and putting back what was saved.

A saver holds the training thread only while it hands a snapshot over.  One thread writes them in order; a snapshot that
still waits for it gives way to a newer one, unless it is to be kept.
"""

from __future__ import annotations

import platform
import re
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from sigma_kernel import __version__
from sigma_kernel.errors import SigmaCheckpointError, said
from sigma_kernel.training.checkpoints.format import Checkpoint
from sigma_kernel.training.commands.changes import FORMER
from sigma_kernel.training.session.loop import Session


# -- putting back ------------------------------------------------------------------------------------------------------
def fit(path: Path, found: Checkpoint, session: Session) -> None:
    """Put a checkpoint into a session, which goes over to its components; SigmaCheckpointError if it does not fit."""
    try:
        session.remake(session, found.values.get("changes", {}))
        check_fit(path, found, session.snapshot())
        session.restore(found)
    except SigmaCheckpointError:
        raise
    except Exception as error:
        raise SigmaCheckpointError(f"{path}: does not fit: {said(error):.200} Use another checkpoint.") from error


def check_fit(path: Path, found: Checkpoint, session: Checkpoint) -> None:
    """Raise SigmaCheckpointError unless a checkpoint is of this trainer, and has arrays of these shapes and types."""
    ours = session.values["trainer"]
    whose = found.values.get("trainer", ours)
    if whose != ours:
        raise SigmaCheckpointError(
            f"{path}: is of trainer {whose!r:.50}, not of {ours!r}. Use a checkpoint of its own."
        )
    there, here = _described(found), _described(session)
    for name in sorted({*there, *here}):
        if name.startswith(FORMER):  # kept to undo what has changed it
            continue
        held, wanted = there.get(name), here.get(name)
        if name.startswith("kept."):  # kept.<hook>.<address>: a copy of what lies at that address
            held, wanted = held or wanted, here.get(name.split(".", 2)[-1], held)
        if held != wanted:
            raise SigmaCheckpointError(
                f"{path}: {name} is {held or 'missing'} in it, and {wanted or 'missing'} here. "
                "Use the configuration that it was saved under."
            )


def _described(checkpoint: Checkpoint) -> dict[str, str]:
    return {name: f"{value.dtype.name}{list(value.shape)}" for name, value in checkpoint.arrays.items()}


# -- what a checkpoint was made with -----------------------------------------------------------------------------------
def made_with(backend: str, about: Mapping[str, str]) -> dict[str, str]:
    """Return what the bits of a run depend on beside its configuration: versions, libraries, the processor's type."""
    versions = {"sigma-kernel": __version__, "python": platform.python_version(), "numpy": np.__version__}
    return {**versions, "processor": f"{platform.machine()} {_processor()}".strip(), "backend": backend, **about}


def differences(then: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    """Return a line for each thing that a checkpoint was made with, and that is another one now."""
    changed = [name for name in now if then.get(name, now[name]) != now[name]]
    return [f"{name} was {then[name]}, and is {now[name]} now" for name in changed]


def _processor() -> str:
    described = Path("/proc/cpuinfo")
    found = re.search(r"^model name\s*+: (.*+)$", described.read_text(), re.MULTILINE) if described.exists() else None
    return found[1] if found else platform.processor()
