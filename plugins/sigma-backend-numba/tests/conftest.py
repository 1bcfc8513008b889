from __future__ import annotations

import os
import signal
from collections.abc import Iterator
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


@pytest.fixture(scope="session", autouse=True)
def _interrupts_arrive() -> Iterator[None]:
    """Let Ctrl-C reach the tests if a shell started them in the background, where processes ignore it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)
