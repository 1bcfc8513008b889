from __future__ import annotations

import os
from pathlib import Path

import pytest

from sigma_backend_numba.cache import files

os.environ["SIGMA_NUMBA_OPTIMISATION"] = "3"  # programs are tested as they train


@pytest.fixture(scope="session", autouse=True)
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Keep compiled programs in a directory of this test session."""
    folder = tmp_path_factory.mktemp("programs", numbered=True)
    folder.chmod(0o700)
    patch = pytest.MonkeyPatch()
    patch.setenv(files.VARIABLE, str(folder))
    return folder
