# Generated: python -m sigma_testing.generate
# ruff: noqa
from sigma_data.tables.batches import RecordBatches as RecordBatches
from sigma_data.tables.dialect import Dialect as Dialect
from sigma_data.tables.dialect import detect as detect
from sigma_data.tables.opening import open_alike as open_alike
from sigma_data.tables.opening import open_table as open_table
from sigma_data.tables.places import InMemory as InMemory
from sigma_data.tables.places import as_place as as_place
from sigma_data.tables.places import name_place as name_place
