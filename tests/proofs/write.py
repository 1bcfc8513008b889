"""Record anew, on purpose, what later code is compared with: ``python -m tests.proofs.write [NAME ...]``.

================ ======================================================================================================
name             what is recorded
================ ======================================================================================================
parameters       ``parameters.json``: losses and digests of parameters of all recipes with shipped data, shortened, on
                 numpy and numba. ``SIGMA_LONG=1 python -m pytest tests/proofs/test_parameters.py`` compares all.
folders          ``folders/``: run folders that must replay, resume and predict as they did. ``folders.py`` made them.
journal          ``journal.txt``: rows of scripted runs, with every command by hand and by a hook.
configurations   ``configurations/``: complete configurations of all recipes, and of a run described from Python.
mistakes         ``mistakes.txt``: mistakes in files and in Python, and the sentences that they are told. A quarter
                 of those in files is compared always, all with ``SIGMA_LONG=1``.
================ ======================================================================================================

A move of code must leave all of them equal. A change that is meant to alter one records it anew in the same commit,
where its difference can be read. Programs of numba are recorded in that room, by ``test_recorded_programs.py``.

Bits depend on the machine as well (see ``machine.py``). On another one than that which recorded them, tests compare
losses and predictions only. To compare bits there, record parameters before a change, and again after it.
"""

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
