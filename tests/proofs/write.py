"""Write the recorded facts anew, on purpose: ``python -m tests.proofs.write [NAME ...]``."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from tests.proofs import configurations, folders, journals, mistakes, parameters

RECORDS: Mapping[str, Callable[[], Path]] = {
    "parameters": parameters.record,
    "folders": folders.record,
    "journal": journals.record,
    "configurations": configurations.record,
    "mistakes": mistakes.record,
}


def main(names: Sequence[str]) -> None:
    """Record some facts, or all."""
    os.environ |= {"SIGMA_CONTROL": "off", "SIGMA_BACKEND": "numpy"}  # as tests do
    for name in names or RECORDS:
        print(RECORDS[name]())


if __name__ == "__main__":
    main(sys.argv[1:])
