"""One thread of PyTorch for the comparisons of this folder."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def use_one_thread() -> Iterator[None]:
    """Let PyTorch compute on one thread: on small tensors, several wait for each other. Its bits depend on it."""
    torch = sys.modules.get("torch")
    if torch is None:
        yield
        return
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
