"""Write the recorded facts anew, on purpose: ``python -m tests.proofs.write [NAME ...]``."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from tests.proofs import folders, parameters

RECORDS: Mapping[str, Callable[[], Path]] = {
    "parameters": parameters.record,
    "folders": folders.record,
}


def main(names: Sequence[str]) -> None:
    """Record some facts, or all."""
    os.environ["SIGMA_CONTROL"] = "off"
    for name in names or RECORDS:
        print(RECORDS[name]())


if __name__ == "__main__":
    main(sys.argv[1:])
