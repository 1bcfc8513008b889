"""The format of a checkpoint: arrays by name, values, and the fields of its manifest.

The manifest has ``"format": 2, "minor": 3``.  Every older minor version can be read; unknown fields of a newer one are
ignored, with a warning; another major version is refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import NoneType
from typing import Any

from sigma_kernel.contracts.storing import Log
from sigma_kernel.encoding import unpack
from sigma_kernel.errors import SigmaCheckpointError, error_text

FORMAT, MINOR = 2, 3
FIELDS: dict[str, tuple[type, ...]] = {  # of a manifest, with their types
    "format": (int,), "minor": (int,), "files": (dict,), "sizes": (dict,), "values": (dict,), "made_with": (dict,),
    "score": (float, NoneType), "keep": (bool,), "chain": (dict,),
}  # fmt: skip
VALUES = {  # optional
    **dict.fromkeys(("batch_size", "journal", "branch"), (int,)),
    **dict.fromkeys(("classes", "undo", "lacks"), (list,)),
    **dict.fromkeys(("clock", "live", "configured", "hooks", "published", "sums", "learned", "changes"), (dict,)),
    **dict.fromkeys(("data", "ranking"), (dict,)), "epochs": (int, NoneType), "name": (str,), "note": (str,),
}  # fmt: skip
CLOCK = {"iteration": (int,), "epoch": (int,)}
CHAIN = {"configuration": (str,), "head": (str,), "rows": (list,)}
ABOUT = ("values", "made_with", "score", "keep", "chain")  # fields of a checkpoint besides its arrays


def manifest_of(path: Path, document: Mapping[str, Any], log: Log) -> dict[str, Any]:
    """Decode a manifest, and check it field by field; raise SigmaCheckpointError for any other document."""
    try:
        manifest = unpack(document)
    except (TypeError, ValueError, RecursionError) as error:
        raise SigmaCheckpointError(f"{path}: not a manifest: {error_text(error)} Use another checkpoint.") from error
    major, minor = manifest.get("format"), manifest.get("minor")
    here, there = f"format {FORMAT}.{MINOR}", f"format {major!r:.20}.{minor!r:.20}"
    if type(major) is int and major != FORMAT:
        remedy = "Update sigma-kernel" if major > FORMAT else "Use the sigma-kernel that wrote it"
        raise SigmaCheckpointError(f"{path}: has {there}, and this version reads {here}. {remedy}.")
    if wrong := _wrong(manifest, FIELDS) or _wrong_within(manifest):
        raise SigmaCheckpointError(f"{path}: not a manifest: {', '.join(wrong)} wrong. Use another checkpoint.")
    if minor > MINOR:
        log(f"{path}: has {there}, newer than {here}: unknown fields are ignored. Update sigma-kernel.")
    return dict(manifest)


def _wrong_within(manifest: Mapping[str, Any]) -> list[str]:
    values, chain = manifest["values"], manifest["chain"]
    there = {name: types for name, types in VALUES.items() if name in values}
    wrong = _wrong(values, there) + _wrong(chain, CHAIN if chain else {})
    return wrong or [f"clock.{name}" for name in _wrong(values.get("clock", {}), CLOCK if "clock" in values else {})]


def _wrong(found: Mapping[str, Any], known: Mapping[str, tuple[type, ...]]) -> list[str]:
    """Return the fields that are missing, of the wrong type, or negative counts."""
    return [n for n, types in known.items() if type(found.get(n)) not in types or (types == (int,) and found[n] < 0)]
