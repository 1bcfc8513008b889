# Generated: python -m sigma_testing.generate
# ruff: noqa
from sigma_run.overview.describing import describe_run as describe_run
from sigma_run.overview.describing import flat as flat
from sigma_run.overview.index import INDEX as INDEX
from sigma_run.overview.index import RunIndex as RunIndex
from sigma_run.overview.index import read_versions as read_versions
from sigma_run.overview.listing import list_runs as list_runs
from sigma_run.overview.marks import MARKS as MARKS
from sigma_run.overview.marks import Marks as Marks
from sigma_run.overview.marks import make_marks as make_marks
from sigma_run.overview.marks import read_marks as read_marks
from sigma_run.overview.marks import write_marks as write_marks
from sigma_run.overview.reproducing import reproduce_run as reproduce_run
from sigma_run.overview.selecting import average_rows as average_rows
from sigma_run.overview.selecting import columns_of as columns_of
from sigma_run.overview.selecting import differing as differing
from sigma_run.overview.selecting import select_rows as select_rows
from sigma_run.overview.selecting import sort_rows as sort_rows
from sigma_run.overview.selecting import values_of as values_of
