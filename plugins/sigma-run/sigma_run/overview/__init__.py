"""Lists of runs: what is known of each, by an index; filters, order, averages; and what a person says of them."""

from sigma_kernel.lazy import lazy_exports

__getattr__, __dir__, __all__ = lazy_exports(
    __name__,
    {
        "describing": "describe_run flat",
        "index": "INDEX RunIndex read_versions",
        "listing": "list_runs",
        "reproducing": "reproduce_run",
        "marks": "MARKS Marks make_marks read_marks write_marks",
        "selecting": "average_rows columns_of differing select_rows sort_rows values_of",
    },
)
