# Generated: python -m sigma_testing.generate
# ruff: noqa
from sigma_store.bundle import pack_run as pack_run
from sigma_store.bundle import unpack_run as unpack_run
from sigma_store.excerpt import read_journal as read_journal
from sigma_store.run_folder import FolderStore as FolderStore
