# Generated: python -m sigma_testing.generate
# ruff: noqa
from sigma_store.run_folder import FolderStore as FolderStore
