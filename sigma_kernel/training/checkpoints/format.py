"""Checkpoints: a folder that is whole and verified, or does not exist.

``<run>/checkpoints/<trainer>/<iteration>/`` holds ``state.safetensors`` (every array of the state tree by name),
``manifest.json`` (what is not an array, and the sha256 of every other file) and ``manifest.sha256``, written last.  All
is written to a temporary sibling, synced, and moved into place by one rename.  Nothing in it is ever executed, and no
path in it is ever followed: a reader opens these three names and nothing else.

The manifest says ``"format": 1, "minor": 4``.  An older minor version can always be read; of a newer one what is
unknown is ignored, with a warning; another major version is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from types import NoneType
from typing import Any

import numpy as np
from attrs import field, frozen
from attrs.converters import optional

from sigma_kernel.errors import SigmaCheckpointError
from sigma_kernel.training.checkpoints.encoding import unpacked

FORMAT, MINOR = 1, 4  # 1.1 added sizes, made_with, score and keep; 1.2 the trainer, what was changed and can be undone;
# 1.3 the end of the journal that leads here, lists of hooks, and numbers that are not finite as others read them;
# 1.4 what the data set learned


FIELDS: dict[str, tuple[Any, ...]] = {  # of a manifest: what an older version meant without it, and its types
    "format": (None, int), "minor": (0, int), "files": (None, dict), "sizes": ({}, dict), "values": (None, dict),
    "made_with": ({}, dict), "score": (None, float, NoneType), "keep": (False, bool), "chain": ({}, dict),
}  # fmt: skip


VALUES = {"batch_size": (0, int), "journal": (0, int), "branch": (0, int), "classes": ([], list), "learned": ({}, dict),
          "changes": ({}, dict)}  # fmt: skip


ABOUT = ("values", "made_with", "score", "keep", "chain")  # what of it is said of the arrays


CHAIN = {"configuration": ("", str), "head": ("", str), "rows": ([], list)}


Say = Callable[[str], Any]


@frozen
class Checkpoint:
    """What was saved: arrays by name, everything else as plain JSON values, and what is known about the two.

    ``made_with`` are versions by name; ``score`` is what the best are chosen by; one to ``keep`` is never cleared away;
    ``chain`` is the end of the journal that leads to it.
    """

    arrays: Mapping[str, np.ndarray]
    values: Mapping[str, Any]
    made_with: Mapping[str, str] = field(factory=dict)
    score: float | None = field(default=None, converter=optional(float))
    keep: bool = False
    chain: Mapping[str, Any] = field(factory=dict)


def _understood(path: Path, found: Mapping[str, Any], say: Say) -> dict[str, Any]:
    try:
        manifest, wrong = _filled(unpacked(found), FIELDS)
    except (TypeError, ValueError, RecursionError) as error:
        raise SigmaCheckpointError(f"{path}: is no manifest: {error}. Use another checkpoint.") from error
    if "values" not in wrong:
        wrong += _filled(manifest["values"], VALUES)[1]
    if manifest["chain"] and "chain" not in wrong:
        wrong += _filled(manifest["chain"], CHAIN)[1]
    major, minor = manifest["format"], manifest["minor"]
    here, there = f"format {FORMAT}.{MINOR}", f"format {major}.{minor}"
    if "format" not in wrong and major != FORMAT:
        remedy = "Update sigma-kernel" if major > FORMAT else "Use the sigma-kernel that wrote it"
        raise SigmaCheckpointError(f"{path}: has {there}, and this version reads {here}. {remedy}.")
    if wrong:
        raise SigmaCheckpointError(f"{path}: is no manifest: {', '.join(wrong)} wrong. Use another checkpoint.")
    if minor > MINOR:
        say(f"{path}: has {there}, newer than {here}: what is unknown in it is ignored. Update sigma-kernel.")
    return manifest


def _filled(found: Mapping[str, Any], known: Mapping[str, tuple[Any, ...]]) -> tuple[dict[str, Any], list[str]]:
    """Return what is known of a table, and what in it has a wrong type or is a count below zero."""
    filled = {name: found.get(name, default) for name, (default, *_) in known.items()}
    below = [name for name, value in filled.items() if type(value) is int and value < 0]
    return filled, [name for name, (_, *types) in known.items() if type(filled[name]) not in types or name in below]
