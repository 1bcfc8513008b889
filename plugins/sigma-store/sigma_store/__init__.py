"""Run folders: checkpoints, journals, metrics and locks."""

from sigma_kernel import lazy_exports
from sigma_store.plugin import sigma_components

__getattr__, __dir__, __all__ = lazy_exports(
    __name__, {"bundle": "pack_run unpack_run", "excerpt": "read_journal"}, sigma_components()
)
