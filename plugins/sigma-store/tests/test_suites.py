"""The store of run folders in the suite of its kind."""

from __future__ import annotations

from sigma_kernel.contracts.storing import Store
from sigma_store import FolderStore
from sigma_testing import StoreSuite


class TestFolderStore(StoreSuite):
    def make(self) -> Store:
        return FolderStore()
