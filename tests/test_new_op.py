"""A new elementwise op is one row of the table, and nothing else changes: added to a copy, it works everywhere."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import sigma_kernel

ROOT, SCRIPT = Path(__file__).parents[1], Path(__file__).parent / "new_op.py"
BEFORE = 'erf: Op = op("erf"'
ROW = 'atan: Op = op("atan", shapes.same, dtypes.floating, lambda g, z, x: g / (x * x + 1.0), rounding="function")\n'


@pytest.fixture(scope="module")
def copied(tmp_path_factory):
    """Return a folder with a copy of the kernel whose table has one more row."""
    folder = tmp_path_factory.mktemp("copy")
    kernel = Path(sigma_kernel.__file__).parent
    shutil.copytree(kernel, folder / "sigma_kernel", ignore=shutil.ignore_patterns("__pycache__"))
    table = folder / "sigma_kernel" / "graph" / "ops.py"
    text = table.read_text("utf-8")
    assert text.count(BEFORE) == 1
    table.write_text(text.replace(BEFORE, ROW + BEFORE), "utf-8")
    return folder


@pytest.mark.rooms
@pytest.mark.parametrize("what", ["values", "facts", "documents", "numpy", "numba"])
def test_an_elementwise_op_is_one_row(what, copied, tmp_path):
    path = os.pathsep.join([str(copied), str(ROOT / "docs"), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "PYTHONPATH": path, "NUMBA_CACHE_DIR": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, SCRIPT, what], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr[-3000:]
