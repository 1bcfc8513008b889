from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.long


def test_the_suite_of_transports_passes_in_a_job(jobs: Any) -> None:
    script = Path(__file__).with_name("test_suites.py")
    code, output, errors = jobs.run(12, str(script), "-k", "TestTransport", "-q", "--color=no")
    assert code == 0, output + errors
    assert re.search(r"^27 passed", output, re.MULTILINE), output
