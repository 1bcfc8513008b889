"""Write the recorded facts anew, on purpose: ``python -m tests.proofs.write [NAME ...]``."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from tests.proofs import parameters

FILES: Mapping[str, tuple[Path, Callable[[], str]]] = {
    "parameters": (parameters.FILE, parameters.describe),
}


def main(names: Sequence[str]) -> None:
    """Write some files, or all."""
    os.environ["SIGMA_CONTROL"] = "off"
    for name in names or FILES:
        file, describe = FILES[name]
        file.write_text(describe(), encoding="utf-8")
        print(file)


if __name__ == "__main__":
    main(sys.argv[1:])
