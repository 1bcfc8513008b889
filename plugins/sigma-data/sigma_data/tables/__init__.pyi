# Generated: python -m sigma_testing.generate
# ruff: noqa
from sigma_data.tables.batches import RecordBatches as RecordBatches
from sigma_data.tables.dialect import Dialect as Dialect
from sigma_data.tables.dialect import detect as detect
from sigma_data.tables.opening import open_table as open_table
